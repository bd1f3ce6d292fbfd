/* RMP v0, sections 3 to 5, 7 and 11: topics, subscriptions, duplicates, expiry, notices, rights and
 * metrics, over the socket, in both dialects and from one to the other. */
#include "build_config.h"

#include <inttypes.h>

#include "harness.h"
#include "rmp.h"

/* Publishers and subscribers of both dialects: a row has one of each. */
#define PAIRS 4

static bool publishes_frames(size_t row)
{
    return row % 2 == 1;
}

static bool subscribes_frames(size_t row)
{
    return row / 2 == 1;
}

/* Publishes, and reads that this was done. */
static void publish(struct client *client, bool frames, struct rmp_sent sent)
{
    sent.ack = true;
    if (frames) {
        rmp_send(client, &sent);
        rmp_expect_word(client, RMP_OK_SCHEMA, "publish");
        return;
    }
    client_publish(client, (unsigned)sent.msg_id, &sent);
    rmp_expect(client, "{'PublishAck':{'id':%u,'result':{'Ok':null}}}", (unsigned)sent.msg_id);
}

#define PUBLISH(client, frames, ...) publish((client), (frames), (struct rmp_sent){__VA_ARGS__})

/* The subscriber, of the row's dialect, gets the message. */
static void expect_message(struct client *client, bool frames, uint64_t msg_id)
{
    if (!frames) {
        rmp_expect_message(client, 1, msg_id);
        return;
    }
    struct rmp_got got = rmp_next(client);
    ck_assert(got.is_frame);
    ck_assert_uint_eq(got.msg_id, msg_id);
    ck_assert_uint_ne(got.schema, RMP_DROP_SCHEMA);
}

TEST_ROWS(rmp_message_reaches_the_subscriber, PAIRS)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *publisher = client_connect(daemon), *subscriber = client_connect(daemon);
    rmp_hello(publisher, publishes_frames(row), "Agent");
    rmp_hello(subscriber, subscribes_frames(row), "agent");
    rmp_subscribe(subscriber, subscribes_frames(row), "a/b", 1);
    for (unsigned i = 1; i <= 3; i++)
        PUBLISH(publisher, publishes_frames(row), .topic = "a/b", .msg_id = i, .trace = 7);
    for (unsigned i = 1; i <= 3; i++)
        expect_message(subscriber, subscribes_frames(row), i);
}

TEST(rmp_frame_is_delivered_byte_for_byte)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    struct text *frame = test_text();
    rmp_subscribe(client, true, "a/b", 0);
    rmp_frame(frame, &(struct rmp_sent){.topic = "a/b", .trace = 77, .msg_id = 9, .filler = 100});
    client_send_chunks(client, frame->data, frame->len, 7);
    rmp_expect_frame(client, frame);
}

#define TOO_MANY "too many subscriptions"

/* The least max_memory, of which a sixteenth is for subscriptions and topics. A client that asks
 * for more is told so, in either dialect, and another one of its user gets what is its share. */
TEST_ROWS(rmp_subscriptions_share_the_memory, 2)
{
    struct daemon *daemon = rmp_start(NULL, ",'limits':{'max_memory':1048576}");
    struct client *greedy = client_connect(daemon), *modest = client_connect(daemon);
    unsigned count = 0;
    bool refused = false;
    rmp_hello(modest, false, "Agent");
    while (!refused && count < 1000) {
        const char *topic = test_format("topic/%u", ++count);
        struct rmp_got got;
        if (row == 0)
            rmp_command(greedy, "{'Subscribe':{'id':%u,'topic':'%s','sub_id':%u}}", count, topic,
                        count);
        else
            RMP_SEND(greedy, .op = "subscribe", .key = "topic", .value = topic);
        got = rmp_next(greedy);
        refused = memmem(got.payload.data, got.payload.len, TOO_MANY, strlen(TOO_MANY)) != NULL;
    }
    ck_assert_uint_gt(count, 100);
    ck_assert_uint_lt(count, 300);
    for (unsigned i = 1; i <= 10; i++)
        rmp_subscribe(modest, false, test_format("modest/%u", i), i);
    PUBLISH(greedy, row == 1, .topic = "modest/3", .msg_id = 1);
    rmp_expect_message(modest, 3, 1);
    PUBLISH(modest, false, .topic = "topic/1", .msg_id = 2);
    expect_message(greedy, row == 1, 2);
}

