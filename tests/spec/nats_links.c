/* Links over NATS (federation.md): the daemon beside a scripted server, which is the other node. */
#include "build_config.h"

#include "control.h"
#include "nats_letters.h"

#define INBOX "14" /* the sid of the daemon's inbox */
#define ECHO_LINE "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n"

/* --- the daemon serves the pool --- */

/* The other node opens its link 7 to pool a. Returns the subject of the daemon's end. */
static const char *open_link(struct broker *broker)
{
    struct letter letter;

    DELIVER(broker, "2", "stdio_bus.open.a", "back.7", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 7 far"));
    letter = broker_expect_letter(broker, LINK_ACCEPT, "back.7", NULL);
    ck_assert_uint_gt(letter.message.payload.len, 17);
    return test_format("stdio_bus.node.%.16s.1", letter.message.payload.data);
}

#define CONFIG(members)                                                                            \
    test_format("{'pools':[{'id':'a','command':'@WORKER@','args':['--name','a'],'export':true"     \
                "%s}],'nats':{'servers':['127.0.0.1:%u'],'node':'n1'}}",                           \
                members, broker.port)

TEST(nats_link_serves_a_client)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct letter letter;
    const char *there;

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""));
    broker_begin(&broker);
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

    broker_listen(&broker);
    START(.config = CONFIG(""));
    broker_begin(&broker);
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

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""), .arguments = {"--log-level", "debug"});
    broker_begin(&broker);
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

TEST(nats_link_is_declined_without_a_free_worker)
{
    struct broker broker = {.port = 0};
    const char *there;

    broker_listen(&broker);
    START(.config = CONFIG(",'clients':'exclusive','instances':1"));
    broker_begin(&broker);
    there = open_link(&broker);
    DELIVER(&broker, INBOX, there, "", .kind = LINK_DATA, .limit = LINK_WINDOW,
            .payload = slice_of_text(ECHO_LINE));
    broker_expect_letter(&broker, LINK_DATA, HERE, NULL);
    DELIVER(&broker, "2", "stdio_bus.open.a", "back.8", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 8 far"));
    broker_expect_letter(&broker, LINK_DECLINE, "back.8", "all workers of the pool are taken");
    /* A request that was repeated on the way makes no other link. */
    DELIVER(&broker, "2", "stdio_bus.open.a", "back.7", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 7 far"));
    broker_expect_letter(&broker, LINK_ACCEPT, "back.7", NULL);
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
    daemon = CONTROL_DAEMON(.config = CONFIG(",'clients':'exclusive','instances':1"));
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

    broker_listen(&broker);
    START(.config = CONFIG(""));
    broker_begin(&broker);
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

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""));
    broker_begin(&broker);
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

/* Signs of life come each second where there is a link. A node that gives none is gone. */
TEST(nats_node_is_silent)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""));
    broker_begin(&broker);
    open_link(&broker);
    broker_expect(&broker, "PUB stdio_bus.node." OTHER ".0 49");
    client_line(broker.link);
    broker_expect(&broker, "PUB stdio_bus.node." OTHER ".0 49");
    daemon_wait_log(daemon, "node far is gone: 1 link lost");
    daemon_wait_log(daemon, "disconnected: ");
}

/* --- the daemon asks --- */

#define REMOTE(members)                                                                            \
    test_format("{'pools':[{'id':'a','remote':true%s}],"                                           \
                "'nats':{'servers':['127.0.0.1:%u'],'node':'n1'}}",                                \
                members, broker.port)

static void begin_remote(struct broker *broker)
{
    broker_admit(broker);
    broker_expect_nodes(broker);
}

TEST(nats_remote_pool_answers)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct client *client;
    struct letter letter;
    const char *line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}\n", *here;

    broker_listen(&broker);
    daemon = START(.config = REMOTE(""));
    begin_remote(&broker);
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

    broker_listen(&broker);
    daemon = START(.config = REMOTE(""));
    begin_remote(&broker);
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

    broker_listen(&broker);
    daemon = START(.config = REMOTE(""));
    begin_remote(&broker);
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

    broker_listen(&broker);
    daemon = START(.config = REMOTE(""));
    begin_remote(&broker);
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

#define OVERFLOW(members)                                                                          \
    test_format("{'pools':[{'id':'a','command':'@WORKER@','args':['--name','a'],"                  \
                "'clients':'exclusive','instances':1,'overflow':true%s}],"                         \
                "'nats':{'servers':['127.0.0.1:%u'],'node':'n1'}}",                                \
                members, broker->port)

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
    overflow->daemon = START(.config = OVERFLOW(members), .arguments = {"--log-level", "debug"});
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
    daemon = START(.config = OVERFLOW(",'export':true,'busy_timeout_sec':1"));
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

