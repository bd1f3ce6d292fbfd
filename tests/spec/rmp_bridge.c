/* RMP 9: pools of workers as agents and as the runner of the topic bus. */
#include "build_config.h"

#include "harness.h"
#include "rmp.h"
#include "rmp_program.h"

/* --- agents --- */

TEST(rmp_9_1_result_is_completed)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");
    struct span line;

    rmp_program_execute(daemon, "plain",
                        "{'result':{'ports':{'out':[{'schema_id':221,'value':{'a':[1.5]}}]}}}");
    line = rmp_program_expect(&replies, "'payload':{'Completed':{'ports':{'out':[{'schema_id':221,"
                                        "'value':{'a':[1.5]}}]}}}");
    expect_member(line, "header.trace_id", "\"" RMP_TRACE "\"");
    expect_member(line, "header.schema_id", "4001");
    expect_member(line, "header.ttl_ms", "30000");
    expect_member(line, "body.type", "\"toolresult.executor.agent.response.v1\"");
    expect_member(line, "body.meta.topic", "\"reply\"");
}

TEST(rmp_9_1_request_is_json)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");
    struct span line, params;

    rmp_program_execute(daemon, "mirror", "{}");
    line = rmp_program_expect(&replies, "Completed");
    struct text *request = test_text();
    line = json_text(json_get(line, "body.payload.Completed.line"));
    for (size_t i = 0; i + 1 < line.len; i += 2) {
        unsigned byte;
        ck_assert_int_eq(sscanf(line.data + i, "%2x", &byte), 1);
        text_add(request, &(char){(char)byte}, 1);
    }
    params = (struct span){request->data, request->len};
    expect_member(params, "method", "\"agent/execute\"");
    expect_member(params, "sessionId", "\"" RMP_TRACE "\"");
    expect_member(params, "params.attempt", "1");
    expect_member(params, "params.reply_topic", "\"reply\"");
}

static const struct {
    const char *inputs, *failed;
} failures[] = {
    {"{'code':5}", "{'Failed':{'retryable':false,'reason':'as you asked'}}"},
    {"{'data':{'retryable':true}}", "{'Failed':{'retryable':true,'reason':'as you asked'}}"},
    {"{'data':{'retryable':false}}", "{'Failed':{'retryable':false,'reason':'as you asked'}}"},
    {"{'code':-32000}", "{'Failed':{'retryable':false,'reason':'as you asked'}}"},
};

TEST_ROWS(rmp_9_1_error_is_failed, COUNT(failures))
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_execute(daemon, "fail", failures[row].inputs);
    rmp_program_expect(&replies, "'payload':%s", failures[row].failed);
}

TEST(rmp_9_1_ttl_is_the_deadline)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_execute_until(daemon, RMP_TRACE, RMP_PROGRAM_SHORT, "no_answer", "{}");
    rmp_program_expect(&replies, "'payload':{'Failed':{'retryable':false,'reason':'timeout'}}");
    rmp_program_execute(daemon, "plain", "{'result':1}");
    rmp_program_expect(&replies, "'payload':{'Completed':1}");
}

TEST(rmp_9_1_late_answer_is_dropped)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_execute(daemon, "hold", "{}");
    rmp_program_expect(&replies, "Completed");
    rmp_program_execute_until(daemon, RMP_TRACE, RMP_PROGRAM_SHORT, "echo", "{}");
    rmp_program_expect(&replies, "'reason':'timeout'");
    rmp_program_execute(daemon, "release", "{}");
    rmp_program_expect(&replies, "Completed");
    rmp_program_execute(daemon, "plain", "{'result':2}");
    rmp_program_expect(&replies, "'payload':{'Completed':2}");
}

TEST(rmp_9_1_dead_worker_is_retryable)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_execute(daemon, "die", "{}");
    rmp_program_expect(&replies, "'payload':{'Failed':{'retryable':true,'reason':'worker exited "
                                 "before answering: it exited with status 1'}}");
    rmp_program_execute(daemon, "plain", "{'result':3}"); /* held until the next process runs */
    rmp_program_expect(&replies, "'payload':{'Completed':3}");
}

TEST(rmp_9_1_killed_worker_is_retryable)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");
    pid_t worker;

    rmp_program_execute(daemon, "no_answer", "{}");
    daemon_wait_workers(daemon, 1);
    rmp_program_execute(daemon, "plain", "{'result':1}"); /* the worker has the first one by now */
    rmp_program_expect(&replies, "Completed");
    ck_assert_uint_eq(daemon_workers(daemon, &worker, 1), 1);
    kill(worker, SIGKILL);
    rmp_program_expect(&replies, "'payload':{'Failed':{'retryable':true,");
}

