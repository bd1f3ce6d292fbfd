/* Pools with a mode: the worker or client that a message goes to. */
#include "build_config.h"

#include "pool_mode_fixture.h"
#include "router/deadlines.h"

/* --- which pool --- */

TEST(unnamed_messages_go_to_the_shared_pools)
{
    struct peer *client = add_client();

    POOL("sticky", 1, STICKY);
    POOL("a", 1, .clients = CLIENTS_SHARED);
    POOL("b", 1, REWRITE);
    expect_unchanged(client, "{'method':'m'}", &workers[1]);
    expect_unchanged(client, "{'method':'m'}", &workers[2]);
    expect_unchanged(client, "{'method':'m'}", &workers[1]);
    expect_unchanged(client, "{'method':'m','pool':'sticky'}", &workers[0]);
    expect_refused(give(client, "{'id':1,'method':'m','pool':'none'}"), "no such pool");
}

TEST(unnamed_messages_go_to_the_first_pool_where_none_is_shared)
{
    struct peer *client = add_client();

    POOL("first", 1, EXCLUSIVE);
    POOL("second", 1, STICKY);
    expect_unchanged(client, "{'method':'m'}", &workers[0]);
    expect_unchanged(client, "{'method':'m','pool':'second'}", &workers[1]);
}

/* Unnamed messages are read as the modes of the shared pools have it, which may come and go. */
TEST(shared_pools_have_the_modes_of_the_pools_that_are_left)
{
    struct peer *client = add_client();

    POOL("plain", 1, .clients = CLIENTS_SHARED);
    ck_assert(router.all.plain && !router.all.mode.session_in_params);
    POOL("nested", 1, NESTED, REWRITE);
    ck_assert(!router.all.plain && router.all.mode.session_in_params);
    departure_worker(&router, &workers[1], note_unanswered, NULL);
    departure_remove_worker(&router, &workers[1]);
    departure_remove_pool(&router, &pools[1]);
    ck_assert(router.all.plain && !router.all.mode.rewrite_ids);
    expect_unchanged(client, "{'id':1,'method':'m'}", &workers[0]);
    expect_refused(give(client, "{'id':2,'method':'m','pool':'nested'}"), "no such pool");
}

/* --- sticky --- */

TEST(sticky_clients_get_the_worker_with_fewest_and_stay)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client(), *d = add_client();

    POOL("p", 2, STICKY);
    expect_unchanged(a, "{'method':'m'}", &workers[0]);
    expect_unchanged(b, "{'method':'m'}", &workers[1]);
    expect_unchanged(c, "{'method':'m'}", &workers[0]);
    leave(a);
    leave(c);
    expect_unchanged(d, "{'method':'m'}", &workers[0]);
    for (int i = 0; i < 3; i++) {
        expect_unchanged(b, "{'method':'m'}", &workers[1]);
        expect_unchanged(d, "{'method':'m'}", &workers[0]);
    }
}

TEST(sticky_notifications_go_to_all_its_clients)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    POOL("p", 2, STICKY);
    expect_action(give(&workers[0], "{'method':'n'}"), ACTION_DROP);
    give(a, "{'method':'m'}");
    give(b, "{'method':'m'}");
    give(c, "{'method':'m'}");
    expect_action(give(&workers[0], "{'method':'n'}"), ACTION_BROADCAST);
    ck_assert_uint_eq(affinity_count(&workers[0]), 2);
    /* One client's queue is full. */
    waiting_set_full(&router, c, true);
    expect_action(give(&workers[0], "{'method':'n'}"), ACTION_HOLD);
    expect_action(give(&workers[1], "{'method':'n'}"), ACTION_BROADCAST);
    waiting_set_full(&router, c, false);
    expect_released(&workers[0]);
    expect_action(give(&workers[0], "{'method':'n'}"), ACTION_BROADCAST);
}

TEST(sticky_notification_that_some_clients_got)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'method':'m'}");
    give(b, "{'method':'m'}");
    expect_action(give(&workers[0], "{'method':'n'}"), ACTION_BROADCAST);
    workers[0].broadcast = 1; /* out of memory before b */
    waiting_set_full(&router, b, true);
    expect_action(give(&workers[0], "{'method':'n'}"), ACTION_HOLD);
    ck_assert_uint_eq(workers[0].broadcast, 1);
    leave(a);
    leave(b);
    expect_released(&workers[0]);
    expect_action(give(&workers[0], "{'method':'n'}"), ACTION_DROP);
    ck_assert_uint_eq(workers[0].broadcast, 0); /* the next notification is for all */
}

