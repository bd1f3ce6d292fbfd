/* A server of NATS at fault (federation.md, "What is promised"): an error or a repair, never a
 * wrong answer, and other clients are not disturbed. */
#include "build_config.h"

#include "nats_letters.h"

#define ANSWER "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}\n"
#define WRONG "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":6}\n"

/* A client has a request in flight, at the other node. */
struct scene {
    struct broker broker;
    struct daemon *daemon;
    struct client *client;
    struct letter letter; /* the request */
    const char *here;     /* the subject of the daemon's end of the link */
};

static void start(struct scene *scene)
{
    *scene = (struct scene){.broker = {.port = 0}};
    broker_listen(&scene->broker);
    scene->daemon = START(.config = test_format("{'pools':[{'id':'a','remote':true},"
                                                "{'id':'b','command':'@WORKER@'}],"
                                                "'nats':{'servers':['127.0.0.1:%u'],'node':'n1'}}",
                                                scene->broker.port));
    begin_remote(&scene->broker);
    scene->client = client_connect(scene->daemon);
}

static void ask(struct scene *scene, const char *id)
{
    client_send(scene->client, "{'jsonrpc':'2.0','id':%s,'method':'x','pool':'a'}", id);
}

static void begin_link(struct scene *scene)
{
    struct broker *broker = &scene->broker;

    ask(scene, "1");
    scene->here = broker_expect_letter(broker, LINK_OPEN, "stdio_bus.open.a", NULL).reply;
    DELIVER(broker, ASKING_INBOX, scene->here, "", .kind = LINK_ACCEPT,
            .payload = slice_of_text(OTHER " 7 far"));
    scene->letter = broker_expect_letter(broker, LINK_DATA, HERE, "{");
}

static void answer(struct scene *scene)
{
    DELIVER(&scene->broker, ASKING_INBOX, scene->here, "", .kind = LINK_DATA,
            .received = scene->letter.message.payload.len, .limit = 2 * LINK_WINDOW,
            .payload = slice_of_text(ANSWER));
    ck_assert(span_is(client_result(scene->client, "1"), "5"));
}

/* A client of the daemon's own pool. */
static void expect_others_served(const struct scene *scene)
{
    struct client *other = client_connect(scene->daemon);

    client_send(other, "{'jsonrpc':'2.0','id':1,'method':'echo','pool':'b'}");
    client_result(other, "1");
}

/* --- the connection --- */

static const struct {
    const char *bytes, *log;
    int cuts; /* the server closes the connection */
} breaks[] = {
    {"MSG x 3 3\r\nabcdef\r\n", "no line end after a payload", 0},
    {"MSG x 3 0\r\nabcdef\r\n", "no line end after a payload", 0},
    {"MSG x 3 -5\r\nabc\r\n", "a message that cannot be read", 0},
    {"MSG x 3 999999999\r\n", "a payload is too long", 0},
    {"MSG x 3 99999999999999999999\r\n", "a message that cannot be read", 0},
    {"MSG x 99999999999999999999 3\r\nabc\r\n", "a message that cannot be read", 0},
    {"MSG x 3 0x10\r\n", "a message that cannot be read", 0},
    {"MSG x\r\n", "a message that cannot be read", 0},
    {"HMSG x 3 20 10\r\nabcdefghij\r\n", "a message that cannot be read", 0},
    {"HMSG x 3 10\r\nabcdefghij\r\n", "a message that cannot be read", 0},
    {"HMSG x 3 r -1 10\r\nabcdefghij\r\n", "a message that cannot be read", 0},
    {"MSG x 3 100\r\nhalf", "the input ends in the middle of a frame", 1},
    {"MS", "the input ends in the middle of a frame", 1},
    {"", "the server has closed the connection", 1},
    {"XYZ\r\n", "not a line of a NATS server", 0},
    {"\r\n", "not a line of a NATS server", 0},
    {"-ERR 'Slow Consumer'\r\n", "\"Slow Consumer\"", 0},
    {"-ERR 'Stale Connection'\r\n", "\"Stale Connection\"", 0},
    {"-ERR 'Maximum Payload Violation'\r\n", "\"Maximum Payload Violation\"", 0},
    {"-ERR 'Maximum Connections Exceeded'\r\n", "\"Maximum Connections Exceeded\"", 0},
    {"-ERR 'User Authentication Revoked'\r\n", "\"User Authentication Revoked\"", 0},
    {"-ERR \x1b[2J\r\n", "x1b.2J", 0},
    {"-ERR\r\n", "\"\"", 0},
    {"INFO []\r\n", "an INFO that is no JSON", 0},
    {"INFO {\"headers\":0}\r\n", "the server has no headers", 0},
    {"INFO {\"headers\":true,\"tls_required\":true}\r\n", "the server demands TLS", 0},
};

