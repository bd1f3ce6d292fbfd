#include "build_config.h"

#include "router/versions.h"

#include <stdlib.h>

#include "base/error.h"

struct version *versions_find(const struct list *versions, struct slice name)
{
    const struct list_node *node;

    for (node = versions->head.next; node != &versions->head; node = node->next) {
        struct version *version = list_entry(node, struct version, node);

        if (slice_equal(slice_of(version->name, version->name_len), name))
            return version;
    }
    return NULL;
}

struct version *versions_open(const struct list *versions)
{
    const struct list_node *last = versions->head.prev;
    struct version *version = list_entry(last, struct version, node);

    return last != &versions->head && version->state <= VERSION_ASKED ? version : NULL;
}

static void forget(struct version *version)
{
    list_remove(&version->node);
    kept_message_free(&version->request);
    kept_message_free(&version->answer);
    free(version);
}

/* Leaves room for one more. */
static void make_room(struct list *versions)
{
    struct list_node *node, *following;
    size_t count = 0;

    list_each(versions, node, following)
        count++;
    if (count >= VERSIONS_MAX)
        forget(list_entry(versions->head.next, struct version, node));
}

struct version *versions_new(struct list *versions, struct slice name)
{
    struct version *version = calloc(1, sizeof *version);

    if (version == NULL)
        return NULL;
    make_room(versions);
    if (name.len > 0)
        memcpy(version->name, name.data, name.len);
    version->name_len = name.len;
    list_append(versions, &version->node);
    return version;
}

struct version *versions_add(struct list *versions, struct slice name,
                             const struct message *initialize)
{
    struct version *version = versions_find(versions, name);

    if (version == NULL && (version = versions_new(versions, name)) == NULL)
        return NULL;
    if (kept_message_copy(&version->request, initialize) != STDIO_BUS_OK) {
        forget(version);
        return NULL;
    }
    kept_message_free(&version->answer);
    version->state = VERSION_WANTED;
    list_remove(&version->node);
    list_append(versions, &version->node);
    return version;
}

void versions_forget(struct list *versions, bool all)
{
    struct list_node *node, *following;

    list_each(versions, node, following) {
        struct version *version = list_entry(node, struct version, node);

        if (all || version->state != VERSION_ANSWERED)
            forget(version);
    }
}

int versions_settle(struct version *version, const struct message *answer)
{
    bool whole = answer != NULL && answer->bytes.len <= VERSION_ANSWER_MAX;

    if (whole && kept_message_copy(&version->answer, answer) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    version->state = whole && answer->has_result && !answer->has_error ? VERSION_ANSWERED
                                                                       : VERSION_REFUSED;
    kept_message_free(&version->request);
    return STDIO_BUS_OK;
}
