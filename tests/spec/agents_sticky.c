/* Clients and workers that know nothing of the bus (protocol.md, "Pools for MCP, ACP and LSP"):
 * one process for many clients. */
#include "build_config.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"

#define AGENTS(instances, keys)                                                                    \
    "{'id':'p','command':'@WORKER@','instances':" #instances "," keys "}"

#define STICKY "'clients':'sticky'"
#define REWRITE "'clients':'sticky','ids':'rewrite'"

/* Makes the worker of this client write a message. */
#define SAY(message) "{'method':'say_only','params':{'message':" message "}}"

START_TEST(agents_clients_stay_with_their_worker)
{
    struct daemon daemon;
    struct client clients[6];
    long pids[6];
    START(&daemon, .pools = AGENTS(3, STICKY));
    for (int i = 0; i < 6; i++) {
        client_connect(&clients[i], &daemon);
        pids[i] = client_pid(&clients[i], "1", NULL);
    }
    for (int i = 0; i < 3; i++) { /* two clients each */
        ck_assert_int_eq(pids[i], pids[i + 3]);
        ck_assert_int_ne(pids[i], pids[(i + 1) % 3]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 6; i++)
            ck_assert_int_eq(client_pid(&clients[i], "2", NULL), pids[i]);
    }
    for (int i = 0; i < 6; i++)
        client_close(&clients[i]);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_notifications_go_to_all_clients_of_the_worker)
{
    struct daemon daemon;
    struct client a, b, other;
    START(&daemon, .pools = AGENTS(2, REWRITE));
    client_connect(&a, &daemon);
    client_connect(&other, &daemon);
    client_connect(&b, &daemon);
    client_expect_quiet(&a);
    client_expect_quiet(&other);
    client_expect_quiet(&b);
    client_send(&a, SAY("{'method':'changed','params':{'list':[1,2]}}"));
    client_expect(&a, "{'method':'changed','params':{'list':[1,2]}}");
    client_expect(&b, "{'method':'changed','params':{'list':[1,2]}}");
    client_expect_quiet(&a);
    client_expect_quiet(&b);
    client_expect_quiet(&other);
    client_close(&b);
    client_send(&a, SAY("{'method':'again'}"));
    client_expect(&a, "{'method':'again'}");
    client_close(&a);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_equal_ids_and_tokens_of_many_clients)
{
    enum { COUNT = 20 };
    struct daemon daemon;
    struct client clients[COUNT];
    START(&daemon, .pools = AGENTS(1, REWRITE));
    for (int i = 0; i < COUNT; i++) {
        client_connect(&clients[i], &daemon);
        client_request(&clients[i], "1", NULL, i == 0 ? "hold" : "echo",
                       "{'_meta':{'progressToken':'t'}}");
        if (i == 0) {
            client_result(&clients[0], "1");
            continue;
        }
        /* Their ids at the worker are 4, 6 and so on. */
        client_send(&clients[i],
            SAY("{'method':'notifications/progress','params':{'progressToken':%d,'progress':%d}}"),
            2 * i + 2, i);
        client_expect(&clients[i],
                      "{'method':'notifications/progress','params':"
                      "{'progressToken':'t','progress':%d}}",
                      i);
    }
    client_ask(&clients[0], "2", NULL, "release", "{'reverse':true}");
    for (int i = 1; i < COUNT; i++) {
        struct span result = client_result(&clients[i], "1");
        ck_assert_int_eq(json_long(json_get(result, "params._meta.progressToken"), 0), 2 * i + 2);
        client_expect_quiet(&clients[i]);
    }
    for (int i = 0; i < COUNT; i++)
        client_close(&clients[i]);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_ids_come_back_as_they_were_spelled)
{
    static const char *const ids[] = {"1.0", "1e2", "-1", "'\\u0061'", "''", "'\xc3\xa9'",
                                      "123456789012345678901234567890"};
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = AGENTS(1, REWRITE));
    client_connect(&client, &daemon);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        client_request(&client, ids[i], NULL, "plain", "'x'");
        client_expect(&client, "{'jsonrpc':'2.0','id':%s,'result':'x'}", ids[i]);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Large messages change hands with their buffers; the id may stand before or behind the bulk. */
