#include "build_config.h"

#include "federation/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"

#define READ_FIRST 1024u
#define READ_MAX 65536u
#define OPEN_MS 5000
#define OPEN_TEXT_MAX (NODES_ADDRESS_MAX + 256)
#define CONTEXT "nats"

static struct broker *broker_of(const struct nats_link *link)
{
    return &link->hub->broker;
}

static int64_t now_ms(const struct nats_link *link)
{
    return stdio_bus_event_loop_now_ms(link->hub->bus->loop);
}

/* --- messages --- */

static void send_message(struct nats_link *link, const struct link_message *message)
{
    char subject[NODES_SUBJECT_MAX];
    struct nats_head head = {.subject = slice_of(NULL, 0)};
    struct link_message marked = *message;

    marked.mark = link->mark;
    link->node->tally->sent += message->payload.len;
    node_subject(subject, link->hub, link->node->id, link->peer_number);
    head.subject = slice_of_text(subject);
    node_send(link->hub, &head, &marked);
}

static void send_positions(struct nats_link *link, enum link_kind kind)
{
    struct link_message message = link_stream_positions(&link->stream, kind);
    char address[NODES_ADDRESS_MAX];

    if (kind == LINK_RESUME)
        message.payload = node_address_write(address, link->hub, link->number);
    send_message(link, &message);
}

static size_t piece_max(const struct nats_link *link)
{
    uint64_t most = broker_of(link)->info.max_payload;

    if (most == 0 || most > LINK_PIECE_MAX + LINK_HEAD_LEN)
        return LINK_PIECE_MAX;
    return most > LINK_HEAD_LEN ? (size_t)most - LINK_HEAD_LEN : 1;
}

/* --- the end --- */

static void close_socket(struct nats_link *link)
{
    if (link->fd < 0)
        return;
    stdio_bus_event_loop_remove(link->hub->bus->loop, link->fd);
    descriptor_close(link->fd);
    link->fd = -1;
}

static void leave_node(struct nats_link *link)
{
    struct nats_node *node = link->node;

    if (node == NULL)
        return;
    link->node = NULL;
    list_remove(&link->in_node);
    nodes_release(node);
}

void link_drop(struct nats_link *link)
{
    struct nats_links *links = &link->hub->links;

    if (!list_linked(&link->in_all))
        return;
    leave_node(link);
    close_socket(link);
    link->state = LINK_CUT;
    list_remove(&link->in_all);
    hash_table_remove(&links->by_number, link->number, link);
    links->count--;
    link_stream_free(&link->stream);
    stdio_bus_event_loop_defer(link->hub->bus->loop, &link->deferred, free, link);
}

/* Without kernel memory a link to a node is watched at the next tick; one that is cut has none. */
static void watch(struct nats_link *link)
{
    unsigned interest = 0;

    if (link->fd < 0)
        return;
    if (link->state != LINK_CUT && !link->starved && link_stream_room(&link->stream) > 0)
        interest |= STDIO_BUS_EVENT_READ;
    if (link_stream_pending(&link->stream).len > 0)
        interest |= STDIO_BUS_EVENT_WRITE;
    if (link->stream.ends)
        interest |= STDIO_BUS_EVENT_HANGUP;
    if (interest == link->interest)
        return;
    if (stdio_bus_event_loop_modify(link->hub->bus->loop, link->fd, interest) == STDIO_BUS_OK) {
        link->interest = interest;
        return;
    }
    log_warn(link->hub->bus->log, CONTEXT, "link %llu cannot be watched: %s",
             (unsigned long long)link->number, strerror(errno));
    if (link->state == LINK_CUT)
        link_drop(link);
}

void link_cut(struct nats_link *link, const char *reason)
{
    struct nats_remote *remote = link->remote;

    if (link->state == LINK_CUT)
        return;
    if (link->overflow != 0)
        remote->ended(link);
    if (remote != NULL)
        snprintf(remote->reason, sizeof remote->reason, "%.120s", reason);
    log_debug(link->hub->bus->log, CONTEXT, "link %llu%s%s ends: %s",
              (unsigned long long)link->number, remote != NULL ? " to pool " : "",
              remote != NULL ? remote->id : "", reason);
    leave_node(link);
    link->state = LINK_CUT;
    if (link->fd < 0 || link_stream_pending(&link->stream).len == 0)
        link_drop(link);
    else
        watch(link);
}

void link_break(struct nats_link *link, const char *reason)
{
    if (link->state == LINK_LINKED)
        node_tell(link->hub, link->node->id, link->peer_number, LINK_CLOSE, slice_of_text(reason));
    link_cut(link, reason);
}

/* --- from the socket to the node --- */

void link_flush(struct nats_link *link)
{
    struct link_message message;

    while (link->state == LINK_LINKED && broker_has_room(broker_of(link)) &&
           link_stream_next(&link->stream, piece_max(link), &message))
        send_message(link, &message);
}

