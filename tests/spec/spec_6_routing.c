/* Specification, chapter 6: which worker, which client. */
#include "build_config.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"

/* Three workers that are known to run, and a client. */
static void start_three(struct daemon *daemon, struct client *client, long pids[3])
{
    START(daemon, .instances = 3);
    client_connect(client, daemon);
    client_meet_workers(client, 3, pids);
}

START_TEST(spec_6_1_1_new_sessions_take_turns)
{
    struct daemon daemon;
    struct client client;
    long pids[9];
    start_three(&daemon, &client, pids);
    for (int i = 0; i < 9; i++) {
        char session[8];
        snprintf(session, sizeof session, "s%d", i);
        pids[i] = client_pid(&client, "1", session);
        if (i >= 3)
            ck_assert_int_eq(pids[i], pids[i - 3]);
    }
    ck_assert(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2]);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_1_1_new_session_is_mapped_by_a_notification_too)
{
    struct daemon daemon;
    struct client client;
    long pids[3];
    start_three(&daemon, &client, pids);
    client_request(&client, NULL, "s", "notify", "{'n':1}");
    client_expect(&client,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':0,'pad':''}}");
    long pid = client_pid(&client, "1", "s");
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(client_pid(&client, "1", "s"), pid);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_1_1_first_client_is_the_owner)
{
    struct daemon daemon;
    struct client first, second;
    long pids[3];
    start_three(&daemon, &first, pids);
    client_connect(&second, &daemon);
    client_ask(&second, "1", "s", "echo", NULL);
    client_ask(&first, "1", "s", "notify", "{'n':1}");
    client_expect(&second,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':0,'pad':''}}");
    client_expect_quiet(&first);
    client_close(&first);
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_1_2_existing_session_routes_to_its_worker)
{
    struct daemon daemon;
    struct client client, other;
    long pids[3];
    start_three(&daemon, &client, pids);
    client_connect(&other, &daemon);
    for (int i = 0; i < 3; i++) {
        char session[8];
        snprintf(session, sizeof session, "s%d", i);
        pids[i] = client_pid(&client, "1", session);
    }
    for (int i = 0; i < 30; i++) {
        char session[8];
        snprintf(session, sizeof session, "s%d", i * 7 % 3);
        ck_assert_int_eq(client_pid(i % 2 ? &client : &other, "1", session), pids[i * 7 % 3]);
    }
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* Not even while its worker is busy and the others are not. */
START_TEST(spec_6_1_2_session_is_not_reassigned)
{
    struct daemon daemon;
    struct client client;
    long pids[3];
    start_three(&daemon, &client, pids);
    long pid = client_pid(&client, "1", "s");
    client_ask(&client, "2", "s", "hold", NULL);
    for (int i = 10; i < 20; i++)
        client_send(&client, "{'id':%d,'sessionId':'s','method':'echo'}", i);
    client_request(&client, "3", "s", "release", NULL);
    for (int i = 10; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        ck_assert_int_eq(json_long(json_get(client_result(&client, id), "pid"), -1), pid);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_1_3_messages_without_session_take_turns)
{
    struct daemon daemon;
    struct client client;
    long pids[12];
    start_three(&daemon, &client, pids);
    for (int i = 0; i < 12; i++) {
        pids[i] = client_pid(&client, "1", NULL);
        if (i >= 3)
            ck_assert_int_eq(pids[i], pids[i - 3]);
    }
    ck_assert(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2]);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_1_3_turns_go_over_all_pools)
{
    struct daemon daemon;
    struct client client;
    long pids[6];
    START(&daemon, .pools = POOL("a", 1, "") "," POOL("b", 2, ""));
    client_connect(&client, &daemon);
    client_meet_workers(&client, 3, pids);
    for (int i = 0; i < 6; i++) {
        pids[i] = client_pid(&client, "1", NULL);
        if (i >= 3)
            ck_assert_int_eq(pids[i], pids[i - 3]);
    }
    ck_assert(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2]);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* With room for one session, a thousand messages without one need none. */
START_TEST(spec_6_1_3_creates_no_session)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 2, .limits = "'max_sessions':1");
    client_connect(&client, &daemon);
    for (int i = 0; i < 1000; i++)
        client_send(&client, "{'id':%d,'method':'plain'}", i);
    for (int i = 0; i < 1000; i++)
        ck_assert(json_get(client_line(&client), "result").data != NULL);
    client_ask(&client, "1", "the only one", "echo", NULL);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Two clients with requests in flight at one worker: each gets its own answer. */
START_TEST(spec_6_2_id_belongs_to_its_client)
{
    struct daemon daemon;
    struct client first, second;
    START(&daemon, .instances = 1);
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    client_ask(&first, "'h'", NULL, "hold", NULL);
    for (int i = 0; i < 5; i++) {
        client_send(&first, "{'id':'first %d','method':'plain','params':'first %d'}", i, i);
        client_send(&second, "{'id':'second %d','method':'plain','params':'second %d'}", i, i);
    }
    client_request(&first, "'r'", NULL, "release", NULL);
    for (int i = 0; i < 5; i++) {
        client_expect(&first, "{'jsonrpc':'2.0','id':'first %d','result':'first %d'}", i, i);
        client_expect(&second, "{'jsonrpc':'2.0','id':'second %d','result':'second %d'}", i, i);
    }
    client_close(&first);
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

/* The same id in flight at two workers: two entries. */
START_TEST(spec_6_2_id_belongs_to_its_worker)
{
    struct daemon daemon;
    struct client first, second;
    long pids[3];
    start_three(&daemon, &first, pids);
    client_connect(&second, &daemon);
    long one = client_pid(&first, "'a'", "one"), two = client_pid(&second, "'a'", "two");
    ck_assert_int_ne(one, two);
    client_ask(&first, "'h'", "one", "hold", NULL);
    client_ask(&second, "'h'", "two", "hold", NULL);
    client_request(&first, "7", "one", "echo", "'first'");
    client_request(&second, "7", "two", "echo", "'second'");
    client_request(&second, "'r'", "two", "release", NULL);
    ck_assert_int_eq(json_long(json_get(client_result(&second, "7"), "pid"), -1), two);
    client_request(&first, "'r'", "one", "release", NULL);
    ck_assert_int_eq(json_long(json_get(client_result(&first, "7"), "pid"), -1), one);
    client_close(&first);
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

/* The answer's sessionId does not matter, its id does. */
START_TEST(spec_6_3_1_response_goes_to_the_one_who_asked)
{
    struct daemon daemon;
    struct client owner, asker;
    START(&daemon, .instances = 1);
    client_connect(&owner, &daemon);
    client_connect(&asker, &daemon);
    client_ask(&owner, "1", "s", "echo", NULL);
    client_request(&asker, "2", "s", "plain", "'for the asker'");
    client_expect(&asker, "{'jsonrpc':'2.0','id':2,'sessionId':'s','result':'for the asker'}");
    client_request(&asker, "3", NULL, "garbage",
                   "{'hex':'7b226964223a332c2273657373696f6e4964223a2273222c2265727"
                   "26f72223a307d0a'}");
    client_expect(&asker, "{'id':3,'sessionId':'s','error':0}");
    client_expect_quiet(&owner);
    client_close(&owner);
    client_close(&asker);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_3_1_answered_request_is_forgotten)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_ask(&client, "1", "s", "answer_twice", NULL);
    daemon_wait_log(&daemon, " WARN .*\\[worker=");
    client_expect_quiet(&client);
    client_ask(&client, "1", "s", "echo", NULL);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_3_1_answer_that_nobody_asked_for_is_discarded)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, NULL, "s", "say_only", "{'message':{'id':99,'result':1}}");
    daemon_wait_log(&daemon, " WARN .*\\[worker=");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_3_2_notification_goes_to_the_owner)
{
    struct daemon daemon;
    struct client first, second;
    START(&daemon, .instances = 2);
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    client_ask(&first, "1", "first", "echo", NULL);
    client_ask(&second, "1", "second", "echo", NULL);
    for (int i = 0; i < 10; i++) {
        client_request(&first, NULL, "first", "notify", "{'n':2}");
        client_request(&second, NULL, "second", "notify", "{'n':1}");
    }
    for (int i = 0; i < 20; i++)
        ck_assert(span_is(json_get(client_line(&first), "sessionId"), "\"first\""));
    for (int i = 0; i < 10; i++)
        ck_assert(span_is(json_get(client_line(&second), "sessionId"), "\"second\""));
    client_expect_quiet(&first);
    client_expect_quiet(&second);
    client_close(&first);
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_3_2_notification_to_no_session_is_discarded)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_ask(&client, "1", "s", "notify", "{'n':1,'session':'nobody'}");
    daemon_wait_log(&daemon, " WARN .*\\[worker=.*session");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_6_3_3_unroutable_message_is_discarded)
{
    static const char *const messages[] = {
        "{'jsonrpc':'2.0','method':'log'}",
        "{'jsonrpc':'2.0','method':'log','id':5}",
        "{'jsonrpc':'2.0','result':1}",
        "{'id':null,'error':{}}",
        "{}",
    };
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "'open'", "s", "no_answer", NULL); /* nor is it for who waits */
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        struct text params = {0};
        text_printf(&params, "{'message':%s}", messages[i]);
        daemon_mark_log(&daemon);
        client_request(&client, NULL, "s", "say_only", params.data);
        daemon_wait_log(&daemon, " WARN .*\\[worker=");
        client_expect_quiet(&client);
        text_free(&params);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Order within a session, both ways. */
