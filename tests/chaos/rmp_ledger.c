/* What each subscription has to get, and what it must not get. */
#include "build_config.h"

#include <inttypes.h>
#include <string.h>

#include "rmp_chaos.h"

#define MARK "PUB!"         /* in each body, before the number */
#define EXPIRY_SLACK_MS 200 /* one round of the daemon, which reads the clock at its start */

uint64_t ledger_hash(const char *bytes, size_t len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

struct publication *ledger_find(const struct chaos *chaos, uint64_t number)
{
    struct publication *publication = &chaos->ledger[number % KEPT];

    return number != 0 && publication->number == number ? publication : NULL;
}

struct publication *ledger_publish(struct chaos *chaos, const struct peer *peer, unsigned topic,
                                   uint64_t repeated)
{
    uint64_t number = ++chaos->last_number;
    struct publication *publication = &chaos->ledger[number % KEPT];
    struct publication *old = ledger_find(chaos, repeated);
    struct publication *first = old != NULL ? ledger_find(chaos, old->first) : NULL;

    memset(publication, 0, sizeof *publication);
    publication->number = publication->first = publication->last = number;
    publication->sent = ++chaos->event;
    publication->publisher = peer->index;
    publication->connection = peer->connection;
    publication->topic = topic;
    publication->header.trace_id = (struct rmp_id){chaos->run.seed, number};
    publication->header.msg_id = number;
    if (first != NULL) {
        publication->first = first->number;
        publication->previous = first->last;
        publication->topic = first->topic;
        publication->header.trace_id = first->header.trace_id;
        publication->header.msg_id = first->header.msg_id;
        first->last = number;
    }
    return publication;
}

static uint64_t expires(const struct publication *publication)
{
    return publication->header.created_at_ms + publication->header.ttl_ms;
}

static bool has_got(const struct publication *publication, unsigned slot)
{
    return (publication->got[slot / 64] >> slot % 64 & 1) != 0;
}

#define each_repeat(repeat, chaos, publication)                                                    \
    for (const struct publication *repeat = last_repeat((chaos), (publication)); repeat != NULL;   \
         repeat = ledger_find((chaos), repeat->previous))

static const struct publication *last_repeat(const struct chaos *chaos,
                                             const struct publication *publication)
{
    const struct publication *first = ledger_find(chaos, publication->first);

    return first != NULL ? ledger_find(chaos, first->last) : publication;
}

/* Whether another one with its key may have been offered to the subscription. */
static bool may_repeat(const struct chaos *chaos, const struct publication *publication,
                       const struct subscription *subscription)
{
    if (ledger_find(chaos, publication->first) == NULL)
        return true;
    each_repeat(repeat, chaos, publication)
    {
        if (repeat != publication &&
            (repeat->answered == 0 || repeat->answered > subscription->asked))
            return true;
    }
    return false;
}

static bool got_repeat(const struct chaos *chaos, const struct publication *publication,
                       unsigned slot)
{
    each_repeat(repeat, chaos, publication)
    {
        if (repeat != publication && has_got(repeat, slot))
            return true;
    }
    return false;
}

static void expect(struct chaos *chaos, const struct publication *publication,
                   struct subscription *subscription)
{
    if (!subscription->live || subscription->topic != publication->topic ||
        subscription->answered == 0 || subscription->answered > publication->sent ||
        subscription->ended != 0 || has_got(publication, subscription->slot))
        return;
    if (got_repeat(chaos, publication, subscription->slot))
        chaos->seen.duplicate += publication->previous != 0;
    else if (subscription->must_count < MUSTS && !may_repeat(chaos, publication, subscription))
        subscription->musts[(subscription->first_must + subscription->must_count++) % MUSTS] =
            publication->number;
}

void ledger_answered(struct chaos *chaos, struct publication *publication, enum told told)
{
    publication->answered = ++chaos->event;
    publication->told = told;
    if (told != TOLD_OK)
        return;
    for (unsigned i = 0; i < PEERS; i++) {
        for (unsigned j = 0; j < SUBSCRIPTIONS; j++)
            expect(chaos, publication, &chaos->peers[i].subscriptions[j]);
    }
}

/* --- arrivals --- */

/* Of two subscriptions that it may be for, the older one: the answer that ends that one has not
 * come yet. */
static struct subscription *find_subscription(struct peer *peer, const struct arrival *arrival,
                                              unsigned topic)
{
    struct subscription *found = NULL;

    for (unsigned i = 0; i < SUBSCRIPTIONS; i++) {
        struct subscription *at = &peer->subscriptions[i];

        if (at->live && at->topic == topic && at->frames == arrival->frames &&
            (at->frames || at->sub_id == arrival->sub_id) &&
            (found == NULL || at->asked < found->asked))
            found = at;
    }
    return found;
}

static uint64_t number_in(struct slice body)
{
    const char *mark = memmem(body.data, body.len, MARK, 4);
    uint64_t number = 0;

    if (mark == NULL || mark + 12 > body.data + body.len)
        return 0;
    for (unsigned i = 0; i < 8; i++)
        number = number << 8 | (unsigned char)mark[4 + i];
    return number;
}

static bool same_message(const struct publication *publication, const struct arrival *arrival)
{
    const struct rmp_header *is = &arrival->header, *was = &publication->header;

    return is->schema_id == was->schema_id && is->body_len == was->body_len &&
           is->created_at_ms == was->created_at_ms && is->ttl_ms == was->ttl_ms &&
           is->msg_id == was->msg_id && rmp_id_equal(is->trace_id, was->trace_id) &&
           arrival->body.len == was->body_len &&
           ledger_hash(arrival->body.data, arrival->body.len) == publication->body_hash;
}

/* What was answered before this one was sent came before it, unless it has expired. */
static void check_skipped(struct chaos *chaos, const struct peer *peer,
                          struct subscription *subscription, const struct publication *arrived)
{
    while (subscription->must_count > 0) {
        uint64_t number = subscription->musts[subscription->first_must];
        const struct publication *must = ledger_find(chaos, number);

        if (must != NULL && must != arrived && !has_got(must, subscription->slot)) {
            if (must->answered > arrived->sent)
                return;
            if (expires(must) > epoch_ms())
                violation(chaos,
                          "peer %u: message %" PRIu64 " on %s came, and %" PRIu64
                          ", which was acknowledged before that was sent, did not",
                          peer->index, arrived->number, topic_names[arrived->topic], number);
        }
        subscription->first_must = (subscription->first_must + 1) % MUSTS;
        subscription->must_count--;
    }
}

static void check_order(struct chaos *chaos, const struct peer *peer,
                        struct subscription *subscription, const struct publication *arrived)
{
    uint64_t *last = &subscription->last_of[arrived->publisher];
    const struct publication *before = ledger_find(chaos, *last);

    if (before != NULL && before->connection == arrived->connection && *last > arrived->number)
        violation(chaos,
                  "peer %u: message %" PRIu64 " on %s came after %" PRIu64 " of its publisher",
                  peer->index, arrived->number, topic_names[arrived->topic], *last);
    *last = arrived->number;
}

static void check_admission(struct chaos *chaos, const struct peer *peer,
                            const struct subscription *subscription,
                            const struct publication *arrived)
{
    const char *topic = topic_names[arrived->topic];

    if (has_got(arrived, subscription->slot))
        violation(chaos, "peer %u: message %" PRIu64 " on %s came twice", peer->index,
                  arrived->number, topic);
    if (arrived->told == TOLD_ERROR)
        violation(chaos, "peer %u: message %" PRIu64 " on %s came, though it was refused",
                  peer->index, arrived->number, topic);
    if (arrived->answered != 0 && arrived->answered < subscription->asked)
        violation(chaos, "peer %u: message %" PRIu64 " on %s is older than the subscription",
                  peer->index, arrived->number, topic);
    if (got_repeat(chaos, arrived, subscription->slot))
        violation(chaos, "peer %u: message %" PRIu64 " on %s is a duplicate", peer->index,
                  arrived->number, topic);
    if (peer->handed_ms > expires(arrived) + EXPIRY_SLACK_MS)
        violation(chaos, "peer %u: message %" PRIu64 " on %s came %" PRIu64 " ms after its expiry",
                  peer->index, arrived->number, topic, peer->handed_ms - expires(arrived));
}

void ledger_arrived(struct chaos *chaos, struct peer *peer, const struct arrival *arrival)
{
    struct publication *arrived = ledger_find(chaos, number_in(arrival->body));
    struct subscription *subscription;

    if (arrived == NULL) {
        violation(chaos, "peer %u: a message that nobody has sent: %zu bytes, schema %u",
                  peer->index, arrival->body.len, arrival->header.schema_id);
        return;
    }
    subscription = find_subscription(peer, arrival, arrived->topic);
    if (subscription == NULL) {
        violation(chaos, "peer %u: message %" PRIu64 " on %s, to which it is not subscribed",
                  peer->index, arrived->number, topic_names[arrived->topic]);
        return;
    }
    chaos->delivered++;
    if (!same_message(arrived, arrival))
        violation(chaos, "peer %u: message %" PRIu64 " on %s was changed", peer->index,
                  arrived->number, topic_names[arrived->topic]);
    check_admission(chaos, peer, subscription, arrived);
    check_order(chaos, peer, subscription, arrived);
    arrived->got[subscription->slot / 64] |= UINT64_C(1) << subscription->slot % 64;
    check_skipped(chaos, peer, subscription, arrived);
}

bool ledger_lacks(struct chaos *chaos, const struct peer *peer, uint64_t *number)
{
    for (unsigned i = 0; i < SUBSCRIPTIONS; i++) {
        const struct subscription *at = &peer->subscriptions[i];

        for (unsigned j = 0; at->live && at->ended == 0 && j < at->must_count; j++) {
            const struct publication *must = ledger_find(chaos,
                                                         at->musts[(at->first_must + j) % MUSTS]);

            if (must != NULL && !has_got(must, at->slot) && expires(must) > epoch_ms()) {
                *number = must->number;
                return true;
            }
        }
    }
    return false;
}