TEST(sticky_requests_go_to_the_only_client_that_waits)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    expect_refused(give(&workers[0], "{'id':1,'method':'q'}"), "unroutable");
    give(a, "{'method':'m'}");
    expect_unchanged(&workers[0], "{'id':1,'method':'q'}", a);
    give(b, "{'method':'m'}");
    expect_refused(give(&workers[0], "{'id':2,'method':'q'}"), "unroutable");
    give(b, "{'id':7,'method':'m'}");
    give(b, "{'id':8,'method':'m'}");
    expect_unchanged(&workers[0], "{'id':2,'method':'q'}", b);
    give(a, "{'id':9,'method':'m'}");
    expect_refused(give(&workers[0], "{'id':3,'method':'q'}"), "unroutable");
    expect_unchanged(&workers[0], "{'id':7,'result':1}", b);
    expect_unchanged(&workers[0], "{'id':8,'result':1}", b);
    expect_unchanged(&workers[0], "{'id':3,'method':'q'}", a);
    expect_action(give(b, "{'id':null,'method':'m','result':1}"), ACTION_DISCARD);
    expect_action(give(b, "{'method':'m','error':1}"), ACTION_DISCARD);
    expect_unchanged(b, "{'id':2,'result':1}", &workers[0]);
    expect_unchanged(a, "{'id':3,'result':1}", &workers[0]);
    expect_action(give(a, "{'id':3,'result':1}"), ACTION_DISCARD);
}

/* What was found out by one question holds for the next one, whatever ends in between; not after an
 * id has passed to another client. */
TEST(sticky_questions_follow_the_requests_that_are_left)
{
    static const char question[] = "{'id':1,'method':'q'}", reply[] = "{'id':1,'result':0}";
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'id':1,'method':'m'}");
    give(a, "{'id':2,'method':'m'}");
    give(a, "{'id':3,'method':'m'}");
    give(b, "{'method':'m'}");
    expect_unchanged(&workers[0], question, a);
    expect_unchanged(a, reply, &workers[0]);
    expect_unchanged(&workers[0], "{'id':3,'result':1}", a); /* the last one that was looked at */
    expect_unchanged(&workers[0], question, a);
    expect_unchanged(a, reply, &workers[0]);
    expect_unchanged(&workers[0], "{'id':2,'result':1}", a);
    give(a, "{'id':5,'method':'m'}");
    expect_unchanged(&workers[0], question, a);
    expect_unchanged(a, reply, &workers[0]);
    expect_action(give(b, "{'id':5,'method':'m'}"), ACTION_HOLD);
    expect_unchanged(&workers[0], "{'id':5,'result':1}", a);
    expect_released(b);
    expect_unchanged(&workers[0], question, a); /* the id is only reserved */
    expect_unchanged(a, reply, &workers[0]);
    expect_unchanged(b, "{'id':5,'method':'m'}", &workers[0]);
    expect_refused(give(&workers[0], question), "unroutable");
    expect_unchanged(&workers[0], "{'id':1,'result':1}", a);
    expect_unchanged(&workers[0], question, b);
    expect_unchanged(b, reply, &workers[0]);
    expect_unchanged(&workers[0], "{'id':5,'result':1}", b);
    expect_refused(give(&workers[0], question), "unroutable");
}

/* The worker may ask for the sake of a request that was given up. */
TEST(sticky_questions_are_refused_while_a_request_that_was_given_up_may_run)
{
    static const char question[] = "{'id':1,'method':'q'}";
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'method':'m'}");
    give(b, "{'id':1,'method':'m'}");
    give(c, "{'id':2,'method':'m'}");
    leave(c);
    expect_refused(give(&workers[0], question), "unroutable");
    expect_action(give(&workers[0], "{'id':2,'result':0}"), ACTION_DROP);
    expect_unchanged(&workers[0], question, b);
    give(b, "{'id':1,'result':0}");
    give(a, "{'id':3,'method':'m'}");
    give(b, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    expect_refused(give(&workers[0], question), "unroutable");
    expect_action(give(&workers[0], "{'id':1,'error':0}"), ACTION_DROP);
    expect_unchanged(&workers[0], question, a);
    give(a, "{'id':1,'result':0}");
    /* Nor to the last client that is left. */
    give(b, "{'id':4,'method':'m'}");
    leave(b);
    expect_refused(give(&workers[0], question), "unroutable");
    expect_refused(give(&workers[0], "{'id':1,'method':'q','sessionId':'unknown'}"), "session");
    /* Another process runs nothing of the old one. */
    departure_worker(&router, &workers[0], note_unanswered, NULL);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_unchanged(&workers[0], question, a);
}

/* Its own request that it gave up is the worker's only client's. */
TEST(sticky_only_client_is_asked_after_it_gave_up)
{
    struct peer *a = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'id':1,'method':'m'}");
    give(a, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    expect_unchanged(&workers[0], "{'id':1,'method':'q'}", a);
}