START_TEST(spec_6_order_within_a_session)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 3);
    client_connect(&client, &daemon);
    for (int i = 0; i < 500; i++)
        client_send(&client, "{'id':%d,'sessionId':'s%d','method':'plain','params':%d}", i, i % 7,
                    i);
    int next[7] = {0, 1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 500; i++) {
        struct span line = client_line(&client);
        long id = json_long(json_get(line, "id"), -1);
        ck_assert_int_ge(id, 0);
        ck_assert_int_eq(id, next[id % 7]);
        next[id % 7] += 7;
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

static void add_response_tests(Suite *suite)
{
    TCase *responses = harness_case(suite, "6.3 from workers");
    tcase_add_test(responses, spec_6_3_1_response_goes_to_the_one_who_asked);
    tcase_add_test(responses, spec_6_3_1_answered_request_is_forgotten);
    tcase_add_test(responses, spec_6_3_1_answer_that_nobody_asked_for_is_discarded);
    tcase_add_test(responses, spec_6_3_2_notification_goes_to_the_owner);
    tcase_add_test(responses, spec_6_3_2_notification_to_no_session_is_discarded);
    tcase_add_test(responses, spec_6_3_3_unroutable_message_is_discarded);
    tcase_add_test(responses, spec_6_order_within_a_session);
}

int main(void)
{
    Suite *suite = suite_create("spec 6: routing");
    TCase *sessions = harness_case(suite, "6.1 sessions");
    tcase_add_test(sessions, spec_6_1_1_new_sessions_take_turns);
    tcase_add_test(sessions, spec_6_1_1_new_session_is_mapped_by_a_notification_too);
    tcase_add_test(sessions, spec_6_1_1_first_client_is_the_owner);
    tcase_add_test(sessions, spec_6_1_2_existing_session_routes_to_its_worker);
    tcase_add_test(sessions, spec_6_1_2_session_is_not_reassigned);
    tcase_add_test(sessions, spec_6_1_3_messages_without_session_take_turns);
    tcase_add_test(sessions, spec_6_1_3_turns_go_over_all_pools);
    tcase_add_test(sessions, spec_6_1_3_creates_no_session);
    TCase *requests = harness_case(suite, "6.2 requests");
    tcase_add_test(requests, spec_6_2_id_belongs_to_its_client);
    tcase_add_test(requests, spec_6_2_id_belongs_to_its_worker);
    add_response_tests(suite);
    return harness_run(suite);
}
