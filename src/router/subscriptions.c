#include "build_config.h"

#include "router/subscriptions.h"

#include <stdlib.h>

#include "base/error.h"

static struct subscription *subscription_of(const struct list_node *node)
{
    return list_entry(node, struct subscription, node);
}

struct subscription *subscriptions_find(const struct list *all, struct slice uri)
{
    const struct list_node *node;

    for (node = all->head.next; node != &all->head; node = node->next) {
        if (slice_equal(subscription_of(node)->uri, uri))
            return subscription_of(node);
    }
    return NULL;
}

struct holding *subscriptions_held(const struct subscriber *subscriber, struct slice uri)
{
    const struct list_node *node;

    for (node = subscriber->held.head.next; node != &subscriber->held.head; node = node->next) {
        struct holding *holding = list_entry(node, struct holding, node);

        if (slice_equal(holding->subscription->uri, uri))
            return holding;
    }
    return NULL;
}

/* NULL when memory is out. */
static struct subscription *add(struct list *all, struct slice uri)
{
    struct subscription *subscription = calloc(1, sizeof *subscription + uri.len + 1);
    char *text;

    if (subscription == NULL)
        return NULL;
    text = (char *)(subscription + 1);
    if (uri.len > 0)
        memcpy(text, uri.data, uri.len);
    subscription->uri = slice_of(text, uri.len);
    list_append(all, &subscription->node);
    return subscription;
}

void subscriptions_remove(struct subscription *subscription)
{
    list_remove(&subscription->node);
    free(subscription);
}

int subscriptions_begin(struct list *all, struct subscriber *subscriber, struct slice uri)
{
    struct subscription *subscription = subscriptions_find(all, uri);
    struct holding *holding;

    if (subscriptions_held(subscriber, uri) != NULL)
        return STDIO_BUS_OK;
    holding = calloc(1, sizeof *holding);
    if (holding == NULL)
        return STDIO_BUS_ERR;
    if (subscription == NULL && (subscription = add(all, uri)) == NULL) {
        free(holding);
        return STDIO_BUS_ERR;
    }
    subscription->holders++;
    subscription->sent = true;
    holding->subscription = subscription;
    list_append(&subscriber->held, &holding->node);
    subscriber->count++;
    return STDIO_BUS_OK;
}

static void drop(struct subscriber *subscriber, struct holding *holding)
{
    holding->subscription->holders--;
    subscriber->count--;
    free(holding);
}

void subscriptions_end(struct subscriber *subscriber, struct holding *holding)
{
    list_remove(&holding->node);
    drop(subscriber, holding);
}

void subscriptions_end_all(struct subscriber *subscriber)
{
    struct list_node *node;

    while ((node = list_take_first(&subscriber->held)) != NULL)
        drop(subscriber, list_entry(node, struct holding, node));
}

void subscriptions_add_stale(struct list *all, struct slice uri)
{
    struct subscription *subscription = subscriptions_find(all, uri);

    if (subscription == NULL)
        subscription = add(all, uri);
    if (subscription != NULL)
        subscription->sent = true;
}

/* MCP: a notification may name a part of the resource. */
static bool covers(struct slice whole, struct slice part)
{
    if (whole.len == 0 || part.len < whole.len || memcmp(whole.data, part.data, whole.len) != 0)
        return false;
    if (part.len == whole.len || whole.data[whole.len - 1] == '/')
        return true;
    return part.data[whole.len] == '/' || part.data[whole.len] == '?' ||
           part.data[whole.len] == '#';
}

bool subscriptions_cover(const struct subscriber *subscriber, struct slice uri)
{
    const struct list_node *node;

    for (node = subscriber->held.head.next; node != &subscriber->held.head; node = node->next) {
        if (covers(list_entry(node, struct holding, node)->subscription->uri, uri))
            return true;
    }
    return false;
}

struct subscription *subscriptions_next(struct list *all)
{
    struct list_node *node, *following;

    list_each(all, node, following) {
        struct subscription *subscription = subscription_of(node);

        if (subscription->holders == 0 && !subscription->sent)
            subscriptions_remove(subscription);
        else if (subscription->sent != (subscription->holders > 0))
            return subscription;
    }
    return NULL;
}

void subscriptions_restart(struct list *all)
{
    struct list_node *node, *following;

    list_each(all, node, following)
        subscription_of(node)->sent = false;
}

void subscriptions_clear(struct list *all)
{
    struct list_node *node;

    while ((node = list_take_first(all)) != NULL)
        free(subscription_of(node));
}