/* The trace_id is exact up to 2^128 - 1. */
TEST(rmp_message_of_the_json_dialect_is_exact)
{
    static const char header[] =
        "'header':{'header_version':0,'header_len':64,'flags':0,'schema_id':3003,'body_len':3,"
        "'created_at_ms':%" PRIu64 ",'ttl_ms':30000,"
        "'trace_id':340282366920938463463374607431768211455,'msg_id':18446744073709551615}";
    struct daemon *daemon = rmp_start(",'validate':false", NULL);
    struct client *client = client_connect(daemon);
    const char *message = test_format(header, rmp_now_ms());
    rmp_subscribe(client, false, "a/b", 5);
    rmp_command(client, "{'Publish':{'id':1,'topic':'a\\/b','message':{%s,'body':[0,128,255]}}}",
                message);
    rmp_expect(client, "{'Message':{'sub_id':5,'message':{%s,'body':[0,128,255]}}}", message);
    rmp_expect(client, "{'PublishAck':{'id':1,'result':{'Ok':null}}}");
}

/* A topic is matched exactly: no prefix, no pattern, no other case. */
TEST_ROWS(rmp_topic_is_an_exact_string, PAIRS)
{
    static const char *const others[] = {"a", "a/b/", "a/b/c", "A/b", "a/*", " a/b"};
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *publisher = client_connect(daemon), *subscriber = client_connect(daemon);
    rmp_subscribe(subscriber, subscribes_frames(row), "a/b", 1);
    for (unsigned i = 0; i < COUNT(others); i++)
        PUBLISH(publisher, publishes_frames(row), .topic = others[i], .msg_id = i + 1);
    PUBLISH(publisher, publishes_frames(row), .topic = "a/b", .msg_id = 99);
    expect_message(subscriber, subscribes_frames(row), 99);
}

/* Nothing is kept for later subscribers. */
TEST_ROWS(rmp_message_without_a_subscriber_is_gone, PAIRS)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *publisher = client_connect(daemon), *subscriber = client_connect(daemon);
    PUBLISH(publisher, publishes_frames(row), .topic = "a/b", .msg_id = 1);
    rmp_subscribe(subscriber, subscribes_frames(row), "a/b", 1);
    PUBLISH(publisher, publishes_frames(row), .topic = "a/b", .msg_id = 2);
    expect_message(subscriber, subscribes_frames(row), 2);
}

TEST_ROWS(rmp_own_messages_come_back, 2)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    rmp_subscribe(client, row == 1, "a/b", 1);
    if (row == 1)
        RMP_SEND(client, .topic = "a/b", .msg_id = 3);
    else
        RMP_PUBLISH(client, 3, .topic = "a/b", .msg_id = 3);
    expect_message(client, row == 1, 3);
}

/* One client may have subscriptions in both dialects, and gets each message in both. */
TEST(rmp_one_client_uses_both_dialects)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    struct text *frame = test_text();
    rmp_subscribe(client, false, "a/b", 4);
    rmp_subscribe(client, true, "a/b", 0);
    rmp_frame(frame, &(struct rmp_sent){.topic = "a/b", .msg_id = 9});
    client_send_bytes(client, frame->data, frame->len);
    rmp_expect_message(client, 4, 9);
    rmp_expect_frame(client, frame);
}

/* --- subscriptions --- */

/* A sub_id that is used again replaces the subscription. */
TEST(rmp_sub_id_in_use_is_replaced)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon), *publisher = client_connect(daemon);
    rmp_subscribe(client, false, "old", 1);
    rmp_subscribe(client, false, "new", 1);
    PUBLISH(publisher, false, .topic = "old", .msg_id = 1);
    PUBLISH(publisher, false, .topic = "new", .msg_id = 2);
    rmp_expect_message(client, 1, 2);
}

TEST_ROWS(rmp_unsubscribed_topic_is_silent, 2)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    rmp_subscribe(client, row == 1, "old", 1);
    rmp_subscribe(client, row == 1, "new", 2);
    if (row == 1) {
        RMP_SEND(client, .op = "unsubscribe", .key = "topic", .value = "old");
        rmp_expect_word(client, RMP_OK_SCHEMA, "unsubscribe");
    } else {
        rmp_command(client, "{'Unsubscribe':{'sub_id':1}}"); /* has no answer */
    }
    struct client *publisher = client_connect(daemon);
    rmp_hello(client, row == 1, "agent"); /* the commands before it were carried out */
    PUBLISH(publisher, true, .topic = "old", .msg_id = 1);
    PUBLISH(publisher, true, .topic = "new", .msg_id = 2);
    if (row == 1)
        expect_message(client, true, 2);
    else
        rmp_expect_message(client, 2, 2);
}

/* --- duplicates --- */

/* The publisher is told Ok, a subscriber that had the message does not get it again, another one
 * does; the key is trace_id and msg_id together. */
