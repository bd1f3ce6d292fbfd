/* Pools with keys of their own: who gets what. */
#include "build_config.h"

#include "sharing_fixture.h"

/* --- which pool --- */

START_TEST(unnamed_messages_go_to_the_shared_pools)
{
    struct peer *client = add_client();

    POOL("sticky", 1, STICKY);
    POOL("a", 1, .clients = CLIENTS_SHARED);
    POOL("b", 1, REWRITE);
    expect(give(client, "{'method':'m'}"), &workers[1], "{'method':'m'}");
    expect(give(client, "{'method':'m'}"), &workers[2], "{'method':'m'}");
    expect(give(client, "{'method':'m'}"), &workers[1], "{'method':'m'}");
    expect(give(client, "{'method':'m','pool':'sticky'}"), &workers[0],
           "{'method':'m','pool':'sticky'}");
    expect_refused(give(client, "{'id':1,'method':'m','pool':'none'}"), "no such pool");
}
END_TEST

START_TEST(or_to_the_first_where_none_is_shared)
{
    struct peer *client = add_client();

    POOL("first", 1, EXCLUSIVE);
    POOL("second", 1, STICKY);
    expect(give(client, "{'method':'m'}"), &workers[0], "{'method':'m'}");
    expect(give(client, "{'method':'m','pool':'second'}"), &workers[1],
           "{'method':'m','pool':'second'}");
}
END_TEST

/* --- sticky --- */

START_TEST(sticky_clients_go_where_there_are_fewest_and_stay)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client(), *d = add_client();
    int i;

    POOL("p", 2, STICKY);
    expect(give(a, "{'method':'m'}"), &workers[0], "{'method':'m'}");
    expect(give(b, "{'method':'m'}"), &workers[1], "{'method':'m'}");
    expect(give(c, "{'method':'m'}"), &workers[0], "{'method':'m'}");
    leave(a);
    leave(c);
    expect(give(d, "{'method':'m'}"), &workers[0], "{'method':'m'}");
    for (i = 0; i < 3; i++) {
        expect(give(b, "{'method':'m'}"), &workers[1], "{'method':'m'}");
        expect(give(d, "{'method':'m'}"), &workers[0], "{'method':'m'}");
    }
}
END_TEST

START_TEST(sticky_notifications_go_to_all_its_clients)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    POOL("p", 2, STICKY);
    expect_action(give(&workers[0], "{'method':'n'}"), ROUTE_DROP);
    give(a, "{'method':'m'}");
    give(b, "{'method':'m'}");
    give(c, "{'method':'m'}");
    expect_action(give(&workers[0], "{'method':'n'}"), ROUTE_BROADCAST);
    ck_assert_uint_eq(bindings_count(&workers[0]), 2);
    /* One of them takes nothing for now. */
    router_set_full(&router, c, true);
    expect_action(give(&workers[0], "{'method':'n'}"), ROUTE_HOLD);
    expect_action(give(&workers[1], "{'method':'n'}"), ROUTE_BROADCAST);
    router_set_full(&router, c, false);
    expect_released(&workers[0]);
    expect_action(give(&workers[0], "{'method':'n'}"), ROUTE_BROADCAST);
}
END_TEST

START_TEST(sticky_notification_that_only_some_got)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'method':'m'}");
    give(b, "{'method':'m'}");
    expect_action(give(&workers[0], "{'method':'n'}"), ROUTE_BROADCAST);
    workers[0].broadcast = 1; /* there was no memory for b's */
    router_set_full(&router, b, true);
    expect_action(give(&workers[0], "{'method':'n'}"), ROUTE_HOLD);
    ck_assert_uint_eq(workers[0].broadcast, 1);
    leave(a);
    leave(b);
    expect_released(&workers[0]);
    expect_action(give(&workers[0], "{'method':'n'}"), ROUTE_DROP);
    ck_assert_uint_eq(workers[0].broadcast, 0); /* the next one is for whoever comes */
}
END_TEST

