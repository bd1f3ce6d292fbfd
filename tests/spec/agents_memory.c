/* Lazy pools for MCP whose clients share a process: what the server has answered is given to the
 * next clients without one (protocol.md, "What is remembered"). */
#include "build_config.h"

#include "control.h"
#include "harness.h"
#include "share.h"

#define MCP(keys)                                                                                  \
    "{'id':'p','command':'@WORKER@','args':['--lists','@DIR@/test-lists'],'protocol':'mcp',"       \
    "'clients':'sticky','lazy':true" keys "}"
#define SLEEPS MCP(",'idle_stop_sec':1")

#define OF(v) "'protocolVersion':'" v "'"

#define RESULT(v) "{" OF(v) ",'capabilities':{'tools':{'listChanged':true}}}"
#define INITIALIZE(v)                                                                              \
    "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{" OF(                                 \
        v) ",'capabilities':"                                                                      \
           "{'roots':{}},'result':" RESULT(v) "}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"
#define CHANGED "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}"
#define SHAKEN "initialize 2025-11-25,notifications/initialized"
#define ONE "{'tools':[{'name':'one'}]}\n"
#define TWO "{'tools':[{'name':'two'}]}\n"

static void set_lists(const struct daemon *daemon, const char *lines)
{
    daemon_write_file(daemon, "@DIR@/test-lists", lines);
}

static struct client *greet(const struct daemon *daemon)
{
    struct client *client = client_connect(daemon);
    client_send(client, INITIALIZE("2025-11-25"));
    client_expect(client, "{'jsonrpc':'2.0','id':0,'result':" RESULT("2025-11-25") "}");
    client_send(client, INITIALIZED);
    return client;
}

static void expect_tool(struct client *client, const char *name)
{
    struct span result = client_ask(client, "'list'", NULL, "tools/list", NULL);
    struct span found = json_text(json_get(result, "tools.0.name"));
    ck_assert_msg(span_is(found, name), "%.*s, not %s", SHOWN(result), name);
}

static void expect_heard(struct client *client, const char *wanted)
{
    struct span heard = json_text(client_ask(client, "'heard'", NULL, "heard", NULL));
    ck_assert_msg(span_is(heard, wanted), "%.*s, not %s", SHOWN(heard), wanted);
}

/* A daemon whose server was called once, and sleeps. */
static struct daemon *daemon_asleep(const char *pools, const char *lists)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = pools, .arguments = {"--log-level", "debug"});
    struct client *client;
    set_lists(daemon, lists);
    client = greet(daemon);
    expect_tool(client, "one");
    client_close(client);
    daemon_wait_workers(daemon, 0);
    return daemon;
}

TEST(agents_memory_answers_without_a_process)
{
    struct daemon *daemon = daemon_asleep(SLEEPS, ONE);
    struct client *control = control_connect(daemon), *client = greet(daemon), *other;
    expect_tool(client, "one");
    client_ask(client, "'p'", NULL, "ping", NULL);
    client_send(client, "{'jsonrpc':'2.0','id':'t','method':'tools/list','params':{'_meta':"
                        "{'progressToken':7}}}");
    client_result(client, "\"t\"");
    client_send(client, "{'jsonrpc':'2.0','method':'notifications/roots/list_changed'}");
    other = greet(daemon);
    expect_tool(other, "one");
    control_wait(control, "workers", "workers.0.state", "'asleep'");
    expect_member(control_ask(control, "workers", NULL), "workers.0.starts", "1");
    daemon_wait_workers(daemon, 0);
    expect_heard(client, SHAKEN);
    expect_heard(other, SHAKEN);
    expect_member(control_ask(control, "workers", NULL), "workers.0.starts", "2");
    client_expect_quiet(client);
    client_expect_quiet(other);
}

/* Each of them calls: one process is started. */
TEST(agents_memory_wakes_one_process)
{
    enum { CLIENTS = 10 };
    struct daemon *daemon = daemon_asleep(MCP(",'idle_stop_sec':1,'instances':4"), ONE);
    struct client *clients[CLIENTS];
    long pid = 0;
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = greet(daemon);
    for (int i = 0; i < CLIENTS; i++)
        client_request(clients[i], "1", NULL, "echo", NULL);
    for (int i = 0; i < CLIENTS; i++) {
        long own = (long)json_number(client_result(clients[i], "1"), "pid");
        ck_assert(pid == 0 || pid == own);
        pid = own;
    }
    daemon_wait_workers(daemon, 1);
}

TEST(agents_memory_of_a_list_that_differs)
{
    struct daemon *daemon = daemon_asleep(SLEEPS, ONE);
    struct client *client = greet(daemon), *other;
    steps_without_upgrades("a list that was asked for is asked for again: it comes later");
    expect_tool(client, "one");
    set_lists(daemon, TWO);
    client_request(client, "1", NULL, "echo", NULL);
    client_expect(client, CHANGED);
    client_result(client, "1");
    expect_tool(client, "two");
    ck_assert(daemon_logged(daemon, "its lists differ"));
    client_close(client);
    daemon_wait_workers(daemon, 0);
    other = greet(daemon);
    expect_tool(other, "two");
    daemon_wait_workers(daemon, 0);
}

