#include "build_config.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"

/* Without it there is no way that leaves the options of the shared socket alone. */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#define DIRECTORY_MAX 4096
#define ESCAPED_MAX 4 /* "\xNN" */

struct line {
    char bytes[1 + LOG_LINE_MAX]; /* the first is the newline that ends a torn line */
    size_t len;
    bool cut;
};

#define BODY_END ((size_t)LOG_LINE_MAX - 3u) /* of a line; its ending, "...\n", follows */

static const char *const level_names[] = {"DEBUG", "INFO", "WARN", "ERROR"};

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

/* Writes the byte, or its escape. Returns the bytes written. */
static size_t escape_byte(char to[ESCAPED_MAX + 1], unsigned char byte, bool plain)
{
    if (!plain)
        return (size_t)snprintf(to, ESCAPED_MAX + 1, "\\x%02x", byte);
    to[0] = (char)byte;
    return 1;
}

/* Appends text, control characters escaped. A cut line takes no more. */
static void line_put(struct line *line, const char *text)
{
    for (; *text != '\0' && !line->cut; text++) {
        unsigned char byte = (unsigned char)*text;
        char escaped[ESCAPED_MAX + 1];
        size_t need = escape_byte(escaped, byte, byte >= 0x20 && byte != 0x7f);

        line->cut = line->len + need > BODY_END;
        if (!line->cut) {
            memcpy(line->bytes + line->len, escaped, need);
            line->len += need;
        }
    }
}

/* Appends time, level and context. */
static void line_put_head(struct line *line, enum log_level level, const char *context)
{
    struct timespec now = {0, 0};
    struct tm parts = {0};
    char head[LOG_LINE_MAX];
    bool in_context = context[0] != '\0';

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    (void)snprintf(head, sizeof head, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ %-5s %s%s%s",
                   parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                   parts.tm_min, parts.tm_sec, (int)(now.tv_nsec / 1000000), level_names[level],
                   in_context ? "[" : "", context, in_context ? "] " : "");
    line_put(line, head);
}

/* Ends the line. A cut one loses the UTF-8 character that the cut may have split: with a part of it
 * the line would be no text. */
static void line_end(struct line *line)
{
    if (line->cut) {
        size_t len = line->len;

        while (((unsigned char)line->bytes[len - 1] & 0xc0) == 0x80)
            len--;
        if ((unsigned char)line->bytes[len - 1] >= 0xc0)
            line->len = len - 1;
        memcpy(line->bytes + line->len, "...", 3);
        line->len += 3;
    }
    line->bytes[line->len++] = '\n';
}

static bool writable(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLOUT};

    return poll(&asked, 1, 0) == 1 && (asked.revents & POLLNVAL) == 0;
}

/* One write that does not block. Returns the bytes written. */
static size_t write_now(const struct log *log, const char *bytes, size_t len)
{
    ssize_t written;

    do {
        if (log->output == LOG_SOCKET)
            written = send(log->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        else if (log->output == LOG_OWN || writable(log->fd))
            written = write(log->fd, bytes, len);
        else
            return 0;
    } while (written < 0 && errno == EINTR);
    return written > 0 ? (size_t)written : 0;
}

/* Writes as much of a line as fits. Returns whether all of it was written. A text that the caller
 * has cut to LOG_LINE_MAX is too long for the line, and so marked as cut. */
static bool write_line(struct log *log, enum log_level level, const char *context, const char *text)
{
    struct line line = {.bytes = "\n", .len = 1};
    size_t start = log->torn ? 0 : 1, written;

    line_put_head(&line, level, context);
    line_put(&line, text);
    line_end(&line);
    written = write_now(log, line.bytes + start, line.len - start);
    if (written > 0)
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
                   log->dropped, log->path != NULL ? "the log file" : "stderr");
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
    log->fd = -1;
    log->output = LOG_BORROWED;
}

const char *log_escape(char *to, size_t size, struct slice bytes)
{
    size_t len = 0, fits = 0; /* fits: the bytes that stay when "..." has to follow */

    if (size == 0)
        return to;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.data[i];
        bool plain = byte >= 0x20 && byte < 0x7f && strchr("\"'\\", byte) == NULL;
        char escaped[ESCAPED_MAX + 1];
        size_t need = escape_byte(escaped, byte, plain);

        if (len + need > size - 1) {
            (void)snprintf(to + fits, size - fits, "...");
            return to;
        }
        memcpy(to + len, escaped, need);
        len += need;
        if (len + 3 <= size - 1)
            fits = len;
    }
    to[len] = '\0';
    return to;
}

bool log_level_from_name(const char *name, enum log_level *level)
{
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcasecmp(name, level_names[i]) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}
