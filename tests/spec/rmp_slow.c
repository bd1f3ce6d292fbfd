/* RMP v0, section 5: subscribers that do not read. A publisher waits for at most 50 ms in all, and
 * nobody else waits. */
#include "build_config.h"

#include "harness.h"
#include "rmp.h"

#define TIMEOUT "{'Err':{'BackpressureTimeout':{'topic':'a/b'}}}"

/* A small output queue: after it, 1024 messages wait for a subscription, or 64 KiB for its
 * client. */
#define LIMITS ",'limits':{'max_output_queue':65536}"

static void expect_id(struct client *client, bool frames, uint64_t msg_id)
{
    if (frames)
        ck_assert_uint_eq(rmp_next(client).msg_id, msg_id);
    else
        rmp_expect_message(client, 1, msg_id);
}

/* Publishes to a topic with a subscriber that does not read, until the publisher is told of the
 * full queue; `reader`, unless NULL, is one that reads. Returns the number of that message; the
 * ones before it were taken. */
static unsigned fill(struct client *publisher, bool frames, struct client *reader, bool to_frames)
{
    for (unsigned i = 1;; i++) {
        ck_assert_uint_lt(i, 5000);
        struct rmp_sent sent = {.topic = "a/b", .msg_id = i, .ack = true, .filler = 2000};
        if (frames)
            rmp_send(publisher, &sent);
        else
            client_publish(publisher, i, &sent);
        if (reader != NULL)
            expect_id(reader, to_frames, i);
        struct rmp_got got = rmp_next(publisher);
        const char *word = "BackpressureTimeout";
        if (memmem(got.payload.data, got.payload.len, word, strlen(word)) != NULL)
            return i;
    }
}

/* The message is dropped for the subscriber that does not read, with a notice; the rest get it, and
 * a retry reaches the one that has not had it. */
TEST_ROWS(rmp_full_queue_drops_for_one_subscriber, 4)
{
    bool frames = row % 2 == 1, to_frames = row / 2 == 1;
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon), *fast = client_connect(daemon);
    struct client *publisher = client_connect(daemon), *watcher = client_connect(daemon);
    rmp_subscribe(watcher, true, "rlp/sys/drops", 0);
    rmp_subscribe(slow, to_frames, "a/b", 1);
    rmp_subscribe(fast, to_frames, "a/b", 1);
    unsigned last = fill(publisher, frames, fast, to_frames);
    rmp_expect_word(watcher, RMP_DROP_SCHEMA, "backpressure_timeout");
    for (unsigned i = 1; i < last; i++)
        expect_id(slow, to_frames, i);
    RMP_PUBLISH(publisher, 9, .topic = "a/b", .msg_id = last);
    rmp_expect(publisher, "{'PublishAck':{'id':9,'result':{'Ok':null}}}");
    expect_id(slow, to_frames, last);
}

/* While a publisher waits, another one is served, and so is a subscriber of another topic. */
TEST(rmp_waiting_publisher_delays_nobody)
{
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon), *publisher = client_connect(daemon);
    struct client *other = client_connect(daemon);
    rmp_subscribe(slow, true, "a/b", 0);
    rmp_subscribe(other, true, "c", 0);
    unsigned last = fill(publisher, false, NULL, false);
    /* Twenty messages that wait one after the other, for 50 ms each. */
    for (unsigned i = 0; i < 20; i++)
        RMP_PUBLISH(publisher, i, .topic = "a/b", .msg_id = last + i, .filler = 2000);
    for (unsigned i = 1; i <= 100; i++) {
        RMP_SEND(other, .topic = "c", .msg_id = i);
        ck_assert_uint_eq(rmp_next(other).msg_id, i);
    }
    for (unsigned i = 0; i < 20; i++)
        rmp_expect(publisher, "{'PublishAck':{'id':%u,'result':" TIMEOUT "}}", i);
}

