/* DESIGN 2, "Ids", "Pending requests", "Replies from clients". */
#include "build_config.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"

/* One worker that holds its answers, and two clients. */
static void start_holding(struct daemon *daemon, struct client *first, struct client *second)
{
    START(daemon, .instances = 1);
    client_connect(first, daemon);
    client_connect(second, daemon);
    client_ask(first, "'h'", "s", "hold", NULL);
}

static void stop_both(struct daemon *daemon, struct client *first, struct client *second)
{
    client_close(first);
    client_close(second);
    daemon_stop(daemon);
}

/* All in flight at once: none is the same as another. */
START_TEST(design_ids_that_differ)
{
    static const char *const ids[] = {
        "1", "'1'", "'1.0'", "1.5", "1.50", "-1", "''", "'a'", "'A'", "'a '", "'null'", "0",
        "12345678901234567890", "12345678901234567891", "1e400", "'\\u0000'",
    };
    size_t count = sizeof ids / sizeof ids[0];
    struct daemon daemon;
    struct client client, other;
    start_holding(&daemon, &client, &other);
    for (size_t i = 0; i < count; i++)
        client_request(&client, ids[i], "s", "echo", NULL);
    client_request(&client, "'r'", "s", "release", NULL);
    for (size_t i = 0; i < count; i++)
        client_result(&client, ids[i]);
    client_result(&client, "'r'");
    stop_both(&daemon, &client, &other);
}
END_TEST

/* The same value, written in two ways: the second is a duplicate of the first. */
static const char *const same_ids[][2] = {
    {"1", "1.0"},       {"1", "1e0"},         {"100", "1E+2"},  {"1", "10e-1"},
    {"0", "-0"},        {"'ab'", "'a\\u0062'"}, {"'/'", "'\\/'"}, {"'\\u00e9'", "'\xc3\xa9'"},
    {"1", "1.00000000000000000001"},
    {"'\\u00E9'", "'\\u00e9'"}, {"'\\ud83d\\ude8c'", "'\xf0\x9f\x9a\x8c'"},
};

START_TEST(design_ids_that_are_the_same)
{
    struct daemon daemon;
    struct client client, other;
    const char *const *pair = same_ids[_i];
    start_holding(&daemon, &client, &other);
    client_request(&client, pair[0], "s", "plain", "1");
    client_request(&client, pair[1], "s", "plain", "2");
    struct span line = client_line(&client);
    ck_assert_msg(json_long(json_get(line, "error.code"), 0) == -32600, "%.*s", (int)line.len,
                  line.data);
    client_request(&client, "'r'", "s", "release", NULL);
    ck_assert(span_is(client_result(&client, pair[0]), "1"));
    client_result(&client, "'r'");
    client_request(&client, pair[1], "s", "plain", "3");
    ck_assert(span_is(client_result(&client, pair[1]), "3"));
    stop_both(&daemon, &client, &other);
}
END_TEST

/* A worker may write the id in its own way; the answer passes as it wrote it. */
START_TEST(design_answer_with_the_id_written_differently)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "answer_as", "{'id':1.0}");
    client_result(&client, "1.0");
    client_request(&client, "'ab'", NULL, "answer_as", "{'id':'\\u0061b'}");
    client_result(&client, "'\\u0061b'");
    client_request(&client, "1", NULL, "answer_as", "{'id':'1'}");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* {"\u0069d":5} is a request with the id 5: its answer comes through, and not a second one. */
START_TEST(design_keys_with_escapes)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_send(&client, "{'\\u0069d':5,'method':'say_only','params':"
                         "{'message':{'i\\u0064':5,'re\\u0073ult':'once'}}}");
    client_expect(&client, "{'i\\u0064':5,'re\\u0073ult':'once'}");
    client_send(&client, "{'session\\u0049d':'s','method':'notify','params':{'session':'s'}}");
    client_expect(&client,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':0,'pad':''}}");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_duplicate_keys_the_last_wins)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_send(&client, "{'id':1,'id':2,'method':'plain','params':0,'id':3}");
    client_expect(&client, "{'jsonrpc':'2.0','id':3,'result':0}");
    client_send(&client, "{'id':[],'sessionId':7,'id':4,'sessionId':'s'}");
    client_result(&client, "4");
    client_send(&client, "{'id':4,'id':null,'method':'say_only','params':"
                         "{'message':{'id':4,'result':'not asked'}}}");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_id_null_is_no_id)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'max_pending_requests':1");
    client_connect(&client, &daemon);
    for (int i = 0; i < 5; i++)
        client_send(&client, "{'id':null,'method':'no_answer'}");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* The second client's request waits, and what it sent behind it, in order; then each gets its own
 * answer. */
