/* Pools for MCP: a process that exits is replaced by one that knows the client (protocol.md,
 * "Exclusive pools"). */
#include "build_config.h"

#include "harness.h"

#define MCP(keys) "{'id':'p','command':'@WORKER@','instances':2,'protocol':'mcp'" keys "}"

#define REVISION "'protocolVersion':'2025-11-25'"
#define RESULT "'result':{" REVISION "}"

#define INITIALIZE "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{%s}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"
#define SET_LEVEL "{'jsonrpc':'2.0','id':'L','method':'logging/setLevel','params':{'level':'%s'}}"
#define LIST_CHANGED(list) "{'jsonrpc':'2.0','method':'notifications/" list "/list_changed'}"

/* Returns the client's process. */
static long shake_hands(struct client *client, const char *params)
{
    client_send(client, INITIALIZE, params);
    client_result(client, "0");
    client_send(client, INITIALIZED);
    return client_pid(client, "1", NULL);
}

static long another_pid(struct client *client, long pid)
{
    long next = client_pid(client, "2", NULL);
    ck_assert_int_ne(next, pid);
    return next;
}

static void kill_idle(long pid)
{
    ck_assert_int_eq(kill((pid_t)pid, SIGKILL), 0);
    wait_gone(pid);
}

/* The process must have got these messages of the handshake. */
static void expect_handshake(struct client *client, const char *format, ...)
{
    struct span got = client_ask(client, "77", NULL, "handshake", NULL);
    char wanted[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(wanted, sizeof wanted, format, arguments);
    va_end(arguments);
    for (char *p = wanted; *p != '\0'; p++)
        *p = *p == '\'' ? '"' : *p;
    ck_assert_msg(span_is(got, wanted), "%.*s, not %s", SHOWN(got), wanted);
}

TEST(agents_replay_after_an_idle_exit)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon);
    long pid = shake_hands(client, RESULT);
    for (int i = 0; i < 3; i++) {
        kill_idle(pid);
        pid = another_pid(client, pid);
        expect_handshake(client, "[" INITIALIZE "," INITIALIZED "]", RESULT);
    }
    client_expect_quiet(client);
    daemon_wait_log(daemon, "its new process is initialized");
}

TEST(agents_replay_has_the_last_level)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon);
    long pid = shake_hands(client, RESULT);
    client_send(client, SET_LEVEL, "debug");
    client_result(client, "\"L\"");
    client_send(client, SET_LEVEL, "error");
    client_result(client, "\"L\"");
    kill_idle(pid);
    another_pid(client, pid);
    expect_handshake(client, "[" INITIALIZE "," INITIALIZED "," SET_LEVEL "]", RESULT, "error");
}

TEST(agents_replay_announces_changed_lists)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon);
    long pid = shake_hands(client, "'result':{" REVISION ",'capabilities':{"
                                   "'tools':{'listChanged':true},'prompts':{'listChanged':false},"
                                   "'resources':{'subscribe':true,'listChanged':true}}}");
    kill_idle(pid);
    client_expect(client, LIST_CHANGED("tools"));
    client_expect(client, LIST_CHANGED("resources"));
    another_pid(client, pid);
}

/* The requests in flight get their errors; what comes later waits for the new process. */
TEST(agents_replay_after_a_crash)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon);
    long pid = shake_hands(client, RESULT);
    client_request(client, "3", NULL, "no_answer", NULL);
    client_request(client, "4", NULL, "die", NULL);
    client_error(client, "3", -32000, DIED);
    client_error(client, "4", -32000, DIED);
    client_request(client, "5", NULL, "echo", NULL);
    client_send(client, "{'method':'n'}");
    ck_assert_int_ne(json_number(client_result(client, "5"), "pid"), pid);
    expect_handshake(client, "[" INITIALIZE "," INITIALIZED "]", RESULT);
    struct span note = client_ask(client, "6", NULL, "last_note", NULL);
    ck_assert(span_is(note, "{\"method\":\"n\"}"));
}

