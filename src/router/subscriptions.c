#include "build_config.h"

#include "router/subscriptions.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static struct subscription *subscription_of(const struct list_node *node)
{
    return list_entry(node, struct subscription, node);
}

void subscriptions_init(struct subscriptions *all, const struct siphash_key *key, size_t max_bytes)
{
    memset(all, 0, sizeof *all);
    all->key = *key;
    all->max_bytes = max_bytes;
}

void subscriptions_free(struct subscriptions *all)
{
    ASSERT(all->by_uri.count == 0 && all->by_client.count == 0 && all->bytes == 0);
    hash_table_free(&all->by_uri);
    hash_table_free(&all->by_client);
}

void process_subscriptions_init(struct process_subscriptions *process, struct subscriptions *all,
                                uint64_t number)
{
    process->all = all;
    process->number = number;
    process->notices = 0;
    list_init(&process->known);
    list_init(&process->asked);
    list_init(&process->wanted);
    list_init(&process->stale);
}

/* --- the tables --- */

struct uri_key {
    const struct process_subscriptions *process;
    struct slice uri;
};

struct client_key {
    const struct subscription *subscription;
    const struct subscriber *subscriber;
};

static bool uri_equal(const void *item, const void *key)
{
    const struct subscription *subscription = item;
    const struct uri_key *wanted = key;

    return subscription->process == wanted->process &&
           slice_equal(subscription_uri(subscription), wanted->uri);
}

static bool client_equal(const void *item, const void *key)
{
    const struct holding *holding = item;
    const struct client_key *wanted = key;

    return holding->subscription == wanted->subscription &&
           holding->subscriber == wanted->subscriber;
}

static uint64_t hash_of(const struct process_subscriptions *process, struct slice uri)
{
    return siphash(&process->all->key, uri.data, uri.len) ^ process->number;
}

static struct subscription *find_subscription(const struct process_subscriptions *process,
                                              struct slice uri, uint64_t hash)
{
    const struct uri_key key = {process, uri};

    return hash_table_find(&process->all->by_uri, hash, uri_equal, &key);
}

struct subscription *subscriptions_find(const struct process_subscriptions *process,
                                        struct slice uri)
{
    return find_subscription(process, uri, hash_of(process, uri));
}

struct holding *subscriptions_held(const struct subscriber *subscriber,
                                   const struct subscription *subscription)
{
    const struct client_key key = {subscription, subscriber};

    return hash_table_find(&subscription->process->all->by_client,
                           subscription->hash ^ subscriber->client->number, client_equal, &key);
}

/* --- what they count --- */

static size_t bytes_of(const struct subscription *subscription)
{
    return SUBSCRIPTION_BYTES(subscription->uri_len);
}

static void count_bytes(struct subscriptions *all, size_t bytes, bool more)
{
    size_t change = more ? bytes : 0 - bytes;

    all->bytes += change;
    if (all->account != NULL)
        *all->account += change;
}

static void count_held(const struct holding *holding, bool more)
{
    struct subscriber *subscriber = holding->subscriber;
    struct peer *client = subscriber->client;
    size_t bytes = bytes_of(holding->subscription), change = more ? bytes : 0 - bytes;

    subscriber->count += more ? 1 : (size_t)-1;
    client->held[PEER_SUBSCRIPTIONS] += change;
    if (client->origin != NULL)
        client->origin->held[PEER_SUBSCRIPTIONS] += change;
    count_bytes(holding->subscription->process->all, bytes, more);
}

static void set_stale(struct subscription *subscription, bool is_stale)
{
    struct subscriptions *all = subscription->process->all;
    size_t bytes = bytes_of(subscription);

    if (is_stale == subscription->is_stale)
        return;
    subscription->is_stale = is_stale;
    all->stale_bytes += is_stale ? bytes : 0 - bytes;
    count_bytes(all, bytes, is_stale);
}

/* --- the list that one belongs on --- */

static void forget_subscription(struct subscription *subscription)
{
    ASSERT(list_empty(&subscription->holders) && list_empty(&subscription->waiting));
    set_stale(subscription, false);
    list_remove(&subscription->node);
    hash_table_remove(&subscription->process->all->by_uri, subscription->hash, subscription);
    free(subscription);
}

