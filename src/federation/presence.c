#include "build_config.h"

#include "federation/presence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "bus/reports.h"
#include "config/nats_keys.h"
#include "federation/node_metrics.h"
#include "federation/nodes.h"
#include "federation/tallies.h"
#include "json/document.h"

#define NODES_MAX 1024
#define SHOWN_MS 5000 /* a node that has not answered for so long is not listed */
#define TEXT_MAX 64   /* bytes of a name, of a version */
#define ANSWER_MAX 1024

/* A node that has answered. */
struct seen_node {
    struct list_node link; /* presence->nodes, the one that has answered last is the last one */
    char id[NATS_NODE_ID_LEN + 1];
    char name[TEXT_MAX + 1], version[TEXT_MAX + 1];
    int64_t up_ms, heard_ms, round_trip_us;
};

static void remove_node(struct nats_presence *presence, struct seen_node *node)
{
    list_remove(&node->link);
    presence->count--;
    free(node);
}

/* --- the question --- */

static void answer(struct nats_subscription *subscription, const struct nats_frame *frame)
{
    struct nats_hub *hub = list_entry(subscription, struct nats_hub, presence.asked);
    struct json_text text = {.len = 0};

    if (frame->line.reply.data == NULL)
        return;
    row_begin(&text, NULL, '{');
    row_string(&text, "id", hub->links.id);
    row_string(&text, "node", hub->config.node != NULL ? hub->config.node : NATS_PREFIX_DEFAULT);
    row_string(&text, "version", PACKAGE_VERSION);
    row_number(&text, "up_ms", stdio_bus_event_loop_now_ms(hub->bus->loop) - hub->bus->started_ms);
    row_end(&text, '}');
    if (text.failed || broker_publish_text(&hub->broker, frame->line.reply,
                                           json_text_slice(&text)) != STDIO_BUS_OK)
        log_warn(hub->bus->log, "nats", "out of memory: another node does not see this one");
    json_text_free(&text);
}

/* The subject of the answers has the time of the question. */
void presence_ask(struct nats_hub *hub)
{
    char subject[PRESENCE_SUBJECT_MAX], reply[PRESENCE_SUBJECT_MAX];
    const struct nats_head head = {
        .subject = slice_of(subject, (size_t)snprintf(subject, sizeof subject, "%s.nodes",
                                                      nats_config_prefix(&hub->config))),
        .reply = slice_of(reply, (size_t)snprintf(reply, sizeof reply, "%s.nodes.%s.%" PRIx64,
                                                  nats_config_prefix(&hub->config), hub->links.id,
                                                  (uint64_t)clock_now_us()))};

    if (broker_is_ready(&hub->broker) &&
        broker_send(&hub->broker, &head, slice_of("", 0)) != STDIO_BUS_OK)
        log_warn(hub->bus->log, "nats", "out of memory: the other nodes are not asked");
}

/* --- the answers --- */

/* The time since the question; negative: it cannot be. */
static int64_t round_trip_us(struct slice subject)
{
    char digits[17] = "";
    size_t len = 0;
    int64_t now_us = clock_now_us();
    uint64_t asked_us;

    while (len < subject.len && subject.data[subject.len - len - 1] != '.')
        len++;
    if (len == 0 || len >= sizeof digits)
        return -1;
    memcpy(digits, subject.data + subject.len - len, len);
    asked_us = strtoull(digits, NULL, 16);
    return asked_us <= (uint64_t)now_us ? now_us - (int64_t)asked_us : -1;
}

/* False: the member is no text of up to TEXT_MAX bytes. */
static bool read_text(char to[TEXT_MAX + 1], const struct json_value *root, const char *key)
{
    const struct json_value *value = document_member_of(root, key, JSON_STRING);

    if (value == NULL || value->text.len > TEXT_MAX ||
        memchr(value->text.data, '\0', value->text.len) != NULL)
        return false;
    memcpy(to, value->text.data, value->text.len);
    to[value->text.len] = '\0';
    return true;
}

static bool read_answer(struct seen_node *node, const struct json_value *root)
{
    char id[TEXT_MAX + 1];
    const struct json_value *up_ms;

    if (root->type != JSON_OBJECT || !read_text(id, root, "id") || strlen(id) != NATS_NODE_ID_LEN ||
        !read_text(node->name, root, "node") || !read_text(node->version, root, "version"))
        return false;
    memcpy(node->id, id, sizeof node->id);
    up_ms = document_member(root, "up_ms");
    return up_ms != NULL && document_integer(up_ms, &node->up_ms) && node->up_ms >= 0;
}

static void report_lost(struct nats_hub *hub)
{
    log_warn(hub->bus->log, "nats", "out of memory: a node is not listed");
}

static struct seen_node *find_node(struct nats_presence *presence, const char *id)
{
    struct list_node *node, *following;

    list_each(&presence->nodes, node, following) {
        struct seen_node *seen = list_entry(node, struct seen_node, link);

        if (strcmp(seen->id, id) == 0)
            return seen;
    }
    return NULL;
}

/* The node takes the place of what is known of it; or of the one that was silent for longest. */
static void keep(struct nats_hub *hub, const struct seen_node *node)
{
    struct nats_presence *presence = &hub->presence;
    struct seen_node *known = find_node(presence, node->id), *kept;

    if (known == NULL && presence->count == NODES_MAX)
        known = list_entry(presence->nodes.head.next, struct seen_node, link);
    if (known != NULL)
        remove_node(presence, known);
    kept = malloc(sizeof *kept);
    if (kept == NULL) {
        report_lost(hub);
        return;
    }
    *kept = *node;
    kept->link = (struct list_node){NULL, NULL};
    list_append(&presence->nodes, &kept->link);
    presence->count++;
}