/* What the table of abandoned requests forgets may still run. */
TEST(sticky_worker_is_not_trusted_after_its_requests_were_forgotten)
{
    struct peer *a = add_client(), *b = add_client();
    char text[100];

    router.from_clients.max = 2;
    POOL("p", 1, STICKY);
    give(a, "{'method':'m'}");
    for (int i = 1; i <= 3; i++) {
        snprintf(text, sizeof text, "{'id':%d,'method':'m'}", i);
        give(b, text);
        snprintf(text, sizeof text,
                 "{'method':'notifications/cancelled','params':{'requestId':%d}}", i);
        give(b, text);
    }
    ck_assert_uint_eq(router.from_clients.abandoned_count, 2);
    give(&workers[0], "{'id':2,'result':0}");
    give(&workers[0], "{'id':3,'result':0}");
    expect_action(give(&workers[0], "{'id':1,'result':0}"), ACTION_DISCARD);
    give(a, "{'id':4,'method':'m'}");
    expect_refused(give(&workers[0], "{'id':1,'method':'q'}"), "unroutable");
}

/* row: with rewriting. A token that is the question's id is the worker's own. */
TEST_ROWS(sticky_question_follows_the_progress_token_in_it, 2)
{
    static const char form[] = "{'id':%s,'method':'q','params':{'_meta':{'progressToken':%s}}}";
    struct peer *a = add_client(), *b = add_client();
    char text[200];

    add_pool("p", 1, (struct pool_mode){STICKY, .rewrite_ids = row == 1});
    give(a, "{'id':2,'method':'m','params':{'_meta':{'progressToken':2}}}");
    give(b, "{'id':4,'method':'m','params':{'_meta':{'progressToken':4}}}");
    snprintf(text, sizeof text, form, "'x'", "4");
    ck_assert_ptr_eq(give(&workers[0], text)->decision.to, b);
    snprintf(text, sizeof text, form, "'y'", "2");
    ck_assert_ptr_eq(give(&workers[0], text)->decision.to, a);
    snprintf(text, sizeof text, form, "2", "2");
    expect_refused(give(&workers[0], text), "unroutable");
    snprintf(text, sizeof text, form, "'z'", "'own'");
    expect_refused(give(&workers[0], text), "unroutable");
    /* While requests that were given up may run; but not for one of these. */
    give(a, "{'method':'notifications/cancelled','params':{'requestId':2}}");
    snprintf(text, sizeof text, form, "'u'", "4");
    ck_assert_ptr_eq(give(&workers[0], text)->decision.to, b);
    snprintf(text, sizeof text, form, "'v'", "2");
    expect_refused(give(&workers[0], text), "unroutable");
}

/* ACP: a question names the client's request that it serves, as the agent knows it. */
#define ELICIT(id, scope) "{'id':" id ",'method':'elicitation/create','params':{" scope "}}"

/* row 1, 2: sticky, with rewriting; row 2: shared. */
TEST_ROWS(question_follows_the_request_that_it_names, 3)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("p", 1,
             (struct pool_mode){.clients = row == 2 ? CLIENTS_SHARED : CLIENTS_STICKY,
                                NESTED,
                                .rewrite_ids = row > 0});
    give(a, row == 0 ? "{'id':2,'method':'m'}" : "{'id':'one','method':'m'}");
    give(b, row == 0 ? "{'id':4,'method':'m'}" : "{'id':'one','method':'m'}");
    give(c, "{'id':6,'method':'m'}");
    expect(give(&workers[0], ELICIT("'q'", "'requestId':4,'message':''")), b,
           row == 0 ? ELICIT("'q'", "'requestId':4,'message':''")
                    : ELICIT("2", "'requestId':'one','message':''"));
    expect(give(&workers[0], ELICIT("'r'", "'requestId':2")), a,
           row == 0 ? ELICIT("'r'", "'requestId':2") : ELICIT("2", "'requestId':'one'"));
    /* The replies, and a question for the sake of a request that was given up, or is over. */
    expect(give(b, row == 0 ? "{'id':'q','result':{}}" : "{'id':2,'result':{}}"), &workers[0],
           "{'id':'q','result':{}}");
    leave(a);
    expect_refused(give(&workers[0], ELICIT("'q'", "'requestId':2")), "request that is over");
    give(&workers[0], "{'id':2,'result':0}");
    expect_refused(give(&workers[0], ELICIT("'q'", "'requestId':2")), "unroutable");
    expect_refused(give(&workers[0], ELICIT("'q'", "'requestId':null")), "unroutable");
    expect_refused(give(&workers[0], ELICIT("'q'", "'requestId':{}")), "unroutable");
}

/* The id, the named id and the token are numbers of the daemon's; a session is not needed. */
TEST(question_names_a_request_among_other_ids)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED, REWRITE);
    give(a, "{'id':'x','method':'m'}");
    give(b, "{'id':7,'method':'session/prompt','params':{'sessionId':'s'}}");
    expect(give(&workers[0],
                "{'params':{'workDoneToken':'w','requestId':2,'sessionId':'s','partialResultToken':"
                "'p','_meta':{'progressToken':5}},'id':'q','method':'elicitation/create'}"),
           a,
           "{'params':{'workDoneToken':'2#','requestId':'x','sessionId':'s','partialResultToken':"
           "3,'_meta':{'progressToken':2}},'id':2,'method':'elicitation/create'}");
    /* A client's message of this method is as any other. */
    expect(give(b, ELICIT("8", "'requestId':7")), &workers[0], ELICIT("6", "'requestId':7"));
    expect_unchanged(b, "{'method':'elicitation/create','params':{'requestId':7}}", &workers[0]);
}

