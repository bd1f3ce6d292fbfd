#include "build_config.h"

#include "federation/remotes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "router/waiting.h"
#include "supervisor/pools.h"
#include "supervisor/workers.h"

/* --- pools of other nodes --- */

static int dial(void *user_data)
{
    struct nats_remote *remote = user_data;
    int fd = -1;
    struct nats_link *link = link_create(remote->hub, &fd);

    if (link == NULL)
        return -1;
    link->remote = remote;
    remote->dialed = link;
    return fd;
}

static const char *reason_of(void *user_data)
{
    const struct nats_remote *remote = user_data;

    return remote->reason;
}

/* Or no node accepts it. Without a client, its worker ends, too. */
static void overflow_ended(const struct nats_link *link)
{
    struct stdio_bus *bus = link->hub->bus;
    struct worker *worker = workers_numbered(bus, link->overflow);

    if (link->state == LINK_OPENING)
        link->remote->none_ms = stdio_bus_event_loop_now_ms(bus->loop);
    if (worker != NULL && list_empty(&worker->stream.endpoint.peer.bindings))
        worker_handle(worker, WORKER_RETIRE);
}

void remotes_free(struct nats_remote *remote)
{
    free(remote->id);
    free(remote->subject);
    free(remote);
}

struct nats_remote *remotes_get(struct nats_hub *hub, struct slice id, const char *node_id)
{
    size_t size = strlen(nats_config_prefix(&hub->config)) + id.len + NATS_NODE_ID_LEN +
                  sizeof ".open.";
    struct list_node *node, *following;
    struct nats_remote *remote;

    list_each(&hub->links.remotes, node, following) {
        remote = list_entry(node, struct nats_remote, link);
        if (slice_is(id, remote->id) && strcmp(remote->node, node_id) == 0)
            return remote;
    }
    remote = calloc(1, sizeof *remote);
    if (remote == NULL)
        return NULL;
    remote->id = slice_copy(id);
    remote->subject = malloc(size > NODES_SUBJECT_MAX ? size : NODES_SUBJECT_MAX);
    if (remote->id == NULL || remote->subject == NULL) {
        remotes_free(remote);
        return NULL;
    }
    snprintf(remote->node, sizeof remote->node, "%s", node_id);
    if (*node_id != '\0')
        node_subject(remote->subject, hub, node_id, 0);
    else
        snprintf(remote->subject, size, "%s.open.%s", nats_config_prefix(&hub->config), remote->id);
    snprintf(remote->reason, sizeof remote->reason, "the link has ended");
    remote->hub = hub;
    remote->ended = overflow_ended;
    remote->dialer = (struct dialer){.dial = dial, .reason = reason_of, .user_data = remote};
    list_append(&hub->links.remotes, &remote->link);
    return remote;
}

const struct dialer *remotes_dialer(struct nats_hub *hub, const struct pool_config *config)
{
    struct nats_remote *remote = remotes_get(hub, slice_of_text(config->id), "");

    return remote != NULL ? &remote->dialer : NULL;
}

/* --- passages --- */

static struct worker *find_passage(const struct pool *pool, const struct nats_remote *remote)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);

        if (worker->stream.endpoint.peer.is_passage && worker->program.dialer == &remote->dialer &&
            !worker_failed(worker))
            return worker;
    }
    return NULL;
}

struct peer *remotes_passage(struct nats_hub *hub, const struct group *group, const char *node)
{
    struct nats_remote *remote = remotes_get(hub, group->id, node);
    struct pool *pool = list_entry(group, struct pool, group);
    struct worker *worker;

    if (remote == NULL)
        return NULL;
    worker = find_passage(pool, remote);
    if (worker == NULL) {
        worker = pools_add_passage(hub->bus, pool);
        if (worker == NULL)
            return NULL;
        pools_set_dialer(worker, &remote->dialer);
        nodes_start_tick(hub);
    }
    if (worker->state == WORKER_STOPPED)
        worker_handle(worker, WORKER_DEADLINE);
    return &worker->stream.endpoint.peer;
}

/* --- workers for the clients of a full pool --- */

#define AGAIN_MS 1000 /* after no node has taken a client */

