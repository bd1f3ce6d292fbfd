#include "build_config.h"

#include "rmp/broker.h"

#include "rmp_broker_fixture.h"
#include "suite.h"

static const struct rmp_broker_options defaults = {.key = {3, 4}};

static void set_up(void)
{
    start_broker(&defaults);
}

static void tear_down(void)
{
    rmp_broker_free(broker);
}

static void expect_got(int peer, size_t at, uint64_t sub_id, uint64_t msg_id)
{
    ck_assert_uint_gt(peers[peer].got_count, at);
    ck_assert_uint_eq(peers[peer].got[at].name.sub_id, sub_id);
    ck_assert_uint_eq(peers[peer].got[at].header.msg_id, msg_id);
}

/* --- subscriptions --- */

TEST(message_reaches_each_subscription_of_its_topic_and_no_other)
{
    subscribe(0, 1, "a/b");
    subscribe(1, 7, "a/b");
    subscribe(1, 8, "a/b");
    subscribe(2, 1, "a/bc");
    ck_assert_int_eq(publish(3, "a/b", 5), RMP_RESULT_OK);
    ck_assert_uint_eq(peers[0].got_count, 1);
    expect_got(0, 0, 1, 5);
    ck_assert_uint_eq(peers[1].got_count, 2);
    expect_got(1, 0, 7, 5);
    expect_got(1, 1, 8, 5);
    ck_assert_uint_eq(peers[2].got_count, 0);
    ck_assert_str_eq(peers[0].got[0].topic, "a/b");
    ck_assert_uint_eq(peers[0].got[0].frame_len, RMP_BODY_OFFSET + 64);
    ck_assert_uint_eq(rmp_broker_counters(broker)->received, 1);
    ck_assert_uint_eq(rmp_broker_counters(broker)->sent, 3);
}

TEST(topic_is_compared_byte_for_byte)
{
    subscribe(0, 1, "topic");
    publish(1, "Topic", 1);
    publish(1, "topi", 2);
    publish(1, "topic/", 3);
    publish(1, "topic ", 4);
    publish(1, "*", 5);
    ck_assert_uint_eq(peers[0].got_count, 0);
}

/* Each peer gets each event once, whichever name it and the publisher use; the second peer has
 * subscribed to both, as frames do. */
TEST(events_of_a_run_have_two_names)
{
    static const char with[] = "rlp/runs/trace:11223344-5566-7788-99aa-bbccddeeff00/events",
                      bare[] = "rlp/runs/11223344-5566-7788-99aa-bbccddeeff00/events",
                      no_uuid[] = "rlp/runs/11223344-5566-7788-99aa-bbccddeeffgg/events";

    const struct rmp_sub_name frames = {.dialect = RMP_DIALECT_FRAMES};

    subscribe(0, 1, bare);
    rmp_broker_subscribe(broker, &peers[1].peer, frames, text(with), now);
    rmp_broker_subscribe(broker, &peers[1].peer, frames, text(bare), now);
    subscribe(2, 1, no_uuid);
    publish(3, with, 1);
    publish(3, bare, 2);
    publish(3, bare, 1); /* a duplicate */
    publish(3, no_uuid, 4);
    for (int peer = 0; peer < 2; peer++) {
        ck_assert_uint_eq(peers[peer].got_count, 2);
        ck_assert_uint_eq(peers[peer].got[0].header.msg_id, 1);
        ck_assert_uint_eq(peers[peer].got[1].header.msg_id, 2);
    }
    ck_assert_uint_eq(peers[2].got_count, 1);
    ck_assert_uint_eq(rmp_broker_gauges(broker).topics, 2);
}

/* A client of another user that publishes a message's key, first or later, makes it no duplicate;
 * the daemon is a user of its own. */
TEST(duplicates_are_those_of_one_user)
{
    subscribe(0, 1, "t");
    peers[1].peer.user = RMP_USERS;
    peers[2].peer.user = RMP_USERS + 1000;
    publish(1, "t", 5);
    publish(2, "t", 5);
    publish(3, "t", 5);
    ck_assert_uint_eq(peers[0].got_count, 3);
    for (int peer = 1; peer <= 3; peer++)
        publish(peer, "t", 5);
    ck_assert_uint_eq(peers[0].got_count, 3);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_duplicate, 3);
    peers[3].peer.user = RMP_USERS + 1000; /* another connection of it */
    publish(3, "t", 5);
    ck_assert_uint_eq(peers[0].got_count, 3);
}