/* Clients that come, subscribe and go may be faster than the server, which then is not told of the
 * oldest: what it says of them is dropped. */
static void limit_stale(struct process_subscriptions *process)
{
    while (process->all->stale_bytes > process->all->max_bytes / 4 && !list_empty(&process->stale))
        forget_subscription(subscription_of(list_take_first(&process->stale)));
}

/* After any change. The subscription may be freed. */
static void settle(struct subscription *subscription)
{
    struct process_subscriptions *process = subscription->process;
    bool is_held = !list_empty(&subscription->holders);

    list_remove(&subscription->node);
    if (subscription->asked != NULL) {
        set_stale(subscription, false);
        list_append(&process->asked, &subscription->node);
    } else if (is_held) {
        set_stale(subscription, false);
        list_append(subscription->sent ? &process->known : &process->wanted, &subscription->node);
    } else if (subscription->sent) {
        set_stale(subscription, true);
        list_append(&process->stale, &subscription->node);
        limit_stale(process);
    } else {
        forget_subscription(subscription);
    }
}

/* --- from the first subscriber to the last one --- */

/* The subscription of this URI, a new one if need be, which is settled later. NULL if out of
 * memory. */
static struct subscription *get(struct process_subscriptions *process, struct slice uri)
{
    uint64_t hash = hash_of(process, uri);
    struct subscription *subscription = find_subscription(process, uri, hash);

    if (subscription != NULL)
        return subscription;
    subscription = calloc(1, sizeof *subscription + uri.len);
    if (subscription == NULL)
        return NULL;
    if (uri.len > 0)
        memcpy(subscription->uri, uri.data, uri.len);
    subscription->uri_len = uri.len;
    subscription->hash = hash;
    subscription->process = process;
    list_init(&subscription->holders);
    list_init(&subscription->waiting);
    if (hash_table_insert(&process->all->by_uri, hash, subscription) == STDIO_BUS_OK)
        return subscription;
    free(subscription);
    return NULL;
}

/* NULL if out of memory; then nothing has changed. */
static struct holding *add_holding(struct process_subscriptions *process,
                                   struct subscriber *subscriber, struct slice uri)
{
    struct holding *holding = calloc(1, sizeof *holding);
    struct subscription *subscription;

    if (holding == NULL)
        return NULL;
    subscription = get(process, uri);
    if (subscription == NULL)
        goto fail;
    ASSERT(subscriptions_held(subscriber, subscription) == NULL);
    holding->hash = subscription->hash ^ subscriber->client->number;
    if (hash_table_insert(&process->all->by_client, holding->hash, holding) != STDIO_BUS_OK) {
        settle(subscription);
        goto fail;
    }
    holding->subscription = subscription;
    holding->subscriber = subscriber;
    list_append(&subscriber->held, &holding->in_subscriber);
    count_held(holding, true);
    return holding;
fail:
    free(holding);
    return NULL;
}

int subscriptions_begin(struct process_subscriptions *process, struct subscriber *subscriber,
                        struct slice uri)
{
    struct holding *holding = add_holding(process, subscriber, uri);

    if (holding == NULL)
        return STDIO_BUS_ERR;
    list_append(&holding->subscription->holders, &holding->in_subscription);
    holding->subscription->sent = true;
    settle(holding->subscription);
    return STDIO_BUS_OK;
}

int subscriptions_ask(struct process_subscriptions *process, struct subscriber *subscriber,
                      struct slice uri, struct holding **request)
{
    struct holding *holding = add_holding(process, subscriber, uri);

    if (holding == NULL)
        return STDIO_BUS_ERR;
    ASSERT(holding->subscription->asked == NULL);
    holding->subscription->asked = holding;
    holding->request = request;
    *request = holding;
    settle(holding->subscription);
    return STDIO_BUS_OK;
}

static void drop(struct holding *holding)
{
    struct subscription *subscription = holding->subscription;

    if (holding->request != NULL) {
        *holding->request = NULL;
        subscription->asked = NULL;
    }
    list_remove(&holding->in_subscription);
    list_remove(&holding->in_subscriber);
    count_held(holding, false);
    hash_table_remove(&subscription->process->all->by_client, holding->hash, holding);
    free(holding);
    settle(subscription);
}

