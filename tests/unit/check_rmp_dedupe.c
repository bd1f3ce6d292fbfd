/* The memory of duplicates: an LRU with a horizon, and what a subscription has missed. */
#include "build_config.h"

#include "rmp/dedupe.h"
#include "rmp/subscription.h"

#include "base/error.h"
#include "quick_assert.h"
#include "suite.h"
#include "table_fixture.h"

/* Both are compiled into the test with an allocator that fails on demand. */
#define malloc failing_malloc
#define calloc failing_calloc
#include "rmp/dedupe.c"
#undef CAPACITY_MIN
#include "rmp/subscription.c"
#undef malloc
#undef calloc

#define HORIZON_MS 1000
#define STEPS 200000

static struct rmp_dedupe dedupe;
static struct rmp_missed missed;
static struct rmp_dedupe_rules rules = {.key = {3, 4}, .horizon_ms = HORIZON_MS, .max = 64};
static uint64_t number;

static void set_up(void)
{
    number = 0;
    random_state = 88172645463325252U;
}

static void tear_down(void)
{
    allocations_left = -1;
    rmp_dedupe_free(&dedupe);
    rmp_missed_free(&missed);
}

static struct rmp_dedupe_key key(uint64_t msg_id)
{
    return (struct rmp_dedupe_key){.trace_id = {1, 2}, .msg_id = msg_id};
}

static uint64_t see(uint64_t msg_id, uint64_t now_ms)
{
    return rmp_dedupe_see(&dedupe, &rules, key(msg_id), ++number, now_ms, true);
}

TEST(first_sight_is_none_and_the_second_names_the_first)
{
    ck_assert_uint_eq(see(7, 0), 0);
    ck_assert_uint_eq(see(8, 0), 0);
    ck_assert_uint_eq(see(7, 0), 1);
    ck_assert_uint_eq(see(7, 0), 3);
    ck_assert_uint_eq(rmp_dedupe_number(&dedupe, &rules, key(7)), 4);
    ck_assert_uint_eq(rmp_dedupe_number(&dedupe, &rules, key(9)), 0);
}

TEST(key_is_known_within_the_horizon_of_its_last_sight)
{
    see(1, 0);
    ck_assert_uint_eq(see(1, HORIZON_MS - 1), 1);
    ck_assert_uint_eq(see(1, 2 * HORIZON_MS - 2), 2);
    ck_assert_uint_eq(see(1, 3 * HORIZON_MS - 2), 0);
    ck_assert_uint_eq(see(1, 3 * HORIZON_MS - 2), 4);
}

TEST(least_recently_seen_key_is_forgotten_first)
{
    for (uint64_t i = 0; i < rules.max; i++)
        ck_assert_uint_eq(see(i, 0), 0);
    ck_assert_uint_ne(see(0, 0), 0);
    ck_assert_uint_eq(see(1000, 0), 0); /* in the place of 1 */
    ck_assert_uint_ne(see(0, 0), 0);
    ck_assert_uint_ne(see(2, 0), 0);
    ck_assert_uint_eq(see(1, 0), 0); /* in the place of 3 */
    ck_assert_uint_eq(see(3, 0), 0);
    ck_assert_uint_eq(dedupe.count, rules.max);
}

TEST(keys_out_of_the_horizon_give_their_place_first)
{
    see(1, 0);
    for (uint64_t i = 2; i < 1000; i++)
        see(i, HORIZON_MS * i);
    ck_assert_uint_eq(dedupe.count, 1);
}

TEST(memory_is_over_when_the_newest_key_is)
{
    ck_assert_uint_eq(rmp_dedupe_over_ms(&dedupe, &rules), 0);
    ck_assert_uint_eq(rmp_dedupe_oldest(&dedupe), UINT64_MAX);
    see(1, 5);
    see(2, 7);
    see(1, 9);
    ck_assert_uint_eq(rmp_dedupe_over_ms(&dedupe, &rules), 9 + HORIZON_MS);
    ck_assert_uint_eq(rmp_dedupe_oldest(&dedupe), 2);
    rmp_dedupe_free(&dedupe);
    ck_assert_uint_eq(rmp_dedupe_over_ms(&dedupe, &rules), 0);
    ck_assert_uint_eq(see(1, 9), 0);
}

TEST(without_memory_fewer_keys_are_known)
{
    allocations_left = 0;
    ck_assert_uint_eq(see(1, 0), 0);
    ck_assert_uint_eq(see(1, 0), 0);
    allocations_left = 1;
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_uint_eq(see(i, 0), 0);
    ck_assert_uint_eq(dedupe.count, 16);
    ck_assert_uint_ne(see(4, 0), 0);
    ck_assert_uint_eq(see(3, 0), 0);
}

TEST(keys_that_may_not_grow_take_each_other_s_place)
{
    ck_assert_uint_eq(rmp_dedupe_bytes(&dedupe), 0);
    ck_assert_uint_gt(rmp_dedupe_growth(&dedupe, &rules, 0), 0);
    ck_assert_uint_eq(rmp_dedupe_see(&dedupe, &rules, key(1), ++number, 0, false), 0);
    ck_assert_uint_eq(dedupe.count, 0);
    for (uint64_t i = 0; i < 16; i++)
        see(i, 0);
    ck_assert_uint_eq(rmp_dedupe_growth(&dedupe, &rules, 0), rmp_dedupe_bytes(&dedupe));
    ck_assert_uint_eq(rmp_dedupe_growth(&dedupe, &rules, HORIZON_MS), 0);
    ck_assert_uint_ne(rmp_dedupe_see(&dedupe, &rules, key(0), ++number, 0, false), 0);
    ck_assert_uint_eq(rmp_dedupe_see(&dedupe, &rules, key(16), ++number, 0, false), 0);
    ck_assert_uint_eq(dedupe.count, 16);
    ck_assert_uint_eq(rmp_dedupe_number(&dedupe, &rules, key(1)), 0);
    ck_assert_uint_ne(rmp_dedupe_number(&dedupe, &rules, key(0)), 0);
}

