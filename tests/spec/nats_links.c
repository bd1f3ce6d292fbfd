/* Links over NATS (federation.md): the daemon beside a scripted server, which is the other node. */
#include "build_config.h"

#include "control.h"
#include "nats_letters.h"

#define ECHO_LINE "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n"

/* --- the daemon serves the pool --- */

TEST(nats_link_serves_a_client)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct letter letter;
    const char *there;

    daemon = serve_pool(&broker, "");
    there = open_link(&broker);
    daemon_wait_log(daemon, "connected: node far");
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .limit = LINK_WINDOW,
            .payload = slice_of_text(ECHO_LINE));
    letter = broker_expect_letter(&broker, LINK_DATA, HERE,
                                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
    ck_assert_uint_eq(letter.message.received, strlen(ECHO_LINE));
    ck_assert_uint_eq(letter.message.limit, strlen(ECHO_LINE) + LINK_WINDOW);
    /* Repeated, and then its end: the client has got all answers, and is closed. */
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .limit = LINK_WINDOW,
            .payload = slice_of_text(ECHO_LINE));
    DELIVER(&broker, INBOX, there, "", .kind = LINK_END, .position = strlen(ECHO_LINE),
            .received = letter.message.payload.len, .limit = 2 * LINK_WINDOW);
    letter = broker_expect_letter(&broker, LINK_END, HERE, "");
    DELIVER(&broker, INBOX, there, "", .kind = LINK_ACK, .position = strlen(ECHO_LINE),
            .received = letter.message.position + 1, .limit = 2 * LINK_WINDOW);
    daemon_wait_log(daemon, "disconnected: ");
}

/* A piece is missing: the daemon asks for it, and nothing is lost or twice. */
TEST(nats_link_asks_for_what_is_missing)
{
    struct broker broker = {.port = 0};
    struct letter letter;
    const char *there;

    serve_pool(&broker, "");
    there = open_link(&broker);
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .position = 10, .limit = LINK_WINDOW,
            .payload = slice_of_text(&ECHO_LINE[10]));
    letter = broker_expect_letter(&broker, LINK_RESUME, HERE, NULL);
    ck_assert_uint_eq(letter.message.received, 0);
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .limit = LINK_WINDOW,
            .payload = slice_of(ECHO_LINE, 20));
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .position = 10, .limit = LINK_WINDOW,
            .payload = slice_of_text(&ECHO_LINE[10]));
    letter = broker_expect_letter(&broker, LINK_DATA, HERE,
                                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
    /* The answer was lost on the way. */
    DELIVER(&broker, INBOX, there, "", .kind = LINK_RESUME, .position = strlen(ECHO_LINE),
            .limit = LINK_WINDOW, .payload = slice_of_text(OTHER " 7 far"));
    broker_expect_letter(&broker, LINK_ACK, HERE, "");
    broker_expect_letter(&broker, LINK_DATA, HERE, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":");
}

static const struct {
    struct link_message message;
    const char *log;
} ends[] = {
    {{.kind = LINK_CLOSE, .payload = {"no more", 7}}, "node far has ended the link: no more"},
    {{.kind = LINK_ACK, .received = 5}, "a message that cannot be of this link"},
    {{.kind = LINK_DATA, .position = LINK_WINDOW, .payload = {"x", 1}},
     "a message that cannot be of this link"},
};

TEST_ROWS(nats_link_ends, COUNT(ends))
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    const char *there;

    daemon = serve_pool(&broker, "");
    there = open_link(&broker);
    broker_post(&broker, INBOX, there, "", &ends[row].message);
    daemon_wait_log(daemon, ends[row].log);
    daemon_wait_log(daemon, "disconnected: ");
    if (ends[row].message.kind != LINK_CLOSE)
        broker_expect_letter(&broker, LINK_CLOSE, HERE, ends[row].log);
    /* What still comes is for no link. */
    DELIVER(&broker, INBOX, there, "", .kind = LINK_RESUME,
            .payload = slice_of_text(OTHER " 7 far"));
    broker_expect_letter(&broker, LINK_CLOSE, HERE, "the other end is gone");
}

