/* Specification, chapter 6: the choice of workers and clients. */
#include "build_config.h"

#include "harness.h"

/* A daemon with three workers that are known to run. */
static struct daemon *start_three(void)
{
    long pids[3];
    struct daemon *daemon = START(.instances = 3);
    client_meet_workers(client_connect(daemon), 3, pids);
    return daemon;
}

/* Requests of new sessions, or without a session, must go to three workers in turns. */
static void check_turns(struct client *client, bool in_sessions)
{
    long pids[12];
    for (int i = 0; i < 12; i++) {
        pids[i] = client_pid(client, "1", in_sessions ? test_format("s%d", i) : NULL);
        if (i >= 3)
            ck_assert_int_eq(pids[i], pids[i - 3]);
    }
    ck_assert(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2]);
}

TEST(spec_6_1_1_new_sessions_take_turns)
{
    check_turns(client_connect(start_three()), true);
}

TEST(spec_6_1_1_new_session_is_mapped_by_a_notification_too)
{
    struct client *client = client_connect(start_three());
    client_request(client, NULL, "s", "notify", "{'n':1}");
    client_expect_note(client, "s", 0);
    long pid = client_pid(client, "1", "s");
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(client_pid(client, "1", "s"), pid);
}

TEST(spec_6_1_1_first_client_is_the_owner)
{
    struct daemon *daemon = start_three();
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    client_ask(second, "1", "s", "echo", NULL);
    client_ask(first, "1", "s", "notify", "{'n':1}");
    client_expect_note(second, "s", 0);
    client_expect_quiet(first);
}

TEST(spec_6_1_2_existing_session_routes_to_its_worker)
{
    static const char *const sessions[] = {"s0", "s1", "s2"};
    struct daemon *daemon = start_three();
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    long pids[3];
    for (int i = 0; i < 3; i++)
        pids[i] = client_pid(client, "1", sessions[i]);
    for (int i = 0; i < 30; i++)
        ck_assert_int_eq(client_pid(i % 2 ? client : other, "1", sessions[i * 7 % 3]),
                         pids[i * 7 % 3]);
}

/* The worker holds its answer until the notification has come. */
TEST(spec_6_1_2_notifications_route_to_the_worker_of_their_session)
{
    struct client *client = client_connect(start_three());
    for (int i = 0; i < 6; i++) {
        client_ask(client, "1", "s", "hold", NULL);
        client_request(client, "2", "s", "plain", "7");
        client_request(client, NULL, "s", "release", NULL);
        client_expect(client, "{'jsonrpc':'2.0','id':2,'sessionId':'s','result':7}");
    }
}

/* The session waits for its busy worker although the others are idle. */
TEST(spec_6_1_2_session_is_not_reassigned)
{
    struct client *client = client_connect(start_three());
    long pid = client_pid(client, "1", "s");
    client_ask(client, "2", "s", "hold", NULL);
    for (int i = 10; i < 20; i++)
        client_send(client, "{'id':%d,'sessionId':'s','method':'echo'}", i);
    client_request(client, "3", "s", "release", NULL);
    for (int i = 10; i < 20; i++)
        ck_assert_int_eq(json_number(client_result(client, test_format("%d", i)), "pid"), pid);
}

TEST(spec_6_1_3_messages_without_session_take_turns)
{
    check_turns(client_connect(start_three()), false);
}

TEST(spec_6_1_3_turns_go_over_all_pools)
{
    long pids[3];
    struct client *client = client_connect(START(.pools = POOL("a", 1, "") "," POOL("b", 2, "")));
    client_meet_workers(client, 3, pids);
    check_turns(client, false);
}

/* The table has room for one session; a thousand messages without a session take none. */
TEST(spec_6_1_3_creates_no_session)
{
    struct client *client = client_connect(START(.instances = 2, .limits = "'max_sessions':1"));
    for (int i = 0; i < 1000; i++)
        client_send(client, "{'id':%d,'method':'plain'}", i);
    for (int i = 0; i < 1000; i++)
        ck_assert(json_get(client_line(client), "result").data != NULL);
    client_ask(client, "1", "the only one", "echo", NULL);
}

/* Two clients with requests in flight at one worker: each gets its own answer. */
TEST(spec_6_2_id_belongs_to_its_client)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    client_ask(first, "'h'", NULL, "hold", NULL);
    for (int i = 0; i < 5; i++) {
        client_send(first, "{'id':'first %d','method':'plain','params':'first %d'}", i, i);
        client_send(second, "{'id':'second %d','method':'plain','params':'second %d'}", i, i);
    }
    client_request(first, "'r'", NULL, "release", NULL);
    for (int i = 0; i < 5; i++) {
        client_expect(first, "{'jsonrpc':'2.0','id':'first %d','result':'first %d'}", i, i);
        client_expect(second, "{'jsonrpc':'2.0','id':'second %d','result':'second %d'}", i, i);
    }
}