/* Questions in the mode of MCP have no such field. */
TEST(question_of_another_protocol_names_no_request)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    give(a, "{'id':1,'method':'m'}");
    expect(give(&workers[0], ELICIT("'q'", "'requestId':9")), a, ELICIT("2", "'requestId':9"));
    give(b, "{'id':1,'method':'m'}");
    expect_refused(give(&workers[0], ELICIT("'q'", "'requestId':2")), "unroutable");
}

TEST(sticky_without_rewriting_holds_equal_ids)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'id':1,'method':'m'}");
    expect_action(give(b, "{'id':1,'method':'m'}"), ACTION_HOLD);
    expect_unchanged(&workers[0], "{'id':1,'result':1}", a);
    expect_released(b);
    expect_unchanged(b, "{'id':1,'method':'m'}", &workers[0]);
    expect_unchanged(&workers[0], "{'id':1,'result':1}", b);
}

TEST(sticky_clients_stay_when_the_worker_restarts)
{
    struct peer *a = add_client();

    POOL("p", 2, STICKY, NESTED);
    give(a, "{'id':1,'method':'m'}");
    give(&workers[0], "{'id':1,'result':{'sessionId':'s'}}");
    ck_assert_uint_eq(router.sessions.table.count, 1);
    give(a, "{'id':1,'method':'m','params':{'sessionId':'s'}}");
    departure_worker(&router, &workers[0], note_unanswered, NULL);
    ck_assert_str_eq(reported, "c0:1 ");
    ck_assert_uint_eq(router.sessions.table.count, 0);
    expect_action(give(a, "{'method':'m'}"), ACTION_HOLD);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_released(a);
    expect_unchanged(a, "{'method':'m'}", &workers[0]);
    /* A worker that fails for good loses its clients. */
    departure_worker(&router, &workers[0], note_unanswered, NULL);
    waiting_worker_available(&router, &workers[0], PEER_FAILED);
    expect_unchanged(a, "{'method':'m'}", &workers[1]);
    waiting_worker_available(&router, &workers[1], PEER_FAILED);
    expect_refused(give(a, "{'id':2,'method':'m'}"), "no worker left");
}

/* --- sessions --- */

#define UPDATE(id) "{'method':'u','params':{'sessionId':'" id "'}}"
#define QUESTION(id) "{'id':1,'method':'u','params':{'sessionId':'" id "'}}"
#define LOAD(id) "{'id':7,'method':'session/load','params':{'sessionId':'" id "'}}"

/* The client's request 9, which the worker answers with the name of a session. */
static void start_session(struct peer *client, struct peer *worker, const char *id)
{
    char text[100];

    give(client, "{'id':9,'method':'session/new'}");
    snprintf(text, sizeof text, "{'id':9,'result':{'sessionId':'%s'}}", id);
    expect_unchanged(worker, text, client);
}

TEST(sessions_in_params)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    start_session(a, &workers[0], "s");
    start_session(b, &workers[0], "t");
    give(b, "{'method':'m','params':{'sessionId':'t'},'sessionId':'s'}");
    expect_unchanged(&workers[0], UPDATE("s"), a);
    expect_unchanged(&workers[0], UPDATE("\\u0074"), b);
    expect_unchanged(&workers[0], QUESTION("t"), b);
    expect_refused(give(&workers[0], "{'id':2,'method':'u','params':{'sessionId':'x'}}"),
                   "no such session");
    expect_action(give(&workers[0], "{'method':'u','sessionId':'s'}"), ACTION_BROADCAST);
}

/* A client that names a session first is not its owner. row: in a shared pool */
TEST_ROWS(sessions_are_not_guessed, 2)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("p", 1, (struct pool_mode){NESTED, .clients = row ? CLIENTS_SHARED : CLIENTS_STICKY});
    expect_unchanged(b, "{'id':1,'method':'m','params':{'sessionId':'s'}}", &workers[0]);
    expect_unchanged(b, "{'method':'m','params':{'sessionId':'s'}}", &workers[0]);
    ck_assert_uint_eq(router.sessions.table.count, 0);
    start_session(a, &workers[0], "s");
    expect_unchanged(&workers[0], "{'id':1,'result':{'sessionId':'s'}}", b);
    expect_unchanged(&workers[0], QUESTION("s"), a);
    expect_unchanged(&workers[0], UPDATE("s"), a);
    /* Nor is one that asks for the answer that names it. */
    give(b, "{'id':2,'method':'session/new'}");
    expect_failed(give(&workers[0], "{'id':2,'result':{'sessionId':'s'}}"), b, "another client");
    expect_unchanged(&workers[0], UPDATE("s"), a);
    ck_assert_uint_eq(router.from_clients.active_count, 0);
}

