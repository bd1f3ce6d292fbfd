/* What the checker found, and what happened before it. */
#ifndef TESTS_CHAOS_VERDICT_H
#define TESTS_CHAOS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_EVENTS 60
#define VERDICT_EVENT_MAX 160

struct chaos;

struct verdict {
    uint64_t violations;
    int64_t start_ms;
    uint64_t event_count;
    char events[VERDICT_EVENTS][VERDICT_EVENT_MAX]; /* a ring */
};

/* Remembers that something out of the ordinary happened. */
void note_event(struct chaos *chaos, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The daemon broke a rule. The first few are printed with the seed, the phase and the events. */
void violation(struct chaos *chaos, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
