/* Busy subscribers: what waits for them, and the publishers that wait for a place. */
#include "build_config.h"

#include "rmp_broker_fixture.h"
#include "suite.h"

#define QUEUE_MAX 4
#define WAIT_MS 50

static const struct rmp_broker_options small = {.key = {3, 4}, .queue_max = QUEUE_MAX};

static void set_up(void)
{
    start_broker(&small);
}

static void tear_down(void)
{
    rmp_broker_free(broker);
}

/* Peer `peer` is busy, and QUEUE_MAX messages, from msg_id 1 on, wait for its subscription. */
static void fill(int peer, const char *topic)
{
    ck_assert_int_eq(subscribe(peer, 1, topic), RMP_RESULT_OK);
    peers[peer].room = 0;
    for (uint64_t i = 1; i <= QUEUE_MAX; i++)
        ck_assert_int_eq(publish(3, topic, i), RMP_RESULT_OK);
}

static void expect_ended(int peer, size_t count, enum rmp_outcome outcome)
{
    ck_assert_uint_eq(peers[peer].ended_count, count);
    ck_assert_int_eq(peers[peer].ended[count - 1].outcome, outcome);
}

static void expect_in_order(int peer, size_t count)
{
    ck_assert_uint_eq(peers[peer].got_count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(peers[peer].got[i].header.msg_id, i + 1);
}

static void replay(int peer, const char *topic, uint64_t msg_id)
{
    const struct rmp_sub_name name = {RMP_DIALECT_JSON, 1};
    char frame[RMP_BODY_OFFSET + 64];
    struct rmp_publication publication = {.header = header_of(msg_id), .topic = text(topic)};

    publication.header.body_len = 64;
    rmp_header_write_prefixed(frame, &publication.header);
    memset(frame + RMP_BODY_OFFSET, 'b', 64);
    publication.frame = slice_of(frame, sizeof frame);
    rmp_broker_replay(broker, &peers[peer].peer, name, &publication, now);
}

/* Beyond the limits of the queue, and before what is published afterwards. */
TEST(replayed_messages_wait_before_those_of_now)
{
    ck_assert_int_eq(subscribe(0, 1, "t"), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe(1, 1, "t"), RMP_RESULT_OK);
    peers[0].room = 2;
    for (uint64_t i = 1; i <= 2 * QUEUE_MAX; i++)
        replay(0, "t", i);
    ck_assert_uint_eq(peers[0].got_count, 2);
    ck_assert_uint_eq(peers[1].got_count, 0);
    ck_assert_uint_eq(rmp_broker_counters(broker)->replayed, 2 * QUEUE_MAX);
    ck_assert_int_eq(publish(3, "t", 2 * QUEUE_MAX + 1), WAITS);
    resume(0, NO_LIMIT);
    expect_in_order(0, 2 * QUEUE_MAX + 1);
    run();
    expect_ended(3, 1, RMP_RESULT_OK);
    ck_assert_uint_eq(peers[1].got_count, 1);
}

/* A replayed message is none by which duplicates are known. */
TEST(replayed_message_may_be_published_again)
{
    ck_assert_int_eq(subscribe(0, 1, "t"), RMP_RESULT_OK);
    replay(0, "t", 1);
    ck_assert_int_eq(publish(3, "t", 1), RMP_RESULT_OK);
    ck_assert_uint_eq(peers[0].got_count, 2);
    ck_assert_int_eq(publish(3, "t", 1), RMP_RESULT_OK);
    ck_assert_uint_eq(peers[0].got_count, 2);
}

TEST(messages_wait_for_a_busy_peer_in_order)
{
    fill(1, "t");
    ck_assert_uint_eq(peers[1].got_count, 0);
    resume(1, 2);
    expect_in_order(1, 2);
    publish(0, "t", 5);
    publish(0, "t", 6);
    resume(1, NO_LIMIT);
    expect_in_order(1, 6);
    publish(0, "t", 7);
    expect_in_order(1, 7);
    ck_assert_uint_eq(rmp_broker_counters(broker)->sent, 7);
}

TEST(waiting_message_is_the_one_that_was_published)
{
    char expected[RMP_BODY_OFFSET + 64];

    fill(1, "a/topic");
    resume(1, NO_LIMIT);
    ck_assert_str_eq(peers[1].got[0].topic, "a/topic");
    ck_assert_uint_eq(peers[1].got[0].frame_len, sizeof expected);
    ck_assert_uint_eq(peers[1].got[0].header.schema_id, 3003);
    rmp_header_write_prefixed(expected, &peers[1].got[0].header);
    memset(expected + RMP_BODY_OFFSET, 'b', 64);
    ck_assert_mem_eq(peers[1].got[0].frame, expected, sizeof expected);
}

TEST(busy_peer_delays_no_other)
{
    fill(1, "t");
    subscribe(2, 1, "t");
    subscribe(0, 1, "t");
    ck_assert_int_eq(publish(3, "t", 9), WAITS);
    ck_assert_uint_eq(peers[2].got_count, 1);
    ck_assert_uint_eq(peers[0].got_count, 1);
}

TEST(full_queue_makes_the_publisher_wait_50_ms_and_then_drops)
{
    fill(1, "t");
    ck_assert_int_eq(publish(0, "t", 5), WAITS);
    ck_assert_uint_eq(rmp_broker_deadline(broker), START_MS + WAIT_MS);
    pass(WAIT_MS - 1);
    run();
    ck_assert_uint_eq(peers[0].ended_count, 0);
    pass(1);
    run();
    expect_ended(0, 1, RMP_RESULT_BACKPRESSURE_TIMEOUT);
    ck_assert_uint_eq(peers[0].ended[0].token, 5);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_backpressure, 1);
    run();
    ck_assert_uint_eq(peers[0].ended_count, 1);
    resume(1, NO_LIMIT);
    expect_in_order(1, QUEUE_MAX);
}