TEST(without_subscriber_the_publisher_is_told_ok_and_nothing_is_kept)
{
    ck_assert_int_eq(publish(0, "t", 1), RMP_RESULT_OK);
    subscribe(1, 1, "t");
    ck_assert_uint_eq(peers[1].got_count, 0);
    /* It is no duplicate either. */
    ck_assert_int_eq(publish(0, "t", 1), RMP_RESULT_OK);
    ck_assert_uint_eq(peers[1].got_count, 1);
}

TEST(publisher_gets_its_own_messages)
{
    subscribe(0, 4, "t");
    ck_assert_int_eq(publish(0, "t", 1), RMP_RESULT_OK);
    expect_got(0, 0, 4, 1);
}

TEST(sub_id_in_use_replaces_the_old_subscription)
{
    subscribe(0, 1, "old");
    ck_assert_int_eq(subscribe(0, 1, "new"), RMP_RESULT_OK);
    publish(1, "old", 1);
    publish(1, "new", 2);
    ck_assert_uint_eq(peers[0].got_count, 1);
    expect_got(0, 0, 1, 2);
    ck_assert(unsubscribe(0, 1));
    ck_assert(!unsubscribe(0, 1));
    publish(1, "new", 3);
    ck_assert_uint_eq(peers[0].got_count, 1);
}

TEST(sub_id_in_use_on_the_same_topic_changes_nothing)
{
    subscribe(0, 1, "t");
    publish(1, "t", 1);
    subscribe(0, 1, "t");
    publish(1, "t", 1);
    publish(1, "t", 2);
    ck_assert_uint_eq(peers[0].got_count, 2);
    expect_got(0, 1, 1, 2);
}

TEST(sub_ids_of_two_peers_and_both_dialects_do_not_meet)
{
    const struct rmp_sub_name frames = {.dialect = RMP_DIALECT_FRAMES};

    subscribe(0, 0, "t");
    subscribe(1, 0, "t");
    rmp_broker_subscribe(broker, &peers[0].peer, frames, text("t"), now);
    rmp_broker_subscribe(broker, &peers[0].peer, frames, text("u"), now);
    rmp_broker_subscribe(broker, &peers[0].peer, frames, text("t"), now);
    publish(2, "t", 1);
    ck_assert_uint_eq(peers[0].got_count, 2);
    ck_assert_uint_eq(peers[1].got_count, 1);
    publish(2, "u", 2);
    ck_assert_uint_eq(peers[0].got_count, 3);
    ck_assert_int_eq(peers[0].got[2].name.dialect, RMP_DIALECT_FRAMES);
    ck_assert(!rmp_broker_unsubscribe(broker, &peers[0].peer, frames, text("v")));
    ck_assert(rmp_broker_unsubscribe(broker, &peers[0].peer, frames, text("t")));
    publish(2, "t", 3);
    ck_assert_uint_eq(peers[0].got_count, 4);
    ck_assert_int_eq(peers[0].got[3].name.dialect, RMP_DIALECT_JSON);
}

TEST(peer_that_has_left_gets_nothing)
{
    subscribe(0, 1, "t");
    subscribe(0, 2, "u");
    subscribe(1, 1, "t");
    rmp_broker_leave(broker, &peers[0].peer);
    publish(2, "t", 1);
    publish(2, "u", 2);
    ck_assert_uint_eq(peers[0].got_count, 0);
    ck_assert_uint_eq(peers[1].got_count, 1);
}

