/* What the broker publishes itself: drop notices and metrics. */
#include "build_config.h"

#define GOT_FRAME_MAX 16384
#include "rmp_broker_fixture.h"
#include "suite.h"

#define NOTICE_TYPE "error.bus.drop.notice.v1"
#define WATCHER 2 /* the peer that subscribes to what the broker publishes */

static const struct rmp_broker_options options = {.key = {3, 4},
                                                  .queue_max = 4,
                                                  .metrics_interval_ms = 1000,
                                                  .executor_id = "stdio_bus",
                                                  .node_id = "host"};

static void set_up(void)
{
    start_broker(&options);
}

static void tear_down(void)
{
    rmp_broker_free(broker);
}

static struct slice notice(size_t at)
{
    ck_assert_uint_gt(peers[WATCHER].got_count, at);
    return payload_of(&peers[WATCHER].got[at], NOTICE_TYPE, RMP_TOPIC_DROPS);
}

static void expect_text(struct slice map, const char *key, const char *expected)
{
    struct msgpack_value value;

    ck_assert(msgpack_find(map, key, &value, NULL));
    ck_assert_msg(msgpack_is(&value, expected), "%s", key);
}

/* The keys of the map are these, in this order. */
static void expect_keys(struct slice map, const char *const *keys, size_t count)
{
    struct msgpack_value value;

    ck_assert(msgpack_read(&map, &value));
    ck_assert_int_eq(value.type, MSGPACK_MAP);
    ck_assert_uint_eq(value.count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert(msgpack_read(&map, &value));
        ck_assert_msg(msgpack_is(&value, keys[i]), "%s", keys[i]);
        ck_assert(msgpack_skip(&map, MSGPACK_MAX_DEPTH));
    }
    ck_assert_uint_eq(map.len, 0);
}

/* --- drop notices (RMP 5) --- */

TEST(notice_of_an_expired_message_has_its_body)
{
    static const char *const keys[] = {"v",      "reason",        "topic",          "trace_id",
                                       "msg_id", "expires_at_ms", "observed_at_ms", "body"};
    const char id[16] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2};
    struct rmp_header header = header_of(77);
    struct msgpack_value value;
    struct slice map;

    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    header.created_at_ms = EPOCH_MS - 10;
    header.ttl_ms = 10;
    publish_frame(0, text("a/b"), header, 3);
    map = notice(0);
    expect_keys(map, keys, COUNT(keys));
    ck_assert_uint_eq(number_of(map, "v"), 1);
    expect_text(map, "reason", "ttl_expired");
    expect_text(map, "topic", "a/b");
    ck_assert(msgpack_find(map, "trace_id", &value, NULL));
    ck_assert_int_eq(value.type, MSGPACK_BIN);
    ck_assert(slice_equal(value.bytes, slice_of(id, sizeof id)));
    ck_assert_uint_eq(number_of(map, "msg_id"), 77);
    ck_assert_uint_eq(number_of(map, "expires_at_ms"), EPOCH_MS);
    ck_assert_uint_eq(number_of(map, "observed_at_ms"), EPOCH_MS);
    ck_assert(msgpack_find(map, "body", &value, NULL));
    ck_assert_int_eq(value.type, MSGPACK_BIN);
    ck_assert(slice_equal(value.bytes, text("bbb")));
}

TEST(header_of_a_notice_has_the_trace_id_of_the_message)
{
    const struct rmp_header *header = &peers[WATCHER].got[0].header;

    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    subscribe(1, 1, "t");
    publish(0, "t", 1);
    publish(0, "t", 1);
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[WATCHER].got_count, 2);
    ck_assert_uint_eq(header->schema_id, RMP_SCHEMA_BUS_DROP_NOTICE);
    ck_assert_uint_eq(header->trace_id.high, 1);
    ck_assert_uint_eq(header->trace_id.low, 2);
    ck_assert_uint_eq(header->ttl_ms, 5000);
    ck_assert_uint_eq(header->created_at_ms, EPOCH_MS);
    ck_assert_uint_eq(header[0].body_len, peers[WATCHER].got[0].frame_len - RMP_BODY_OFFSET);
    ck_assert_uint_lt(header->msg_id, peers[WATCHER].got[1].header.msg_id);
}

