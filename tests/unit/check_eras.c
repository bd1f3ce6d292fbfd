/* The two eras of MCP in one pool. */
#include "build_config.h"

#include "pool_mode_fixture.h"
#include "router/eras.h"
#include "router/remembered.h"

#define MCP "'io.modelcontextprotocol/"
#define PROTOCOL MCP "protocolVersion':'2026-07-28'"
#define META "'params':{'_meta':{" PROTOCOL "}}"
#define PROBE(id) "{'id':" id ",'method':'server/discover'," META "}"
#define CALL(id) "{'id':" id ",'method':'tools/list'," META "}"
#define INITIALIZE "{'id':0,'method':'initialize','params':{}}"

static struct group *handshake = &pools[0], *stateless = &pools[1];

/* As process/pool.c makes it, with workers that take messages. */
static void add_eras(int count, enum pool_clients clients_of_either)
{
    struct pool_mode mode = {
        .clients = CLIENTS_EXCLUSIVE, .protocol = PROTOCOL_MCP, .stateless = clients_of_either};

    add_pool_of_eras(&mode);
    add_workers(handshake, count);
}

/* A pool whose server is known to serve both eras, and its first stateless worker. */
static void add_served(int count)
{
    add_eras(count, CLIENTS_STICKY);
    stateless->support = ERA_SERVED;
}

static void end_process(struct peer *worker)
{
    departure_worker(&router, worker, note_unanswered, NULL);
}

/* As supervisor/probe.c does. */
static void answer_probe(struct peer *worker, const char *text)
{
    char line[200];
    struct message_scratch scratch;
    struct scanner scanner;
    struct message message;
    size_t i, len = (size_t)snprintf(line, sizeof line, "%s\n", text);

    for (i = 0; i < len; i++)
        line[i] = line[i] == '\'' ? '"' : line[i];
    scanner_reset(&scanner);
    ck_assert_int_eq(scanner_run(&scanner, line, len), SCAN_MESSAGE);
    ck_assert_int_eq(message_from_scan(&message, slice_of(line, len), &scanner.fields, &scratch),
                     MESSAGE_OK);
    ck_assert(worker->probed && worker->availability == PEER_ABSENT);
    if (eras_probe_answered(&router, worker, &message))
        waiting_worker_available(&router, worker, PEER_READY);
}

static void expire_probe(struct peer *worker)
{
    ck_assert(worker->probed);
    eras_probe_expired(&router, worker);
}

/* --- the era of a message, of a process --- */

TEST(eras_have_processes_of_their_own)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_served(2);
    expect_unchanged(a, INITIALIZE, &workers[0]);
    expect(give(b, CALL("'x'")), &workers[1], "{'id':2,'method':'tools/list'," META "}");
    expect(give(c, CALL("'x'")), &workers[1], "{'id':4,'method':'tools/list'," META "}");
    expect(give(&workers[1], "{'id':4,'result':{}}"), c, "{'id':'x','result':{}}");
    expect(give(&workers[1], "{'id':2,'result':{}}"), b, "{'id':'x','result':{}}");
    /* One client may speak both. */
    expect(give(a, CALL("1")), &workers[1], "{'id':6,'method':'tools/list'," META "}");
    expect_unchanged(a, "{'id':2,'method':'m'}", &workers[0]);
    expect_action(give(b, INITIALIZE), ACTION_HOLD);
}

TEST(eras_of_messages_with_odd_spellings)
{
    struct peer *a = add_client(), *b = add_client();

    add_served(2);
    ck_assert_ptr_eq(give(a, "{'id':1,'method':'server\\/discover'," META "}")->decision.to,
                     &workers[1]);
    ck_assert_int_eq(give(a, "{'id':1,'method':'server\\/discover'}")->decision.code,
                     JSONRPC_INVALID_PARAMS);
    ck_assert_ptr_eq(give(a, "{'id':2,'method':'m','params':{'_meta':{'io.modelcontextprotocol"
                             "\\/protocolVersion':1}}}")
                         ->decision.to,
                     &workers[1]);
    /* The key elsewhere says nothing. */
    expect_unchanged(b, "{'id':1,'method':'m','params':{'x':{" PROTOCOL "}}}", &workers[0]);
}