/* The worker is away until it is started again. */
TEST(rmp_9_1_held_request_times_out)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    for (int i = 0; i < 4; i++) { /* the next start is 6.4 s away */
        rmp_program_execute(daemon, "die", "{}");
        rmp_program_expect(&replies, "'retryable':true");
    }
    rmp_program_execute_until(daemon, RMP_TRACE, RMP_PROGRAM_SHORT, "plain", "{'result':1}");
    rmp_program_expect(&replies, "'payload':{'Failed':{'retryable':false,'reason':'timeout'}}");
    rmp_program_execute(daemon, "plain", "{'result':2}");
    rmp_program_expect(&replies, "'payload':{'Completed':2}");
}

#define IN_FLIGHT_MAX 1024 /* protocol.md */
#define REQUEST_SCHEMA 4000

/* The body of the next request. */
static struct span next_body(struct client *client)
{
    struct rmp_got got = rmp_next(client);
    struct text *body = test_text();

    ck_assert(got.is_frame);
    text_add(body, got.body.data, got.body.len);
    return (struct span){body->data, body->len};
}

/* It is kept, and follows when the others have ended. */
TEST(rmp_9_1_request_beyond_those_in_flight_follows)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");
    struct client *client = rmp_program_connect(daemon);
    struct span silent, plain, line;

    rmp_subscribe(client, true, "agent/writer", 0);
    rmp_program_execute_until(daemon, RMP_TRACE, RMP_PROGRAM_SHORT, "no_answer", "{}");
    silent = next_body(client);
    rmp_program_execute(daemon, "plain", "{'result':1}");
    plain = next_body(client);
    RMP_PROGRAM_EXPECT(&replies, "Completed", "timeout");
    client_close(client);
    client = rmp_program_connect(daemon);
    rmp_hello(client, true, "Agent");
    for (int i = 1; i <= IN_FLIGHT_MAX; i++)
        RMP_SEND(client, .schema = REQUEST_SCHEMA, .body = silent, .trace = 1,
                 .msg_id = (uint64_t)i, .ttl_ms = 3000);
    RMP_SEND(client, .schema = REQUEST_SCHEMA, .body = plain, .trace = 1,
             .msg_id = IN_FLIGHT_MAX + 1, .ttl_ms = 600000);
    do
        line = rmp_program_expect(&replies, "payload");
    while (strstr(test_format("%.*s", (int)line.len, line.data), "Completed") == NULL);
}

TEST(rmp_9_1_trace_stays_at_its_worker)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(2));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");
    long first, second;

    rmp_program_execute(daemon, "echo", "{}");
    first = json_number(rmp_program_expect(&replies, "Completed"), "body.payload.Completed.pid");
    rmp_program_execute_until(daemon, RMP_OTHER_TRACE, "30000", "echo", "{}");
    second = json_number(rmp_program_expect(&replies, "Completed"), "body.payload.Completed.pid");
    ck_assert_int_ne(first, second);
    for (int i = 0; i < 3; i++) {
        rmp_program_execute(daemon, "echo", "{}");
        ck_assert_int_eq(json_number(rmp_program_expect(&replies, "Completed"),
                                     "body.payload.Completed.pid"),
                         first);
    }
}

/* --- the pool is that of the topic, whatever the trace --- */

#define SERVED(id, rmp)                                                                            \
    "{'id':'" id "','command':'@WORKER@','args':['--name','" id "'],'instances':1,'rmp':{" rmp "}" \
    "}"
#define THREE_POOLS                                                                                \
    SERVED("writer", "'agent':'writer'")                                                           \
    "," SERVED("critic", "'agent':'critic'") "," SERVED("runner", "'runner':true")

/* Asks the agent, and returns the name of the worker that answers. */
static void expect_agent(struct daemon *daemon, struct rmp_program *replies, const char *agent)
{
    rmp_program_publish(daemon, test_format("agent/%s", agent), "intent.executor.agent.request.v1",
                        RMP_TRACE, "30000",
                        "{'node':{'method':'echo'},'inputs':{},'reply_topic':'reply'}");
    expect_member(rmp_program_expect(replies, "Completed"), "body.payload.Completed.worker",
                  test_format("\"%s\"", agent));
}

