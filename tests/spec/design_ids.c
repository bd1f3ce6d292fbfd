/* DESIGN 2, "Ids", "Pending requests", "Replies from clients". */
#include "build_config.h"

#include "harness.h"

/* A daemon with one worker, which holds its answers. */
static struct daemon *start_holding(void)
{
    struct daemon *daemon = START(.instances = 1);
    client_ask(client_connect(daemon), "'h'", NULL, "hold", NULL);
    return daemon;
}

/* A request of the session s with the id 1, known to be at its worker. */
static void put_in_flight(struct client *client)
{
    client_request(client, "1", "s", "plain", "'first'");
    client_request(client, NULL, "s", "notify", "{'n':1}");
    expect_member(client_line(client), "method", "'note'");
}

/* All are in flight at once: no two are equal. */
TEST(design_ids_that_differ)
{
    static const char *const ids[] = {
        "1",
        "'1'",
        "'1.0'",
        "1.5",
        "1.500000000000001",
        "-1",
        "''",
        "'a'",
        "'A'",
        "'a '",
        "'null'",
        "0",
        "12345678901234567890",
        "12345678901234567891",
        "1e300",
        "'\\u0000'",
    };
    struct client *client = client_connect(start_holding());
    for (size_t i = 0; i < COUNT(ids); i++)
        client_request(client, ids[i], "s", "echo", NULL);
    client_request(client, "'r'", "s", "release", NULL);
    for (size_t i = 0; i < COUNT(ids); i++)
        client_result(client, ids[i]);
    client_result(client, "'r'");
}

/* Two spellings of one value: the second is a duplicate of the first. */
static const char *const same_ids[][2] = {
    {"1", "1.0"},
    {"1", "1e0"},
    {"100", "1E+2"},
    {"1", "10e-1"},
    {"0", "-0"},
    {"1.5", "1.50"},
    {"0.1", "0.10000000000000001"},
    {"1e23", "9.9999999999999992e22"},
    {"0", "1e-400"},
    {"'ab'", "'a\\u0062'"},
    {"'/'", "'\\/'"},
    {"'\\u00e9'", "'\xc3\xa9'"},
    {"1", "1.00000000000000000001"},
    {"'\\u00E9'", "'\\u00e9'"},
    {"'\\ud83d\\ude8c'", "'\xf0\x9f\x9a\x8c'"},
};

TEST_ROWS(design_ids_that_are_the_same, COUNT(same_ids))
{
    const char *const *pair = same_ids[row];
    struct client *client = client_connect(start_holding());
    client_request(client, pair[0], "s", "plain", "1");
    client_request(client, pair[1], "s", "plain", "2");
    expect_member(client_line(client), "error.code", "-32600");
    client_request(client, "'r'", "s", "release", NULL);
    ck_assert(span_is(client_result(client, pair[0]), "1"));
    client_result(client, "'r'");
    client_request(client, pair[1], "s", "plain", "3");
    ck_assert(span_is(client_result(client, pair[1]), "3"));
}

/* A worker may spell the id in another way; the answer passes unchanged. */
TEST(design_answer_with_the_id_written_differently)
{
    struct client *client = client_connect(START(.instances = 1));
    client_request(client, "1", NULL, "answer_as", "{'id':1.0}");
    client_result(client, "1.0");
    client_request(client, "'ab'", NULL, "answer_as", "{'id':'\\u0061b'}");
    client_result(client, "'\\u0061b'");
    client_request(client, "1", NULL, "answer_as", "{'id':'1'}");
    client_expect_quiet(client);
}

/* {"\u0069d":5} is a request with the id 5: its answer is delivered. */
TEST(design_keys_with_escapes)
{
    struct client *client = client_connect(START(.instances = 1));
    client_send(client, "{'\\u0069d':5,'method':'say_only','params':"
                        "{'message':{'i\\u0064':5,'re\\u0073ult':'once'}}}");
    client_expect(client, "{'i\\u0064':5,'re\\u0073ult':'once'}");
    client_send(client, "{'session\\u0049d':'s','method':'notify','params':{'session':'s'}}");
    client_expect_note(client, "s", 0);
    client_expect_quiet(client);
}

TEST(design_duplicate_keys_the_last_wins)
{
    struct client *client = client_connect(START(.instances = 1));
    client_send(client, "{'id':1,'id':2,'method':'plain','params':0,'id':3}");
    client_expect(client, "{'jsonrpc':'2.0','id':3,'result':0}");
    client_send(client, "{'id':[],'sessionId':7,'id':4,'sessionId':'s'}");
    client_result(client, "4");
    client_send(client, "{'id':4,'id':null,'method':'say_only','params':"
                        "{'message':{'id':4,'result':'not asked'}}}");
    client_expect_quiet(client);
}

TEST(design_id_null_is_no_id)
{
    struct client *client =
        client_connect(START(.instances = 1, .limits = "'max_pending_requests':1"));
    for (int i = 0; i < 5; i++)
        client_send(client, "{'id':null,'method':'no_answer'}");
    client_expect_quiet(client);
}