/* No question is answered by a client that may have nothing to do with it. */
TEST(questions_in_unknown_sessions_are_refused)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    give(a, "{'method':'m'}");
    expect_unchanged(&workers[0], QUESTION("s"), a);
    give(b, "{'id':1,'method':'session/new'}");
    expect_unchanged(&workers[0], UPDATE("s"), b);
    expect_refused(give(&workers[0], "{'id':3,'method':'u','params':{'sessionId':'s'}}"),
                   "no such session");
}

/* --- sessions that are loaded --- */

/* row: session/load, session/resume */
TEST_ROWS(loaded_sessions_move_to_the_client_that_loads_them, 2)
{
    struct peer *a = add_client(), *b = add_client();
    char load[100];

    POOL("p", 1, STICKY, NESTED);
    snprintf(load, sizeof load, "{'id':7,'method':'session/%s','params':{'sessionId':'s'}}",
             row == 0 ? "load" : "resume");
    start_session(a, &workers[0], "s");
    expect_unchanged(b, load, &workers[0]);
    expect_unchanged(&workers[0], UPDATE("s"), b); /* what was said before */
    expect_unchanged(&workers[0], QUESTION("s"), a);
    ck_assert_ptr_eq(give(&workers[0], "{'id':7,'result':{}}")->decision.former_owner, a);
    expect_unchanged(&workers[0], UPDATE("s"), b);
    expect_unchanged(&workers[0], "{'id':2,'method':'u','params':{'sessionId':'s'}}", b);
    /* The former owner may still speak in it; what is said there is for the new one. */
    expect_unchanged(a, "{'id':1,'method':'m','params':{'sessionId':'s'}}", &workers[0]);
    expect_unchanged(&workers[0], UPDATE("s"), b);
    expect_unchanged(&workers[0], "{'id':1,'result':0}", a);
    /* It ends with the new owner. */
    leave(a);
    expect_unchanged(&workers[0], UPDATE("s"), b);
    leave(b);
    ck_assert_uint_eq(router.sessions.table.count, 0);
}

/* What a process has stored is unknown to the router; the replay comes before the answer. */
TEST(loaded_sessions_begin_with_the_answer)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    give(a, "{'id':1,'method':'m'}");
    give(b, LOAD("s"));
    expect_unchanged(&workers[0], UPDATE("s"), b);
    expect_refused(give(&workers[0], QUESTION("s")), "no such session");
    ck_assert_uint_eq(router.sessions.table.count, 0);
    ck_assert_ptr_null(give(&workers[0], "{'id':7,'result':null}")->decision.former_owner);
    expect_unchanged(&workers[0], QUESTION("s"), b);
    /* Again, by its owner. */
    give(b, LOAD("s"));
    ck_assert_ptr_null(give(&workers[0], "{'id':7,'result':{}}")->decision.former_owner);
    ck_assert_uint_eq(router.sessions.table.count, 1);
}

/* row: an error, an error beside a result. */
TEST_ROWS(sessions_stay_where_they_are_when_loading_fails, 2)
{
    static const char *const errors[] = {"{'id':7,'error':0}", "{'id':7,'result':0,'error':0}"};
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    start_session(a, &workers[0], "s");
    give(b, LOAD("s"));
    expect_unchanged(&workers[0], errors[row], b);
    expect_unchanged(&workers[0], UPDATE("s"), a);
    /* The next attempt hears nothing of it. */
    give(b, LOAD("s"));
    expect_unchanged(&workers[0], UPDATE("s"), a);
    ck_assert_ptr_eq(give(&workers[0], "{'id':7,'result':{}}")->decision.former_owner, a);
    give(a, LOAD("s"));
    expect_unchanged(&workers[0], UPDATE("s"), a);
    leave(a);
    expect_unchanged(&workers[0], UPDATE("s"), b);
}

/* Requests to load a session that another client's answer then names. */
TEST(loading_ahead_hears_nothing)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    give(b, LOAD("s"));
    start_session(a, &workers[0], "s");
    expect_unchanged(&workers[0], UPDATE("s"), a);
    expect_unchanged(&workers[0], QUESTION("s"), a);
    expect_unchanged(&workers[0], "{'id':7,'error':0}", b);
    expect_unchanged(&workers[0], UPDATE("s"), a);
}

/* A late success of a request to load that was given up moves nothing. */
TEST(loading_that_was_given_up)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    start_session(a, &workers[0], "s");
    give(b, LOAD("s"));
    give(b, "{'method':'notifications/cancelled','params':{'requestId':7}}");
    expect_unchanged(&workers[0], UPDATE("s"), a);
    expect_action(give(&workers[0], "{'id':7,'result':{}}"), ACTION_DROP);
    expect_unchanged(&workers[0], UPDATE("s"), a);
    ck_assert(list_empty(&workers[0].loading));
}

