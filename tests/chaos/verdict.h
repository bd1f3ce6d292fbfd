/* The violations found in a run, and the events before them. */
#ifndef TESTS_CHAOS_VERDICT_H
#define TESTS_CHAOS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_EVENTS 60
#define VERDICT_EVENT_MAX 160

struct chaos;
struct client;
struct incarnation;

struct verdict {
    unsigned long long violations;
    int64_t start_ms;
    unsigned long long event_count;
    char events[VERDICT_EVENTS][VERDICT_EVENT_MAX]; /* a ring */
};

/* Records an event, printed with the first violation. */
void note_event(struct chaos *chaos, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Counts a violation by the daemon. The first few are printed with seed, phase and events. */
void violation(struct chaos *chaos, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same; the text begins with "worker PID " or "client CONNECTION ". */
void worker_violation(struct chaos *chaos, const struct incarnation *worker, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
void client_violation(struct chaos *chaos, const struct client *client, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
