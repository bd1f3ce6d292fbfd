/* Pools for MCP: clients that share a process, which gets one handshake (protocol.md). */
#include "build_config.h"

#include "harness.h"

#define MCP(instances, keys)                                                                       \
    "{'id':'p','command':'@WORKER@','args':['--one-initialize'],'instances':" #instances           \
    ",'protocol':'mcp','clients':'sticky'" keys "}"

#define NEW "'protocolVersion':'2025-11-25'"
#define OLD "'protocolVersion':'2024-11-05'"
#define RESULT "'result':{" NEW ",'capabilities':{'tools':{'listChanged':true}}, 'x' : 1.0}"
#define INITIALIZE "{'jsonrpc':'2.0','id':%s,'method':'initialize','params':{%s}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"
#define CHANGED "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}"
#define ANSWER(id)                                                                                 \
    "{'jsonrpc':'2.0','id':" id ",'result':{" NEW ",'capabilities':{'tools':{'listChanged':true}}" \
    ", 'x' : 1.0}}"
#define SAY(message) "{'method':'say_only','params':{'message':" message "}}"

/* What the process of this client must have heard of handshakes. */
static void expect_heard(struct client *client, const char *wanted)
{
    struct span heard = json_text(client_ask(client, "'heard'", NULL, "heard", NULL));
    ck_assert_msg(span_is(heard, wanted), "%.*s, not %s", SHOWN(heard), wanted);
}

/* A client that has shaken hands. */
static struct client *greet(const struct daemon *daemon)
{
    struct client *client = client_connect(daemon);
    client_send(client, INITIALIZE, "0", NEW "," RESULT);
    client_expect(client, ANSWER("0"));
    client_send(client, INITIALIZED);
    return client;
}

static void subscribe(struct client *client, const char *what, const char *uri)
{
    client_ask(client, "'s'", NULL, test_format("resources/%s", what),
               test_format("{'uri':'%s'}", uri));
}

static void set_level(struct client *client, const char *level)
{
    client_ask(client, "'l'", NULL, "logging/setLevel", test_format("{'level':'%s'}", level));
}

#define SHAKEN "initialize 2025-11-25,notifications/initialized"

static const char *const sharing[] = {
    MCP(1, ""),
    ("{'id':'p','command':'@WORKER@','args':['--one-initialize'],'instances':1,'protocol':'mcp',"
     "'clients':'shared'}"),
};

TEST_ROWS(agents_one_handshake_for_all_clients, 2)
{
    static const char *const ids[] = {"1.0", "'\\u0061'", "-7", "123456789012345678901234567890"};
    struct daemon *daemon = START(.pools = sharing[row]);
    struct client *first = greet(daemon);
    for (int i = 0; i < 20; i++) {
        struct client *client = client_connect(daemon);
        client_send(client, INITIALIZE, ids[i % 4], NEW ",'clientInfo':{'name':'another'}");
        client_expect(client, "%s", test_format(ANSWER("%s"), ids[i % 4]));
        client_send(client, INITIALIZED);
        client_expect_quiet(client);
    }
    expect_heard(first, SHAKEN);
    client_close(first);
    expect_heard(greet(daemon), SHAKEN);
}

/* Those that come before the answer wait for it. */
TEST(agents_one_handshake_is_waited_for)
{
    enum { CLIENTS = 5 };
    struct client *clients[CLIENTS];
    struct daemon *daemon = START(.pools = MCP(1, ""));
    struct client *other = client_connect(daemon);
    client_ask(other, "1", NULL, "hold", NULL);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_connect(daemon);
        client_send(clients[i], INITIALIZE, "7", NEW "," RESULT);
    }
    client_close(clients[0]); /* the answer is for the others all the same */
    client_send(other, SAY("{'method':'x'}"));
    client_expect(other, "{'method':'x'}");
    client_request(other, "2", NULL, "release", NULL);
    for (int i = 1; i < CLIENTS; i++)
        client_expect(clients[i], ANSWER("7")); /* and not the notification */
    client_result(other, "2");
    expect_heard(other, "initialize 2025-11-25");
}

/* Its processes answer every initialize. */
#define MANY(instances)                                                                            \
    "{'id':'p','command':'@WORKER@','instances':" #instances ",'protocol':'mcp','clients':'"       \
    "sticky'}"

