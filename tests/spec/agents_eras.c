/* Pools for MCP: the era with a handshake and the stateless one (protocol.md). */
#include "build_config.h"

#include "harness.h"

#define MCP(instances, keys)                                                                       \
    "{'id':'p','command':'@WORKER@','instances':" #instances ",'protocol':'mcp'" keys "}"

#define ERA "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}"

static void probe(struct client *client, const char *id)
{
    client_send(client, "{'id':%s,'method':'server/discover','params':{" ERA "}}", id);
}

static void listen_with(struct client *client, const char *id)
{
    client_send(client, "{'id':%s,'method':'subscriptions/listen','params':{" ERA "}}", id);
}

static long stateless_pid(struct client *client, const char *id)
{
    client_send(client, "{'id':%s,'method':'echo','params':{" ERA "}}", id);
    return (long)json_number(client_result(client, id), "pid");
}

TEST(agents_eras_have_processes_of_their_own)
{
    struct daemon *daemon = START(.pools = MCP(4, ""));
    struct client *a = client_connect(daemon), *b = client_connect(daemon),
                  *c = client_connect(daemon);
    long shared = stateless_pid(a, "1"), own = client_pid(c, "1", NULL);
    ck_assert_int_eq(stateless_pid(b, "1"), shared);
    ck_assert_int_ne(own, shared);
    ck_assert_int_eq(client_pid(c, "2", NULL), own);
    daemon_wait_workers(daemon, 3); /* and a spare one */
    client_close(c);
    client_close(a);
    client_close(b);
    daemon_wait_workers(daemon, 2); /* the shared process waits for the next client */
    ck_assert_int_eq(stateless_pid(client_connect(daemon), "1"), shared);
}

/* It is of no era: a process that gets it first could take either one, for all its clients. */
TEST(agents_eras_probe_without_version_is_refused)
{
    struct daemon *daemon = START(.pools = MCP(2, ""));
    struct client *client = client_connect(daemon);
    client_send(client, "{'id':1,'method':'server/discover','params':{'_meta':{}}}");
    client_error(client, "1", -32602, "io.modelcontextprotocol/protocolVersion");
    client_send(client, "{'id':2,'method':'server/discover'}");
    client_error(client, "2", -32602, "io.modelcontextprotocol/protocolVersion");
    probe(client, "3");
    client_result(client, "3");
}

/* The ids that the daemon has given to the process before say nothing of the tokens that the client
 * of the next one chooses. */
TEST(agents_eras_next_process_reports_progress)
{
    struct daemon *daemon = START(.pools = MCP(1, ""));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    stateless_pid(a, "1");
    client_close(a);
    client_send(b, "{'id':1,'method':'progress','params':{'_meta':{'progressToken':2}}}");
    client_expect(b, "{'jsonrpc':'2.0','method':'notifications/progress','params':{"
                     "'progressToken':2}}");
    client_result(b, "1");
}

/* A shared process without a client makes way. */
TEST(agents_eras_make_way_for_each_other)
{
    struct daemon *daemon = START(.pools = MCP(1, ",'busy_timeout_sec':600"));
    struct client *a = client_connect(daemon), *b = client_connect(daemon),
                  *c = client_connect(daemon);
    long first = stateless_pid(a, "1"), second;
    client_request(b, "1", NULL, "echo", NULL);
    client_close(a);
    second = (long)json_number(client_result(b, "1"), "pid");
    ck_assert_int_ne(second, first);
    client_send(c, "{'id':1,'method':'echo','params':{" ERA "}}");
    client_close(b);
    ck_assert_int_ne(json_number(client_result(c, "1"), "pid"), second);
}

static const char *const refusals[] = {"exit", "error"};

/* No restart is counted, and the answer is known from then on. */
TEST_ROWS(agents_eras_server_without_the_stateless_one, COUNT(refusals))
{
    struct daemon *daemon =
        START(.pools = test_format(MCP(2, ",'args':['--discover','%s']"), refusals[row]),
              .limits = "'max_restarts':0");
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    probe(a, "'p'");
    client_error(a, "'p'", -32601, "server/discover");
    for (int i = 0; i < 3; i++) {
        probe(b, "'p'");
        client_error(b, "'p'", -32601, "server/discover");
    }
    client_send(b, "{'id':'q','method':'tools/list','params':{" ERA "}}");
    client_error(b, "'q'", -32022, "initialize");
    client_pid(a, "1", NULL);
    client_pid(b, "1", NULL); /* both places are there */
    ck_assert(!daemon_logged(daemon, "restarting|failed"));
    ck_assert_uint_eq(daemon_count_log(daemon, "started"), 3);
}

static const char *const oddities[] = {"odd-exit", "odd-error", "odd-silence"};

