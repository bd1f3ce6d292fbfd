/* The events of server-sent streams that are kept. */
#include "build_config.h"

#include "http/event_log.h"

#include "suite.h"

#define SIZE (sizeof(struct event) + 4) /* of an event with four bytes */

static struct event_memory memory;
static struct event_owner owners[2];
static struct event_log logs[2];
static struct event_stream streams[3]; /* the last one is of the second log */
static uint32_t forgotten[8], forgotten_count;

static void note_forgotten(void *user_data, const struct event *event)
{
    (void)user_data;
    forgotten[forgotten_count++ % 8] = event->number;
}

static void set_up(void)
{
    event_memory_init(&memory, 5 * SIZE);
    for (int i = 0; i < 2; i++) {
        event_log_init(&logs[i], &memory, 3, 4 * SIZE);
        logs[i].forgets = note_forgotten;
        event_owner_init(&owners[i]);
        event_log_set_owner(&logs[i], &owners[i]);
    }
    event_stream_init(&streams[0], &logs[0]);
    event_stream_init(&streams[1], &logs[0]);
    event_stream_init(&streams[2], &logs[1]);
    forgotten_count = 0;
}

static void tear_down(void)
{
    for (int i = 0; i < 3; i++)
        event_stream_clear(&streams[i]);
    ck_assert_uint_eq(memory.bytes, 0);
    ck_assert(list_empty(&memory.events) && list_empty(&logs[0].events));
    ck_assert_ptr_null(memory.most);
    ck_assert_uint_eq(owners[0].bytes + owners[1].bytes, 0);
}

static void add(int stream, const char *text)
{
    struct event *event = event_log_add(&streams[stream], strlen(text));

    ck_assert_ptr_nonnull(event);
    memcpy(event->data, text, strlen(text));
}

static void expect(int stream, uint32_t after, const char *texts)
{
    char found[64] = "";
    const struct event *event = event_log_after(&streams[stream], after);

    for (; event != NULL; event = event_log_after(&streams[stream], event->number))
        strncat(found, event->data, event->len);
    ck_assert_str_eq(found, texts);
}

TEST(events_are_found_after_a_number)
{
    add(0, "a");
    add(1, "x");
    add(0, "b");
    expect(0, 0, "ab");
    expect(0, 1, "b");
    expect(0, 2, "");
    expect(1, 0, "x");
    ck_assert_uint_eq(streams[0].last, 2);
    ck_assert_uint_eq(streams[0].forgotten, 0);
}

/* Whichever end of the stream is nearer to it. */
TEST(event_after_each_number)
{
    event_memory_bound(&memory, 100 * SIZE);
    logs[0].max_count = 40;
    logs[0].max_bytes = 100 * SIZE;
    for (uint32_t last = 1; last <= 60; last++) {
        uint32_t forgotten_ones = last > 40 ? last - 40 : 0;

        add(0, "a");
        for (uint32_t number = 0; number < last; number++) {
            const struct event *event = event_log_after(&streams[0], number);

            ck_assert_ptr_nonnull(event);
            ck_assert_uint_eq(event->number,
                              number < forgotten_ones ? forgotten_ones + 1 : number + 1);
        }
        ck_assert_ptr_null(event_log_after(&streams[0], last));
        ck_assert_ptr_null(event_log_after(&streams[0], UINT32_MAX));
    }
    event_log_got(&streams[0], 60);
    ck_assert_ptr_null(event_log_after(&streams[0], 0));
}

TEST(oldest_event_of_a_log_is_forgotten_first)
{
    add(0, "a");
    add(1, "x");
    add(0, "b");
    add(1, "y");
    expect(0, 0, "b");
    expect(1, 0, "xy");
    ck_assert_uint_eq(streams[0].forgotten, 1);
    ck_assert_uint_eq(forgotten_count, 1);
    ck_assert_uint_eq(forgotten[0], 1);
}

TEST(oldest_event_of_the_owner_that_holds_most_is_forgotten_when_memory_is_used_up)
{
    add(0, "aaaa");
    add(0, "bbbb");
    add(2, "cccc");
    add(2, "dddd");
    add(2, "eeee");
    expect(0, 0, "aaaabbbb");
    add(1, "ffff"); /* both would hold three */
    ck_assert_uint_eq(memory.bytes, 5 * SIZE);
    add(2, "gggg");
    add(2, "hhhh");
    add(2, "iiii");
    ck_assert_uint_eq(memory.bytes, 5 * SIZE);
    ck_assert_uint_ge(owners[0].bytes, 2 * SIZE);
    expect(1, 0, "ffff");
}

/* However long another owner continues. */
TEST(owner_that_holds_little_loses_nothing_to_others)
{
    add(0, "aaaa");
    add(1, "bbbb");
    logs[1].max_count = 100;
    logs[1].max_bytes = 100 * SIZE;
    for (int i = 0; i < 1000; i++)
        add(2, "xxxx");
    expect(0, 0, "aaaa");
    expect(1, 0, "bbbb");
    ck_assert_uint_eq(owners[1].bytes, 3 * SIZE);
}

/* Half of the memory makes room for it. */
TEST(an_event_longer_than_all_limits_is_kept)
{
    static char text[20 * SIZE];

    add(0, "aaaa");
    add(2, "bbbb");
    ck_assert_ptr_nonnull(event_log_add(&streams[1], sizeof text));
    expect(0, 0, "");
    expect(2, 0, "bbbb");
    ck_assert_uint_eq(logs[0].count, 1);
    add(2, "cccc");
    expect(2, 0, "bbbbcccc");
    ck_assert_uint_eq(logs[0].count, 0);
}

TEST(another_bound_holds_at_once)
{
    add(0, "aaaa");
    add(2, "bbbb");
    add(2, "cccc");
    add(2, "dddd");
    event_memory_bound(&memory, 2 * SIZE);
    expect(0, 0, "aaaa");
    expect(2, 0, "dddd");
    event_memory_bound(&memory, 0);
    ck_assert_uint_eq(memory.bytes, 0);
}

TEST(events_that_were_got_are_forgotten_without_a_call)
{
    add(0, "a");
    add(0, "b");
    event_log_got(&streams[0], 1);
    expect(0, 0, "b");
    ck_assert_uint_eq(streams[0].forgotten, 1);
    ck_assert_uint_eq(forgotten_count, 0);
}

FIXTURE(set_up, tear_down)
