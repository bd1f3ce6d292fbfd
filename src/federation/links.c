#include "build_config.h"

#include "federation/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/clients.h"
#include "bus/gate.h"
#include "bus/origins.h"
#include "federation/link.h"
#include "federation/link_sessions.h"
#include "federation/places.h"
#include "federation/remotes.h"
#include "federation/tallies.h"
#include "router/eras.h"
#include "router/shares.h"

#define OPEN_TRIES 4
#define CONTEXT "nats"

static bool has_number(const void *item, const void *key)
{
    const struct nats_link *link = item;
    const uint64_t *number = key;

    return link->number == *number;
}

static struct nats_link *find_link(const struct nats_hub *hub, uint64_t number)
{
    return hash_table_find(&hub->links.by_number, number, has_number, &number);
}

/* --- nodes that are gone --- */

static void end_links(struct nats_hub *hub, struct nats_node *node, const char *reason)
{
    char text[NATS_LINK_REASON_MAX];
    size_t count = list_count(&node->links);

    snprintf(text, sizeof text, "node %s %s", node_name(node), reason);
    log_warn(hub->bus->log, CONTEXT, "%s: %zu link%s lost", text, count, count == 1 ? "" : "s");
    hub->links.counters.broken += count;
    node->tally->lost += count;
    for (; count > 0; count--) /* each leaves the list, and the last one frees the node */
        link_cut(list_entry(node->links.head.next, struct nats_link, in_node), text);
}

/* Ends the links of the node at once: link_cut frees it with the last of them. */
static void look_at_node(struct nats_hub *hub, struct nats_node *node, int64_t now)
{
    struct nats_links *links = &hub->links;

    if (links->lost_ms != 0) {
        if (now - links->lost_ms >= NODES_UNCONNECTED_MS)
            end_links(hub, node, "is not reached: there is no connection to NATS");
        return;
    }
    if (now - node->heard_ms >= NODES_SILENT_MS) {
        end_links(hub, node, "is gone");
        return;
    }
    node_tell(hub, node->id, 0, LINK_LIFE, slice_of_text(links->id));
}

static void tick(void *user_data)
{
    struct nats_hub *hub = user_data;
    struct nats_links *links = &hub->links;
    int64_t now = stdio_bus_event_loop_now_ms(hub->bus->loop);
    struct list_node *node, *following;
    bool is_opening = false;

    list_each(&links->nodes, node, following)
        look_at_node(hub, list_entry(node, struct nats_node, link), now);
    list_each(&links->all, node, following) {
        struct nats_link *link = list_entry(node, struct nats_link, in_all);

        link_tick(link);
        is_opening |= list_linked(&link->in_all) && link->state == LINK_OPENING;
    }
    if (places_tick(hub) || remotes_are_lacked(hub) || is_opening || !list_empty(&links->nodes))
        nodes_start_tick(hub);
}

/* --- the connection to NATS --- */

static struct nats_hub *hub_of(struct broker_watcher *watcher)
{
    return list_entry(watcher, struct nats_hub, links.watcher);
}

static void connected(struct broker_watcher *watcher)
{
    struct nats_hub *hub = hub_of(watcher);
    int64_t lost_ms = hub->links.lost_ms, now = stdio_bus_event_loop_now_ms(hub->bus->loop);
    struct list_node *node, *following;

    hub->links.lost_ms = 0;
    list_each(&hub->links.nodes, node, following)
        nodes_await(hub, list_entry(node, struct nats_node, link),
                    lost_ms != 0 ? now - lost_ms : 0);
    list_each(&hub->links.all, node, following) {
        struct nats_link *link = list_entry(node, struct nats_link, in_all);

        if (link->state == LINK_OPENING)
            link_open(link);
        else
            link_resume(link);
    }
}

static void lost(struct broker_watcher *watcher)
{
    struct nats_hub *hub = hub_of(watcher);

    hub->links.lost_ms = stdio_bus_event_loop_now_ms(hub->bus->loop);
    hub->bus->services_noted = true;
}

void nats_links_act(struct nats_hub *hub)
{
    if (hub->links.lost_ms != 0 && hub->bus->phase >= BUS_PHASE_DRAINING)
        nats_links_end(hub, "the daemon ends");
}

static void drained(struct broker_watcher *watcher)
{
    struct nats_hub *hub = hub_of(watcher);
    struct list_node *node, *following;

    list_each(&hub->links.all, node, following)
        link_flush(list_entry(node, struct nats_link, in_all));
}

/* --- the inbox --- */

