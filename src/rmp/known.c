#include "build_config.h"

#include "rmp/known.h"

#include <stdlib.h>

#include "base/assert.h"

static struct rmp_dedupe_key key_of(const struct rmp_publication *publication)
{
    return (struct rmp_dedupe_key){publication->header.trace_id, publication->header.msg_id};
}

static struct rmp_known *find_user(const struct rmp_topic *topic, uint32_t user)
{
    struct list_node *node, *following;

    list_each(&topic->known, node, following) {
        struct rmp_known *known = list_entry(node, struct rmp_known, in_topic);

        if (known->user->number == user)
            return known;
    }
    return NULL;
}

static size_t bytes_of(const struct rmp_known *known)
{
    return sizeof *known + rmp_dedupe_bytes(&known->dedupe);
}

/* NULL if out of memory. */
static struct rmp_known *begin_known(struct rmp_broker *broker, struct rmp_topic *topic,
                                     uint32_t number, uint64_t check_ms)
{
    struct rmp_user *user = rmp_memory_user(&broker->memory, number);
    struct rmp_known *known;

    if (user == NULL)
        return NULL;
    known = calloc(1, sizeof *known);
    if (known == NULL) {
        rmp_memory_settle(&broker->memory, user);
        return NULL;
    }
    known->topic = topic;
    known->user = user;
    known->check_ms = check_ms;
    list_prepend(&topic->known, &known->in_topic);
    list_append(&user->known, &known->in_user);
    list_append(&broker->sweep, &known->in_sweep);
    rmp_memory_count(&broker->memory, RMP_KEYS, user, 0, bytes_of(known));
    return known;
}

static void end_known(struct rmp_broker *broker, struct rmp_known *known)
{
    struct rmp_topic *topic = known->topic;

    list_remove(&known->in_topic);
    list_remove(&known->in_user);
    list_remove(&known->in_sweep);
    rmp_memory_count(&broker->memory, RMP_KEYS, known->user, bytes_of(known), 0);
    rmp_memory_settle(&broker->memory, known->user);
    rmp_dedupe_free(&known->dedupe);
    free(known);
    if (list_empty(&topic->known))
        rmp_subscriptions_forget_missed(&broker->subscriptions, topic);
}

/* The most recent one is the first of its topic and the last of its user. */
static void use(struct rmp_known *known)
{
    if (known->topic->known.head.next != &known->in_topic) {
        list_remove(&known->in_topic);
        list_prepend(&known->topic->known, &known->in_topic);
    }
    if (known->user->known.head.prev != &known->in_user) {
        list_remove(&known->in_user);
        list_append(&known->user->known, &known->in_user);
    }
}

/* Whether the keys may take that many bytes more, if need be in place of those of other topics. */
static bool make_room(struct rmp_broker *broker, const struct rmp_known *known, size_t bytes)
{
    const struct rmp_user *user = known->user;

    while (!rmp_memory_may_take(&broker->memory, RMP_KEYS, bytes, user, NULL)) {
        struct rmp_known *first = list_entry(user->known.head.next, struct rmp_known, in_user);

        if (first == known)
            return false;
        end_known(broker, first);
    }
    return true;
}

uint64_t rmp_known_see(struct rmp_broker *broker, struct rmp_topic *topic,
                       const struct rmp_publication *publication, uint64_t now_ms)
{
    const struct rmp_dedupe_rules *rules = &broker->dedupe;
    struct rmp_known *known = find_user(topic, publication->user);
    size_t before, growth;
    uint64_t seen;
    bool may_grow;

    if (known == NULL)
        known = begin_known(broker, topic, publication->user, now_ms + rules->horizon_ms);
    if (known == NULL)
        return 0;
    use(known);
    growth = rmp_dedupe_growth(&known->dedupe, rules, now_ms);
    may_grow = growth == 0 || make_room(broker, known, growth);
    before = bytes_of(known);
    seen = rmp_dedupe_see(&known->dedupe, rules, key_of(publication), publication->number, now_ms,
                          may_grow);
    if (growth > 0)
        rmp_memory_count(&broker->memory, RMP_KEYS, known->user, before, bytes_of(known));
    return seen;
}

