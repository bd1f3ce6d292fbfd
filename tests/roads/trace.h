/* The trace of an instrumented daemon, in a file that the daemon and drive share. */
#ifndef TESTS_ROADS_TRACE_H
#define TESTS_ROADS_TRACE_H

#include <stdint.h>

#define TRACE_FILE "trace"                   /* in the current directory */
#define TRACE_EVENTS_MAX ((uint64_t)1 << 18) /* later ones are not recorded */

struct trace {
    volatile uint64_t count;
    volatile uint64_t events[TRACE_EVENTS_MAX]; /* address of a function, times two, plus TRACE_* */
};

enum { TRACE_EXIT, TRACE_ENTRY };

#endif
