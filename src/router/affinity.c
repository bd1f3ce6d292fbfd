#include "build_config.h"

#include "router/affinity.h"

#include <stdlib.h>

#include "base/error.h"

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

struct binding *affinity_binding(const struct peer *client, const struct peer *worker)
{
    const struct list_node *node;

    for (node = client->bindings.head.next; node != &client->bindings.head; node = node->next) {
        struct binding *binding = list_entry(node, struct binding, in_client);

        if (binding->worker == worker)
            return binding;
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
    subscriber_init(&binding->subscriber, client);
    if (!list_empty(&worker->bindings))
        binding->order = list_entry(worker->bindings.head.prev, struct binding, in_worker)->order;
    binding->order++;
    list_append(&client->bindings, &binding->in_client);
    list_append(&worker->bindings, &binding->in_worker);
    return STDIO_BUS_OK;
}

void affinity_set_rank(struct binding *binding, enum log_rank rank)
{
    struct handshake *handshake = binding->worker->handshake;

    if (handshake != NULL) {
        handshake->ranks[binding->rank]--;
        handshake->ranks[rank]++;
    }
    binding->rank = rank;
}

static void remove_binding(struct binding *binding)
{
    affinity_set_rank(binding, RANK_NONE);
    list_remove(&binding->in_client);
    list_remove(&binding->in_worker);
    if (binding->worker->rest == PEER_CALLED && list_empty(&binding->worker->bindings))
        binding->worker->rest = PEER_ASLEEP;
    subscriptions_end_all(&binding->subscriber);
    free(binding);
}

static void leave(struct binding *binding)
{
    struct peer *worker = binding->worker;

    /* A process that is yet to come has not heard of the client. */
    if (peer_serves(worker))
        worker->client_left = true;
    remove_binding(binding);
    if (worker->handshake == NULL)
        return;
    handshake_note_errand(worker->handshake);
    if (list_empty(&worker->bindings) && !handshake_outlives_clients(worker->handshake))
        handshake_forget(worker);
}

void affinity_remove(struct peer *client, const struct peer *worker)
{
    struct binding *binding = affinity_binding(client, worker);

    if (binding != NULL)
        leave(binding);
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
    handshake_forget(worker);
    worker->alone = false;
}