/* The second client's request waits, as do its later messages, in order; then each client gets its
 * own answers. Of the answers that the worker holds, the last one comes first. */
TEST(design_same_id_of_two_clients_at_one_worker)
{
    struct daemon *daemon = start_holding();
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    put_in_flight(first);
    client_request(second, "1", NULL, "plain", "'second'");
    client_request(second, "2", NULL, "plain", "'third'");
    client_request(second, "3", "t", "plain", "'fourth'");
    client_request(first, "'r'", "s", "release", "{'reverse':true}");
    client_expect(first, "{'jsonrpc':'2.0','id':1,'sessionId':'s','result':'first'}");
    client_result(first, "'r'");
    client_expect(second, "{'jsonrpc':'2.0','id':1,'result':'second'}");
    client_expect(second, "{'jsonrpc':'2.0','id':2,'result':'third'}");
    client_expect(second, "{'jsonrpc':'2.0','id':3,'sessionId':'t','result':'fourth'}");
    client_expect_quiet(first);
    client_expect_quiet(second);
}

/* A request without a session does not wait: the id is free at another worker. */
TEST(design_same_id_goes_to_another_worker)
{
    long pids[2];
    struct daemon *daemon = START(.instances = 2);
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    client_meet_workers(first, 2, pids);
    long busy = client_pid(first, "'p'", "s");
    client_ask(first, "'h'", "s", "hold", NULL);
    put_in_flight(first);
    for (int i = 0; i < 4; i++)
        ck_assert_int_ne(client_pid(second, "1", NULL), busy);
    client_request(first, "'r'", "s", "release", NULL);
    client_expect(first, "{'jsonrpc':'2.0','id':1,'sessionId':'s','result':'first'}");
    client_result(first, "'r'");
}

TEST(design_held_client_is_released_when_the_worker_dies)
{
    struct daemon *daemon = start_holding();
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    put_in_flight(first);
    client_request(second, "1", NULL, "plain", "'second'");
    client_request(first, NULL, "s", "die", NULL);
    client_error(first, "1", -32000, DIED);
    struct span line = client_line(second);
    expect_member(line, "id", "1");
    ck_assert(json_get(line, "error").data != NULL ||
              span_is(json_get(line, "result"), "\"second\""));
    client_expect_quiet(second);
}

/* The id stays in flight: the request that waits for it gets an error after
 * backpressure_timeout_sec, and the client's next one is served. */
TEST(design_held_client_is_refused_after_the_timeout)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'backpressure_timeout_sec':1");
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    client_request(first, "1", "s", "no_answer", NULL);
    client_pid(first, "'barrier'", "s");
    client_request(second, "1", NULL, "plain", "'second'");
    client_request(second, "2", NULL, "plain", "'third'");
    daemon_check_asleep(daemon);
    client_error(second, "1", -32000, "id");
    client_expect(second, "{'jsonrpc':'2.0','id':2,'result':'third'}");
    client_expect_quiet(first);
}

/* The client that asked is gone, and the worker never answers. The answer could come at any time:
 * requests of other clients with the id get an error, until a new worker has every id free. */
TEST(design_id_of_a_gone_client_stays_taken)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1,
                                  .limits = "'backpressure_timeout_sec':1");
    struct client *gone = client_connect(daemon);
    client_request(gone, "1", "s", "no_answer", NULL);
    client_pid(gone, "'barrier'", "s");
    client_abort(gone);
    struct client *client = client_connect(daemon);
    client_request(client, "1", NULL, "plain", "'mine'");
    client_error(client, "1", -32000, "still in use");
    client_ask(client, "2", NULL, "plain", "'mine'");
    client_crash(client, "3", NULL, NULL);
    client_ask(client, "1", NULL, "plain", "'mine'");
}

TEST(design_own_id_twice_in_flight)
{
    struct daemon *daemon = start_holding();
    struct client *client = client_connect(daemon);
    client_request(client, "7", "s", "plain", "1");
    client_request(client, "7", "s", "plain", "2");
    client_error(client, "7", -32600, "id");
    daemon_wait_log(daemon, " WARN .*7");
    client_request(client, "'r'", "s", "release", NULL);
    client_expect(client, "{'jsonrpc':'2.0','id':7,'sessionId':'s','result':1}");
    client_result(client, "'r'");
    client_request(client, "7", "s", "plain", "3");
    client_expect(client, "{'jsonrpc':'2.0','id':7,'sessionId':'s','result':3}");
}

/* A worker asks, the session's owner replies, and the reply reaches that worker. */
static const char *const replies[] = {
    "{'jsonrpc':'2.0','id':'q','result':{'a':[1]}}",
    "{'jsonrpc':'2.0','id':'q','sessionId':'s','error':{'code':1,'message':'no'}}",
};

