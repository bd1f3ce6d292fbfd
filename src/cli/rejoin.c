#include "build_config.h"

#include "cli/rejoin.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "cli/connect.h"
#include "share/front.h"

struct rejoin {
    const struct options *options;
    struct log log;
    char reason[512];
    char head[OPENING_MAX]; /* what begins each connection */
    size_t head_len;
    int first; /* a connection that is there already; -1: none */
};

/* The socket does not block. */
static int send_head(const struct rejoin *rejoin, int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    size_t sent = 0;
    ssize_t n;

    while (sent < rejoin->head_len) {
        n = write(fd, rejoin->head + sent, rejoin->head_len - sent);
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return STDIO_BUS_ERR;
        if (n < 0)
            poll(&ready, 1, -1);
        else
            sent += (size_t)n;
    }
    return STDIO_BUS_OK;
}

static int join_daemon(struct rejoin *rejoin)
{
    int fd = connect_open(rejoin->options, rejoin->reason, sizeof rejoin->reason);

    if (fd < 0 || send_head(rejoin, fd) == STDIO_BUS_OK)
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
    front_refuse(rejoin.reason);
    return EXIT_CANNOT_CONNECT;
}
