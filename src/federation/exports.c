#include "build_config.h"

#include "federation/exports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "federation/calls.h"
#include "federation/discovery.h"
#include "federation/links.h"

static void remove_export(struct nats_export *export)
{
    discovery_remove(export);
    nats_calls_forget(export);
    broker_unsubscribe(&export->hub->broker, &export->subscription);
    broker_unsubscribe(&export->hub->broker, &export->links);
    list_remove(&export->link);
    free(export->id);
    free(export->subject);
    free(export->link_subject);
    free(export);
}

static struct nats_export *find_export(const struct nats_hub *hub, const char *id)
{
    struct list_node *node, *following;

    list_each(&hub->exports, node, following) {
        struct nats_export *export = list_entry(node, struct nats_export, link);

        if (strcmp(export->id, id) == 0)
            return export;
    }
    return NULL;
}

static struct nats_export *make_export(struct nats_hub *hub, const char *id)
{
    const char *prefix = nats_config_prefix(&hub->config);
    size_t size = strlen(prefix) + strlen(id) + sizeof ".rpc.";
    struct nats_export *export = calloc(1, sizeof *export);

    if (export == NULL)
        return NULL;
    export->id = slice_copy(slice_of_text(id));
    export->subject = malloc(size);
    export->link_subject = malloc(size + 1);
    if (export->id == NULL || export->subject == NULL || export->link_subject == NULL)
        goto fail;
    snprintf(export->link_subject, size + 1, "%s.open.%s", prefix, id);
    snprintf(export->subject, size, "%s.rpc.%s", prefix, id);
    export->hub = hub;
    export->subscription.subject = export->subscription.queue = export->subject;
    export->subscription.message = nats_call_came;
    export->links.subject = export->links.queue = export->link_subject;
    export->links.message = nats_link_asked;
    if (broker_subscribe(&hub->broker, &export->subscription) == STDIO_BUS_OK &&
        broker_subscribe(&hub->broker, &export->links) == STDIO_BUS_OK)
        return export;
    broker_unsubscribe(&hub->broker, &export->subscription);

fail:
    free(export->id);
    free(export->subject);
    free(export->link_subject);
    free(export);
    return NULL;
}

static void add_export(struct nats_hub *hub, const struct pool_config *pool)
{
    struct nats_export *export = find_export(hub, pool->id);

    if (export == NULL) {
        export = make_export(hub, pool->id);
        if (export == NULL) {
            log_error(hub->bus->log, "nats", "out of memory: a pool is not exported");
            return;
        }
        list_append(&hub->exports, &export->link);
        if (discovery_add(export) != STDIO_BUS_OK)
            log_error(hub->bus->log, "nats", "out of memory: a pool is not seen as a service");
    }
    export->is_current = true;
}

void exports_renew(struct nats_hub *hub)
{
    const struct config *config = hub->bus->options.config;
    struct list_node *node, *following;

    list_each(&hub->exports, node, following)
        list_entry(node, struct nats_export, link)->is_current = false;
    for (size_t i = 0; i < config->pool_count; i++) {
        if (config->pools[i].is_exported)
            add_export(hub, &config->pools[i]);
    }
    list_each(&hub->exports, node, following) {
        struct nats_export *export = list_entry(node, struct nats_export, link);

        if (!export->is_current)
            remove_export(export);
    }
}

void exports_end(struct nats_hub *hub)
{
    struct list_node *node, *following;

    list_each(&hub->exports, node, following)
        remove_export(list_entry(node, struct nats_export, link));
}
