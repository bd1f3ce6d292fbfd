/* The log: lines on stderr or in a file (spec Appendix C).
 *
 *     2026-01-02T03:04:05.678Z WARN  [worker=2 pid=71] text
 *
 * Writing never blocks: a line that does not fit into a full pipe is dropped, and the next one that
 * fits reports how many were. Of lines that a peer can cause at will, log_repeated and log_warn,
 * each call site writes at most REPETITION_BURST per REPETITION_WINDOW_MS and source; a summary of
 * those left out follows. No other line is left out. */
#ifndef STDIO_BUS_BASE_LOG_H
#define STDIO_BUS_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/datagram.h"
#include "base/log_line.h"
#include "base/slice.h"

/* --- Lines of the log that repeat each other: counted by call site and by source. --- */

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

/* How the log may be written without blocking. */
enum log_output {
    LOG_BORROWED,  /* a descriptor shared with other processes: asked first whether it is ready */
    LOG_SOCKET,    /* a shared socket: each send is non-blocking */
    LOG_OWN,       /* a non-blocking description that the log has opened, and closes */
    LOG_DATAGRAMS, /* a datagram for each line, to the system's log */
    LOG_CALLS      /* a call for each line */
};

/* A function that writes the pieces, and fails as writev does. */
typedef ssize_t writev_fn(int fd, const struct iovec *pieces, int count);

/* Gets a line: "[worker=2 pid=71] text", without a newline, printable. */
typedef void log_line_fn(void *user_data, enum log_level level, const char *line);

/* Gets a line of the log: its context, and its text as it came. */
typedef void log_watch_fn(void *user_data, enum log_level level, const char *context,
                          const char *text);

/* All members but level and writes are private to log.c. */
struct log {
    enum log_level level;
    enum log_format format;
    const char *path; /* NULL: none */
    int fd;
    writev_fn *writes; /* in place of write; NULL: write */
    enum log_output output;
    bool torn; /* the last line was written in part: the next one starts with a newline */
    struct datagram system;
    log_line_fn *take; /* of LOG_CALLS */
    void *taker;
    uint64_t dropped; /* lines that did not fit since the last one that did */
    struct repetition kinds[REPETITION_KINDS];
    void (*left_out)(void *user_data);
    void *user_data;
    log_watch_fn *watch;
    void *watcher;
};

/* Starts logging to `fd` (borrowed; stays open, its flags untouched). Never fails. A pipe without a
 * reader raises SIGPIPE, a socket does not. */
void log_open(struct log *log, int fd, enum log_level level);

/* Starts logging to the end of the file, which is created if necessary. The path is borrowed until
 * log_close. STDIO_BUS_ERR with errno set when the file cannot be opened. STDIO_BUS_EINVAL when it
 * is a symbolic link in a directory that other users can write to: one of them may have made it, to
 * have the log appended to a file of this user. */
int log_open_file(struct log *log, const char *path, enum log_level level);

/* Starts logging to the socket of the system's log, in the format LOG_SYSLOG. The errors of
 * datagram_open. */
int log_open_system(struct log *log, const char *path, enum log_level level);

/* Starts logging to a function, which must not write to this log. */
void log_open_calls(struct log *log, log_line_fn *take, void *user_data, enum log_level level);

/* Sets the format, which is LOG_TEXT at first; one of a log that is no system's. */
void log_set_format(struct log *log, enum log_format format);

/* Whether the log goes to the journal: `stream` is the variable JOURNAL_STREAM, "DEVICE:INODE" of
 * the file that systemd has connected to it; or NULL. */
bool log_is_journal(const struct log *log, const char *stream);

/* Opens the file of log_open_file again, in case it was moved away. After an error, as of
 * log_open_file, the log continues as before. Does nothing after the other two. */
int log_reopen(struct log *log);

/* What kept log_open_file or log_reopen, which have just returned `status`, from opening the
 * file. */
const char *log_file_problem(int status);

/* *shares: whether the log and `fd` write to the same file, pipe or socket; devices, such as a
 * terminal, do not count. STDIO_BUS_ERR with errno set when fstat fails. */
int log_shares(const struct log *log, int fd, bool *shares);

/* Reports the lines left out or dropped, and closes what was opened. */
void log_close(struct log *log);

/* Calls `fn` whenever lines begin to be left out, so that log_report is called REPETITION_WINDOW_MS
 * later. Without it the summary is written before the next line. NULL: none. */
void log_on_left_out(struct log *log, void (*fn)(void *user_data), void *user_data);

/* Calls `fn` with each warning and error that is written. NULL: none. */
void log_watch(struct log *log, log_watch_fn *fn, void *user_data);

/* Writes the summaries that are due. Returns whether more will be due, in REPETITION_WINDOW_MS. */
bool log_report(struct log *log);

/* Writes one line, whatever was written before. `context` is "" or the text between the brackets
 * ("worker=2 pid=71"), as log_line_make has it. Bytes below 0x20 and 0x7f are written escaped, so
 * no line can be forged.
 * errno stays as it was. */
void log_write(struct log *log, enum log_level level, const char *context, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for a line that a peer can cause at will. `source` is the part of that peer's origin by
 * which the lines are counted, or LOG_NO_SOURCE. `format` is a literal: a call site is known by its
 * address. */
void log_repeated(struct log *log, enum log_level level, const char *context, struct slice source,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

#define LOG_NO_SOURCE slice_of(NULL, 0)

/* Whether lines of this level are written. To be asked before work for a line is done. */
static inline bool log_enabled(const struct log *log, enum log_level level)
{
    return level >= log->level;
}

#define log_debug(log, context, ...)                                                               \
    do {                                                                                           \
        if (log_enabled((log), LOG_LEVEL_DEBUG))                                                   \
            log_write((log), LOG_LEVEL_DEBUG, (context), __VA_ARGS__);                             \
    } while (0)
#define log_info(log, context, ...) log_write((log), LOG_LEVEL_INFO, (context), __VA_ARGS__)
#define log_warn(log, context, ...)                                                                \
    log_repeated((log), LOG_LEVEL_WARN, (context), LOG_NO_SOURCE, __VA_ARGS__)
#define log_error(log, context, ...) log_write((log), LOG_LEVEL_ERROR, (context), __VA_ARGS__)

#endif