TEST(agents_one_handshake_for_each_version)
{
    struct daemon *daemon = START(.pools = MANY(2));
    struct client *a = greet(daemon), *b = greet(daemon);
    long pid = client_pid(a, "1", NULL);
    ck_assert_int_ne(client_pid(b, "1", NULL), pid);
    for (int i = 0; i < 2; i++) { /* the third client shares the first one's process */
        struct client *client = client_connect(daemon);
        client_send(client, INITIALIZE, "3", OLD ",'result':{" OLD "}");
        client_expect(client, "{'jsonrpc':'2.0','id':3,'result':{" OLD "}}");
        client_send(client, INITIALIZED);
        ck_assert_int_eq(client_pid(client, "1", NULL), i == 0 ? pid : client_pid(b, "2", NULL));
    }
    expect_heard(a, SHAKEN ",initialize 2024-11-05");
}

static struct client *greet_old(const struct daemon *daemon)
{
    struct client *client = client_connect(daemon);
    client_send(client, INITIALIZE, "3", OLD ",'result':{" OLD "}");
    client_expect(client, "{'jsonrpc':'2.0','id':3,'result':{" OLD "}}");
    client_send(client, INITIALIZED);
    return client;
}

/* The processes refuse another version: its client gets one of its own, in the place of one that
 * has no client. */
TEST(agents_one_handshake_refused_means_another_process)
{
    struct daemon *daemon = START(.pools = MCP(2, ",'busy_timeout_sec':1"),
                                  .arguments = {"--log-level", "debug"});
    struct client *a = greet(daemon), *b = greet(daemon);
    long of_a = client_pid(a, "1", NULL), of_b = client_pid(b, "1", NULL);
    client_close(b);
    daemon_wait_log(daemon, "client=2.*disconnected");
    struct client *old = greet_old(daemon);
    long of_old = client_pid(old, "1", NULL);
    ck_assert(of_old != of_a && of_old != of_b);
    expect_heard(old, "initialize 2024-11-05,notifications/initialized");
    ck_assert_int_eq(client_pid(greet(daemon), "1", NULL), of_a); /* nobody shares that one */
    /* No third process: the next one waits in vain, until the first one leaves. */
    struct client *late = client_connect(daemon);
    client_send(late, INITIALIZE, "'q'", OLD);
    client_error(late, "'q'", -32000, "every worker serves another client");
    client_close(old);
    client_close(late);
    wait_gone(of_old);
    ck_assert_int_ne(client_pid(greet_old(daemon), "1", NULL), of_a);
    ck_assert_int_eq(client_pid(a, "2", NULL), of_a);
}