TEST(publisher_that_waits_gets_the_place_that_comes_free)
{
    fill(1, "t");
    ck_assert_int_eq(publish(0, "t", 5), WAITS);
    ck_assert_int_eq(publish(2, "t", 6), WAITS);
    pass(20);
    resume(1, 1);
    ck_assert_uint_eq(rmp_broker_deadline(broker), 0);
    run();
    expect_ended(0, 1, RMP_RESULT_OK);
    ck_assert_uint_eq(peers[2].ended_count, 0);
    resume(1, NO_LIMIT);
    run();
    expect_ended(2, 1, RMP_RESULT_OK);
    expect_in_order(1, 6);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_backpressure, 0);
}

TEST(publisher_waits_50_ms_in_all_for_several_full_queues)
{
    fill(1, "t");
    subscribe(2, 1, "t");
    peers[2].room = 0;
    for (uint64_t i = 11; i < 11 + QUEUE_MAX; i++)
        publish(3, "t", i); /* dropped for peer 1: it is waited for only once at a time */
    pass(WAIT_MS);
    run();
    resume(1, 1); /* it takes something, so that it is waited for again */
    ck_assert_int_eq(publish(3, "t", 20), RMP_RESULT_COUNT);
    ck_assert_int_eq(publish(0, "t", 21), RMP_RESULT_COUNT);
    pass(WAIT_MS / 2);
    resume(2, NO_LIMIT);
    run();
    pass(WAIT_MS / 2);
    run();
    expect_ended(0, 1, RMP_RESULT_BACKPRESSURE_TIMEOUT);
    /* The others got it. */
    ck_assert_uint_eq(peers[2].got[peers[2].got_count - 1].header.msg_id, 21);
}

TEST(peer_that_has_stopped_reading_costs_a_publisher_50_ms_once)
{
    fill(1, "t");
    ck_assert_int_eq(publish(0, "t", 5), WAITS);
    pass(WAIT_MS);
    run();
    ck_assert_int_eq(publish(0, "t", 6), RMP_RESULT_BACKPRESSURE_TIMEOUT);
    ck_assert(slice_equal(result.text, text("t")));
    ck_assert_int_eq(publish(2, "t", 7), RMP_RESULT_BACKPRESSURE_TIMEOUT);
    resume(1, 1);
    ck_assert_int_eq(publish(0, "t", 8), RMP_RESULT_OK);
    ck_assert_int_eq(publish(0, "t", 9), WAITS);
}