TEST(notice_of_a_duplicate_has_no_body)
{
    static const char *const keys[] = {"v",      "reason",        "topic",         "trace_id",
                                       "msg_id", "expires_at_ms", "observed_at_ms"};

    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    subscribe(1, 1, "t");
    publish(0, "t", 1);
    publish(0, "t", 1);
    expect_keys(notice(0), keys, COUNT(keys));
    expect_text(notice(0), "reason", "duplicate");
    ck_assert_uint_eq(number_of(notice(0), "expires_at_ms"), EPOCH_MS + 30000);
}

TEST(notice_of_backpressure)
{
    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    subscribe(1, 1, "t");
    peers[1].room = 0;
    for (uint64_t i = 1; i <= 5; i++)
        publish(0, "t", i);
    ck_assert_uint_eq(peers[WATCHER].got_count, 0);
    pass(50);
    run();
    expect_text(notice(0), "reason", "backpressure_timeout");
    ck_assert_uint_eq(number_of(notice(0), "msg_id"), 5);
    ck_assert_uint_eq(number_of(notice(0), "observed_at_ms"), EPOCH_MS + 50);
    ck_assert_uint_eq(peers[WATCHER].got_count, 1);
}

TEST(message_that_expires_in_the_queue_is_noticed_with_its_body)
{
    struct rmp_header header = header_of(1);
    struct msgpack_value value;

    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    subscribe(1, 1, "t");
    peers[1].room = 0;
    header.ttl_ms = 10;
    publish_frame(0, text("t"), header, 3);
    pass(10);
    resume(1, NO_LIMIT);
    expect_text(notice(0), "reason", "ttl_expired");
    ck_assert(msgpack_find(notice(0), "body", &value, NULL));
    ck_assert(slice_equal(value.bytes, text("bbb")));
}

TEST(body_of_a_notice_is_cut_at_64_kib)
{
    struct rmp_header header = header_of(1);

    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    header.created_at_ms = 0;
    publish_frame(0, text("t"), header, 65535);
    publish_frame(0, text("t"), header, 65537);
    publish_frame(0, text("t"), header, 165537);
    ck_assert_uint_eq(peers[WATCHER].got_count, 3);
    /* bin 16 becomes bin 32 at 65,536. */
    ck_assert_uint_eq(peers[WATCHER].got[1].frame_len, peers[WATCHER].got[0].frame_len + 3);
    ck_assert_uint_eq(peers[WATCHER].got[2].frame_len, peers[WATCHER].got[1].frame_len);
}

TEST(each_dropped_delivery_has_a_notice)
{
    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    subscribe(0, 1, "t");
    subscribe(1, 1, "t");
    subscribe(1, 2, "t");
    publish(0, "t", 1);
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[WATCHER].got_count, 3);
}

TEST(notices_are_limited_to_200_at_once_and_100_a_second)
{
    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    subscribe(1, 1, "t");
    publish(0, "t", 1);
    for (int i = 0; i < 500; i++)
        publish(0, "t", 1);
    ck_assert_uint_eq(peers[WATCHER].got_count, 200);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_duplicate, 500);
    ck_assert_uint_eq(rmp_broker_counters(broker)->notices_suppressed, 300);
    pass(9);
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[WATCHER].got_count, 200);
    pass(1);
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[WATCHER].got_count, 201);
    ck_assert_uint_eq(number_of(notice(200), "suppressed"), 301);
    pass(1000);
    for (int i = 0; i < 500; i++)
        publish(0, "t", 1);
    ck_assert_uint_eq(peers[WATCHER].got_count, 301);
    pass(100000);
    for (int i = 0; i < 500; i++)
        publish(0, "t", 1);
    ck_assert_uint_eq(peers[WATCHER].got_count, 501);
    ck_assert_uint_eq(number_of(notice(301), "suppressed"), 400);
}

TEST(without_subscriber_no_notice_is_suppressed)
{
    subscribe(1, 1, "t");
    for (int i = 0; i < 500; i++)
        publish(0, "t", 1);
    ck_assert_uint_eq(rmp_broker_counters(broker)->notices_suppressed, 0);
    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[WATCHER].got_count, 1);
}

TEST(notices_are_never_duplicates)
{
    /* Two messages of the same keys on two topics: the notices differ in nothing but their own
     * msg_id, and had they been judged by trace_id and msg_id, equal ones would still arrive. */
    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    subscribe(1, 1, "t");
    for (int i = 0; i < 4; i++)
        publish(0, "t", 1);
    ck_assert_uint_eq(peers[WATCHER].got_count, 3);
    ck_assert_uint_eq(rmp_broker_deadline(broker), START_MS + 3600000); /* of topic t alone */
}

