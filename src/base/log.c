#include "build_config.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"

/* The kind of a call site and source, or NULL. *sources: how many more the call site has. */
static struct repetition *find_repetition(struct repetition kinds[], const char *format,
                                          enum log_level level, struct slice source, int64_t now_ms,
                                          size_t *sources)
{
    *sources = 0;
    for (size_t i = 0; i < REPETITION_KINDS; i++) {
        struct repetition *kind = &kinds[i];

        if (kind->format != format || kind->level != level)
            continue;
        if (slice_is(source, kind->source))
            return kind;
        *sources += !repetition_is_over(kind, now_ms);
    }
    return NULL;
}

/* A free place, or that of the earliest window. */
static struct repetition *find_place(struct repetition kinds[])
{
    struct repetition *oldest = &kinds[0];

    for (size_t i = 0; i < REPETITION_KINDS && oldest->format != NULL; i++) {
        if (kinds[i].format == NULL || kinds[i].window_start_ms < oldest->window_start_ms)
            oldest = &kinds[i];
    }
    return oldest;
}

/* The kind of a line of this call site, level and source, with a window that is not over.
 * *evicted: the kind whose place it got, to be reported; if there is none, one without lines left
 * out. */
static struct repetition *repetition_get(struct repetition kinds[REPETITION_KINDS],
                                         const char *format, enum log_level level,
                                         struct slice source, int64_t now_ms,
                                         struct repetition *evicted)
{
    static const char others[] = "various origins";
    struct repetition *kind;
    size_t sources;

    evicted->left_out = 0;
    if (source.len >= REPETITION_SOURCE_MAX)
        source.len = REPETITION_SOURCE_MAX - 1;
    kind = find_repetition(kinds, format, level, source, now_ms, &sources);
    if (kind == NULL && source.len > 0 && sources >= REPETITION_SOURCES) {
        source = slice_of(others, sizeof others - 1);
        kind = find_repetition(kinds, format, level, source, now_ms, &sources);
    }
    if (kind == NULL) {
        kind = find_place(kinds);
        *evicted = *kind;
        *kind = (struct repetition){.format = format, .level = level, .window_start_ms = now_ms};
        if (source.len > 0)
            memcpy(kind->source, source.data, source.len);
    }
    if (repetition_is_over(kind, now_ms)) {
        kind->window_start_ms = now_ms;
        kind->count = 0;
    }
    return kind;
}

/* Without it there is no way that leaves the options of the shared socket alone. */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#define DIRECTORY_MAX 4096
void log_open(struct log *log, int fd, enum log_level level)
{
    struct stat status;
    int own;

    *log = (struct log){.level = level, .fd = fd, .output = LOG_BORROWED};
    if (fstat(fd, &status) != 0)
        return;
    if (S_ISSOCK(status.st_mode))
        log->output = LOG_SOCKET;
    own = descriptor_open_own(fd, O_WRONLY);
    if (own >= 0) {
        log->fd = own;
        log->output = LOG_OWN;
    }
}

/* Whether other users, but for the superuser, can make files in the directory of the file. One that
 * cannot be looked at counts as such. */
static bool directory_is_shared(const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[DIRECTORY_MAX];
    struct stat status;
    int len = snprintf(directory, sizeof directory, "%.*s",
                       slash != NULL ? (int)(slash - path) + 1 : 1, slash != NULL ? path : ".");

    return (size_t)len >= sizeof directory || stat(directory, &status) != 0 ||
           (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
           (status.st_uid != 0 && status.st_uid != geteuid());
}

static bool is_symbolic_link(const char *path)
{
    struct stat status;
    int error = errno;
    bool is_link = lstat(path, &status) == 0 && S_ISLNK(status.st_mode);

    errno = error;
    return is_link;
}

/* Does not wait for the reader of a named pipe. */
static int open_path(const char *path, int *fd)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    bool shared = directory_is_shared(path);

    do
        *fd = open(path, shared ? flags | O_NOFOLLOW : flags, 0640);
    while (*fd < 0 && errno == EINTR);
    if (*fd >= 0)
        return STDIO_BUS_OK;
    return shared && is_symbolic_link(path) ? STDIO_BUS_EINVAL : STDIO_BUS_ERR;
}

const char *log_file_problem(int status)
{
    return status == STDIO_BUS_EINVAL
               ? "it is a symbolic link in a directory that other users can write to"
               : strerror(errno);
}