TEST(message_that_was_dropped_may_be_published_again)
{
    fill(1, "t");
    subscribe(2, 1, "t");
    publish(0, "t", 5);
    pass(WAIT_MS);
    run();
    ck_assert_int_eq(publish(0, "t", 6), RMP_RESULT_BACKPRESSURE_TIMEOUT);
    resume(1, NO_LIMIT);
    ck_assert_int_eq(publish(0, "t", 5), RMP_RESULT_OK);
    ck_assert_int_eq(publish(0, "t", 6), RMP_RESULT_OK);
    expect_in_order(1, 6);
    /* The other subscription has them already, and now both have. */
    ck_assert_uint_eq(peers[2].got_count, 2);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_duplicate, 2);
    publish(0, "t", 5);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_duplicate, 4);
    expect_in_order(1, 6);
}

TEST(duplicate_of_a_message_that_waits_is_dropped)
{
    fill(1, "t");
    ck_assert_int_eq(publish(0, "t", 5), WAITS);
    ck_assert_int_eq(publish(2, "t", 5), RMP_RESULT_OK);
    ck_assert_int_eq(publish(2, "t", 1), RMP_RESULT_OK);
    pass(WAIT_MS);
    run();
    /* Dropped, although a duplicate came in between. */
    resume(1, NO_LIMIT);
    ck_assert_int_eq(publish(2, "t", 5), RMP_RESULT_OK);
    expect_in_order(1, 5);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_duplicate, 2);
}

TEST(queue_is_limited_for_each_subscription)
{
    fill(1, "t");
    subscribe(1, 2, "u");
    ck_assert_int_eq(publish(0, "u", 1), RMP_RESULT_OK);
    ck_assert_int_eq(publish(0, "t", 5), WAITS);
    resume(1, 1);
    run();
    expect_ended(0, 1, RMP_RESULT_OK);
    ck_assert_int_eq(publish(0, "u", 2), RMP_RESULT_OK);
}

TEST(queue_is_limited_in_bytes_for_each_peer)
{
    const struct rmp_broker_options options = {.key = {3, 4}, .queue_bytes = 3000};
    struct rmp_header header = header_of(1);

    restart_broker(&options);
    subscribe(1, 1, "t");
    subscribe(1, 2, "u");
    peers[1].room = 0;
    /* A message over the limit waits if nothing else does. */
    publish_frame(0, text("t"), header, 5000);
    ck_assert_int_eq(result.outcome, RMP_RESULT_OK);
    ck_assert_int_eq(publish(0, "u", 2), WAITS);
    resume(1, 1);
    run();
    expect_ended(0, 1, RMP_RESULT_OK);
    header.msg_id = 3;
    ck_assert(publish_frame(0, text("t"), header, 1000));
    header.msg_id = 4;
    ck_assert(publish_frame(0, text("u"), header, 1000));
    header.msg_id = 5;
    ck_assert(!publish_frame(0, text("t"), header, 1000));
    resume(1, NO_LIMIT);
    expect_in_order(1, 5);
}

TEST(all_copies_are_limited_but_a_peer_that_holds_little_gets_more)
{
    const struct rmp_broker_options options = {.key = {3, 4}, .copies_bytes = 8192};
    struct rmp_header header = header_of(1);

    restart_broker(&options);
    subscribe(1, 1, "t");
    subscribe(2, 1, "u");
    peers[1].room = peers[2].room = 0;
    publish_frame(0, text("t"), header, 7000);
    ck_assert_int_eq(result.outcome, RMP_RESULT_OK);
    /* Half of an equal share of four peers is 1024. */
    ck_assert_int_eq(publish(0, "u", 1), RMP_RESULT_OK);
    header.msg_id = 2;
    ck_assert(publish_frame(0, text("u"), header, 1000));
    ck_assert_int_eq(result.outcome, RMP_RESULT_BACKPRESSURE_TIMEOUT);
    resume(1, NO_LIMIT);
    ck_assert(publish_frame(0, text("u"), header, 1000));
    ck_assert_int_eq(result.outcome, RMP_RESULT_OK);
}

TEST(peer_without_memory_misses_the_message)
{
    subscribe(1, 1, "t");
    peers[1].refuses = true;
    ck_assert_int_eq(publish(0, "t", 1), RMP_RESULT_BACKPRESSURE_TIMEOUT);
    peers[1].refuses = false;
    ck_assert_int_eq(publish(0, "t", 1), RMP_RESULT_OK);
    ck_assert_uint_eq(peers[1].got_count, 1);
    peers[1].room = 0;
    publish(0, "t", 2);
    peers[1].refuses = true;
    resume(1, NO_LIMIT);
    peers[1].refuses = false;
    publish(0, "t", 2);
    expect_in_order(1, 2);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_backpressure, 2);
}