START_TEST(sticky_requests_go_to_whom_they_can_belong)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    expect_refused(give(&workers[0], "{'id':1,'method':'q'}"), "unroutable");
    give(a, "{'method':'m'}");
    expect(give(&workers[0], "{'id':1,'method':'q'}"), a, "{'id':1,'method':'q'}");
    give(b, "{'method':'m'}");
    expect_refused(give(&workers[0], "{'id':2,'method':'q'}"), "unroutable");
    give(b, "{'id':7,'method':'m'}");
    give(b, "{'id':8,'method':'m'}");
    expect(give(&workers[0], "{'id':2,'method':'q'}"), b, "{'id':2,'method':'q'}");
    give(a, "{'id':9,'method':'m'}");
    expect_refused(give(&workers[0], "{'id':3,'method':'q'}"), "unroutable");
    expect(give(&workers[0], "{'id':7,'result':1}"), b, "{'id':7,'result':1}");
    expect(give(&workers[0], "{'id':8,'result':1}"), b, "{'id':8,'result':1}");
    expect(give(&workers[0], "{'id':3,'method':'q'}"), a, "{'id':3,'method':'q'}");
    expect(give(b, "{'id':2,'result':1}"), &workers[0], "{'id':2,'result':1}");
    expect(give(a, "{'id':3,'result':1}"), &workers[0], "{'id':3,'result':1}");
    expect_action(give(a, "{'id':3,'result':1}"), ROUTE_DISCARD);
}
END_TEST

/* Nobody waits for what a client that has left had asked. */
START_TEST(sticky_requests_that_were_given_up_do_not_count)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'method':'m'}");
    give(b, "{'id':1,'method':'m'}");
    give(c, "{'id':2,'method':'m'}");
    expect_refused(give(&workers[0], "{'id':1,'method':'q'}"), "unroutable");
    leave(c);
    expect(give(&workers[0], "{'id':1,'method':'q'}"), b, "{'id':1,'method':'q'}");
    give(a, "{'id':3,'method':'m'}");
    give(b, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    expect(give(&workers[0], "{'id':2,'method':'q'}"), a, "{'id':2,'method':'q'}");
}
END_TEST

START_TEST(sticky_without_rewriting_holds_equal_ids)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'id':1,'method':'m'}");
    expect_action(give(b, "{'id':1,'method':'m'}"), ROUTE_HOLD);
    expect(give(&workers[0], "{'id':1,'result':1}"), a, "{'id':1,'result':1}");
    expect_released(b);
    expect(give(b, "{'id':1,'method':'m'}"), &workers[0], "{'id':1,'method':'m'}");
    expect(give(&workers[0], "{'id':1,'result':1}"), b, "{'id':1,'result':1}");
}
END_TEST

START_TEST(sticky_clients_stay_when_the_worker_restarts)
{
    struct peer *a = add_client();

    POOL("p", 2, STICKY, NESTED);
    give(a, "{'id':1,'method':'m','params':{'sessionId':'s'}}");
    router_worker_gone(&router, &workers[0], note_told, NULL);
    ck_assert_str_eq(told, "c0:1 ");
    ck_assert_uint_eq(router.sessions.table.count, 0);
    expect_action(give(a, "{'method':'m'}"), ROUTE_HOLD);
    router_worker_available(&router, &workers[0], PEER_HERE);
    expect_released(a);
    expect(give(a, "{'method':'m'}"), &workers[0], "{'method':'m'}");
    /* One that does not come back is another matter. */
    router_worker_gone(&router, &workers[0], note_told, NULL);
    router_worker_available(&router, &workers[0], PEER_FAILED);
    expect(give(a, "{'method':'m'}"), &workers[1], "{'method':'m'}");
    router_worker_available(&router, &workers[1], PEER_FAILED);
    expect_refused(give(a, "{'id':2,'method':'m'}"), "no worker left");
}
END_TEST

/* --- sessions --- */

