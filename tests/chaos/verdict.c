#include "build_config.h"

#include "verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "chaos.h"
#include "deadline.h"
#include "phases.h"

#define PRINTED_MAX 5
#define TEXT_MAX 400

void note_event(struct chaos *chaos, const char *format, ...)
{
    struct verdict *verdict = &chaos->verdict;
    char *to = verdict->events[verdict->event_count++ % VERDICT_EVENTS];
    int64_t ms = now_ms() - verdict->start_ms;
    va_list arguments;
    int len = snprintf(to, VERDICT_EVENT_MAX, "%6" PRId64 ".%03d %-6s ", ms / 1000,
                       (int)(ms % 1000), phase_name(chaos->phase));

    va_start(arguments, format);
    vsnprintf(to + len, VERDICT_EVENT_MAX - (size_t)len, format, arguments);
    va_end(arguments);
}

static void print_events(const struct verdict *verdict)
{
    unsigned long long first =
        verdict->event_count > VERDICT_EVENTS ? verdict->event_count - VERDICT_EVENTS : 0;
    unsigned long long i;

    fprintf(stderr, "  the last events:\n");
    for (i = first; i < verdict->event_count; i++)
        fprintf(stderr, "    %s\n", verdict->events[i % VERDICT_EVENTS]);
}

/* `text` has its first `len` bytes; appends the rest, then counts and prints it. */
static void count_violation(struct chaos *chaos, char text[TEXT_MAX], int len, const char *format,
                            va_list arguments)
{
    struct verdict *verdict = &chaos->verdict;
    int64_t ms = now_ms() - verdict->start_ms;

    vsnprintf(text + len, TEXT_MAX - (size_t)len, format, arguments);
    if (verdict->violations++ < PRINTED_MAX) {
        fprintf(stderr, "VIOLATION after %" PRId64 ".%03d s, phase %s, seed %llu:\n  %s\n",
                ms / 1000, (int)(ms % 1000), phase_name(chaos->phase), chaos->options.seed, text);
        if (verdict->violations == 1) {
            print_events(verdict);
            fprintf(stderr, "  the daemon's log: %s\n", chaos->subject.log_path);
        }
    }
    note_event(chaos, "VIOLATION: %.100s", text);
}

#define COUNT_VIOLATION(...)                                                                       \
    do {                                                                                           \
        char text[TEXT_MAX];                                                                       \
        va_list arguments;                                                                         \
                                                                                                   \
        va_start(arguments, format);                                                               \
        count_violation(chaos, text, snprintf(text, TEXT_MAX, __VA_ARGS__), format, arguments);    \
        va_end(arguments);                                                                         \
    } while (0)

void violation(struct chaos *chaos, const char *format, ...)
{
    COUNT_VIOLATION("%s", "");
}

void worker_violation(struct chaos *chaos, const struct incarnation *worker, const char *format,
                      ...)
{
    COUNT_VIOLATION("worker %ld ", (long)worker->pid);
}

void client_violation(struct chaos *chaos, const struct client *client, const char *format, ...)
{
    COUNT_VIOLATION("client %llu ", client->conn);
}