/* Clients hear of it from the server. */
TEST(agents_memory_is_renewed_by_the_server)
{
    struct daemon *daemon = daemon_asleep(SLEEPS, ONE);
    struct client *client = greet(daemon), *other;
    steps_without_upgrades("the lists are compared after them, too");
    client_ask(client, "1", NULL, "echo", NULL);
    set_lists(daemon, TWO);
    client_send(client, "{'method':'say_only','params':{'message':" CHANGED "}}");
    client_expect(client, CHANGED);
    client_expect_quiet(client);
    client_close(client);
    daemon_wait_workers(daemon, 0);
    other = greet(daemon);
    expect_tool(other, "two");
    daemon_wait_workers(daemon, 0);
}

TEST(agents_memory_has_pages)
{
    static const char pages[] = "{'tools':[{'name':'one'}],'nextCursor':'2'}\n"
                                "{'tools':[{'name':'more'}],'nextCursor':'3'}\n"
                                "{'tools':[{'name':'last'}]}\n";
    static const char *const names[] = {"more", "last"};
    struct daemon *daemon = daemon_asleep(SLEEPS, pages);
    struct client *client = greet(daemon);
    expect_tool(client, "one");
    for (int i = 0; i < 2; i++) {
        struct span result = client_ask(client, "7", NULL, "tools/list",
                                        test_format("{'cursor':'%d'}", i + 2));
        ck_assert(span_is(json_text(json_get(result, "tools.0.name")), names[i]));
    }
    daemon_wait_workers(daemon, 0);
}

/* What is not remembered starts the process. */
static const char *const others[] = {
    INITIALIZE("2024-11-05"),
    "{'id':0,'method':'tools/list','params':{'cursor':'9'}}",
    "{'id':0,'method':'tools/list','params':{'tenant':'x'}}",
    "{'id':0,'method':'prompts/list'}",
    "{'id':0,'method':'resources/subscribe','params':{'uri':'u'}}",
};

TEST_ROWS(agents_memory_does_not_know, 5)
{
    struct daemon *daemon = daemon_asleep(SLEEPS, ONE);
    struct client *client = row == 0 ? client_connect(daemon) : greet(daemon);
    client_send(client, "%s", others[row]);
    client_line(client);
    daemon_wait_workers(daemon, 1);
}

/* Its answers may depend on the client. */
TEST(agents_memory_of_a_server_that_asks_for_roots)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = SLEEPS);
    struct client *client;
    set_lists(daemon, ONE);
    client = greet(daemon);
    client_send(client, "{'method':'say_only','params':{'message':{'jsonrpc':'2.0','id':'r',"
                        "'method':'roots/list'}}}");
    ck_assert(span_is(json_text(json_get(client_line(client), "method")), "roots/list"));
    client_send(client, "{'jsonrpc':'2.0','id':2,'result':{'roots':[]}}");
    client_ask(client, "1", NULL, "echo", NULL);
    client_close(client);
    daemon_wait_workers(daemon, 0);
    greet(daemon);
    daemon_wait_workers(daemon, 1);
}

/* The next process answers in another way, or not at all: the memory is of no use. */
TEST(agents_memory_is_thrown_away)
{
    static const char once[] =
        "{'id':'p','command':'sh','args':['-c','test ! -e @DIR@/test-gone || exit 3; "
        "exec @WORKER@ --lists @DIR@/test-lists'],'protocol':'mcp','clients':'sticky',"
        "'lazy':true,'idle_stop_sec':1}";
    struct daemon *daemon = daemon_asleep(once, ONE);
    struct client *client = greet(daemon), *other;
    daemon_write_file(daemon, "@DIR@/test-gone", "");
    expect_tool(client, "one");
    client_request(client, "2", NULL, "echo", NULL);
    client_error(client, "2", -32000, "exited");
    client_expect_eof(client);
    other = client_connect(daemon);
    client_send(other, INITIALIZE("2025-11-25"));
    client_error(other, "0", -32000, "exited");
}

TEST(agents_memory_survives_an_upgrade)
{
    struct daemon *daemon;
    struct client *client, *other;
    if (!daemon_can_upgrade())
        return;
    daemon = daemon_asleep(SLEEPS, ONE);
    client = greet(daemon);
    daemon_upgrade(daemon);
    expect_tool(client, "one");
    other = greet(daemon);
    expect_tool(other, "one");
    daemon_wait_workers(daemon, 0);
    expect_heard(client, SHAKEN);
}

