#include "build_config.h"

#include "remote/link.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "json/message.h"

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

static void dialing_stop(struct dialing *dialing);

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

/* Gives up; idempotent. */
static void dialing_stop(struct dialing *dialing)
{
    if (dialing->loop == NULL)
        return;
    end_attempt(dialing);
    free_addresses(dialing);
    stdio_bus_event_loop_stop_timer(dialing->loop, &dialing->timer);
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
static void dialing_times_out(void *user_data)
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
    timer_init(&dialing->timer, dialing_times_out, dialing);
    resolve(dialing);
}

/* Why the last attempt failed, if fn was not called yet; NULL: none did. */
static const char *dialing_failure(const struct dialing *dialing)
{
    if (dialing->loop == NULL || !timer_started(&dialing->timer) ||
        (dialing->fd >= 0 && dialing->error == 0))
        return NULL;
    return reason_of(dialing);
}

#define IDLE_MS 4000 /* servers close after five seconds */
#define DRAIN_MS 1000
#define STARVED_MS 100

enum link_state { LINK_CONNECTING, LINK_BUSY, LINK_DRAINING, LINK_IDLE, LINK_CLOSED };

struct remote_link {
    struct list_node node; /* remote->links */
    struct remote *remote;
    const struct link_handler *handler;
    void *user; /* NULL: none */
    enum link_state state;
    struct connection connection;
    struct http_response_reader reader;
    struct timer timer;
    struct dialing dialing; /* of a server at http:// */
    struct tunnel tunnel;   /* of one at https:// */
    bool full;              /* its queue holds the program */
    struct stdio_bus_event_deferred deferred;
};

static const char context[] = "server";

static struct remote_link *link_of(struct connection *connection)
{
    return list_entry(connection, struct remote_link, connection);
}

/* --- the end --- */

static void free_link(void *user_data)
{
    free(user_data);
}

static void set_full(struct remote_link *link, bool full)
{
    if (link->full == full)
        return;
    link->full = full;
    if (full)
        remote_hold(link->remote);
    else
        remote_release(link->remote);
}

void link_free(struct remote_link *link)
{
    struct remote *remote = link->remote;
    const char *failure = dialing_failure(&link->dialing);

    if (link->state == LINK_CLOSED)
        return;
    if (failure == NULL && link->state == LINK_CONNECTING)
        failure = tunnel_failure(&link->tunnel);
    if (failure != NULL)
        log_warn(remote->log, context, "gave up connecting: %s", failure);
    link->state = LINK_CLOSED;
    link->user = NULL;
    dialing_stop(&link->dialing);
    stdio_bus_event_loop_stop_timer(remote->loop, &link->timer);
    list_remove(&link->node);
    connection_close(&link->connection);
    tunnel_stop(&link->tunnel);
    set_full(link, false);
    stdio_bus_event_loop_defer(remote->loop, &link->deferred, free_link, link);
}

static void break_link(struct remote_link *link, const char *reason)
{
    void *user = link->user;

    link_free(link);
    if (user != NULL)
        link->handler->broken(user, reason);
}

/* With what the program of a tunnel has said. */
static void break_with_words(struct remote_link *link, const char *what)
{
    char reason[REASON_MAX + TUNNEL_REASON_MAX], words[TUNNEL_REASON_MAX];
    const char *said = tunnel_last_words(&link->tunnel, words);

    snprintf(reason, sizeof reason, "%s%s%s", what, said != NULL ? ": " : "",
             said != NULL ? said : "");
    break_link(link, reason);
}

void link_drain(struct remote_link *link)
{
    link->user = NULL;
    if (link->state != LINK_BUSY) {
        link_free(link);
        return;
    }
    link->state = LINK_DRAINING;
    stdio_bus_event_loop_start_timer(link->remote->loop, &link->timer, DRAIN_MS);
}

/* The response is over. */
static void finish(struct remote_link *link, bool keep)
{
    void *user = link->user;

    link->user = NULL;
    if (keep) {
        link->state = LINK_IDLE;
        stdio_bus_event_loop_start_timer(link->remote->loop, &link->timer, IDLE_MS);
    } else {
        link_free(link);
    }
    if (user != NULL)
        link->handler->over(user);
}