TEST(eras_notifications_follow_their_client)
{
    struct peer *a = add_client();

    add_served(2);
    give(a, CALL("1"));
    expect(give(a, "{'method':'notifications/cancelled','params':{'requestId':1}}"), &workers[1],
           "{'method':'notifications/cancelled','params':{'requestId':2}}");
    expect_unchanged(a, "{'method':'n'}", &workers[1]);
    expect_unchanged(a, INITIALIZE, &workers[0]);
    expect_unchanged(a, "{'method':'n'}", &workers[0]);
}

/* A late notification starts no process of the other era. */
TEST(eras_notifications_after_the_end_of_the_process)
{
    struct peer *a = add_client();

    add_served(2);
    give(a, CALL("1"));
    end_process(&workers[1]);
    expect_action(give(a, "{'method':'notifications/cancelled','params':{'requestId':1}}"),
                  ACTION_DROP);
    ck_assert(list_empty(&a->bindings));
    give(a, "{'method':'n'}");
    ck_assert_ptr_eq(affinity_worker(a, handshake), NULL);
}

TEST(eras_share_a_process_until_it_is_busy)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client(), *d = add_client();

    add_served(4);
    ck_assert_ptr_eq(give(a, CALL("1"))->decision.to, &workers[3]);
    give(&workers[3], "{'id':2,'result':{}}");
    ck_assert_ptr_eq(give(b, CALL("1"))->decision.to, &workers[3]); /* idle again */
    ck_assert_ptr_eq(give(c, CALL("1"))->decision.to, &workers[2]); /* busy */
    ck_assert_ptr_eq(give(d, CALL("1"))->decision.to, &workers[2]); /* no more than half of them */
}

TEST(eras_process_of_one_era_is_not_given_to_the_other)
{
    struct peer *a = add_client(), *b = add_client();

    add_served(1);
    give(a, CALL("1"));
    leave(a);
    expect_action(give(b, INITIALIZE), ACTION_HOLD);
    end_process(&workers[0]);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_released(b);
    expect_unchanged(b, INITIALIZE, &workers[0]);
}

TEST(eras_client_of_an_ended_process_gets_another)
{
    struct peer *a = add_client();

    add_served(2);
    ck_assert_ptr_eq(give(a, CALL("1"))->decision.to, &workers[1]);
    ck_assert(!departure_worker(&router, &workers[1], note_unanswered, NULL));
    ck_assert_str_eq(reported, "c0:1 ");
    ck_assert_ptr_eq(give(a, CALL("1"))->decision.to, &workers[0]);
}

TEST(eras_exclusive_for_both)
{
    struct peer *a = add_client(), *b = add_client();

    add_eras(3, CLIENTS_EXCLUSIVE);
    stateless->support = ERA_SERVED;
    expect_unchanged(a, CALL("1"), &workers[0]);
    expect_unchanged(b, CALL("1"), &workers[1]);
    expect_unchanged(&workers[0], "{'id':1,'result':{}}", a);
    expect_unchanged(&workers[0], "{'method':'notifications/message'}", a);
    expect_unchanged(a, INITIALIZE, &workers[2]);
}

/* --- servers of the handshake era alone --- */

static void expect_refused_era(struct peer *client)
{
    ck_assert_int_eq(stateless->support, ERA_REFUSED);
    expect_refused(give(client, PROBE("'p'")), "server/discover");
    ck_assert_int_eq(give(client, PROBE("'p'"))->decision.code, JSONRPC_METHOD_NOT_FOUND);
    ck_assert_int_eq(give(client, CALL("'c'"))->decision.code, MCP_UNSUPPORTED_VERSION);
    ck_assert_int_eq(give(client, INITIALIZE)->decision.action, ACTION_FORWARD);
}

static const struct {
    const char *answer;
    enum era_support support;
} answers[] = {
    {"{'id':1,'result':{'supportedVersions':[]}}", ERA_SERVED},
    {"{'id':1,'error':{'code':-32601,'message':'m'}}", ERA_REFUSED},
    {"{'id':1,'error':{'code':-32602,'message':'m'}}", ERA_REFUSED},
    {"{'id':null,'error':{'message':'m'}}", ERA_REFUSED},
    {"{'id':1,'error':{'code':'-32022'}}", ERA_REFUSED},
    {"{'id':1,'error':{'code':-32022,'message':'m'}}", ERA_SERVED},
    {"{'id':1,'error':{'message':'m','code':-3.2021e4}}", ERA_SERVED},
};