TEST(rmp_9_1_topic_decides_the_pool_of_a_trace)
{
    struct daemon *daemon = rmp_program_daemon(THREE_POOLS);
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");
    struct rmp_program answers = rmp_program_subscriber(daemon, "rlp/ctrl");

    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'name: a'");
    RMP_PROGRAM_EXPECT(&answers, "RunSubmit", "'opening_name':'run 1'");
    for (int i = 0; i < 2; i++) {
        expect_agent(daemon, &replies, "writer");
        expect_agent(daemon, &replies, "critic");
    }
    rmp_program_publish(daemon, "rlp/ctrl", "intent.ctrl.request.v1", RMP_TRACE, "30000",
                        "{'RunCancel':{'trace_id':'" RMP_TRACE "'}}");
    RMP_PROGRAM_EXPECT(&answers, "RunCancel", "RunCancelled");
}

/* A client of JSON-RPC names a session as it likes. */
TEST(rmp_9_1_session_of_a_client_decides_no_pool_of_a_trace)
{
    struct daemon *daemon =
        rmp_program_daemon(THREE_POOLS
                           ",{'id':'plain','command':'@WORKER@','args':['--name','plain'],"
                           "'instances':1}");
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");
    struct client *client = client_connect(daemon);

    expect_member(client_ask(client, "1", RMP_TRACE, "echo", NULL), "worker", "\"plain\"");
    expect_agent(daemon, &replies, "writer");
    expect_member(client_ask(client, "2", RMP_TRACE, "echo", NULL), "worker", "\"plain\"");
}

TEST(rmp_9_1_question_of_an_agent_is_refused)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_execute(daemon, "ask", "{'id':7,'params':{}}");
    rmp_program_expect(&replies, "-32601");
}

TEST(rmp_9_1_request_without_reply_topic_is_dropped)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_publish(daemon, "agent/writer", "intent.executor.agent.request.v1", RMP_TRACE,
                        "30000", "{'node':{}}");
    daemon_wait_log(daemon, "WARN.*it has no reply_topic");
    rmp_program_execute(daemon, "plain", "{'result':1}");
    rmp_program_expect(&replies, "'payload':{'Completed':1}");
}

/* The bridge has no rights that the publisher of the request has not. */
TEST(rmp_11_reply_topic_of_the_system_is_refused)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_publish(daemon, "agent/writer", "intent.executor.agent.request.v1", RMP_TRACE,
                        "30000",
                        "{'node':{'method':'plain'},'inputs':{},'reply_topic':'rlp/sys/drops'}");
    daemon_wait_log(daemon, "WARN.*cannot publish on .rlp/sys/drops");
    rmp_program_execute(daemon, "plain", "{'result':1}");
    rmp_program_expect(&replies, "'payload':{'Completed':1}");
}

/* --- clients of JSON-RPC beside it --- */

TEST(rmp_pool_gets_only_messages_that_name_it)
{
    struct daemon *daemon = rmp_program_daemon(
        "{'id':'plain','command':'@WORKER@','args':['--name','plain'],'instances':1}," RMP_WRITER(
            2));
    struct client *client = client_connect(daemon);

    for (int i = 0; i < 6; i++)
        expect_member(client_ask(client, "1", NULL, "echo", NULL), "worker", "\"plain\"");
    client_send(client, "{'jsonrpc':'2.0','id':2,'method':'echo','pool':'writer'}");
    expect_member(client_result(client, "2"), "worker", "\"worker\"");
}

/* --- the runner --- */

TEST(rmp_9_submit_is_accepted_and_its_events_come)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct rmp_program answers = rmp_program_subscriber(daemon, "rlp/ctrl");
    struct rmp_program events = rmp_program_subscriber(daemon,
                                                       "rlp/runs/trace:" RMP_TRACE "/events");
    struct span line;

    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'name: a'");
    rmp_program_expect(&answers, "RunSubmit");
    line = rmp_program_expect(&answers, "'payload':{'RunAccepted':{'request_id':'" RMP_TRACE
                                        "','trace_id':'" RMP_TRACE
                                        "','opening_id':7,'opening_name':'run 1'}}");
    expect_member(line, "header.schema_id", "2002");
    expect_member(line, "header.trace_id", "\"" RMP_TRACE "\"");
    expect_member(line, "header.ttl_ms", "30000");
    line = rmp_program_expect(&events, "'payload':{'kind':'log','message':'one','meta':{'ts_ms':");
    expect_member(line, "header.schema_id", "8");
    expect_member(line, "header.trace_id", "\"" RMP_TRACE "\"");
    rmp_program_expect(&events, "'payload':{'kind':'status','message':'completed'");
}