/* A subscriber that reads again ends the wait. */
TEST(rmp_wait_ends_when_the_subscriber_reads)
{
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon), *publisher = client_connect(daemon);
    rmp_subscribe(slow, true, "a/b", 0);
    unsigned last = fill(publisher, false, NULL, false);
    for (unsigned i = 1; i < last; i++)
        ck_assert_uint_eq(rmp_next(slow).msg_id, i);
    for (unsigned i = 0; i < 500; i++) {
        RMP_PUBLISH(publisher, i, .topic = "a/b", .msg_id = last + i, .filler = 2000);
        rmp_expect(publisher, "{'PublishAck':{'id':%u,'result':{'Ok':null}}}", i);
        ck_assert_uint_eq(rmp_next(slow).msg_id, last + i);
    }
}

/* The publications of a client are answered in order, though one of them waits. */
TEST(rmp_publishes_are_answered_in_order)
{
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon), *publisher = client_connect(daemon);
    rmp_subscribe(slow, true, "a/b", 0);
    unsigned last = fill(publisher, false, NULL, false);
    RMP_PUBLISH(publisher, 1, .topic = "a/b", .msg_id = last, .filler = 2000);
    RMP_PUBLISH(publisher, 2, .topic = "c", .msg_id = last + 1);
    rmp_expect(publisher, "{'PublishAck':{'id':1,'result':" TIMEOUT "}}");
    rmp_expect(publisher, "{'PublishAck':{'id':2,'result':{'Ok':null}}}");
}

/* A message whose time has run out in the queue is not handed over. */
TEST_ROWS(rmp_expiry_is_checked_when_a_message_leaves_the_queue, 2)
{
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon), *publisher = client_connect(daemon);
    struct client *watcher = client_connect(daemon);
    rmp_subscribe(slow, row == 1, "a/b", 1);
    unsigned last = fill(publisher, true, NULL, false);
    rmp_subscribe(watcher, true, "rlp/sys/drops", 0);
    unsigned early = 0;
    /* One that expires, as soon as there is room for it. */
    for (bool taken = false; !taken;) {
        expect_id(slow, row == 1, ++early);
        RMP_PUBLISH(publisher, 1, .topic = "a/b", .msg_id = 100000, .ttl_ms = 1500);
        struct rmp_got got = rmp_next(publisher);
        taken = memmem(got.payload.data, got.payload.len, "Ok", 2) != NULL;
        if (!taken) { /* its notice */
            rmp_expect_word(watcher, RMP_DROP_SCHEMA, "backpressure_timeout");
        }
    }
    int64_t start = now_ms();
    WAIT_UNTIL(now_ms() - start > 1600, "time stands still");
    while (++early < last)
        expect_id(slow, row == 1, early);
    rmp_expect_word(watcher, RMP_DROP_SCHEMA, "ttl_expired");
    RMP_PUBLISH(publisher, 2, .topic = "a/b", .msg_id = 100001);
    rmp_expect(publisher, "{'PublishAck':{'id':2,'result':{'Ok':null}}}");
    expect_id(slow, row == 1, 100001);
}

/* A client that does not read its own answers is not read from, and holds little memory. */
TEST_ROWS(rmp_client_that_reads_no_answers_is_held, 2)
{
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *client = client_connect_small(daemon), *other = client_connect(daemon);
    struct text *frame = test_text();
    size_t taken = 0, sent = 0;
    struct rmp_sent bad = {.topic = "a/b", .schema = row == 1 ? 9999 : 0, .ack = true};
    for (unsigned i = 0; i < 20000; i++)
        rmp_frame(frame, &bad);
    do {
        taken = client_offer(client, frame->data + sent, frame->len - sent);
        sent += taken;
        rmp_hello(other, false, "Agent"); /* the daemon has had its turn */
    } while (taken > 0 && sent < frame->len);
    ck_assert_uint_lt(sent, frame->len);
    size_t frames = sent / (frame->len / 20000);
    for (size_t i = 0; i < frames; i++)
        ck_assert_uint_eq(rmp_next(client).schema, row == 1 ? RMP_ERROR_SCHEMA : RMP_OK_SCHEMA);
}