/* The next connection goes on where this one has ended. */
TEST_ROWS(nats_fault_ends_the_connection, COUNT(breaks))
{
    struct scene scene;
    struct letter letter;

    start(&scene);
    begin_link(&scene);
    client_send_bytes(scene.broker.link, breaks[row].bytes, strlen(breaks[row].bytes));
    expect_others_served(&scene);
    if (breaks[row].cuts)
        client_close(scene.broker.link);
    else
        client_expect_eof(scene.broker.link);
    daemon_wait_log(scene.daemon, breaks[row].log);
    begin_remote(&scene.broker);
    letter = broker_expect_letter(&scene.broker, LINK_RESUME, HERE, NULL);
    ck_assert_uint_eq(letter.message.received, 0);
    letter = broker_expect_letter(&scene.broker, LINK_DATA, HERE, "{");
    ck_assert_uint_eq(letter.message.position, 0);
    ck_assert_uint_eq(letter.message.payload.len, scene.letter.message.payload.len);
    answer(&scene);
}

TEST(nats_fault_is_a_line_without_end)
{
    struct text *line = test_text();
    struct scene scene;

    start(&scene);
    begin_link(&scene);
    text_fill(line, 'x', 40000);
    client_offer(scene.broker.link, line->data, line->len);
    daemon_wait_log(scene.daemon, "a control line is too long");
    begin_remote(&scene.broker);
    broker_expect_letter(&scene.broker, LINK_RESUME, HERE, NULL);
    broker_expect_letter(&scene.broker, LINK_DATA, HERE, "{");
    answer(&scene);
}

/* The first attempt ends after five seconds; what comes after that is not heard. */
TEST(nats_fault_is_a_late_pong)
{
    struct scene scene = {.broker = {.port = 0}};
    struct broker *broker = &scene.broker;

    if (getenv("STDIO_BUS_WRAPPER") != NULL)
        return; /* with valgrind the next connection takes longer than a request waits for one */
    broker_listen(broker);
    scene.daemon = START(.config = test_format("{'pools':[{'id':'a','remote':true}],"
                                               "'nats':{'servers':['127.0.0.1:%u']}}",
                                               broker->port));
    broker_accept(broker);
    broker_greet(broker, "");
    broker_expect(broker, "CONNECT {");
    broker_expect(broker, "PING");
    scene.client = client_connect(scene.daemon);
    ask(&scene, "1");
    daemon_wait_log(scene.daemon, "no answer");
    client_expect_eof(broker->link);
    begin_remote(broker);
    client_error(scene.client, "1", -32000, "there is no connection to NATS");
    begin_link(&scene);
    answer(&scene);
}

/* Bytes that change nothing. */
static const char *const nonsense[] = {
    "+OK\r\n",
    "PONG\r\nPONG\r\n",
    "-ERR 'Permissions Violation for Publish to \"x\"'\r\n",
    "MSG x 99 3\r\nabc\r\n",
    "MSG x 3 0\r\n\r\n",
    "MSG stdio_bus.nodes 1 3\r\nabc\r\n",
    "MSG x 3 r 40\r\nD234567890123456789012345678901234567890\r\n",
    "HMSG x 3 0 3\r\nabc\r\n",
    "HMSG x 3 12 12\r\nNATS/1.0 503\r\n",
    "INFO {\"headers\":true,\"max_payload\":-1,\"connect_urls\":7}\r\n",
    "INFO "
    "{\"headers\":true,\"max_payload\":1e300,\"connect_urls\":[1,\"\",\"x\",\":\",\"a:99999\"]}"
    "\r\n",
    "INFO {\"headers\":true,\"max_payload\":\"many\",\"server_id\":[],\"ldm\":true}\r\n",
};