/* The ids of an exclusive pool may be the daemon's, the framing of the client another one. */
TEST(agents_replay_where_ids_are_rewritten)
{
    struct daemon *daemon = START(.pools = MCP(",'ids':'rewrite'"));
    struct client *client = client_connect(daemon);
    long pid = shake_hands(client, RESULT);
    client_send(client, SET_LEVEL, "debug");
    client_result(client, "\"L\"");
    kill_idle(pid);
    another_pid(client, pid);
    expect_handshake(client, "[" INITIALIZE "," INITIALIZED "," SET_LEVEL "]", RESULT, "debug");
}

/* Ids of questions begin again with each process, and the client may still answer those before. */
TEST(agents_replay_asks_with_an_id_that_is_unanswered)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon);
    long pid = shake_hands(client, RESULT);
    client_request(client, "3", NULL, "ask", "{'id':2}");
    client_expect(client, "{'jsonrpc':'2.0','id':2,'method':'question','params':null}");
    kill_idle(pid);
    client_error(client, "3", -32000, DIED);
    client_request(client, "4", NULL, "ask", "{'id':2}");
    struct span question = client_line(client);
    ck_assert(span_is(json_text(json_get(question, "method")), "question"));
    const char *id = test_format("%.*s", (int)json_get(question, "id").len,
                                 json_get(question, "id").data);
    ck_assert_str_ne(id, "2");
    client_send(client, "{'id':2,'result':'late'}");
    client_send(client, "{'id':%s,'result':'in time'}", id);
    struct span result = client_result(client, "4");
    ck_assert_msg(span_is(result, "{\"id\":2,\"result\":\"in time\"}"), "%.*s", SHOWN(result));
}

/* The question that was given another id is cancelled by that. */
TEST(agents_replay_cancels_a_question_that_has_another_id)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon);
    long pid = shake_hands(client, RESULT);
    client_request(client, "3", NULL, "ask", "{'id':2}");
    client_line(client);
    kill_idle(pid);
    client_error(client, "3", -32000, DIED);
    client_request(client, "4", NULL, "ask", "{'id':2}");
    struct span question = client_line(client);
    const char *id = test_format("%.*s", (int)json_get(question, "id").len,
                                 json_get(question, "id").data);
    client_send(client, "{'method':'say_only','params':{'message':{'jsonrpc':'2.0',"
                        "'method':'notifications/cancelled','params':{'requestId':2}}}}");
    client_expect(client,
                  "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':%s}}",
                  id);
}

/* Before its initialize was answered a client has agreed on nothing, and begins again. */
TEST(agents_replay_needs_an_answered_initialize)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon);
    client_request(client, "9", NULL, "hold", NULL);
    client_result(client, "9");
    client_send(client, INITIALIZE, RESULT);
    client_request(client, "1", NULL, "die", NULL);
    client_error(client, "0", -32000, DIED);
    client_error(client, "1", -32000, DIED);
    expect_handshake(client, "[]");
    client_send(client, INITIALIZE, RESULT);
    client_result(client, "0");
    expect_handshake(client, "[" INITIALIZE "]", RESULT);
}

/* In a pool of the stateless era nothing is lost with a process. */
TEST(agents_replay_leaves_the_stateless_era_alone)
{
    struct daemon *daemon = START(.pools = MCP(",'clients':'exclusive'"));
    struct client *client = client_connect(daemon);
    static const char echo[] = "{'id':%d,'method':'echo','params':{'_meta':{"
                               "'io.modelcontextprotocol/protocolVersion':'2026-07-28'}}}";
    client_send(client, echo, 1);
    long pid = (long)json_number(client_result(client, "1"), "pid");
    kill_idle(pid);
    client_send(client, echo, 2);
    ck_assert_int_ne(json_number(client_result(client, "2"), "pid"), pid);
}

/* The params of an initialize that the next process obeys. */
static const char *with_then(const char *then)
{
    return test_format(RESULT ",'mark':'%s/test-mark','then':'%s'", test_dir(), then);
}

static const struct failure {
    const char *then, *logged;
} failures[] = {
    {"error", "has refused initialize"},
    {"version", "has another protocolVersion"},
    {"die", "has exited too"},
};