static const struct {
    const char *bytes;
    size_t len;
    bool valid;
} topics[] = {
    {"a", 1, true},
    {"", 0, false},
    {"a b/\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 13, true},
    {"a\nb", 3, false},
    {"a\0b", 3, false},
    {"\x1F", 1, false},
    {"\x7F", 1, false},
    {"\xC2\x80", 2, false},
    {"\xC2\x9F", 2, false},
    {"\xC2\xA0", 2, true},
    {"\xC3", 1, false},
    {"\xC0\x80", 2, false},
    {"\xED\xA0\x80", 3, false},
    {"\xFF", 1, false},
};

TEST_ROWS(topic_is_utf8_without_control_characters, COUNT(topics))
{
    const struct rmp_sub_name name = {RMP_DIALECT_JSON, 1};
    struct slice topic = slice_of(topics[row].bytes, topics[row].len);
    enum rmp_outcome expected = topics[row].valid ? RMP_RESULT_OK : RMP_RESULT_FORBIDDEN;
    struct rmp_result subscribed;

    publish_frame(1, topic, header_of(1), 8);
    ck_assert_int_eq(result.outcome, expected);
    subscribed = rmp_broker_subscribe(broker, &peers[0].peer, name, topic, now);
    ck_assert_int_eq(subscribed.outcome, expected);
    ck_assert_int_eq(subscribed.text.len > 0, !topics[row].valid);
}

TEST(topic_has_at_most_512_bytes)
{
    char longest[514];

    memset(longest, 't', sizeof longest);
    longest[512] = '\0';
    ck_assert_int_eq(subscribe(0, 1, longest), RMP_RESULT_OK);
    longest[512] = 't';
    longest[513] = '\0';
    ck_assert_int_eq(subscribe(0, 2, longest), RMP_RESULT_FORBIDDEN);
    ck_assert_int_eq(publish(0, longest, 1), RMP_RESULT_FORBIDDEN);
}

/* --- ACL (RMP 11) --- */

static const struct {
    enum rmp_kind kind;
    const char *topic;
    uint16_t schema_id;
    bool allowed;
} publishers[] = {
    {RMP_KIND_AGENT, "t", 3003, true},
    {RMP_KIND_AGENT, "t", 3006, false},
    {RMP_KIND_UI, "t", 3006, true},
    {RMP_KIND_TUI, "t", 3006, true},
    {RMP_KIND_AGENT, "action.decision", 3003, false},
    {RMP_KIND_AGENT, "action.decision2", 3003, true},
    {RMP_KIND_UI, "action.decision", 3006, true},
    {RMP_KIND_TUI, "action.decision", 3006, true},
    {RMP_KIND_AGENT, "rlp/sys/drops", 3007, false},
    {RMP_KIND_UI, "rlp/sys/metrics", 3001, false},
    {RMP_KIND_TUI, "rlp/sys/", 3001, false},
    {RMP_KIND_AGENT, "rlp/system", 3001, true},
    {RMP_KIND_AGENT, "rlp/ctrl", 2001, true},
    {RMP_KIND_AGENT, "rlp/runs/x/events", 8, true},
};

TEST_ROWS(kind_of_a_publisher_decides_what_it_may_publish, COUNT(publishers))
{
    struct rmp_header header = header_of(1);

    subscribe(1, 1, publishers[row].topic);
    peers[0].peer.kind = publishers[row].kind;
    header.schema_id = publishers[row].schema_id;
    ck_assert(publish_frame(0, text(publishers[row].topic), header, 8));
    ck_assert_int_eq(result.outcome,
                     publishers[row].allowed ? RMP_RESULT_OK : RMP_RESULT_FORBIDDEN);
    ck_assert_uint_eq(peers[1].got_count, publishers[row].allowed);
    ck_assert(publishers[row].allowed || result.text.len > 0);
}

/* --- TTL and expiry (RMP 4) --- */

#define AGO(ms) (EPOCH_MS - (ms))

static const struct {
    uint64_t created_at_ms, ttl_ms;
    enum rmp_outcome outcome;
} lives[] = {
    {EPOCH_MS, 1, RMP_RESULT_OK},
    {EPOCH_MS, 0, RMP_RESULT_INVALID_TTL},
    {AGO(1), 1, RMP_RESULT_MESSAGE_EXPIRED},
    {AGO(1), 2, RMP_RESULT_OK},
    {EPOCH_MS + 1000, 1, RMP_RESULT_OK},
    {0, 3600000, RMP_RESULT_MESSAGE_EXPIRED},
    {EPOCH_MS, 3600000, RMP_RESULT_OK},
    {EPOCH_MS, 3600001, RMP_RESULT_INVALID_TTL},
    {UINT64_MAX, 1, RMP_RESULT_INVALID_EXPIRY},
    {UINT64_MAX - 1, 1, RMP_RESULT_OK},
    {1, UINT64_MAX, RMP_RESULT_INVALID_EXPIRY},
    {UINT64_MAX, UINT64_MAX, RMP_RESULT_INVALID_EXPIRY},
    {0, 0, RMP_RESULT_INVALID_TTL},
};

TEST_ROWS(expiry_is_created_at_plus_ttl, COUNT(lives))
{
    struct rmp_header header = header_of(1);

    subscribe(1, 1, "t");
    header.created_at_ms = lives[row].created_at_ms;
    header.ttl_ms = lives[row].ttl_ms;
    ck_assert(publish_frame(0, text("t"), header, 8));
    ck_assert_int_eq(result.outcome, lives[row].outcome);
    ck_assert_uint_eq(peers[1].got_count, lives[row].outcome == RMP_RESULT_OK);
    if (lives[row].outcome != RMP_RESULT_OK) {
        ck_assert_uint_eq(result.ttl_ms, lives[row].ttl_ms);
        ck_assert_uint_eq(result.created_at_ms, lives[row].created_at_ms);
    }
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_ttl,
                      lives[row].outcome == RMP_RESULT_MESSAGE_EXPIRED);
}

