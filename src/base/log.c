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

/* Systems without it have no other way either that leaves the shared socket's options alone. */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#define ESCAPED_MAX 4                        /* "\xNN" */
#define BODY_MAX ((size_t)LOG_LINE_MAX - 4u) /* bytes of a line before its ending, "...\n" */

struct line {
    char bytes[1 + LOG_LINE_MAX]; /* the first is for the newline that ends a torn line */
    size_t len;                   /* of what follows the first */
    bool cut;
};

static const char *const level_names[] = {"DEBUG", "INFO", "WARN", "ERROR"};

void log_open(struct log *log, int fd, enum log_level level)
{
    struct stat status;
    int own;

    memset(log, 0, sizeof(*log));
    log->level = level;
    log->fd = fd;
    if (fstat(fd, &status) != 0)
        return;
    log->fd_is_socket = S_ISSOCK(status.st_mode);
    own = descriptor_open_own(fd, O_WRONLY);
    if (own >= 0) {
        log->fd = own;
        log->fd_is_ours = true;
    }
}

/* A pipe without a reader is not waited for. */
static int open_path(const char *path)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, fd;

    do
        fd = open(path, flags, 0640);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int log_open_file(struct log *log, const char *path, enum log_level level)
{
    int fd = open_path(path);

    if (fd < 0)
        return STDIO_BUS_ERR;
    memset(log, 0, sizeof(*log));
    log->level = level;
    log->path = path;
    log->fd = fd;
    log->fd_is_ours = true;
    return STDIO_BUS_OK;
}

