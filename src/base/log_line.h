/* The lines of the log, in each of its formats. */
#ifndef STDIO_BUS_BASE_LOG_LINE_H
#define STDIO_BUS_BASE_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/slice.h"

#define LOG_LINE_MAX 1024 /* bytes of a line with its newline; longer text is cut, ends in "..." */

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

enum log_format {
    LOG_TEXT,     /* 2026-01-02T03:04:05.678Z WARN  [worker=2 pid=71] text */
    LOG_LOGFMT,   /* time=2026-01-02T03:04:05.678Z level=warn worker=2 pid=71 msg="text" */
    LOG_JSON,     /* {"time":"...","level":"warn","worker":2,"pid":71,"message":"text"} */
    LOG_JOURNALD, /* <4>[worker=2 pid=71] text: the journal has the time itself */
    LOG_SYSLOG    /* <28>Jan  2 03:04:05 stdio_bus[70]: [worker=2 pid=71] text: for one datagram */
};

struct log_line {
    char bytes[1 + LOG_LINE_MAX]; /* the first is the newline that ends a torn line */
    size_t len;
    bool cut;
    enum log_format format;
};

/* Makes a line. `context` is "" or words NAME=VALUE, whose values log_quote has written. What a
 * terminal obeys (terminal.h) is escaped; a text that is too long is cut. */
void log_line_make(struct log_line *line, enum log_format format, enum log_level level,
                   const char *context, const char *text);

/* Bytes from outside as printable text: at most `size - 1` characters, NUL-terminated; control
 * bytes, quotes, backslashes and non-ASCII become \xNN, and a cut text ends in "...". Returns
 * `to`. */
const char *log_escape(char *to, size_t size, struct slice bytes);

/* The same as the value of a context: between quotes, unless it is of letters, digits and the like
 * alone. `size` is at least 8. */
const char *log_quote(char *to, size_t size, const char *value);

#define LOG_TIME_SIZE 96

/* Writes a time since 1970 as in RFC 3339, UTC. Returns `to`. */
const char *log_time(char to[LOG_TIME_SIZE], time_t seconds, int ms);

/* "debug", "info", "warn", "error" (any case) to a level. Returns false for anything else. */
bool log_level_from_name(const char *name, enum log_level *level);

/* "text", "logfmt", "json", "journald" to a format, in the same way. */
bool log_format_from_name(const char *name, enum log_format *format);

#endif