static const char *const first_messages[] = {(PROBE("'p'")), (CALL("'p'"))};

/* Of the first client's messages the worker sees none before. */
TEST_ROWS(eras_probe_is_answered, 2 * COUNT(answers))
{
    struct peer *a = add_client(), *b = add_client();
    const char *first = first_messages[row % 2];

    row /= 2;
    add_eras(3, CLIENTS_STICKY);
    expect_action(give(a, first), ACTION_HOLD);
    ck_assert(workers[2].probed && router.demand);
    expect_action(give(b, CALL("'c'")), ACTION_HOLD); /* at the same process */
    ck_assert_ptr_eq(affinity_worker(b, stateless), &workers[2]);
    answer_probe(&workers[2], answers[row].answer);
    ck_assert_int_eq(stateless->support, answers[row].support);
    expect_released(a);
    if (answers[row].support == ERA_REFUSED) {
        ck_assert(router.demand && list_empty(&workers[2].bindings));
        expect_refused(give(a, first), "initialize");
        expect_released(b);
        expect_refused_era(b);
    } else {
        ck_assert_ptr_eq(give(a, first)->decision.to, &workers[2]);
    }
}

/* For a daemon that comes later: what the server has said, until it may be another one. */
TEST_ROWS(eras_refusal_is_remembered, COUNT(answers))
{
    bool refuses = answers[row].support == ERA_REFUSED;
    struct remembered remembered;
    struct peer *a = add_client();

    remembered_init(&remembered);
    add_eras(2, CLIENTS_STICKY);
    handshake->remembered = &remembered;
    give(a, CALL("1"));
    answer_probe(&workers[1], answers[row].answer);
    ck_assert(remembered.refuses_stateless == refuses);
    ck_assert_uint_eq(remembered.edition, refuses);
    stateless->support = ERA_UNKNOWN;
    eras_recall(handshake);
    ck_assert_int_eq(stateless->support, refuses ? ERA_REFUSED : ERA_UNKNOWN);
    eras_forget(handshake);
    ck_assert_int_eq(stateless->support, ERA_UNKNOWN);
    ck_assert(!remembered.refuses_stateless);
    remembered_refuse(&remembered);
    remembered_set_era(&remembered, true);
    ck_assert(!remembered.refuses_stateless);
}

/* It may have another reason to end, or to be silent. */
TEST_ROWS(eras_refusal_that_the_server_has_not_said, 2)
{
    struct remembered remembered;

    remembered_init(&remembered);
    add_eras(2, CLIENTS_STICKY);
    handshake->remembered = &remembered;
    give(add_client(), CALL("1"));
    if (row == 0)
        end_process(&workers[1]);
    else
        expire_probe(&workers[1]);
    ck_assert_int_eq(stateless->support, ERA_REFUSED);
    ck_assert(!remembered.refuses_stateless);
}

/* The process is of the stateless era, although its client has left. */
TEST(eras_client_leaves_before_the_probe_is_answered)
{
    struct peer *a = add_client(), *b = add_client();

    add_eras(1, CLIENTS_STICKY);
    give(a, CALL("1"));
    leave(a);
    expect_action(give(b, INITIALIZE), ACTION_HOLD);
    answer_probe(&workers[0], "{'id':1,'result':{}}");
    expect_released(b);
    expect_action(give(b, INITIALIZE), ACTION_HOLD);
    expect_none_released();
    ck_assert_ptr_eq(give(add_client(), CALL("1"))->decision.to, &workers[0]);
}

/* A client's own messages show nothing, whatever the server makes of them. */
TEST(eras_answers_to_clients_decide_nothing)
{
    struct peer *a = add_client();

    add_served(2);
    give(a, PROBE("1"));
    give(&workers[1], "{'id':2,'error':{'code':-32601,'message':'m'}}");
    give(a, PROBE("2"));
    give(a, INITIALIZE);
    give(a, PROBE("3"));
    end_process(&workers[1]);
    ck_assert_int_eq(stateless->support, ERA_SERVED);
}

/* initialize with a version is of the handshake era. */
TEST(eras_initialize_that_names_a_version)
{
    struct peer *a = add_client();

    add_eras(2, CLIENTS_STICKY);
    ck_assert_ptr_eq(give(a, "{'id':3,'method':'initialize'," META "}")->decision.to, &workers[0]);
}