/* --- where sessions are --- */

#define LOW "0000000000000001" /* nodes, to which the daemon's id is compared */
#define HIGH "fffffffffffffffe"
#define SESSION "stdio_bus.session.a."

/* The daemon's question for session s, which no node has answered yet. */
static struct letter expect_question(struct broker *broker)
{
    struct letter letter = broker_expect_letter(broker, LINK_ASK, NULL, NULL);

    ck_assert_str_eq(test_format("%.20s", letter.subject), SESSION);
    ck_assert_uint_eq(strlen(letter.subject), strlen(SESSION) + 16);
    ck_assert(memcmp(&letter.message.payload.data[letter.message.payload.len - 2], "\ns", 2) == 0);
    return letter;
}

static void broker_say_none(struct broker *broker, const char *sid, const char *subject)
{
    broker_say(broker, test_format("HMSG %s %s 16 16\r\nNATS/1.0 503\r\n\r\n", subject, sid));
}

struct asking {
    struct broker broker;
    struct daemon *daemon;
    struct client *client;
    struct letter question;
};

#define ASKED_AGAIN "a reload forgets what was asked, and asks again"

/* A client of the node that exports the pool names session s. */
static void begin_asking(struct asking *asking, const char *method)
{
    struct broker *broker = &asking->broker;

    steps_without_reloads(ASKED_AGAIN);
    broker_listen(broker);
    asking->daemon =
        START(.config = test_format("{'pools':[{'id':'a','command':'@WORKER@','args':['--name',"
                                    "'a'],'export':true}],'nats':{'servers':['127.0.0.1:%u'],"
                                    "'node':'n1'}}",
                                    broker->port),
              .arguments = {"--log-level", "debug"});
    broker_begin(broker);
    asking->client = client_connect(asking->daemon);
    client_request(asking->client, "1", "s", method, NULL);
    broker_expect(broker, "SUB " SESSION);
    asking->question = expect_question(broker);
    ck_assert_uint_eq(asking->question.message.position, 1);
}

/* No node has it: it begins here, and is claimed. */
static void begin_session(struct asking *asking, const char *method)
{
    begin_asking(asking, method);
    broker_say_none(&asking->broker, INBOX, asking->question.reply);
    broker_expect_letter(&asking->broker, LINK_CLAIM, asking->question.subject, NULL);
}

#define OF(asking, node, kind_, ...)                                                               \
    DELIVER(&(asking).broker, "15", (asking).question.subject, "back", .kind = (kind_),            \
            .payload = slice_of_text(node " 0 far\ns"), __VA_ARGS__)

TEST(nats_session_begins_and_ends)
{
    struct asking asking = {.client = NULL};

    begin_session(&asking, "echo");
    client_result(asking.client, "1");
    OF(asking, OTHER, LINK_ASK, .position = 1);
    broker_expect_letter(&asking.broker, LINK_HAS, "back", NULL);
    DELIVER(&asking.broker, "15", asking.question.subject, "back", .kind = LINK_ASK,
            .payload = slice_of_text(OTHER " 0 far\nof the same hash"));
    broker_expect_letter(&asking.broker, LINK_DECLINE, "back", NULL);
    client_ask(asking.client, "2", "s", "echo", NULL); /* nothing is asked again */
    daemon_upgrade(asking.daemon);
    broker_begin(&asking.broker);
    broker_expect(&asking.broker, "SUB " SESSION);
    broker_expect_letter(&asking.broker, LINK_CLAIM, asking.question.subject, NULL);
    client_close(asking.client);
    broker_expect(&asking.broker, "UNSUB 15");
}