TEST_ROWS(design_reply_goes_to_the_worker_that_asked, COUNT(replies))
{
    struct daemon *daemon = START(.instances = 3);
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    client_ask(owner, "1", "s", "echo", NULL);
    client_request(other, "2", "s", "ask", "{'id':'q','params':['?']}");
    client_expect(owner, "{'jsonrpc':'2.0','id':'q','sessionId':'s','method':'question',"
                         "'params':['?']}");
    client_send(owner, "%s", replies[row]);
    client_expect(other, "{'jsonrpc':'2.0','id':2,'sessionId':'s','result':%s}", replies[row]);
    client_expect_quiet(owner);
}

/* A client's own request may have the id of a worker's request to it. */
TEST(design_reply_and_request_with_one_id)
{
    struct client *client = client_connect(START(.instances = 1));
    client_request(client, "1", "s", "ask", "{'id':1}");
    client_expect(client,
                  "{'jsonrpc':'2.0','id':1,'sessionId':'s','method':'question','params':null}");
    client_send(client, "{'id':1,'result':'mine'}");
    client_expect(client,
                  "{'jsonrpc':'2.0','id':1,'sessionId':'s','result':{'id':1,'result':'mine'}}");
}

/* Two workers ask one client with the same id: each gets its own reply. */
TEST(design_two_workers_ask_with_one_id)
{
    long pids[2];
    struct daemon *daemon = START(.instances = 2);
    struct client *client = client_connect(daemon), *one = client_connect(daemon);
    struct client *two = client_connect(daemon);
    client_meet_workers(client, 2, pids);
    ck_assert_int_ne(client_pid(client, "1", "one"), client_pid(client, "1", "two"));
    client_request(one, "'a'", "one", "ask", "{'id':7}");
    client_request(two, "'b'", "two", "ask", "{'id':7}");
    for (int i = 0; i < 2; i++) {
        struct span session = json_text(json_get(client_line(client), "sessionId"));
        client_send(client, "{'id':7,'result':'for %.*s'}", (int)session.len, session.data);
    }
    client_expect(one, "{'jsonrpc':'2.0','id':'a','sessionId':'one','result':"
                       "{'id':7,'result':'for one'}}");
    client_expect(two, "{'jsonrpc':'2.0','id':'b','sessionId':'two','result':"
                       "{'id':7,'result':'for two'}}");
}

/* The reply is routed like any other message (spec 6.1.3); it puts no id in flight. */
TEST(design_reply_to_no_request)
{
    struct client *client =
        client_connect(START(.instances = 1, .limits = "'max_pending_requests':1"));
    for (int i = 0; i < 3; i++)
        client_send(client, "{'id':1,'result':'who asked?'}");
    client_request(client, "1", NULL, "reply_text", NULL);
    client_expect(client, "{'jsonrpc':'2.0','id':1,'result':{'id':1,'result':'who asked?'}}");
}

/* The ids of a client that left with requests which are never answered are in no other client's way
 * for ever. */
TEST(design_abandoned_id_is_free_in_the_end)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'abandoned_id_sec':1");
    struct client *leaving = client_connect(daemon), *other = client_connect(daemon);
    for (int i = 0; i < 10; i++)
        client_request(leaving, test_format("%d", i), NULL, "no_answer", NULL);
    client_ask(leaving, "'last'", NULL, "echo", NULL);
    client_close(leaving);
    for (int i = 0; i < 10; i++)
        client_request(other, test_format("%d", i), NULL, "plain", test_format("%d", i));
    for (int i = 0; i < 10; i++)
        ck_assert(span_is(client_result(other, test_format("%d", i)), test_format("%d", i)));
    daemon_wait_log(daemon, " WARN .*given up.*abandoned_id_sec");
    daemon_check_asleep(daemon);
}

/* The worker gets an error; in strict mode it gets none. */
TEST_ROWS(design_request_to_no_session_is_refused, 2)
{
    bool strict = row == 1;
    struct daemon *daemon = START(.instances = 1, .members = strict ? "'strict':true" : NULL);
    struct client *client = client_connect(daemon);
    client_request(client, NULL, NULL, "say_only",
                   "{'message':{'id':9,'sessionId':'nobody','method':'question'}}");
    daemon_wait_log(daemon, " WARN .*\\[worker=");
    client_expect_quiet(client);
    struct span reply = client_ask(client, "1", NULL, "reply_text", NULL);
    if (strict)
        ck_assert(span_is(reply, "null"));
    else
        expect_member(reply, "error.code", "-32000");
}

/* The owner disconnects before it replies. */
TEST(design_request_to_a_gone_owner_is_refused)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    client_ask(owner, "1", "s", "echo", NULL);
    client_request(other, "2", "s", "ask", "{'id':'q'}");
    client_line(owner);
    client_close(owner);
    struct span result = client_result(other, "2");
    expect_member(result, "id", "'q'");
    expect_member(result, "error.code", "-32000");
}