/* The only place is wanted by a client of the other era, whose time does not run meanwhile. */
TEST(eras_silent_server_with_one_process)
{
    struct peer *a = add_client(), *b = add_client();

    add_eras(1, CLIENTS_STICKY);
    give(a, PROBE("'p'"));
    expect_action(give(b, INITIALIZE), ACTION_HOLD);
    expire_probe(&workers[0]);
    ck_assert_int_eq(stateless->support, ERA_REFUSED);
    expect_released(a);
    expect_refused(give(a, PROBE("'p'")), "server/discover");
    end_process(&workers[0]);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_released(b);
    expect_unchanged(b, INITIALIZE, &workers[0]);
}

/* A client that has waited for the process, with a claim, has none to the next one. */
TEST(eras_client_of_a_probed_process_has_no_claim)
{
    struct peer_origin origin = {.clients = 1};
    struct peer *a = add_client(), *b = add_client();

    peer_origin_init(&origin);
    a->origin = b->origin = &origin;
    router.origin_count = 1;
    add_eras(1, CLIENTS_STICKY);
    waiting_worker_available(&router, &workers[0], PEER_ABSENT);
    expect_action(give(a, CALL("1")), ACTION_HOLD);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    expect_released(a);
    expect_action(give(a, CALL("1")), ACTION_HOLD);
    ck_assert(workers[0].probed && a->claim == NULL);
    expect_action(give(b, INITIALIZE), ACTION_HOLD);
    ck_assert_int_eq(b->hold_until_ms, 0); /* for no limited time */
    a->origin = b->origin = NULL;
}

TEST(eras_process_that_exits_on_the_probe)
{
    struct peer *a = add_client();

    add_eras(2, CLIENTS_STICKY);
    give(a, PROBE("'p'"));
    ck_assert(departure_worker(&router, &workers[1], note_unanswered, NULL));
    ck_assert_str_eq(reported, "");
    expect_released(a);
    expect_refused_era(a);
}

/* Its client has left, and the daemon has ended it. */
TEST(eras_process_that_was_ended_decides_nothing)
{
    struct peer *a = add_client();

    add_eras(2, CLIENTS_EXCLUSIVE);
    give(a, PROBE("'p'"));
    ck_assert(workers[0].probed);
    leave(a);
    ck_assert(departure_worker(&router, &workers[0], note_unanswered, NULL));
    ck_assert_int_eq(stateless->support, ERA_UNKNOWN);
    ck_assert(peer_is_fresh(&workers[0]));
}

/* Each client has a process, and the answer of one is enough to refuse all. */
TEST(eras_exclusive_server_that_refuses)
{
    struct peer *a = add_client(), *b = add_client();

    add_eras(3, CLIENTS_EXCLUSIVE);
    expect_action(give(a, CALL("1")), ACTION_HOLD);
    expect_action(give(b, CALL("1")), ACTION_HOLD);
    ck_assert(workers[0].probed && workers[1].probed);
    answer_probe(&workers[1], "{'id':1,'error':{'code':-32601,'message':'m'}}");
    expect_released(a);
    expect_refused(give(a, CALL("1")), "initialize");
    expect_released(b);
    expect_refused(give(b, CALL("1")), "initialize");
    answer_probe(&workers[0], "{'id':1,'error':{'code':-32601,'message':'m'}}");
    expect_unchanged(a, INITIALIZE, &workers[2]);
}

/* One process is silent, another one answers. */
TEST(eras_exclusive_process_that_is_silent)
{
    struct peer *a = add_client(), *b = add_client();

    add_eras(3, CLIENTS_EXCLUSIVE);
    give(a, CALL("1"));
    give(b, CALL("1"));
    answer_probe(&workers[1], "{'id':1,'result':{}}");
    expect_released(a);
    expect_action(give(a, CALL("1")), ACTION_HOLD);
    expect_released(b);
    expect_unchanged(b, CALL("1"), &workers[1]);
    expire_probe(&workers[0]);
    expect_released(a);
    expect_unchanged(a, CALL("1"), &workers[2]);
}

/* A late answer corrects it. */
TEST(eras_silence)
{
    struct peer *a = add_client(), *b = add_client();

    add_eras(3, CLIENTS_STICKY);
    give(a, PROBE("'p'"));
    expire_probe(&workers[2]);
    expect_released(a);
    expect_refused_era(a);
    leave(a);
    answer_probe(&workers[2], "{'id':1,'result':{}}");
    ck_assert_int_eq(stateless->support, ERA_SERVED);
    ck_assert_ptr_eq(give(b, CALL("1"))->decision.to, &workers[2]);
}