TEST(publication_is_judged_in_the_order_forbidden_ttl_expired)
{
    struct rmp_header header = header_of(1);

    header.ttl_ms = 0;
    header.created_at_ms = 0;
    publish_frame(0, text("rlp/sys/drops"), header, 8);
    ck_assert_int_eq(result.outcome, RMP_RESULT_FORBIDDEN);
    publish_frame(0, text("t"), header, 8);
    ck_assert_int_eq(result.outcome, RMP_RESULT_INVALID_TTL);
    header.ttl_ms = 1;
    publish_frame(0, text("t"), header, 8);
    ck_assert_int_eq(result.outcome, RMP_RESULT_MESSAGE_EXPIRED);
}

TEST(message_that_expires_in_the_queue_is_not_handed_over)
{
    struct rmp_header header = header_of(1);

    subscribe(1, 1, "t");
    peers[1].room = 0;
    header.ttl_ms = 100;
    publish_frame(0, text("t"), header, 8);
    publish(0, "t", 2);
    pass(100);
    resume(1, NO_LIMIT);
    ck_assert_uint_eq(peers[1].got_count, 1);
    expect_got(1, 0, 1, 2);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_ttl, 1);
    /* The subscription has not got it: a retry is no duplicate. */
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[1].got_count, 2);
    expect_got(1, 1, 1, 1);
}

/* --- duplicates (RMP 5) --- */

TEST(duplicate_is_dropped_and_the_publisher_told_ok)
{
    subscribe(1, 1, "t");
    ck_assert_int_eq(publish(0, "t", 1), RMP_RESULT_OK);
    ck_assert_int_eq(publish(0, "t", 1), RMP_RESULT_OK);
    ck_assert_int_eq(publish(2, "t", 1), RMP_RESULT_OK);
    ck_assert_uint_eq(peers[1].got_count, 1);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_duplicate, 2);
}

TEST(trace_id_msg_id_and_topic_tell_messages_apart)
{
    struct rmp_header header = header_of(1);

    subscribe(1, 1, "t");
    subscribe(1, 2, "u");
    publish(0, "t", 1);
    publish(0, "u", 1);
    publish(0, "t", 2);
    header.trace_id.low++;
    publish_frame(0, text("t"), header, 8);
    header.trace_id.low--;
    header.trace_id.high++;
    publish_frame(0, text("t"), header, 8);
    ck_assert_uint_eq(peers[1].got_count, 5);
}

TEST(duplicates_are_told_apart_for_each_subscription)
{
    subscribe(1, 1, "t");
    publish(0, "t", 1);
    subscribe(1, 2, "t");
    subscribe(2, 1, "t");
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[1].got_count, 2);
    expect_got(1, 1, 2, 1);
    ck_assert_uint_eq(peers[2].got_count, 1);
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[1].got_count, 2);
    ck_assert_uint_eq(peers[2].got_count, 1);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_duplicate, 4);
}

TEST(duplicate_is_known_as_long_as_the_longest_ttl)
{
    subscribe(1, 1, "t");
    publish(0, "t", 1);
    pass(3599999);
    run();
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[1].got_count, 1);
    pass(3600000);
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[1].got_count, 2);
}

TEST(horizon_of_duplicates_is_at_least_30_seconds)
{
    const struct rmp_broker_options options = {.key = {3, 4}, .max_ttl_ms = 1000};
    struct rmp_header header;

    restart_broker(&options);
    subscribe(1, 1, "t");
    header = header_of(1);
    header.ttl_ms = 1000;
    publish_frame(0, text("t"), header, 8);
    pass(29999);
    header.created_at_ms = now.epoch_ms;
    publish_frame(0, text("t"), header, 8);
    ck_assert_uint_eq(peers[1].got_count, 1);
    pass(30000);
    header.created_at_ms = now.epoch_ms;
    publish_frame(0, text("t"), header, 8);
    ck_assert_uint_eq(peers[1].got_count, 2);
}