int log_open_file(struct log *log, const char *path, enum log_level level)
{
    int fd;
    int status = open_path(path, &fd);

    if (status != STDIO_BUS_OK)
        return status;
    *log = (struct log){.level = level, .path = path, .fd = fd, .output = LOG_OWN};
    return STDIO_BUS_OK;
}

int log_open_system(struct log *log, const char *path, enum log_level level)
{
    *log = (struct log){.level = level, .format = LOG_SYSLOG, .fd = -1, .output = LOG_DATAGRAMS};
    tzset(); /* the lines have the local time */
    return datagram_open(&log->system, path);
}

void log_open_calls(struct log *log, log_line_fn *take, void *user_data, enum log_level level)
{
    *log = (struct log){.level = level, .format = LOG_JOURNALD, .fd = -1, .output = LOG_CALLS};
    log->take = take;
    log->taker = user_data;
}

void log_set_format(struct log *log, enum log_format format)
{
    log->format = format;
}

bool log_is_journal(const struct log *log, const char *stream)
{
    struct stat status;
    char name[64];

    if (stream == NULL || log->output == LOG_DATAGRAMS || fstat(log->fd, &status) != 0)
        return false;
    (void)snprintf(name, sizeof name, "%ju:%ju", (uintmax_t)status.st_dev,
                   (uintmax_t)status.st_ino);
    return strcmp(name, stream) == 0;
}

int log_reopen(struct log *log)
{
    int fd, status;

    if (log->path == NULL)
        return STDIO_BUS_OK;
    status = open_path(log->path, &fd);
    if (status != STDIO_BUS_OK)
        return status;
    (void)close(log->fd);
    log->fd = fd;
    log->torn = false;
    return STDIO_BUS_OK;
}

int log_shares(const struct log *log, int fd, bool *shares)
{
    struct stat ours, other;

    if (fstat(log->fd, &ours) != 0 || fstat(fd, &other) != 0)
        return STDIO_BUS_ERR;
    *shares = !S_ISCHR(ours.st_mode) && ours.st_dev == other.st_dev && ours.st_ino == other.st_ino;
    return STDIO_BUS_OK;
}

static bool writable(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLOUT};

    return descriptor_poll(&asked, 1, 0) == 1 && (asked.revents & POLLNVAL) == 0;
}

