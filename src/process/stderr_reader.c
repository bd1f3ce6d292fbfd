#include "build_config.h"

#include "process/stderr_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/terminal.h"

#define READ_MAX 16384              /* bytes of a round */
#define DRAIN_MAX ((size_t)1 << 20) /* of a process that has ended */

/* --- lines --- */

/* Logs the current line, unless it is empty. */
static void log_line(struct stderr_reader *reader)
{
    reader->line[reader->line_len] = '\0';
    reader->line_len = 0;
    if (printable_clean(reader->line) == strspn(reader->line, " "))
        return;
    if (reader->lines < STDERR_LINES) {
        reader->lines++;
        log_info(reader->log, reader->context, "stderr: %s", reader->line);
    } else {
        reader->left_out++;
    }
}

/* A NUL would end the text. */
static char byte_of_text(char byte)
{
    if (byte == '\0')
        return ' ';
    return byte;
}

/* A line that is too long becomes several. */
static void take(struct stderr_reader *reader, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            log_line(reader);
            continue;
        }
        if (reader->line_len == STDERR_LINE_MAX)
            log_line(reader);
        reader->line[reader->line_len++] = byte_of_text(bytes[i]);
    }
}

static void keep(struct stderr_reader *reader, const char *bytes, size_t len)
{
    size_t stays;

    if (len > STDERR_KEPT) {
        bytes += len - STDERR_KEPT;
        len = STDERR_KEPT;
    }
    stays = reader->kept_len < STDERR_KEPT - len ? reader->kept_len : STDERR_KEPT - len;
    memmove(reader->kept, reader->kept + reader->kept_len - stays, stays);
    memcpy(reader->kept + stays, bytes, len);
    reader->kept_len = stays + len;
}

/* --- windows --- */

static void report_left_out(struct stderr_reader *reader)
{
    if (reader->left_out > 0)
        log_info(reader->log, reader->context,
                 "%llu more lines of its stderr within %d seconds are left out",
                 (unsigned long long)reader->left_out, STDERR_WINDOW_MS / 1000);
    reader->left_out = 0;
}

static void set_interest(struct stderr_reader *reader, unsigned events)
{
    if (reader->fd >= 0 &&
        stdio_bus_event_loop_modify(reader->loop, reader->fd, events) != STDIO_BUS_OK)
        log_error(reader->log, reader->context, "cannot wait for its stderr: %s", strerror(errno));
}

static void window_over(void *user_data)
{
    struct stderr_reader *reader = user_data;

    report_left_out(reader);
    reader->lines = 0;
    reader->bytes = 0;
    set_interest(reader, STDIO_BUS_EVENT_READ);
}

/* --- reading --- */

static void close_fd(struct stderr_reader *reader)
{
    if (reader->fd < 0)
        return;
    stdio_bus_event_loop_remove(reader->loop, reader->fd);
    close(reader->fd);
    reader->fd = -1;
}

/* The bytes that were read; 0: there are none now. */
static size_t read_some(struct stderr_reader *reader)
{
    char bytes[READ_MAX];
    ssize_t got = read(reader->fd, bytes, sizeof bytes);

    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (got < 0)
        log_error(reader->log, reader->context, "cannot read its stderr: %s", strerror(errno));
    if (got <= 0) {
        close_fd(reader);
        return 0;
    }
    if (!timer_started(&reader->window))
        stdio_bus_event_loop_start_timer(reader->loop, &reader->window, STDERR_WINDOW_MS);
    reader->bytes += (size_t)got;
    keep(reader, bytes, (size_t)got);
    take(reader, bytes, (size_t)got);
    return (size_t)got;
}

static void readable(void *user_data, unsigned events)
{
    struct stderr_reader *reader = user_data;

    (void)events;
    (void)read_some(reader);
    if (reader->bytes >= STDERR_BYTES)
        set_interest(reader, 0);
}

void stderr_reader_drain(struct stderr_reader *reader)
{
    size_t total = 0, got = 1;

    while (reader->fd >= 0 && got > 0 && total < DRAIN_MAX) {
        got = read_some(reader);
        total += got;
    }
}

/* --- life --- */

