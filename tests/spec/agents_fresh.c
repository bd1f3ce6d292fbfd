/* Lazy pools for MCP: how long what a server has answered is used (protocol.md, "What is
 * remembered"). */
#include "build_config.h"

#include "remembered.h"
#include "share.h"

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

/* A reload changes the program while a process of the older one has a request in flight: its answer
 * is for its client alone. */
TEST(agents_memory_forgets_what_an_older_program_still_says)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = MCP(""));
    struct client *control = control_connect(daemon), *client = client_connect(daemon), *other;

    set_lists(daemon, LASTS("old", "60000"));
    client_send(client, "{'id':1,'method':'hold','params':{" ERA "}}");
    client_result(client, "1");
    client_send(client, "{'id':2,'method':'tools/list','params':{" ERA "}}");
    control_wait(control, "workers", "workers.0.requests", "1");
    daemon_write_file(daemon, "@DIR@/config.json", "{'pools':[" MCP(",'env':{'NEW':'1'}") "]}");
    control_ask(control, "reload", NULL);
    client_send(client, "{'id':3,'method':'release','params':{" ERA "}}");
    expect_tool_of(client_result(client, "2"), "old");
    client_result(client, "3");
    set_lists(daemon, LASTS("new", "60000"));
    other = client_connect(daemon);
    expect_tool_of(ask_tools(other, "1", ""), "new");
    expect_tool_of(ask_tools(client, "4", ""), "new");
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
