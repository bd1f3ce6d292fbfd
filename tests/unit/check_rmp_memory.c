/* What the broker keeps for its peers: its bounds, the shares of peers and users, and the account
 * that it counts in. */
#include "build_config.h"

#include "quick_assert.h"
#include "rmp/state.h"
#include "rmp_archive_fixture.h"
#include "suite.h"

#define TOPIC_LEN ((size_t)4)
#define EACH RMP_SUBSCRIPTION_BYTES(TOPIC_LEN)
#define A (RMP_USERS + 1000)
#define B (RMP_USERS + 1001)

static size_t total;

/* Room for 16 subscriptions with topics of four letters, and for about 450 keys. */
static const struct rmp_broker_options narrow = {.key = {3, 4},
                                                 .queue_max = 4,
                                                 .subscription_bytes = 16 * EACH,
                                                 .key_bytes = 32768,
                                                 .memory = &total};

static void set_up(void)
{
    total = 0;
    start_broker(&narrow);
}

static void tear_down(void)
{
    rmp_broker_free(broker);
    ck_assert_uint_eq(total, 0);
}

static size_t kept(void)
{
    return broker->memory.bytes[RMP_SUBSCRIPTIONS] + broker->memory.bytes[RMP_KEYS];
}

static enum rmp_outcome subscribe_number(int peer, uint64_t number)
{
    char topic[8];

    snprintf(topic, sizeof topic, "t%03u", (unsigned)number);
    return subscribe(peer, number, topic);
}

/* --- subscriptions --- */

TEST(subscriptions_over_the_limit_are_refused_but_to_those_who_hold_little)
{
    for (uint64_t i = 0; i < 16; i++)
        ck_assert_int_eq(subscribe_number(0, i), RMP_RESULT_OK);
    ck_assert_uint_eq(total, 16 * EACH);
    ck_assert_int_eq(subscribe_number(0, 100), RMP_RESULT_FORBIDDEN);
    /* Replacing one takes no more, unless its name is longer. */
    ck_assert_int_eq(subscribe(0, 3, "t"), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe(0, 3, "t003"), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe(0, 3, "a longer name"), RMP_RESULT_FORBIDDEN);
    /* Half of an equal share of four peers is two. */
    ck_assert_int_eq(subscribe_number(1, 1), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe_number(1, 2), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe_number(1, 3), RMP_RESULT_FORBIDDEN);
    for (uint64_t i = 4; i < 7; i++)
        ck_assert(unsubscribe(0, i));
    ck_assert_int_eq(subscribe_number(1, 3), RMP_RESULT_OK);
    ck_assert_uint_eq(total, kept());
}

TEST(subscriptions_have_a_share_for_each_user)
{
    peers[0].peer.user = peers[1].peer.user = A;
    peers[2].peer.user = peers[3].peer.user = B;
    for (uint64_t i = 0; i < 16; i++)
        ck_assert_int_eq(subscribe_number(0, i), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe_number(0, 16), RMP_RESULT_FORBIDDEN);
    /* Another user: a fourth of the memory, whichever of its peers. */
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(subscribe_number(2, i), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe_number(2, 4), RMP_RESULT_FORBIDDEN);
    rmp_broker_leave(broker, &peers[2].peer);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(subscribe_number(3, i), RMP_RESULT_OK);
    rmp_broker_leave(broker, &peers[0].peer);
    for (uint64_t i = 4; i < 16; i++)
        ck_assert_int_eq(subscribe_number(3, i), RMP_RESULT_OK);
    rmp_broker_leave(broker, &peers[3].peer);
    ck_assert_uint_eq(total, 0);
    ck_assert_uint_eq(broker->memory.users.count, 0);
}

TEST(bound_is_changed)
{
    for (uint64_t i = 0; i < 16; i++)
        ck_assert_int_eq(subscribe_number(0, i), RMP_RESULT_OK);
    ck_assert_int_eq(subscribe_number(0, 16), RMP_RESULT_FORBIDDEN);
    rmp_broker_bound(broker, 17 * EACH, narrow.key_bytes);
    ck_assert_int_eq(subscribe_number(0, 16), RMP_RESULT_OK);
    rmp_broker_bound(broker, 8 * EACH, narrow.key_bytes);
    ck_assert_int_eq(subscribe_number(0, 17), RMP_RESULT_FORBIDDEN);
    ck_assert_uint_eq(rmp_broker_gauges(broker).subscriptions, 17);
}

/* --- what subscriptions have missed --- */

/* Messages that one subscriber has no room for. Beyond the memory it has got none of them: each is
 * offered to it when it is published again. */
TEST(missed_messages_are_within_the_memory)
{
    size_t most = 0;

    subscribe(0, 1, "t");
    subscribe(1, 1, "t");
    peers[0].room = 0;
    for (uint64_t i = 1; i <= 400; i++) {
        publish(2, "t", i);
        pass(50);
        run();
        peers[1].got_count = 0;
        if (total - broker->memory.bytes[RMP_KEYS] > most)
            most = total - broker->memory.bytes[RMP_KEYS];
        QUICK_ASSERT(total == kept());
    }
    ck_assert_uint_gt(most, 2 * EACH + 400);
    ck_assert_uint_le(most, 16 * EACH);
    resume(0, NO_LIMIT);
    peers[0].got_count = 0;
    for (uint64_t i = 390; i <= 400; i++)
        publish(2, "t", i);
    ck_assert_uint_eq(peers[0].got_count, 11);
    ck_assert_uint_eq(peers[1].got_count, 0);
}