/* --- subscriptions, log messages --- */

#define LISTEN(id) "{'id':" id ",'method':'subscriptions/listen'," META "}"
#define NOTE(id) "{'method':'n','params':{'_meta':{" MCP "subscriptionId':" id "}}}"

TEST(eras_subscriptions_have_their_client)
{
    struct peer *a = add_client(), *b = add_client();
    struct peer *worker = &workers[1];

    add_served(2);
    expect(give(a, LISTEN("'listen:0'")), worker, LISTEN("2"));
    expect(give(b, LISTEN("'listen:0'")), worker, LISTEN("4"));
    expect(give(worker, NOTE("4")), b, NOTE("'listen:0'"));
    expect(give(worker, NOTE("2")), a, NOTE("'listen:0'"));
    expect_action(give(worker, NOTE("6")), ACTION_DROP);
    expect_action(give(worker, NOTE("'listen:0'")), ACTION_DROP);
    expect_action(give(worker, "{'method':'notifications/tools/list_changed'}"), ACTION_DROP);
    expect(give(worker, "{'id':2,'result':{'_meta':{" MCP "subscriptionId':2}}}"), a,
           "{'id':'listen:0','result':{'_meta':{" MCP "subscriptionId':'listen:0'}}}");
    expect_action(give(worker, NOTE("2")), ACTION_DROP);
    /* The server ends b's. */
    expect(give(worker, "{'method':'notifications/cancelled','params':{'requestId':4}}"), b,
           "{'method':'notifications/cancelled','params':{'requestId':'listen:0'}}");
    expect_action(give(worker, NOTE("4")), ACTION_DROP);
}

TEST(eras_other_requests_are_no_subscriptions)
{
    struct peer *a = add_client();

    add_served(2);
    give(a, CALL("'x'"));
    expect_action(give(&workers[1], NOTE("2")), ACTION_DROP);
    expect_action(give(&workers[1], "{'method':'notifications/cancelled',"
                                    "'params':{'requestId':2}}"),
                  ACTION_DROP);
    expect(give(&workers[1], "{'id':2,'result':{}}"), a, "{'id':'x','result':{}}");
}

#define LOGGED(id)                                                                                 \
    "{'id':" id ",'method':'m','params':{'_meta':{" PROTOCOL "," MCP "logLevel':'info'}}}"
#define LOG "{'method':'notifications/message','params':{'level':'info','data':'d'}}"

TEST(eras_log_messages_have_one_cause_or_none)
{
    struct peer *a = add_client(), *b = add_client();
    struct peer *worker = &workers[1];

    add_served(2);
    give(a, CALL("1"));
    expect_action(give(worker, LOG), ACTION_DROP); /* it did not ask for any */
    give(b, LOGGED("1"));
    give(b, LOGGED("2"));
    expect_unchanged(worker, LOG, b);
    give(a, LOGGED("2"));
    expect_action(give(worker, LOG), ACTION_DROP);
    give(worker, "{'id':8,'result':{}}");
    expect_unchanged(worker, LOG, b);
    /* A request that was given up may still write: for its client, while that is there. */
    give(b, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    expect_unchanged(worker, LOG, b);
    give(b, "{'method':'notifications/cancelled','params':{'requestId':2}}");
    expect_unchanged(worker, LOG, b);
    give(a, LOGGED("3"));
    expect_action(give(worker, LOG), ACTION_DROP);
    leave(b);
    expect_action(give(worker, LOG), ACTION_DROP);
    give(worker, "{'id':4,'result':{}}");
    give(worker, "{'id':6,'result':{}}");
    expect_unchanged(worker, LOG, a);
}

TEST(eras_log_messages_wait_for_a_full_client)
{
    struct peer *a = add_client();

    add_served(2);
    give(a, LOGGED("1"));
    waiting_set_full(&router, a, true);
    expect_action(give(&workers[1], LOG), ACTION_HOLD);
    waiting_set_full(&router, a, false);
    expect_released(&workers[1]);
    expect_unchanged(&workers[1], LOG, a);
}

FIXTURE(set_up, tear_down)