void subscriptions_answered(struct holding **request, enum subscription_answer answer)
{
    struct holding *holding = *request;
    struct subscription *subscription;

    if (holding == NULL)
        return;
    subscription = holding->subscription;
    if (answer != SUBSCRIPTION_REFUSED)
        subscription->sent = true;
    if (answer != SUBSCRIPTION_DONE) {
        drop(holding);
        return;
    }
    *request = NULL;
    holding->request = NULL;
    subscription->asked = NULL;
    list_append(&subscription->holders, &holding->in_subscription);
    settle(subscription);
}

void subscriptions_end(struct holding *holding, bool told)
{
    if (told)
        holding->subscription->sent = false;
    drop(holding);
}

void subscriptions_end_all(struct subscriber *subscriber)
{
    while (!list_empty(&subscriber->held))
        drop(list_entry(list_take_first(&subscriber->held), struct holding, in_subscriber));
}

void subscriptions_forget(struct subscription *subscription)
{
    forget_subscription(subscription);
}

/* --- what the server says --- */

static void mark_holders(const struct subscription *subscription, uint64_t notice)
{
    const struct list_node *node;

    for (node = subscription->holders.head.next; node != &subscription->holders.head;
         node = node->next)
        list_entry(node, struct holding, in_subscription)->subscriber->notice = notice;
}

static bool is_boundary(char byte)
{
    return byte == '/' || byte == '?' || byte == '#';
}

/* MCP: a notification may name a part of the resource. */
void subscriptions_mark(struct process_subscriptions *process, struct slice uri)
{
    const struct subscription *subscription;
    size_t len;

    process->notices++;
    for (len = 1; len <= uri.len; len++) {
        if (len < uri.len && uri.data[len - 1] != '/' && !is_boundary(uri.data[len]))
            continue;
        subscription = subscriptions_find(process, slice_of(uri.data, len));
        if (subscription != NULL)
            mark_holders(subscription, process->notices);
    }
}

/* --- what the server is to know --- */

struct subscription *subscriptions_next(const struct process_subscriptions *process)
{
    if (!list_empty(&process->wanted))
        return subscription_of(process->wanted.head.next);
    if (!list_empty(&process->stale))
        return subscription_of(process->stale.head.next);
    return NULL;
}

void subscriptions_sent(struct subscription *subscription)
{
    subscription->sent = !subscription->sent;
    settle(subscription);
}

static void unlearn(struct list *list)
{
    struct list_node *node, *following;

    list_each(list, node, following) {
        subscription_of(node)->sent = false;
        settle(subscription_of(node));
    }
}

void subscriptions_restart(struct process_subscriptions *process)
{
    struct list_node *node, *following;

    unlearn(&process->stale);
    unlearn(&process->known);
    list_each(&process->asked, node, following)
        subscription_of(node)->sent = false;
}

static void clear(struct list *list)
{
    while (!list_empty(list))
        forget_subscription(subscription_of(list_take_first(list)));
}

void subscriptions_clear(struct process_subscriptions *process)
{
    ASSERT(list_empty(&process->asked) && list_empty(&process->known));
    clear(&process->wanted);
    clear(&process->stale);
}

/* --- the archive --- */

static void archive_subscription(struct archive *archive, void *owner, void *item)
{
    struct subscription *subscription = item;
    struct slice uri = archive_slice(archive, subscription != NULL ? subscription_uri(subscription)
                                                                   : slice_of(NULL, 0));
    bool sent = archive_present(archive, subscription != NULL && subscription->sent);

    archive_expect(archive, uri.len <= SUBSCRIPTION_URI_MAX, "a URI is too long");
    if (!archive_loads(archive))
        return;
    subscription = get(owner, uri);
    if (!archive_made(archive, subscription != NULL))
        return;
    subscription->sent = sent;
    settle(subscription);
}

/* Where they are loaded, the other lists get what the first one has. */
void subscriptions_archive(struct process_subscriptions *process, struct archive *archive)
{
    struct list *const lists[] = {&process->known, &process->asked, &process->wanted,
                                  &process->stale};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        ARCHIVE_LIST(archive, lists[i], struct subscription, node, archive_subscription, process);
}
