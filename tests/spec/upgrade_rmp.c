/* Upgrade in place: what clients of the RMP topic bus have stays theirs, and so do the requests
 * that the bus has asked of workers. */
#include "build_config.h"

#include <inttypes.h>

#include "harness.h"
#include "rmp.h"
#include "rmp_program.h"

#define LIMITS ",'limits':{'max_output_queue':65536}"
#define SHORT_MS 1500

/* --- helpers --- */

/* The subscriber of a dialect gets the message. */
static void expect_id(struct client *client, bool frames, uint64_t msg_id)
{
    if (frames)
        ck_assert_uint_eq(rmp_next(client).msg_id, msg_id);
    else
        rmp_expect_message(client, 1, msg_id);
}

static void publish(struct client *client, uint64_t msg_id, size_t filler)
{
    RMP_PUBLISH(client, (unsigned)msg_id, .topic = "a/b", .msg_id = msg_id, .filler = filler);
}

static void expect_published(struct client *client, uint64_t msg_id)
{
    rmp_expect(client, "{'PublishAck':{'id':%" PRIu64 ",'result':{'Ok':null}}}", msg_id);
}

static bool has_word(struct span bytes, const char *word)
{
    return memmem(bytes.data, bytes.len, word, strlen(word)) != NULL;
}

/* Publishes to a subscriber that does not read, until it gets no more. Returns the number of the
 * message that was dropped. */
static unsigned fill(struct client *publisher, uint64_t ttl_ms)
{
    for (unsigned i = 1;; i++) {
        ck_assert_uint_lt(i, 5000);
        RMP_PUBLISH(publisher, i, .topic = "a/b", .msg_id = i, .filler = 2000, .ttl_ms = ttl_ms);
        if (has_word(rmp_next(publisher).payload, "BackpressureTimeout"))
            return i;
    }
}

/* --- the history of runs --- */

/* Without files, what the daemon keeps continues with it; with files, these do. */
TEST_ROWS(upgrade_rmp_keeps_the_history, 2)
{
    const char *keys = row == 0 ? "" : test_format("'history':'%s'", test_dir());
    struct daemon *daemon = START(.pools = RMP_RUNNER, .members = test_format("'rmp':{%s}", keys),
                                  .arguments = {"--rmp", "@DIR@/rmp.sock"});
    struct rmp_program program;

    daemon_wait_log(daemon, "listening on .*/rmp\\.sock");
    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'name: a'");
    program = RMP_PROGRAM(daemon, "sub", "--replay", "--count", "2",
                          "rlp/runs/trace:" RMP_TRACE "/events");
    RMP_PROGRAM_EXPECT(&program, "subscribed", "'message':'one'", "'message':'completed'");
    rmp_program_end(&program, 0);
    daemon_upgrade(daemon);
    program = RMP_PROGRAM(daemon, "submit", "--follow", "--trace", RMP_TRACE, "/dev/null");
    RMP_PROGRAM_EXPECT(&program, "accepted: trace " RMP_TRACE ", opening run 1 (7)", "log: one",
                       "status: completed");
    rmp_program_end(&program, 0);
    if (row == 0)
        return;
    ck_assert(!daemon_logged(daemon, "WARN "));
    daemon_stop(daemon);
    daemon = START(.pools = RMP_RUNNER, .members = test_format("'rmp':{%s}", keys),
                   .arguments = {"--rmp", "@DIR@/rmp.sock"});
    daemon_wait_log(daemon, "history: 1 runs with 2 events");
}

/* --- clients --- */

#define COMMAND "{\"Subscribe\":{\"id\":7,\"topic\":\"a/b\",\"sub_id\":1}}"

/* row 0: a command; 1: a frame; 2: a frame that is refused. */
static void write_message(struct text *to, size_t row)
{
    struct rmp_sent sent = {.topic = "a/b", .msg_id = 1, .ack = true};
    uint32_t len = sizeof COMMAND - 1;

    if (row == 0) {
        text_add(to, (char[]){0, 0, 0, (char)len}, 4);
        text_add(to, COMMAND, len);
        return;
    }
    if (row == 2)
        sent.schema = 9999;
    rmp_frame(to, &sent);
}

static void expect_answer(struct client *client, size_t row)
{
    if (row == 0)
        rmp_expect(client, "{'SubscribeAck':{'id':7,'result':{'Ok':null}}}");
    else if (row == 1)
        rmp_expect_word(client, RMP_OK_SCHEMA, "publish");
    else
        rmp_expect_word(client, RMP_ERROR_SCHEMA, "UnknownSchema");
}