TEST(memory_of_duplicates_is_freed_after_the_horizon)
{
    ck_assert_uint_eq(rmp_broker_deadline(broker), RMP_NO_DEADLINE);
    subscribe(1, 1, "t");
    ck_assert_uint_eq(rmp_broker_deadline(broker), RMP_NO_DEADLINE);
    publish(0, "t", 1);
    ck_assert_uint_eq(rmp_broker_deadline(broker), START_MS + 3600000);
    pass(1800000);
    publish(0, "t", 2);
    pass(1800000);
    run();
    ck_assert_uint_eq(rmp_broker_deadline(broker), START_MS + 7200000);
    pass(3600000);
    run();
    ck_assert_uint_eq(rmp_broker_deadline(broker), RMP_NO_DEADLINE);
    publish(0, "t", 2);
    ck_assert_uint_eq(peers[1].got_count, 3);
}

TEST(memory_of_duplicates_ends_with_the_topic)
{
    subscribe(1, 1, "t");
    publish(0, "t", 1);
    unsubscribe(1, 1);
    ck_assert_uint_eq(rmp_broker_deadline(broker), RMP_NO_DEADLINE);
    subscribe(1, 1, "t");
    publish(0, "t", 1);
    ck_assert_uint_eq(peers[1].got_count, 2);
}

/* --- the observer --- */

static struct text *noted;

static void note_opened(struct rmp_observer *observer, struct slice topic, void **mark)
{
    (void)observer;
    text_printf(noted, "+%.*s ", (int)topic.len, topic.data);
    *mark = test_text();
    text_printf(*mark, "%.*s", (int)topic.len, topic.data);
}

static void note_closed(struct rmp_observer *observer, void **mark)
{
    const struct text *name = *mark;

    (void)observer;
    text_printf(noted, "-%.*s ", (int)name->len, name->data);
}

static void note_accepted(struct rmp_observer *observer, const struct rmp_peer *publisher,
                          const struct rmp_publication *publication)
{
    (void)observer;
    ck_assert_ptr_eq(publisher, &peers[0].peer);
    text_printf(noted, "%.*s=%u ", (int)publication->topic.len, publication->topic.data,
                (unsigned)publication->header.msg_id);
}

static struct rmp_observer observer = {note_opened, note_closed, note_accepted};

static void expect_noted(const char *words)
{
    text_add(noted, "", 1);
    ck_assert_str_eq(noted->data, words);
    noted->len = 0;
}

static void observe(void)
{
    noted = test_text();
    rmp_broker_observe(broker, &observer);
}

TEST(observer_hears_of_first_and_last_subscriptions)
{
    subscribe(1, 1, "a");
    observe();
    expect_noted("+a ");
    subscribe(1, 2, "a");
    subscribe(2, 1, "b");
    subscribe(2, 1, "c"); /* in its place */
    unsubscribe(1, 1);
    expect_noted("+b +c -b ");
    unsubscribe(1, 2);
    rmp_broker_leave(broker, &peers[2].peer);
    expect_noted("-a -c ");
    subscribe(1, 1, "d");
    rmp_broker_observe(broker, NULL);
    subscribe(1, 2, "e");
    expect_noted("+d -d ");
}

TEST(observer_hears_of_publications_that_are_not_refused)
{
    observe();
    ck_assert_int_eq(publish(0, "a", 1), RMP_RESULT_OK); /* without a subscriber, too */
    publish(0, "rlp/sys/drops", 2);
    publish(0, "", 3);
    subscribe(1, 1, "a");
    subscribe(2, 1, RMP_TOPIC_DROPS);
    publish(0, "a", 4);
    publish(0, "a", 4); /* a duplicate, with a notice of the broker's own */
    ck_assert_uint_eq(peers[2].got_count, 1);
    publish(0, "rlp/runs/00000000-0000-0000-0000-000000000001/events", 5);
    expect_noted("a=1 +a +rlp/sys/drops a=4 a=4 "
                 "rlp/runs/trace:00000000-0000-0000-0000-000000000001/events=5 ");
    rmp_broker_observe(broker, NULL);
}

/* --- control --- */

TEST(after_close_nothing_is_published_or_subscribed)
{
    subscribe(1, 1, "t");
    peers[1].room = 0;
    publish(0, "t", 1);
    rmp_broker_close(broker, now);
    ck_assert_int_eq(publish(0, "t", 2), RMP_RESULT_CLOSED);
    ck_assert_int_eq(subscribe(0, 1, "t"), RMP_RESULT_CLOSED);
    resume(1, NO_LIMIT);
    ck_assert_uint_eq(peers[1].got_count, 1);
}

FIXTURE(set_up, tear_down)
