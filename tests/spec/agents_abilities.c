/* Pools for MCP: what a server may ask of clients that share its handshake (protocol.md). */
#include "build_config.h"

#include "harness.h"

#define SHARED "{'id':'p','command':'@WORKER@','instances':1,'protocol':'mcp','clients':'sticky'}"

#define NEW "'protocolVersion':'2025-11-25'"
#define RESULT "'result':{" NEW ",'capabilities':{}}"
#define ALL                                                                                        \
    "'sampling':{'tools':{}},'elicitation':{'form':{},'url':{}},'roots':{'listChanged':true}"
#define CHANGED "notifications/roots/list_changed"

/* ' becomes ". */
static const char *quoted(const char *json)
{
    struct text *text = test_text();
    text_printf(text, "%s", json);
    text_quote(text, 0);
    return text->data;
}

/* A client with these capabilities, which has shaken hands. */
static struct client *greet(const struct daemon *daemon, const char *capabilities)
{
    struct client *client = client_connect(daemon);
    client_ask(client, "0", NULL, "initialize",
               test_format("{" NEW "," RESULT ",'capabilities':{%s}}", capabilities));
    client_send(client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    return client;
}

/* The client makes the worker ask: with an id its request is in flight then. */
static void make_ask(struct client *client, const char *id, const char *question)
{
    client_request(client, id, NULL, "say_only", test_format("{'message':%s}", question));
}

/* The client is asked, under an id of the daemon's, and replies. */
static void expect_question(struct client *client, const char *question, const char *reply)
{
    struct span line = client_line(client), id = json_get(line, "id");
    const char *shown = test_format("%.*s", SHOWN(id)), *wanted = quoted(question);
    struct span params = json_get(line, "params"), expected = json_get(span_of(wanted), "params");
    ck_assert_msg(span_same(json_get(line, "method"), json_get(span_of(wanted), "method")) &&
                      params.len == expected.len &&
                      (params.len == 0 || span_same(params, expected)),
                  "%.*s", SHOWN(line));
    client_send(client, "{'jsonrpc':'2.0','id':%s,'result':{'from':'%s'}}", shown, reply);
}

/* The reply that the worker has got to a question. */
static void expect_reply(struct client *client, const char *word)
{
    WAIT_UNTIL(strstr(client_ask(client, "'r'", NULL, "reply_text", NULL).data, quoted(word)) !=
                   NULL,
               "the worker has got no reply with %s", word);
}

static void expect_offer(struct client *client, const char *wanted)
{
    struct span got = json_get(client_ask(client, "'h'", NULL, "handshake", NULL),
                               "0.params.capabilities");
    ck_assert_msg(span_is(got, quoted(wanted)), "%.*s", SHOWN(got));
}

static const struct {
    const char *client, *server;
} offers[] = {
    {"", "{" ALL "}"},
    {"'roots':{},'sampling':{'context':{}}",
     "{'elicitation':{'form':{},'url':{}},'roots':{'listChanged':true},"
     "'sampling':{'tools':{},'context':{}}}"},
    {"'experimental':{'x':[1]}, 'elicitation': { } ",
     "{'sampling':{'tools':{}},'roots':{'listChanged':true},'experimental':{'x':[1]}, "
     "'elicitation': {'form':{},'url':{} } }"},
    {ALL, "{" ALL "}"},
};

TEST_ROWS(agents_server_is_offered_all_capabilities, COUNT(offers))
{
    struct daemon *daemon = START(.pools = SHARED);
    struct client *client = greet(daemon, offers[row].client);
    expect_offer(client, offers[row].server);
    client_request(client, "1", NULL, "die", NULL);
    client_error(client, "1", -32000, DIED);
    expect_offer(client, offers[row].server);
}

#define METHOD(method) "{'jsonrpc':'2.0','id':7,'method':'" method "'}"
#define PARAMS(method, params)                                                                     \
    "{'jsonrpc':'2.0','id':7,'method':'" method "','params':{" params "}}"

static const struct {
    const char *capabilities, *question;
    int code; /* 0: the client is asked */
} questions[] = {
    {"", METHOD("roots/list"), -32601},
    {"", METHOD("sampling/createMessage"), -32601},
    {"", METHOD("elicitation/create"), -32601},
    {"'roots':null", METHOD("roots/list"), -32601},
    {"", METHOD("ping"), 0},
    {"'roots':{}", METHOD("roots/list"), 0},
    {"'roots':{}", METHOD("r\\u006fots/list"), 0},
    {"'elicitation':{}", METHOD("r\\u006fots/list"), -32601},
    {"'elicitation':{}", PARAMS("elicitation/create", "'mode':'form'"), 0},
    {"'elicitation':{}", PARAMS("elicitation/create", "'mode':'u\\u0072l'"), -32602},
    {"'elicitation':{'url':{}}", PARAMS("elicitation/create", "'mode':'url'"), 0},
    {"'elicitation':{'url':{}}", PARAMS("elicitation/create", "'message':'?'"), -32602},
    {"'sampling':{}", PARAMS("sampling/createMessage", "'tools':null"), 0},
    {"'sampling':{}", PARAMS("sampling/createMessage", "'tools':[]"), -32602},
    {"'sampling':{}", PARAMS("sampling/createMessage", "'toolChoice':{}"), -32602},
    {"'sampling':{'tools':{}}", PARAMS("sampling/createMessage", "'tools':[]"), 0},
};

TEST_ROWS(agents_question_needs_a_capability, COUNT(questions))
{
    struct daemon *daemon = START(.pools = SHARED);
    struct client *other = greet(daemon, row % 2 == 0 ? "" : ALL);
    struct client *asked = greet(daemon, questions[row].capabilities);
    make_ask(asked, "'q'", questions[row].question);
    if (questions[row].code == 0) {
        expect_question(asked, questions[row].question, "asked");
        expect_reply(other, "'from':'asked'");
    } else {
        expect_reply(asked, test_format("'code':%d", questions[row].code));
        client_expect_quiet(asked);
    }
}

/* A client that has sent no initialize answers for itself, and so does any in a strict bus. */
TEST_ROWS(agents_question_to_a_client_of_unknown_capabilities, 2)
{
    struct daemon *daemon = START(.pools = SHARED, .members = row == 1 ? "'strict':true" : NULL);
    struct client *client = row == 1 ? greet(daemon, "") : client_connect(daemon);
    make_ask(client, "'q'", METHOD("roots/list"));
    expect_question(client, METHOD("roots/list"), "client");
}

/* The server asks while no client waits for it. */
TEST(agents_roots_of_the_next_client_that_has_them)
{
    struct daemon *daemon = START(.pools = SHARED);
    struct client *none = greet(daemon, ""), *some, *last;
    make_ask(none, NULL, METHOD("roots/list"));
    expect_reply(none, "'code':-32601");
    expect_reply(greet(daemon, ""), "'code':-32601"); /* has no news for the server either */
    some = greet(daemon, "'roots':{}");
    WAIT_UNTIL(strstr(client_ask(none, "1", NULL, "last_note", NULL).data, CHANGED) != NULL,
               "the server was not told of roots");
    make_ask(none, NULL, METHOD("roots/list"));
    expect_question(some, METHOD("roots/list"), "some");
    expect_reply(none, "some");
    /* From now on it is the client that tells of a change, or the last one that came. */
    last = greet(daemon, "'roots':{}");
    greet(daemon, "");
    make_ask(none, NULL, METHOD("roots/list"));
    expect_question(some, METHOD("roots/list"), "again");
    expect_reply(none, "again");
    client_close(some);
    daemon_wait_log(daemon, "client=3.*disconnected");
    client_expect_quiet(last);
    make_ask(none, NULL, METHOD("roots/list"));
    expect_question(last, METHOD("roots/list"), "last");
}