/* What the server does with a client's own probe says nothing about the server. */
TEST_ROWS(agents_eras_odd_probe_denies_nothing_to_others, COUNT(oddities))
{
    struct daemon *daemon =
        START(.pools = test_format(MCP(3, ",'args':['--discover','%s']"), oddities[row]));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    client_send(a, "{'id':'p','method':'server/discover','params':{" ERA ",'odd':1}}");
    if (row == 0)
        client_error(a, "'p'", -32000, "worker exited");
    else if (row == 1)
        client_error(a, "'p'", -32601, "unknown");
    client_send(a, "{'id':1,'method':'initialize','params':{}}");
    client_result(a, "1");
    client_close(a);
    stateless_pid(b, "1");
}

/* A server that is slow to start, as one that is downloaded first, is not taken for silent. */
TEST(agents_eras_server_that_starts_slowly)
{
    struct daemon *daemon =
        START(.pools = "{'id':'p','command':'/bin/sh','args':['-c','sleep 6; exec @WORKER@'],"
                       "'instances':1,'protocol':'mcp'}");
    stateless_pid(client_connect(daemon), "1");
}

#define SILENT(instances) MCP(instances, ",'request_timeout_sec':1,'args':['--discover','silence']")

TEST(agents_eras_server_that_is_silent)
{
    struct daemon *daemon = START(.pools = SILENT(3));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    probe(a, "'p'");
    client_send(a, "{'id':1,'method':'initialize','params':{}}");
    client_error(a, "'p'", -32601, "server/discover");
    client_result(a, "1");
    probe(b, "'p'");
    client_error(b, "'p'", -32601, "server/discover");
    client_pid(b, "1", NULL);
}

/* As the official library probes: by a connection of its own. */
TEST(agents_eras_client_leaves_a_silent_server)
{
    struct daemon *daemon = START(.pools = SILENT(3));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    probe(a, "'p'");
    client_close(a);
    daemon_wait_log(daemon, "disconnected");
    probe(b, "'p'");
    client_error(b, "'p'", -32601, "server/discover");
}

/* A client of the other era waits for the only process, however short its time is. */
TEST(agents_eras_silent_server_makes_way)
{
    struct daemon *daemon = START(.pools = MCP(1, ",'request_timeout_sec':1,'busy_timeout_sec':0,"
                                                  "'args':['--discover','silence']"));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    probe(a, "'p'");
    daemon_wait_log(daemon, "asked whether");
    client_request(b, "1", NULL, "echo", NULL);
    client_error(a, "'p'", -32601, "server/discover");
    client_result(b, "1");
}

/* With spare processes, too, the delay between two of one worker grows: 100, 400, 1600 ms. */
TEST(agents_eras_crashes_of_a_shared_process_are_delayed)
{
    struct daemon *daemon = START(.pools = MCP(4, ""));
    struct client *a = client_connect(daemon);
    int64_t start = now_ms();
    for (int i = 0; i < 13; i++) {
        client_send(a, "{'id':1,'method':'die','params':{" ERA ",'code':3}}");
        client_error(a, "1", -32000, "worker exited");
    }
    ck_assert_int_ge(now_ms() - start, 2000);
}

TEST(agents_eras_subscriptions_stay_open)
{
    struct daemon *daemon = START(.pools = MCP(2, ",'request_timeout_sec':1"));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    listen_with(a, "'listen:0'");
    stateless_pid(a, "1"); /* before b */
    listen_with(b, "'listen:0'");
    client_send(b, "{'id':'late','method':'no_answer','params':{" ERA "}}");
    client_error(b, "'late'", -32001, "timed out"); /* the others had their time, too */
    for (int i = 0; i < 2; i++) {
        client_send(a,
                    "{'id':'s','method':'say','params':{" ERA ",'message':{'method':'n',"
                    "'params':{'_meta':{'io.modelcontextprotocol/subscriptionId':%d}}}}}",
                    i == 0 ? 6 : 2);
        client_expect(i == 0 ? b : a,
                      "{'method':'n','params':{'_meta':{'io.modelcontextprotocol/subscriptionId':"
                      "'listen:0'}}}");
        client_result(a, "'s'");
    }
    client_send(a, "{'method':'die','params':{" ERA ",'code':3}}");
    client_error(a, "'listen:0'", -32000, "worker exited");
    client_error(b, "'listen:0'", -32000, "worker exited");
}

TEST(agents_eras_end_of_stdin_ends_subscriptions)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .pools = MCP(1, ""),
                                  .limits = "'drain_timeout_sec':600");
    struct client *client = client_stdio(daemon);
    listen_with(client, "'listen:0'");
    stateless_pid(client, "1");
    client_half_close(client);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The worker is told. */
TEST(agents_eras_half_close_cancels_subscriptions)
{
    struct daemon *daemon = START(.pools = MCP(1, ""));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    listen_with(a, "'listen:0'");
    stateless_pid(a, "1");
    client_half_close(a);
    client_expect_eof(a);
    client_send(b, "{'id':1,'method':'last_note','params':{" ERA "}}");
    ck_assert(span_is(client_result(b, "1"),
                      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                      "\"params\":{\"requestId\":2}}"));
}