TEST(rmp_9_duplicate_is_one_run)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct rmp_program answers = rmp_program_subscriber(daemon, "rlp/ctrl");

    for (int i = 0; i < 3; i++) {
        rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'name: a'");
        RMP_PROGRAM_EXPECT(&answers, "RunSubmit", "'opening_name':'run 1'");
    }
    rmp_program_submit(daemon, RMP_OTHER_TRACE, "'opening_yaml':'name: a'");
    RMP_PROGRAM_EXPECT(&answers, "RunSubmit", "'opening_name':'run 2'");
}

/* The duplicate comes while the runner works on the first one. */
TEST(rmp_9_duplicate_in_flight_is_one_run)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct rmp_program answers = rmp_program_subscriber(daemon, "rlp/ctrl");
    struct client *client = client_connect(daemon);

    client_ask(client, "1", NULL, "hold", NULL);
    for (int i = 0; i < 2; i++) {
        rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'name: a'");
        rmp_program_expect(&answers, "RunSubmit");
    }
    client_ask(client, "2", NULL, "release", NULL);
    rmp_program_expect(&answers, "'opening_name':'run 1'");
    rmp_program_submit(daemon, RMP_OTHER_TRACE, "'opening_yaml':'name: a'");
    RMP_PROGRAM_EXPECT(&answers, "RunSubmit", "'opening_name':'run 2'");
}

TEST(rmp_9_rejection_is_not_remembered)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct rmp_program answers = rmp_program_subscriber(daemon, "rlp/ctrl");

    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'reject'");
    rmp_program_expect(&answers, "RunSubmit");
    rmp_program_expect(&answers,
                       "{'RunRejected':{'request_id':'" RMP_TRACE "','reason':'as you asked'}}");
    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'name: a'");
    RMP_PROGRAM_EXPECT(&answers, "RunSubmit", "'opening_name':'run 1'");
}

TEST(rmp_9_bad_submit_is_rejected)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct rmp_program answers = rmp_program_subscriber(daemon, "rlp/ctrl");

    rmp_program_submit(daemon, RMP_TRACE, "'other':1");
    RMP_PROGRAM_EXPECT(&answers, "RunSubmit", "'reason':'RunSubmit has no opening_yaml'");
    rmp_program_publish(daemon, "rlp/ctrl", "intent.ctrl.request.v1", RMP_TRACE, "30000",
                        "{'RunSubmit':{'request_id':'" RMP_OTHER_TRACE "','opening_yaml':'a'}}");
    RMP_PROGRAM_EXPECT(&answers, "RunSubmit",
                       "'reason':'request_id is not the trace_id of the frame'");
}

TEST(rmp_9_cancel)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct rmp_program answers = rmp_program_subscriber(daemon, "rlp/ctrl");
    struct rmp_program events = rmp_program_subscriber(daemon,
                                                       "rlp/runs/trace:" RMP_TRACE "/events");

    rmp_program_publish(daemon, "rlp/ctrl", "intent.ctrl.request.v1", RMP_OTHER_TRACE, "30000",
                        "{'RunCancel':{'trace_id':'" RMP_TRACE "'}}");
    RMP_PROGRAM_EXPECT(&answers, "RunCancel",
                       "'payload':{'RunCancelled':{'request_id':'" RMP_OTHER_TRACE
                       "','trace_id':'" RMP_TRACE "'}}");
    rmp_program_expect(&events, "'message':'cancelled'");
}

TEST(rmp_9_silent_runner_is_a_rejection)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct rmp_program answers = rmp_program_subscriber(daemon, "rlp/ctrl");

    rmp_program_publish(daemon, "rlp/ctrl", "intent.ctrl.request.v1", RMP_TRACE, RMP_PROGRAM_SHORT,
                        "{'RunSubmit':{'request_id':'" RMP_TRACE "','opening_yaml':'silence'}}");
    rmp_program_expect(&answers, "RunSubmit");
    rmp_program_expect(&answers,
                       "{'RunRejected':{'request_id':'" RMP_TRACE "','reason':'timeout'}}");
}

TEST(rmp_9_no_runner)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program answers = rmp_program_subscriber(daemon, "rlp/ctrl");

    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'name: a'");
    RMP_PROGRAM_EXPECT(&answers, "RunSubmit", "'reason':'no runner pool is configured'");
}