static void accepted(struct nats_hub *hub, struct nats_link *link,
                     const struct link_message *message)
{
    struct node_address address;
    struct nats_node *node;

    if (!node_address_read(&address, message->payload))
        return;
    if (link != NULL && link->state == LINK_LINKED && link->peer_number == address.number &&
        strcmp(link->node->id, address.id) == 0)
        return; /* the same once more */
    if (link == NULL || link->state != LINK_OPENING) {
        node_tell(hub, address.id, address.number, LINK_CLOSE,
                  slice_of_text("it is not wanted any more"));
        return;
    }
    node = nodes_get(hub, &address);
    if (node == NULL) {
        link_cut(link, "out of memory");
        return;
    }
    hub->links.counters.opened++;
    log_debug(hub->bus->log, CONTEXT, "link %llu to pool %s: node %s",
              (unsigned long long)link->number, link->remote->id, node_name(node));
    link_join(link, node, address.number);
    if (link->overflow != 0)
        remotes_overflow_accepted(link);
}

/* The next one may be another node. */
static void declined(struct nats_link *link, struct slice reason)
{
    char text[NATS_LINK_REASON_MAX], quoted[NATS_LINK_REASON_MAX];

    link->hub->links.counters.declined++;
    if (++link->declined < OPEN_TRIES) {
        link_open(link);
        return;
    }
    snprintf(text, sizeof text, "no node takes this client: %.*s",
             (int)(reason.len < 100 ? reason.len : 100), reason.data);
    link_cut(link, log_quote(quoted, sizeof quoted, text));
}

static void other_end_closed(struct nats_link *link, struct slice reason)
{
    char text[NATS_LINK_REASON_MAX], quoted[NATS_LINK_REASON_MAX];

    snprintf(text, sizeof text, "node %s has ended the link: %.*s", node_name(link->node),
             (int)(reason.len < 80 ? reason.len : 80), reason.data);
    link_cut(link, log_quote(quoted, sizeof quoted, text));
}

static void unreachable(struct nats_link *link)
{
    char text[NATS_LINK_REASON_MAX];

    if (link == NULL || link->state != LINK_OPENING)
        return;
    snprintf(text, sizeof text, "no node of NATS serves the pool %.80s now", link->remote->id);
    link_cut(link, text);
}

/* A message for a link that is not there, or whose other end is not the sender, which gets CLOSE if
 * the message names it, and was meant for this number. */
static void stray(struct nats_hub *hub, uint64_t number, const struct link_message *message)
{
    struct node_address address;

    if (message->kind == LINK_RESUME && node_address_read(&address, message->payload) &&
        message->mark == link_mark(hub->links.id, number) + link_mark(address.id, address.number))
        node_tell(hub, address.id, address.number, LINK_CLOSE,
                  slice_of_text("the other end is gone"));
}

static void dispatch(struct nats_hub *hub, uint64_t number, const struct link_message *message)
{
    struct nats_link *link = find_link(hub, number);
    bool is_linked = link != NULL && link->state == LINK_LINKED;

    if (message->kind == LINK_ACCEPT)
        accepted(hub, link, message);
    else if (message->kind == LINK_DECLINE && link != NULL && link->state == LINK_OPENING)
        declined(link, message->payload);
    else if (message->kind == LINK_CLOSE && is_linked)
        other_end_closed(link, message->payload);
    else if (message->kind == LINK_DATA || message->kind == LINK_END || message->kind == LINK_ACK ||
             message->kind == LINK_RESUME) {
        if (is_linked && message->mark == link->mark)
            link_came(link, message);
        else
            stray(hub, number, message);
    }
}

/* The last part of a subject: the number of a link, 0 for the node. */
static uint64_t number_of(struct slice subject)
{
    uint64_t number;
    size_t at = subject.len;

    while (at > 0 && subject.data[at - 1] != '.')
        at--;
    return nats_number_read(slice_of(subject.data + at, subject.len - at), &number) ? number : 0;
}

/* --- serving --- */

static size_t count_free(const struct group *group)
{
    size_t count = 0, i;

    for (i = 0; i < group->count; i++) {
        const struct peer *worker = group->workers[i];

        count += worker->availability != PEER_FAILED && !worker->drained && !worker->is_passage &&
                 list_empty(&worker->bindings);
    }
    return count;
}

/* Clients that are to get a free worker: those of links that have sent nothing yet, and others that
 * wait. */
