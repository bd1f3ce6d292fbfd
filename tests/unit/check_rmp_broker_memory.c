/* The broker's memory: what a topic and a subscription take, that a delivery allocates nothing, and
 * that the broker is whole after any allocation has failed. The linker puts these counters before
 * the functions of the C library. */
#include "build_config.h"

#include "quick_assert.h"
#include "rmp/dedupe.h"
#include "rmp_archive_fixture.h"
#include "suite.h"

static bool in_broker; /* only then are allocations counted, and do they fail */
static size_t allocations;
static size_t fails_from = SIZE_MAX, fails_to = SIZE_MAX;
static size_t bytes; /* that were ever asked for, each allocation with a word of its own */

void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);

static bool may_allocate(void)
{
    size_t number = allocations;

    if (!in_broker)
        return true;
    allocations++;
    return number < fails_from || number >= fails_to;
}

void *__wrap_malloc(size_t size)
{
    if (!may_allocate())
        return NULL;
    bytes += size + sizeof(size_t);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t number, size_t size)
{
    if (!may_allocate())
        return NULL;
    bytes += number * size + sizeof(size_t);
    return __real_calloc(number, size);
}

static const struct rmp_broker_options defaults = {.key = {3, 4},
                                                   .subscription_bytes = (size_t)1 << 30};

static void set_up(void)
{
    start_broker(&defaults);
}

static void tear_down(void)
{
    in_broker = false;
    rmp_broker_free(broker);
}

/* --- the fast road --- */

static void publish_many(uint64_t from, uint64_t count_of)
{
    char frame[RMP_BODY_OFFSET + 256] = {0};
    struct rmp_publication publication = {.header = header_of(from),
                                          .topic = text("rlp/runs/1/events"),
                                          .frame = slice_of(frame, sizeof frame)};

    for (uint64_t i = 0; i < count_of; i++) {
        publication.header.msg_id = from + i;
        QUICK_ASSERT(rmp_broker_publish(broker, &peers[0].peer, &publication, now, 0, &result));
        QUICK_ASSERT(result.outcome == RMP_RESULT_OK);
        for (int k = 0; k < PEERS; k++)
            peers[k].got_count = 0;
    }
}

TEST(delivery_allocates_nothing)
{
    for (int i = 0; i < PEERS; i++)
        subscribe(i, 1, "rlp/runs/1/events");
    publish_many(1, 600); /* the memory of duplicates has grown to 1,024 */
    in_broker = true;
    publish_many(601, 424);
    in_broker = false;
    ck_assert_uint_eq(allocations, 0);
    publish_many(2000, RMP_DEDUPE_MAX);
    in_broker = true;
    publish_many(200000, 1000);
    in_broker = false;
    ck_assert_uint_eq(allocations, 0);
}

/* --- the size --- */

#define MANY 100000

TEST(topic_and_subscription_take_less_than_300_bytes_each)
{
    char topic[32];
    size_t before = bytes, with_topics, with_subscriptions;

    for (int i = 0; i < MANY; i++) {
        snprintf(topic, sizeof topic, "rlp/runs/trace:%08d", i);
        QUICK_ASSERT(subscribe(0, (uint64_t)i, topic) == RMP_RESULT_OK);
    }
    with_topics = bytes;
    for (int i = 0; i < MANY; i++) {
        snprintf(topic, sizeof topic, "rlp/runs/trace:%08d", i);
        QUICK_ASSERT(subscribe(1, (uint64_t)i, topic) == RMP_RESULT_OK);
    }
    with_subscriptions = bytes;
    printf("a topic with a subscription: %zu bytes, one more subscription: %zu bytes\n",
           (with_topics - before) / MANY, (with_subscriptions - with_topics) / MANY);
    ck_assert_uint_lt((with_subscriptions - with_topics) / MANY, 300);
    ck_assert_uint_lt((with_topics - before) / MANY, 600);
    ck_assert_uint_lt((with_topics - before) / MANY - (with_subscriptions - with_topics) / MANY,
                      300);
    for (int i = 0; i < MANY; i += 1000) {
        snprintf(topic, sizeof topic, "rlp/runs/trace:%08d", i);
        publish(2, topic, 1);
    }
    ck_assert_uint_eq(peers[0].got_count, MANY / 1000);
    ck_assert_uint_eq(peers[1].got_count, MANY / 1000);
}