TEST(dropped_notice_is_counted_and_has_no_notice)
{
    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    subscribe(3, 1, RMP_TOPIC_DROPS);
    subscribe(1, 1, "t");
    peers[WATCHER].room = 0;
    for (int i = 0; i < 8; i++)
        publish(0, "t", 1);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_backpressure, 3); /* of seven, four wait */
    ck_assert_uint_eq(peers[3].got_count, 7);
    pass(5000);
    resume(WATCHER, NO_LIMIT);
    ck_assert_uint_eq(peers[WATCHER].got_count, 0);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_ttl, 4);
    ck_assert_uint_eq(peers[3].got_count, 7);
}

TEST(clients_cannot_publish_notices)
{
    subscribe(WATCHER, 1, RMP_TOPIC_DROPS);
    peers[0].peer.kind = RMP_KIND_UI;
    ck_assert_int_eq(publish(0, RMP_TOPIC_DROPS, 1), RMP_RESULT_FORBIDDEN);
    ck_assert_uint_eq(peers[WATCHER].got_count, 0);
}

/* --- metrics --- */

TEST(metrics_are_published_while_somebody_subscribes)
{
    pass(10000);
    run();
    ck_assert_uint_eq(rmp_broker_deadline(broker), RMP_NO_DEADLINE);
    subscribe(WATCHER, 1, RMP_TOPIC_METRICS);
    ck_assert_uint_eq(rmp_broker_deadline(broker), START_MS + 11000);
    pass(999);
    run();
    ck_assert_uint_eq(peers[WATCHER].got_count, 0);
    pass(1);
    run();
    ck_assert_uint_eq(peers[WATCHER].got_count, 1);
    ck_assert_uint_eq(rmp_broker_deadline(broker), START_MS + 12000);
    subscribe(1, 1, RMP_TOPIC_METRICS);
    pass(1000);
    run();
    ck_assert_uint_eq(peers[WATCHER].got_count, 2);
    ck_assert_uint_eq(peers[1].got_count, 1);
    unsubscribe(WATCHER, 1);
    unsubscribe(1, 1);
    pass(1000);
    run();
    ck_assert_uint_eq(rmp_broker_deadline(broker), RMP_NO_DEADLINE);
}

TEST(metrics_have_counters_and_gauges)
{
    static const char *const keys[] = {"v",      "scope",  "ts_ms",   "interval_ms",
                                       "labels", "gauges", "counters"};
    static const char *const counters[] = {
        "msgs_sent_total", "msgs_recv_total",    "msgs_dropped_total", "drops_ttl",
        "drops_duplicate", "drops_backpressure", "waits_total",        "drop_notices_suppressed"};
    struct msgpack_value value;
    struct slice map, part;

    subscribe(WATCHER, 1, RMP_TOPIC_METRICS);
    subscribe(1, 1, "t");
    publish(0, "t", 1);
    publish(0, "t", 1);
    publish(0, "u", 1);
    pass(1000);
    run();
    map = payload_of(&peers[WATCHER].got[0], "observation.metrics.snapshot.v1", RMP_TOPIC_METRICS);
    ck_assert_uint_eq(peers[WATCHER].got[0].header.schema_id, RMP_SCHEMA_METRICS_SNAPSHOT);
    expect_keys(map, keys, COUNT(keys));
    expect_text(map, "scope", "system");
    ck_assert_uint_eq(number_of(map, "ts_ms"), EPOCH_MS + 1000);
    ck_assert_uint_eq(number_of(map, "interval_ms"), 1000);
    ck_assert(msgpack_find(map, "labels", &value, &part));
    expect_text(part, "executor_id", "stdio_bus");
    expect_text(part, "node_id", "host");
    ck_assert(msgpack_find(map, "counters", &value, &part));
    expect_keys(part, counters, COUNT(counters));
    ck_assert_uint_eq(number_of(part, "msgs_sent_total"), 1);
    ck_assert_uint_eq(number_of(part, "msgs_recv_total"), 3);
    ck_assert_uint_eq(number_of(part, "msgs_dropped_total"), 1);
    ck_assert_uint_eq(number_of(part, "drops_duplicate"), 1);
    ck_assert(msgpack_find(map, "gauges", &value, &part));
    ck_assert_uint_eq(number_of(part, "peers"), PEERS);
    ck_assert_uint_eq(number_of(part, "subscriptions"), 2);
    ck_assert_uint_eq(number_of(part, "topics"), 2);
    ck_assert_uint_eq(number_of(part, "dedupe_keys"), 1);
}