/* Those to which a client is yet to come are part of what is wanted. */
static size_t count_missing(const struct pool *pool, size_t wanted)
{
    size_t all = 0, coming = 0, left;
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        const struct worker *worker = list_entry(node, struct worker, link);
        const struct peer *peer = &worker->stream.endpoint.peer;

        all += peer->is_passage;
        coming += peer->drained && pools_passage_comes(worker);
    }
    wanted = wanted > coming ? wanted - coming : 0;
    left = all < pool->config->instances ? pool->config->instances - all : 0;
    return wanted < left ? wanted : left;
}

static struct nats_link *take_dialed(struct nats_remote *remote)
{
    struct nats_link *link = remote->dialed;

    remote->dialed = NULL;
    return link;
}

/* Its link is opened before it serves a client: there may be no node that takes one. False: out of
 * memory. */
static bool add_overflow(struct nats_hub *hub, struct pool *pool, struct nats_remote *remote)
{
    struct worker *worker = pools_add_passage(hub->bus, pool);
    struct nats_link *link;

    if (worker == NULL)
        return false;
    pools_set_dialer(worker, &remote->dialer);
    take_dialed(remote);
    worker_handle(worker, WORKER_DEADLINE);
    link = take_dialed(remote);
    if (link == NULL) { /* that is in the log */
        remote->none_ms = stdio_bus_event_loop_now_ms(hub->bus->loop);
        return true;
    }
    link->overflow = worker->number;
    link_open(link);
    return true;
}

static bool add_all(struct nats_hub *hub, struct pool *pool, struct nats_remote *remote,
                    size_t count)
{
    while (count-- > 0) {
        if (!add_overflow(hub, pool, remote))
            return false;
    }
    return true;
}

void remotes_overflow(struct nats_hub *hub, struct pool *pool, size_t count)
{
    struct nats_remote *remote = remotes_get(hub, pool->group.id, "");
    int64_t now_ms = stdio_bus_event_loop_now_ms(hub->bus->loop);

    nodes_start_tick(hub);
    if (!broker_is_ready(&hub->broker) ||
        (remote != NULL && remote->none_ms != 0 && now_ms - remote->none_ms < AGAIN_MS))
        return;
    if (remote != NULL && add_all(hub, pool, remote, count_missing(pool, count)))
        return;
    log_error(hub->bus->log, "nats", "out of memory: pool %s cannot overflow now",
              pool->config->id);
    if (remote != NULL)
        remote->none_ms = now_ms;
}

bool remotes_are_lacked(struct nats_hub *hub)
{
    struct list_node *node, *following;
    bool any = false;

    list_each(&hub->bus->pools, node, following) {
        const struct pool *pool = list_entry(node, struct pool, link);

        any |= pool->config->overflows && !list_empty(&pool->group.waiting);
    }
    hub->bus->router.demand |= any;
    return any;
}

void remotes_overflow_accepted(const struct nats_link *link)
{
    struct stdio_bus *bus = link->hub->bus;
    struct worker *worker = workers_numbered(bus, link->overflow);

    if (worker != NULL)
        waiting_set_drained(&bus->router, &worker->stream.endpoint.peer, false);
}

/* --- an upgrade --- */

static void archive_passage(struct archive *archive, struct nats_hub *hub, struct worker *worker)
{
    const struct dialer *dialer = worker->program.dialer;
    char id[NATS_NODE_ID_LEN + 1] = "";
    struct nats_remote *remote;

    if (archive->saves && dialer != NULL)
        snprintf(id, sizeof id, "%s", list_entry(dialer, struct nats_remote, dialer)->node);
    archive_text(archive, id, sizeof id);
    if (!archive_loads(archive))
        return;
    remote = remotes_get(hub, slice_of_text(worker->pool_id), id);
    if (archive_made(archive, remote != NULL))
        pools_set_dialer(worker, &remote->dialer);
}

void remotes_archive_passages(struct archive *archive, struct nats_hub *hub)
{
    struct worker *worker = NULL;

    while ((worker = workers_next(hub->bus, worker)) != NULL) {
        if (worker->stream.endpoint.peer.is_passage)
            archive_passage(archive, hub, worker);
    }
    if (archive_loads(archive))
        nodes_start_tick(hub);
}