TEST_ROWS(nats_fault_changes_nothing, COUNT(nonsense))
{
    struct scene scene;

    start(&scene);
    begin_link(&scene);
    client_send_bytes(scene.broker.link, nonsense[row], strlen(nonsense[row]));
    answer(&scene);
}

/* --- messages of links --- */

static const struct {
    struct link_message message;
    const char *subject; /* NULL: the one of the link */
} strays[] = {
    {{.kind = LINK_DATA, .mark = 1, .limit = LINK_WINDOW, .payload = {WRONG, sizeof WRONG - 1}},
     NULL}, /* of another link */
    {{.kind = LINK_END, .mark = 1}, NULL},
    {{.kind = LINK_ACK, .mark = 1, .received = UINT64_MAX}, NULL},
    {{.kind = LINK_RESUME, .mark = 1, .payload = {OTHER " 8 far", 22}}, NULL},
    {{.kind = LINK_DATA, .payload = {WRONG, sizeof WRONG - 1}}, "stdio_bus.node." OTHER ".99"},
    {{.kind = LINK_CLOSE, .payload = {"x", 1}}, "stdio_bus.node." OTHER ".99"},
    {{.kind = LINK_CLOSE, .mark = 3, .payload = {"x", 1}}, NULL}, /* of another length */
    {{.kind = LINK_DECLINE, .payload = {"x", 1}}, NULL},
    {{.kind = LINK_ACCEPT, .payload = {OTHER " 7 far", 22}}, NULL}, /* once more */
    {{.kind = LINK_ACCEPT, .payload = {"nonsense", 8}}, NULL},
    {{.kind = LINK_OPEN, .payload = {OTHER " 8 far", 22}}, NULL},
    {{.kind = LINK_GONE, .payload = {"0123456789abcdee", 16}}, NULL},
    {{.kind = LINK_LIFE, .payload = {"nobody", 6}}, NULL},
};

TEST_ROWS(nats_link_leaves_out_what_is_not_its_own, COUNT(strays))
{
    const char *subject = strays[row].subject;
    struct scene scene;

    start(&scene);
    begin_link(&scene);
    broker_post(&scene.broker, ASKING_INBOX, subject != NULL ? subject : scene.here, "",
                &strays[row].message);
    answer(&scene);
}

/* The length of a message is that of two. */
TEST(nats_link_leaves_out_another_length)
{
    struct scene scene;
    struct broker *broker = &scene.broker;
    struct link_message message = {.kind = LINK_DATA, .limit = LINK_WINDOW};
    char head[LINK_HEAD_LEN];

    start(&scene);
    begin_link(&scene);
    message.mark = mark_of(scene.here) + link_mark(OTHER, 7);
    link_message_write(head, &message); /* an empty one */
    broker_say(broker, test_format("MSG %s 3 %zu", scene.here, sizeof head + strlen(WRONG)));
    client_send_bytes(broker->link, head, sizeof head);
    broker_say(broker, WRONG);
    answer(&scene);
}

