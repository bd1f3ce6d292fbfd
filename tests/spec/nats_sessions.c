/* Sessions of pools that several nodes serve (federation.md): the daemon beside a scripted server,
 * which is the other node. */
#include "build_config.h"

#include "control.h"
#include "nats_letters.h"

#define LOW "0000000000000001" /* nodes, to which the daemon's id is compared */
#define HIGH "fffffffffffffffe"
#define SESSION "stdio_bus.session.a."

/* The daemon's question for the session, which no node has answered yet. */
static struct letter expect_question_for(struct broker *broker, const char *session)
{
    struct letter letter = broker_expect_letter(broker, LINK_ASK, NULL, NULL);
    struct slice text = letter.message.payload;

    ck_assert_str_eq(test_format("%.20s", letter.subject), SESSION);
    ck_assert_uint_eq(strlen(letter.subject), strlen(SESSION) + 16);
    ck_assert(text.len > strlen(session) && text.data[text.len - strlen(session) - 1] == '\n');
    ck_assert(memcmp(&text.data[text.len - strlen(session)], session, strlen(session)) == 0);
    return letter;
}

static struct letter expect_question(struct broker *broker)
{
    return expect_question_for(broker, "s");
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
    asking->daemon = serve_pool(broker, "");
    asking->client = client_connect(asking->daemon);
    client_request(asking->client, "1", "s", method, NULL);
    broker_expect_line(broker, "SUB " SESSION);
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
    broker_expect_line(&asking.broker, "SUB " SESSION);
    broker_expect_letter(&asking.broker, LINK_CLAIM, asking.question.subject, NULL);
    client_close(asking.client);
    broker_expect_line(&asking.broker, "UNSUB 15");
}

#define SAYS(method, session)                                                                      \
    "{\"jsonrpc\":\"2.0\",\"method\":\"stdio_bus/session_" method "\",\"sessionId\":\"" session    \
    "\"}\n"
#define LEFT(session) SAYS("left", session)
#define JOINED(session) SAYS("joined", session)

/* What a link of the other node says next. */
struct said {
    struct broker *broker;
    const char *there;
    size_t position;
    unsigned number; /* 0: it is link 7 */
};

static void say_on_link(struct said *said, const char *line)
{
    uint64_t mark = said->number == 0 ? 0 : mark_of(said->there) + link_mark(OTHER, said->number);

    DELIVER(said->broker, INBOX, said->there, "", .kind = LINK_DATA, .position = said->position,
            .limit = LINK_WINDOW, .mark = mark, .payload = slice_of_text(line));
    said->position += strlen(line);
}

/* All that was said on the link before has been read then. */
static void expect_answered(struct said *said, const char *id)
{
    const char *end = test_format("stdio_bus.node." OTHER ".%u", said->number ? said->number : 7);

    say_on_link(said, test_format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"echo\"}\n", id));
    broker_expect_letter(said->broker, LINK_DATA, end,
                         test_format("{\"jsonrpc\":\"2.0\",\"id\":%s,", id));
}

/* Servers of NATS that were apart may be together again. */
TEST(nats_session_is_claimed_again)
{
    struct asking asking = {.client = NULL};

    begin_session(&asking, "echo");
    broker_expect_letter(&asking.broker, LINK_CLAIM, asking.question.subject, NULL);
    broker_expect_letter(&asking.broker, LINK_CLAIM, asking.question.subject, NULL);
}

/* The link stays, and so does the session of another node's client, until that node says that the
 * client has left. A session of another client stays. */
TEST(nats_session_ends_with_a_client_of_another_node)
{
    struct asking asking = {.client = NULL};
    struct said said = {.broker = &asking.broker};
    struct letter question;

    begin_session(&asking, "echo");
    client_result(asking.client, "1");
    said.there = open_link(&asking.broker);
    say_on_link(&said, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"sessionId\":\"t\"}\n");
    broker_expect_line(&asking.broker, "SUB " SESSION);
    question = broker_expect_letter(&asking.broker, LINK_ASK, NULL, NULL);
    broker_say_none(&asking.broker, INBOX, question.reply);
    broker_expect_letter(&asking.broker, LINK_CLAIM, question.subject, NULL);
    broker_expect_letter(&asking.broker, LINK_DATA, HERE, "{\"jsonrpc\":\"2.0\",\"id\":1,");
    say_on_link(&said, JOINED("s")); /* that is another client's */
    say_on_link(&said, LEFT("s"));
    say_on_link(&said, JOINED("u"));
    say_on_link(&said, LEFT("u"));
    say_on_link(&said, LEFT("t"));
    broker_expect_line(&asking.broker, "UNSUB 16");
    OF(asking, OTHER, LINK_ASK, .position = 1);
    broker_expect_letter(&asking.broker, LINK_HAS, "back", NULL);
}