TEST_ROWS(rmp_duplicate_is_dropped_for_each_subscriber, PAIRS)
{
    bool frames = publishes_frames(row), to_frames = subscribes_frames(row);
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *publisher = client_connect(daemon), *first = client_connect(daemon);
    struct client *second = client_connect(daemon), *watcher = client_connect(daemon);
    rmp_subscribe(watcher, true, "rlp/sys/drops", 0);
    rmp_subscribe(first, to_frames, "a/b", 1);
    PUBLISH(publisher, frames, .topic = "a/b", .trace = 5, .msg_id = 1);
    rmp_subscribe(second, to_frames, "a/b", 1);
    PUBLISH(publisher, frames, .topic = "a/b", .trace = 5, .msg_id = 1);
    PUBLISH(publisher, frames, .topic = "a/b", .trace = 6, .msg_id = 1);
    PUBLISH(publisher, frames, .topic = "a/b", .trace = 5, .msg_id = 2);
    expect_message(first, to_frames, 1);
    expect_message(first, to_frames, 1);
    expect_message(first, to_frames, 2);
    for (unsigned i = 0; i < 2; i++)
        expect_message(second, to_frames, 1);
    expect_message(second, to_frames, 2);
    struct rmp_got notice = rmp_expect_word(watcher, RMP_DROP_SCHEMA, "duplicate");
    ck_assert_uint_eq(notice.trace, 5);
    ck_assert_uint_eq(notice.ttl_ms, 5000);
}

/* --- expiry and notices --- */

static void refuse(struct client *client, bool frames, struct rmp_sent sent, const char *code,
                   const char *err)
{
    if (frames) {
        rmp_send(client, &sent);
        struct rmp_got got = rmp_expect_word(client, RMP_ERROR_SCHEMA, code);
        ck_assert_uint_eq(got.trace, sent.trace);
        return;
    }
    client_publish(client, 8, &sent);
    rmp_expect(client, "{'PublishAck':{'id':8,'result':{'Err':%s}}}", err);
}

#define REFUSE(client, frames, code, err, ...)                                                     \
    refuse((client), (frames), (struct rmp_sent){__VA_ARGS__}, (code), (err))

/* The publisher is told, no subscriber gets it, and one notice has the body of the message. */
TEST_ROWS(rmp_expired_message_is_dropped_with_a_notice, PAIRS)
{
    static const char *const members[] = {"reason",        "ttl_expired",    "topic",
                                          "a/b",           "trace_id",       "msg_id",
                                          "expires_at_ms", "observed_at_ms", "body"};
    bool frames = publishes_frames(row), to_frames = subscribes_frames(row);
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *publisher = client_connect(daemon), *subscriber = client_connect(daemon);
    struct client *watcher = client_connect(daemon);
    rmp_subscribe(watcher, true, "rlp/sys/drops", 0);
    rmp_subscribe(subscriber, to_frames, "a/b", 1);
    REFUSE(publisher, frames, "Expired", "'MessageExpired'", .topic = "a/b", .created_ms = 1000,
           .ttl_ms = 50, .trace = 3, .msg_id = 1);
    PUBLISH(publisher, frames, .topic = "a/b", .trace = 3, .msg_id = 2);
    expect_message(subscriber, to_frames, 2);
    struct rmp_got notice = rmp_next(watcher);
    ck_assert_uint_eq(notice.schema, RMP_DROP_SCHEMA);
    ck_assert_uint_eq(notice.trace, 3);
    for (size_t i = 0; i < COUNT(members); i++)
        ck_assert_msg(memmem(notice.body.data, notice.body.len, members[i], strlen(members[i])) !=
                          NULL,
                      "no %s in the notice", members[i]);
    daemon_stop(daemon);
}

/* A subscriber of the JSON dialect gets notices as Messages. */
TEST(rmp_notice_in_the_json_dialect)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    rmp_subscribe(client, false, "rlp/sys/drops", 3);
    RMP_PUBLISH(client, 1, .topic = "a/b", .created_ms = 1000, .ttl_ms = 50);
    struct rmp_got got = rmp_next(client);
    const char *schema = "\"schema_id\":3007,";
    ck_assert(!got.is_frame);
    ck_assert(memmem(got.payload.data, got.payload.len, schema, strlen(schema)) != NULL);
    rmp_expect(client, "{'PublishAck':{'id':1,'result':{'Err':'MessageExpired'}}}");
}

/* A burst of drops is reported by few notices, and the last one of a later time says how many were
 * left out. */