TEST(nats_link_is_answered_by_nobody_and_a_node)
{
    struct scene scene;
    struct broker *broker = &scene.broker;

    start(&scene);
    begin_link(&scene);
    broker_say(broker, test_format("HMSG %s 3 16 16\r\nNATS/1.0 503\r\n\r\n", scene.here));
    answer(&scene);
    DELIVER(broker, ASKING_INBOX, scene.here, "", .kind = LINK_CLOSE,
            .payload = slice_of_text("stop"));
    daemon_wait_log(scene.daemon, "restarting in");
    ask(&scene, "2");
    scene.here = broker_expect_letter(broker, LINK_OPEN, "stdio_bus.open.a", NULL).reply;
    broker_say(broker, test_format("HMSG %s 3 16 16\r\nNATS/1.0 503\r\n\r\n", scene.here));
    client_error(scene.client, "2", -32000, "no node of NATS serves the pool a now");
    DELIVER(broker, ASKING_INBOX, scene.here, "", .kind = LINK_ACCEPT,
            .payload = slice_of_text(OTHER " 8 far"));
    broker_expect_letter(broker, LINK_CLOSE, "stdio_bus.node." OTHER ".8",
                         "it is not wanted any more");
}

TEST(nats_node_is_told_that_it_is_not_known)
{
    struct scene scene;

    start(&scene);
    DELIVER(&scene.broker, ASKING_INBOX, "stdio_bus.node." OTHER ".0", "", .kind = LINK_LIFE,
            .payload = slice_of_text(OTHER));
    broker_expect_letter(&scene.broker, LINK_GONE, "stdio_bus.node." OTHER ".0", NULL);
}

/* ACCEPT went to another link of the daemon: the node names the one that it has accepted. */
TEST(nats_link_resumes_with_a_node_that_has_another)
{
    struct scene scene;
    uint64_t mark;

    start(&scene);
    begin_link(&scene);
    mark = mark_of(scene.here) + link_mark(OTHER, 8);
    DELIVER(&scene.broker, ASKING_INBOX, scene.here, "", .kind = LINK_RESUME, .mark = mark,
            .payload = slice_of_text(OTHER " 8 far"));
    broker_expect_letter(&scene.broker, LINK_CLOSE, "stdio_bus.node." OTHER ".8",
                         "the other end is gone");
    answer(&scene);
}

static const struct link_message impossible[] = {
    {.kind = LINK_RESUME, .received = 100000, .payload = {OTHER " 7 far", 22}},
    {.kind = LINK_ACK, .received = UINT64_MAX},
    {.kind = LINK_DATA, .position = LINK_WINDOW, .payload = {"x", 1}},
    {.kind = LINK_DATA, .position = UINT64_MAX, .payload = {"x", 1}},
};

TEST_ROWS(nats_link_ends_after_what_cannot_be, COUNT(impossible))
{
    struct scene scene;

    start(&scene);
    begin_link(&scene);
    broker_post(&scene.broker, ASKING_INBOX, scene.here, "", &impossible[row]);
    client_error(scene.client, "1", -32000, "a message that cannot be of this link");
    broker_expect_letter(&scene.broker, LINK_CLOSE, HERE, "a message that cannot be of this link");
    expect_others_served(&scene);
}

#define STATELESS_REQUEST                                                                          \
    "{'jsonrpc':'2.0','id':%d,'method':'tools/list','params':{'_meta':"                            \
    "{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}}}"

/* That no node was reached says nothing of the era of MCP that the server knows. */
TEST(nats_remote_pool_is_not_reached_in_the_stateless_era)
{
    struct scene scene = {.broker = {.port = 0}};
    struct broker *broker = &scene.broker;

    broker_listen(broker);
    scene.daemon =
        START(.config = test_format("{'pools':[{'id':'a','remote':true,'protocol':'mcp'}],"
                                    "'nats':{'servers':['127.0.0.1:%u']}}",
                                    broker->port));
    begin_remote(broker);
    scene.client = client_connect(scene.daemon);
    client_send(scene.client, STATELESS_REQUEST, 1);
    for (int attempts = 0; attempts < 4; attempts++) { /* of two workers */
        scene.letter = broker_expect_letter(broker, LINK_OPEN, "stdio_bus.open.a", NULL);
        broker_say(broker,
                   test_format("HMSG %s 3 16 16\r\nNATS/1.0 503\r\n\r\n", scene.letter.reply));
    }
    client_error(scene.client, "1", -32000, "no node of NATS serves the pool a now");
    client_send(scene.client, STATELESS_REQUEST, 2);
    broker_expect_letter(broker, LINK_OPEN, "stdio_bus.open.a", NULL);
}

