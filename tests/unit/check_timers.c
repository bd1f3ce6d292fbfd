#include "build_config.h"

#include "event/timers.h"

#include <limits.h>

#include "quick_assert.h"
#include "suite.h"

#define TIMERS 64
#define ROUNDS 20000

/* The naive model: an array that is searched from end to end. */
struct model;

struct entry {
    struct timer timer;
    struct model *model;
    int64_t deadline_ms;
    bool running;
    bool due; /* has to be called by the timers_run that continues */
};

struct model {
    struct timers timers;
    struct entry entries[TIMERS];
    int64_t now_ms;
    int64_t last_ms; /* deadline of the last call of this timers_run */
    uint64_t random;
    int called;
};

static uint64_t next_random(struct model *model)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return model->random;
}

static struct entry *any_entry(struct model *model)
{
    return &model->entries[next_random(model) % TIMERS];
}

static void start_any(struct model *model)
{
    struct entry *entry = any_entry(model);

    entry->deadline_ms = model->now_ms - 20 + (int64_t)(next_random(model) % 100);
    entry->running = true;
    entry->due = false;
    timers_start(&model->timers, &entry->timer, entry->deadline_ms);
}

static void stop_any(struct model *model)
{
    struct entry *entry = any_entry(model);

    entry->running = entry->due = false;
    timers_stop(&model->timers, &entry->timer);
}

/* Also changes others: those that are due, those that are not, itself. */
static void on_model_timer(void *user_data)
{
    struct entry *entry = user_data;
    struct model *model = entry->model;

    QUICK_ASSERT(entry->due);
    QUICK_ASSERT(!timer_started(&entry->timer));
    QUICK_ASSERT(entry->deadline_ms >= model->last_ms);
    model->last_ms = entry->deadline_ms;
    entry->running = entry->due = false;
    model->called++;
    for (uint64_t i = next_random(model) % 4; i > 0; i--) {
        if (next_random(model) % 2 == 0)
            start_any(model);
        else
            stop_any(model);
    }
}

static int model_wait_ms(const struct model *model)
{
    int64_t earliest_ms = INT64_MAX;
    bool any = false;

    for (size_t i = 0; i < TIMERS; i++) {
        const struct entry *entry = &model->entries[i];
        QUICK_ASSERT(timer_started(&entry->timer) == entry->running);
        if (entry->running) {
            any = true;
            if (entry->deadline_ms < earliest_ms)
                earliest_ms = entry->deadline_ms;
        }
    }
    if (!any)
        return -1;
    return earliest_ms <= model->now_ms ? 0 : (int)(earliest_ms - model->now_ms);
}

static void run_model(struct model *model)
{
    model->called = 0;
    model->last_ms = INT64_MIN;
    for (size_t i = 0; i < TIMERS; i++) {
        struct entry *entry = &model->entries[i];
        entry->due = entry->running && entry->deadline_ms <= model->now_ms;
    }
    ck_assert_int_eq(timers_run(&model->timers, model->now_ms), model->called);
    for (size_t i = 0; i < TIMERS; i++)
        QUICK_ASSERT(!model->entries[i].due);
}

