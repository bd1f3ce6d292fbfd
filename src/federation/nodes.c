#include "build_config.h"

#include "federation/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "federation/tallies.h"
#include "transport/origin.h"

/* --- addresses --- */

static bool is_id(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.data[i];

        if ((byte < '0' || byte > '9') && (byte < 'a' || byte > 'f'))
            return false;
    }
    return text.len == NATS_NODE_ID_LEN;
}

/* The name is foreign text: nothing but what a name of the configuration may have. */
static bool is_name(struct slice text)
{
    return text.len <= NATS_NODE_NAME_MAX && (text.len == 0 || nats_name_is_right(text));
}

bool node_address_read(struct node_address *address, struct slice text)
{
    struct slice id, number;

    (void)slice_cut(&text, ' ', &id);
    (void)slice_cut(&text, ' ', &number);
    if (!is_id(id) || !nats_number_read(number, &address->number) || !is_name(text))
        return false;
    memcpy(address->id, id.data, id.len);
    address->id[id.len] = '\0';
    snprintf(address->name, sizeof address->name, "%.*s", (int)text.len,
             text.len > 0 ? text.data : "");
    return true;
}

struct slice node_address_write(char to[NODES_ADDRESS_MAX], const struct nats_hub *hub,
                                uint64_t number)
{
    const char *name = hub->config.node != NULL ? hub->config.node : "";

    snprintf(to, NODES_ADDRESS_MAX, "%s %llu %s", hub->links.id, (unsigned long long)number, name);
    return slice_of_text(to);
}

const char *node_subject(char to[NODES_SUBJECT_MAX], const struct nats_hub *hub, const char *id,
                         uint64_t number)
{
    snprintf(to, NODES_SUBJECT_MAX, "%s.node.%s.%llu", nats_config_prefix(&hub->config), id,
             (unsigned long long)number);
    return to;
}

void node_origin(struct origin *origin, const struct node_address *address)
{
    const char *name = address->name[0] != '\0' ? address->name : address->id;

    memset(origin, 0, sizeof *origin);
    origin_of_token(origin, "nats node", name);
    snprintf(origin->name, sizeof origin->name, "node %s", name);
    snprintf(origin->text, sizeof origin->text, "node %s", name);
}

/* --- messages --- */

void node_send(struct nats_hub *hub, const struct nats_head *head,
               const struct link_message *message)
{
    struct nats_head whole = *head;
    char bytes[LINK_HEAD_LEN];

    if (!broker_is_ready(&hub->broker))
        return;
    link_message_write(bytes, message);
    whole.prefix = slice_of(bytes, sizeof bytes);
    if (broker_send(&hub->broker, &whole, message->payload) != STDIO_BUS_OK)
        log_repeated(hub->bus->log, LOG_LEVEL_WARN, "nats", LOG_NO_SOURCE,
                     "a message of a link is not sent: out of memory, or max_payload is too small");
}

void node_tell(struct nats_hub *hub, const char *id, uint64_t number, enum link_kind kind,
               struct slice text)
{
    const struct link_message message = {.kind = kind, .payload = text};
    char subject[NODES_SUBJECT_MAX];

    node_send(hub,
              &(struct nats_head){.subject = slice_of_text(node_subject(subject, hub, id, number))},
              &message);
}

/* --- nodes --- */

struct nats_node *nodes_find(const struct nats_hub *hub, const char *id)
{
    struct list_node *node, *following;

    list_each(&hub->links.nodes, node, following) {
        struct nats_node *one = list_entry(node, struct nats_node, link);

        if (strcmp(one->id, id) == 0)
            return one;
    }
    return NULL;
}

struct nats_node *nodes_get(struct nats_hub *hub, const struct node_address *address)
{
    struct nats_node *node = nodes_find(hub, address->id);

    if (node != NULL)
        return node;
    node = calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    memcpy(node->id, address->id, sizeof node->id);
    memcpy(node->name, address->name, sizeof node->name);
    list_init(&node->links);
    node->tally = tallies_get(hub, node->name);
    nodes_note_life(hub, node);
    list_append(&hub->links.nodes, &node->link);
    return node;
}

void nodes_note_life(const struct nats_hub *hub, struct nats_node *node)
{
    node->heard_ms = stdio_bus_event_loop_now_ms(hub->bus->loop);
    node->is_awaited = false;
}

/* It may need a while for its own next connection; not once more with each further one of this
 * node. */
void nodes_await(const struct nats_hub *hub, struct nats_node *node, int64_t away_ms)
{
    if (node->is_awaited)
        node->heard_ms += away_ms;
    else
        node->heard_ms = stdio_bus_event_loop_now_ms(hub->bus->loop) + NODES_AGAIN_MS -
                         NODES_SILENT_MS;
    node->is_awaited = true;
}

void nodes_start_tick(struct nats_hub *hub)
{
    if (!timer_started(&hub->links.tick))
        stdio_bus_event_loop_start_timer(hub->bus->loop, &hub->links.tick, NODES_TICK_MS);
}

void nodes_release(struct nats_node *node)
{
    if (!list_empty(&node->links))
        return;
    list_remove(&node->link);
    free(node);
}

const char *node_name(const struct nats_node *node)
{
    return node->name[0] != '\0' ? node->name : node->id;
}

struct nats_node *nodes_heard(struct nats_hub *hub, const struct link_message *message)
{
    char id[NATS_NODE_ID_LEN + 1];
    struct nats_node *node;

    if (!is_id(message->payload))
        return NULL;
    snprintf(id, sizeof id, "%.*s", (int)message->payload.len, message->payload.data);
    node = nodes_find(hub, id);
    if (message->kind == LINK_GONE)
        return node;
    if (node != NULL)
        nodes_note_life(hub, node);
    else
        node_tell(hub, id, 0, LINK_GONE, slice_of_text(hub->links.id));
    return NULL;
}