START_TEST(agents_large_messages_are_rewritten)
{
    enum { SIZE = 300000 };
    static char bulk[SIZE + 1];
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = AGENTS(1, REWRITE));
    client_connect(&client, &daemon);
    memset(bulk, 'x', SIZE);
    for (int i = 0; i < 3; i++) {
        client_send(&client, "{'id':'early','method':'plain','params':'%s'}", bulk);
        client_expect(&client, "{'jsonrpc':'2.0','id':'early','result':'%s'}", bulk);
        client_send(&client, "{'method':'plain','params':'%s','id':'late'}", bulk);
        client_expect(&client, "{'jsonrpc':'2.0','id':'late','result':'%s'}", bulk);
        client_send(&client, SAY("{'x':'%s','method':'m','id':'q'}"), bulk);
        client_expect(&client, "{'x':'%s','method':'m','id':%d}", bulk, 2 * i + 2);
        client_send(&client, "{'id':%d,'result':0}", 2 * i + 2);
        client_expect_quiet(&client);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_sessions_are_learned_and_owned)
{
    struct daemon daemon;
    struct client a, b;
    START(&daemon, .pools = AGENTS(1, "'protocol':'acp'"));
    client_connect(&a, &daemon);
    client_connect(&b, &daemon);
    client_ask(&a, "0", NULL, "plain", "{'sessionId':'of a'}");
    client_ask(&b, "0", NULL, "plain", "{'sessionId':'of b'}");
    client_send(&b, SAY("{'method':'session/update','params':{'sessionId':'of a','n':1}}"));
    client_expect(&a, "{'method':'session/update','params':{'sessionId':'of a','n':1}}");
    client_send(&a, SAY("{'method':'session/update','params':{'sessionId':'of b','n':2}}"));
    client_expect(&b, "{'method':'session/update','params':{'sessionId':'of b','n':2}}");
    /* A question, whose id is the worker's again when it comes back. */
    client_send(&a, "{'id':5,'method':'ask','params':"
                    "{'id':'q','params':{'sessionId':'of b'},'sessionId':'of b'}}");
    client_expect(&b, "{'jsonrpc':'2.0','id':2,'method':'question',"
                      "'params':{'sessionId':'of b'}}");
    client_send(&b, "{'id':2,'result':'yes'}");
    client_expect(&a, "{'jsonrpc':'2.0','id':5,'result':{'id':'q','result':'yes'}}");
    client_expect_quiet(&a);
    client_expect_quiet(&b);
    client_close(&a);
    client_close(&b);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_questions_that_nobody_can_be_meant_by)
{
    struct daemon daemon;
    struct client a, b;
    START(&daemon, .pools = AGENTS(1, STICKY), .arguments = {"--log-level", "debug"});
    client_connect(&a, &daemon);
    client_connect(&b, &daemon);
    client_expect_quiet(&a);
    client_request(&a, "'a'", NULL, "no_answer", NULL);
    client_request(&b, "'b'", NULL, "no_answer", NULL);
    client_expect_quiet(&b);
    client_send(&a, SAY("{'id':'q','method':'m'}"));
    daemon_wait_log(&daemon, "unroutable");
    struct span result = client_ask(&a, "1", NULL, "reply_text", NULL);
    ck_assert_int_eq(json_long(json_get(result, "error.code"), 0), -32000);
    ck_assert(span_is(json_get(result, "id"), "\"q\""));
    client_expect_quiet(&b);
    client_close(&b);
    daemon_wait_log(&daemon, "client=2.*disconnected");
    client_send(&a, SAY("{'id':'q','method':'m'}"));
    client_expect(&a, "{'id':'q','method':'m'}");
    client_close(&a);
    daemon_stop(&daemon);
}
END_TEST