struct stderr_reader *stderr_reader_create(struct stdio_bus_event_loop *loop, struct log *log,
                                           const char *context)
{
    struct stderr_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return NULL;
    reader->loop = loop;
    reader->log = log;
    reader->context = context;
    reader->fd = -1;
    timer_init(&reader->window, window_over, reader);
    return reader;
}

void stderr_reader_destroy(struct stderr_reader *reader)
{
    if (reader == NULL)
        return;
    stdio_bus_event_loop_stop_timer(reader->loop, &reader->window);
    close_fd(reader);
    free(reader);
}

int stderr_reader_begin(struct stderr_reader *reader, int fd)
{
    stderr_reader_end(reader);
    if (stdio_bus_event_loop_add(reader->loop, fd, STDIO_BUS_EVENT_READ, readable, reader) !=
        STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    reader->fd = fd;
    reader->kept_len = 0;
    if (reader->bytes >= STDERR_BYTES)
        set_interest(reader, 0);
    return STDIO_BUS_OK;
}

void stderr_reader_end(struct stderr_reader *reader)
{
    close_fd(reader);
    log_line(reader);
}

/* --- what was kept --- */

/* Copies the kept bytes to `to`, which has room for them, as a text. */
static void copy_kept(const struct stderr_reader *reader, char to[STDERR_KEPT + 1])
{
    size_t i;

    for (i = 0; i < reader->kept_len; i++)
        to[i] = byte_of_text(reader->kept[i]);
    to[i] = '\0';
}

/* Cuts the last line off the text, and makes it printable. */
static char *cut_last(char *text)
{
    char *newline = strrchr(text, '\n'), *line = newline != NULL ? newline + 1 : text;
    size_t len;

    if (newline != NULL)
        *newline = '\0';
    len = printable_clean(line);
    while (len > 0 && line[len - 1] == ' ')
        line[--len] = '\0';
    return line;
}

/* Copies as many whole characters as fit. */
static void copy_text(char *to, size_t size, const char *from)
{
    size_t len = 0, next;

    while (from[len] != '\0' && (next = printable_character_bytes(from + len)) > 0 &&
           len + next < size)
        len += next;
    memcpy(to, from, len);
    to[len] = '\0';
}

void stderr_reader_last_line(const struct stderr_reader *reader, char *to, size_t size)
{
    char text[STDERR_KEPT + 1], *line;

    copy_kept(reader, text);
    do
        line = cut_last(text);
    while (*line == '\0' && line != text);
    copy_text(to, size, line);
}

void stderr_reader_last_lines(const struct stderr_reader *reader, char *to, size_t size)
{
    char text[STDERR_KEPT + 1], *line;
    size_t at = size - 1, len;

    copy_kept(reader, text);
    do {
        line = cut_last(text);
        len = strlen(line);
        if (len == 0)
            continue;
        if (len + 1 > at)
            break;
        to[--at] = '\n';
        at -= len;
        memcpy(to + at, line, len);
    } while (line != text);
    memmove(to, to + at, size - 1 - at);
    to[size - 1 - at] = '\0';
}

void stderr_reader_archive(struct archive *archive, struct stderr_reader *reader)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct stderr_reader, kept_len, line_len, lines, bytes, left_out),
    };

    archive_mark(archive, "stderr");
    archive_fd(archive, &reader->fd);
    ARCHIVE_FIELDS(archive, reader, fields);
    archive_expect(archive, reader->kept_len <= STDERR_KEPT && reader->line_len <= STDERR_LINE_MAX,
                   "output of a worker is too long");
    if (!archive_ok(archive))
        return;
    archive_bytes(archive, reader->kept, reader->kept_len);
    archive_bytes(archive, reader->line, reader->line_len);
    timer_archive(archive, reader->loop, &reader->window);
    if (archive_loads(archive) && reader->fd >= 0 &&
        stdio_bus_event_loop_add(reader->loop, reader->fd,
                                 reader->bytes < STDERR_BYTES ? STDIO_BUS_EVENT_READ : 0, readable,
                                 reader) != STDIO_BUS_OK)
        archive_fail(archive, strerror(errno));
}