static size_t count_coming(const struct stdio_bus *bus, const struct group *group)
{
    struct list_node *node, *following;
    size_t count = 0;

    list_each(&bus->clients.list, node, following) {
        const struct peer *client = &client_at(node)->stream.endpoint.peer;

        count += client->is_link && client->opened == group && list_empty(&client->bindings);
    }
    list_each(&group->waiting, node, following)
        count += !list_entry(node, struct peer, hold)->is_link;
    return count;
}

/* A client of an exclusive pool would wait while all workers are taken. */
static bool has_room(const struct stdio_bus *bus, const struct group *group)
{
    size_t count;

    if (group->mode.clients != CLIENTS_EXCLUSIVE)
        return true;
    count = count_free(group);
    return count > 0 && count > count_coming(bus, group);
}

static const char *refusal(const struct nats_hub *hub, const struct group *group,
                           const struct origin *origin)
{
    struct stdio_bus *bus = hub->bus;

    if (group == NULL || bus->phase >= BUS_PHASE_DRAINING)
        return "the pool is not served any more";
    if (!shares_left_of_connections(&bus->router, bus->client_count, origins_find(bus, origin)))
        return "too many connections (max_connections)";
    return has_room(bus, group) ? NULL : "all workers of the pool are taken";
}

/* A client like any other, confined to the pool. */
static struct client *make_client(struct nats_hub *hub, int fd, const struct origin *origin,
                                  struct group *group)
{
    struct stdio_bus *bus = hub->bus;
    const struct stream_options options = {.handler = clients_handler_of(bus),
                                           .splits_arrays = bus->options.config->splits_arrays,
                                           .fd_in = fd,
                                           .fd_out = fd};
    struct client *client = clients_add(bus, &options, origin, false);

    if (client == NULL)
        return NULL;
    client->stream.handler = &link_sessions_handler;
    client->stream.endpoint.peer.is_link = true;
    router_confine(&client->stream.endpoint.peer, group);
    gate_admit(client);
    return client;
}

static void answer(struct nats_hub *hub, struct slice reply, enum link_kind kind, struct slice text)
{
    const struct link_message message = {.kind = kind, .payload = text};

    node_send(hub, &(struct nats_head){.subject = reply}, &message);
}

static void accept_link(struct nats_hub *hub, const struct nats_link *link, struct slice reply)
{
    char text[NODES_ADDRESS_MAX];

    answer(hub, reply, LINK_ACCEPT, node_address_write(text, hub, link->number));
}

static struct nats_link *link_at(struct nats_node *node, uint64_t peer_number)
{
    struct list_node *at, *following;

    list_each(&node->links, at, following) {
        struct nats_link *link = list_entry(at, struct nats_link, in_node);

        if (link->peer_number == peer_number)
            return link;
    }
    return NULL;
}

/* NULL, or the reason why not. */
static const char *serve(struct nats_hub *hub, const struct node_address *address,
                         struct group *group, const struct nats_frame *frame)
{
    struct nats_link *link;
    struct nats_node *node;
    struct origin origin;
    const char *problem;
    int fd = -1;

    node_origin(&origin, address);
    problem = refusal(hub, group, &origin);
    if (problem != NULL)
        return problem;
    link = link_create(hub, &fd);
    if (link == NULL)
        return strerror(errno);
    node = nodes_get(hub, address);
    if (node == NULL || make_client(hub, fd, &origin, group) == NULL) {
        close(fd);
        link_drop(link);
        if (node != NULL)
            nodes_release(node);
        return "out of memory";
    }
    accept_link(hub, link, frame->line.reply);
    link_join(link, node, address->number);
    return NULL;
}

static void asked(struct nats_hub *hub, struct slice pool, struct slice from,
                  const struct nats_frame *frame)
{
    struct group *group = router_pool_named(&hub->bus->router, pool);
    struct node_address address;
    struct nats_node *node;
    struct nats_link *link;
    const char *problem;

    if (!node_address_read(&address, from) || frame->line.reply.data == NULL)
        return;
    node = nodes_find(hub, address.id);
    link = node != NULL ? link_at(node, address.number) : NULL;
    if (link != NULL) { /* it was repeated */
        accept_link(hub, link, frame->line.reply);
        return;
    }
    problem = serve(hub, &address, group, frame);
    if (problem == NULL)
        return;
    tallies_get(hub, address.name)->declined++;
    answer(hub, frame->line.reply, LINK_DECLINE, slice_of_text(problem));
    log_repeated(hub->bus->log, LOG_LEVEL_WARN, CONTEXT, slice_of_text(address.id),
                 "a link to pool %.*s is declined: %s", (int)pool.len, pool.data, problem);
}