START_TEST(sessions_in_params)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    give(a, "{'method':'m','params':{'sessionId':'s'}}");
    give(b, "{'method':'m','params':{'sessionId':'t'},'sessionId':'s'}");
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'s'}}"), a,
           "{'method':'u','params':{'sessionId':'s'}}");
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'\\u0074'}}"), b,
           "{'method':'u','params':{'sessionId':'\\u0074'}}");
    expect(give(&workers[0], "{'id':1,'method':'u','params':{'sessionId':'t'}}"), b,
           "{'id':1,'method':'u','params':{'sessionId':'t'}}");
    expect_refused(give(&workers[0], "{'id':2,'method':'u','params':{'sessionId':'x'}}"),
                   "no such session");
    expect_action(give(&workers[0], "{'method':'u','sessionId':'s'}"), ROUTE_BROADCAST);
}
END_TEST

START_TEST(sessions_of_those_who_left_are_not_for_others)
{
    struct peer *a = add_client(), *b;

    POOL("p", 1, STICKY, NESTED);
    give(a, "{'method':'m'}");
    /* Not known yet, and there is one client that it can be for. */
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'t'}}"), a,
           "{'method':'u','params':{'sessionId':'t'}}");
    b = add_client();
    give(b, "{'id':1,'method':'session/new','params':{}}");
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'t'}}"), b,
           "{'method':'u','params':{'sessionId':'t'}}");
    leave(b);
    expect_refused(give(&workers[0], "{'id':1,'method':'u','params':{'sessionId':'t'}}"),
                   "no such session");
    expect_refused(give(&workers[0], "{'method':'u','params':{'sessionId':'t'}}"),
                   "no such session");
    /* A process that is new has none of them. */
    router_worker_gone(&router, &workers[0], note_told, NULL);
    router_worker_available(&router, &workers[0], PEER_HERE);
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'t'}}"), a,
           "{'method':'u','params':{'sessionId':'t'}}");
}
END_TEST

START_TEST(sessions_are_learned)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    give(a, "{'id':1,'method':'session/new','params':{}}");
    give(b, "{'id':2,'method':'session/new','params':{}}");
    give(&workers[0], "{'id':2,'result':{'sessionId':'two'}}");
    give(&workers[0], "{'id':1,'result':{'sessionId':'o\\u006ee'}}");
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'one'}}"), a,
           "{'method':'u','params':{'sessionId':'one'}}");
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'two'}}"), b,
           "{'method':'u','params':{'sessionId':'two'}}");
    /* Not from one that carried a session, nor from an error, nor what is none. */
    give(a, "{'id':1,'method':'m','params':{'sessionId':'one'}}");
    give(&workers[0], "{'id':1,'result':{'sessionId':'three'}}");
    give(a, "{'id':1,'method':'m'}");
    give(&workers[0], "{'id':1,'error':{'sessionId':'four'}}");
    give(a, "{'id':1,'method':'m'}");
    give(&workers[0], "{'id':1,'result':{'sessionId':5}}");
    ck_assert_uint_eq(router.sessions.table.count, 2);
}
END_TEST

START_TEST(two_sticky_workers_may_use_one_session_id)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 2, STICKY, NESTED, REWRITE);
    give(a, "{'id':1,'method':'session/new'}");
    give(b, "{'id':1,'method':'session/new'}");
    give(&workers[0], "{'id':2,'result':{'sessionId':'s'}}");
    give(&workers[1], "{'id':2,'result':{'sessionId':'s'}}");
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'s'}}"), a,
           "{'method':'u','params':{'sessionId':'s'}}");
    expect(give(&workers[1], "{'method':'u','params':{'sessionId':'s'}}"), b,
           "{'method':'u','params':{'sessionId':'s'}}");
    ck_assert_uint_eq(router.sessions.table.count, 2);
}
END_TEST

