/* A lazy MCP pool with one worker for all clients, and the file with its results of tools/list. */
#ifndef TESTS_SPEC_REMEMBERED_H
#define TESTS_SPEC_REMEMBERED_H

#include "control.h"
#include "harness.h"

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

static inline void set_lists(const struct daemon *daemon, const char *lines)
{
    daemon_write_file(daemon, "@DIR@/test-lists", lines);
}

static inline struct client *greet(const struct daemon *daemon)
{
    struct client *client = client_connect(daemon);
    client_send(client, INITIALIZE("2025-11-25"));
    client_expect(client, "{'jsonrpc':'2.0','id':0,'result':" RESULT("2025-11-25") "}");
    client_send(client, INITIALIZED);
    return client;
}

static inline void expect_tool(struct client *client, const char *name)
{
    struct span result = client_ask(client, "'list'", NULL, "tools/list", NULL);
    struct span found = json_text(json_get(result, "tools.0.name"));
    ck_assert_msg(span_is(found, name), "%.*s, not %s", SHOWN(result), name);
}

static inline void expect_heard(struct client *client, const char *wanted)
{
    struct span heard = json_text(client_ask(client, "'heard'", NULL, "heard", NULL));
    ck_assert_msg(span_is(heard, wanted), "%.*s, not %s", SHOWN(heard), wanted);
}

/* Starts a daemon. Its worker answers one client, and then ends. */
static inline struct daemon *daemon_asleep(const char *pools, const char *lists)
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

#endif