/* --- responses --- */

static bool stdout_is_full(const struct remote *remote)
{
    return remote->program.full;
}

static void read_response(struct connection *connection, struct slice bytes)
{
    struct remote_link *link = link_of(connection);
    struct slice body;

    if (stdout_is_full(link->remote)) {
        connection_pause(connection);
        return;
    }
    while (link->state == LINK_BUSY || link->state == LINK_DRAINING) {
        switch (http_response_next(&link->reader, &bytes, &body)) {
        case HTTP_RESPONSE_MORE:
            return;
        case HTTP_RESPONSE_HEAD:
            if (link->user != NULL)
                link->handler->head(link->user, &link->reader);
            break;
        case HTTP_RESPONSE_BODY:
            if (link->user != NULL)
                link->handler->body(link->user, body);
            break;
        case HTTP_RESPONSE_END:
            finish(link, link->reader.keep_alive && bytes.len == 0);
            return;
        case HTTP_RESPONSE_MALFORMED: {
            char reason[REASON_MAX];

            snprintf(reason, sizeof reason, "the server does not speak HTTP: %s",
                     link->reader.problem);
            break_link(link, reason);
            return;
        }
        }
    }
    if (link->state == LINK_IDLE) /* bytes that were not asked for */
        link_free(link);
}

static void ended(struct connection *connection, size_t cut)
{
    struct remote_link *link = link_of(connection);

    (void)cut;
    if (link->state == LINK_IDLE)
        link_free(link);
    else if (http_response_close(&link->reader) == HTTP_RESPONSE_END)
        finish(link, false);
    else
        break_with_words(link, "the server closed the connection");
}

static void failed(struct connection *connection, enum connection_failure failure, int error)
{
    struct remote_link *link = link_of(connection);
    char reason[REASON_MAX];

    if (failure == CONNECTION_STALLED)
        snprintf(reason, sizeof reason, "the server reads nothing");
    else
        snprintf(reason, sizeof reason, "the connection broke%s%s", error != 0 ? ": " : "",
                 error != 0 ? strerror(error) : "");
    if (link->user == NULL)
        log_warn(link->remote->log, context, "%s", reason);
    break_with_words(link, reason);
}

static void report_full(struct connection *connection, bool full)
{
    set_full(link_of(connection), full);
}

static void starved(struct connection *connection)
{
    struct remote_link *link = link_of(connection);

    stdio_bus_event_loop_start_timer(link->remote->loop, &link->timer, STARVED_MS);
}

static void malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    (void)fault;
    break_link(link_of(connection), problem);
}

static const struct connection_handler connection_handler = {
    .frame = read_response,
    .malformed = malformed,
    .refused = malformed,
    .ended = ended,
    .full = report_full,
    .failed = failed,
    .starved = starved,
};

/* --- a framing that takes the bytes as they come --- */

static void raw_reset(struct framing_state *state)
{
    state->begun = state->reported = state->cut = state->timed = false;
    state->part = 0;
}

static enum frame_status raw_next(struct framing_state *state, struct slice input,
                                  struct frame *frame)
{
    (void)state;
    frame->consumed = input.len;
    return input.len > 0 ? FRAME_WHOLE : FRAME_WAIT;
}

static void raw_give_up(struct framing_state *state, size_t dropped)
{
    (void)state;
    (void)dropped;
}

static size_t raw_prefix(char to[FRAME_PREFIX_MAX], size_t body_len)
{
    (void)to;
    (void)body_len;
    return 0;
}

static const struct framing raw_framing = {
    .name = "raw",
    .reset = raw_reset,
    .next = raw_next,
    .give_up = raw_give_up,
    .prefix = raw_prefix,
};

/* --- connecting --- */

