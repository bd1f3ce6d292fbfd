#include "build_config.h"

#include "remote/dialing.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/descriptor.h"
#include "base/error.h"

#define ATTEMPT_MS 20000 /* for one address */
#define RETRY_MS 50
#define REASON_MAX 640

static void try_next(struct dialing *dialing);

/* --- an attempt --- */

/* Best effort: a server whose machine is gone is noticed. */
static void set_options(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#if defined TCP_KEEPIDLE && defined TCP_KEEPINTVL && defined TCP_KEEPCNT
    {
        static const int idle_sec = 60, interval_sec = 15, count = 4;

        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_sec, sizeof idle_sec);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_sec, sizeof interval_sec);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    }
#endif
}

static void end_attempt(struct dialing *dialing)
{
    if (dialing->fd < 0)
        return;
    stdio_bus_event_loop_remove(dialing->loop, dialing->fd);
    descriptor_close(dialing->fd);
    dialing->fd = -1;
}

static void connected(void *user_data, unsigned events)
{
    struct dialing *dialing = user_data;
    socklen_t len = sizeof dialing->error;
    int fd = dialing->fd;

    (void)events;
    dialing->error = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &dialing->error, &len) < 0)
        dialing->error = errno;
    if (dialing->error != 0) {
        end_attempt(dialing);
        try_next(dialing);
        return;
    }
    stdio_bus_event_loop_remove(dialing->loop, fd);
    dialing->fd = -1;
    dialing_stop(dialing);
    dialing->fn(dialing->user_data, fd, NULL);
}

/* Returns STDIO_BUS_OK once the attempt is under way. */
static int start_attempt(struct dialing *dialing, const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM, 0), flags;

    if (fd < 0)
        return STDIO_BUS_ERR;
    set_options(fd);
    flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
        (connect(fd, address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS) &&
        stdio_bus_event_loop_add(dialing->loop, fd, STDIO_BUS_EVENT_WRITE, connected, dialing) ==
            STDIO_BUS_OK) {
        dialing->fd = fd;
        return STDIO_BUS_OK;
    }
    descriptor_close(fd);
    return STDIO_BUS_ERR;
}

/* After the last address, the timer reports that. */
static void try_next(struct dialing *dialing)
{
    while (dialing->address != NULL) {
        const struct addrinfo *address = dialing->address;

        dialing->address = address->ai_next;
        if (start_attempt(dialing, address) == STDIO_BUS_OK) {
            stdio_bus_event_loop_start_timer(dialing->loop, &dialing->timer, ATTEMPT_MS);
            return;
        }
        dialing->error = errno;
    }
    stdio_bus_event_loop_start_timer(dialing->loop, &dialing->timer, 0);
}

/* --- all of them --- */

static void resolve(struct dialing *dialing)
{
    dialing->error = 0;
    dialing->addresses = address_resolve(dialing->url->host, dialing->url->port, dialing->reason,
                                         sizeof dialing->reason);
    dialing->address = dialing->addresses;
    try_next(dialing);
}

static void free_addresses(struct dialing *dialing)
{
    if (dialing->addresses != NULL)
        freeaddrinfo(dialing->addresses);
    dialing->addresses = dialing->address = NULL;
}

static const char *reason_of(const struct dialing *dialing)
{
    return dialing->error != 0 ? strerror(dialing->error) : dialing->reason;
}

static void give_up(struct dialing *dialing)
{
    char reason[REASON_MAX];

    dialing_stop(dialing);
    snprintf(reason, sizeof reason, "cannot connect: %s", reason_of(dialing));
    dialing->fn(dialing->user_data, -1, reason);
}

/* The attempt takes too long; or no address is left; or it is time to try them again. */
static void time_is_over(void *user_data)
{
    struct dialing *dialing = user_data;

    if (dialing->fd >= 0) {
        end_attempt(dialing);
        dialing->error = ETIMEDOUT;
        try_next(dialing);
    } else if (stdio_bus_event_loop_now_ms(dialing->loop) >= dialing->until_ms) {
        give_up(dialing);
    } else if (dialing->addresses != NULL) {
        free_addresses(dialing);
        stdio_bus_event_loop_start_timer(dialing->loop, &dialing->timer, RETRY_MS);
    } else {
        resolve(dialing);
    }
}

void dialing_start(struct dialing *dialing)
{
    dialing->fd = -1;
    timer_init(&dialing->timer, time_is_over, dialing);
    resolve(dialing);
}

const char *dialing_failure(const struct dialing *dialing)
{
    if (!timer_started(&dialing->timer) || (dialing->fd >= 0 && dialing->error == 0))
        return NULL;
    return reason_of(dialing);
}

void dialing_stop(struct dialing *dialing)
{
    if (dialing->loop == NULL)
        return;
    end_attempt(dialing);
    free_addresses(dialing);
    stdio_bus_event_loop_stop_timer(dialing->loop, &dialing->timer);
}