/* Who reads nothing holds the others up only as long as its time limit. */
START_TEST(agents_slow_client_does_not_stop_the_others_for_ever)
{
    struct daemon daemon;
    struct client slow, fast;
    static char bulk[60001];
    START(&daemon, .pools = AGENTS(1, STICKY),
          .limits = "'backpressure_timeout_sec':1,'max_output_queue':100000");
    client_connect_small(&slow, &daemon);
    client_connect(&fast, &daemon);
    client_expect_quiet(&slow);
    client_expect_quiet(&fast);
    memset(bulk, 'x', sizeof bulk - 1);
    for (int i = 0; i < 40; i++) {
        client_send(&fast, SAY("{'method':'n','params':[%d,'%s']}"), i, bulk);
        client_expect(&fast, "{'method':'n','params':[%d,'%s']}", i, bulk);
    }
    client_expect_quiet(&fast);
    daemon_wait_log(&daemon, "client=1.*did not read for backpressure_timeout_sec");
    client_close(&slow);
    client_close(&fast);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(agents_worker_that_dies_keeps_its_clients)
{
    struct daemon daemon;
    struct client a, b;
    START(&daemon, .pools = AGENTS(2, REWRITE));
    client_connect(&a, &daemon);
    client_connect(&b, &daemon);
    long of_a = client_pid(&a, "1", NULL), of_b = client_pid(&b, "1", NULL);
    client_request(&a, "'x'", NULL, "die", NULL);
    client_error(&a, "'x'", -32000, "worker exited before answering");
    ck_assert_int_eq(client_pid(&b, "2", NULL), of_b);
    long again = client_pid(&a, "2", NULL);
    ck_assert_int_ne(again, of_a);
    ck_assert_int_ne(again, of_b);
    client_close(&a);
    client_close(&b);
    daemon_stop(&daemon);
}
END_TEST

/* --- cancelling --- */

/* What the worker got last, as it reports it. */
static void expect_cancelled(const char *protocol, const char *line)
{
    struct daemon daemon;
    struct client leaving, staying;
    char pools[200];
    snprintf(pools, sizeof pools, AGENTS(1, "'ids':'rewrite','clients':'sticky'%s%s"),
             protocol[0] != '\0' ? ",'protocol':" : "", protocol);
    START(&daemon, .pools = pools, .arguments = {"--log-level", "debug"});
    client_connect(&leaving, &daemon);
    client_connect(&staying, &daemon);
    client_expect_quiet(&staying);
    client_request(&leaving, "'x'", NULL, "no_answer", NULL);
    daemon_wait_log(&daemon, "client=1.*forwarding a message .id x");
    client_close(&leaving);
    daemon_wait_log(&daemon, "client=1.*disconnected");
    /* The test worker answers a request only, so a cancellation leaves nothing behind but this. */
    struct span result = client_ask(&staying, "1", NULL, "last_note", NULL);
    ck_assert_msg(span_is(result, line), "%.*s", (int)result.len, result.data);
    client_close(&staying);
    daemon_stop(&daemon);
}

START_TEST(agents_requests_of_a_leaving_client_are_cancelled)
{
    expect_cancelled("'mcp'", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                              "\"params\":{\"requestId\":4}}");
    expect_cancelled("'acp'", "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\","
                              "\"params\":{\"requestId\":4}}");
    expect_cancelled("'lsp'", "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\","
                              "\"params\":{\"id\":4}}");
    expect_cancelled("", "null");
}
END_TEST

START_TEST(agents_client_cancels_its_own)
{
    struct daemon daemon;
    struct client a, b;
    START(&daemon, .pools = AGENTS(1, "'ids':'rewrite'"));
    client_connect(&a, &daemon);
    client_connect(&b, &daemon);
    client_request(&a, "7", NULL, "no_answer", NULL);
    client_send(&a, "{'method':'$/cancelRequest','params':{'id':7},'x':7}");
    struct span result = client_ask(&a, "1", NULL, "last_note", NULL);
    ck_assert(span_is(result, "{\"method\":\"$/cancelRequest\",\"params\":{\"id\":2},\"x\":7}"));
    client_send(&b, "{'method':'$/cancelRequest','params':{'id':7},'x':8}");
    result = client_ask(&b, "1", NULL, "last_note", NULL);
    ck_assert(span_is(result, "{\"method\":\"$/cancelRequest\",\"params\":{\"id\":2},\"x\":7}"));
    client_close(&a);
    client_close(&b);
    daemon_stop(&daemon);
}
END_TEST

/* --- time limits --- */

START_TEST(agents_requests_time_out)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = AGENTS(1, "'ids':'rewrite','request_timeout_sec':1"));
    client_connect(&client, &daemon);
    client_ask(&client, "1", NULL, "hold", NULL);
    int64_t start = now_ms();
    client_request(&client, "'slow'", NULL, "echo", NULL);
    client_error(&client, "'slow'", -32001, "timed out");
    ck_assert_int_ge(now_ms() - start, 1000);
    /* The late answer comes to nobody. */
    client_ask(&client, "2", NULL, "release", NULL);
    client_expect_quiet(&client);
    ck_assert(!daemon_logged(&daemon, "WARN.*discarded"));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agents: sticky");
    TCase *sticky = harness_case(suite, "sticky");
    TCase *requests = harness_case(suite, "requests that are given up");
    tcase_add_test(sticky, agents_clients_stay_with_their_worker);
    tcase_add_test(sticky, agents_notifications_go_to_all_clients_of_the_worker);
    tcase_add_test(sticky, agents_equal_ids_and_tokens_of_many_clients);
    tcase_add_test(sticky, agents_ids_come_back_as_they_were_spelled);
    tcase_add_test(sticky, agents_large_messages_are_rewritten);
    tcase_add_test(sticky, agents_sessions_are_learned_and_owned);
    tcase_add_test(sticky, agents_questions_that_nobody_can_be_meant_by);
    tcase_add_test(sticky, agents_slow_client_does_not_stop_the_others_for_ever);
    tcase_add_test(sticky, agents_worker_that_dies_keeps_its_clients);
    tcase_add_test(requests, agents_requests_of_a_leaving_client_are_cancelled);
    tcase_add_test(requests, agents_client_cancels_its_own);
    tcase_add_test(requests, agents_requests_time_out);
    return harness_run(suite);
}