static void open_link(struct remote_link *link, int fd_to, int fd_from)
{
    const struct connection_options options = {
        .handler = &connection_handler,
        .framing = &raw_framing,
        .check = &json_body_check, /* not used by this framing */
        .check_state = &link->remote->scanner,
        .context = context,
        .fd_in = fd_from,
        .fd_out = fd_to,
        .of_worker = true,
    };

    if (connection_open(&link->connection, &link->remote->transport, &options) != STDIO_BUS_OK) {
        int error = errno;

        descriptor_close(fd_from);
        if (fd_to != fd_from)
            descriptor_close(fd_to);
        break_link(link, strerror(error));
    } else {
        link->state = LINK_BUSY;
        link->handler->ready(link->user);
    }
}

static void dialled(void *user_data, int fd, const char *reason)
{
    if (fd < 0)
        break_link(user_data, reason);
    else
        open_link(user_data, fd, fd);
}

static void tunnelled(void *user_data, int fd_to, int fd_from, const char *reason)
{
    if (reason != NULL)
        break_link(user_data, reason);
    else
        open_link(user_data, fd_to, fd_from);
}

/* Connects directly, or by a program that speaks TLS. */
static void start(struct remote_link *link)
{
    const struct remote *remote = link->remote;

    if (remote->tunnel_command.url->is_tls) {
        link->tunnel.loop = remote->loop;
        link->tunnel.command = &remote->tunnel_command;
        link->tunnel.until_ms = remote->wait_until_ms;
        link->tunnel.fn = tunnelled;
        link->tunnel.user_data = link;
        tunnel_start(&link->tunnel);
    } else {
        link->dialing.loop = remote->loop;
        link->dialing.url = remote->proxy.is_used ? &remote->proxy.url : &remote->options->url;
        link->dialing.until_ms = remote->wait_until_ms;
        link->dialing.fn = dialled;
        link->dialing.user_data = link;
        dialing_start(&link->dialing);
    }
}

static void answer_times_out(void *user_data)
{
    struct remote_link *link = user_data;

    if (link->state == LINK_BUSY)
        connection_resume(&link->connection);
    else
        link_free(link);
}

/* --- taking --- */

static struct remote_link *idle_link(const struct remote *remote)
{
    struct list_node *node;

    for (node = remote->links.head.next; node != &remote->links.head; node = node->next) {
        struct remote_link *link = list_entry(node, struct remote_link, node);

        if (link->state == LINK_IDLE)
            return link;
    }
    return NULL;
}

struct remote_link *link_take(struct remote *remote, const struct link_handler *handler, void *user)
{
    struct remote_link *link = idle_link(remote);

    if (link != NULL) {
        stdio_bus_event_loop_stop_timer(remote->loop, &link->timer);
        link->state = LINK_BUSY;
    } else {
        link = calloc(1, sizeof *link);
        if (link == NULL)
            return NULL;
        link->remote = remote;
        link->connection.fd_in = link->connection.fd_out = -1;
        timer_init(&link->timer, answer_times_out, link);
        list_prepend(&remote->links, &link->node);
        start(link);
    }
    link->handler = handler;
    link->user = user;
    return link;
}

bool link_is_ready(const struct remote_link *link)
{
    return link->state == LINK_BUSY;
}

int link_send(struct remote_link *link, struct slice bytes)
{
    return connection_send_body(&link->connection, NULL, bytes, NULL, 0);
}

static struct remote_link *paused_link(const struct remote *remote)
{
    struct list_node *node;

    for (node = remote->links.head.next; node != &remote->links.head; node = node->next) {
        struct remote_link *link = list_entry(node, struct remote_link, node);

        if (link->connection.input_state == INPUT_PAUSED)
            return link;
    }
    return NULL;
}

/* What one link brings may end others. */
void links_resume(struct remote *remote)
{
    struct remote_link *link;

    while (!stdout_is_full(remote) && (link = paused_link(remote)) != NULL)
        connection_resume(&link->connection);
}

void links_close(struct remote *remote)
{
    struct list_node *node, *following;

    list_each(&remote->links, node, following)
        link_free(list_entry(node, struct remote_link, node));
}