uint64_t rmp_known_number(const struct rmp_broker *broker, const struct rmp_topic *topic,
                          const struct rmp_publication *publication)
{
    const struct rmp_known *known = find_user(topic, publication->user);

    return known == NULL ? 0
                         : rmp_dedupe_number(&known->dedupe, &broker->dedupe, key_of(publication));
}

uint64_t rmp_known_oldest(const struct rmp_topic *topic)
{
    struct list_node *node, *following;
    uint64_t oldest = UINT64_MAX;

    list_each(&topic->known, node, following) {
        const struct rmp_known *known = list_entry(node, struct rmp_known, in_topic);
        uint64_t number = rmp_dedupe_oldest(&known->dedupe);

        if (number < oldest)
            oldest = number;
    }
    return oldest;
}

uint64_t rmp_known_count(const struct rmp_topic *topic)
{
    struct list_node *node, *following;
    uint64_t count = 0;

    list_each(&topic->known, node, following)
        count += list_entry(node, struct rmp_known, in_topic)->dedupe.count;
    return count;
}

uint64_t rmp_known_deadline(const struct rmp_broker *broker)
{
    return list_empty(&broker->sweep)
               ? UINT64_MAX
               : list_entry(broker->sweep.head.next, struct rmp_known, in_sweep)->check_ms;
}

void rmp_known_sweep(struct rmp_broker *broker, uint64_t now_ms)
{
    while (rmp_known_deadline(broker) <= now_ms) {
        struct rmp_known *known = list_entry(broker->sweep.head.next, struct rmp_known, in_sweep);

        if (rmp_dedupe_over_ms(&known->dedupe, &broker->dedupe) <= now_ms) {
            end_known(broker, known);
        } else {
            list_remove(&known->in_sweep);
            known->check_ms = now_ms + broker->dedupe.horizon_ms;
            list_append(&broker->sweep, &known->in_sweep);
        }
    }
}

void rmp_known_clear(struct rmp_broker *broker, struct rmp_topic *topic)
{
    while (!list_empty(&topic->known))
        end_known(broker, list_entry(topic->known.head.next, struct rmp_known, in_topic));
}

/* --- the archive --- */

static void archive_known(struct archive *archive, void *owner, void *item)
{
    struct rmp_broker *broker = owner;
    struct rmp_known *known = item;
    struct rmp_topic *topic = NULL;
    struct slice name = slice_of(NULL, 0);
    uint64_t check_ms = known != NULL ? known->check_ms : 0;
    uint32_t user = known != NULL ? known->user->number : 0;
    size_t before;

    if (known != NULL)
        name = slice_of(known->topic->name, known->topic->name_len);
    name = archive_slice(archive, name);
    ARCHIVE_INTEGER(archive, user);
    ARCHIVE_INTEGER(archive, check_ms);
    if (archive_loads(archive)) {
        topic = rmp_topics_find(&broker->topics, name);
        if (topic == NULL || find_user(topic, user) != NULL)
            archive_fail(archive, "messages were seen by no topic, or twice");
        else
            known = begin_known(broker, topic, user, check_ms);
    }
    if (!archive_made(archive, known != NULL))
        return;
    before = bytes_of(known);
    rmp_dedupe_archive(archive, &known->dedupe, &broker->dedupe, broker->number);
    rmp_memory_count(&broker->memory, RMP_KEYS, known->user, before, bytes_of(known));
}

void rmp_known_archive(struct archive *archive, struct rmp_broker *broker)
{
    archive_mark(archive, "known");
    ARCHIVE_LIST(archive, &broker->sweep, struct rmp_known, in_sweep, archive_known, broker);
}