START_TEST(design_same_id_of_two_clients_at_one_worker)
{
    struct daemon daemon;
    struct client first, second;
    start_holding(&daemon, &first, &second);
    client_request(&first, "1", "s", "plain", "'first'");
    client_request(&first, NULL, "s", "notify", "{'n':1}");
    ck_assert(span_is(json_get(client_line(&first), "method"), "\"note\""));
    client_request(&second, "1", NULL, "plain", "'second'");
    client_request(&second, "2", NULL, "plain", "'third'");
    client_request(&second, "3", "t", "plain", "'fourth'");
    client_request(&first, "'r'", "s", "release", NULL);
    client_expect(&first, "{'jsonrpc':'2.0','id':1,'sessionId':'s','result':'first'}");
    client_result(&first, "'r'");
    client_expect(&second, "{'jsonrpc':'2.0','id':1,'result':'second'}");
    client_expect(&second, "{'jsonrpc':'2.0','id':2,'result':'third'}");
    client_expect(&second, "{'jsonrpc':'2.0','id':3,'sessionId':'t','result':'fourth'}");
    client_expect_quiet(&first);
    client_expect_quiet(&second);
    stop_both(&daemon, &first, &second);
}
END_TEST

/* Without a session there is no need to wait: another worker has the id free. */
START_TEST(design_same_id_goes_to_another_worker)
{
    struct daemon daemon;
    struct client first, second;
    long pids[2];
    START(&daemon, .instances = 2);
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    client_meet_workers(&first, 2, pids);
    long busy = client_pid(&first, "'p'", "s");
    client_ask(&first, "'h'", "s", "hold", NULL);
    client_request(&first, "1", "s", "plain", "'first'");
    client_request(&first, NULL, "s", "notify", "{'n':1}");
    ck_assert(span_is(json_get(client_line(&first), "method"), "\"note\""));
    for (int i = 0; i < 4; i++)
        ck_assert_int_ne(client_pid(&second, "1", NULL), busy);
    client_request(&first, "'r'", "s", "release", NULL);
    client_expect(&first, "{'jsonrpc':'2.0','id':1,'sessionId':'s','result':'first'}");
    client_result(&first, "'r'");
    stop_both(&daemon, &first, &second);
}
END_TEST

START_TEST(design_held_client_is_released_when_the_worker_dies)
{
    struct daemon daemon;
    struct client first, second;
    start_holding(&daemon, &first, &second);
    client_request(&first, "1", "s", "plain", "'first'");
    client_request(&first, NULL, "s", "notify", "{'n':1}");
    ck_assert(span_is(json_get(client_line(&first), "method"), "\"note\""));
    client_request(&second, "1", NULL, "plain", "'second'");
    client_request(&first, NULL, "s", "die", NULL);
    client_error(&first, "1", -32000, "worker exited before answering");
    struct span line = client_line(&second);
    ck_assert(span_is(json_get(line, "id"), "1"));
    ck_assert(json_get(line, "error").data != NULL ||
              span_is(json_get(line, "result"), "\"second\""));
    client_expect_quiet(&second);
    stop_both(&daemon, &first, &second);
}
END_TEST

/* An id that stays in flight: whoever waits for it is told after backpressure_timeout_sec, and
 * goes on. */
START_TEST(design_held_client_is_refused_after_the_timeout)
{
    struct daemon daemon;
    struct client first, second;
    START(&daemon, .instances = 1, .limits = "'backpressure_timeout_sec':1");
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    client_request(&first, "1", "s", "no_answer", NULL);
    client_pid(&first, "'barrier'", "s");
    client_request(&second, "1", NULL, "plain", "'second'");
    client_request(&second, "2", NULL, "plain", "'third'");
    daemon_check_asleep(&daemon);
    client_error(&second, "1", -32000, "id");
    client_expect(&second, "{'jsonrpc':'2.0','id':2,'result':'third'}");
    client_expect_quiet(&first);
    stop_both(&daemon, &first, &second);
}
END_TEST

