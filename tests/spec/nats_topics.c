/* Topics of the topic bus over NATS (federation.md, "Topics"): daemons beside scripted servers. */
#include "build_config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "control.h"
#include "harness.h"
#include "nats_server.h"
#include "rmp.h"

#define SUBJECT "stdio_bus.topic."
#define TOPICS ",'topics':true"
#define OTHER_NODE "NATS/1.0\r\nStdio-Bus-Node: 0000000000000001\r\n\r\n"
#define FIRST 4 /* the number of the first topic at the server */
#define HOUR_MS 3600000

#define CONFIG(port, members)                                                                      \
    test_format("{'rmp':{'socket_path':'@DIR@/rmp.sock'},'nats':{'servers':['127.0.0.1:%u']%s}}",  \
                (port), (members))

/* The daemon is connected, and answers those who look for nodes. */
static void broker_begin(struct broker *broker)
{
    broker_admit(broker);
    broker_expect(broker, "SUB stdio_bus.nodes 1");
    broker_expect(broker, "SUB stdio_bus.nodes.");
    broker_expect(broker, "SUB stdio_bus.node.");
}

/* The clients of the test are those of the RMP socket. */
static struct daemon *start(struct broker *broker, const char *members)
{
    struct daemon *daemon;

    broker_listen(broker);
    daemon = CONTROL_DAEMON(.mode = SETUP_STDIO, .default_mode = true,
                            .config = CONFIG(broker->port, members));
    daemon_wait_log(daemon, "listening on .*/rmp.sock");
    snprintf(daemon->socket_path, sizeof daemon->socket_path, "%s/rmp.sock", daemon->dir);
    broker_begin(broker);
    return daemon;
}

/* A client in the dialect of frames that has subscribed to the topic; sid: at the server. */
static struct client *subscriber(struct daemon *daemon, struct broker *broker, const char *topic,
                                 const char *subject, unsigned sid)
{
    struct client *client = client_connect(daemon);

    rmp_subscribe(client, true, topic, 1);
    if (subject != NULL)
        ck_assert_str_eq(broker_expect(broker, "SUB"),
                         test_format("SUB " SUBJECT "%s %u", subject, sid));
    return client;
}

/* A frame comes for the subscription of this number. */
static void deliver(struct broker *broker, unsigned sid, const char *headers,
                    const struct rmp_sent *sent)
{
    struct text *frame = test_text();

    rmp_frame(frame, sent);
    broker_deliver(broker, sid, headers, frame->data, frame->len);
}

#define DELIVER(broker, sid, ...)                                                                  \
    deliver((broker), (sid), "", &(struct rmp_sent){.topic = "a/b", __VA_ARGS__})

/* --- subscriptions --- */

TEST(nats_topic_is_subscribed_while_it_has_a_subscriber)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon = start(&broker, TOPICS);
    struct client *first = subscriber(daemon, &broker, "a/b", "a.b", FIRST);
    struct client *second = subscriber(daemon, &broker, "a/b", NULL, 0);

    subscriber(daemon, &broker, "x y", "x%20y", FIRST + 1);
    client_close(first);
    RMP_SEND(second, .op = "unsubscribe", .key = "topic", .value = "a/b");
    rmp_next(second);
    ck_assert_str_eq(broker_expect(&broker, "UNSUB"), "UNSUB 4");
    subscriber(daemon, &broker, "a/b", "a.b", FIRST + 2);
    client_abort(broker.link);
    broker_begin(&broker);
    broker_expect(&broker, "SUB " SUBJECT);
    broker_expect(&broker, "SUB " SUBJECT);
}

static const char *const kept_here[] = {"rlp/sys/drops", "rlp/ctrl", "agent/x", "action.decision"};

TEST_ROWS(nats_topic_stays_at_its_node, COUNT(kept_here))
{
    struct broker broker = {.port = 0};
    struct daemon *daemon = start(&broker, TOPICS);
    struct client *client = subscriber(daemon, &broker, kept_here[row], NULL, 0);

    RMP_SEND(client, .topic = kept_here[row], .msg_id = 1);
    rmp_next(client);
    subscriber(daemon, &broker, "agent", "agent", FIRST);
}

/* --- publications --- */

/* What goes to a node comes from it; a message that came is not sent out again. */
TEST_ROWS(nats_publication_reaches_other_nodes, 2)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon = start(&broker, TOPICS);
    struct client *publisher = client_connect(daemon);
    struct client *client = subscriber(daemon, &broker, "a/b", "a.b", FIRST);

    for (unsigned i = 1; i <= 3; i++) {
        struct broker_message message;

        if (row == 0)
            RMP_SEND(publisher, .topic = "a/b", .msg_id = i);
        else
            RMP_PUBLISH(publisher, i, .topic = "a/b", .msg_id = i);
        ck_assert_uint_eq(rmp_next(client).msg_id, i);
        message = broker_expect_message(&broker, SUBJECT "a.b");
        broker_deliver(&broker, FIRST, OTHER_NODE, message.payload, message.len);
        ck_assert_uint_eq(rmp_next(client).msg_id, i); /* of another user */
    }
}

/* A run has two names, and one subject. */
TEST(nats_events_of_a_run_have_one_subject)
{
    const char *uuid = "00000000-0000-0000-0000-000000000001";
    const char *topic = test_format("rlp/runs/%s/events", uuid);
    const char *subject = test_format("rlp.runs.trace:%s.events", uuid);
    struct broker broker = {.port = 0};
    struct daemon *daemon = start(&broker, TOPICS);
    struct client *client = subscriber(daemon, &broker, topic, subject, FIRST);

    RMP_SEND(client, .topic = topic, .msg_id = 1);
    broker_expect_message(&broker, test_format(SUBJECT "%s", subject));
    deliver(&broker, FIRST, "", &(struct rmp_sent){.topic = topic, .msg_id = 2});
    ck_assert_uint_eq(rmp_next(client).msg_id, 1);
    ck_assert_uint_eq(rmp_next(client).msg_id, 2);
}