TEST(message_whose_turn_comes_before_a_place_is_delivered)
{
    const struct rmp_broker_options options = {.key = {3, 4}, .queue_max = 1};

    restart_broker(&options);
    subscribe(1, 1, "t");
    subscribe(1, 2, "u");
    peers[1].room = 0;
    publish(0, "t", 1);
    ck_assert_int_eq(publish(0, "t", 2), WAITS);
    publish(2, "u", 3);
    resume(1, 2);
    run();
    expect_in_order(1, 2);
    expect_ended(0, 1, RMP_RESULT_OK);
}

/* --- ends --- */

TEST(unsubscribing_ends_the_waiting)
{
    fill(1, "t");
    publish(0, "t", 5);
    unsubscribe(1, 1);
    run();
    expect_ended(0, 1, RMP_RESULT_OK);
    resume(1, NO_LIMIT);
    ck_assert_uint_eq(peers[1].got_count, 0);
}

TEST(replacing_a_subscription_forgets_what_waits_for_it_alone)
{
    fill(1, "t");
    subscribe(1, 2, "u");
    publish(0, "u", 7);
    subscribe(1, 1, "v");
    publish(0, "v", 8);
    resume(1, NO_LIMIT);
    ck_assert_uint_eq(peers[1].got_count, 2);
    ck_assert_uint_eq(peers[1].got[0].header.msg_id, 7);
    ck_assert_uint_eq(peers[1].got[1].header.msg_id, 8);
}

TEST(subscriber_that_leaves_ends_the_waiting)
{
    fill(1, "t");
    fill(2, "u");
    publish(0, "t", 5);
    publish(0, "u", 5);
    rmp_broker_leave(broker, &peers[1].peer);
    run();
    expect_ended(0, 1, RMP_RESULT_OK);
    pass(WAIT_MS);
    run();
    expect_ended(0, 2, RMP_RESULT_BACKPRESSURE_TIMEOUT);
}

TEST(publication_of_a_publisher_that_leaves_goes_on_waiting)
{
    fill(1, "t");
    ck_assert_int_eq(publish(0, "t", 5), WAITS);
    rmp_broker_leave(broker, &peers[0].peer);
    resume(1, NO_LIMIT);
    run();
    expect_in_order(1, 5);
    ck_assert_uint_eq(peers[0].ended_count, 0);
}

TEST(publisher_may_leave_when_it_hears_of_the_end)
{
    fill(1, "t");
    publish(0, "t", 5);
    publish(0, "t", 6);
    peers[0].leaves = true;
    pass(WAIT_MS);
    run();
    ck_assert_uint_eq(peers[0].ended_count, 1);
}

TEST(publisher_that_is_its_own_subscriber_may_leave_while_it_waits)
{
    fill(1, "t");
    ck_assert_int_eq(publish(1, "t", 5), WAITS);
    rmp_broker_leave(broker, &peers[1].peer);
    run();
    ck_assert_uint_eq(peers[1].ended_count, 0);
    ck_assert_uint_eq(rmp_broker_deadline(broker), RMP_NO_DEADLINE);
}

TEST(close_ends_the_waiting)
{
    fill(1, "t");
    publish(0, "t", 5);
    rmp_broker_close(broker, now);
    run();
    expect_ended(0, 1, RMP_RESULT_CLOSED);
    resume(1, NO_LIMIT);
    expect_in_order(1, QUEUE_MAX);
}

TEST(message_that_expires_while_its_publisher_waits_is_reported_so)
{
    struct rmp_header header = header_of(5);

    fill(1, "t");
    header.ttl_ms = 10;
    ck_assert(!publish_frame(0, text("t"), header, 8));
    pass(20);
    resume(1, NO_LIMIT);
    run();
    expect_ended(0, 1, RMP_RESULT_MESSAGE_EXPIRED);
    expect_in_order(1, QUEUE_MAX);
}

TEST(broker_with_waiting_messages_is_freed_whole)
{
    fill(1, "t");
    fill(2, "u");
    publish(0, "t", 5);
    publish(0, "u", 5);
    resume(1, 1);
    /* The leak checker and broker_free's assertion look. */
}

FIXTURE(set_up, tear_down)
