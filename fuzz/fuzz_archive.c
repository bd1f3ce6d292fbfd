/* The archive of an upgrade in place: any bytes are loaded into a router, or refused. What was
 * loaded is saved as bytes that are loaded again. */
#include "build_config.h"

#include "base/archive.h"
#include "base/error.h"
#include "common.h"
#include "router/affinity.h"
#include "router/fresh.h"
#include "router/greeting.h"
#include "router/router_archive.h"
#include "json/scanner.h"

#define CLIENTS 3
#define WORKERS 4

struct world {
    struct limits limits;
    struct router router;
    struct group pools[2];
    struct fresh fresh; /* of the second one */
    struct peer clients[CLIENTS], workers[WORKERS];
    struct scanner scanner;
};

static void begin(struct world *world)
{
    static const struct pool_mode modes[] = {
        {.clients = CLIENTS_SHARED},
        {.clients = CLIENTS_STICKY,
         .protocol = PROTOCOL_MCP,
         .rewrite_ids = true,
         .request_timeout_sec = 5},
    };
    const struct siphash_key key = {1, 2};

    *world = (struct world){.limits = LIMITS_DEFAULT};
    router_init(&world->router, &world->limits, &key);
    for (size_t i = 0; i < 2; i++) {
        group_init(&world->pools[i], slice_of(i == 0 ? "a" : "b", 1), &modes[i]);
        router_add_pool(&world->router, &world->pools[i]);
    }
    fresh_init(&world->fresh);
    world->pools[1].fresh = &world->fresh;
    for (size_t i = 0; i < CLIENTS; i++) {
        router_add_client(&world->router, &world->clients[i]);
        router_admit_client(&world->router, &world->clients[i]);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        if (router_add_worker(&world->router, &world->workers[i], &world->pools[i % 2]) !=
            STDIO_BUS_OK)
            abort();
    }
}

static void end(struct world *world)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        affinity_clear_client(&world->clients[i]);
        affinity_clear_worker(&world->clients[i]);
        greeting_forget(&world->clients[i]);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        affinity_clear_client(&world->workers[i]);
        affinity_clear_worker(&world->workers[i]);
        greeting_forget(&world->workers[i]);
    }
    router_free(&world->router);
    fresh_clear(&world->fresh);
    for (size_t i = 0; i < 2; i++)
        group_free(&world->pools[i]);
}

static void archive_world(struct archive *archive, struct world *world)
{
    struct router_archive state;

    scanner_archive(archive, &world->scanner);
    router_archive_begin(&state, archive, &world->router);
    for (size_t i = 0; i < CLIENTS; i++)
        router_archive_peer(&state, &world->clients[i]);
    for (size_t i = 0; i < WORKERS; i++)
        router_archive_peer(&state, &world->workers[i]);
    router_archive_groups(&state);
    router_archive_tables(&state);
    archive_mark(archive, "end");
    router_archive_end(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    struct archive archive, saved;
    char *bytes = fuzz_copy(data, size);
    bool loaded;

    begin(&world);
    archive_begin_loading(&archive, slice_of(bytes, size), -1);
    archive_world(&archive, &world);
    loaded = archive_ok(&archive);
    EXPECT(archive.at <= size, "read %zu of %zu bytes", archive.at, size);
    archive_free(&archive);
    free(bytes);
    archive_begin_saving(&saved);
    archive_world(&saved, &world); /* also what was loaded in part */
    EXPECT(archive_ok(&saved), "%s", saved.problem);
    end(&world);
    if (loaded) {
        begin(&world);
        archive_begin_loading(&archive, slice_of(saved.data, saved.len), -1);
        archive_world(&archive, &world);
        EXPECT(archive_ok(&archive), "%s: %s", archive.part, archive.problem);
        archive_free(&archive);
        end(&world);
    }
    archive_free(&saved);
    return 0;
}