/* One write that does not block. Returns the bytes written. */
static size_t write_now(struct log *log, const char *bytes, size_t len)
{
    struct iovec piece = {(char *)bytes, len};
    ssize_t written;

    if (log->output == LOG_DATAGRAMS)
        return datagram_send(&log->system, bytes, len) == STDIO_BUS_OK ? len : 0;
    do {
        if (log->output == LOG_SOCKET)
            written = send(log->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        else if (log->output != LOG_OWN && !writable(log->fd))
            return 0;
        else if (log->writes != NULL)
            written = log->writes(log->fd, &piece, 1);
        else
            written = write(log->fd, bytes, len);
    } while (written < 0 && errno == EINTR);
    return written > 0 ? (size_t)written : 0;
}

/* Writes as much of a line as fits. Returns whether all of it was written. A text that the caller
 * has cut to LOG_LINE_MAX is too long for the line, and so marked as cut. */
static bool write_line(struct log *log, enum log_level level, const char *context, const char *text)
{
    struct log_line line;
    size_t start = log->torn ? 0 : 1, written;

    log_line_make(&line, log->format, level, context, text);
    if (log->output == LOG_CALLS) {
        line.bytes[line.len - 1] = '\0';
        log->take(log->taker, level, line.bytes + sizeof "\n<4>" - 1);
        return true;
    }
    written = write_now(log, line.bytes + start, line.len - start);
    if (written > 0 && log->output != LOG_DATAGRAMS)
        log->torn = line.bytes[start + written - 1] != '\n';
    return written == line.len - start;
}

/* If the arguments cannot be formatted, the format names at least the call site. */
__attribute__((format(printf, 3, 0))) static void format_text(char *to, size_t size,
                                                              const char *format, va_list arguments)
{
    if (vsnprintf(to, size, format, arguments) < 0)
        (void)snprintf(to, size, "%s", format);
}

/* Reports how many lines are missing here. False: still no room. */
static bool report_dropped(struct log *log)
{
    char text[128];

    if (log->dropped == 0)
        return true;
    (void)snprintf(text, sizeof text, "%" PRIu64 " log lines dropped: %s did not take them",
                   log->dropped,
                   log->path != NULL              ? "the log file"
                   : log->output == LOG_DATAGRAMS ? "the system log"
                                                  : "stderr");
    if (!write_line(log, LOG_LEVEL_WARN, "", text))
        return false;
    log->dropped = 0;
    return true;
}

/* --- lines left out --- */

/* Writes the summary of a kind. False: no room. */
static bool report_left_out(struct log *log, struct repetition *kind)
{
    char text[LOG_LINE_MAX];
    bool has_source = kind->source[0] != '\0';

    if (kind->left_out == 0)
        return true;
    (void)snprintf(text, sizeof text, "%u more %s%s%s left out within %lld s, the first: %s",
                   kind->left_out, kind->left_out == 1 ? "line" : "lines", has_source ? " of " : "",
                   kind->source, (long long)(kind->last_ms - kind->since_ms) / 1000 + 1,
                   kind->shown);
    if (!report_dropped(log) || !write_line(log, kind->level, "", text))
        return false;
    kind->left_out = 0;
    return true;
}

/* The summary is due now. What cannot be written counts as dropped. */
static void close_kind(struct log *log, struct repetition *kind)
{
    if (!report_left_out(log, kind))
        log->dropped += kind->left_out;
    kind->left_out = 0;
}

void log_watch(struct log *log, log_watch_fn *fn, void *user_data)
{
    log->watch = fn;
    log->watcher = user_data;
}

bool log_report(struct log *log)
{
    int64_t now_ms = clock_now_ms();
    bool more = false;

    for (size_t i = 0; i < REPETITION_KINDS; i++) {
        struct repetition *kind = &log->kinds[i];

        if (repetition_is_over(kind, now_ms))
            (void)report_left_out(log, kind);
        else
            more = more || kind->left_out > 0;
    }
    return more;
}

void log_on_left_out(struct log *log, void (*fn)(void *user_data), void *user_data)
{
    log->left_out = fn;
    log->user_data = user_data;
}

/* --- writing --- */

__attribute__((format(printf, 4, 0))) static void
write_arguments(struct log *log, enum log_level level, const char *context, const char *format,
                va_list arguments)
{
    char text[LOG_LINE_MAX];

    (void)log_report(log);
    format_text(text, sizeof text, format, arguments);
    if (log->watch != NULL && level >= LOG_LEVEL_WARN)
        log->watch(log->watcher, level, context, text);
    if (!report_dropped(log) || !write_line(log, level, context, text))
        log->dropped++;
}

void log_write(struct log *log, enum log_level level, const char *context, const char *format, ...)
{
    int saved = errno;
    va_list arguments;

    if (!log_enabled(log, level))
        return;
    va_start(arguments, format);
    write_arguments(log, level, context, format, arguments);
    va_end(arguments);
    errno = saved;
}

/* Notes a line that is left out; the first one is kept for the summary. */
__attribute__((format(printf, 4, 0))) static void leave_out(struct log *log,
                                                            struct repetition *kind,
                                                            const char *context, const char *format,
                                                            va_list arguments)
{
    size_t len = 0;

    kind->last_ms = clock_now_ms();
    if (kind->left_out++ > 0)
        return;
    kind->since_ms = kind->window_start_ms;
    if (context[0] != '\0')
        len = (size_t)snprintf(kind->shown, sizeof kind->shown / 2, "[%.60s] ", context);
    format_text(kind->shown + len, sizeof kind->shown - len, format, arguments);
    if (log->left_out != NULL)
        log->left_out(log->user_data);
}

void log_repeated(struct log *log, enum log_level level, const char *context, struct slice source,
                  const char *format, ...)
{
    int saved = errno;
    struct repetition evicted, *kind;
    va_list arguments;

    if (!log_enabled(log, level))
        return;
    kind = repetition_get(log->kinds, format, level, source, clock_now_ms(), &evicted);
    close_kind(log, &evicted);
    va_start(arguments, format);
    if (kind->count < REPETITION_BURST) {
        kind->count++;
        write_arguments(log, level, context, format, arguments);
    } else {
        leave_out(log, kind, context, format, arguments);
    }
    va_end(arguments);
    errno = saved;
}

void log_close(struct log *log)
{
    for (size_t i = 0; i < REPETITION_KINDS; i++)
        close_kind(log, &log->kinds[i]);
    (void)report_dropped(log);
    if (log->output == LOG_OWN)
        (void)close(log->fd);
    if (log->output == LOG_DATAGRAMS)
        datagram_close(&log->system);
    log->fd = -1;
    log->output = LOG_BORROWED;
}
