/* The stderr of a worker that the daemon reads (pool key "stderr": "log"): lines of the log, and
 * the last bytes, which may say why the process ended.
 *
 * A process that floods it costs a bounded part of the log and of the time: in each window of
 * STDERR_WINDOW_MS at most STDERR_LINES lines are logged, the others are counted, and at most
 * STDERR_BYTES are read. Then the process waits. */
#ifndef STDIO_BUS_PROCESS_STDERR_READER_H
#define STDIO_BUS_PROCESS_STDERR_READER_H

#include <stdint.h>

#include "base/archive.h"
#include "base/log.h"
#include "event/event_loop.h"

#define STDERR_KEPT 4096 /* bytes that are kept of a process, the last ones */
#define STDERR_LINE_MAX 1000
#define STDERR_WINDOW_MS 10000
#define STDERR_LINES 100
#define STDERR_BYTES ((size_t)32 << 20)

struct stderr_reader {
    struct stdio_bus_event_loop *loop;
    struct log *log;
    const char *context; /* of the worker, for the log */
    int fd;              /* -1: no process, or its stderr has ended */
    size_t kept_len, line_len;
    unsigned lines; /* logged in this window, */
    size_t bytes;   /* and read */
    uint64_t left_out;
    struct timer window; /* started with the first line of a window */
    char kept[STDERR_KEPT];
    char line[STDERR_LINE_MAX + 1]; /* the beginning of one that has not ended */
};

/* Without a process. `log` and `context` are borrowed. NULL if out of memory. */
struct stderr_reader *stderr_reader_create(struct stdio_bus_event_loop *loop, struct log *log,
                                           const char *context);

/* Closes what is open and frees it. Accepts NULL. */
void stderr_reader_destroy(struct stderr_reader *reader);

/* Reads the stderr of a new process from this non-blocking descriptor, which is the reader's from
 * now on. What was kept of the process before is forgotten. STDIO_BUS_ERR with errno set; then the
 * descriptor is the caller's. */
int stderr_reader_begin(struct stderr_reader *reader, int fd);

/* Reads what there is at the end of a process; a process that keeps writing is not waited for. */
void stderr_reader_drain(struct stderr_reader *reader);

/* Logs the rest, and closes the descriptor. What was kept stays. */
void stderr_reader_end(struct stderr_reader *reader);

/* Writes the last line that is not empty, printable; cut to fit, "" if there is none. */
void stderr_reader_last_line(const struct stderr_reader *reader, char *to, size_t size);

/* Writes the last lines, printable and each with its newline, as many as fit. */
void stderr_reader_last_lines(const struct stderr_reader *reader, char *to, size_t size);

/* Saves, or loads and watches its descriptor again. */
void stderr_reader_archive(struct archive *archive, struct stderr_reader *reader);

#endif