/* --- stats --- */

/* The counts of a topic in a snapshot of them; those of one that is not in it are empty. */
static struct slice counts_of(struct slice payload, const char *topic, uint32_t *topics)
{
    struct msgpack_value value;
    struct slice part, map, counts = slice_of("", 0);

    ck_assert(msgpack_find(payload, "topics", &value, &part));
    ck_assert(msgpack_read(&part, &value));
    ck_assert_int_eq(value.type, MSGPACK_ARRAY);
    *topics = value.count;
    for (uint32_t i = 0; i < *topics; i++) {
        map = part;
        ck_assert(msgpack_skip(&part, MSGPACK_MAX_DEPTH));
        map.len -= part.len;
        ck_assert(msgpack_find(map, "topic", &value, NULL));
        if (msgpack_is(&value, topic))
            ck_assert(msgpack_find(map, "counts", &value, &counts));
    }
    return counts;
}

TEST(stats_have_each_topic)
{
    static const char *const keys[] = {"v",      "scope",        "ts_ms", "interval_ms",
                                       "labels", "topics_total", "topics"};
    static const char *const counts[] = {"subscriptions", "published", "delivered", "dropped",
                                         "dedupe_keys"};
    struct slice map, part;
    uint32_t topics;

    subscribe(WATCHER, 1, RMP_TOPIC_STATS);
    ck_assert_uint_eq(rmp_broker_deadline(broker), START_MS + 1000);
    subscribe(0, 1, "t");
    subscribe(1, 1, "t");
    publish(0, "t", 1);
    publish(0, "t", 2);
    publish(0, "t", 1);
    pass(1000);
    run();
    ck_assert_uint_eq(peers[WATCHER].got_count, 1);
    map = payload_of(&peers[WATCHER].got[0], "observation.metrics.snapshot.v1", RMP_TOPIC_STATS);
    ck_assert_uint_eq(peers[WATCHER].got[0].header.schema_id, RMP_SCHEMA_METRICS_SNAPSHOT);
    expect_keys(map, keys, COUNT(keys));
    expect_text(map, "scope", "topics");
    ck_assert_uint_eq(number_of(map, "topics_total"), 2);
    part = counts_of(map, "t", &topics);
    ck_assert_uint_eq(topics, 2);
    expect_keys(part, counts, COUNT(counts));
    ck_assert_uint_eq(number_of(part, "subscriptions"), 2);
    ck_assert_uint_eq(number_of(part, "published"), 3);
    ck_assert_uint_eq(number_of(part, "delivered"), 4);
    ck_assert_uint_eq(number_of(part, "dropped"), 2);
    ck_assert_uint_eq(number_of(part, "dedupe_keys"), 2);
    unsubscribe(WATCHER, 1);
    pass(1000);
    run();
    ck_assert_uint_eq(rmp_broker_deadline(broker) > START_MS + 4000, 1);
}

TEST(stats_of_many_topics_come_in_turns)
{
    char name[16];
    bool seen[300] = {false};

    subscribe(WATCHER, 1, RMP_TOPIC_STATS);
    for (uint64_t i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "t%u", (unsigned)i);
        subscribe(1, 10 + i, name);
    }
    for (size_t round = 0; round < 3; round++) {
        struct slice map;
        uint32_t topics;

        pass(1000);
        run();
        ck_assert_uint_eq(peers[WATCHER].got_count, round + 1);
        map = payload_of(&peers[WATCHER].got[round], "observation.metrics.snapshot.v1",
                         RMP_TOPIC_STATS);
        for (uint64_t i = 0; i < 300; i++) {
            snprintf(name, sizeof name, "t%u", (unsigned)i);
            seen[i] |= counts_of(map, name, &topics).len > 0;
        }
        ck_assert_uint_eq(topics, 128);
        ck_assert_uint_eq(number_of(map, "topics_total"), 301);
    }
    for (size_t i = 0; i < 300; i++)
        ck_assert_msg(seen[i], "t%zu", i);
}

TEST(metrics_can_be_off)
{
    const struct rmp_broker_options off = {.key = {3, 4}};

    restart_broker(&off);
    ck_assert_int_eq(subscribe(WATCHER, 1, RMP_TOPIC_METRICS), RMP_RESULT_OK);
    ck_assert_uint_eq(rmp_broker_deadline(broker), RMP_NO_DEADLINE);
}

FIXTURE(set_up, tear_down)