static void decline_another(struct broker *broker)
{
    DELIVER(broker, "2", "stdio_bus.open.a", "back.8", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 8 far"));
    broker_expect_letter(broker, LINK_DECLINE, "back.8", "all workers of the pool are taken");
}

TEST(nats_link_is_declined_without_a_free_worker)
{
    struct broker broker = {.port = 0};
    const char *there;

    serve_pool(&broker, ",'clients':'exclusive','instances':1");
    there = open_link(&broker);
    decline_another(&broker); /* the worker is for the first link, which has sent nothing yet */
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .limit = LINK_WINDOW,
            .payload = slice_of_text(ECHO_LINE));
    broker_expect_letter(&broker, LINK_DATA, HERE, NULL);
    decline_another(&broker);
    /* A request that was repeated on the way makes no other link. */
    DELIVER(&broker, "2", "stdio_bus.open.a", "back.7", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 7 far"));
    broker_expect_letter(&broker, LINK_ACCEPT, "back.7", NULL);
}

/* ACCEPT was lost, and the other node has the link at a third one now: the serving node asks, and
 * the worker that was kept for it is free again. */
TEST(nats_link_that_nobody_uses_ends)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct letter letter;
    const char *there;

    daemon = serve_pool(&broker, ",'clients':'exclusive','instances':1");
    there = open_link(&broker);
    decline_another(&broker);
    letter = broker_expect_letter(&broker, LINK_RESUME, HERE, NULL);
    ck_assert_uint_eq(letter.message.mark, mark_of(there) + link_mark(OTHER, 7));
    ck_assert_uint_eq(letter.message.received, 0);
    DELIVER(&broker, INBOX, there, "", .kind = LINK_CLOSE,
            .payload = slice_of_text("the other end is gone"));
    daemon_wait_log(daemon, "disconnected: ");
    (void)open_numbered_link(&broker, 8);
}

/* The subject that answers to the question of the daemon have. */
static const char *broker_question(struct broker *broker)
{
    static const char begin[] = "PUB stdio_bus.nodes ";
    const char *text;

    do {
        text = text_of(client_line(broker->link));
    } while (strncmp(text, begin, sizeof begin - 1) != 0);
    client_line(broker->link); /* the message is empty */
    text += sizeof begin - 1;
    return test_format("%.*s", (int)strcspn(text, " "), text);
}

/* In one write: each by another node. */
static void ask_for_links(struct broker *broker, int count)
{
    struct text *all = test_text();

    for (int i = 0; i < count; i++) {
        const char *from = test_format("%016x 8 n%d", i, i);
        const struct link_message message = {.kind = LINK_OPEN, .payload = slice_of_text(from)};
        char head[LINK_HEAD_LEN];

        link_message_write(head, &message);
        text_printf(all, "MSG stdio_bus.open.a 2 back.8 %zu\r\n", sizeof head + strlen(from));
        text_add(all, head, sizeof head);
        text_printf(all, "%s\r\n", from);
    }
    client_send_bytes(broker->link, all->data, all->len);
}

#define NODE_METRIC(name) control_metric(control, "stdio_bus_nats_node_" name)

TEST(nats_links_are_counted_by_node)
{
    static const char seen[] = "{\"id\":\"" OTHER
                               "\",\"node\":\"far\",\"version\":\"9\",\"up_ms\":1}";
    struct broker broker = {.port = 0};
    struct client *control;
    struct daemon *daemon;
    const char *there, *reply;

    broker_listen(&broker);
    daemon = CONTROL_DAEMON(.config = serving_config(broker.port,
                                                     ",'clients':'exclusive','instances':1"));
    control = control_connect(daemon);
    broker_begin(&broker);
    ck_assert_double_eq(NODE_METRIC("links{node=\"far\"}"), -1);
    there = open_link(&broker);
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .limit = LINK_WINDOW,
            .payload = slice_of_text(ECHO_LINE));
    broker_expect_letter(&broker, LINK_DATA, HERE, NULL);
    ck_assert_double_gt(NODE_METRIC("unacked_bytes{node=\"far\"}"), 1);
    broker_question(&broker);
    ask_for_links(&broker, 70);
    for (int i = 0; i < 70; i++)
        broker_expect_letter(&broker, LINK_DECLINE, "back.8", NULL);
    ck_assert_double_eq(NODE_METRIC("links{node=\"far\"}"), 1);
    ck_assert_double_eq(NODE_METRIC("received_bytes_total{node=\"far\"}"), strlen(ECHO_LINE));
    ck_assert_double_eq(NODE_METRIC("declined_total{node=\"n0\"}"), 1);
    ck_assert_double_eq(NODE_METRIC("declined_total{node=\"n62\"}"), 1);
    ck_assert_double_eq(NODE_METRIC("declined_total{node=\"n63\"}"), -1);
    ck_assert_double_eq(NODE_METRIC("declined_total{node=\"(others)\"}"), 7);
    ck_assert_double_eq(NODE_METRIC("round_trip_seconds{node=\"far\"}"), 0);
    reply = broker_question(&broker);
    broker_say(&broker, test_format("MSG %s 13 %zu\r\n%s", reply, strlen(seen), seen));
    control_wait(control, "nodes", "nodes.0.links", "1");
    ck_assert_double_gt(NODE_METRIC("round_trip_seconds{node=\"far\"}"), 0);
    DELIVER(&broker, INBOX, test_format("%.*s.0", (int)(strlen(there) - 2), there), "",
            .kind = LINK_GONE, .payload = slice_of_text(OTHER));
    control_wait(control, "nodes", "nodes.0.lost", "1");
    ck_assert_double_eq(NODE_METRIC("links{node=\"far\"}"), 0);
}