/* The link stays, and so does the session of another node's client, until that node forgets it. */
TEST(nats_session_ends_with_a_client_of_another_node)
{
    const char *line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"sessionId\":\"s\"}\n";
    struct asking asking = {.client = NULL};
    struct broker *broker = &asking.broker;
    const char *there;

    steps_without_reloads(ASKED_AGAIN);
    broker_listen(broker);
    START(.config = test_format("{'pools':[{'id':'a','command':'@WORKER@','args':['--name','a'],"
                                "'export':true}],'nats':{'servers':['127.0.0.1:%u'],'node':'n1'}}",
                                broker->port));
    broker_begin(broker);
    there = open_link(broker);
    DELIVER(broker, INBOX, there, "", .kind = LINK_DATA, .limit = LINK_WINDOW,
            .payload = slice_of_text(line));
    broker_expect(broker, "SUB " SESSION);
    asking.question = expect_question(broker);
    broker_say_none(broker, INBOX, asking.question.reply);
    broker_expect_letter(broker, LINK_CLAIM, asking.question.subject, NULL);
    broker_expect_letter(broker, LINK_DATA, HERE, "{\"jsonrpc\":\"2.0\",\"id\":1,");
    DELIVER(broker, "15", asking.question.subject, "", .kind = LINK_FORGET,
            .payload = slice_of_text(LOW " 0 low\ns")); /* another node's */
    OF(asking, OTHER, LINK_ASK, .position = 1);
    broker_expect_letter(broker, LINK_HAS, "back", NULL);
    OF(asking, OTHER, LINK_FORGET, .position = 0);
    broker_expect(broker, "UNSUB 15");
}

/* The daemon has the client, and another node the session. */
TEST(nats_session_of_a_client_that_leaves_is_forgotten)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct client *client;
    struct letter question, letter;

    steps_without_reloads(ASKED_AGAIN);
    broker_listen(&broker);
    daemon = START(.config = REMOTE(""));
    begin_remote(&broker);
    client = client_connect(daemon);
    client_request(client, "1", "s", "x", NULL);
    question = expect_question(&broker);
    broker_say_none(&broker, "3", question.reply);
    letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    DELIVER(&broker, "3", letter.reply, "", .kind = LINK_ACCEPT,
            .payload = slice_of_text(OTHER " 7 far"));
    broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    client_close(client);
    letter = broker_expect_letter(&broker, LINK_FORGET, question.subject, NULL);
    ck_assert(memcmp(&letter.message.payload.data[letter.message.payload.len - 2], "\ns", 2) == 0);
}

/* Another node has it: a passage leads there. */
static void lead_there(struct asking *asking)
{
    const char *line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}\n", *here;
    struct letter letter = broker_expect_letter(&asking->broker, LINK_OPEN,
                                                "stdio_bus.node." LOW ".0", NULL);
    struct slice text = letter.message.payload;

    ck_assert(memcmp(&text.data[text.len - 5], "n1\na", 4) == 0 ||
              memcmp(&text.data[text.len - 4], "n1\na", 4) == 0);
    here = letter.reply;
    DELIVER(&asking->broker, INBOX, here, "", .kind = LINK_ACCEPT,
            .payload = slice_of_text(LOW " 7 low"));
    letter = broker_expect_letter(&asking->broker, LINK_DATA, "stdio_bus.node." LOW ".7", "{");
    daemon_upgrade(asking->daemon);
    broker_begin(&asking->broker);
    broker_expect_letter(&asking->broker, LINK_RESUME, NULL, NULL);
    letter = broker_expect_letter(&asking->broker, LINK_DATA, "stdio_bus.node." LOW ".7", "{");
    DELIVER(&asking->broker, INBOX, here, "", .kind = LINK_DATA,
            .mark = mark_of(here) + link_mark(LOW, 7), .received = letter.message.payload.len,
            .limit = 2 * LINK_WINDOW, .payload = slice_of_text(line));
    ck_assert(span_is(client_result(asking->client, "1"), "5"));
    client_close(asking->client);
    daemon_wait_log(asking->daemon, "no client needs it: ending it");
}

TEST(nats_session_is_elsewhere)
{
    struct asking asking = {.client = NULL};

    begin_asking(&asking, "echo");
    DELIVER(&asking.broker, INBOX, asking.question.reply, "", .kind = LINK_HAS,
            .payload = slice_of_text(LOW " 0 low"));
    broker_expect(&asking.broker, "UNSUB 15");
    lead_there(&asking);
}

/* Both ask at the same time: the lower id has it. */
TEST(nats_session_is_asked_for_by_two)
{
    struct asking asking = {.client = NULL};

    begin_asking(&asking, "echo");
    OF(asking, HIGH, LINK_ASK, .position = 1);
    broker_expect_letter(&asking.broker, LINK_HAS, "back", NULL);
    OF(asking, LOW, LINK_ASK, .position = 0); /* it cannot begin there */
    broker_expect_letter(&asking.broker, LINK_HAS, "back", NULL);
    DELIVER(&asking.broker, INBOX, asking.question.reply, "", .kind = LINK_DECLINE);
    asking.question = expect_question(&asking.broker); /* that one has given way; others may not */
    OF(asking, LOW, LINK_ASK, .position = 1);
    broker_expect(&asking.broker, "UNSUB 15");
    broker_expect_letter(&asking.broker, LINK_DECLINE, "back", NULL);
    lead_there(&asking);
}