TEST(forked_sessions_begin_with_the_answer)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    start_session(a, &workers[0], "s");
    give(b, "{'id':7,'method':'session/fork','params':{'sessionId':'s'}}");
    give(&workers[0], "{'id':7,'result':{'sessionId':'t'}}");
    expect_unchanged(&workers[0], UPDATE("t"), b);
    expect_unchanged(&workers[0], UPDATE("s"), a);
}

/* Two processes of a shared pool choose the same id. */
TEST(second_session_of_one_id_in_a_shared_pool_is_an_error)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 2, NESTED);
    give(a, "{'id':1,'method':'session/new'}");
    give(b, "{'id':1,'method':'session/new'}");
    expect_unchanged(&workers[0], "{'id':1,'result':{'sessionId':'s'}}", a);
    expect_failed(give(&workers[1], "{'id':1,'result':{'sessionId':'s'}}"), b, "another client");
    expect_unchanged(&workers[0], UPDATE("s"), a);
    expect_refused(give(&workers[1], UPDATE("s")), "no such session");
    expect_unchanged(b, "{'method':'m','params':{'sessionId':'s'}}", &workers[0]);
    /* Another client loads it: at the process that has it. */
    expect_unchanged(b, LOAD("s"), &workers[0]);
    ck_assert_ptr_eq(give(&workers[0], "{'id':7,'result':{}}")->decision.former_owner, a);
    expect_unchanged(&workers[0], UPDATE("s"), b);
}

/* The session that counts is the agent's, whatever the top level says. */
TEST(top_level_session_is_not_loaded)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("plain", 1, .clients = CLIENTS_SHARED);
    POOL("nested", 1, NESTED);
    give(a, "{'id':9,'method':'session/new','pool':'nested'}");
    give(&workers[1], "{'id':9,'result':{'sessionId':'s'}}");
    expect_unchanged(b,
                     "{'id':7,'method':'session/load','sessionId':'s','params':{'sessionId':'t'}}",
                     &workers[1]);
    ck_assert_ptr_null(give(&workers[1], "{'id':7,'result':{}}")->decision.former_owner);
    expect_unchanged(&workers[1], UPDATE("s"), a);
    expect_unchanged(&workers[1], UPDATE("t"), b);
}

TEST(sessions_of_clients_that_left_are_not_for_others)
{
    struct peer *a = add_client(), *b;

    POOL("p", 1, STICKY, NESTED);
    give(a, "{'method':'m'}");
    /* An unknown session, and only one client. */
    expect_unchanged(&workers[0], "{'method':'u','params':{'sessionId':'t'}}", a);
    b = add_client();
    give(b, "{'id':1,'method':'session/new','params':{}}");
    expect_unchanged(&workers[0], "{'method':'u','params':{'sessionId':'t'}}", b);
    leave(b);
    expect_refused(give(&workers[0], "{'id':1,'method':'u','params':{'sessionId':'t'}}"),
                   "no such session");
    expect_refused(give(&workers[0], "{'method':'u','params':{'sessionId':'t'}}"),
                   "no such session");
    /* A new process has no sessions of the old one. */
    departure_worker(&router, &workers[0], note_unanswered, NULL);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_unchanged(&workers[0], "{'method':'u','params':{'sessionId':'t'}}", a);
}

TEST(sessions_are_learned)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, NESTED);
    give(a, "{'id':1,'method':'session/new','params':{}}");
    give(b, "{'id':2,'method':'session/new','params':{}}");
    give(&workers[0], "{'id':2,'result':{'sessionId':'two'}}");
    give(&workers[0], "{'id':1,'result':{'sessionId':'o\\u006ee'}}");
    expect_unchanged(&workers[0], "{'method':'u','params':{'sessionId':'one'}}", a);
    expect_unchanged(&workers[0], "{'method':'u','params':{'sessionId':'two'}}", b);
    /* Not from the answer to a message in a session, an error, or a sessionId that is no text. */
    give(a, "{'id':1,'method':'m','params':{'sessionId':'one'}}");
    give(&workers[0], "{'id':1,'result':{'sessionId':'three'}}");
    give(a, "{'id':1,'method':'m'}");
    give(&workers[0], "{'id':1,'error':{'sessionId':'four'}}");
    give(a, "{'id':1,'method':'m'}");
    give(&workers[0], "{'id':1,'result':{'sessionId':5}}");
    ck_assert_uint_eq(router.sessions.table.count, 2);
}

