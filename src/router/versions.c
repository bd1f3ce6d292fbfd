#include "build_config.h"

#include "router/versions.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
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

static void forget_version(struct version *version)
{
    list_remove(&version->node);
    kept_message_free(&version->request);
    kept_message_free(&version->answer);
    free(version);
}

/* A refused one or, without any, the oldest but the first, with which the handshake began: a server
 * that answers one initialize would refuse its clients from then on. */
static struct version *least_needed(const struct list *versions)
{
    const struct list_node *first = versions->head.next, *node;

    for (node = first; node != &versions->head; node = node->next) {
        struct version *version = list_entry(node, struct version, node);

        if (version->state == VERSION_REFUSED)
            return version;
    }
    return list_entry(first->next, struct version, node);
}

/* Leaves room for one more. */
static void make_room(struct list *versions)
{
    struct list_node *node, *following;
    size_t count = 0;

    list_each(versions, node, following)
        count++;
    if (count >= VERSIONS_MAX)
        forget_version(least_needed(versions));
}

struct version *versions_new(struct list *versions, struct slice name)
{
    struct version *version = calloc(1, sizeof *version);

    ASSERT(name.data != NULL || name.len == 0);
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
        forget_version(version);
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
            forget_version(version);
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

/* --- the archive --- */

static void archive_version(struct archive *archive, void *owner, void *item)
{
    struct version *version = item;
    struct slice name = archive_slice(archive, version != NULL
                                                   ? slice_of(version->name, version->name_len)
                                                   : slice_of(NULL, 0));

    archive_expect(archive, name.data != NULL && name.len <= VERSION_NAME_MAX,
                   "a version has no name");
    if (archive_loads(archive))
        version = versions_new(owner, name);
    if (!archive_made(archive, version))
        return;
    ARCHIVE_ENUM(archive, version->state, VERSION_REFUSED);
    kept_message_archive(&version->request, archive);
    kept_message_archive(&version->answer, archive);
}

void versions_archive(struct list *versions, struct archive *archive)
{
    ARCHIVE_LIST(archive, versions, struct version, node, archive_version, versions);
}
