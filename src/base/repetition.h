/* Lines of the log that repeat each other: counted by call site and by source. */
#ifndef STDIO_BUS_BASE_REPETITION_H
#define STDIO_BUS_BASE_REPETITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log_line.h"
#include "base/slice.h"

#define REPETITION_BURST 10 /* lines that are written in a window */
#define REPETITION_WINDOW_MS 5000
#define REPETITION_KINDS 64      /* windows at a time: more than there are call sites */
#define REPETITION_SOURCES 4     /* with windows of their own; further sources share one */
#define REPETITION_SOURCE_MAX 48 /* bytes of a source, with its NUL */
#define REPETITION_SHOWN_MAX 160 /* bytes of the line that a summary shows, with its NUL */

struct repetition {     /* lines of one call site, level and source */
    const char *format; /* the call site's format string, by address; NULL: a free place */
    char source[REPETITION_SOURCE_MAX];
    enum log_level level;
    int64_t window_start_ms;
    unsigned count;    /* lines in this window */
    unsigned left_out; /* lines left out that no summary has reported yet: */
    int64_t since_ms, last_ms;
    char shown[REPETITION_SHOWN_MAX]; /* the first of them */
};

static inline bool repetition_is_over(const struct repetition *kind, int64_t now_ms)
{
    return now_ms - kind->window_start_ms >= REPETITION_WINDOW_MS;
}

/* The kind of a line of this call site, level and source, with a window that is not over.
 * *evicted: the kind whose place it got, to be reported; if there is none, one without lines left
 * out. */
struct repetition *repetition_get(struct repetition kinds[REPETITION_KINDS], const char *format,
                                  enum log_level level, struct slice source, int64_t now_ms,
                                  struct repetition *evicted);

#endif
