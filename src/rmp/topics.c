#include "build_config.h"

#include "rmp/topics.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "rmp/uuid.h"
#include "json/utf8.h"

#define SYSTEM_PREFIX "rlp/sys/"
#define RUNS_PREFIX "rlp/runs/"
#define TRACE_PREFIX "trace:"
#define EVENTS_SUFFIX "/events"
#define LENGTH(literal) (sizeof(literal) - 1)
#define EVENTS_LENGTH (LENGTH(RUNS_PREFIX) + RMP_UUID_LEN + LENGTH(EVENTS_SUFFIX))
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

/* The events of a run have two names (RMP 10): with "trace:" before the UUID, as in the table, and
 * without. Both are one topic, so that a client that subscribes to both gets each event once. */
struct topic_name {
    char run[EVENTS_LENGTH + LENGTH(TRACE_PREFIX)];
};

static bool has_short_name(struct slice name, struct slice *uuid)
{
    struct rmp_id id;

    if (name.len != EVENTS_LENGTH || memcmp(name.data, RUNS_PREFIX, LENGTH(RUNS_PREFIX)) != 0 ||
        memcmp(name.data + name.len - LENGTH(EVENTS_SUFFIX), EVENTS_SUFFIX,
               LENGTH(EVENTS_SUFFIX)) != 0)
        return false;
    *uuid = slice_of(name.data + LENGTH(RUNS_PREFIX), RMP_UUID_LEN);
    return rmp_uuid_read(*uuid, &id);
}

static struct slice name_in_table(struct topic_name *to, struct slice name)
{
    char *at = to->run;
    struct slice uuid;

    if (!has_short_name(name, &uuid))
        return name;
    memcpy(at, RUNS_PREFIX TRACE_PREFIX, LENGTH(RUNS_PREFIX TRACE_PREFIX));
    at += LENGTH(RUNS_PREFIX TRACE_PREFIX);
    memcpy(at, uuid.data, uuid.len + LENGTH(EVENTS_SUFFIX));
    return slice_of(to->run, sizeof to->run);
}

static bool has_name(const void *item, const void *key)
{
    const struct rmp_topic *topic = item;
    const struct slice *name = key;

    return slice_equal(slice_of(topic->name, topic->name_len), *name);
}

struct rmp_topic *rmp_topics_find(const struct rmp_topics *topics, struct slice given)
{
    struct topic_name other UNINITIALIZED;
    struct slice name = name_in_table(&other, given);

    return hash_table_find(&topics->table, siphash(&topics->key, name.data, name.len), has_name,
                           &name);
}

struct rmp_topic *rmp_topics_add(struct rmp_topics *topics, struct slice given)
{
    struct topic_name other UNINITIALIZED;
    struct slice name = name_in_table(&other, given);
    struct rmp_topic *topic = calloc(1, sizeof *topic + name.len);

    ASSERT(rmp_topic_is_valid(name));
    if (topic == NULL)
        return NULL;
    list_init(&topic->subscriptions);
    list_init(&topic->known);
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
    ASSERT(list_empty(&topic->known));
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