START_TEST(shared_sessions_stay_with_their_worker)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 2, NESTED, REWRITE);
    expect(give(a, "{'id':1,'method':'session/new'}"), &workers[0],
           "{'id':2,'method':'session/new'}");
    give(&workers[0], "{'id':2,'result':{'sessionId':'s'}}");
    expect(give(b, "{'method':'m','params':{'sessionId':'s'}}"), &workers[0],
           "{'method':'m','params':{'sessionId':'s'}}");
    expect(give(b, "{'method':'m','params':{'sessionId':'s'}}"), &workers[0],
           "{'method':'m','params':{'sessionId':'s'}}");
    expect(give(b, "{'method':'m','params':{'sessionId':'new'}}"), &workers[1],
           "{'method':'m','params':{'sessionId':'new'}}");
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'s'}}"), a,
           "{'method':'u','params':{'sessionId':'s'}}");
    expect_refused(give(&workers[0], "{'id':9,'method':'u','params':{'sessionId':'x'}}"),
                   "no such session");
    expect_refused(give(&workers[0], "{'id':9,'method':'u'}"), "unroutable");
}
END_TEST

START_TEST(sessions_of_plain_pools_do_not_mind_the_others)
{
    static const char text[] = "{'sessionId':'s','method':'m'}";
    struct peer *a = add_client();

    POOL("p", 2, .clients = CLIENTS_SHARED);
    POOL("q", 1, NESTED);
    expect(give(a, text), &workers[0], text);
    expect(give(a, text), &workers[0], text);
}
END_TEST

START_TEST(sessions_have_their_limit)
{
    struct peer *a = add_client();

    router.sessions.max = 1;
    POOL("p", 1, STICKY, NESTED);
    give(a, "{'method':'m','params':{'sessionId':'s'}}");
    expect_refused(give(a, "{'id':1,'method':'m','params':{'sessionId':'t'}}"), "max_sessions");
    give(a, "{'id':1,'method':'m'}");
    expect(give(&workers[0], "{'id':1,'result':{'sessionId':'t'}}"), a,
           "{'id':1,'result':{'sessionId':'t'}}");
    ck_assert_uint_eq(router.sessions.table.count, 1);
}
END_TEST

/* --- exclusive --- */

START_TEST(exclusive_workers_have_one_client)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    router.now_ms = 1000;
    expect(give(a, "{'id':1,'method':'m'}"), &workers[0], "{'id':1,'method':'m'}");
    expect(give(b, "{'id':1,'method':'m'}"), &workers[1], "{'id':1,'method':'m'}");
    ck_assert(router.demand);
    expect_action(give(c, "{'id':1,'method':'m'}"), ROUTE_HOLD_UNTIL);
    ck_assert_int_eq(c->hold_until_ms, 11000);
    expect(give(&workers[0], "{'method':'n'}"), a, "{'method':'n'}");
    expect(give(&workers[1], "{'id':'x','method':'q','params':{'sessionId':'any'}}"), b,
           "{'id':'x','method':'q','params':{'sessionId':'any'}}");
    expect(give(&workers[1], "{'id':1,'result':0}"), b, "{'id':1,'result':0}");
    /* A process that takes the place of the one before. */
    leave(a);
    expect_none_released();
    router_worker_available(&router, &workers[0], PEER_AWAY);
    expect_released(c);
    expect_action(give(c, "{'id':1,'method':'m'}"), ROUTE_HOLD); /* it will come: no time limit */
    expect_action(give(&workers[0], "{'method':'n'}"), ROUTE_DROP);
    router_worker_gone(&router, &workers[0], note_told, NULL);
    expect_released(c);
    expect_action(give(c, "{'id':1,'method':'m'}"), ROUTE_HOLD);
    router_worker_available(&router, &workers[0], PEER_HERE);
    expect_released(c);
    expect(give(c, "{'id':1,'method':'m'}"), &workers[0], "{'id':1,'method':'m'}");
    ck_assert_str_eq(told, "");
}
END_TEST

START_TEST(exclusive_pools_keep_no_sessions)
{
    struct peer *a = add_client();

    POOL("p", 1, EXCLUSIVE, NESTED);
    give(a, "{'id':1,'method':'session/new'}");
    give(&workers[0], "{'id':1,'result':{'sessionId':'s'}}");
    give(a, "{'method':'m','params':{'sessionId':'t'}}");
    ck_assert_uint_eq(router.sessions.table.count, 0);
    expect(give(&workers[0], "{'method':'u','params':{'sessionId':'s'}}"), a,
           "{'method':'u','params':{'sessionId':'s'}}");
}
END_TEST