TEST_ROWS(same_as_a_naive_model, 4)
{
    static const uint64_t seeds[] = {1, 0x9e3779b97f4a7c15u, 88172645463325252u, 42};
    struct model model = {.random = seeds[row]};
    int total = 0;

    for (size_t i = 0; i < TIMERS; i++) {
        model.entries[i].model = &model;
        timer_init(&model.entries[i].timer, on_model_timer, &model.entries[i]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t choice = next_random(&model) % 10;
        if (choice < 6)
            start_any(&model);
        else if (choice < 9)
            stop_any(&model);
        else
            model.now_ms += (int64_t)(next_random(&model) % 20);
        if (choice == 9) {
            run_model(&model);
            total += model.called;
        }
        ck_assert_int_eq(timers_wait_ms(&model.timers, model.now_ms), model_wait_ms(&model));
    }
    ck_assert_int_gt(total, ROUNDS / 20);
}

static struct {
    struct timers timers;
    struct timer a, b;
    int calls_a, calls_b;
} trace;

static void count(void *user_data)
{
    ++*(int *)user_data;
}

static void set_up(void)
{
    memset(&trace, 0, sizeof trace);
    timer_init(&trace.a, count, &trace.calls_a);
    timer_init(&trace.b, count, &trace.calls_b);
}

TEST(wait_is_capped_and_never_negative)
{
    ck_assert_int_eq(timers_wait_ms(&trace.timers, 5), -1);
    timers_start(&trace.timers, &trace.a, INT64_MAX);
    ck_assert_int_eq(timers_wait_ms(&trace.timers, 0), INT_MAX);
    ck_assert_int_eq(timers_wait_ms(&trace.timers, INT64_MIN), INT_MAX);
    ck_assert_int_eq(timers_wait_ms(&trace.timers, INT64_MAX - 1), 1);
    ck_assert_int_eq(timers_wait_ms(&trace.timers, INT64_MAX), 0);
    timers_start(&trace.timers, &trace.a, INT64_MIN);
    ck_assert_int_eq(timers_wait_ms(&trace.timers, INT64_MAX), 0);
}

TEST(runs_at_its_deadline_and_not_before)
{
    timers_start(&trace.timers, &trace.a, 100);
    ck_assert_int_eq(timers_run(&trace.timers, 99), 0);
    ck_assert(timer_started(&trace.a));
    ck_assert_int_eq(timers_run(&trace.timers, 100), 1);
    ck_assert(!timer_started(&trace.a));
    ck_assert_int_eq(timers_run(&trace.timers, 200), 0);
    ck_assert_int_eq(trace.calls_a, 1);
}

TEST(stop_of_a_stopped_timer_is_nothing)
{
    timers_stop(&trace.timers, &trace.a);
    timers_start(&trace.timers, &trace.b, 1);
    timers_stop(&trace.timers, &trace.a);
    timers_stop(&trace.timers, &trace.b);
    timers_stop(&trace.timers, &trace.b);
    ck_assert_int_eq(timers_wait_ms(&trace.timers, 0), -1);
    ck_assert_int_eq(timers_run(&trace.timers, 10), 0);
}

static void restart_itself(void *user_data)
{
    count(user_data);
    timers_start(&trace.timers, &trace.a, 0);
}

TEST(restarted_for_now_waits_for_the_next_run)
{
    timer_init(&trace.a, restart_itself, &trace.calls_a);
    timers_start(&trace.timers, &trace.a, 0);
    ck_assert_int_eq(timers_run(&trace.timers, 10), 1);
    ck_assert_int_eq(timers_wait_ms(&trace.timers, 10), 0);
    ck_assert_int_eq(timers_run(&trace.timers, 10), 1);
    ck_assert_int_eq(trace.calls_a, 2);
}

static void restart_the_due_b(void *user_data)
{
    count(user_data);
    timers_start(&trace.timers, &trace.b, 2);
}

TEST(due_timer_restarted_by_another_waits_for_the_next_run)
{
    timer_init(&trace.a, restart_the_due_b, &trace.calls_a);
    timers_start(&trace.timers, &trace.b, 2);
    timers_start(&trace.timers, &trace.a, 1);
    ck_assert_int_eq(timers_run(&trace.timers, 10), 1);
    ck_assert_int_eq(trace.calls_b, 0);
    ck_assert_int_eq(timers_run(&trace.timers, 10), 1);
    ck_assert_int_eq(trace.calls_b, 1);
}

struct owner {
    struct timers *timers;
    struct owner *other;
    struct timer timer;
};

static void free_both(void *user_data)
{
    struct owner *owner = user_data;

    timers_stop(owner->timers, &owner->other->timer);
    free(owner->other);
    free(owner);
}

/* Under valgrind or ASan: nothing is touched after its owner is gone. */
TEST_ROWS(callback_frees_itself_and_another_due_timer, 2)
{
    struct timers timers = {NULL, NULL};
    struct owner *a = calloc(1, sizeof(*a));
    struct owner *b = calloc(1, sizeof(*b));

    ck_assert(a != NULL && b != NULL);
    *a = (struct owner){.timers = &timers, .other = b};
    *b = (struct owner){.timers = &timers, .other = a};
    timer_init(&a->timer, free_both, a);
    timer_init(&b->timer, free_both, b);
    timers_start(&timers, &a->timer, 1);
    timers_start(&timers, &b->timer, 1 + (int64_t)row);
    ck_assert_int_eq(timers_run(&timers, 1), 1);
    ck_assert_int_eq(timers_wait_ms(&timers, 1), -1);
}

FIXTURE(set_up, NULL)
