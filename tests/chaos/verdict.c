#include "build_config.h"

#include "verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "chaos.h"
#include "deadline.h"

#define PRINTED_MAX 5

void note_event(struct chaos *chaos, const char *format, ...)
{
    struct verdict *verdict = &chaos->verdict;
    char *to = verdict->events[verdict->event_count++ % VERDICT_EVENTS];
    int64_t ms = now_ms() - verdict->start_ms;
    va_list arguments;
    int len;

    len = snprintf(to, VERDICT_EVENT_MAX, "%6" PRId64 ".%03d %-6s ", ms / 1000, (int)(ms % 1000),
                   phase_name(chaos->phase));
    va_start(arguments, format);
    vsnprintf(to + len, VERDICT_EVENT_MAX - (size_t)len, format, arguments);
    va_end(arguments);
}

static void print_events(const struct verdict *verdict)
{
    uint64_t first =
        verdict->event_count > VERDICT_EVENTS ? verdict->event_count - VERDICT_EVENTS : 0;
    uint64_t i;

    fprintf(stderr, "  the last events:\n");
    for (i = first; i < verdict->event_count; i++)
        fprintf(stderr, "    %s\n", verdict->events[i % VERDICT_EVENTS]);
}

void violation(struct chaos *chaos, const char *format, ...)
{
    struct verdict *verdict = &chaos->verdict;
    int64_t ms = now_ms() - verdict->start_ms;
    char text[400];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (verdict->violations++ < PRINTED_MAX) {
        fprintf(stderr, "VIOLATION after %" PRId64 ".%03d s, phase %s, seed %" PRIu64 ":\n  %s\n",
                ms / 1000, (int)(ms % 1000), phase_name(chaos->phase), chaos->options.seed, text);
        if (verdict->violations == 1) {
            print_events(verdict);
            fprintf(stderr, "  the daemon's log: %s\n", chaos->subject.log_path);
        }
    }
    note_event(chaos, "VIOLATION: %.100s", text);
}
