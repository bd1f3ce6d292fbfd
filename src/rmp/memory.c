#include "build_config.h"

#include "rmp/memory.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/error.h"
#include "rmp/peer.h"

/* Users are no choice of a client's: their numbers need no key. */
static uint64_t hash_of(uint32_t number)
{
    return number;
}

static bool has_number(const void *item, const void *number)
{
    return ((const struct rmp_user *)item)->number == *(const uint32_t *)number;
}

struct rmp_user *rmp_memory_user(struct rmp_memory *memory, uint32_t number)
{
    struct rmp_user *user = hash_table_find(&memory->users, hash_of(number), has_number, &number);

    if (user != NULL)
        return user;
    user = calloc(1, sizeof *user);
    if (user == NULL)
        return NULL;
    user->number = number;
    list_init(&user->known);
    if (hash_table_insert(&memory->users, hash_of(number), user) == STDIO_BUS_OK)
        return user;
    free(user);
    return NULL;
}

/* Less than 1/(2 * present) of max. */
static bool is_below(size_t held, size_t max, size_t present)
{
    return (uint64_t)held * 2 * present < max;
}

bool rmp_memory_may_take(const struct rmp_memory *memory, enum rmp_account account, size_t bytes,
                         const struct rmp_user *user, const struct rmp_peer *peer)
{
    size_t max = memory->max[account];

    return memory->bytes[account] + bytes <= max ||
           is_below(user->held[account], max, memory->users.count) ||
           (peer != NULL && is_below(peer->held, max, memory->peers));
}

void rmp_memory_count(struct rmp_memory *memory, enum rmp_account account, struct rmp_user *user,
                      size_t before, size_t after)
{
    ASSERT(user->held[account] >= before);
    memory->bytes[account] += after - before;
    user->held[account] += after - before;
    if (memory->total != NULL)
        *memory->total += after - before;
}

void rmp_memory_settle(struct rmp_memory *memory, struct rmp_user *user)
{
    if (user->held[RMP_SUBSCRIPTIONS] > 0 || user->held[RMP_KEYS] > 0)
        return;
    hash_table_remove(&memory->users, hash_of(user->number), user);
    free(user);
}

void rmp_memory_free(struct rmp_memory *memory)
{
    ASSERT(memory->users.count == 0);
    hash_table_free(&memory->users);
}