/* A subscriber that never reads is closed after backpressure_timeout_sec. */
TEST(rmp_subscriber_that_never_reads_is_closed)
{
    struct daemon *daemon =
        rmp_start(NULL, ",'limits':{'max_output_queue':65536,'backpressure_timeout_sec':1}");
    struct client *slow = client_connect_small(daemon), *publisher = client_connect(daemon);
    rmp_subscribe(slow, true, "a/b", 0);
    fill(publisher, false, NULL, false);
    daemon_wait_log(daemon,
                    "\\[rmp=1\\] disconnected: it did not read for backpressure_timeout_sec");
    RMP_PUBLISH(publisher, 1, .topic = "a/b", .msg_id = 1);
    rmp_expect(publisher, "{'PublishAck':{'id':1,'result':{'Ok':null}}}");
}

/* A subscriber that leaves ends the wait of a publisher. */
TEST(rmp_subscriber_that_leaves_frees_the_publisher)
{
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon), *publisher = client_connect(daemon);
    rmp_subscribe(slow, true, "a/b", 0);
    unsigned last = fill(publisher, false, NULL, false);
    RMP_PUBLISH(publisher, 1, .topic = "a/b", .msg_id = last + 1, .filler = 2000);
    client_close(slow);
    struct rmp_got got = rmp_next(publisher);
    ck_assert(memmem(got.payload.data, got.payload.len, "PublishAck", 10) != NULL);
    RMP_PUBLISH(publisher, 2, .topic = "a/b", .msg_id = last + 2);
    rmp_expect(publisher, "{'PublishAck':{'id':2,'result':{'Ok':null}}}");
}

/* A publisher that leaves while it waits. */
TEST(rmp_publisher_that_leaves_while_it_waits)
{
    struct daemon *daemon = rmp_start(NULL, LIMITS);
    struct client *slow = client_connect_small(daemon), *publisher = client_connect(daemon);
    rmp_subscribe(slow, true, "a/b", 0);
    unsigned last = fill(publisher, false, NULL, false);
    RMP_PUBLISH(publisher, 1, .topic = "a/b", .msg_id = last + 1, .filler = 2000);
    client_close(publisher);
    publisher = client_connect(daemon);
    for (unsigned i = 1; i < last; i++)
        ck_assert_uint_eq(rmp_next(slow).msg_id, i);
    RMP_PUBLISH(publisher, 2, .topic = "a/b", .msg_id = last + 2);
    rmp_expect(publisher, "{'PublishAck':{'id':2,'result':{'Ok':null}}}");
    struct rmp_got got = rmp_next(slow);
    ck_assert(got.msg_id == last + 1 || got.msg_id == last + 2);
}

/* Refused frames, until the daemon does not read them any more. */
static void send_until_held(struct daemon *daemon, struct client *publisher)
{
    struct client *other = client_connect(daemon);
    struct text frames = {0};
    size_t sent = 0, taken;

    for (unsigned i = 0; i < 20000; i++)
        rmp_frame(&frames, &(struct rmp_sent){.topic = "a/b", .no_ttl = true});
    do {
        taken = client_offer(publisher, frames.data + sent, frames.len - sent);
        sent += taken;
        rmp_hello(other, true, "agent"); /* the daemon has had its turn */
    } while (taken > 0 && sent < frames.len);
    ck_assert_uint_eq(taken, 0);
    text_free(&frames);
    client_close(other);
}

TEST(rmp_shutdown_waits_briefly_for_unread_errors)
{
    struct daemon *daemon =
        rmp_start(NULL, ",'limits':{'max_output_queue':65536,'slow_client_timeout_sec':1,"
                        "'drain_timeout_sec':3600}");
    struct client *publisher = client_connect_small(daemon);

    send_until_held(daemon, publisher);
    daemon_signal(daemon, SIGTERM);
    daemon_wait_log(daemon, "it did not read while the daemon was shutting down");
    ck_assert_int_eq(daemon_wait(daemon), 0);
}