/* --- the daemon serves --- */

static void serve(struct broker *broker)
{
    broker_listen(broker);
    START(.config = test_format("{'pools':[{'id':'a','command':'@WORKER@','export':true}],"
                                "'nats':{'servers':['127.0.0.1:%u'],'node':'n1'}}",
                                broker->port));
    broker_begin(broker);
}

static const struct {
    const char *sid, *subject, *reply, *text;
} openings[] = {
    {"2", "stdio_bus.open.a", "back.8", "nonsense"},
    {"2", "stdio_bus.open.a", "back.8", OTHER},
    {"2", "stdio_bus.open.a", "back.8", OTHER " -1 far"},
    {"2", "stdio_bus.open.a", "back.8", OTHER " 8 far away"},
    {"2", "stdio_bus.open.a", "", OTHER " 8 far"},
    {"2", "stdio_bus.open.b", "back.8", OTHER " 8 far"}, /* for another pool */
    {"1", "stdio_bus.open.a", "back.8", OTHER " 8 far"},
    {"14", "stdio_bus.open.a", "back.8", OTHER " 8 far"},
    {"99", "stdio_bus.open.a", "back.8", OTHER " 8 far"},
};

TEST_ROWS(nats_fault_opens_no_link, COUNT(openings))
{
    struct broker broker = {.port = 0};
    struct letter letter;

    serve(&broker);
    DELIVER(&broker, openings[row].sid, openings[row].subject, openings[row].reply,
            .kind = LINK_OPEN, .payload = slice_of_text(openings[row].text));
    DELIVER(&broker, "2", "stdio_bus.open.a", "back.7", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 7 far"));
    letter = broker_expect_letter(&broker, LINK_ACCEPT, "back.7", NULL);
    ck_assert_str_eq(test_format("%.2s", letter.message.payload.data + 16), " 1");
}

/* A request for another pool has no answer: it was for the daemons that export that one. */
TEST(nats_fault_asks_another_pool)
{
    struct broker broker = {.port = 0};

    serve(&broker);
    broker_say(&broker, "MSG stdio_bus.rpc.b 1 r.1 26\r\n{\"id\":1,\"method\":\"hold_x\"}");
    broker_ask(&broker, "r.2", "{'id':2,'method':'echo'}");
    message_result(broker_answer(&broker, "r.2"), "2");
}

/* --- a slow server --- */

/* It does not read, and cuts the connection in the end: a window of bytes waits, not more, and all
 * of them come with the next connection. */
TEST(nats_server_does_not_read)
{
    struct text *line = test_text();
    struct scene scene;
    struct letter letter;
    uint64_t reached = 0;

    start(&scene);
    begin_link(&scene);
    text_fill(line, 'x', 100000);
    for (int i = 2; i < 7; i++)
        client_send(scene.client, "{'jsonrpc':'2.0','id':%d,'method':'%.*s','pool':'a'}", i,
                    (int)line->len, line->data);
    expect_others_served(&scene);
    client_abort(scene.broker.link);
    begin_remote(&scene.broker);
    broker_expect_letter(&scene.broker, LINK_RESUME, HERE, NULL);
    while (reached < LINK_WINDOW) {
        letter = broker_expect_letter(&scene.broker, LINK_DATA, HERE, NULL);
        ck_assert_uint_eq(letter.message.position, reached);
        reached += letter.message.payload.len;
    }
    ck_assert_uint_eq(reached, LINK_WINDOW);
    DELIVER(&scene.broker, ASKING_INBOX, scene.here, "", .kind = LINK_ACK, .received = reached,
            .limit = 3 * LINK_WINDOW);
    while (reached < 500000) {
        letter = broker_expect_letter(&scene.broker, LINK_DATA, HERE, NULL);
        ck_assert_uint_eq(letter.message.position, reached);
        reached += letter.message.payload.len;
    }
    scene.letter.message.payload.len = (size_t)reached;
    answer(&scene);
}
