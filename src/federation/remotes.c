#include "build_config.h"

#include "federation/remotes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/pools.h"
#include "bus/workers.h"

/* --- pools of other nodes --- */

static int dial(void *user_data)
{
    struct nats_remote *remote = user_data;
    int fd = -1;
    struct nats_link *link = link_create(remote->hub, &fd);

    if (link == NULL)
        return -1;
    link->remote = remote;
    return fd;
}

static const char *reason_of(void *user_data)
{
    const struct nats_remote *remote = user_data;

    return remote->reason;
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

        if (worker->is_passage && worker->program.dialer == &remote->dialer &&
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
        if (worker->is_passage)
            archive_passage(archive, hub, worker);
    }
    if (archive_loads(archive))
        nodes_start_tick(hub);
}
