/* The events of runs that are kept, in memory. */
#include "build_config.h"

#include "rmp/history.h"

#include "suite.h"

#define BESIDE (sizeof(struct rmp_run) + sizeof(struct rmp_kept_event)) /* of a run with an event */
#define TEN "0123456789"

static const struct siphash_key key = {1, 2};
static struct rmp_history history;
static size_t account;
static struct rmp_id forgotten[16];
static size_t forgotten_count;

static void note(void *user_data, struct rmp_run *run)
{
    ck_assert_ptr_eq(user_data, &history);
    forgotten[forgotten_count++] = run->id;
}

/* Limits that are 0 are of no concern. */
static void begin(struct rmp_history_limits limits)
{
    if (limits.events == 0)
        limits.events = 100;
    if (limits.run_bytes == 0)
        limits.run_bytes = 100000;
    if (limits.runs == 0)
        limits.runs = 100;
    if (limits.bytes == 0)
        limits.bytes = 1000000;
    if (limits.ms == 0)
        limits.ms = 1000;
    rmp_history_init(&history, &key, &limits, &account);
    history.forgets = note;
    history.user_data = &history;
}

static void end(void)
{
    rmp_history_free(&history);
    ck_assert_uint_eq(account, 0);
    ck_assert_uint_eq(history.bytes, 0);
    ck_assert_uint_eq(history.events, 0);
}

static struct rmp_run *open_of(uint32_t user, uint64_t low, uint64_t at_ms)
{
    struct rmp_run *run = rmp_history_open(&history, (struct rmp_id){0, low}, user, at_ms);

    ck_assert_ptr_nonnull(run);
    return run;
}

static struct rmp_run *open_run(uint64_t low, uint64_t at_ms)
{
    return open_of(5, low, at_ms);
}

static struct rmp_kept_event *add(struct rmp_run *run, uint64_t msg_id, uint64_t at_ms,
                                  const char *payload)
{
    return rmp_history_add(&history, run, msg_id, at_ms, slice_of(payload, strlen(payload)));
}

/* The msg_ids of the run's events, each a digit. */
static void expect_events(const struct rmp_run *run, const char *digits)
{
    const struct list_node *node = run->events.head.next;

    ck_assert_uint_eq(run->count, strlen(digits));
    for (; *digits != '\0'; digits++, node = node->next)
        ck_assert_uint_eq(list_entry(node, struct rmp_kept_event, link)->msg_id,
                          (uint64_t)(*digits - '0'));
    ck_assert_ptr_eq(node, &run->events.head);
}

static void expect_forgotten(const char *digits)
{
    ck_assert_uint_eq(forgotten_count, strlen(digits));
    for (size_t i = 0; i < forgotten_count; i++)
        ck_assert_uint_eq(forgotten[i].low, (uint64_t)(digits[i] - '0'));
}

TEST(events_are_kept_in_order)
{
    struct rmp_run *run;

    begin((struct rmp_history_limits){0});
    run = open_run(1, 10);
    ck_assert_ptr_eq(open_run(1, 20), run);
    ck_assert_ptr_eq(rmp_history_find(&history, run->id), run);
    ck_assert_ptr_null(rmp_history_find(&history, (struct rmp_id){1, 1}));
    ck_assert_ptr_nonnull(add(run, 1, 11, "a"));
    ck_assert_ptr_nonnull(add(run, 2, 12, ""));
    expect_events(run, "12");
    ck_assert_uint_eq(account, history.bytes);
    ck_assert_uint_eq(account, BESIDE + sizeof(struct rmp_kept_event) + 1);
    end();
}

TEST(number_of_events_is_bounded)
{
    struct rmp_run *run;

    begin((struct rmp_history_limits){.events = 3});
    run = open_run(1, 10);
    for (uint64_t i = 1; i <= 5; i++)
        ck_assert_ptr_nonnull(add(run, i, i, "a"));
    expect_events(run, "345");
    ck_assert_uint_eq(history.events, 3);
    end();
}