TEST(rmp_notices_are_limited)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *publisher = client_connect(daemon), *watcher = client_connect(daemon);
    unsigned count = 0;
    rmp_subscribe(watcher, true, "rlp/sys/drops", 0);
    for (unsigned i = 0; i < 1000; i++)
        RMP_PUBLISH(publisher, i, .topic = "a/b", .created_ms = 1000, .ttl_ms = 50, .msg_id = i);
    for (unsigned i = 0; i < 1000; i++)
        rmp_expect(publisher, "{'PublishAck':{'id':%u,'result':{'Err':'MessageExpired'}}}", i);
    for (bool told = false; !told; count++) {
        RMP_PUBLISH(publisher, 1, .topic = "a/b", .created_ms = 1000, .ttl_ms = 50);
        rmp_expect(publisher, "{'PublishAck':{'id':1,'result':{'Err':'MessageExpired'}}}");
        struct rmp_got notice = rmp_next(watcher);
        told = memmem(notice.body.data, notice.body.len, "suppressed", 10) != NULL;
        nap(); /* one notice is due each 10 ms */
    }
    ck_assert_uint_ge(count, 200);
}

/* --- rights --- */

TEST_ROWS(rmp_system_topics_are_the_bus_alone, 2)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    const char *err = "{'Forbidden':'topics below rlp/sys/ are published by the bus alone'}";
    REFUSE(client, row == 1, "Forbidden", err, .topic = "rlp/sys/drops");
    REFUSE(client, row == 1, "Forbidden", err, .topic = "rlp/sys/other");
}

/* Decisions are published by kinds ui and tui, which are those of rmp.ui_uids. */
TEST_ROWS(rmp_decision_of_an_agent_is_forbidden, 2)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    rmp_hello(client, row == 1, "Ui");
    daemon_wait_log(daemon, " WARN .*rmp.ui_uids");
    for (unsigned i = 0; i < 2; i++) {
        struct rmp_sent sent = {.topic = i == 0 ? "action.decision" : "a/b", .schema = 3006};
        if (row == 1)
            rmp_send(client, &sent);
        else
            client_publish(client, 1, &sent);
        struct rmp_got got = rmp_next(client);
        ck_assert(memmem(got.payload.data, got.payload.len, "Forbidden", 9) != NULL);
    }
}

TEST_ROWS(rmp_decision_of_a_user_is_published, 4)
{
    static const char *const kinds[] = {"Ui", "Tui"};
    struct daemon *daemon = rmp_start(test_format(",'ui_uids':[%u]", (unsigned)getuid()), NULL);
    struct client *client = client_connect(daemon), *subscriber = client_connect(daemon);
    rmp_subscribe(subscriber, true, "action.decision", 0);
    rmp_hello(client, row % 2 == 1, kinds[row / 2]);
    PUBLISH(client, row % 2 == 1, .topic = "action.decision", .schema = 3006, .msg_id = 4);
    expect_message(subscriber, true, 4);
}

/* --- metrics --- */

TEST_ROWS(rmp_metrics_are_published_while_they_are_watched, 2)
{
    static const char *const names[] = {"scope",
                                        "system",
                                        "msgs_sent_total",
                                        "msgs_recv_total",
                                        "msgs_dropped_total",
                                        "drops_ttl",
                                        "drops_duplicate",
                                        "drops_backpressure",
                                        "interval_ms",
                                        "labels"};
    struct daemon *daemon = rmp_start(",'metrics_interval_ms':20", NULL);
    struct client *client = client_connect(daemon);
    rmp_subscribe(client, true, "rlp/sys/metrics", 0);
    for (unsigned i = 0; i < 2; i++) {
        struct rmp_got got = rmp_expect_word(client, RMP_METRICS_SCHEMA, "ts_ms");
        for (size_t j = 0; j < COUNT(names); j++)
            ck_assert_msg(memmem(got.body.data, got.body.len, names[j], strlen(names[j])) != NULL,
                          "no %s", names[j]);
    }
    client_close(client);
    daemon_wait_log(daemon, "disconnected");
    daemon_check_asleep(daemon);
}

TEST(rmp_11_stats_have_each_topic)
{
    static const char *const names[] = {"topics_total", "a/b", "published", "delivered", "dropped"};
    struct daemon *daemon = rmp_start(",'metrics_interval_ms':20", NULL);
    struct client *client = client_connect(daemon), *reader = client_connect(daemon);
    struct rmp_got got;

    rmp_subscribe(reader, true, "a/b", 0);
    rmp_subscribe(client, true, "rlp/sys/stats", 0);
    got = rmp_expect_word(client, RMP_METRICS_SCHEMA, "topics");
    for (size_t i = 0; i < COUNT(names); i++)
        ck_assert_msg(memmem(got.body.data, got.body.len, names[i], strlen(names[i])) != NULL,
                      "no %s", names[i]);
    RMP_SEND(reader, .topic = "rlp/sys/stats");
    rmp_expect_word(reader, RMP_ERROR_SCHEMA, "Forbidden");
}