TEST(agents_memory_ends_with_another_program)
{
    struct daemon *daemon = daemon_asleep(SLEEPS, ONE);
    struct client *client = greet(daemon);
    daemon_write_file(daemon, "@DIR@/config.json",
                      "{'pools':[" MCP(",'idle_stop_sec':1,'env':{'NEW':'1'}") "]}");
    control_ask(control_connect(daemon), "reload", NULL);
    client_close(client);
    greet(daemon);
    daemon_wait_workers(daemon, 1);
}

/* --- the stateless era --- */

#define ERA "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}"
#define LASTS(name, ms)                                                                            \
    "{'resultType':'complete','ttlMs':" ms ",'cacheScope':'private','tools':[{'name':'" name       \
    "'}]}\n"

/* The result of tools/list. */
static struct span ask_tools(struct client *client, const char *id, const char *more)
{
    client_send(client, "{'id':%s,'method':'tools/list','params':{" ERA "%s}}", id, more);
    return client_result(client, id);
}

static void expect_tool_of(struct span result, const char *name)
{
    struct span found = json_text(json_get(result, "tools.0.name"));
    ck_assert_msg(span_is(found, name), "%.*s, not %s", SHOWN(result), name);
}

/* While the process runs, too. What is left of the time is in the answer. */
TEST(agents_memory_keeps_what_is_fresh)
{
    struct daemon *daemon = START(.pools = MCP(""));
    struct client *one = client_connect(daemon), *other = client_connect(daemon);
    long left;
    set_lists(daemon, LASTS("one", "60000"));
    expect_tool_of(ask_tools(one, "1", ""), "one");
    set_lists(daemon, LASTS("two", "60000"));
    usleep(50000);
    struct span result = ask_tools(other, "'an id'", "");
    expect_tool_of(result, "one");
    left = (long)json_number(result, "ttlMs");
    ck_assert_msg(left > 0 && left <= 59960, "%ld", left);
    /* With other parameters the server is asked. */
    expect_tool_of(ask_tools(other, "3", ",'tenant':'x'"), "two");
    expect_tool_of(ask_tools(other, "4", ""), "one");
    daemon_wait_workers(daemon, 1);
}

/* row: at once, or after a while. A server that sleeps is not woken for it. */
TEST_ROWS(agents_memory_of_what_is_stale, 2)
{
    struct daemon *daemon = START(.pools = SLEEPS);
    struct client *client = client_connect(daemon);
    set_lists(daemon, row == 0 ? LASTS("one", "0") : LASTS("one", "100"));
    expect_tool_of(ask_tools(client, "1", ""), "one");
    usleep(150000);
    set_lists(daemon, row == 0 ? LASTS("two", "0") : LASTS("two", "100"));
    expect_tool_of(ask_tools(client, "2", ""), "two");
    daemon_wait_workers(daemon, 0);
    struct span result = ask_tools(client, "3", "");
    expect_tool_of(result, "two");
    ck_assert_int_eq((long)json_number(result, "ttlMs"), 0);
    daemon_wait_workers(daemon, 0);
}

/* The clocks go on, too: what was fresh is given as long as the server has said. */
TEST(agents_memory_of_what_is_fresh_survives_an_upgrade)
{
    struct daemon *daemon;
    struct client *client;
    long left;
    if (!daemon_can_upgrade())
        return;
    daemon = START(.pools = SLEEPS);
    client = client_connect(daemon);
    set_lists(daemon, LASTS("one", "3000"));
    expect_tool_of(ask_tools(client, "1", ""), "one");
    set_lists(daemon, LASTS("two", "60000"));
    daemon_upgrade(daemon);
    struct span result = ask_tools(client, "2", "");
    expect_tool_of(result, "one");
    left = (long)json_number(result, "ttlMs");
    ck_assert_msg(left > 0 && left < 3000, "%ld", left);
    daemon_wait_workers(daemon, 0);
    daemon_upgrade(daemon);
    expect_tool_of(ask_tools(client, "3", ""), "one");
    daemon_wait_workers(daemon, 0);
    usleep(2000000);
    client_send(client, "{'id':4,'method':'echo','params':{" ERA "}}");
    client_result(client, "4");
    expect_tool_of(ask_tools(client, "5", ""), "two");
}

/* --- one line --- */

/* row: with --eager. */
TEST_ROWS(agents_memory_of_a_shared_server, 2)
{
    struct sharer *one = SHARE(.arguments = {"--idle-stop", "1", row == 1 ? "--eager" : NULL}),
                  *other;
    long pid;
    client_send(one->client, INITIALIZE("2025-11-25"));
    client_result(one->client, "0");
    client_send(one->client, INITIALIZED);
    pid = client_pid(one->client, "1", NULL);
    share_wait_gone((pid_t)pid);
    other = SHARE(.arguments = {row == 1 ? "--eager" : NULL});
    client_send(other->client, INITIALIZE("2025-11-25"));
    client_result(other->client, "0");
    ck_assert_uint_eq(share_logged("a message needs it"), (size_t)row);
    client_abort(one->client);
    client_abort(other->client);
}