/* One that another node has declined comes after later ones. */
TEST(nats_links_are_opened_in_any_order)
{
    struct broker broker = {.port = 0};

    serve_pool(&broker, "");
    open_link(&broker);
    DELIVER(&broker, "2", "stdio_bus.open.a", "back.6", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 6 far"));
    broker_expect_letter(&broker, LINK_ACCEPT, "back.6", NULL);
}

/* With an answer that the other end has not got yet. */
TEST(nats_link_survives_an_upgrade)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct letter letter;
    const char *there;

    daemon = serve_pool(&broker, "");
    there = open_link(&broker);
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .limit = LINK_WINDOW,
            .payload = slice_of_text(ECHO_LINE));
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{\"jsonrpc\":\"2.0\",\"id\":1,");
    daemon_upgrade(daemon);
    broker_begin(&broker);
    letter = broker_expect_letter(&broker, LINK_RESUME, HERE, NULL);
    ck_assert_uint_eq(letter.message.received, strlen(ECHO_LINE));
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{\"jsonrpc\":\"2.0\",\"id\":1,");
    ck_assert_uint_eq(letter.message.position, 0);
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .position = strlen(ECHO_LINE),
            .received = letter.message.payload.len, .limit = LINK_WINDOW,
            .payload = slice_of_text("{\"id\":2,\"method\":\"echo\"}\n"));
    broker_expect_letter(&broker, LINK_DATA, HERE, "{\"jsonrpc\":\"2.0\",\"id\":2,");
    DELIVER(&broker, INBOX, there, "", .kind = LINK_CLOSE, .payload = slice_of_text("stop"));
    daemon_wait_log(daemon, "disconnected: ");
}

/* --- the daemon asks --- */

TEST(nats_remote_pool_answers)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct client *client;
    struct letter letter;
    const char *line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}\n", *here;

    daemon = ask_for_pool(&broker, "");
    client = client_connect(daemon);
    client_request(client, "1", NULL, "x", NULL);
    letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    here = letter.reply;
    DELIVER(&broker, "3", here, "", .kind = LINK_ACCEPT, .payload = slice_of_text(OTHER " 7 far"));
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    DELIVER(&broker, "3", here, "", .kind = LINK_DATA, .received = letter.message.payload.len,
            .limit = 2 * LINK_WINDOW, .payload = slice_of_text(line));
    ck_assert(span_is(client_result(client, "1"), "5"));
    /* The connection ends: both ends say how far they are, and go on. */
    client_request(client, "2", NULL, "x", NULL);
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    client_abort(broker.link);
    begin_remote(&broker);
    letter = broker_expect_letter(&broker, LINK_RESUME, HERE, NULL);
    ck_assert_uint_eq(letter.message.received, strlen(line));
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    DELIVER(&broker, "3", here, "", .kind = LINK_CLOSE, .payload = slice_of_text("stop"));
    client_error(client, "2", -32000, "worker exited");
}

