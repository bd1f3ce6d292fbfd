/* Lazy pools for MCP whose clients share a process: what the server has answered is given to the
 * next clients without one (protocol.md, "What is remembered"). */
#include "build_config.h"

#include "remembered.h"

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