/* What is said of the client that has left may come late: another client of its node goes on with
 * the session, by another link. */
TEST(nats_session_goes_on_with_another_link_of_its_node)
{
    struct broker broker = {.port = 0};
    struct said first = {.broker = &broker}, second = {.broker = &broker, .number = 8};
    struct client *control;
    struct letter question;

    steps_without_reloads(ASKED_AGAIN);
    broker_listen(&broker);
    control =
        control_connect(CONTROL_DAEMON(.config = serving_config(broker.port, ",'instances':2")));
    broker_begin(&broker);
    first.there = open_numbered_link(&broker, 7);
    second.there = open_numbered_link(&broker, 8);
    say_on_link(&first, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"sessionId\":\"s\"}\n");
    broker_expect_line(&broker, "SUB " SESSION);
    question = expect_question(&broker);
    broker_say_none(&broker, INBOX, question.reply);
    broker_expect_letter(&broker, LINK_DATA, HERE, "{\"jsonrpc\":\"2.0\",\"id\":1,");
    say_on_link(&second, JOINED("s"));
    expect_answered(&second, "1");
    say_on_link(&first, LEFT("s"));
    expect_answered(&first, "2");
    expect_member(control_ask(control, "sessions", NULL), "total", "1");
    say_on_link(&second, LEFT("s"));
    control_wait(control, "sessions", "total", "0");
}

/* Its sessions are those of the worker; an upgrade of the daemon changes nothing of that. */
TEST(nats_session_of_an_agent_ends_with_a_client_of_another_node)
{
    struct broker broker = {.port = 0};
    struct said said = {.broker = &broker};
    struct letter letter;
    struct daemon *daemon;
    struct client *control;

    broker_listen(&broker);
    daemon = CONTROL_DAEMON(.config = serving_config(broker.port, ",'protocol':'acp'"));
    control = control_connect(daemon);
    broker_begin(&broker);
    said.there = open_link(&broker);
    say_on_link(&said, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/load\",\"params\":"
                       "{\"sessionId\":\"s\",\"n\":0}}\n");
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    control_wait(control, "sessions", "total", "1");
    daemon_upgrade(daemon);
    broker_begin(&broker);
    broker_expect_letter(&broker, LINK_RESUME, HERE, NULL);
    broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    DELIVER(&broker, INBOX, said.there, "", .kind = LINK_ACK, .position = said.position,
            .received = letter.message.position + letter.message.payload.len, .limit = LINK_WINDOW);
    say_on_link(&said, LEFT("s"));
    control = control_connect(daemon);
    control_wait(control, "sessions", "total", "0");
    expect_member(control_ask(control, "clients", NULL), "total", "1");
    say_on_link(&said, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}\n");
    broker_expect_letter(&broker, LINK_DATA, HERE, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":");
}

static const struct {
    const char *session, *asked; /* NULL: each session is that of a worker */
    const char *members;
    const char *method, *params; /* that begins the session */
} left_pools[] = {
    {"s", "s", "", "x", NULL},
    {"\\ud83d", "\xED\xA0\xBD", "", "x", NULL},
    {"s", NULL, ",'protocol':'acp'", "session/load", "{'sessionId':'s'}"},
    {"s", "s", ",'protocol':'acp','clients':'shared'", "session/load", "{'sessionId':'s'}"},
};