TEST_ROWS(upgrade_rmp_within_a_frame, 3)
{
    size_t len = SIZE_MAX;
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);

    for (size_t i = 1; i < len; i += harness_fewer() ? 5 : 1) {
        struct text bytes = {0};

        write_message(&bytes, row); /* each time, or it would expire */
        len = bytes.len;
        client_send_bytes(client, bytes.data, i);
        daemon_upgrade(daemon);
        client_send_bytes(client, bytes.data + i, len - i);
        text_free(&bytes);
        expect_answer(client, row);
        rmp_hello(client, row != 0, "agent");
    }
}

/* A client that does not read its answers is not read from, before and after. */
TEST(upgrade_rmp_keeps_answers_that_are_not_read)
{
    struct text *frames = test_text();
    size_t sent = 0, taken, count = 20000;
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *client = client_connect_small(daemon);
    struct client *other = client_connect(daemon);

    for (size_t i = 0; i < count; i++)
        rmp_frame(frames, &(struct rmp_sent){.topic = "a/b", .msg_id = i + 1, .ack = true});
    do {
        taken = client_offer(client, frames->data + sent, frames->len - sent);
        sent += taken;
        rmp_hello(other, false, "agent"); /* the daemon has had its turn */
    } while (taken > 0 && sent < frames->len);
    daemon_upgrade(daemon);
    for (size_t i = 0; i < sent / (frames->len / count); i++)
        ck_assert_uint_eq(rmp_next(client).schema, RMP_OK_SCHEMA);
}

/* --- messages that wait --- */

/* They come all, once, in their order; the publisher waits again for places as before. */
TEST_ROWS(upgrade_rmp_keeps_queues, 2)
{
    unsigned last;
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon);
    struct client *fast = client_connect_small(daemon);
    struct client *publisher = client_connect(daemon);

    rmp_subscribe(slow, row == 1, "a/b", 1);
    rmp_subscribe(fast, row == 0, "a/b", 1);
    last = fill(publisher, 0);
    daemon_upgrade(daemon);
    daemon_upgrade(daemon);
    for (unsigned i = 1; i < last / 2; i++)
        expect_id(slow, row == 1, i);
    daemon_upgrade(daemon);
    for (unsigned i = last / 2; i < last; i++)
        expect_id(slow, row == 1, i);
    publish(publisher, last, 2000); /* it was dropped: it is no duplicate */
    (void)rmp_next(publisher);
    expect_id(slow, row == 1, last);
    for (unsigned i = 1; i < last / 2; i++)
        expect_id(fast, row == 0, i);
}

/* The publisher has its answer once, whenever the upgrade comes. */
TEST(upgrade_rmp_answers_publishers_that_wait)
{
    unsigned last, got = 0;
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon);
    struct client *publisher = client_connect(daemon);

    rmp_subscribe(slow, true, "a/b", 0);
    last = fill(publisher, 0);
    for (unsigned round = 1; round <= 5; round++) {
        /* It has taken something: publishers wait for it again. */
        for (unsigned i = 0; i < 40; i++)
            ck_assert_uint_eq(rmp_next(slow).msg_id, ++got);
        for (unsigned i = 0; i < 60; i++)
            publish(publisher, last * (uint64_t)round + i, 2000);
        daemon_upgrade(daemon);
        for (unsigned i = 0; i < 60; i++)
            ck_assert(has_word(rmp_next(publisher).payload,
                               test_format("\"id\":%u,", last * round + i)));
        if (got + 40 >= last)
            break;
    }
    publish(publisher, 1000000, 0);
    ck_assert(has_word(rmp_next(publisher).payload, "PublishAck"));
}

TEST(upgrade_rmp_drops_what_has_expired)
{
    int64_t start;
    uint64_t last, got = 0, next;
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon);
    struct client *publisher = client_connect(daemon);
    struct client *watcher = client_connect(daemon);

    rmp_subscribe(slow, true, "a/b", 0);
    last = fill(publisher, SHORT_MS);
    start = now_ms();
    rmp_subscribe(watcher, true, "rlp/sys/drops", 0);
    daemon_upgrade(daemon);
    WAIT_UNTIL(now_ms() - start > SHORT_MS, "time stands still");
    /* What its connection had is read before the queue of the bus. */
    WAIT_UNTIL((client_read_before(slow, now_ms()), client_read_before(watcher, now_ms())),
               "no notice");
    rmp_expect_word(watcher, RMP_DROP_SCHEMA, "ttl_expired");
    publish(publisher, last, 0);
    expect_published(publisher, last);
    while ((next = rmp_next(slow).msg_id) == got + 1)
        got++;
    ck_assert_uint_eq(next, last);
}