/* --- failures --- */

/* What was told of messages 1 to 20 on topic t: Ok, or anything else. */
static bool told_ok[21];

static void publish_one(uint64_t msg_id)
{
    told_ok[msg_id] = publish(3, "t", msg_id) == RMP_RESULT_OK;
}

/* A little of everything. */
static void live(void)
{
    struct rmp_header header = header_of(90);
    bool subscribed = subscribe(0, 1, "t") == RMP_RESULT_OK;

    subscribe(1, 1, "t");
    subscribe(1, 2, RMP_TOPIC_DROPS);
    subscribe(2, 1, "t");
    subscribe(2, 1, "u");
    subscribe(2, 3, RMP_TOPIC_METRICS);
    peers[0].room = 0;
    for (uint64_t i = 1; i <= 20; i++)
        publish_one(i);
    publish(3, "t", 1);
    header.created_at_ms = 1;
    publish_frame(3, text("t"), header, 8);
    pass(50);
    run();
    resume(0, 3);
    publish_one(19);
    publish_one(20);
    pass(1000);
    run();
    resume(0, NO_LIMIT);
    run();
    for (size_t i = 0; !subscribed && i < COUNT(told_ok); i++)
        told_ok[i] = false;
}

/* Peer 0 has each message that its publisher was told Ok for, or that waited with success. */
static void expect_nothing_lost(size_t failed)
{
    for (size_t i = 0; i < peers[3].ended_count; i++) {
        if (peers[3].ended[i].outcome == RMP_RESULT_OK)
            told_ok[peers[3].ended[i].token] = true;
    }
    for (size_t i = 0; i < peers[0].got_count; i++)
        told_ok[peers[0].got[i].header.msg_id] = false;
    for (size_t i = 1; i < COUNT(told_ok); i++)
        ck_assert_msg(!told_ok[i], "allocation %zu: message %zu is lost", failed, i);
}

static const struct rmp_broker_options narrow = {
    .key = {3, 4}, .queue_max = 4, .metrics_interval_ms = 1000};

static size_t live_and_fail(size_t from, size_t to)
{
    restart_broker(&narrow);
    allocations = 0;
    fails_from = from;
    fails_to = to;
    in_broker = true;
    live();
    in_broker = false;
    return allocations;
}

TEST(broker_is_whole_after_any_allocation_has_failed)
{
    size_t most = live_and_fail(SIZE_MAX, SIZE_MAX);

    ck_assert_uint_gt(most, 20);
    expect_nothing_lost(SIZE_MAX);
    for (size_t i = 0; i < most; i++) {
        live_and_fail(i, i + 1);
        expect_nothing_lost(i);
        live_and_fail(i, SIZE_MAX);
        expect_nothing_lost(i);
        ck_assert_int_eq(subscribe(1, 9, "after"), RMP_RESULT_OK);
        ck_assert_int_eq(publish(3, "after", 1), RMP_RESULT_OK);
    }
}

/* One that could not be loaded says so, and can be freed. */
TEST(archive_is_refused_if_any_allocation_fails)
{
    struct archive archive;
    struct slice archived;
    const char *problem = NULL;
    size_t i;

    live_and_fail(SIZE_MAX, SIZE_MAX);
    peers[0].room = 0;
    for (uint64_t id = 100; id < 106; id++)
        publish(3, "t", id);
    archived = save_broker(&archive);
    for (i = 0; i == 0 || problem != NULL; i++) {
        replace_broker(&narrow);
        allocations = 0;
        fails_from = i;
        fails_to = i + 1;
        in_broker = true;
        problem = load_archive(archived);
        in_broker = false;
        if (problem != NULL)
            ck_assert_str_eq(problem, "out of memory");
    }
    ck_assert_uint_gt(i, 20);
    for (i = 0; i < 3; i++)
        publish(3, "t", 200 + i);
    archive_free(&archive);
}

FIXTURE(set_up, tear_down)
