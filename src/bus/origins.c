#include "build_config.h"

#include "bus/origins.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash_table.h"
#include "base/siphash.h"

struct present_origin {
    uint64_t hash; /* in bus->origins */
    struct origin origin;
    struct peer_origin peers;
    struct transport_origin transport;
    struct event_owner events;
    size_t references;
    struct stdio_bus *bus;
};

static struct present_origin *present_of(struct peer_origin *origin)
{
    return list_entry(origin, struct present_origin, peers);
}

static uint64_t hash_of(const struct stdio_bus *bus, const struct origin *origin)
{
    return siphash(&bus->origins_key, origin->key, sizeof origin->key);
}

static bool is_origin(const void *item, const void *origin)
{
    return origin_equal(&((const struct present_origin *)item)->origin, origin);
}

struct peer_origin *origins_find(const struct stdio_bus *bus, const struct origin *origin)
{
    struct present_origin *present = hash_table_find(&bus->origins, hash_of(bus, origin), is_origin,
                                                     origin);

    return present != NULL ? &present->peers : NULL;
}

struct peer_origin *origins_get(struct stdio_bus *bus, const struct origin *origin)
{
    struct peer_origin *found = origins_find(bus, origin);
    struct present_origin *present;

    if (found != NULL) {
        origins_hold(found);
        return found;
    }
    present = calloc(1, sizeof *present);
    if (present == NULL)
        return NULL;
    present->origin = *origin;
    present->bus = bus;
    present->hash = hash_of(bus, origin);
    present->references = 1;
    if (hash_table_insert(&bus->origins, present->hash, present) != STDIO_BUS_OK) {
        free(present);
        return NULL;
    }
    bus->transport.origin_count++;
    peer_origin_init(&present->peers);
    transport_origin_init(&present->transport);
    event_owner_init(&present->events);
    return &present->peers;
}

struct transport_origin *origins_transport(struct peer_origin *origin)
{
    return &present_of(origin)->transport;
}

struct event_owner *origins_events(struct peer_origin *origin)
{
    return &present_of(origin)->events;
}

void origins_hold(struct peer_origin *origin)
{
    if (origin != NULL)
        present_of(origin)->references++;
}

void origins_release(struct peer_origin *origin)
{
    struct present_origin *present;

    if (origin == NULL)
        return;
    present = present_of(origin);
    if (--present->references > 0)
        return;
    present->bus->transport.origin_count--;
    hash_table_remove(&present->bus->origins, present->hash, present);
    free(present);
}

/* --- the archive --- */

void origin_archive(struct archive *archive, struct origin *origin)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct origin, key, uid, gid, pid),
        ARCHIVE_FLAGS(struct origin, is_local, has_credentials),
        ARCHIVE_TEXTS(struct origin, text, name),
    };

    ARCHIVE_FIELDS(archive, origin, fields);
}

void origins_archive(struct archive *archive, struct stdio_bus *bus, struct peer_origin **origin)
{
    struct origin found = {.is_local = false};

    if (!archive_present(archive, *origin != NULL))
        return;
    if (archive->saves)
        found = present_of(*origin)->origin;
    origin_archive(archive, &found);
    if (archive_loads(archive))
        *origin = origins_get(bus, &found);
    if (!archive_made(archive, *origin != NULL))
        return;
    archive_bytes(archive, (*origin)->homes, sizeof(*origin)->homes);
    ARCHIVE_INTEGER(archive, (*origin)->next_home);
}
