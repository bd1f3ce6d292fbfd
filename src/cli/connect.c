#include "build_config.h"

#include "cli/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "config/tokens.h"
#include "share/front.h"
#include "transport/address.h"
#include "json/message.h"
#include "json/string.h"

#define CAPACITY CONNECT_HEAD_MAX
#define RETRY_MS 50 /* between attempts to connect */

/* --- the opening line --- */

static void add_member(struct json_output *out, const char *key, struct slice value)
{
    json_output_add(out, slice_of(out->len > 0 ? "," : "{", 1));
    json_output_string(out, slice_of_text(key));
    json_output_add(out, slice_of_text(":"));
    json_output_string(out, value);
}

bool connect_write_opening(const struct options *options, char line[OPENING_MAX], size_t *len,
                           char *reason, size_t reason_size)
{
    struct json_output out = {.to = line, .size = OPENING_MAX};
    struct token token;
    char why[TOKEN_REASON_MAX];

    if (options->token_file != NULL) {
        if (token_read_file(&token, options->token_file, why) != STDIO_BUS_OK) {
            snprintf(reason, reason_size, "cannot use the token file %s: %s", options->token_file,
                     why);
            return false;
        }
        add_member(&out, "token", slice_of(token.text, token.len));
    }
    if (options->pool != NULL)
        add_member(&out, "pool", slice_of_text(options->pool));
    if (out.len > 0)
        json_output_add(&out, slice_of("}\n", 2));
    ASSERT(!out.full);
    *len = out.len;
    return true;
}

/* --- connecting --- */

/* The same descriptor, or -1 with errno set; then it is closed. */
static int without_blocking(int fd)
{
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
        return fd;
    descriptor_close(fd);
    return -1;
}

static int connect_tcp(const struct addrinfo *address)
{
    int fd = descriptor_connect(address->ai_addr, address->ai_addrlen), on = 1;

    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return without_blocking(fd);
}

/* The error is that of a daemon, or a network, that is not there yet. */
static bool may_pass(int error)
{
    static const int errors[] = {ENOENT,      ECONNREFUSED, EAGAIN,   ETIMEDOUT,
                                 ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL};

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i] == error)
            return true;
    }
    return false;
}

/* Both return -1 with the reason and errno set. */
static int open_tcp(const struct options *options, char *reason, size_t reason_size)
{
    char why[ADDRESS_REASON_MAX];
    const char *host = options->connect.host;
    struct addrinfo *found = address_resolve(host, options->connect.port, why, sizeof why), *each;
    int fd = -1, error = EHOSTUNREACH;

    for (each = found; each != NULL && fd < 0; each = each->ai_next) {
        fd = connect_tcp(each);
        if (fd < 0) {
            error = errno;
            snprintf(why, sizeof why, "%s", strerror(error));
        }
    }
    if (fd < 0)
        snprintf(reason, reason_size, "cannot connect to %s, port %u: %s",
                 host[0] != '\0' ? host : "127.0.0.1", (unsigned)options->connect.port, why);
    if (found != NULL)
        freeaddrinfo(found);
    errno = error;
    return fd;
}

static int open_unix(const struct options *options, char *reason, size_t reason_size)
{
    const char *path = options->connect.path;
    int fd = without_blocking(unix_path_connect(path)), error = errno;

    if (fd < 0)
        snprintf(reason, reason_size, "cannot connect to %s: %s%s", path, strerror(error),
                 error == EACCES ? "; see mode and group in stdio_bus.conf(5)" : "");
    errno = error;
    return fd;
}

int connect_open(const struct options *options, char *reason, size_t reason_size)
{
    int64_t until = clock_now_ms() + (int64_t)options->wait_sec * 1000;
    int fd;

    for (;;) {
        fd = options->connect.is_unix ? open_unix(options, reason, reason_size)
                                      : open_tcp(options, reason, reason_size);
        if (fd >= 0 || !may_pass(errno) || clock_now_ms() >= until)
            return fd;
        poll(NULL, 0, RETRY_MS);
    }
}

/* --- copying --- */

/* One direction: filled when empty, else drained. */
struct stream {
    int from, to;
    size_t start, end;
    bool ended; /* `from` is at its end */
    char last;  /* the last byte read that is no space, tab or CR */
    size_t got; /* the bytes of the last piece, which stay until the next */
    char bytes[CAPACITY];
};