/* A request in flight is answered after the upgrade. A link that is not open yet is opened. */
TEST(nats_remote_pool_survives_an_upgrade)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct client *client;
    struct letter letter;
    const char *line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}\n", *here;

    daemon = ask_for_pool(&broker, "");
    daemon_upgrade(daemon);
    begin_remote(&broker);
    client = client_connect(daemon);
    client_request(client, "1", NULL, "x", NULL);
    letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    here = letter.reply;
    daemon_upgrade(daemon);
    begin_remote(&broker);
    letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    ck_assert_str_eq(letter.reply, here);
    DELIVER(&broker, "3", here, "", .kind = LINK_ACCEPT, .payload = slice_of_text(OTHER " 7 far"));
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    daemon_upgrade(daemon);
    begin_remote(&broker);
    letter = broker_expect_letter(&broker, LINK_RESUME, HERE, NULL);
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    DELIVER(&broker, "3", here, "", .kind = LINK_DATA, .received = letter.message.payload.len,
            .limit = 2 * LINK_WINDOW, .payload = slice_of_text(line));
    ck_assert(span_is(client_result(client, "1"), "5"));
    DELIVER(&broker, "3", here, "", .kind = LINK_CLOSE, .payload = slice_of_text("stop"));
    daemon_wait_log(daemon, "restarting in");
    client_request(client, "2", NULL, "x", NULL);
    letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    ck_assert_str_ne(letter.reply, here);
}

/* The node that was asked is stopped: the request is repeated, and the second answer refused. */
TEST(nats_remote_pool_asks_another_node)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct client *client;
    struct letter letter;

    daemon = ask_for_pool(&broker, "");
    client = client_connect(daemon);
    client_request(client, "1", NULL, "x", NULL);
    for (int i = 0; i < 2; i++)
        letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    DELIVER(&broker, "3", letter.reply, "", .kind = LINK_ACCEPT,
            .payload = slice_of_text(OTHER " 7 far"));
    broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    DELIVER(&broker, "3", letter.reply, "", .kind = LINK_ACCEPT,
            .payload = slice_of_text("0123456789abcdee 8 near"));
    broker_expect_letter(&broker, LINK_CLOSE, "stdio_bus.node.0123456789abcdee.8",
                         "it is not wanted any more");
}

TEST(nats_remote_pool_has_no_node)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct client *client;
    struct letter letter;

    daemon = ask_for_pool(&broker, "");
    client = client_connect(daemon);
    client_request(client, "1", NULL, "x", NULL);
    letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    broker_say(&broker, test_format("HMSG %s 3 16 16\r\nNATS/1.0 503\r\n\r\n", letter.reply));
    client_error(client, "1", -32000, "no node of NATS serves the pool a now");
    client_request(client, "2", NULL, "x", NULL); /* the next one asks again */
    for (int i = 0; i < 4; i++) {
        letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
        DELIVER(&broker, "3", letter.reply, "", .kind = LINK_DECLINE,
                .payload = slice_of_text("full"));
    }
    client_error(client, "2", -32000, "no node takes this client: full");
}

/* A link that no node accepts is no crash of its client: other clients of the user do not wait. */
TEST(nats_remote_pool_has_no_node_for_long)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct letter letter;

    daemon = ask_for_pool(&broker, ",'clients':'exclusive'");
    for (int i = 0; i < 7; i++) {
        struct client *client = client_connect(daemon);

        client_request(client, "1", NULL, "x", NULL);
        letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
        broker_say(&broker, test_format("HMSG %s 3 16 16\r\nNATS/1.0 503\r\n\r\n", letter.reply));
        client_error(client, "1", -32000, "no node of NATS serves the pool a now");
        client_close(client);
    }
}

static const struct {
    const char *pool, *problem;
} wrong[] = {
    {"'remote':true", "pools[0].remote: needs \"nats\""},
    {"'remote':true,'command':'x'", "pools[0].command: a pool with \"remote\" has no such key"},
    {"'remote':true,'export':true", "pools[0].export: a pool with \"remote\" has no such key"},
    {"'remote':false", "pools[0].command: is required"},
    {"'remote':1", "pools[0].remote: must be"},
    {"'remote':true,'overflow':true", "pools[0].overflow: a pool with \"remote\" has no such key"},
    {"'command':'x','clients':'exclusive','overflow':true", "pools[0].overflow: needs \"nats\""},
    {"'command':'x','overflow':true", "pools[0].overflow: needs \"clients\": \"exclusive\""},
    {"'command':'x','clients':5,'overflow':true", "pools[0].clients: must be"},
};

