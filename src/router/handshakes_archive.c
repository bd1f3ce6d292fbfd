#include "build_config.h"

#include "base/error.h"
#include "router/affinity.h"
#include "router/router_archive.h"
#include "router/versions.h"

#define NO_MEMORY "out of memory"

/* --- versions --- */

static void archive_version(struct archive *archive, struct list *versions, struct version *version)
{
    struct slice name = archive_slice(archive, version != NULL
                                                   ? slice_of(version->name, version->name_len)
                                                   : slice_of(NULL, 0));

    archive_expect(archive, name.data != NULL && name.len <= VERSION_NAME_MAX,
                   "a version has no name");
    if (!archive_ok(archive))
        return;
    if (!archive->saves)
        version = versions_new(versions, name);
    if (version == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    ARCHIVE_ENUM(archive, version->state, VERSION_REFUSED);
    kept_message_archive(&version->request, archive);
    kept_message_archive(&version->answer, archive);
}

static void archive_versions(struct archive *archive, struct list *versions)
{
    struct list_node *node = versions->head.next;
    size_t count = archive_count(archive, list_count(versions));

    for (; count > 0 && archive_ok(archive); count--)
        archive_version(archive, versions, ARCHIVE_NEXT(archive, node, struct version, node));
}

/* --- the handshake --- */

static void archive_members(struct archive *archive, struct handshake *handshake)
{
    for (int i = 0; i < HANDSHAKE_PARTS; i++)
        kept_message_archive(&handshake->parts[i], archive);
    archive_text(archive, handshake->answer.version, sizeof handshake->answer.version);
    for (int i = 0; i < HANDSHAKE_LISTS; i++)
        archive_flag(archive, &handshake->answer.announces[i]);
    archive_flag(archive, &handshake->answered);
    archive_flag(archive, &handshake->lost);
    archive_flag(archive, &handshake->replays);
    ARCHIVE_ENUM(archive, handshake->awaited, HANDSHAKE_PARTS - 1);
    ARCHIVE_INTEGER(archive, handshake->confirmer);
    ARCHIVE_ENUM(archive, handshake->rank, RANK_EMERGENCY);
    archive_versions(archive, &handshake->versions);
}

static void archive_handshake(struct router_archive *state, struct peer *worker)
{
    struct archive *archive = state->archive;
    struct handshake *handshake = worker->handshake;
    bool is_there = handshake != NULL, is_shared = is_there && handshake->errands != NULL;

    archive_flag(archive, &is_there);
    archive_flag(archive, &is_shared);
    if (!is_there || !archive_ok(archive))
        return;
    if (!archive->saves)
        handshake = handshake_of(worker, is_shared ? &state->router->errands : NULL);
    if (handshake == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    archive_members(archive, handshake);
    if (!archive->saves)
        handshake_note_errand(handshake);
}

/* --- subscriptions --- */

static void archive_holdings(struct archive *archive, struct binding *binding)
{
    struct subscriber *subscriber = &binding->subscriber;
    struct handshake *handshake = binding->worker->handshake;
    struct list_node *node = subscriber->held.head.next;
    size_t count = archive_count(archive, list_count(&subscriber->held));

    archive_expect(archive, count == 0 || handshake != NULL, "a subscription has no server");
    for (; count > 0 && archive_ok(archive); count--) {
        const struct holding *saved = ARCHIVE_NEXT(archive, node, struct holding, node);
        struct slice uri = archive_slice(archive, saved != NULL ? saved->subscription->uri
                                                                : slice_of(NULL, 0));

        if (!archive->saves && archive_ok(archive) &&
            subscriptions_begin(&handshake->subscriptions, subscriber, uri) != STDIO_BUS_OK)
            archive_fail(archive, NO_MEMORY);
    }
}

/* What the server knows, after what the clients want. */
static void archive_sent(struct archive *archive, struct list *subscriptions,
                         const struct subscription *saved)
{
    struct slice uri = archive_slice(archive, saved != NULL ? saved->uri : slice_of(NULL, 0));
    bool sent = saved != NULL && saved->sent;
    struct subscription *loaded;

    archive_flag(archive, &sent);
    if (archive->saves || !archive_ok(archive))
        return;
    subscriptions_add_stale(subscriptions, uri);
    loaded = subscriptions_find(subscriptions, uri);
    if (loaded == NULL)
        archive_fail(archive, NO_MEMORY);
    else
        loaded->sent = sent;
}

static void archive_subscriptions(struct archive *archive, struct list *subscriptions)
{
    struct list_node *node = subscriptions->head.next;
    size_t count = archive_count(archive, archive->saves ? list_count(subscriptions) : 0);

    for (; count > 0 && archive_ok(archive); count--)
        archive_sent(archive, subscriptions,
                     ARCHIVE_NEXT(archive, node, struct subscription, node));
}

/* --- bindings --- */

static void archive_binding(struct router_archive *state, struct binding *binding,
                            struct peer *worker)
{
    struct archive *archive = state->archive;
    struct peer *client = binding != NULL ? binding->client : NULL;

    router_archive_reference(state, &client);
    archive_expect(archive, client != NULL, "a binding has no client");
    if (!archive_ok(archive))
        return;
    if (!archive->saves && affinity_add(client, worker) == STDIO_BUS_OK)
        binding = affinity_binding(client, worker);
    if (binding == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    ARCHIVE_INTEGER(archive, binding->order);
    archive_flag(archive, &binding->chosen);
    archive_flag(archive, &binding->waits);
    ARCHIVE_ENUM(archive, binding->rank, RANK_EMERGENCY);
    archive_holdings(archive, binding);
}

static void archive_bindings(struct router_archive *state, struct peer *worker)
{
    struct list_node *node = worker->bindings.head.next;
    size_t count = archive_count(state->archive, list_count(&worker->bindings));

    for (; count > 0 && archive_ok(state->archive); count--)
        archive_binding(state, ARCHIVE_NEXT(state->archive, node, struct binding, in_worker),
                        worker);
}

void router_archive_handshakes(struct router_archive *state)
{
    for (size_t i = 0; i < state->count && archive_ok(state->archive); i++) {
        struct peer *worker = state->peers[i];

        if (worker->pool == NULL)
            continue;
        archive_mark(state->archive, "binding");
        archive_handshake(state, worker);
        archive_bindings(state, worker);
        if (worker->handshake != NULL)
            archive_subscriptions(state->archive, &worker->handshake->subscriptions);
    }
}