/* Both directions have ended; or the socket is closed, and the other end has got all. */
static bool end_if_over(struct nats_link *link)
{
    if (link->state != LINK_LINKED)
        return false;
    if (link_stream_is_over(&link->stream)) {
        if (link_stream_owes(&link->stream, false))
            send_positions(link, LINK_ACK);
        link_drop(link);
        return true;
    }
    if (link->fd >= 0 || !link->stream.end_acked)
        return false;
    link_break(link, "the peer has left");
    return true;
}

/* Nothing is read or written any more. The bytes that are not sent yet still are. */
static void socket_ended(struct nats_link *link)
{
    close_socket(link);
    link_stream_end(&link->stream);
    link_stream_taken(&link->stream, link_stream_pending(&link->stream).len);
    if (link->state != LINK_LINKED && (link->state != LINK_OPENING || link->stream.kept.len == 0))
        link_drop(link);
}

/* The other end of the pair is this daemon's: that it is closed, is in the log. */
static void socket_failed(struct nats_link *link)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return;
    if (errno != EPIPE && errno != ECONNRESET)
        log_warn(link->hub->bus->log, CONTEXT, "link %llu: %s", (unsigned long long)link->number,
                 strerror(errno));
    socket_ended(link);
}

static void lack_memory(struct nats_link *link)
{
    log_repeated(link->hub->bus->log, LOG_LEVEL_ERROR, CONTEXT, slice_of_text("links"),
                 "out of memory: bytes of link %llu have to wait",
                 (unsigned long long)link->number);
}

/* Nothing is read until the next tick: the bytes stay where they are, and would wake the daemon
 * again at once. */
static void starve(struct nats_link *link)
{
    lack_memory(link);
    link->starved = true;
    nodes_start_tick(link->hub);
}

/* Memory for much more than what comes would be mapped, touched and given back with each read. */
static void plan_next_read(struct nats_link *link, size_t got)
{
    if (got == link->read_len && got < READ_MAX)
        link->read_len *= 2;
    else if (got < link->read_len / 4 && link->read_len > READ_FIRST)
        link->read_len /= 2;
}

static void read_socket(struct nats_link *link)
{
    size_t len = link->read_len;
    char *to = link_stream_reserve(&link->stream, &len);
    ssize_t got;

    if (to == NULL) {
        if (len > 0)
            starve(link);
        return;
    }
    got = read(link->fd, to, len);
    link_stream_add(&link->stream, got > 0 ? (size_t)got : 0);
    plan_next_read(link, got > 0 ? (size_t)got : 0);
    if (got == 0 && link->state == LINK_IDLE)
        link_drop(link);
    else if (got == 0)
        link_stream_end(&link->stream);
    else if (got < 0)
        socket_failed(link);
    else if (link->state == LINK_IDLE)
        link_open(link);
}

/* --- from the node to the socket --- */

static void write_socket(struct nats_link *link)
{
    struct slice pending = link_stream_pending(&link->stream);
    ssize_t written = 0;

    if (link->fd < 0) {
        link_stream_taken(&link->stream, pending.len);
        return;
    }
    if (pending.len > 0)
        written = write(link->fd, pending.data, pending.len);
    if (written > 0)
        link_stream_taken(&link->stream, (size_t)written);
    if (written < 0) {
        socket_failed(link);
    } else if (link->stream.has_ended && !link->is_shut &&
               link_stream_pending(&link->stream).len == 0) {
        link->is_shut = true;
        if (shutdown(link->fd, SHUT_WR) != 0)
            socket_failed(link);
    }
}

/* After bytes were read, written, or came. */
static void go_on(struct nats_link *link)
{
    if (!list_linked(&link->in_all))
        return;
    if (link->state == LINK_CUT && link_stream_pending(&link->stream).len == 0) {
        link_drop(link);
        return;
    }
    link_flush(link);
    if (link->state == LINK_LINKED && link_stream_owes(&link->stream, true))
        send_positions(link, LINK_ACK);
    if (!end_if_over(link))
        watch(link);
}

static void socket_ready(void *user_data, unsigned events)
{
    struct nats_link *link = user_data;

    if ((events & STDIO_BUS_EVENT_WRITE) != 0)
        write_socket(link);
    if ((events & STDIO_BUS_EVENT_READ) != 0 && link->fd >= 0 && !link->stream.ends)
        read_socket(link);
    else if ((events & STDIO_BUS_EVENT_HANGUP) != 0 && link->fd >= 0)
        socket_ended(link);
    go_on(link);
}

/* --- messages of the other end --- */

void link_came(struct nats_link *link, const struct link_message *message)
{
    enum link_verdict verdict = link_stream_take(&link->stream, message);

    nodes_note_life(link->hub, link->node);
    link->node->tally->received += message->payload.len;
    if (verdict == LINK_IMPOSSIBLE) {
        link->hub->links.counters.broken++;
        link_break(link, "a message that cannot be of this link");
        return;
    }
    if (verdict == LINK_NO_MEMORY)
        lack_memory(link); /* the bytes come once more */
    if (verdict == LINK_MISSING)
        send_positions(link, LINK_RESUME);
    if (message->kind == LINK_RESUME) {
        link_stream_send_again(&link->stream);
        send_positions(link, LINK_ACK);
    }
    write_socket(link);
    go_on(link);
}