/* The params of an initialize that has this effect. */
static const char *marked(const char *then)
{
    const char *mark = test_format("%s/test-mark", test_dir());
    int fd = open(mark, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    return test_format("'mark':'%s','then':'%s'," OLD, mark, then);
}

/* No client has been answered yet: a refusal is for those that have waited, and the next one may be
 * luckier. */
TEST(agents_one_handshake_refused_at_first)
{
    struct client *a = client_connect(START(.pools = MANY(1)));
    client_send(a, INITIALIZE, "4", marked("error"));
    client_expect(a, "{'jsonrpc':'2.0','id':4,'error':{'code':-32603,'message':'as you asked'}}");
    client_send(a, INITIALIZE, "5", NEW "," RESULT);
    client_expect(a, ANSWER("5"));
}

static const struct {
    const char *params, *word;
    int code;
} wrong[] = {
    {"'protocolVersion':1", "protocolVersion must be a string", -32602},
    {("'protocolVersion':"
      "'0123456789012345678901234567890123456789012345678901234567890123456789'"),
     "protocolVersion must be a string", -32602},
    {NULL, "initialize is longer than 65536 bytes", -32600},
};

TEST_ROWS(agents_one_handshake_has_limits, COUNT(wrong))
{
    struct client *client = client_connect(START(.pools = MCP(1, "")));
    const char *params = wrong[row].params;
    if (params == NULL)
        params = test_format(NEW ",'pad':'%s'", test_fill('x', 70000));
    client_send(client, INITIALIZE, "1", params);
    client_error(client, "1", wrong[row].code, wrong[row].word);
    expect_heard(client, "");
}

/* An answer that is too long to be kept. */
TEST(agents_one_handshake_with_a_long_answer)
{
    struct client *client = client_connect(START(.pools = MCP(1, "")));
    client_send(client, INITIALIZE, "1", "'then':'big','size':1100000," NEW);
    client_error(client, "1", -32000, "cannot be kept");
}

/* --- subscriptions --- */

#define UPDATED(uri)                                                                               \
    "{'jsonrpc':'2.0','method':'notifications/resources/updated','params':{'uri':'" uri "'}}"

TEST(agents_subscriptions_are_counted)
{
    struct daemon *daemon = START(.pools = MCP(1, ""));
    struct client *a = greet(daemon), *b = greet(daemon), *c = greet(daemon);
    subscribe(a, "subscribe", "x:/1");
    client_request(b, "'s'", NULL, "resources/subscribe", "{'uri':'x:\\/1'}");
    client_expect(b, "{'jsonrpc':'2.0','id':'s','result':{}}");
    subscribe(b, "subscribe", "x:/2");
    subscribe(b, "subscribe", "x:/2");
    expect_heard(c, SHAKEN ",resources/subscribe x:/1,resources/subscribe x:/2");
    client_send(c, SAY(UPDATED("x:/1")));
    client_expect(a, UPDATED("x:/1"));
    client_expect(b, UPDATED("x:/1"));
    client_send(c, SAY(UPDATED("x:/2/part")));
    client_expect(b, UPDATED("x:/2/part"));
    client_send(c, SAY(UPDATED("x:/22")));
    client_expect_quiet(c);
    client_expect_quiet(b);
    subscribe(a, "unsubscribe", "x:/1");
    client_send(c, SAY(UPDATED("x:\\/1")));
    client_expect(b, UPDATED("x:\\/1"));
    client_expect_quiet(a);
    subscribe(b, "unsubscribe", "x:/1");
    expect_heard(c, SHAKEN ",resources/subscribe x:/1,resources/subscribe x:/2"
                           ",resources/unsubscribe x:/1");
}

TEST(agents_subscriptions_end_with_their_clients)
{
    struct daemon *daemon = START(.pools = MCP(1, ""));
    struct client *a = greet(daemon), *b = greet(daemon), *c = greet(daemon);
    subscribe(a, "subscribe", "x:/1");
    subscribe(b, "subscribe", "x:/1");
    subscribe(b, "subscribe", "x:/\\u00e9\\\"");
    client_close(a);
    daemon_wait_log(daemon, "client=1.*disconnected");
    expect_heard(c, SHAKEN ",resources/subscribe x:/1,resources/subscribe x:/\\u00e9\\\"");
    client_close(b);
    daemon_wait_log(daemon, "client=2.*disconnected");
    expect_heard(c, SHAKEN ",resources/subscribe x:/1,resources/subscribe x:/\\u00e9\\\""
                           ",resources/unsubscribe x:/1,resources/unsubscribe x:/\xc3\xa9\\\"");
    client_expect_quiet(c);
}

/* A second subscriber waits for the answer to the first one; after an error it asks itself. */
TEST_ROWS(agents_subscription_is_waited_for, 2)
{
    struct daemon *daemon = START(.pools = MCP(1, ""), .arguments = {"--log-level", "debug"});
    struct client *a = greet(daemon), *b = greet(daemon), *c = greet(daemon);
    client_ask(c, "1", NULL, "hold", NULL);
    client_request(a, "'u'", NULL, "resources/subscribe", "{'uri':'u'}");
    daemon_wait_log(daemon, "client=1.*forwarding a message .id u");
    client_request(b, "1", NULL, "resources/subscribe", "{'uri':'u'}");
    if (row == 1)
        client_close(a);
    client_request(c, "2", NULL, "release", NULL);
    if (row == 0)
        client_result(a, "'u'");
    client_result(b, "1");
    client_result(c, "2");
}

/* One that leaves meanwhile is not looked at: what it sent before comes first. */
TEST(agents_subscription_that_is_waited_for_loses_nothing)
{
    struct daemon *daemon = START(.pools = MCP(1, ""), .arguments = {"--log-level", "debug"});
    struct client *a = greet(daemon), *b = greet(daemon), *c = greet(daemon);
    client_ask(c, "1", NULL, "hold", NULL);
    client_request(a, "'u'", NULL, "resources/subscribe", "{'uri':'u'}");
    daemon_wait_log(daemon, "client=1.*forwarding a message .id u");
    client_request(b, "1", NULL, "resources/subscribe", "{'uri':'u'}");
    client_request(b, "2", NULL, "echo", NULL);
    client_close(b);
    greet(daemon); /* from memory: a later round */
    ck_assert_uint_eq(daemon_count_log(daemon, "client=2.*disconnected"), 0);
    client_request(c, "2", NULL, "release", NULL);
    client_result(a, "'u'");
    client_result(c, "2");
}

TEST(agents_subscriptions_have_a_limit)
{
    struct client *client = greet(START(.pools = MCP(1, "")));
    for (int i = 0; i < 256; i++)
        subscribe(client, "subscribe", test_format("x:/%d", i));
    client_request(client, "1", NULL, "resources/subscribe", "{'uri':'x:/y'}");
    client_error(client, "1", -32000, "too many subscriptions (256 for a client)");
    client_request(client, "2", NULL, "resources/subscribe",
                   test_format("{'uri':'%s'}", test_fill('x', 2049)));
    client_error(client, "2", -32602, "the URI is longer than 2048 bytes");
    subscribe(client, "unsubscribe", "x:/0");
    subscribe(client, "subscribe", "x:/y");
}

/* With a max_memory of 1 MiB there are 64 KiB for them: 256 bytes and the URI for each. */
TEST(agents_subscriptions_share_the_memory)
{
    enum { MOST = 65536 / (256 + 2000) };
    struct daemon *daemon = START(.pools = MCP(1, ""), .limits = "'max_memory':1048576");
    struct client *a = greet(daemon), *b = greet(daemon);
    const char *filling = test_fill('x', 1996);
    for (int i = 0; i < MOST; i++)
        subscribe(a, "subscribe", test_format("a:%02d%s", i, filling));
    client_request(a, "1", NULL, "resources/subscribe", test_format("{'uri':'c:00%s'}", filling));
    client_error(a, "1", -32000, "too many subscriptions (65536 bytes, a sixteenth of max_memory");
    for (int i = 0; i < MOST / 4; i++) /* half of the half that a client gets, of two */
        subscribe(b, "subscribe", test_format("b:%02d%s", i, filling));
    client_close(a);
    daemon_wait_log(daemon, "client=1.*disconnected");
    for (int i = MOST / 4; i < MOST / 2; i++)
        subscribe(b, "subscribe", test_format("b:%02d%s", i, filling));
}

/* --- levels --- */

#define LOG(level)                                                                                 \
    "{'jsonrpc':'2.0','method':'notifications/message','params':{'level':'" level "','data':1}}"

TEST(agents_most_talkative_level_wins)
{
    struct daemon *daemon = START(.pools = MCP(1, ""));
    struct client *a = greet(daemon), *b = greet(daemon), *c = greet(daemon);
    set_level(a, "warning");
    set_level(b, "error");
    expect_heard(c, SHAKEN ",logging/setLevel warning");
    set_level(b, "info");
    client_send(c, SAY(LOG("info")));
    client_expect(b, LOG("info"));
    client_expect(c, LOG("info")); /* it has set no level */
    client_expect_quiet(a);
    client_send(c, SAY(LOG("alert")));
    client_expect(a, LOG("alert"));
    client_expect(b, LOG("alert"));
    client_expect(c, LOG("alert"));
    set_level(b, "error"); /* less than the other client: the daemon says so */
    expect_heard(c, SHAKEN ",logging/setLevel warning,logging/setLevel info"
                           ",logging/setLevel warning");
    client_close(a);
    daemon_wait_log(daemon, "client=1.*disconnected");
    expect_heard(c, SHAKEN ",logging/setLevel warning,logging/setLevel info"
                           ",logging/setLevel warning,logging/setLevel error");
    client_expect_quiet(b);
}

/* What the server refuses does not count. */
TEST(agents_refused_level_and_subscription)
{
    struct daemon *daemon = START(.pools = MCP(1, ""));
    struct client *a = greet(daemon), *b = greet(daemon);
    client_request(a, "1", NULL, "logging/setLevel", "{'level':'debug','code':-1}");
    client_expect(a, "{'jsonrpc':'2.0','id':1,'error':{'code':-1,'message':'as you asked'}}");
    set_level(b, "debug");
    client_request(a, "2", NULL, "logging/setLevel", "{'level':'loud','code':-2}");
    client_expect(a, "{'jsonrpc':'2.0','id':2,'error':{'code':-2,'message':'as you asked'}}");
    client_request(a, "3", NULL, "resources/subscribe", "{'uri':'u','code':-3}");
    client_expect(a, "{'jsonrpc':'2.0','id':3,'error':{'code':-3,'message':'as you asked'}}");
    client_send(b, SAY(UPDATED("u")));
    client_expect_quiet(b);
    client_expect_quiet(a);
    subscribe(b, "subscribe", "u");
    expect_heard(a, SHAKEN ",logging/setLevel debug,logging/setLevel debug,logging/setLevel loud"
                           ",resources/subscribe u,resources/subscribe u");
}

/* --- the process dies --- */

/* Every client continues with the next process, which knows all that the first one did. */
TEST(agents_one_handshake_is_replayed)
{
    struct daemon *daemon = START(.pools = MCP(1, ""));
    struct client *a = greet(daemon), *b = greet(daemon), *c = greet(daemon);
    set_level(a, "notice");
    set_level(b, "info");
    subscribe(b, "subscribe", "x:/1");
    subscribe(c, "subscribe", "x:/1");
    client_close(a); /* the one whose messages were kept */
    for (int i = 0; i < 3; i++) {
        long pid = client_pid(b, "1", NULL);
        client_request(b, "'lost'", NULL, "no_answer", NULL);
        client_request(c, "'die'", NULL, "die", NULL);
        client_error(b, "'lost'", -32000, DIED);
        client_error(c, "'die'", -32000, DIED);
        client_expect(b, CHANGED);
        client_expect(c, CHANGED);
        ck_assert_int_ne(client_pid(b, "2", NULL), pid);
        expect_heard(c, SHAKEN ",logging/setLevel info,resources/subscribe x:/1");
        client_expect_quiet(greet(daemon));
    }
    client_send(c, SAY(UPDATED("x:/1")));
    client_expect(b, UPDATED("x:/1"));
    client_expect(c, UPDATED("x:/1"));
}

/* The process dies for good, or is to take its clients with it. */
TEST_ROWS(agents_one_handshake_ends_with_its_clients, 2)
{
    struct daemon *daemon = START(.pools = row == 0 ? MCP(2, "")
                                                    : MCP(2, ",'on_worker_exit':'close'"),
                                  .limits = row == 0 ? "'max_restarts':0" : NULL);
    struct client *a = greet(daemon), *other = greet(daemon), *b = greet(daemon);
    client_request(a, "1", NULL, "die", NULL);
    client_error(a, "1", -32000, DIED);
    client_expect_eof(a);
    client_expect_eof(b);
    client_expect_quiet(other);
    expect_heard(greet(daemon), SHAKEN);
}

/* An initialize that ends the process is not repeated; the other clients continue. */
TEST(agents_initialize_that_kills)
{
    struct daemon *daemon = START(.pools = MANY(1));
    struct client *a = greet(daemon), *b = client_connect(daemon);
    client_send(b, INITIALIZE, "2", marked("die"));
    client_error(b, "2", -32000, DIED);
    client_expect(a, CHANGED);
    expect_heard(a, SHAKEN);
    client_send(b, INITIALIZE, "3", NEW);
    client_expect(b, CHANGED);
    client_expect(b, ANSWER("3"));
}

/* The next process is not what the clients know. */
TEST_ROWS(agents_one_handshake_whose_replay_fails, 3)
{
    static const char *const thens[] = {"error", "version", "die"};
    struct daemon *daemon = START(.pools = MCP(1, ""));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    const char *params = test_format("'mark':'%s/test-mark','then':'%s'," NEW "," RESULT,
                                     test_dir(), thens[row]);
    client_send(a, INITIALIZE, "1", params);
    client_expect(a, ANSWER("1"));
    client_send(b, INITIALIZE, "1", params);
    client_expect(b, ANSWER("1"));
    client_request(b, "3", NULL, "no_answer", NULL);
    client_expect_quiet(b);
    client_request(a, "2", NULL, "die", NULL);
    client_error(a, "2", -32000, DIED);
    client_error(b, "3", -32000, DIED);
    client_expect_eof(a);
    client_expect_eof(b);
    expect_heard(greet(daemon), SHAKEN);
}