/* --- metrics --- */

/* The number that follows the name, if it is below 128. */
static int metric(const struct rmp_got *got, const char *name)
{
    const char *at = memmem(got->body.data, got->body.len, name, strlen(name));

    ck_assert_ptr_nonnull(at);
    return (unsigned char)at[strlen(name)];
}

TEST(upgrade_rmp_goes_on_with_metrics)
{
    struct rmp_got before, after;
    struct daemon *daemon = rmp_start(",'metrics_interval_ms':300", NULL);
    struct client *client = client_connect(daemon);

    for (unsigned i = 1; i <= 3; i++) {
        publish(client, i, 0);
        expect_published(client, i);
    }
    rmp_subscribe(client, true, "rlp/sys/metrics", 0);
    before = rmp_next(client);
    ck_assert_int_eq(metric(&before, "msgs_recv_total"), 3);
    daemon_upgrade(daemon);
    after = rmp_next(client);
    ck_assert_uint_eq(after.schema, RMP_METRICS_SCHEMA);
    ck_assert_uint_eq(after.trace, before.trace);
    ck_assert_uint_ge(after.msg_id, before.msg_id + 1);
    ck_assert_int_eq(metric(&after, "msgs_recv_total"), 3);
    ck_assert_int_eq(metric(&after, "peers"), 2);
}

/* --- pools --- */

/* The runner has written events before its answer. */
TEST(upgrade_rmp_keeps_events_of_a_run)
{
    struct daemon *daemon = rmp_program_daemon("{'id':'w','command':'@WORKER@','instances':1,"
                                               "'rmp':{'agent':'writer','runner':true}}");
    struct client *watcher = rmp_program_connect(daemon);

    rmp_subscribe(watcher, true, "rlp/runs/trace:" RMP_TRACE "/events", 0);
    rmp_subscribe(watcher, true, "rlp/runs/trace:" RMP_OTHER_TRACE "/events", 0);
    rmp_program_execute(daemon, "hold", "{}");
    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'early'");
    rmp_program_execute(daemon, "say",
                        "{'message':{'method':'run/event','params':{'trace_id':'" RMP_OTHER_TRACE
                        "','kind':'log','message':'seen'}}}");
    rmp_expect_word(watcher, 8, "seen");
    rmp_subscribe(watcher, true, "rlp/ctrl", 0);
    daemon_upgrade(daemon);
    rmp_program_execute(daemon, "release", "{}");
    rmp_expect_word(watcher, 2002, "RunAccepted");
    rmp_expect_word(watcher, 8, "early");
    rmp_expect_word(watcher, 8, "zero");
    rmp_expect_word(watcher, 8, "one");
    rmp_expect_word(watcher, 8, "completed");
}

/* --- what the next program refuses --- */

static void expect_refused(struct daemon *daemon, const char *problem)
{
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGUSR2);
    daemon_wait_log(daemon, test_format("not upgraded, going on: .*%s", problem));
}

static void reload(struct daemon *daemon, const char *config)
{
    daemon_write_file(daemon, daemon->config_path, config);
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "reloaded: [0-9]+ pool");
}

/* The topic bus has its pools from its start on. */
TEST(upgrade_rmp_after_a_reload)
{
    steps_without_upgrades("one more is refused");
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    reload(daemon, "{'pools':[" RMP_WRITER(2) "],'rmp':{'max_ttl_ms':40000}}");
    daemon_upgrade(daemon);
    rmp_program_execute(daemon, "plain", "{'result':1}");
    rmp_program_expect(&replies, "'payload':{'Completed':1}");
    reload(daemon, "{'pools':[" RMP_WRITER(2) "," RMP_RUNNER "]}");
    expect_refused(daemon, "the pools of the topic bus are others");
    rmp_program_execute(daemon, "plain", "{'result':2}");
    rmp_program_expect(&replies, "'payload':{'Completed':2}");
}

int main(void)
{
    return daemon_can_upgrade() ? harness_main("upgrade_rmp") : 0;
}