void nats_link_asked(struct nats_subscription *subscription, const struct nats_frame *frame)
{
    struct nats_export *export = list_entry(subscription, struct nats_export, links);
    struct link_message message;

    if (link_message_read(&message, frame->payload) && message.kind == LINK_OPEN &&
        slice_is(frame->line.subject, export->link_subject)) /* not of a server at fault */
        asked(export->hub, slice_of_text(export->id), message.payload, frame);
}

/* This node was asked, and no other: the pool is named after a line feed. */
static void asked_here(struct nats_hub *hub, struct slice text, const struct nats_frame *frame)
{
    struct list_node *node, *following;
    struct slice pool = text, from;

    if (!slice_cut(&pool, '\n', &from))
        return;
    list_each(&hub->exports, node, following) {
        const struct nats_export *export = list_entry(node, struct nats_export, link);

        if (slice_is(pool, export->id)) {
            asked(hub, slice_of_text(export->id), from, frame);
            return;
        }
    }
    if (frame->line.reply.data != NULL)
        answer(hub, frame->line.reply, LINK_DECLINE, slice_of_text("the pool is not exported"));
}

/* --- what comes in --- */

static void came(struct nats_subscription *subscription, const struct nats_frame *frame)
{
    struct nats_hub *hub = list_entry(subscription, struct nats_hub, links.inbox);
    uint64_t number = number_of(frame->line.subject);
    struct link_message message;
    struct nats_node *gone;

    if (nats_no_responders(frame->headers)) {
        unreachable(find_link(hub, number));
        places_answered(hub, number, NULL);
        return;
    }
    if (!link_message_read(&message, frame->payload))
        return;
    if (message.kind == LINK_OPEN && number == 0)
        asked_here(hub, message.payload, frame);
    else if (message.kind == LINK_YIELD && number == 0)
        places_yield(hub, &message);
    else if (message.kind == LINK_HAS || message.kind == LINK_DECLINE)
        places_answered(hub, number, &message);
    if (message.kind != LINK_LIFE && message.kind != LINK_GONE) {
        dispatch(hub, number, &message);
        return;
    }
    gone = nodes_heard(hub, &message);
    if (gone != NULL)
        end_links(hub, gone, "knows no link to this one");
}

/* --- all of them --- */

static size_t inbox_size(const struct nats_hub *hub)
{
    return strlen(nats_config_prefix(&hub->config)) + NATS_NODE_ID_LEN + sizeof ".node..*";
}

void nats_links_name(struct nats_hub *hub)
{
    snprintf(hub->links.inbox_subject, inbox_size(hub), "%s.node.%s.*",
             nats_config_prefix(&hub->config), hub->links.id);
}

int nats_links_create(struct nats_hub *hub)
{
    struct nats_links *links = &hub->links;
    uint64_t id = siphash(&hub->broker.random, "node", 4);

    list_init(&links->all);
    list_init(&links->nodes);
    list_init(&links->remotes);
    timer_init(&links->tick, tick, hub);
    snprintf(links->id, sizeof links->id, "%016llx", (unsigned long long)id);
    links->inbox_subject = malloc(inbox_size(hub));
    if (links->inbox_subject == NULL)
        return STDIO_BUS_ERR;
    nats_links_name(hub);
    links->inbox.subject = links->inbox_subject;
    links->inbox.message = came;
    links->watcher = (struct broker_watcher){.ready = connected, .lost = lost, .drained = drained};
    broker_watch(&hub->broker, &links->watcher);
    return STDIO_BUS_OK;
}

void nats_links_start(struct nats_hub *hub)
{
    if (broker_subscribe(&hub->broker, &hub->links.inbox) != STDIO_BUS_OK)
        log_error(hub->bus->log, CONTEXT, "out of memory: there are no links to other nodes");
}

void nats_links_end(struct nats_hub *hub, const char *reason)
{
    struct list_node *node, *following;

    list_each(&hub->links.all, node, following) {
        link_break(list_entry(node, struct nats_link, in_all), reason);
    }
    list_each(&hub->links.all, node, following)
        link_drop(list_entry(node, struct nats_link, in_all));
    broker_unsubscribe(&hub->broker, &hub->links.inbox);
    stdio_bus_event_loop_stop_timer(hub->bus->loop, &hub->links.tick);
}

void nats_links_destroy(struct nats_hub *hub)
{
    struct list_node *node, *following;

    list_each(&hub->links.remotes, node, following)
        remotes_free(list_entry(node, struct nats_remote, link));
    hash_table_free(&hub->links.by_number);
    free(hub->links.inbox_subject);
}
