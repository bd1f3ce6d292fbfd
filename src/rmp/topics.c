#include "build_config.h"

#include "rmp/topics.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "json/utf8.h"

#define SYSTEM_PREFIX "rlp/sys/"
#define DELETE 0x7F
#define C1_LEAD 0xC2 /* before the controls U+0080 to U+009F */
#define C1_LAST 0x9F

bool rmp_topic_is_valid(struct slice name)
{
    const unsigned char *p = (const unsigned char *)name.data, *end;
    size_t len;

    if (name.len == 0 || name.len > RMP_TOPIC_MAX)
        return false;
    end = p + name.len;
    for (; p < end; p += len) {
        len = *p < 0x80 ? 1 : utf8_sequence(p, end);
        if (len == 0 || *p < ' ' || *p == DELETE || (*p == C1_LEAD && p[1] <= C1_LAST))
            return false;
    }
    return true;
}

bool rmp_topic_is_system(struct slice name)
{
    return name.len >= strlen(SYSTEM_PREFIX) &&
           memcmp(name.data, SYSTEM_PREFIX, strlen(SYSTEM_PREFIX)) == 0;
}

static bool has_name(const void *item, const void *key)
{
    const struct rmp_topic *topic = item;
    const struct slice *name = key;

    return slice_equal(slice_of(topic->name, topic->name_len), *name);
}

struct rmp_topic *rmp_topics_find(const struct rmp_topics *topics, struct slice name)
{
    return hash_table_find(&topics->table, siphash(&topics->key, name.data, name.len), has_name,
                           &name);
}

struct rmp_topic *rmp_topics_add(struct rmp_topics *topics, struct slice name)
{
    struct rmp_topic *topic = calloc(1, sizeof *topic + name.len);

    ASSERT(rmp_topic_is_valid(name));
    if (topic == NULL)
        return NULL;
    list_init(&topic->subscriptions);
    topic->hash = siphash(&topics->key, name.data, name.len);
    topic->name_len = name.len;
    memcpy(topic->name, name.data, name.len);
    if (hash_table_insert(&topics->table, topic->hash, topic) != STDIO_BUS_OK) {
        free(topic);
        return NULL;
    }
    return topic;
}

static void free_topic(struct rmp_topic *topic)
{
    list_remove(&topic->dedupe.in_sweep);
    rmp_dedupe_free(&topic->dedupe);
    free(topic);
}

void rmp_topics_remove(struct rmp_topics *topics, struct rmp_topic *topic)
{
    ASSERT(list_empty(&topic->subscriptions));
    hash_table_remove(&topics->table, topic->hash, topic);
    free_topic(topic);
}

void rmp_topics_free(struct rmp_topics *topics)
{
    for (size_t i = 0; i < topics->table.capacity; i++) {
        if (topics->table.slots[i].item != NULL)
            free_topic(topics->table.slots[i].item);
    }
    hash_table_free(&topics->table);
}