/* The client that asked is gone, and the worker never answers: its answer could come at any time,
 * so nobody else may have the id. They are told; and a fresh worker has every id free. */
START_TEST(design_id_of_a_gone_client_stays_taken)
{
    struct daemon daemon;
    struct client gone, client;
    START(&daemon, .mode = SETUP_TCP, .instances = 1, .limits = "'backpressure_timeout_sec':1");
    client_connect(&gone, &daemon);
    client_request(&gone, "1", "s", "no_answer", NULL);
    client_pid(&gone, "'barrier'", "s");
    client_abort(&gone);
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "plain", "'mine'");
    client_error(&client, "1", -32000, "still in use");
    client_ask(&client, "2", NULL, "plain", "'mine'");
    client_request(&client, "3", NULL, "die", NULL);
    client_error(&client, "3", -32000, "exited");
    client_ask(&client, "1", NULL, "plain", "'mine'");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_own_id_twice_in_flight)
{
    struct daemon daemon;
    struct client client, other;
    start_holding(&daemon, &client, &other);
    client_request(&client, "7", "s", "plain", "1");
    client_request(&client, "7", "s", "plain", "2");
    client_error(&client, "7", -32600, "id");
    daemon_wait_log(&daemon, " WARN .*7");
    client_request(&client, "'r'", "s", "release", NULL);
    client_expect(&client, "{'jsonrpc':'2.0','id':7,'sessionId':'s','result':1}");
    client_result(&client, "'r'");
    client_request(&client, "7", "s", "plain", "3");
    client_expect(&client, "{'jsonrpc':'2.0','id':7,'sessionId':'s','result':3}");
    stop_both(&daemon, &client, &other);
}
END_TEST

/* Asked by a worker, answered by the session's owner, delivered to the worker that asked. */
static void check_reply(const char *reply)
{
    struct daemon daemon;
    struct client owner, other;
    START(&daemon, .instances = 3);
    client_connect(&owner, &daemon);
    client_connect(&other, &daemon);
    client_ask(&owner, "1", "s", "echo", NULL);
    client_request(&other, "2", "s", "ask", "{'id':'q','params':['?']}");
    client_expect(&owner, "{'jsonrpc':'2.0','id':'q','sessionId':'s','method':'question',"
                          "'params':['?']}");
    client_send(&owner, "%s", reply);
    client_expect(&other, "{'jsonrpc':'2.0','id':2,'sessionId':'s','result':%s}", reply);
    client_expect_quiet(&owner);
    client_close(&owner);
    client_close(&other);
    daemon_stop(&daemon);
}

START_TEST(design_reply_goes_to_the_worker_that_asked)
{
    check_reply("{'jsonrpc':'2.0','id':'q','result':{'a':[1]}}");
    check_reply("{'jsonrpc':'2.0','id':'q','sessionId':'s','error':{'code':1,'message':'no'}}");
}
END_TEST

/* A client may have a request of its own under the same id: the two do not meet. */
START_TEST(design_reply_and_request_with_one_id)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", "s", "ask", "{'id':1}");
    client_expect(&client,
                  "{'jsonrpc':'2.0','id':1,'sessionId':'s','method':'question','params':null}");
    client_send(&client, "{'id':1,'result':'mine'}");
    client_expect(&client,
                  "{'jsonrpc':'2.0','id':1,'sessionId':'s','result':{'id':1,'result':'mine'}}");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Two workers ask one client with the same id: each gets the reply that was meant for it. */
START_TEST(design_two_workers_ask_with_one_id)
{
    struct daemon daemon;
    struct client client, one, two;
    long pids[2];
    START(&daemon, .instances = 2);
    client_connect(&client, &daemon);
    client_connect(&one, &daemon);
    client_connect(&two, &daemon);
    client_meet_workers(&client, 2, pids);
    ck_assert_int_ne(client_pid(&client, "1", "one"), client_pid(&client, "1", "two"));
    client_request(&one, "'a'", "one", "ask", "{'id':7}");
    client_request(&two, "'b'", "two", "ask", "{'id':7}");
    for (int i = 0; i < 2; i++) {
        struct span session = json_text(json_get(client_line(&client), "sessionId"));
        client_send(&client, "{'id':7,'result':'for %.*s'}", (int)session.len, session.data);
    }
    client_expect(&one, "{'jsonrpc':'2.0','id':'a','sessionId':'one','result':"
                        "{'id':7,'result':'for one'}}");
    client_expect(&two, "{'jsonrpc':'2.0','id':'b','sessionId':'two','result':"
                        "{'id':7,'result':'for two'}}");
    client_close(&client);
    client_close(&one);
    client_close(&two);
    daemon_stop(&daemon);
}
END_TEST

