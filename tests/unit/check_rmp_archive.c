/* A broker that continues from the archive of another one (upgrade in place). */
#include "build_config.h"

#include "rmp/state.h"
#include "rmp_archive_fixture.h"
#include "suite.h"

#define QUEUE_MAX 4
#define WAIT_MS 50

static const struct rmp_broker_options small = {
    .key = {3, 4}, .queue_max = QUEUE_MAX, .metrics_interval_ms = 1000};

static void set_up(void)
{
    start_broker(&small);
}

static void tear_down(void)
{
    rmp_broker_free(broker);
}

static const char *load_broker(struct slice bytes)
{
    replace_broker(&small);
    return load_archive(bytes);
}

static void hand_over(void)
{
    struct archive archive;
    struct slice bytes = save_broker(&archive);

    ck_assert_ptr_null(load_broker(bytes));
    archive_free(&archive);
}

/* Peer `peer` is busy, and QUEUE_MAX messages, from msg_id 1 on, wait for its subscription. */
static void fill(int peer)
{
    ck_assert_int_eq(subscribe(peer, 1, "t"), RMP_RESULT_OK);
    peers[peer].room = 0;
    for (uint64_t i = 1; i <= QUEUE_MAX; i++)
        ck_assert_int_eq(publish(3, "t", i), RMP_RESULT_OK);
}

static void expect_ended(size_t count, enum rmp_outcome outcome)
{
    ck_assert_uint_eq(peers[3].ended_count, count);
    if (count > 0)
        ck_assert_int_eq(peers[3].ended[count - 1].outcome, outcome);
}

TEST(archived_copy_stays_one_copy)
{
    size_t bytes, queued;

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(subscribe(i, 1, "t"), RMP_RESULT_OK);
        ck_assert_int_eq(subscribe(i, 2, "t"), RMP_RESULT_OK);
        peers[i].room = 0;
    }
    for (uint64_t i = 1; i <= 3; i++)
        ck_assert_int_eq(publish(3, "t", i), RMP_RESULT_OK);
    bytes = broker->copies_bytes;
    queued = broker->queued;
    hand_over();
    ck_assert_uint_eq(broker->copies_bytes, bytes);
    ck_assert_uint_eq(broker->queued, queued);
    for (int i = 0; i < 3; i++) {
        resume(i, NO_LIMIT);
        ck_assert_uint_eq(peers[i].got_count, 6);
        for (size_t k = 0; k < 6; k++) {
            ck_assert_uint_eq(peers[i].got[k].header.msg_id, k / 2 + 1);
            ck_assert_uint_eq(peers[i].got[k].name.sub_id, k % 2 + 1);
        }
    }
    ck_assert_uint_eq(broker->copies_bytes, 0);
}

/* row 0: its time is over; 1: a place comes free; 2: the broker is closed. */
TEST_ROWS(archived_publisher_waits_on, 3)
{
    fill(1);
    ck_assert_int_eq(publish(3, "t", 5), WAITS);
    pass(WAIT_MS - 1);
    hand_over();
    run();
    expect_ended(0, RMP_RESULT_OK);
    if (row == 0)
        pass(1);
    else if (row == 1)
        resume(1, 1);
    else
        rmp_broker_close(broker, now);
    run();
    expect_ended(1, row == 0   ? RMP_RESULT_BACKPRESSURE_TIMEOUT
                    : row == 1 ? RMP_RESULT_OK
                               : RMP_RESULT_CLOSED);
    ck_assert_uint_eq(peers[3].ended[0].token, 5);
    resume(1, NO_LIMIT);
    ck_assert_uint_eq(peers[1].got_count, row == 1 ? 5 : 4);
}

TEST(archived_end_is_reported_once)
{
    fill(1);
    ck_assert_int_eq(publish(3, "t", 5), WAITS);
    resume(1, 1);
    hand_over();
    ck_assert_uint_eq(rmp_broker_deadline(broker), 0);
    run();
    expect_ended(1, RMP_RESULT_OK);
    hand_over();
    run();
    expect_ended(1, RMP_RESULT_OK);
}

TEST(archived_wait_of_a_publisher_that_has_left)
{
    fill(1);
    ck_assert_int_eq(publish(3, "t", 5), WAITS);
    rmp_broker_leave(broker, &peers[3].peer);
    rmp_broker_join(broker, &peers[3].peer, &test_ops, RMP_KIND_AGENT);
    hand_over();
    resume(1, NO_LIMIT);
    run();
    expect_ended(0, RMP_RESULT_OK);
    ck_assert_uint_eq(peers[1].got_count, 5);
}