TEST(two_sticky_workers_may_use_one_session_id)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 2, STICKY, NESTED, REWRITE);
    give(a, "{'id':1,'method':'session/new'}");
    give(b, "{'id':1,'method':'session/new'}");
    give(&workers[0], "{'id':2,'result':{'sessionId':'s'}}");
    give(&workers[1], "{'id':2,'result':{'sessionId':'s'}}");
    expect_unchanged(&workers[0], "{'method':'u','params':{'sessionId':'s'}}", a);
    expect_unchanged(&workers[1], "{'method':'u','params':{'sessionId':'s'}}", b);
    ck_assert_uint_eq(router.sessions.table.count, 2);
}

TEST(shared_sessions_stay_with_their_worker)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 2, NESTED, REWRITE);
    expect(give(a, "{'id':1,'method':'session/new'}"), &workers[0],
           "{'id':2,'method':'session/new'}");
    give(&workers[0], "{'id':2,'result':{'sessionId':'s'}}");
    expect_unchanged(b, "{'method':'m','params':{'sessionId':'s'}}", &workers[0]);
    expect_unchanged(b, "{'method':'m','params':{'sessionId':'s'}}", &workers[0]);
    expect_unchanged(b, "{'method':'m','params':{'sessionId':'new'}}", &workers[1]);
    expect_unchanged(b, "{'method':'m','params':{'sessionId':'new'}}", &workers[0]);
    expect_unchanged(&workers[0], "{'method':'u','params':{'sessionId':'s'}}", a);
    expect_refused(give(&workers[0], "{'id':9,'method':'u','params':{'sessionId':'x'}}"),
                   "no such session");
    expect_refused(give(&workers[0], "{'id':9,'method':'u'}"), "unroutable");
}

TEST(sessions_of_plain_pools_ignore_modes_of_others)
{
    static const char text[] = "{'sessionId':'s','method':'m'}";
    struct peer *a = add_client();

    POOL("p", 2, .clients = CLIENTS_SHARED);
    POOL("q", 1, NESTED);
    expect_unchanged(a, text, &workers[0]);
    expect_unchanged(a, text, &workers[0]);
}

TEST(sessions_have_their_limit)
{
    struct peer *a = add_client();

    router.sessions.max = 1;
    POOL("p", 1, STICKY, NESTED);
    POOL("q", 1, STICKY);
    start_session(a, &workers[0], "s");
    expect_refused(give(a, "{'id':1,'method':'m','sessionId':'t','pool':'q'}"), "max_sessions");
    give(a, "{'id':1,'method':'m'}");
    expect_failed(give(&workers[0], "{'id':1,'result':{'sessionId':'t'}}"), a, "max_sessions");
    give(a, LOAD("t"));
    expect_failed(give(&workers[0], "{'id':7,'result':{}}"), a, "max_sessions");
    ck_assert_uint_eq(router.sessions.table.count, 1);
}

/* --- exclusive --- */

TEST(exclusive_workers_have_one_client)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    router.now_ms = 1000;
    expect_unchanged(a, "{'id':1,'method':'m'}", &workers[0]);
    expect_unchanged(b, "{'id':1,'method':'m'}", &workers[1]);
    ck_assert(router.demand);
    expect_action(give(c, "{'id':1,'method':'m'}"), ACTION_HOLD);
    ck_assert_int_eq(c->hold_until_ms, 11000);
    expect_unchanged(&workers[0], "{'method':'n'}", a);
    expect_unchanged(&workers[1], "{'id':'x','method':'q','params':{'sessionId':'any'}}", b);
    expect_unchanged(&workers[1], "{'id':1,'result':0}", b);
    /* A new process takes the place of the old one. */
    leave(a);
    expect_none_released();
    waiting_worker_available(&router, &workers[0], PEER_ABSENT);
    expect_released(c);
    expect_action(give(c, "{'id':1,'method':'m'}"),
                  ACTION_HOLD); /* the process starts: no time limit */
    expect_action(give(&workers[0], "{'method':'n'}"), ACTION_DROP);
    departure_worker(&router, &workers[0], note_unanswered, NULL);
    expect_released(c);
    expect_action(give(c, "{'id':1,'method':'m'}"), ACTION_HOLD);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_released(c);
    expect_unchanged(c, "{'id':1,'method':'m'}", &workers[0]);
    ck_assert_str_eq(reported, "");
}

TEST(exclusive_pools_keep_no_sessions)
{
    struct peer *a = add_client();

    POOL("p", 1, EXCLUSIVE, NESTED);
    give(a, "{'id':1,'method':'session/new'}");
    give(&workers[0], "{'id':1,'result':{'sessionId':'s'}}");
    give(a, "{'method':'m','params':{'sessionId':'t'}}");
    ck_assert_uint_eq(router.sessions.table.count, 0);
    expect_unchanged(&workers[0], "{'method':'u','params':{'sessionId':'s'}}", a);
}