TEST_ROWS(nats_remote_pool_is_wrong, COUNT(wrong))
{
    const struct setup setup = {
        .mode = SETUP_STDIO, .config = test_format("{'pools':[{'id':'a',%s}]}", wrong[row].pool)};

    expect_word(daemon_run(&setup, 78, NULL), wrong[row].problem);
}

/* --- the daemon asks when its own workers are taken --- */

#define OVERFLOWING(instances, members)                                                            \
    test_format("{'pools':[{'id':'a','command':'@WORKER@','args':['--name','a'],"                  \
                "'clients':'exclusive','instances':%d,'overflow':true%s}],"                        \
                "'nats':{'servers':['127.0.0.1:%u'],'node':'n1'}}",                                \
                instances, members, broker->port)

struct overflow {
    struct broker broker;
    struct daemon *daemon;
    struct client *first, *second;
    struct letter opening;
};

/* The worker is that of the first client, and the second one has asked. */
static void begin_overflow(struct overflow *overflow, const char *members)
{
    struct broker *broker = &overflow->broker;

    broker_listen(broker);
    overflow->daemon = START(.config = OVERFLOWING(1, members),
                             .arguments = {"--log-level", "debug"});
    begin_remote(broker);
    overflow->first = client_connect(overflow->daemon);
    client_ask(overflow->first, "1", NULL, "echo", NULL);
    overflow->second = client_connect(overflow->daemon);
    client_request(overflow->second, "1", NULL, "echo", NULL);
    overflow->opening = broker_expect_letter(broker, LINK_OPEN, "stdio_bus.open.a", NULL);
}

/* The node of the link takes the message of the second client, and answers. */
static void answer_overflow(struct overflow *overflow, const char *id, uint64_t sent)
{
    struct broker *broker = &overflow->broker;
    const char *line = test_format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":5}\n", id);
    struct letter letter = broker_expect_letter(broker, LINK_DATA, HERE, "{");

    DELIVER(broker, "3", overflow->opening.reply, "", .kind = LINK_DATA, .position = sent,
            .received = letter.message.position + letter.message.payload.len,
            .limit = 2 * LINK_WINDOW, .payload = slice_of_text(line));
    ck_assert(span_is(client_result(overflow->second, id), "5"));
}

static void accept_overflow(struct overflow *overflow)
{
    DELIVER(&overflow->broker, "3", overflow->opening.reply, "", .kind = LINK_ACCEPT,
            .payload = slice_of_text(OTHER " 7 far"));
}

TEST(nats_overflow_answers)
{
    struct overflow overflow = {.first = NULL};
    struct letter letter;
    struct client *third;

    begin_overflow(&overflow, ",'busy_timeout_sec':1");
    accept_overflow(&overflow);
    answer_overflow(&overflow, "1", 0);
    client_request(overflow.second, "2", NULL, "echo", NULL);
    client_ask(overflow.first, "2", NULL, "echo", NULL);
    answer_overflow(&overflow, "2", 36);
    /* There are as many links as instances. The link is of its client alone, and goes with it. */
    third = client_connect(overflow.daemon);
    client_request(third, "1", NULL, "echo", NULL);
    client_error(third, "1", -32000, "every worker serves another client");
    client_close(overflow.second);
    do
        letter = broker_letter(&overflow.broker);
    while (letter.message.kind == LINK_ACK);
    ck_assert_int_eq((int)letter.message.kind, LINK_END);
    /* The first free worker is preferred. */
    client_close(overflow.first);
    client_ask(third, "2", NULL, "echo", NULL);
}

/* The processes are those of one address, and a client of another one waits: nobody is closed for
 * it before it is known that no node takes it, in row 1. */