static void note_round_trip(struct nats_hub *hub, const struct seen_node *seen)
{
    const struct nats_node *node = nodes_find(hub, seen->id);

    if (node != NULL)
        node->tally->round_trip_us = (uint64_t)seen->round_trip_us;
}

static void answered(struct nats_subscription *subscription, const struct nats_frame *frame)
{
    struct nats_hub *hub = list_entry(subscription, struct nats_hub, presence.answered);
    struct seen_node node = {.heard_ms = stdio_bus_event_loop_now_ms(hub->bus->loop),
                             .round_trip_us = round_trip_us(frame->line.subject)};
    struct document document;
    struct document_error error;
    int status;

    if (node.round_trip_us < 0 || frame->payload.len > ANSWER_MAX)
        return;
    status = document_read(&document, frame->payload, &error);
    if (status == STDIO_BUS_ERR)
        report_lost(hub);
    if (status != STDIO_BUS_OK)
        return;
    if (read_answer(&node, document.root) && strcmp(node.id, hub->links.id) != 0) {
        note_round_trip(hub, &node);
        keep(hub, &node);
    }
    document_free(&document);
}

/* --- the list --- */

/* The links of the node itself; what has ended, of all nodes of its name. */
static void write_links(struct nats_hub *hub, struct json_text *to, const struct seen_node *seen)
{
    const struct nats_node *node = nodes_find(hub, seen->id);
    const struct nats_tally *tally = node != NULL ? node->tally : tallies_find(hub, seen->name);

    row_number(to, "links", node != NULL ? (int64_t)list_count(&node->links) : 0);
    row_number(to, "unacked_bytes", node != NULL ? (int64_t)node_metrics_unacked(node) : 0);
    row_number(to, "declined", tally != NULL ? (int64_t)tally->declined : 0);
    row_number(to, "lost", tally != NULL ? (int64_t)tally->lost : 0);
}

static void write_node(struct nats_hub *hub, struct json_text *to, const struct seen_node *node,
                       int64_t now_ms)
{
    row_begin(to, NULL, '{');
    row_string(to, "node", node->name);
    row_string(to, "id", node->id);
    row_string(to, "version", node->version);
    row_number(to, "since_ms", node->up_ms + now_ms - node->heard_ms);
    row_number(to, "round_trip_us", node->round_trip_us);
    write_links(hub, to, node);
    row_end(to, '}');
}

void presence_list(struct nats_hub *hub, struct json_text *to, size_t limit)
{
    struct nats_presence *presence = &hub->presence;
    int64_t now_ms = stdio_bus_event_loop_now_ms(hub->bus->loop);
    struct list_node *node, *following;
    size_t written = 0;

    row_begin(to, NULL, '{');
    row_begin(to, "nodes", '[');
    list_each(&presence->nodes, node, following) {
        struct seen_node *seen = list_entry(node, struct seen_node, link);

        if (seen->heard_ms + SHOWN_MS < now_ms)
            remove_node(presence, seen);
        else if (written++ < limit)
            write_node(hub, to, seen, now_ms);
    }
    row_end(to, ']');
    row_number(to, "total", (int64_t)presence->count);
    row_end(to, '}');
    presence_ask(hub);
}

/* --- events --- */

static struct nats_hub *hub_of(struct broker_watcher *watcher)
{
    return list_entry(watcher, struct nats_hub, presence.watcher);
}

static void ready(struct broker_watcher *watcher)
{
    struct nats_hub *hub = hub_of(watcher);

    reports_send(hub->bus, "connected", "nats", NULL, hub->broker.servers[hub->broker.at].name);
}

/* The reason, with the server, is what the log has, too. */
static void lost(struct broker_watcher *watcher)
{
    struct nats_hub *hub = hub_of(watcher);

    reports_send(hub->bus, "disconnected", "nats", NULL, hub->broker.reported);
}

/* --- from the beginning to the end --- */

void presence_start(struct nats_hub *hub)
{
    struct nats_presence *presence = &hub->presence;

    list_init(&presence->nodes);
    snprintf(presence->subject, sizeof presence->subject, "%s.nodes",
             nats_config_prefix(&hub->config));
    snprintf(presence->answers, sizeof presence->answers, "%s.nodes.%s.*",
             nats_config_prefix(&hub->config), hub->links.id);
    presence->watcher.ready = ready;
    presence->watcher.lost = lost;
    broker_watch(&hub->broker, &presence->watcher);
    presence->asked.subject = presence->subject;
    presence->asked.message = answer;
    presence->answered.subject = presence->answers;
    presence->answered.message = answered;
    if (broker_subscribe(&hub->broker, &presence->asked) != STDIO_BUS_OK ||
        broker_subscribe(&hub->broker, &presence->answered) != STDIO_BUS_OK)
        log_error(hub->bus->log, "nats",
                  "out of memory: this node and others do not see each other");
}

void presence_end(struct nats_hub *hub)
{
    struct nats_presence *presence = &hub->presence;
    struct list_node *node, *following;

    if (list_linked(&presence->watcher.link))
        list_remove(&presence->watcher.link);
    broker_unsubscribe(&hub->broker, &presence->asked);
    broker_unsubscribe(&hub->broker, &presence->answered);
    if (presence->count == 0)
        return;
    list_each(&presence->nodes, node, following)
        remove_node(presence, list_entry(node, struct seen_node, link));
}