/* --- keys --- */

static void publish_many(int peer, const char *topic, uint64_t from, uint64_t number)
{
    for (uint64_t i = 0; i < number; i++) {
        QUICK_ASSERT(publish(peer, topic, from + i) == RMP_RESULT_OK);
        peers[0].got_count = 0;
    }
}

static bool is_duplicate(int peer, const char *topic, uint64_t msg_id)
{
    size_t before = peers[0].got_count;

    QUICK_ASSERT(publish(peer, topic, msg_id) == RMP_RESULT_OK);
    return peers[0].got_count == before;
}

/* The memory of duplicates of one user is not pushed out by another one's messages. */
TEST(messages_of_a_user_push_out_no_other_user_s)
{
    const struct rmp_broker_options wide = {.key = {3, 4}, .memory = &total};

    restart_broker(&wide);
    subscribe(0, 1, "t");
    peers[1].peer.user = A;
    peers[2].peer.user = B;
    publish_many(1, "t", 1, 3);
    publish_many(2, "t", 1, RMP_DEDUPE_MAX + 10);
    for (uint64_t i = 1; i <= 3; i++)
        ck_assert(is_duplicate(1, "t", i));
    ck_assert(!is_duplicate(2, "t", 1));
    ck_assert(is_duplicate(2, "t", 100));
    ck_assert_uint_eq(rmp_broker_gauges(broker).dedupe_keys, RMP_DEDUPE_MAX + 3);
}

/* Neither where the memory is used up: the user that has its share forgets its own. */
TEST(keys_of_a_user_have_a_share_of_the_memory)
{
    subscribe(0, 1, "t");
    peers[1].peer.user = A;
    peers[2].peer.user = B;
    publish_many(2, "t", 1, 5000);
    ck_assert_uint_le(broker->memory.bytes[RMP_KEYS], narrow.key_bytes);
    publish_many(1, "t", 1, 60);
    publish_many(2, "t", 5001, 5000);
    for (uint64_t i = 1; i <= 60; i++)
        ck_assert(is_duplicate(1, "t", i));
    ck_assert(is_duplicate(2, "t", 10000));
    ck_assert(!is_duplicate(2, "t", 5001));
    ck_assert_uint_le(broker->memory.bytes[RMP_KEYS], narrow.key_bytes * 3 / 2);
    ck_assert_uint_eq(total, kept());
}

/* The topic on which the user has published last keeps its memory. */
TEST(topic_that_was_not_used_for_longest_is_forgotten_first)
{
    subscribe(0, 1, "a");
    subscribe(0, 2, "b");
    subscribe(0, 3, "c");
    publish_many(1, "a", 1, 100);
    publish_many(1, "b", 1, 100);
    ck_assert(is_duplicate(1, "a", 1));
    publish_many(1, "c", 1, 200);
    ck_assert(is_duplicate(1, "c", 1));
    ck_assert(is_duplicate(1, "a", 2));
    ck_assert(!is_duplicate(1, "b", 1));
    ck_assert_uint_le(broker->memory.bytes[RMP_KEYS], narrow.key_bytes);
}

/* A thousand topics: each has its first message at least as long as it is the last one. */
TEST(keys_of_many_topics_are_within_the_memory)
{
    const struct rmp_broker_options options = {.key = {3, 4}, .key_bytes = 32768, .memory = &total};

    restart_broker(&options);
    for (uint64_t i = 0; i < 1000; i++) {
        char topic[8];

        QUICK_ASSERT(subscribe_number(0, i) == RMP_RESULT_OK);
        snprintf(topic, sizeof topic, "t%03u", (unsigned)i);
        QUICK_ASSERT(!is_duplicate(1, topic, 1));
        QUICK_ASSERT(is_duplicate(1, topic, 1));
        QUICK_ASSERT(broker->memory.bytes[RMP_KEYS] <= options.key_bytes);
    }
    rmp_broker_leave(broker, &peers[0].peer);
    ck_assert_uint_eq(total, 0);
}

/* --- the archive --- */

TEST(archived_memory_counts)
{
    struct archive archive;
    struct slice archived;
    size_t bytes;

    subscribe(0, 1, "t");
    subscribe(1, 1, "t");
    subscribe(1, 2, "u");
    publish_many(1, "t", 1, 40);
    publish_many(2, "t", 1, 3);
    publish_many(2, "u", 1, 3);
    bytes = total;
    ck_assert_uint_eq(bytes, kept());
    archived = save_broker(&archive);
    replace_broker(&narrow);
    ck_assert_uint_eq(total, 0);
    ck_assert_ptr_null(load_archive(archived));
    archive_free(&archive);
    ck_assert_uint_eq(total, bytes);
    ck_assert_uint_eq(broker->memory.bytes[RMP_SUBSCRIPTIONS], 3 * EACH - 3 * (TOPIC_LEN - 1));
    ck_assert_uint_eq(kept(), bytes);
    ck_assert(is_duplicate(2, "u", 3));
    ck_assert(is_duplicate(1, "t", 1));
}

FIXTURE(set_up, tear_down)