START_TEST(exclusive_clients_wait_no_longer_than_allowed)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, EXCLUSIVE, .busy_timeout_sec = 10);
    router.now_ms = 1000;
    give(a, "{'method':'m'}");
    expect_action(give(b, "{'id':1,'method':'m'}"), ROUTE_HOLD_UNTIL);
    /* Released for another reason, the clock goes on. */
    router.now_ms = 6000;
    router_worker_available(&router, &workers[0], PEER_HERE);
    expect_released(b);
    expect_action(give(b, "{'id':1,'method':'m'}"), ROUTE_HOLD_UNTIL);
    ck_assert_int_eq(b->hold_until_ms, 11000);
    router_hold_expired(&router, b);
    expect_released(b);
    expect_refused(give(b, "{'id':1,'method':'m'}"), "busy_timeout_sec");
    /* And the next message has its own. */
    router.now_ms = 20000;
    expect_action(give(b, "{'id':2,'method':'m'}"), ROUTE_HOLD_UNTIL);
    ck_assert_int_eq(b->hold_until_ms, 30000);
}
END_TEST

START_TEST(exclusive_worker_that_comes_in_the_last_moment_is_taken)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, EXCLUSIVE, .busy_timeout_sec = 10);
    give(a, "{'id':1,'method':'m'}");
    expect_action(give(b, "{'id':1,'method':'m'}"), ROUTE_HOLD_UNTIL);
    router_hold_expired(&router, b);
    leave(a);
    router_worker_gone(&router, &workers[0], note_told, NULL);
    router_worker_available(&router, &workers[0], PEER_HERE);
    expect_released(b);
    expect(give(b, "{'id':1,'method':'m'}"), &workers[0], "{'id':1,'method':'m'}");
}
END_TEST

START_TEST(exclusive_client_stays_when_its_worker_crashes)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 2, EXCLUSIVE);
    give(a, "{'id':1,'method':'m'}");
    router_worker_gone(&router, &workers[0], note_told, NULL);
    ck_assert_str_eq(told, "c0:1 ");
    expect_action(give(a, "{'id':2,'method':'m'}"), ROUTE_HOLD);
    expect(give(b, "{'id':2,'method':'m'}"), &workers[1], "{'id':2,'method':'m'}");
    router_worker_available(&router, &workers[0], PEER_HERE);
    expect_released(a);
    expect(give(a, "{'id':2,'method':'m'}"), &workers[0], "{'id':2,'method':'m'}");
}
END_TEST

/* --- time limits --- */

static char expired[256];

static void note_expired(void *user_data, struct request *request)
{
    size_t used = strlen(expired);

    (void)user_data;
    snprintf(expired + used, sizeof expired - used, "%.*s ", (int)request->asker_id.text.len,
             request->asker_id.text.data);
}

static int64_t expire(int64_t now_ms)
{
    expired[0] = '\0';
    router.now_ms = now_ms;
    return router_expire(&router, note_expired, NULL);
}

START_TEST(requests_time_out)
{
    struct peer *a = add_client();

    POOL("p", 1, .request_timeout_sec = 10);
    POOL("q", 1, .request_timeout_sec = 3);
    ck_assert_int_eq(expire(0), -1);
    give(a, "{'id':1,'method':'m','pool':'p'}");
    router.now_ms = 1000;
    give(a, "{'id':2,'method':'m','pool':'p'}");
    give(a, "{'id':3,'method':'m','pool':'q'}");
    ck_assert_int_eq(expire(3999), 4000);
    ck_assert_str_eq(expired, "");
    ck_assert_int_eq(expire(4000), 10000);
    ck_assert_str_eq(expired, "3 ");
    give(&workers[0], "{'id':1,'result':1}");
    ck_assert_int_eq(expire(10500), 11000);
    ck_assert_str_eq(expired, "");
    ck_assert_int_eq(expire(11000), -1);
    ck_assert_str_eq(expired, "2 ");
    /* The id stays taken until the late answer, which nobody gets. */
    ck_assert_uint_eq(router.from_clients.abandoned_count, 2);
    expect_action(give(a, "{'id':2,'method':'m','pool':'p'}"), ROUTE_HOLD);
    expect_action(give(&workers[0], "{'id':2,'result':1}"), ROUTE_DROP);
    expect_released(a);
    expect(give(a, "{'id':2,'method':'m','pool':'p'}"), &workers[0],
           "{'id':2,'method':'m','pool':'p'}");
}
END_TEST