struct copying {
    struct stream up, down; /* to the daemon, to stdout */
    bool shut;              /* the sending side of the socket is shut down */
    int refused;            /* the error with which the daemon stopped reading; 0: none */
    int error;              /* the error that broke the connection; 0: none */
    int status;             /* EXIT_DONE: continue */
    char *reason;
    size_t reason_size;
};

static bool passes(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static bool is_empty(const struct stream *stream)
{
    return stream->start == stream->end;
}

static void stop(struct copying *copying, int status, const char *what, int error)
{
    copying->status = status;
    snprintf(copying->reason, copying->reason_size, "%s%s%s", what, error != 0 ? ": " : "",
             error != 0 ? strerror(error) : "");
}

static void stop_on(struct copying *copying, int status, const char *what, int error)
{
    if (error != 0)
        stop(copying, status, what, error);
}

/* Returns 0, or the errno of a permanent error. */
static int fill(struct stream *stream)
{
    static const char blanks[] = {' ', '\t', '\r'}; /* a framed body may be followed by them */
    ssize_t got = read(stream->from, stream->bytes, CAPACITY);

    if (got < 0)
        return passes(errno) ? 0 : errno;
    stream->start = 0;
    stream->end = (size_t)got;
    stream->ended = got == 0;
    if (got > 0)
        stream->got = (size_t)got;
    while (got > 0 && memchr(blanks, stream->bytes[got - 1], sizeof blanks) != NULL)
        got--;
    if (got > 0)
        stream->last = stream->bytes[got - 1];
    return 0;
}

static int drain(struct stream *stream, size_t piece)
{
    size_t len = stream->end - stream->start;
    ssize_t written = write(stream->to, stream->bytes + stream->start, len < piece ? len : piece);

    if (written < 0)
        return passes(errno) ? 0 : errno;
    stream->start += (size_t)written;
    return 0;
}

static void break_off(struct copying *copying, int error)
{
    copying->error = error;
    copying->down.ended = true;
}

/* Waits for the ends that can continue. An end without an event to wait for is left out, since its
 * hang-up would end each wait; but a hang-up of stdout is the end of the program. */
static void wait_ready(struct copying *copying, struct pollfd ready[3])
{
    const struct stream *up = &copying->up, *down = &copying->down;
    int in = up->from, out = down->to, daemon = down->from;
    short daemon_events =
        (short)((is_empty(down) && !down->ended ? POLLIN : 0) | (is_empty(up) ? 0 : POLLOUT));

    ready[0] = (struct pollfd){is_empty(up) && !up->ended ? in : -1, POLLIN, 0};
    ready[1] = (struct pollfd){out, is_empty(down) ? 0 : POLLOUT, 0};
    ready[2] = (struct pollfd){daemon_events != 0 ? daemon : -1, daemon_events, 0};
    if (descriptor_poll(ready, 3, -1) < 0 && errno != EINTR)
        stop(copying, EXIT_OS_ERROR, "poll", errno);
}

/* A pipe that is ready takes PIPE_BUF bytes without blocking. stdout is shared with other
 * processes, so it must not become non-blocking. */
static void copy_ready(struct copying *copying, const struct pollfd ready[3])
{
    const short gone = POLLERR | POLLHUP | POLLNVAL;
    struct stream *up = &copying->up;
    int error = 0;

    if (ready[1].revents & POLLOUT)
        stop_on(copying, EXIT_STDOUT_CLOSED, "cannot write to stdout",
                drain(&copying->down, PIPE_BUF));
    else if (ready[1].revents & gone)
        stop(copying, EXIT_STDOUT_CLOSED, "stdout is closed", 0);
    if (ready[0].revents != 0)
        stop_on(copying, EXIT_OS_ERROR, "cannot read stdin", fill(up));
    if ((ready[2].events & POLLOUT) && (ready[2].revents & (POLLOUT | gone)))
        copying->refused = drain(up, CAPACITY);
    if (copying->refused != 0) { /* the daemon may have sent the reason: reading continues */
        up->end = up->start;
        up->ended = true;
    }
    if ((ready[2].events & POLLIN) && (ready[2].revents & (POLLIN | gone)))
        error = fill(&copying->down);
    if (error != 0)
        break_off(copying, error);
}

/* Its last message may say why. */
static void stop_refused(struct copying *copying)
{
    struct slice why = message_refusal_text(slice_of(copying->down.bytes, copying->down.got));

    stop(copying, EXIT_DAEMON_LEFT, "the daemon ended the connection", copying->refused);
    if (why.data != NULL)
        snprintf(copying->reason, copying->reason_size, "the daemon ended the connection: %.*s",
                 (int)why.len, why.data);
}

/* Judges the end of the connection, after its last byte was written to stdout. A message ends with
 * a newline, or with a brace where its length was announced. A client that was refused, as for a
 * pool that there is not, may have ended before it read that. */
static void judge(struct copying *copying)
{
    const struct stream *down = &copying->down;
    bool is_refused = message_refusal_text(slice_of(down->bytes, down->got)).data != NULL;

    if (copying->error != 0)
        stop(copying, EXIT_CONNECTION_LOST, "the connection broke",
             copying->refused != 0 ? copying->refused : copying->error);
    else if (down->last != '\n' && down->last != '}' && down->last != '\0')
        stop(copying, EXIT_CONNECTION_LOST, "the connection ended within a message", 0);
    else if (!copying->shut || copying->refused != 0 || is_refused)
        stop_refused(copying);
}

int connect_copy(int socket, int in, int out, struct slice head, char *reason, size_t reason_size)
{
    struct copying copying = {.up = {.from = in, .to = socket},
                              .down = {.from = socket, .to = out},
                              .reason = reason,
                              .reason_size = reason_size};

    ASSERT(head.len <= CAPACITY);
    memcpy(copying.up.bytes, head.data, head.len);
    copying.up.end = head.len;
    while (!copying.down.ended || !is_empty(&copying.down)) {
        struct pollfd ready[3];

        wait_ready(&copying, ready);
        if (copying.status == EXIT_DONE)
            copy_ready(&copying, ready);
        if (copying.status != EXIT_DONE)
            return copying.status;
        if (copying.up.ended && is_empty(&copying.up) && !copying.shut) {
            copying.shut = true;
            if (shutdown(socket, SHUT_WR) < 0)
                break_off(&copying, errno);
        }
    }
    judge(&copying);
    return copying.status;
}

struct rejoin {
    const struct options *options;
    struct log log;
    char reason[512];
    char head[OPENING_MAX]; /* what begins each connection */
    size_t head_len;
    int first; /* a connection that is there already; -1: none */
};

static int join_daemon(struct rejoin *rejoin)
{
    int fd = connect_open(rejoin->options, rejoin->reason, sizeof rejoin->reason);

    if (fd < 0 || descriptor_write_all(fd, rejoin->head, rejoin->head_len))
        return fd;
    snprintf(rejoin->reason, sizeof rejoin->reason, "the connection broke: %s", strerror(errno));
    descriptor_close(fd);
    return -1;
}

static int dial(void *user_data)
{
    struct rejoin *rejoin = user_data;
    int fd = rejoin->first;

    rejoin->first = -1;
    if (fd < 0)
        fd = join_daemon(rejoin);
    if (fd < 0) {
        log_error(&rejoin->log, "", "%s", rejoin->reason);
        errno = ECONNREFUSED;
    }
    return fd;
}

int rejoin_run(const struct options *options)
{
    static const int statuses[] = {
        [BUS_DONE] = EXIT_DONE,
        [BUS_CLIENT_MALFORMED] = EXIT_DATA_ERROR,
        [BUS_NO_WORKER_LEFT] = EXIT_DAEMON_LEFT,
        [BUS_BAD_COMMAND] = EXIT_DAEMON_LEFT,
        [BUS_SYSTEM_ERROR] = EXIT_OS_ERROR,
    };
    struct rejoin rejoin = {.options = options};
    const struct dialer dialer = {.dial = dial, .user_data = &rejoin};
    const struct front front = {
        .dialer = &dialer,
        .log = &rejoin.log,
        .framing = options->framing,
        .protocol = front_protocol(options->line.protocol),
    };

    log_open(&rejoin.log, STDERR_FILENO, LOG_LEVEL_ERROR);
    if (!connect_write_opening(options, rejoin.head, &rejoin.head_len, rejoin.reason,
                               sizeof rejoin.reason)) {
        log_error(&rejoin.log, "", "%s", rejoin.reason);
        return EXIT_CONFIG_ERROR;
    }
    rejoin.first = join_daemon(&rejoin);
    if (rejoin.first >= 0)
        return statuses[front_run(&front)];
    log_error(&rejoin.log, "", "%s", rejoin.reason);
    front_refuse(rejoin.reason, options->framing);
    return EXIT_CANNOT_CONNECT;
}