TEST(rmp_10_event_without_a_trace_is_dropped)
{
    struct daemon *daemon =
        rmp_program_daemon("{'id':'w','command':'@WORKER@','instances':1,'rmp':{'agent':"
                           "'writer','runner':true}}");
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_execute(daemon, "say",
                        "{'message':{'method':'run/event','params':{'kind':'log'}}}");
    daemon_wait_log(daemon, "WARN.*run/event has no trace_id");
    rmp_program_expect(&replies, "Completed");
}

/* One connection has both topics: it gets messages in the order of their publication. */
static struct client *watch_runs(struct daemon *daemon)
{
    struct client *client = rmp_program_connect(daemon);

    rmp_subscribe(client, true, "rlp/ctrl", 0);
    rmp_subscribe(client, true, "rlp/runs/trace:" RMP_TRACE "/events", 0);
    return client;
}

TEST(rmp_10_events_follow_their_acceptance)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct client *watcher = watch_runs(daemon);

    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'early'");
    rmp_expect_word(watcher, 2001, "RunSubmit");
    rmp_expect_word(watcher, 2002, "RunAccepted");
    rmp_expect_word(watcher, 8, "early");
    rmp_expect_word(watcher, 8, "zero");
    rmp_expect_word(watcher, 8, "one");
    rmp_expect_word(watcher, 8, "completed");
}

/* The specification's name of the topic beside that of the public implementation: one topic, whose
 * name in a frame is the latter. */
TEST(rmp_10_events_have_the_bare_uuid_too)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct client *both = watch_runs(daemon), *bare = rmp_program_connect(daemon);

    rmp_subscribe(both, true, "rlp/runs/" RMP_TRACE "/events", 0);
    rmp_subscribe(bare, true, "rlp/runs/" RMP_TRACE "/events", 0);
    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'name: a'");
    rmp_expect_word(both, 2001, "RunSubmit");
    rmp_expect_word(both, 2002, "RunAccepted");
    rmp_expect_word(both, 8, "one");
    rmp_expect_word(both, 8, "completed");
    rmp_expect_word(bare, 8, "one");
    rmp_expect_word(bare, 8, "rlp/runs/trace:" RMP_TRACE "/events");
}

TEST(rmp_10_rejected_run_has_no_events)
{
    struct daemon *daemon = rmp_program_daemon(RMP_RUNNER);
    struct client *watcher = watch_runs(daemon);

    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'early reject'");
    rmp_expect_word(watcher, 2001, "RunSubmit");
    rmp_expect_word(watcher, 2002, "RunRejected");
    rmp_program_submit(daemon, RMP_TRACE, "'opening_yaml':'name: a'");
    rmp_expect_word(watcher, 2001, "RunSubmit");
    rmp_expect_word(watcher, 2002, "RunAccepted");
    rmp_expect_word(watcher, 8, "one");
}

static const struct {
    const char *members, *problem;
} bad_events[] = {
    {"'kind':'nonsense','message':'m'", "the kind of run/event is none of"},
    {"'kind':'log','level':'loud','message':'m'", "the level of run/event is none of"},
};

TEST_ROWS(rmp_10_event_of_no_kind_or_level_is_dropped, COUNT(bad_events))
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program events = rmp_program_subscriber(daemon,
                                                       "rlp/runs/trace:" RMP_TRACE "/events");

    rmp_program_execute(daemon, "say",
                        test_format("{'message':{'method':'run/event','params':{'trace_id':"
                                    "'" RMP_TRACE "',%s}}}",
                                    bad_events[row].members));
    daemon_wait_log(daemon, test_format("WARN.*%s", bad_events[row].problem));
    rmp_program_execute(daemon, "say",
                        "{'message':{'method':'run/event','params':{'trace_id':'" RMP_TRACE
                        "','kind':'plan','level':'error','message':'good'}}}");
    rmp_program_expect(&events, "'payload':{'kind':'plan','level':'error','message':'good'");
}

/* --- the end --- */

TEST(rmp_shutdown_fails_what_is_in_flight)
{
    struct daemon *daemon = rmp_program_daemon(RMP_WRITER(1));
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_execute(daemon, "no_answer", "{}");
    rmp_program_execute(daemon, "plain", "{'result':1}");
    rmp_program_expect(&replies, "Completed");
    daemon_signal(daemon, SIGTERM);
    RMP_PROGRAM_EXPECT(&replies, "'payload':{'Failed':{'retryable':true,",
                       "the daemon has hung up");
    rmp_program_end(&replies, 69);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}