TEST(bytes_of_a_run_are_bounded)
{
    struct rmp_run *run;

    begin((struct rmp_history_limits){.run_bytes = BESIDE + sizeof(struct rmp_kept_event) + 12});
    run = open_run(1, 10);
    ck_assert_ptr_nonnull(add(run, 1, 1, "abc"));
    ck_assert_ptr_nonnull(add(run, 2, 1, "abc"));
    expect_events(run, "12");
    ck_assert_ptr_nonnull(add(run, 3, 1, TEN));
    expect_events(run, "3");
    ck_assert_ptr_nonnull(add(run, 4, 1, "ab"));
    expect_events(run, "34");
    /* One that alone is too long changes nothing. */
    ck_assert_ptr_null(add(run, 5, 1, test_fill('x', sizeof(struct rmp_kept_event) + 13)));
    expect_events(run, "34");
    ck_assert_ptr_nonnull(add(run, 6, 1, test_fill('x', sizeof(struct rmp_kept_event) + 12)));
    expect_events(run, "6");
    end();
}

TEST(number_of_runs_is_bounded)
{
    begin((struct rmp_history_limits){.runs = 2});
    open_run(1, 1);
    open_run(2, 2);
    ck_assert_ptr_nonnull(add(open_run(1, 3), 1, 3, "a"));
    open_run(3, 4);
    expect_forgotten("2");
    open_run(4, 5);
    expect_forgotten("21");
    end();
    expect_forgotten("21");
}

TEST(bytes_of_all_runs_are_bounded)
{
    begin((struct rmp_history_limits){.bytes = 2 * BESIDE + 20, .run_bytes = BESIDE + 20});
    add(open_run(1, 1), 1, 1, TEN);
    add(open_run(2, 2), 1, 2, TEN);
    expect_forgotten("");
    add(open_run(3, 3), 1, 3, TEN);
    expect_forgotten("1");
    add(open_run(3, 3), 2, 4, TEN TEN);
    expect_forgotten("12");
    expect_events(open_run(3, 5), "2");
    end();
}

/* An older run may be added later, as it is read from a file. */
TEST(oldest_run_is_forgotten_first)
{
    begin((struct rmp_history_limits){.runs = 3});
    open_run(1, 30);
    open_run(2, 10);
    open_run(3, 20);
    open_run(4, 5);
    expect_forgotten("2");
    ck_assert_uint_eq(rmp_history_due(&history), 1005);
    end();
}

TEST(run_is_forgotten_after_its_time)
{
    begin((struct rmp_history_limits){0});
    ck_assert_uint_eq(rmp_history_due(&history), UINT64_MAX);
    open_run(1, 100);
    open_run(2, 200);
    ck_assert_uint_eq(rmp_history_due(&history), 1100);
    add(open_run(1, 0), 1, 300, "a");
    ck_assert_uint_eq(rmp_history_due(&history), 1200);
    rmp_history_expire(&history, 1199);
    expect_forgotten("");
    rmp_history_expire(&history, 1200);
    expect_forgotten("2");
    rmp_history_expire(&history, 1300);
    expect_forgotten("21");
    ck_assert_uint_eq(history.runs.count, 0);
    end();
}

TEST(nothing_is_kept)
{
    const struct rmp_history_limits none = {.run_bytes = 1000, .runs = 1, .bytes = 1000};

    rmp_history_init(&history, &key, &none, &account);
    ck_assert_ptr_null(rmp_history_open(&history, (struct rmp_id){0, 1}, 5, 1));
    end();
}

/* --- shares: user 5 holds little, user 6 much --- */

TEST(user_with_most_runs_loses_the_oldest_of_them)
{
    begin((struct rmp_history_limits){.runs = 4});
    open_of(5, 1, 1);
    for (uint64_t i = 2; i <= 6; i++)
        open_of(6, i, i);
    expect_forgotten("23");
    ck_assert_ptr_nonnull(rmp_history_find(&history, (struct rmp_id){0, 1}));
    open_of(5, 7, 7); /* two each from now on: then the oldest of all goes */
    expect_forgotten("234");
    open_of(7, 8, 8);
    expect_forgotten("2341");
    end();
}

TEST(user_with_most_bytes_loses_the_oldest_run)
{
    begin((struct rmp_history_limits){.bytes = 3 * BESIDE + 30, .run_bytes = 2 * BESIDE});
    add(open_of(5, 1, 1), 1, 1, TEN);
    add(open_of(6, 2, 2), 1, 2, TEN);
    add(open_of(6, 3, 3), 1, 3, TEN);
    expect_forgotten("");
    add(open_of(5, 4, 4), 1, 4, "");
    expect_forgotten("2");
    add(open_of(6, 5, 5), 1, 5, "");
    expect_forgotten("21");
    end();
}