int log_reopen(struct log *log)
{
    int fd;

    if (log->path == NULL)
        return STDIO_BUS_OK;
    fd = open_path(log->path);
    if (fd < 0)
        return STDIO_BUS_ERR;
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

/* The byte as it is, or escaped. Returns how many it became. */
static size_t escape_byte(char to[ESCAPED_MAX], unsigned char byte, bool plain)
{
    static const char digits[] = "0123456789abcdef";

    if (plain) {
        to[0] = (char)byte;
        return 1;
    }
    to[0] = '\\';
    to[1] = 'x';
    to[2] = digits[byte >> 4];
    to[3] = digits[byte & 15];
    return ESCAPED_MAX;
}

/* Appends bytes, control characters escaped. What is added to a cut line is left out. */
static void line_put(struct line *line, const char *text, size_t len)
{
    for (size_t i = 0; i < len && !line->cut; i++) {
        unsigned char byte = (unsigned char)text[i];
        char escaped[ESCAPED_MAX];
        size_t need = escape_byte(escaped, byte, byte >= 0x20 && byte != 0x7f);

        line->cut = line->len + need > BODY_MAX;
        if (!line->cut) {
            memcpy(line->bytes + 1 + line->len, escaped, need);
            line->len += need;
        }
    }
}

static void line_put_text(struct line *line, const char *text)
{
    line_put(line, text, strlen(text));
}

static void line_put_time(struct line *line)
{
    struct timespec now = {0, 0};
    struct tm parts = {0};
    char text[96];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    (void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                   parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                   (int)(now.tv_nsec / 1000000));
    line_put_text(line, text);
}

/* Takes a UTF-8 character that the cut may have split off the end: to a reader of the log the whole
 * line would not be text any more. */
static void line_drop_split_character(struct line *line)
{
    const char *text = line->bytes + 1;
    size_t len = line->len;

    while (len > 0 && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
        len--;
    if (len > 0 && (unsigned char)text[len - 1] >= 0xc0)
        line->len = len - 1;
}

static void line_end(struct line *line)
{
    if (line->cut) {
        line_drop_split_character(line);
        memcpy(line->bytes + 1 + line->len, "...", 3);
        line->len += 3;
    }
    line->bytes[1 + line->len++] = '\n';
}

static bool writable(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLOUT};

    return poll(&asked, 1, 0) == 1 && (asked.revents & POLLNVAL) == 0;
}

/* One write that does not block. Returns the bytes written, 0 for none. */
static size_t write_now(const struct log *log, const char *bytes, size_t len)
{
    ssize_t written;

    do {
        if (log->fd_is_socket)
            written = send(log->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        else if (log->fd_is_ours || writable(log->fd))
            written = write(log->fd, bytes, len);
        else
            return 0;
    } while (written < 0 && errno == EINTR);
    return written > 0 ? (size_t)written : 0;
}

/* Writes the line, or as much of it as goes. Returns whether all of it went. */
static bool line_write(const struct line *line, struct log *log)
{
    const char *bytes = log->torn ? line->bytes : line->bytes + 1;
    size_t len = log->torn ? line->len + 1 : line->len;
    size_t written = write_now(log, bytes, len);

    if (written > 0)
        log->torn = bytes[written - 1] != '\n';
    return written == len;
}

/* Makes and writes a line. Returns whether all of it went. */
static bool write_text(struct log *log, enum log_level level, const char *context,
                       const char *text, bool cut)
{
    struct line line = {.len = 0, .cut = false};
    char name[8];

    line.bytes[0] = '\n';
    line_put_time(&line);
    (void)snprintf(name, sizeof(name), " %-5s ", level_names[level]);
    line_put_text(&line, name);
    if (context[0] != '\0') {
        line_put_text(&line, "[");
        line_put_text(&line, context);
        line_put_text(&line, "] ");
    }
    line_put_text(&line, text);
    line.cut = line.cut || cut;
    line_end(&line);
    return line_write(&line, log);
}

/* Tells how many lines are missing here. Returns false when there is still no room. */
static bool tell_dropped(struct log *log)
{
    char text[80];

    if (log->dropped == 0)
        return true;
    (void)snprintf(text, sizeof(text), "%" PRIu64 " log lines dropped: %s did not take them",
                   log->dropped, log->path != NULL ? "the log file" : "stderr");
    if (!write_text(log, LOG_LEVEL_WARN, "", text, false))
        return false;
    log->dropped = 0;
    return true;
}

/* Tells how many lines of a call site were left out. Returns false when there is no room. */
static bool tell_suppressed(struct log *log, struct log_kind *kind)
{
    char text[LOG_LINE_MAX];

    if (kind->suppressed == 0)
        return true;
    (void)snprintf(text, sizeof(text), "%u more lines left out like \"%s\"", kind->suppressed,
                   kind->format);
    if (!tell_dropped(log) || !write_text(log, kind->level, "", text, false))
        return false;
    kind->suppressed = 0;
    return true;
}

static bool window_is_over(const struct log_kind *kind, int64_t now_ms)
{
    return now_ms - kind->window_start_ms >= LOG_WINDOW_MS;
}

/* The place of a call site: its own, or else a free one, or else the one that began earliest, whose
 * number is told or at least counted. */
static struct log_kind *find_kind(struct log *log, const char *format)
{
    struct log_kind *oldest = &log->kinds[0];

    for (size_t i = 0; i < LOG_KINDS; i++) {
        struct log_kind *kind = &log->kinds[i];
        if (kind->format == format)
            return kind;
        if (oldest->format != NULL &&
            (kind->format == NULL || kind->window_start_ms < oldest->window_start_ms))
            oldest = kind;
    }
    if (!tell_suppressed(log, oldest))
        log->dropped += oldest->suppressed;
    memset(oldest, 0, sizeof(*oldest));
    return oldest;
}

/* Whether a line of this call site is to be left out; counts it. */
static bool suppress(struct log *log, enum log_level level, const char *format, int64_t now_ms)
{
    struct log_kind *kind = find_kind(log, format);

    if (kind->format == NULL || window_is_over(kind, now_ms)) {
        kind->format = format;
        kind->level = level;
        kind->window_start_ms = now_ms;
        kind->count = 0;
    }
    if (kind->count < LOG_BURST) {
        kind->count++;
        return false;
    }
    kind->suppressed++;
    return true;
}

/* There is no tick, so the next line, whosever it is, tells what was left out before it. */
static void tell_finished_windows(struct log *log, int64_t now_ms)
{
    for (size_t i = 0; i < LOG_KINDS; i++) {
        struct log_kind *kind = &log->kinds[i];
        if (kind->suppressed > 0 && window_is_over(kind, now_ms))
            (void)tell_suppressed(log, kind);
    }
}

/* Formats and writes a line that is not suppressed. */
static void write_formatted(struct log *log, enum log_level level, const char *context,
                            const char *format, va_list arguments)
{
    char text[LOG_LINE_MAX];
    int len = vsnprintf(text, sizeof(text), format, arguments);

    if (len < 0) /* arguments that cannot be formatted; the place at least can be told */
        (void)snprintf(text, sizeof(text), "%s", format);
    if (!tell_dropped(log) || !write_text(log, level, context, text, len >= LOG_LINE_MAX))
        log->dropped++;
}

void log_write(struct log *log, enum log_level level, const char *context, const char *format, ...)
{
    int saved = errno;
    int64_t now_ms;
    va_list arguments;

    if (!log_enabled(log, level))
        return;
    now_ms = clock_now_ms();
    tell_finished_windows(log, now_ms);
    if (level < LOG_LEVEL_WARN || !suppress(log, level, format, now_ms)) {
        va_start(arguments, format);
        write_formatted(log, level, context, format, arguments);
        va_end(arguments);
    }
    errno = saved;
}

void log_close(struct log *log)
{
    for (size_t i = 0; i < LOG_KINDS; i++) {
        if (!tell_suppressed(log, &log->kinds[i]))
            log->dropped += log->kinds[i].suppressed;
    }
    (void)tell_dropped(log);
    if (log->fd_is_ours)
        (void)close(log->fd);
    log->fd = -1;
    log->fd_is_ours = log->fd_is_socket = false;
}

const char *log_escape(char *to, size_t size, struct slice bytes)
{
    size_t len = 0;
    size_t fits = 0; /* how much of `to` can stay when "..." has to follow */

    if (size == 0)
        return to;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.data[i];
        bool plain = byte >= 0x20 && byte < 0x7f && strchr("\"'\\", byte) == NULL;
        char escaped[ESCAPED_MAX];
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
    for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (strcasecmp(name, level_names[i]) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}