/* The server sends a node its own messages, too. */
TEST(nats_own_message_is_ignored)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon = start(&broker, TOPICS);
    struct client *client = subscriber(daemon, &broker, "a/b", "a.b", FIRST);
    struct broker_message message;

    RMP_SEND(client, .topic = "a/b", .msg_id = 1);
    message = broker_expect_message(&broker, SUBJECT "a.b");
    expect_word(message.headers, "Stdio-Bus-Node: ");
    broker_deliver(&broker, FIRST, message.headers, message.payload, message.len);
    DELIVER(&broker, FIRST, .msg_id = 2);
    ck_assert_uint_eq(rmp_next(client).msg_id, 1);
    ck_assert_uint_eq(rmp_next(client).msg_id, 2);
    if (!daemon_can_upgrade())
        return;
    daemon_upgrade(daemon);
    broker_begin(&broker);
    broker_expect(&broker, "SUB " SUBJECT "a.b 4");
    broker_deliver(&broker, FIRST, message.headers, message.payload, message.len);
    DELIVER(&broker, FIRST, .msg_id = 3);
    ck_assert_uint_eq(rmp_next(client).msg_id, 3);
}

/* A repeat, by its id; one whose time is over; a decision; what is no frame. */
TEST(nats_message_is_not_delivered)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon = start(&broker, TOPICS);
    struct client *client = subscriber(daemon, &broker, "a/b", "a.b", FIRST);
    const struct rmp_sent one = {.topic = "a/b", .trace = 7, .msg_id = 1};
    struct client *control;

    deliver(&broker, FIRST, "", &one);
    deliver(&broker, FIRST, OTHER_NODE, &one);
    DELIVER(&broker, FIRST, .msg_id = 2, .created_ms = rmp_now_ms() - HOUR_MS);
    DELIVER(&broker, FIRST, .msg_id = 3, .schema = 3006);
    DELIVER(&broker, FIRST, .msg_id = 4, .type = "another");
    DELIVER(&broker, FIRST, .msg_id = 5, .no_ttl = true);
    broker_deliver(&broker, FIRST, "", "rubbish", 7);
    broker_deliver(&broker, FIRST, "", "", 0);
    DELIVER(&broker, FIRST, .msg_id = 6);
    ck_assert_uint_eq(rmp_next(client).msg_id, 1);
    ck_assert_uint_eq(rmp_next(client).msg_id, 6);
    daemon_wait_log(daemon, "a message on a topic is refused");
    control = control_connect(daemon);
    ck_assert(control_metric(control, "stdio_bus_nats_topics") == 1);
    ck_assert(control_metric(control, "stdio_bus_nats_topics_taken_total") == 9);
    ck_assert(control_metric(control, "stdio_bus_nats_topics_refused_total") == 5);
    ck_assert(control_metric(control, "stdio_bus_rmp_drops_total{reason=\"duplicate\"}") == 1);
}

TEST(nats_publication_is_too_long)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon = start(&broker, TOPICS);
    struct client *client = client_connect(daemon);

    RMP_SEND(client, .topic = "a/b", .msg_id = 1, .filler = 100000);
    daemon_wait_log(daemon, "a message on a/b is lost for other nodes: it is longer than");
    RMP_SEND(client, .topic = "a/b", .msg_id = 2);
    broker_expect_message(&broker, SUBJECT "a.b");
}

/* Without a connection messages wait, and there is an end to that. */
TEST(nats_publications_wait_for_a_connection)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon = start(&broker, TOPICS);
    struct client *client = client_connect(daemon);
    unsigned count = 0;

    client_abort(broker.link);
    broker_accept(&broker); /* the next connection, without an INFO */
    RMP_SEND(client, .topic = "a/b", .msg_id = 1);
    while (!daemon_logged(daemon, "too much waits for the server")) {
        ck_assert_uint_lt(++count, 200);
        RMP_SEND(client, .topic = "long", .msg_id = 1 + count, .filler = 90000, .ack = true);
        rmp_next(client);
    }
    ck_assert_uint_gt(count, 80);
    broker_greet(&broker, "");
    broker_expect(&broker, "CONNECT");
    broker_expect(&broker, "PING");
    broker_say(&broker, "PONG");
    broker_expect_message(&broker, SUBJECT "a.b");
    broker_expect_message(&broker, SUBJECT "long");
}

/* --- configuration --- */

TEST(nats_topics_need_a_topic_bus)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;

    broker_listen(&broker);
    daemon = START(.config = test_format("{'pools':[{'id':'a','command':'@WORKER@'}],'nats':"
                                         "{'servers':['127.0.0.1:%u'],'topics':true}}",
                                         broker.port));
    broker_admit(&broker);
    daemon_wait_log(daemon, "\"topics\" has no effect: there is no topic bus");
}

TEST(nats_topics_are_off)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon = start(&broker, "");
    struct client *client = client_connect(daemon);

    rmp_subscribe(client, true, "a/b", 1);
    RMP_SEND(client, .topic = "a/b", .msg_id = 1);
    rmp_next(client);
    broker_say(&broker, "PING");
    broker_expect(&broker, "PONG");
    ck_assert(control_metric(control_connect(daemon), "stdio_bus_nats_topics") == -1);
    daemon_write_file(daemon, daemon->config_path, CONFIG(broker.port, TOPICS));
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "\"nats\" takes effect at the next start");
}