/* One id may be in flight at two workers. */
TEST(spec_6_2_id_belongs_to_its_worker)
{
    struct daemon *daemon = start_three();
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    long one = client_pid(first, "'a'", "one"), two = client_pid(second, "'a'", "two");
    ck_assert_int_ne(one, two);
    client_ask(first, "'h'", "one", "hold", NULL);
    client_ask(second, "'h'", "two", "hold", NULL);
    client_request(first, "7", "one", "echo", "'first'");
    client_request(second, "7", "two", "echo", "'second'");
    client_request(second, "'r'", "two", "release", NULL);
    ck_assert_int_eq(json_number(client_result(second, "7"), "pid"), two);
    client_request(first, "'r'", "one", "release", NULL);
    ck_assert_int_eq(json_number(client_result(first, "7"), "pid"), one);
}

/* The response is routed by its id, not by its sessionId. */
TEST(spec_6_3_1_response_goes_to_the_client_that_asked)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *owner = client_connect(daemon), *asker = client_connect(daemon);
    client_ask(owner, "1", "s", "echo", NULL);
    client_request(asker, "2", "s", "plain", "'for the asker'");
    client_expect(asker, "{'jsonrpc':'2.0','id':2,'sessionId':'s','result':'for the asker'}");
    client_request(asker, "3", NULL, "garbage",
                   "{'hex':'7b226964223a332c2273657373696f6e4964223a2273222c2265727"
                   "26f72223a307d0a'}");
    client_expect(asker, "{'id':3,'sessionId':'s','error':0}");
    client_expect_quiet(owner);
}

TEST(spec_6_3_1_answered_request_is_forgotten)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_ask(client, "1", "s", "answer_twice", NULL);
    daemon_wait_log(daemon, " WARN .*\\[worker=");
    client_expect_quiet(client);
    client_ask(client, "1", "s", "echo", NULL);
}

TEST(spec_6_3_1_response_to_no_request_is_discarded)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_request(client, NULL, "s", "say_only", "{'message':{'id':99,'result':1}}");
    daemon_wait_log(daemon, " WARN .*\\[worker=");
    client_expect_quiet(client);
}

TEST(spec_6_3_2_notification_goes_to_the_owner)
{
    struct daemon *daemon = START(.instances = 2);
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    client_ask(first, "1", "first", "echo", NULL);
    client_ask(second, "1", "second", "echo", NULL);
    for (int i = 0; i < 10; i++) {
        client_request(first, NULL, "first", "notify", "{'n':2}");
        client_request(second, NULL, "second", "notify", "{'n':1}");
    }
    for (int i = 0; i < 20; i++)
        expect_member(client_line(first), "sessionId", "'first'");
    for (int i = 0; i < 10; i++)
        expect_member(client_line(second), "sessionId", "'second'");
    client_expect_quiet(first);
    client_expect_quiet(second);
}

TEST(spec_6_3_2_notification_to_no_session_is_discarded)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_ask(client, "1", "s", "notify", "{'n':1,'session':'nobody'}");
    daemon_wait_log(daemon, " WARN .*\\[worker=.*session");
    client_expect_quiet(client);
}

TEST(spec_6_3_3_unroutable_message_is_discarded)
{
    static const char *const messages[] = {
        "{'jsonrpc':'2.0','method':'log'}",
        "{'jsonrpc':'2.0','method':'log','id':5}",
        "{'jsonrpc':'2.0','result':1}",
        "{'id':null,'error':{}}",
        "{}",
    };
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_request(client, "'open'", "s", "no_answer", NULL); /* gets none of them */
    for (size_t i = 0; i < COUNT(messages); i++) {
        daemon_mark_log(daemon);
        client_request(client, NULL, "s", "say_only", test_format("{'message':%s}", messages[i]));
        daemon_wait_log(daemon, " WARN .*\\[worker=");
        client_expect_quiet(client);
    }
}

/* The order of a session's messages is kept in both directions. */
TEST(spec_6_order_within_a_session)
{
    struct client *client = client_connect(START(.instances = 3));
    for (int i = 0; i < 500; i++)
        client_send(client, "{'id':%d,'sessionId':'s%d','method':'plain','params':%d}", i, i % 7,
                    i);
    int next[7] = {0, 1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 500; i++) {
        long id = json_number(client_line(client), "id");
        ck_assert_int_ge(id, 0);
        ck_assert_int_eq(id, next[id % 7]);
        next[id % 7] += 7;
    }
}
