#include "build_config.h"

#include "base/error.h"
#include "router/abilities.h"
#include "router/affinity.h"
#include "router/handshake.h"
#include "router/router_archive.h"

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
    ARCHIVE_INTEGER(archive, handshake->teller);
    archive_flag(archive, &handshake->lacks_roots);
    ARCHIVE_ENUM(archive, handshake->rank, RANK_EMERGENCY);
    archive_versions(archive, &handshake->versions);
}

static void archive_handshake(struct router_archive *state, struct peer *worker)
{
    struct archive *archive = state->archive;
    struct handshake *handshake = worker->handshake;
    bool is_there = handshake != NULL, is_shared = is_there && handshake->shared != NULL;

    archive_flag(archive, &is_there);
    archive_flag(archive, &is_shared);
    if (!is_there || !archive_ok(archive))
        return;
    if (!archive->saves)
        handshake = handshake_of(worker, is_shared ? &state->router->handshakes : NULL);
    if (handshake == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    archive_members(archive, handshake);
    if (!archive->saves)
        handshake_note_errand(handshake);
}

/* --- subscriptions --- */

/* Those that the client has. */
static size_t count_held(const struct subscriber *subscriber)
{
    const struct list_node *node;
    size_t count = 0;

    for (node = subscriber->held.head.next; node != &subscriber->held.head; node = node->next)
        count += list_entry(node, struct holding, in_subscriber)->request == NULL;
    return count;
}

static void begin_subscription(struct archive *archive, struct handshake *handshake,
                               struct subscriber *subscriber, struct slice uri)
{
    struct process_subscriptions *process = &handshake->subscriptions;
    const struct subscription *known = subscriptions_find(process, uri);

    archive_expect(archive,
                   uri.len <= SUBSCRIPTION_URI_MAX &&
                       (known == NULL || subscriptions_held(subscriber, known) == NULL),
                   "a subscription is there twice");
    if (archive_ok(archive) && subscriptions_begin(process, subscriber, uri) != STDIO_BUS_OK)
        archive_fail(archive, NO_MEMORY);
}

static void archive_holdings(struct archive *archive, struct binding *binding)
{
    struct subscriber *subscriber = &binding->subscriber;
    struct handshake *handshake = binding->worker->handshake;
    struct list_node *node = subscriber->held.head.next;
    size_t count = archive_count(archive, count_held(subscriber));

    archive_expect(archive, count == 0 || (handshake != NULL && handshake->shared != NULL),
                   "a subscription has no server");
    while (count > 0 && archive_ok(archive)) {
        const struct holding *saved = ARCHIVE_NEXT(archive, node, struct holding, in_subscriber);
        struct slice uri;

        if (saved != NULL && saved->request != NULL)
            continue; /* it is saved with the request */
        count--;
        uri = archive_slice(archive, saved != NULL ? subscription_uri(saved->subscription)
                                                   : slice_of(NULL, 0));
        if (!archive->saves && archive_ok(archive))
            begin_subscription(archive, handshake, subscriber, uri);
    }
}

/* What the server knows, after what the clients want. */
static void archive_sent(struct archive *archive, struct process_subscriptions *process,
                         const struct subscription *saved)
{
    struct slice uri = archive_slice(archive,
                                     saved != NULL ? subscription_uri(saved) : slice_of(NULL, 0));
    bool sent = saved != NULL && saved->sent;

    archive_flag(archive, &sent);
    archive_expect(archive, uri.len <= SUBSCRIPTION_URI_MAX, "a URI is too long");
    if (!archive->saves && archive_ok(archive) &&
        subscriptions_load(process, uri, sent) != STDIO_BUS_OK)
        archive_fail(archive, NO_MEMORY);
}

static void archive_subscriptions(struct archive *archive, struct process_subscriptions *process)
{
    struct list *const lists[] = {&process->known, &process->asked, &process->wanted,
                                  &process->stale};

    struct list_node *node, *following;
    size_t count = 0, i;

    for (i = 0; archive->saves && i < sizeof lists / sizeof lists[0]; i++)
        count += list_count(lists[i]);
    count = archive_count(archive, count);
    if (!archive->saves) {
        for (; count > 0 && archive_ok(archive); count--)
            archive_sent(archive, process, NULL);
        return;
    }
    for (i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        list_each(lists[i], node, following)
            archive_sent(archive, process, list_entry(node, struct subscription, node));
    }
}

/* The requests in flight that the handshake refers to were loaded before it. */
static int link_request(struct handshake *handshake, struct request *request)
{
    struct request_extras *extras = request->extras;
    struct binding *binding;

    if (extras == NULL)
        return STDIO_BUS_OK;
    if (extras->kind == EXTRAS_OWN)
        list_append(&handshake->own, &extras->shared);
    if (request->state != REQUEST_ACTIVE)
        return STDIO_BUS_OK;
    if (extras->kind == EXTRAS_SETS_LEVEL)
        list_append(&handshake->levels, &extras->shared);
    binding = affinity_binding(request->asker, handshake->worker);
    if (extras->kind != EXTRAS_WATCHES || binding == NULL)
        return STDIO_BUS_OK;
    return subscriptions_ask(&handshake->subscriptions, &binding->subscriber, extras->names,
                             &extras->watched);
}

static void link_requests(struct archive *archive, struct peer *worker)
{
    struct list_node *node, *following;

    if (archive->saves || worker->handshake->shared == NULL)
        return;
    list_each(&worker->answering, node, following) {
        if (archive_ok(archive) &&
            link_request(worker->handshake, list_entry(node, struct request, in_answerer)) !=
                STDIO_BUS_OK)
            archive_fail(archive, NO_MEMORY);
    }
}

/* --- bindings --- */

static void archive_binding(struct router_archive *state, struct binding *binding,
                            struct peer *worker)
{
    struct archive *archive = state->archive;
    struct peer *client = binding != NULL ? binding->client : NULL;
    enum log_rank rank;

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
    rank = binding->rank;
    ARCHIVE_INTEGER(archive, binding->order);
    archive_flag(archive, &binding->chosen);
    archive_flag(archive, &binding->waits);
    ARCHIVE_ENUM(archive, rank, RANK_EMERGENCY);
    affinity_set_rank(binding, rank);
    ARCHIVE_INTEGER(archive, binding->abilities);
    archive_expect(archive, binding->abilities < 1u << ABILITIES, "an ability is unknown");
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
        if (worker->handshake == NULL)
            continue;
        archive_subscriptions(state->archive, &worker->handshake->subscriptions);
        link_requests(state->archive, worker);
    }
}