/* It is routed like any other message (spec 6.1.3); no request, so its id is not in flight. */
START_TEST(design_reply_that_nobody_asked_for)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'max_pending_requests':1");
    client_connect(&client, &daemon);
    for (int i = 0; i < 3; i++)
        client_send(&client, "{'id':1,'result':'who asked?'}");
    client_request(&client, "1", NULL, "reply_text", NULL);
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'result':{'id':1,'result':'who asked?'}}");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* A worker that asks into the void is told so; in strict mode nobody tells it anything. */
static void check_ask_nobody(const char *members, const char *told)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .members = members);
    client_connect(&client, &daemon);
    client_request(&client, NULL, NULL, "say_only",
                   "{'message':{'id':9,'sessionId':'nobody','method':'question'}}");
    daemon_wait_log(&daemon, " WARN .*\\[worker=");
    client_expect_quiet(&client);
    struct span reply = client_ask(&client, "1", NULL, "reply_text", NULL);
    ck_assert_msg(span_is(json_get(reply, "error.code"), told) ||
                  (told[0] == '\0' && span_is(reply, "null")), "%.*s", (int)reply.len, reply.data);
    client_close(&client);
    daemon_stop(&daemon);
}

START_TEST(design_worker_that_asks_nobody_is_told)
{
    check_ask_nobody(NULL, "-32000");
    check_ask_nobody("'strict':true", "");
}
END_TEST

/* The owner goes before it replies. */
START_TEST(design_worker_is_told_when_the_owner_goes)
{
    struct daemon daemon;
    struct client owner, other;
    START(&daemon, .instances = 1);
    client_connect(&owner, &daemon);
    client_connect(&other, &daemon);
    client_ask(&owner, "1", "s", "echo", NULL);
    client_request(&other, "2", "s", "ask", "{'id':'q'}");
    client_line(&owner);
    client_close(&owner);
    struct span result = client_result(&other, "2");
    ck_assert(span_is(json_get(result, "id"), "\"q\""));
    ck_assert(span_is(json_get(result, "error.code"), "-32000"));
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

static void add_reply_tests(Suite *suite)
{
    TCase *replies = harness_case(suite, "replies");
    tcase_add_test(replies, design_reply_goes_to_the_worker_that_asked);
    tcase_add_test(replies, design_reply_and_request_with_one_id);
    tcase_add_test(replies, design_two_workers_ask_with_one_id);
    tcase_add_test(replies, design_reply_that_nobody_asked_for);
    tcase_add_test(replies, design_worker_that_asks_nobody_is_told);
    tcase_add_test(replies, design_worker_is_told_when_the_owner_goes);
}

int main(void)
{
    Suite *suite = suite_create("design: ids");
    TCase *values = harness_case(suite, "values");
    tcase_add_test(values, design_ids_that_differ);
    tcase_add_loop_test(values, design_ids_that_are_the_same, 0,
                        (int)(sizeof same_ids / sizeof same_ids[0]));
    tcase_add_test(values, design_answer_with_the_id_written_differently);
    tcase_add_test(values, design_keys_with_escapes);
    tcase_add_test(values, design_duplicate_keys_the_last_wins);
    tcase_add_test(values, design_id_null_is_no_id);
    TCase *pending = harness_case(suite, "pending");
    tcase_add_test(pending, design_same_id_of_two_clients_at_one_worker);
    tcase_add_test(pending, design_same_id_goes_to_another_worker);
    tcase_add_test(pending, design_held_client_is_released_when_the_worker_dies);
    tcase_add_test(pending, design_held_client_is_refused_after_the_timeout);
    tcase_add_test(pending, design_id_of_a_gone_client_stays_taken);
    tcase_add_test(pending, design_own_id_twice_in_flight);
    add_reply_tests(suite);
    return harness_run(suite);
}
