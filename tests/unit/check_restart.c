#include "build_config.h"

#include "process/restart.h"

#include "base/error.h"
#include "base/limits.h"
#include "suite.h"

/* The policy with an allocator that fails on demand: this object's functions take the place of the
 * library's. */
static bool out_of_memory;

static void *failing_calloc(size_t count, size_t size)
{
    return out_of_memory ? NULL : calloc(count, size);
}

#define calloc failing_calloc
#include "process/restart.c"
#undef calloc

static struct restart_policy policy;

static void open_policy(unsigned max_restarts, unsigned window_sec)
{
    ck_assert_int_eq(restart_init(&policy, max_restarts, window_sec), STDIO_BUS_OK);
}

static void close_policy(void)
{
    restart_free(&policy);
}

/* The worker exits at now_ms. Returns the time of its restart, or -1. */
static int64_t exit_at(int64_t now_ms, int64_t expected_delay_ms)
{
    int64_t delay = restart_after_exit(&policy, now_ms);

    ck_assert_int_eq(delay, expected_delay_ms);
    return delay < 0 ? -1 : now_ms + delay;
}

TEST(delays_grow_and_are_capped)
{
    static const int64_t delays[] = {100, 400, 1600, 6400, 25600, 30000, 30000, 30000};
    int64_t now = 5000;

    open_policy(100, 3600);
    for (size_t i = 0; i < COUNT(delays); i++)
        now = exit_at(now, delays[i]);
}

TEST(five_restarts_outlast_half_a_minute)
{
    const struct limits limits = LIMITS_DEFAULT;
    int64_t now = 0;
    int64_t delay;
    unsigned restarts = 0;

    open_policy(limits.max_restarts, limits.restart_window_sec);
    for (;;) { /* it dies at once, each time */
        delay = restart_after_exit(&policy, now);
        if (delay < 0)
            break;
        now += delay;
        restarts++;
        ck_assert_uint_le(restarts, limits.max_restarts);
    }
    ck_assert_uint_eq(restarts, 5);
    ck_assert_int_ge(now, 30000);
}

TEST_ROWS(given_up_after_max_within_the_window, 8)
{
    unsigned max = (unsigned)row + 1;
    int64_t now = 1000000;

    open_policy(max, 600);
    for (unsigned i = 0; i < max; i++) {
        int64_t delay = restart_after_exit(&policy, now);

        ck_assert_int_ge(delay, 0);
        now += delay + 5;
    }
    exit_at(now, -1);
    exit_at(now + 1, -1); /* and it stays so while they are within the window */
}

TEST(window_slides)
{
    open_policy(2, 10);
    ck_assert_int_eq(exit_at(0, 100), 100);     /* restarted at 100 */
    ck_assert_int_eq(exit_at(5000, 400), 5400); /* and at 5400 */
    exit_at(10099, -1);                         /* both within the last ten seconds */
    /* The first one is no longer among them; the second still is. */
    ck_assert_int_ge(exit_at(10101, 1600), 0);
    exit_at(15399, -1);
}

TEST(pardoned_restarts_leave_the_delay)
{
    open_policy(1, 10);
    ck_assert_int_eq(exit_at(0, 100), 100);
    restart_pardon(&policy);
    ck_assert_int_eq(exit_at(200, 400), 600);
    restart_pardon(&policy);
    ck_assert_int_eq(policy.last_start_ms, 600);
    restart_forget(&policy);
    ck_assert_int_eq(policy.last_start_ms, 0);
    ck_assert_int_eq(exit_at(700, 100), 800);
}

TEST(one_restart_is_allowed_again_after_the_window)
{
    int64_t now = 0;

    open_policy(1, 60);
    for (int i = 0; i < 20; i++) { /* a crash now and then is no crash loop */
        now = exit_at(now, 100);
        now += 60001;
    }
}

TEST(delays_start_over_after_a_quiet_window)
{
    int64_t now = 0;

    open_policy(50, 60);
    now = exit_at(now, 100);
    now = exit_at(now, 400);
    now = exit_at(now + 58000, 1600); /* not quiet long enough */
    now = exit_at(now + 60000, 100);
    now = exit_at(now, 400);
}

/* A window shorter than the delays: the delays themselves are not quiet times. */
TEST(delays_are_no_quiet_window)
{
    static const int64_t delays[] = {100, 400, 1600, 6400, 25600, 30000, 30000};
    int64_t now = 0;

    open_policy(5, 1);
    for (size_t i = 0; i < COUNT(delays); i++)
        now = exit_at(now + (i >= 3 ? 999 : 0), delays[i]);
    exit_at(now + 1000, 100);
}

TEST(never_restarts_with_zero)
{
    open_policy(0, 60);
    exit_at(0, -1);
    exit_at(1000000, -1);
}

TEST(every_exit_of_a_crash_loop_is_counted)
{
    /* However short the life between two restarts, no more than max begin in any window. */
    enum { MAX = 5, WINDOW_SEC = 60 };
    int64_t starts[2000];
    int64_t now = 0;
    unsigned count = 0, i;

    open_policy(MAX, WINDOW_SEC);
    while (count < 2000 && now < (int64_t)3600 * 24 * 1000) {
        int64_t delay = restart_after_exit(&policy, now);

        if (delay < 0) {
            now += 777; /* asked again later, until a restart is allowed */
            continue;
        }
        starts[count] = now + delay;
        now = starts[count++] + 3;
    }
    ck_assert_uint_gt(count, MAX);
    for (i = MAX; i < count; i++)
        ck_assert_int_ge(starts[i] - starts[i - MAX], (int64_t)WINDOW_SEC * 1000);
}

TEST(init_without_memory_leaves_nothing)
{
    out_of_memory = true;
    ck_assert_int_eq(restart_init(&policy, 5, 60), STDIO_BUS_ERR);
    ck_assert_ptr_null(policy.times);
    ck_assert_int_eq(restart_init(&policy, 0, 60), STDIO_BUS_OK); /* needs none */
    restart_free(&policy);
}

FIXTURE(NULL, close_policy)