TEST(exclusive_clients_wait_for_the_busy_timeout)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, EXCLUSIVE, .busy_timeout_sec = 10);
    router.now_ms = 1000;
    give(a, "{'method':'m'}");
    expect_action(give(b, "{'id':1,'method':'m'}"), ACTION_HOLD);
    /* Released for another reason, and held for the rest of the time. */
    router.now_ms = 6000;
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_released(b);
    expect_action(give(b, "{'id':1,'method':'m'}"), ACTION_HOLD);
    ck_assert_int_eq(b->hold_until_ms, 11000);
    waiting_expire(&router, b);
    expect_released(b);
    expect_refused(give(b, "{'id':1,'method':'m'}"), "busy_timeout_sec");
    /* The next message has its own time. */
    router.now_ms = 20000;
    expect_action(give(b, "{'id':2,'method':'m'}"), ACTION_HOLD);
    ck_assert_int_eq(b->hold_until_ms, 30000);
}

TEST(exclusive_worker_at_the_last_moment_is_taken)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, EXCLUSIVE, .busy_timeout_sec = 10);
    give(a, "{'id':1,'method':'m'}");
    expect_action(give(b, "{'id':1,'method':'m'}"), ACTION_HOLD);
    waiting_expire(&router, b);
    leave(a);
    departure_worker(&router, &workers[0], note_unanswered, NULL);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_released(b);
    expect_unchanged(b, "{'id':1,'method':'m'}", &workers[0]);
}

TEST(exclusive_client_stays_when_its_worker_crashes)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 2, EXCLUSIVE);
    give(a, "{'id':1,'method':'m'}");
    departure_worker(&router, &workers[0], note_unanswered, NULL);
    ck_assert_str_eq(reported, "c0:1 ");
    expect_action(give(a, "{'id':2,'method':'m'}"), ACTION_HOLD);
    expect_unchanged(b, "{'id':2,'method':'m'}", &workers[1]);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_released(a);
    expect_unchanged(a, "{'id':2,'method':'m'}", &workers[0]);
}

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
    deadlines_expire(&router, note_expired, NULL);
    return deadlines_next(&router);
}

TEST(requests_time_out)
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
    ck_assert_int_eq(expire(11000), 304000); /* the id of 3 is free then */
    ck_assert_str_eq(expired, "2 ");
    /* The id stays taken until the late answer, which is dropped. */
    ck_assert_uint_eq(router.from_clients.abandoned_count, 2);
    expect_action(give(a, "{'id':2,'method':'m','pool':'p'}"), ACTION_HOLD);
    expect_action(give(&workers[0], "{'id':2,'result':1}"), ACTION_DROP);
    expect_released(a);
    expect_unchanged(a, "{'id':2,'method':'m','pool':'p'}", &workers[0]);
}

TEST(requests_time_out_in_the_order_of_their_deadlines)
{
    struct peer *a = add_client();

    POOL("p", 1, .request_timeout_sec = 600);
    give(a, "{'id':1,'method':'m'}");
    pools[0].mode.request_timeout_sec = 1;
    give(a, "{'id':2,'method':'m'}");
    give(a, "{'id':3,'method':'m'}");
    ck_assert_int_eq(expire(999), 1000);
    ck_assert_int_eq(expire(1000), 301000); /* the ids of 2 and 3 are free then */
    ck_assert_str_eq(expired, "2 3 ");
    ck_assert_uint_eq(deadlines_free_abandoned(&router), 0);
    expire(600000);
    ck_assert_str_eq(expired, "1 ");
}

TEST(requests_time_out_in_a_pool_that_was_detached)
{
    struct peer *a = add_client();

    POOL("p", 1, .request_timeout_sec = 10);
    give(a, "{'id':1,'method':'m'}");
    departure_detach_pool(&router, &pools[0], true);
    ck_assert_int_eq(deadlines_next(&router), 10000);
    expire(10000);
    ck_assert_str_eq(expired, "1 ");
}

TEST(token_of_an_abandoned_request_may_be_used_again)
{
    struct peer *a = add_client();

    POOL("p", 1, EXCLUSIVE, .request_timeout_sec = 10);
    give(a, "{'id':1,'method':'m','params':{'_meta':{'progressToken':'t'}}}");
    expire(20000);
    give(a, "{'id':2,'method':'m','params':{'_meta':{'progressToken':'t'}}}");
    expect_unchanged(&workers[0],
                     "{'method':'notifications/progress','params':{'progressToken':'t'}}", a);
}

TEST(progress_restarts_the_clock)
{
    struct peer *a = add_client();

    POOL("p", 1, EXCLUSIVE, .request_timeout_sec = 10);
    give(a, "{'id':1,'method':'m','params':{'_meta':{'progressToken':'t'}}}");
    router.now_ms = 100;
    give(a, "{'id':2,'method':'m'}");
    router.now_ms = 9000;
    expect_unchanged(&workers[0],
                     "{'method':'notifications/progress','params':{'progressToken':'t'}}", a);
    ck_assert_int_eq(expire(10100), 19000);
    ck_assert_str_eq(expired, "2 ");
    expire(19000);
    ck_assert_str_eq(expired, "1 ");
}

FIXTURE(set_up, tear_down)