/* The daemon has the client, and another node the session: that is told when the client leaves. */
TEST_ROWS(nats_session_of_a_client_that_leaves, COUNT(left_pools))
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct client *client;
    struct letter letter;
    const char *answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n", *here;
    const char *session = left_pools[row].session, *asked = left_pools[row].asked;
    bool is_nested = left_pools[row].params != NULL;

    steps_without_reloads(ASKED_AGAIN);
    daemon = ask_for_pool(&broker, left_pools[row].members);
    client = client_connect(daemon);
    client_request(client, "1", is_nested ? NULL : session, left_pools[row].method,
                   left_pools[row].params);
    if (asked != NULL)
        broker_say_none(&broker, "3", expect_question_for(&broker, asked).reply);
    letter = broker_expect_letter(&broker, LINK_OPEN, "stdio_bus.open.a", NULL);
    here = letter.reply;
    DELIVER(&broker, "3", here, "", .kind = LINK_ACCEPT, .payload = slice_of_text(OTHER " 7 far"));
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    if (is_nested) {
        const char *id =
            strstr(text_of((struct span){letter.message.payload.data, letter.message.payload.len}),
                   "\"id\":");

        answer = test_format("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{}}\n",
                             strtol(id + 5, NULL, 10));
    }
    DELIVER(&broker, "3", here, "", .kind = LINK_DATA, .received = letter.message.payload.len,
            .limit = 2 * LINK_WINDOW, .payload = slice_of_text(answer));
    client_result(client, "1");
    /* No client may say this. */
    client_send(client, "{'method':'stdio_bus/session_left','sessionId':'%s'}", session);
    client_request(client, "2", is_nested ? NULL : session, "y",
                   is_nested ? "{'sessionId':'s'}" : NULL);
    letter = broker_expect_letter(&broker, LINK_DATA, HERE, NULL);
    ck_assert(strstr(text_of((struct span){letter.message.payload.data,
                                           letter.message.payload.len}),
                     "session_left") == NULL);
    client_close(client);
    do
        letter = broker_expect_letter(&broker, LINK_DATA, HERE, "{");
    while (strstr(text_of((struct span){letter.message.payload.data, letter.message.payload.len}),
                  test_format(LEFT("%s"), session)) == NULL);
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
    letter = broker_expect_letter(&asking->broker, LINK_DATA, "stdio_bus.node." LOW ".7",
                                  JOINED("s"));
    daemon_upgrade(asking->daemon);
    broker_begin(&asking->broker);
    broker_expect_letter(&asking->broker, LINK_RESUME, NULL, NULL);
    letter = broker_expect_letter(&asking->broker, LINK_DATA, "stdio_bus.node." LOW ".7",
                                  JOINED("s"));
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
    broker_expect_line(&asking.broker, "UNSUB 15");
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
    broker_expect_line(&asking.broker, "UNSUB 15");
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
    broker_expect_line(&asking.broker, "UNSUB 15");
}

/* The node that has it is stopped. */
TEST(nats_session_has_a_silent_node)
{
    struct asking asking = {.client = NULL};

    begin_asking(&asking, "echo");
    for (int i = 0; i < 2; i++)
        expect_question(&asking.broker);
    client_error(asking.client, "1", -32000, "does not answer: try again");
    broker_expect_line(&asking.broker, "UNSUB 15");
    client_request(asking.client, "2", "s", "echo", NULL);
    client_error(asking.client, "2", -32000, "does not answer: try again");
    client_abort(asking.broker.link); /* without NATS it begins here */
    daemon_wait_log(asking.daemon, "\\[nats\\] 127.0.0.1:[0-9]*: ");
    client_ask(asking.client, "3", "s", "echo", NULL);
}

TEST(nats_session_begins_without_nats)
{
    struct asking asking = {.client = NULL};

    begin_asking(&asking, "echo");
    client_abort(asking.broker.link);
    client_result(asking.client, "1");
    broker_begin(&asking.broker);
    broker_expect_line(&asking.broker, "SUB " SESSION);
    broker_expect_letter(&asking.broker, LINK_CLAIM, asking.question.subject, NULL);
}

/* A node without processes asks, but no session begins there. */
TEST(nats_remote_pool_asks_for_a_session)
{
    struct broker broker = {.port = 0};
    struct client *client;
    struct letter letter;

    steps_without_reloads(ASKED_AGAIN);
    client = client_connect(ask_for_pool(&broker, ""));
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

    serve_pool(&broker, "");
    DELIVER(&broker, INBOX, "stdio_bus.node.x.0", "back.7", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 7 far\na"));
    broker_expect_letter(&broker, LINK_ACCEPT, "back.7", NULL);
    DELIVER(&broker, INBOX, "stdio_bus.node.x.0", "back.8", .kind = LINK_OPEN,
            .payload = slice_of_text(OTHER " 8 far\nb"));
    broker_expect_letter(&broker, LINK_DECLINE, "back.8", "the pool is not exported");
}
