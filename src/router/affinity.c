#include "build_config.h"

#include "router/affinity.h"

#include <stdlib.h>

#include "base/error.h"
#include "router/handshake.h"

struct peer *affinity_worker(const struct peer *client, const struct group *pool)
{
    const struct list_node *node;

    for (node = client->bindings.head.next; node != &client->bindings.head; node = node->next) {
        struct peer *worker = list_entry(node, struct binding, in_client)->worker;

        if (worker->pool == pool)
            return worker;
    }
    return NULL;
}

size_t affinity_count(const struct peer *worker)
{
    return list_count(&worker->bindings);
}

int affinity_add(struct peer *client, struct peer *worker)
{
    struct binding *binding = calloc(1, sizeof *binding);

    if (binding == NULL)
        return STDIO_BUS_ERR;
    binding->client = client;
    binding->worker = worker;
    if (!list_empty(&worker->bindings))
        binding->order = list_entry(worker->bindings.head.prev, struct binding, in_worker)->order;
    binding->order++;
    list_append(&client->bindings, &binding->in_client);
    list_append(&worker->bindings, &binding->in_worker);
    return STDIO_BUS_OK;
}

static void remove_binding(struct binding *binding)
{
    list_remove(&binding->in_client);
    list_remove(&binding->in_worker);
    handshake_free(binding->handshake);
    free(binding);
}

static void leave(struct binding *binding)
{
    /* A process that is yet to come has not heard of the client. */
    if (binding->worker->availability == PEER_READY)
        binding->worker->client_left = true;
    remove_binding(binding);
}

void affinity_remove(struct peer *client, const struct peer *worker)
{
    struct list_node *node, *following;

    list_each(&client->bindings, node, following) {
        if (list_entry(node, struct binding, in_client)->worker == worker)
            leave(list_entry(node, struct binding, in_client));
    }
}

void affinity_clear_client(struct peer *client)
{
    struct list_node *node, *following;

    list_each(&client->bindings, node, following)
        leave(list_entry(node, struct binding, in_client));
}

void affinity_clear_worker(struct peer *worker)
{
    struct list_node *node, *following;

    list_each(&worker->bindings, node, following)
        remove_binding(list_entry(node, struct binding, in_worker));
}
