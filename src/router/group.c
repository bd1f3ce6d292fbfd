#include "build_config.h"

#include "router/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void group_init(struct group *group, struct slice id, const struct pool_mode *mode)
{
    memset(group, 0, sizeof *group);
    group->id = id;
    group->mode = *mode;
    group->plain = pool_mode_is_plain(mode);
    group->takes_long = mode->protocol != PROTOCOL_UNKNOWN;
    group->reads_tokens = pool_mode_reads_tokens(mode);
    group->keeps_extras = mode->session_in_params || mode->request_timeout_sec > 0;
    group->reads_tasks = pool_mode_reads_tasks(mode);
    group->one_handshake = pool_mode_shares_handshake(mode);
    turns_init(&group->senders, TURNS_OF_GROUP);
    list_init(&group->waiting);
    list_init(&group->claims);
    list_init(&group->penalties);
    list_init(&group->timed);
}

void group_free(struct group *group)
{
    list_remove(&group->timing);
    free(group->workers);
    group->workers = NULL;
    group->count = 0;
}

int group_add(struct group *group, struct peer *worker)
{
    struct peer **workers = realloc(group->workers, (group->count + 1) * sizeof(struct peer *));

    if (workers == NULL)
        return STDIO_BUS_ERR;
    group->workers = workers;
    workers[group->count++] = worker;
    return STDIO_BUS_OK;
}

/* The worker's place, or group->count. */
static size_t place_of(const struct group *group, const struct peer *worker)
{
    size_t i;

    for (i = 0; i < group->count && group->workers[i] != worker; i++)
        ;
    return i;
}

void group_remove(struct group *group, const struct peer *worker)
{
    size_t place = place_of(group, worker);

    if (place == group->count)
        return;
    group->count--;
    memmove(&group->workers[place], &group->workers[place + 1],
            (group->count - place) * sizeof(struct peer *));
    if (group->turn > place)
        group->turn--;
}

bool group_has(const struct group *group, const struct peer *worker)
{
    return place_of(group, worker) < group->count;
}

bool group_is_served(const struct group *group)
{
    size_t i;

    for (i = 0; i < group->count; i++) {
        const struct peer *worker = group->workers[i];

        if (worker->pool == group && !peer_is_fresh(worker) && !worker->alone &&
            worker->availability != PEER_FAILED)
            return true;
    }
    return false;
}