/* Both have begun it, since the servers of a cluster learn late of a subscription. */
static const struct {
    const char *node;
    uint64_t age_ms;
    bool stays;
} claims[] = {{LOW, 0, false}, {HIGH, 0, true}, {HIGH, 60000, false}};

TEST_ROWS(nats_session_has_begun_twice, COUNT(claims))
{
    struct asking asking = {.client = NULL};

    begin_session(&asking, "no_answer");
    DELIVER(&asking.broker, "15", asking.question.subject, "", .kind = LINK_CLAIM,
            .position = claims[row].age_ms,
            .payload = slice_of_text(test_format("%s 0 far\ns", claims[row].node)));
    if (claims[row].stays) {
        broker_expect_letter(&asking.broker, LINK_YIELD, "stdio_bus.node." HIGH ".0", "a\ns");
        DELIVER(&asking.broker, INBOX, test_format("stdio_bus.node.%s.0", "x"), "",
                .kind = LINK_YIELD, .payload = slice_of_text("a\nanother"));
        DELIVER(&asking.broker, INBOX, test_format("stdio_bus.node.%s.0", "x"), "",
                .kind = LINK_YIELD, .payload = slice_of_text("a\ns"));
    }
    client_error(asking.client, "1", -32000, "has begun on another node at the same time");
    broker_expect(&asking.broker, "UNSUB 15");
}

/* The node that has it is stopped. */
TEST(nats_session_has_a_silent_node)
{
    struct asking asking = {.client = NULL};

    begin_asking(&asking, "echo");
    for (int i = 0; i < 2; i++)
        expect_question(&asking.broker);
    client_error(asking.client, "1", -32000, "does not answer: try again");
    broker_expect(&asking.broker, "UNSUB 15");
    client_request(asking.client, "2", "s", "echo", NULL);
    client_abort(asking.broker.link); /* without NATS it begins here */
    client_error(asking.client, "2", -32000, "does not answer: try again");
}

TEST(nats_session_begins_without_nats)
{
    struct asking asking = {.client = NULL};

    begin_asking(&asking, "echo");
    client_abort(asking.broker.link);
    client_result(asking.client, "1");
    broker_begin(&asking.broker);
    broker_expect(&asking.broker, "SUB " SESSION);
    broker_expect_letter(&asking.broker, LINK_CLAIM, asking.question.subject, NULL);
}

/* A node without processes asks, but no session begins there. */
TEST(nats_remote_pool_asks_for_a_session)
{
    struct broker broker = {.port = 0};
    struct client *client;
    struct letter letter;

    steps_without_reloads(ASKED_AGAIN);
    broker_listen(&broker);
    client = client_connect(START(.config = REMOTE("")));
    begin_remote(&broker);
    client_request(client, "1", "s", "x", NULL);
    letter = expect_question(&broker);
    ck_assert_uint_eq(letter.message.position, 0);
    broker_say_none(&broker, "3", letter.reply);
    broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
}

/* Servers of a cluster learn late of a subscription: it is asked for again after that. */
TEST(nats_session_begins_in_a_cluster)
{
    struct asking asking = {.client = NULL};
    struct letter again;

    begin_asking(&asking, "echo");
    broker_say(&asking.broker, "INFO {\"headers\":true,\"max_payload\":100000,\"cluster\":\"c\"}");
    broker_say_none(&asking.broker, INBOX, asking.question.reply);
    again = expect_question(&asking.broker);
    ck_assert_str_eq(again.reply, asking.question.reply);
    broker_say_none(&asking.broker, INBOX, again.reply);
    broker_expect_letter(&asking.broker, LINK_CLAIM, asking.question.subject, NULL);
    client_result(asking.client, "1");
}

/* Another node opens a passage to this one. */
TEST(nats_passage_is_opened)
{
    struct broker broker = {.port = 0};

    broker_listen(&broker);
    START(.config = CONFIG(""));
    broker_begin(&broker);
    DELIVER(&broker, INBOX, "stdio_bus.node.x.0", "back.7", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 7 far\na"));
    broker_expect_letter(&broker, LINK_ACCEPT, "back.7", NULL);
    DELIVER(&broker, INBOX, "stdio_bus.node.x.0", "back.8", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 8 far\nb"));
    broker_expect_letter(&broker, LINK_DECLINE, "back.8", "the pool is not exported");
}