/* Of 200 keys, when and in what order they were seen last: a model without an index. */
TEST(lru_is_that_of_a_model)
{
    enum { KEYS = 200 };
    uint64_t numbers[KEYS] = {0}, seen_ms[KEYS] = {0};
    bool known[KEYS] = {false};
    uint64_t now_ms = 0;
    unsigned count = 0;

    for (int i = 0; i < STEPS; i++) {
        unsigned which = next_random(4) == 0 ? next_random(KEYS) : next_random(70);
        uint64_t before = 0, oldest = UINT64_MAX;
        unsigned oldest_key = 0;

        now_ms += next_random(100) == 0 ? next_random(2 * HORIZON_MS) : next_random(4);
        for (unsigned k = 0; k < KEYS; k++) {
            if (known[k] && numbers[k] < oldest) {
                oldest = numbers[k];
                oldest_key = k;
            }
        }
        if (known[which]) {
            if (now_ms - seen_ms[which] < HORIZON_MS)
                before = numbers[which];
        } else {
            if (count == rules.max || (count > 0 && now_ms - seen_ms[oldest_key] >= HORIZON_MS))
                known[oldest_key] = false;
            else
                count++;
        }
        known[which] = true;
        QUICK_ASSERT(see(which, now_ms) == before);
        numbers[which] = number;
        seen_ms[which] = now_ms;
        QUICK_ASSERT(dedupe.count == count);
        QUICK_ASSERT(rmp_dedupe_number(&dedupe, &rules, key(which)) == number);
    }
}

TEST(lru_has_65536_keys)
{
    const struct rmp_dedupe_rules real = {
        .key = {3, 4}, .horizon_ms = HORIZON_MS, .max = RMP_DEDUPE_MAX};

    for (uint64_t i = 0; i < RMP_DEDUPE_MAX; i++)
        QUICK_ASSERT(rmp_dedupe_see(&dedupe, &real, key(i), ++number, 0, true) == 0);
    for (uint64_t i = 0; i < RMP_DEDUPE_MAX; i++)
        QUICK_ASSERT(rmp_dedupe_see(&dedupe, &real, key(i), ++number, 0, true) != 0);
    ck_assert_uint_eq(rmp_dedupe_see(&dedupe, &real, key(RMP_DEDUPE_MAX), ++number, 0, true), 0);
    ck_assert_uint_eq(rmp_dedupe_see(&dedupe, &real, key(0), ++number, 0, true), 0);
    ck_assert_uint_ne(rmp_dedupe_see(&dedupe, &real, key(2), ++number, 0, true), 0);
}

/* --- what was missed --- */

TEST(missed_number_is_taken_once)
{
    ck_assert(!rmp_missed_take(&missed, 1));
    for (uint64_t i = 1; i <= 100; i++)
        ck_assert_int_eq(rmp_missed_add(&missed, i * 64, 0), STDIO_BUS_OK);
    rmp_missed_add(&missed, 64, 0);
    ck_assert_uint_eq(missed.count, 100);
    ck_assert(!rmp_missed_take(&missed, 65));
    for (uint64_t i = 1; i <= 100; i++) {
        ck_assert(rmp_missed_take(&missed, i * 64));
        ck_assert(!rmp_missed_take(&missed, i * 64));
    }
    ck_assert_ptr_null(missed.slots);
}

TEST(old_numbers_are_forgotten_when_there_is_no_room)
{
    for (uint64_t i = 1; i <= 100000; i++)
        QUICK_ASSERT(rmp_missed_add(&missed, i, i > 10 ? i - 10 : 0) == STDIO_BUS_OK);
    ck_assert_uint_le(missed.capacity, 64);
    for (uint64_t i = 99991; i <= 100000; i++)
        ck_assert(rmp_missed_take(&missed, i));
}

TEST(growth_of_the_set_is_known_before)
{
    for (uint64_t i = 1; i <= 1000; i++) {
        size_t bytes = rmp_missed_bytes(&missed), growth = rmp_missed_growth(&missed, i / 2);

        QUICK_ASSERT(rmp_missed_add(&missed, i, i / 2) == STDIO_BUS_OK);
        QUICK_ASSERT(rmp_missed_bytes(&missed) == bytes + growth);
    }
}

TEST(without_memory_the_set_stays_as_it_is)
{
    allocations_left = 0;
    ck_assert_int_eq(rmp_missed_add(&missed, 1, 0), STDIO_BUS_ERR);
    allocations_left = 1;
    for (uint64_t i = 1; i <= 4; i++)
        ck_assert_int_eq(rmp_missed_add(&missed, i, 0), STDIO_BUS_OK);
    ck_assert_int_eq(rmp_missed_add(&missed, 5, 0), STDIO_BUS_ERR);
    for (uint64_t i = 1; i <= 4; i++)
        ck_assert(rmp_missed_take(&missed, i));
}

TEST(set_is_that_of_a_model)
{
    enum { NUMBERS = 300 };
    bool there[NUMBERS + 1] = {false};

    for (int i = 0; i < STEPS; i++) {
        unsigned which = next_random(NUMBERS) + 1;

        if (next_random(2) == 0) {
            QUICK_ASSERT(rmp_missed_take(&missed, which) == there[which]);
            there[which] = false;
        } else {
            QUICK_ASSERT(rmp_missed_add(&missed, which, 0) == STDIO_BUS_OK);
            there[which] = true;
        }
    }
}

FIXTURE(set_up, tear_down)