TEST_ROWS(nats_overflow_comes_before_preemption, 2)
{
    struct overflow overflow = {.first = NULL};
    struct broker *broker = &overflow.broker;
    struct client *other;

    broker_listen(broker);
    overflow.daemon = START(.config = OVERFLOWING(2, ""), .mode = SETUP_TCP);
    begin_remote(broker);
    overflow.first = client_connect(overflow.daemon);
    client_ask(overflow.first, "1", NULL, "echo", NULL);
    other = client_connect(overflow.daemon);
    client_ask(other, "1", NULL, "echo", NULL);
    overflow.second = client_try_connect_from(overflow.daemon, "127.0.0.2");
    if (overflow.second == NULL) /* the machine has no second address */
        return;
    client_request(overflow.second, "1", NULL, "echo", NULL);
    overflow.opening = broker_expect_letter(broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    if (row == 0) {
        accept_overflow(&overflow);
        answer_overflow(&overflow, "1", 0);
        client_ask(other, "2", NULL, "echo", NULL);
    } else {
        broker_say_none(broker, ASKING_INBOX, overflow.opening.reply);
        client_result(overflow.second, "1");
        client_error(other, "null", -32000, "another user or address is due its share");
    }
    client_ask(overflow.first, "2", NULL, "echo", NULL);
}

/* Without a node the client waits, as without the key; nodes are asked again each second. */
TEST(nats_overflow_has_no_node)
{
    struct overflow overflow = {.first = NULL};
    struct letter letter;

    begin_overflow(&overflow, ",'busy_timeout_sec':30");
    broker_say(&overflow.broker,
               test_format("HMSG %s 3 16 16\r\nNATS/1.0 503\r\n\r\n", overflow.opening.reply));
    for (int i = 0; i < 4; i++) {
        letter = broker_expect_letter(&overflow.broker, LINK_OPEN, "stdio_bus.open.a", NULL);
        ck_assert_str_ne(letter.reply, overflow.opening.reply);
        DELIVER(&overflow.broker, "3", letter.reply, "", .kind = LINK_DECLINE,
                .payload = slice_of_text("full"));
    }
    client_close(overflow.first);
    client_result(overflow.second, "1");
}

TEST(nats_overflow_is_refused_without_a_node)
{
    struct overflow overflow = {.first = NULL};

    begin_overflow(&overflow, ",'busy_timeout_sec':1");
    broker_say(&overflow.broker,
               test_format("HMSG %s 3 16 16\r\nNATS/1.0 503\r\n\r\n", overflow.opening.reply));
    client_error(overflow.second, "1", -32000, "every worker serves another client");
}

/* While its link is opened, and when it is open. */
TEST(nats_overflow_survives_an_upgrade)
{
    struct overflow overflow = {.first = NULL};
    struct letter letter;

    begin_overflow(&overflow, ",'busy_timeout_sec':30");
    daemon_upgrade(overflow.daemon);
    begin_remote(&overflow.broker);
    letter = broker_expect_letter(&overflow.broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    ck_assert_str_eq(letter.reply, overflow.opening.reply);
    accept_overflow(&overflow);
    answer_overflow(&overflow, "1", 0);
    daemon_upgrade(overflow.daemon);
    begin_remote(&overflow.broker);
    broker_expect_letter(&overflow.broker, LINK_RESUME, HERE, NULL);
    client_request(overflow.second, "2", NULL, "echo", NULL);
    answer_overflow(&overflow, "2", 36);
}

/* Its client is without a worker then, and the next message opens another link. */
TEST(nats_overflow_ends_with_the_node)
{
    struct overflow overflow = {.first = NULL};

    begin_overflow(&overflow, "");
    accept_overflow(&overflow);
    broker_expect_letter(&overflow.broker, LINK_DATA, HERE, "{");
    DELIVER(&overflow.broker, "3", overflow.opening.reply, "", .kind = LINK_CLOSE,
            .payload = slice_of_text("stop"));
    client_error(overflow.second, "1", -32000, "worker exited");
    client_request(overflow.second, "2", NULL, "echo", NULL);
    overflow.opening = broker_expect_letter(&overflow.broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    accept_overflow(&overflow);
    answer_overflow(&overflow, "2", 0);
}

/* A client of another node is declined, and does not get a worker of a third one. */
TEST(nats_overflow_is_not_for_links)
{
    struct broker other = {.port = 0}, *broker = &other;
    struct daemon *daemon;
    struct client *client;
    const char *there;

    broker_listen(broker);
    daemon = START(.config = OVERFLOWING(1, ",'export':true,'busy_timeout_sec':1"));
    broker_begin(broker);
    there = open_link(broker);
    DELIVER(broker, INBOX, there, "", .kind = LINK_DATA, .limit = LINK_WINDOW,
            .payload = slice_of_text(ECHO_LINE));
    broker_expect_letter(broker, LINK_DATA, HERE, NULL);
    client = client_connect(daemon);
    client_request(client, "1", NULL, "echo", NULL);
    broker_expect_letter(broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    DELIVER(broker, "2", "stdio_bus.open.a", "back.8", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 8 far"));
    broker_expect_letter(broker, LINK_DECLINE, "back.8", "all workers of the pool are taken");
}