/* A run that is all that its user has loses its own events, and no other user's run. */
TEST(user_with_one_long_run_loses_its_events)
{
    struct rmp_run *run;

    begin((struct rmp_history_limits){.bytes = 3 * BESIDE + 20, .run_bytes = 3 * BESIDE});
    add(open_of(5, 1, 1), 1, 1, TEN);
    run = open_of(6, 2, 2);
    for (uint64_t i = 1; i <= 9; i++)
        ck_assert_ptr_nonnull(add(run, i, i, TEN TEN));
    expect_forgotten("");
    ck_assert_uint_gt(run->count, 0);
    ck_assert_uint_lt(run->count, 9);
    ck_assert_uint_le(history.bytes, 3 * BESIDE + 20);
    end();
}

/* Where each user has one event, the oldest run gives way to the last event. */
TEST(last_event_of_a_run_has_room)
{
    struct rmp_run *run;

    begin((struct rmp_history_limits){.bytes = 2 * BESIDE + 30, .run_bytes = BESIDE + 30});
    add(open_of(5, 1, 1), 1, 1, TEN);
    add(open_of(6, 2, 2), 1, 2, TEN);
    run = open_of(7, 3, 3);
    ck_assert_ptr_nonnull(add(run, 1, 3, TEN TEN TEN));
    expect_events(run, "1");
    ck_assert_uint_le(history.bytes, 2 * BESIDE + 30);
    end();
}

/* What is forgotten need not be written any more. */
TEST(unsaved_events_are_events)
{
    struct rmp_run *run;

    begin((struct rmp_history_limits){.events = 2});
    run = open_run(1, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        add(run, i, i, "a");
        run->unsaved++;
        ck_assert_uint_le(run->unsaved, 3);
    }
    add(run, 4, 4, "a");
    ck_assert_uint_eq(run->unsaved, 2);
    end();
}

/* --- the upgrade in place --- */

static const char *load(struct slice bytes)
{
    struct archive archive;
    const char *problem;

    archive_begin_loading(&archive, bytes, -1);
    rmp_history_archive(&archive, &history);
    archive_mark(&archive, "end");
    problem = archive.problem;
    archive_free(&archive);
    return problem;
}

static void save(struct archive *archive)
{
    archive_begin_saving(archive);
    rmp_history_archive(archive, &history);
    archive_mark(archive, "end");
    ck_assert_ptr_null(archive->problem);
}

static void fill(void)
{
    struct rmp_run *run;

    open_run(1, 5);
    run = open_of(6, 2, 1);
    add(run, 1, 2, "a");
    add(run, 2, 3, TEN);
    run->unsaved = 1;
    run->file_len = 77;
    run->file_count = 3;
}

TEST(history_is_that_of_its_archive)
{
    struct archive archive;
    struct rmp_run *run;
    size_t before;

    begin((struct rmp_history_limits){0});
    fill();
    before = account;
    save(&archive);
    end();
    begin((struct rmp_history_limits){0});
    ck_assert_ptr_null(load(slice_of(archive.data, archive.len)));
    archive_free(&archive);
    ck_assert_uint_eq(account, before);
    run = open_run(2, 9);
    expect_events(run, "12");
    ck_assert_uint_eq(run->unsaved, 1);
    ck_assert_uint_eq(run->file_len, 77);
    ck_assert_uint_eq(run->file_count, 3);
    ck_assert_uint_eq(run->owner->user, 6);
    ck_assert_uint_eq(rmp_history_due(&history), 1003);
    end();
    expect_forgotten("");
}

/* Lower limits hold from the next event on; nothing is forgotten while the archive is loaded. */
TEST(archive_with_other_limits)
{
    struct archive archive;

    begin((struct rmp_history_limits){0});
    fill();
    save(&archive);
    end();
    begin((struct rmp_history_limits){.events = 1, .runs = 1});
    ck_assert_ptr_null(load(slice_of(archive.data, archive.len)));
    archive_free(&archive);
    expect_forgotten("");
    add(open_run(2, 0), 3, 9, "b");
    expect_forgotten("1");
    expect_events(open_run(2, 0), "3");
    end();
}

TEST(archive_that_is_cut)
{
    struct archive archive;

    begin((struct rmp_history_limits){0});
    fill();
    save(&archive);
    end();
    for (size_t len = 0; len < archive.len; len++) {
        begin((struct rmp_history_limits){0});
        ck_assert_ptr_nonnull(load(slice_of(archive.data, len)));
        end();
    }
    archive_free(&archive);
}
