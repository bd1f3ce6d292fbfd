/* For tests of the RMP broker: peers that note what they get, and publications. */
#ifndef CHECK_RMP_BROKER_FIXTURE_H
#define CHECK_RMP_BROKER_FIXTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "quick_assert.h"
#include "rmp/broker.h"
#include "rmp/frame.h"
#include "rmp/schemas.h"

#define PEERS 4
#define GOT_MAX 4096
#ifndef GOT_FRAME_MAX
#define GOT_FRAME_MAX 1024
#endif
#define NO_LIMIT SIZE_MAX
#define BODY_MAX 200000
#define EPOCH_MS UINT64_C(1700000000000)
#define START_MS UINT64_C(5000)

struct got {
    struct rmp_sub_name name;
    struct rmp_header header;
    char topic[64];
    char frame[GOT_FRAME_MAX]; /* what fits */
    size_t frame_len;
};

struct ended {
    uint64_t token;
    enum rmp_outcome outcome;
};

struct test_peer {
    struct rmp_peer peer;
    size_t room; /* messages that it takes before it is busy */
    bool refuses;
    bool leaves; /* once a publication of it has ended */
    struct got got[GOT_MAX];
    size_t got_count;
    struct ended ended[GOT_MAX];
    size_t ended_count;
};

static struct rmp_broker *broker;
static struct test_peer peers[PEERS];
static struct rmp_time now;
static struct rmp_result result;

static struct test_peer *test_peer_of(struct rmp_peer *peer)
{
    return list_entry(peer, struct test_peer, peer);
}

static enum rmp_taken take(struct rmp_peer *to, const struct rmp_sub_name *name,
                           const struct rmp_publication *publication)
{
    struct test_peer *peer = test_peer_of(to);
    struct got *got = &peer->got[peer->got_count];
    size_t kept = publication->frame.len < sizeof got->frame ? publication->frame.len
                                                             : sizeof got->frame;

    if (peer->refuses)
        return RMP_REFUSED;
    if (peer->room == 0)
        return RMP_BUSY;
    if (peer->room != NO_LIMIT)
        peer->room--;
    QUICK_ASSERT(peer->got_count < GOT_MAX);
    QUICK_ASSERT(publication->number > 0);
    peer->got_count++;
    got->name = *name;
    got->header = publication->header;
    QUICK_ASSERT(publication->topic.len < sizeof got->topic);
    memcpy(got->topic, publication->topic.data, publication->topic.len);
    got->topic[publication->topic.len] = '\0';
    memcpy(got->frame, publication->frame.data, kept);
    got->frame_len = publication->frame.len;
    return RMP_TAKEN;
}

static void note_end(struct rmp_peer *publisher, uint64_t token, const struct rmp_result *end)
{
    struct test_peer *peer = test_peer_of(publisher);

    QUICK_ASSERT(peer->ended_count < GOT_MAX);
    peer->ended[peer->ended_count++] = (struct ended){token, end->outcome};
    if (peer->leaves)
        rmp_broker_leave(broker, publisher);
}

static const struct rmp_peer_ops test_ops = {.deliver = take, .published = note_end};

static void start_broker(const struct rmp_broker_options *options)
{
    broker = rmp_broker_create(options);
    ck_assert_ptr_nonnull(broker);
    memset(peers, 0, sizeof peers);
    now = (struct rmp_time){.epoch_ms = EPOCH_MS, .now_ms = START_MS};
    for (int i = 0; i < PEERS; i++) {
        rmp_broker_join(broker, &peers[i].peer, &test_ops, RMP_KIND_AGENT);
        peers[i].room = NO_LIMIT;
    }
}

static inline void restart_broker(const struct rmp_broker_options *options)
{
    rmp_broker_free(broker);
    start_broker(options);
}

static inline void pass(uint64_t ms)
{
    now.epoch_ms += ms;
    now.now_ms += ms;
}

static inline void run(void)
{
    rmp_broker_run(broker, now);
}

static inline struct slice text(const char *string)
{
    return slice_of(string, strlen(string));
}

static inline enum rmp_outcome subscribe(int peer, uint64_t sub_id, const char *topic)
{
    const struct rmp_sub_name name = {RMP_DIALECT_JSON, sub_id};

    return rmp_broker_subscribe(broker, &peers[peer].peer, name, text(topic), now).outcome;
}

static inline bool unsubscribe(int peer, uint64_t sub_id)
{
    const struct rmp_sub_name name = {RMP_DIALECT_JSON, sub_id};

    return rmp_broker_unsubscribe(broker, &peers[peer].peer, name, text(""));
}

/* A frame with this header and `body_len` bytes of body. */
static inline bool publish_frame(int peer, struct slice topic, struct rmp_header header,
                                 uint32_t body_len)
{
    static char frame[RMP_BODY_OFFSET + BODY_MAX];
    struct rmp_publication publication = {
        .header = header,
        .topic = topic,
        .frame = slice_of(frame, RMP_BODY_OFFSET + body_len),
    };
    bool ended;

    QUICK_ASSERT(body_len <= BODY_MAX);
    publication.header.body_len = body_len;
    rmp_header_write_prefixed(frame, &publication.header);
    memset(frame + RMP_BODY_OFFSET, 'b', body_len);
    result = (struct rmp_result){.outcome = RMP_RESULT_COUNT};
    ended = rmp_broker_publish(broker, &peers[peer].peer, &publication, now, header.msg_id,
                               &result);
    return ended;
}

static inline struct rmp_header header_of(uint64_t msg_id)
{
    return (struct rmp_header){.schema_id = 3003,
                               .created_at_ms = now.epoch_ms,
                               .ttl_ms = 30000,
                               .trace_id = {.high = 1, .low = 2},
                               .msg_id = msg_id};
}

/* Publishes a message of 64 bytes; the token is its msg_id. Returns its outcome, or
 * RMP_RESULT_COUNT if it waits. */
static inline enum rmp_outcome publish(int peer, const char *topic, uint64_t msg_id)
{
    return publish_frame(peer, text(topic), header_of(msg_id), 64) ? result.outcome
                                                                   : RMP_RESULT_COUNT;
}

#define WAITS RMP_RESULT_COUNT

static inline void resume(int peer, size_t room)
{
    peers[peer].room = room;
    rmp_broker_resume(broker, &peers[peer].peer, now);
}

/* The payload of a frame that the broker made, whose type and topic must be these. */
static inline struct slice payload_of(const struct got *got, const char *type, const char *topic)
{
    struct rmp_envelope envelope;
    struct rmp_header header;

    ck_assert_uint_le(got->frame_len, sizeof got->frame);
    ck_assert_int_eq(rmp_header_read(&header, slice_of(got->frame + RMP_PREFIX_LEN,
                                                       got->frame_len - RMP_PREFIX_LEN)),
                     RMP_OK);
    ck_assert_int_eq(rmp_envelope_read(&envelope, slice_of(got->frame + RMP_BODY_OFFSET,
                                                           got->frame_len - RMP_BODY_OFFSET)),
                     RMP_OK);
    ck_assert(slice_equal(envelope.type, text(type)));
    ck_assert(slice_equal(rmp_envelope_topic(&envelope), text(topic)));
    ck_assert_str_eq(got->topic, topic);
    return envelope.payload;
}

static inline uint64_t number_of(struct slice map, const char *key)
{
    struct msgpack_value value;

    ck_assert(msgpack_find(map, key, &value, NULL));
    ck_assert_int_eq(value.type, MSGPACK_UINT);
    return value.as.uint;
}

#endif