/* One that was dropped for a subscription is no duplicate for it. */
TEST(archived_memory_of_duplicates)
{
    fill(1);
    ck_assert_int_eq(subscribe(2, 1, "t"), RMP_RESULT_OK);
    ck_assert_int_eq(publish(3, "t", 5), WAITS);
    pass(WAIT_MS);
    run();
    ck_assert_int_eq(subscribe(0, 1, "t"), RMP_RESULT_OK);
    hand_over();
    resume(1, NO_LIMIT);
    ck_assert_int_eq(publish(3, "t", 5), RMP_RESULT_OK);
    ck_assert_uint_eq(peers[0].got_count, 1);
    ck_assert_uint_eq(peers[1].got_count, 5);
    ck_assert_uint_eq(peers[2].got_count, 1);
    hand_over();
    ck_assert_int_eq(publish(3, "t", 5), RMP_RESULT_OK);
    ck_assert_uint_eq(peers[0].got_count + peers[1].got_count + peers[2].got_count, 7);
    ck_assert_uint_eq(rmp_broker_counters(broker)->drops_duplicate, 4);
}

TEST(archived_memory_of_duplicates_is_forgotten_in_time)
{
    ck_assert_int_eq(subscribe(1, 1, "t"), RMP_RESULT_OK);
    ck_assert_int_eq(publish(3, "t", 1), RMP_RESULT_OK);
    pass(3000000);
    ck_assert_int_eq(publish(3, "t", 2), RMP_RESULT_OK);
    hand_over();
    pass(600000); /* as long as messages may live, since the first */
    run();
    ck_assert_int_eq(publish(3, "t", 1), RMP_RESULT_OK);
    ck_assert_int_eq(publish(3, "t", 2), RMP_RESULT_OK);
    ck_assert_uint_eq(peers[1].got_count, 3);
    pass(7200000);
    run();
    hand_over();
    ck_assert(list_empty(&rmp_topics_find(&broker->topics, text("t"))->known));
    ck_assert_uint_eq(broker->memory.bytes[RMP_KEYS], 0);
}

TEST(archived_metrics_and_notices_go_on)
{
    uint64_t trace, id;

    ck_assert_int_eq(subscribe(0, 1, RMP_TOPIC_METRICS), RMP_RESULT_OK);
    pass(1000);
    run();
    ck_assert_uint_eq(peers[0].got_count, 1);
    trace = peers[0].got[0].header.trace_id.high;
    id = peers[0].got[0].header.msg_id;
    pass(999);
    hand_over();
    run();
    ck_assert_uint_eq(peers[0].got_count, 1);
    pass(1);
    run();
    ck_assert_uint_eq(peers[0].got_count, 2);
    ck_assert_uint_eq(peers[0].got[1].header.trace_id.high, trace);
    ck_assert_uint_eq(peers[0].got[1].header.msg_id, id + 1);
}

/* --- faults --- */

/* A state that has some of everything. */
static void live(void)
{
    fill(1);
    ck_assert_int_eq(subscribe(1, 2, "u"), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe(2, 1, "t"), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe(0, 1, RMP_TOPIC_DROPS), RMP_RESULT_OK);
    ck_assert_int_eq(publish(3, "t", 5), WAITS);
    pass(WAIT_MS);
    run();
    resume(1, 1);
    peers[1].room = 0;
    ck_assert_int_eq(publish(3, "t", 6), RMP_RESULT_OK);
    ck_assert_int_eq(publish(3, "t", 7), WAITS);
    resume(1, 1);
    ck_assert_int_eq(publish(3, "t", 8), WAITS);
}

/* What can be done with a broker, whatever has been loaded into it. */
static void use(void)
{
    for (int i = 0; i < PEERS; i++)
        peers[i].got_count = peers[i].ended_count = 0;
    publish(3, "t", 9);
    publish(3, "u", 1);
    resume(1, NO_LIMIT);
    pass(WAIT_MS);
    run();
    unsubscribe(1, 1);
    pass(7200000);
    run();
    now = (struct rmp_time){.epoch_ms = EPOCH_MS + WAIT_MS, .now_ms = START_MS + WAIT_MS};
}

TEST(archive_with_any_number_changed_is_refused_or_harmless)
{
    static const uint64_t values[] = {0, 1, 2, 5, 70, UINT32_MAX, INT64_MAX, UINT64_MAX};
    struct archive archive;
    struct slice bytes;
    char *damaged;
    size_t refused = 0;

    live();
    bytes = save_broker(&archive);
    damaged = malloc(bytes.len);
    ck_assert_ptr_nonnull(damaged);
    for (size_t i = 0; i < (bytes.len - sizeof *values) * COUNT(values); i++) {
        memcpy(damaged, bytes.data, bytes.len);
        memcpy(damaged + i / COUNT(values), &values[i % COUNT(values)], sizeof *values);
        if (load_broker(slice_of(damaged, bytes.len)) == NULL)
            use();
        else
            refused++;
    }
    ck_assert_uint_gt(refused, bytes.len);
    free(damaged);
    archive_free(&archive);
}

TEST(archive_that_is_cut_is_refused)
{
    struct archive archive;
    struct slice bytes;

    live();
    bytes = save_broker(&archive);
    for (size_t len = 0; len < bytes.len; len++)
        ck_assert_ptr_nonnull(load_broker(slice_of(bytes.data, len)));
    ck_assert_ptr_null(load_broker(bytes));
    use();
    archive_free(&archive);
}

FIXTURE(set_up, tear_down)