START_TEST(token_of_a_request_that_was_given_up_is_used_anew)
{
    struct peer *a = add_client();

    POOL("p", 1, EXCLUSIVE, .request_timeout_sec = 10);
    give(a, "{'id':1,'method':'m','params':{'_meta':{'progressToken':'t'}}}");
    expire(20000);
    give(a, "{'id':2,'method':'m','params':{'_meta':{'progressToken':'t'}}}");
    expect(give(&workers[0], "{'method':'notifications/progress','params':{'progressToken':'t'}}"),
           a, "{'method':'notifications/progress','params':{'progressToken':'t'}}");
}
END_TEST

START_TEST(progress_restarts_the_clock)
{
    struct peer *a = add_client();

    POOL("p", 1, EXCLUSIVE, .request_timeout_sec = 10);
    give(a, "{'id':1,'method':'m','params':{'_meta':{'progressToken':'t'}}}");
    router.now_ms = 100;
    give(a, "{'id':2,'method':'m'}");
    router.now_ms = 9000;
    expect(give(&workers[0], "{'method':'notifications/progress','params':{'progressToken':'t'}}"),
           a, "{'method':'notifications/progress','params':{'progressToken':'t'}}");
    ck_assert_int_eq(expire(10100), 19000);
    ck_assert_str_eq(expired, "2 ");
    expire(19000);
    ck_assert_str_eq(expired, "1 ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sharing");
    TCase *tcase = tcase_create("sharing");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, unnamed_messages_go_to_the_shared_pools);
    tcase_add_test(tcase, or_to_the_first_where_none_is_shared);
    tcase_add_test(tcase, sticky_clients_go_where_there_are_fewest_and_stay);
    tcase_add_test(tcase, sticky_notifications_go_to_all_its_clients);
    tcase_add_test(tcase, sticky_notification_that_only_some_got);
    tcase_add_test(tcase, sticky_requests_go_to_whom_they_can_belong);
    tcase_add_test(tcase, sticky_requests_that_were_given_up_do_not_count);
    tcase_add_test(tcase, sticky_without_rewriting_holds_equal_ids);
    tcase_add_test(tcase, sticky_clients_stay_when_the_worker_restarts);
    tcase_add_test(tcase, sessions_in_params);
    tcase_add_test(tcase, sessions_of_those_who_left_are_not_for_others);
    tcase_add_test(tcase, sessions_are_learned);
    tcase_add_test(tcase, two_sticky_workers_may_use_one_session_id);
    tcase_add_test(tcase, shared_sessions_stay_with_their_worker);
    tcase_add_test(tcase, sessions_have_their_limit);
    tcase_add_test(tcase, sessions_of_plain_pools_do_not_mind_the_others);
    tcase_add_test(tcase, exclusive_workers_have_one_client);
    tcase_add_test(tcase, exclusive_pools_keep_no_sessions);
    tcase_add_test(tcase, exclusive_clients_wait_no_longer_than_allowed);
    tcase_add_test(tcase, exclusive_worker_that_comes_in_the_last_moment_is_taken);
    tcase_add_test(tcase, exclusive_client_stays_when_its_worker_crashes);
    tcase_add_test(tcase, token_of_a_request_that_was_given_up_is_used_anew);
    tcase_add_test(tcase, requests_time_out);
    tcase_add_test(tcase, progress_restarts_the_clock);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