/* The new process is not what the client knows: the client is closed, its request gets an error. */
TEST_ROWS(agents_replay_that_fails, 3)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    long of_other = client_pid(other, "1", NULL);
    shake_hands(client, with_then(failures[row].then));
    client_send(client, "{'id':3,'method':'die'}\n{'id':4,'method':'no_answer'}");
    client_error(client, "3", -32000, DIED);
    client_error(client, "4", -32000, DIED);
    client_expect_eof(client);
    daemon_wait_log(daemon, failures[row].logged);
    ck_assert_int_eq(client_pid(other, "2", NULL), of_other);
    client_close(client);
    client_expect_quiet(client_connect(daemon)); /* the pool continues */
}

/* A request that waits for the new process gets an error that says why. */
TEST(agents_replay_that_fails_refuses_what_waits)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon);
    kill_idle(shake_hands(client, with_then("error")));
    client_send(client, "{'id':3,'method':'echo'}\n{'id':4,'method':'echo'}");
    client_error(client, "3", -32000, "has refused initialize");
    client_error(client, "4", -32000, "has refused initialize");
    client_expect_eof(client);
}

/* A client may leave while the new process is silent. */
TEST(agents_replay_and_the_client_leaves)
{
    struct daemon *daemon = START(.pools = MCP(",'spare':0"));
    struct client *client = client_connect(daemon);
    kill_idle(shake_hands(client, with_then("silence")));
    daemon_wait_workers(daemon, 1);
    client_close(client);
    daemon_wait_workers(daemon, 0);
    client_expect_quiet(client_connect(daemon));
}

/* The state has no texts, and the log is where the reason is. */
#define CLOSED_WITHOUT_REASON "the next program closes a client with a reason of its own"

TEST(agents_replay_of_a_long_initialize_is_not_made)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *client = client_connect(daemon);
    steps_without_upgrades(CLOSED_WITHOUT_REASON);
    kill_idle(shake_hands(client, test_format(RESULT ",'pad':'%s'", test_fill('x', 70000))));
    client_expect_eof(client);
    daemon_wait_log(daemon, "too long to be repeated");
}

TEST(agents_replay_ends_with_the_restarts)
{
    struct daemon *daemon = START(.pools = MCP(""), .limits = "'max_restarts':1");
    struct client *client = client_connect(daemon);
    long pid = shake_hands(client, RESULT);
    steps_without_upgrades(CLOSED_WITHOUT_REASON);
    kill_idle(pid);
    kill_idle(another_pid(client, pid));
    client_expect_eof(client);
    daemon_wait_log(daemon, "exited too often");
}

/* The daemon may end in the middle of it. */
TEST(agents_replay_and_shutdown)
{
    struct daemon *daemon = START(.pools = MCP(",'spare':0"));
    struct client *client = client_connect(daemon);
    kill_idle(shake_hands(client, with_then("silence")));
    client_request(client, "3", NULL, "echo", NULL);
    daemon_wait_workers(daemon, 1);
    daemon_stop(daemon);
    client_error(client, "3", -32000, "shutting down");
    client_expect_eof(client);
}

static const char *const closing_pools[] = {
    MCP(",'on_worker_exit':'close'"),
    "{'id':'p','command':'@WORKER@','instances':2,'clients':'exclusive','protocol':'acp'}",
    "{'id':'p','command':'@WORKER@','instances':2,'protocol':'lsp','framing':'ndjson'}",
    ("{'id':'p','command':'@WORKER@','instances':2,'clients':'exclusive',"
     "'on_worker_exit':'close'}"),
};

/* Where the state of a process cannot be rebuilt, its client begins again. */
TEST_ROWS(agents_exit_closes_the_client, 4)
{
    struct daemon *daemon = START(.pools = closing_pools[row]);
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    long of_other = client_pid(other, "1", NULL);
    kill_idle(shake_hands(client, RESULT));
    client_expect_eof(client);
    ck_assert_int_eq(client_pid(other, "2", NULL), of_other);
    client_expect_quiet(client_connect(daemon));
}