void link_resume(struct nats_link *link)
{
    if (link->state != LINK_LINKED)
        return;
    link_stream_send_again(&link->stream);
    send_positions(link, LINK_RESUME);
    go_on(link);
}

/* ACCEPT is followed by the bytes for which the link was opened. If it was lost, the asking end may
 * be linked to another node by now, or gone: then it answers CLOSE to RESUME. */
static bool awaits_first(const struct nats_link *link)
{
    return link->remote == NULL && link->stream.received == 0 && !link->stream.has_ended;
}

/* Messages may be lost without an end of the connection: between the servers of a cluster. */
static void look_after(struct nats_link *link)
{
    bool waits = link_stream_is_unacked(&link->stream) || awaits_first(link);

    if (waits && link->stream.acked == link->acked_before) {
        link_resume(link);
        return;
    }
    link->acked_before = waits ? link->stream.acked : UINT64_MAX;
    link->stream.asks = false;
    if (link_stream_owes(&link->stream, false))
        send_positions(link, LINK_ACK);
    go_on(link);
}

void link_tick(struct nats_link *link)
{
    if (link->starved) {
        link->starved = false;
        watch(link);
    }
    if (link->state == LINK_LINKED)
        look_after(link);
    else if (link->state == LINK_OPENING && now_ms(link) - link->since_ms < OPEN_MS)
        link_open(link); /* another node may be asked; an answer too many is refused */
    else if (link->state == LINK_OPENING)
        link_cut(link, broker_is_ready(broker_of(link)) ? "no node has answered in time"
                                                        : "there is no connection to NATS");
}

/* --- the beginning --- */

struct nats_link *link_new(struct nats_hub *hub, uint64_t number)
{
    struct nats_links *links = &hub->links;
    struct nats_link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return NULL;
    link->hub = hub;
    link->fd = -1;
    link->read_len = READ_FIRST;
    link->stream.limit = LINK_WINDOW; /* at least that is taken by all */
    link->stream.said_limit = LINK_WINDOW;
    link->acked_before = UINT64_MAX;
    link->number = number;
    if (hash_table_insert(&links->by_number, link->number, link) != STDIO_BUS_OK) {
        free(link);
        return NULL;
    }
    list_append(&links->all, &link->in_all);
    links->count++;
    return link;
}

static bool set_flags(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

int link_attach(struct nats_link *link, int fd)
{
    if (stdio_bus_event_loop_add(link->hub->bus->loop, fd, STDIO_BUS_EVENT_READ, socket_ready,
                                 link) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    link->fd = fd;
    link->interest = STDIO_BUS_EVENT_READ;
    watch(link);
    return STDIO_BUS_OK;
}

struct nats_link *link_create(struct nats_hub *hub, int *fd)
{
    struct nats_link *link;
    int ends[2], error;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return NULL;
    link = link_new(hub, ++hub->links.last_number);
    if (link != NULL && set_flags(ends[0]) && set_flags(ends[1]) &&
        link_attach(link, ends[0]) == STDIO_BUS_OK) {
        *fd = ends[1];
        return link;
    }
    error = errno;
    descriptor_close_pipe(ends);
    if (link != NULL)
        link_drop(link);
    errno = error;
    return NULL;
}

void link_open(struct nats_link *link)
{
    const struct link_message message = {.kind = LINK_OPEN};
    struct link_message whole = message;
    const struct nats_remote *remote = link->remote;
    char reply[NODES_SUBJECT_MAX], address[NODES_ADDRESS_MAX], text[OPEN_TEXT_MAX];
    struct nats_head head = {.subject = slice_of_text(remote->subject)};

    if (link->state == LINK_IDLE)
        link->since_ms = now_ms(link);
    link->state = LINK_OPENING;
    head.reply = slice_of_text(node_subject(reply, link->hub, link->hub->links.id, link->number));
    whole.payload = node_address_write(address, link->hub, link->number);
    if (remote->node[0] != '\0') /* the node serves several pools */
        whole.payload = slice_join(text, whole.payload, '\n', slice_of_text(remote->id));
    node_send(link->hub, &head, &whole);
    nodes_start_tick(link->hub);
}

void link_join(struct nats_link *link, struct nats_node *node, uint64_t peer_number)
{
    link->state = LINK_LINKED;
    link->node = node;
    link->peer_number = peer_number;
    link->mark = link_mark(link->hub->links.id, link->number) + link_mark(node->id, peer_number);
    nodes_note_life(link->hub, node);
    list_append(&node->links, &link->in_node);
    nodes_start_tick(link->hub);
    go_on(link);
}
