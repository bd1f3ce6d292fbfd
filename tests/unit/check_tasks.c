/* The tasks of MCP 2025-11-25 in processes that clients share. */
#include "build_config.h"

#include "router/tasks.h"

#include "pool_mode_fixture.h"
#include "router/eras.h"
#include "table_fixture.h"

/* The tables are compiled into the test with an allocator that fails on demand. */
#define malloc failing_malloc
#define calloc failing_calloc
#include "base/hash_table.c"
#include "router/extras.c"
#include "router/tasks.c"
#undef malloc
#undef calloc

#define MCP .protocol = PROTOCOL_MCP
#define MANY STICKY, REWRITE, MCP

#define CALL(id)                                                                                   \
    "{'id':" id ",'method':'tools/call','params':{'task':{},'_meta':{'progressToken':'t'}}}"
#define BEGUN(id, task) "{'id':" id ",'result':{'task':{'taskId':" task ",'status':'working'}}}"
#define PROGRESS(token) "{'method':'notifications/progress','params':{'progressToken':" token "}}"
#define STATUS(task, status)                                                                       \
    "{'method':'notifications/tasks/status','params':{'taskId':" task ",'status':" status "}}"
#define RELATED(task) "'_meta':{'io.modelcontextprotocol/related-task':{'taskId':" task "}}"
#define NOTE(task) "{'method':'notifications/message','params':{" RELATED(task) "}}"
#define QUESTION(id, task)                                                                         \
    "{'id':" id ",'method':'elicitation/create','params':{" RELATED(task) "}}"
#define ON_TASK(id, method, task)                                                                  \
    "{'id':" id ",'method':'tasks/" method "','params':{'taskId':" task "}}"

static struct peer *a, *b, *worker = &workers[0];

/* Each client's call is answered with a task, "of a" and "of b". */
static void begin_tasks(void)
{
    give(a, CALL("1"));
    give(b, CALL("1"));
    expect(give(worker, BEGUN("4", "'of b'")), b, BEGUN("1", "'of b'"));
    expect(give(worker, BEGUN("2", "'of a'")), a, BEGUN("1", "'of a'"));
}

static void add_clients(void)
{
    a = add_client();
    b = add_client();
    give(a, "{'method':'notifications/initialized'}");
    give(b, "{'method':'notifications/initialized'}");
}

static void two_clients(void)
{
    POOL("p", 1, MANY);
    add_clients();
}

static void end_process(void)
{
    departure_worker(&router, worker, note_unanswered, NULL);
    waiting_worker_available(&router, worker, PEER_READY);
}

/* --- progress --- */

TEST(tasks_progress_goes_on_after_the_answer)
{
    two_clients();
    begin_tasks();
    expect(give(worker, PROGRESS("2")), a, PROGRESS("'t'"));
    expect(give(worker, PROGRESS("4")), b, PROGRESS("'t'"));
    expect_action(give(worker, PROGRESS("3")), ACTION_DROP);
    expect_action(give(worker, PROGRESS("'t'")), ACTION_BROADCAST);
}

TEST(tasks_every_token_is_kept)
{
    two_clients();
    give(a, "{'id':1,'method':'m','params':{'task':{},'_meta':{'progressToken':1e1},"
            "'workDoneToken':'w','partialResultToken':'\\u0061'}}");
    give(worker, BEGUN("2", "'x'"));
    expect(give(worker, PROGRESS("2")), a, PROGRESS("1e1"));
    expect(give(worker, PROGRESS("3")), a, PROGRESS("'\\u0061'"));
    expect(give(worker, PROGRESS("'2#'")), a, PROGRESS("'w'"));
}

static const struct {
    const char *message;
    bool ends;
} ends[] = {
    {STATUS("'of a'", "'completed'"), true},
    {STATUS("'of a'", "'failed'"), true},
    {STATUS("'of a'", "'c\\u0061ncelled'"), true},
    {STATUS("'of a'", "'working'"), false},
    {STATUS("'of a'", "'input_required'"), false},
    {STATUS("'of a'", "0"), false},
    {STATUS("'of b'", "'completed'"), false},
    {"{'method':'notifications/x','params':{'status':'failed'," RELATED("'of a'") "}}", false},
    {"{'method':'notifications/tasks/status','params':{'taskId':'of a'}}", false},
};

TEST_ROWS(tasks_end_with_a_final_status, COUNT(ends))
{
    two_clients();
    begin_tasks();
    give(worker, ends[row].message);
    if (ends[row].ends)
        expect_action(give(worker, PROGRESS("2")), ACTION_DROP);
    else
        expect(give(worker, PROGRESS("2")), a, PROGRESS("'t'"));
    expect_unchanged(worker, NOTE("'of a'"), a);
}

/* row: its result, or its error. */
TEST_ROWS(tasks_end_with_their_result, 2)
{
    two_clients();
    begin_tasks();
    give(a, ON_TASK("2", "get", "'of a'"));
    give(a, ON_TASK("3", "result", "'\\u006ff a'"));
    give(worker, "{'id':6,'result':{}}");
    expect(give(worker, PROGRESS("2")), a, PROGRESS("'t'"));
    expect(give(worker, row == 0 ? "{'id':8,'result':{}}" : "{'id':8,'error':{}}"), a,
           row == 0 ? "{'id':3,'result':{}}" : "{'id':3,'error':{}}");
    expect_action(give(worker, PROGRESS("2")), ACTION_DROP);
    /* It may be asked for once more. */
    ck_assert_ptr_eq(give(a, ON_TASK("4", "result", "'of a'"))->decision.to, worker);
}

/* An answer that the client does not wait for ends nothing. */
TEST(tasks_result_that_was_given_up)
{
    two_clients();
    begin_tasks();
    give(a, ON_TASK("2", "result", "'of a'"));
    give(a, "{'method':'notifications/cancelled','params':{'requestId':2}}");
    expect_action(give(worker, "{'id':6,'result':{}}"), ACTION_DROP);
    expect(give(worker, PROGRESS("2")), a, PROGRESS("'t'"));
}

/* Answers with which no task begins: each keeps no token. */
static const char *const other_answers[] = {
    "{'id':2,'result':{}}",
    "{'id':2,'result':{'task':{}}}",
    "{'id':2,'result':{'task':{'taskId':7}}}",
    "{'id':2,'result':{'taskId':'of a'}}",
    "{'id':2,'error':{'task':{'taskId':'of a'}}}",
};

TEST_ROWS(tasks_other_answers_begin_none, COUNT(other_answers))
{
    two_clients();
    give(a, CALL("1"));
    ck_assert_ptr_eq(give(worker, other_answers[row])->decision.to, a);
    expect_action(give(worker, PROGRESS("2")), ACTION_DROP);
    ck_assert_uint_eq(router.tasks.table.count, 0);
}

/* Nor with the answer to a request that wants none. */
TEST(tasks_begin_only_where_one_is_wanted)
{
    two_clients();
    give(a, "{'id':1,'method':'tools/call','params':{'_meta':{'progressToken':'t'}}}");
    give(worker, BEGUN("2", "'of a'"));
    expect_action(give(worker, NOTE("'of a'")), ACTION_DROP);
}

/* Its numbers do not come again while the task has them. */
TEST(tasks_numbers_that_begin_anew)
{
    two_clients();
    give(a, CALL("1"));
    worker->last_number = PENDING_NUMBER_LAST - 2;
    give(a, CALL("2"));
    expect(give(worker, BEGUN("2147483644", "'late'")), a, BEGUN("2", "'late'"));
    expect(give(worker, PROGRESS("2147483644")), a, PROGRESS("'t'"));
    expect(give(b, "{'id':1,'method':'m'}"), worker, "{'id':4,'method':'m'}");
    expect_action(give(worker, PROGRESS("2147483644")), ACTION_DROP);
    expect_unchanged(worker, NOTE("'late'"), a);
    /* A request of the numbers before: its token would be met again. */
    worker->last_number = 0;
    give(worker, BEGUN("2", "'early'"));
    expect_action(give(worker, PROGRESS("2")), ACTION_DROP);
    expect_unchanged(worker, NOTE("'early'"), a);
}

/* Where ids pass unchanged the token is the client's. */
TEST(tasks_with_ids_that_are_not_rewritten)
{
    POOL("p", 1, STICKY, MCP);
    add_clients();
    give(a, CALL("1"));
    expect_unchanged(worker, BEGUN("1", "'of a'"), a);
    expect_unchanged(worker, PROGRESS("'\\u0074'"), a);
    expect_unchanged(b, "{'id':1,'method':'m'}", worker);
    expect_unchanged(worker, STATUS("'of a'", "'completed'"), a);
    expect_action(give(worker, PROGRESS("'t'")), ACTION_BROADCAST);
}

TEST(tasks_of_an_exclusive_process)
{
    POOL("p", 1, EXCLUSIVE, REWRITE, MCP);
    a = add_client();
    give(a, CALL("1"));
    give(worker, BEGUN("2", "'x'"));
    expect(give(worker, PROGRESS("2")), a, PROGRESS("'t'"));
    expect_unchanged(worker, NOTE("'unknown'"), a);
    expect(give(a, ON_TASK("1", "get", "'unknown'")), worker, ON_TASK("4", "get", "'unknown'"));
    expect_unchanged(worker, STATUS("'x'", "'failed'"), a);
    expect_action(give(worker, PROGRESS("2")), ACTION_DROP);
}

/* --- what a worker sends --- */

TEST(tasks_messages_have_their_client)
{
    two_clients();
    begin_tasks();
    expect_unchanged(worker, NOTE("'of a'"), a);
    expect_unchanged(worker, NOTE("'\\u006ff b'"), b);
    expect_unchanged(worker, STATUS("'of b'", "'working'"), b);
    expect(give(worker, QUESTION("'q'", "'of b'")), b, QUESTION("2", "'of b'"));
    expect(give(b, "{'id':2,'result':{}}"), worker, "{'id':'q','result':{}}");
    /* Even while the other client alone waits for an answer. */
    give(a, "{'id':2,'method':'m'}");
    expect(give(worker, QUESTION("'q'", "'of b'")), b, QUESTION("4", "'of b'"));
    /* Without a task all is as before. */
    expect(give(worker, "{'id':'r','method':'m'}"), a, "{'id':2,'method':'m'}");
    expect_action(give(worker, "{'method':'n'}"), ACTION_BROADCAST);
}

TEST(tasks_messages_for_no_known_task)
{
    two_clients();
    begin_tasks();
    expect_action(give(worker, NOTE("'x'")), ACTION_DROP);
    expect_action(give(worker, NOTE("7")), ACTION_DROP);
    expect_action(give(worker, STATUS("'x'", "'completed'")), ACTION_DROP);
    expect_refused(give(worker, QUESTION("1", "'x'")), "no such task");
    ck_assert_int_eq(JSONRPC_SERVER_ERROR, give(worker, QUESTION("1", "'x'"))->decision.code);
}

TEST(tasks_messages_wait_for_a_full_client)
{
    two_clients();
    begin_tasks();
    waiting_set_full(&router, a, true);
    expect_action(give(worker, STATUS("'of a'", "'completed'")), ACTION_HOLD);
    waiting_set_full(&router, a, false);
    expect_released(worker);
    expect_unchanged(worker, STATUS("'of a'", "'completed'"), a);
}

/* The ids of two workers may be equal; two pools with shared processes, too. */
TEST(tasks_belong_to_their_worker)
{
    POOL("p", 2, MANY);
    add_clients();
    give(a, CALL("1"));
    give(b, CALL("1"));
    expect(give(&workers[1], BEGUN("2", "'x'")), b, BEGUN("1", "'x'"));
    expect_action(give(&workers[0], NOTE("'x'")), ACTION_DROP);
    expect(give(&workers[0], BEGUN("2", "'x'")), a, BEGUN("1", "'x'"));
    expect_unchanged(&workers[1], NOTE("'x'"), b);
    expect_unchanged(&workers[0], NOTE("'x'"), a);
    expect(give(&workers[1], PROGRESS("2")), b, PROGRESS("'t'"));
}

TEST(tasks_in_a_shared_pool)
{
    POOL("p", 1, .clients = CLIENTS_SHARED, REWRITE, MCP);
    add_clients();
    begin_tasks();
    expect_unchanged(worker, NOTE("'of a'"), a);
    expect(give(worker, QUESTION("1", "'of b'")), b, QUESTION("2", "'of b'"));
    expect_refused(give(a, ON_TASK("1", "cancel", "'of b'")), "unknown task");
}

/* --- what a client sends --- */

static const char *const requests_of_others[] = {
    ON_TASK("9", "get", "'of b'"),
    ON_TASK("9", "result", "'of b'"),
    ON_TASK("9", "cancel", "'of b'"),
    ON_TASK("9", "cancel", "'\\u006ff b'"),
    "{'id':9,'method':'t\\u0061sks\\/cancel','params':{'t\\u0061skId':'of b'}}",
    "{'id':9,'method':'\\u0074asks/cancel','params':{'taskId':'of b'}}",
    "{'id':9,'method':'tasks/cancel','params':{'taskId':'of a'},'params':{'taskId':'of b'}}",
    "{'id':9,'method':'tasks/get','params':{'taskId':'of b'," RELATED("'of a'") "}}",
    ON_TASK("9", "get", "'unknown'"),
    ON_TASK("9", "get", "0"),
    ON_TASK("9", "get", "null"),
    QUESTION("9", "'of b'"),
    ("{'id':9,'method':'m','params':{'_meta':{'io.modelcontextprotocol\\/related-task':"
     "{'taskId':'of b'}}}}"),
};

TEST_ROWS(tasks_of_others_are_unknown, COUNT(requests_of_others))
{
    struct delivery *delivery;

    two_clients();
    begin_tasks();
    delivery = give(a, requests_of_others[row]);
    expect_refused(delivery, "unknown task");
    ck_assert_int_eq(delivery->decision.code, JSONRPC_INVALID_PARAMS);
    ck_assert_uint_eq(router.from_clients.active_count, 0);
    expect_unchanged(worker, NOTE("'of b'"), b);
}

TEST(tasks_of_others_in_notifications)
{
    two_clients();
    begin_tasks();
    expect_action(give(a, STATUS("'of b'", "'completed'")), ACTION_DROP);
    expect_action(give(a, NOTE("'of b'")), ACTION_DROP);
    expect_unchanged(a, NOTE("'of a'"), worker);
    /* It may be a task of the client's, for a question. */
    expect_unchanged(a, STATUS("'x'", "'completed'"), worker);
    expect(give(worker, PROGRESS("4")), b, PROGRESS("'t'"));
}

static const char *const own_messages[] = {
    "'method':'tasks/get','params':{'taskId':'of a'}}",
    "'method':'tasks/cancel','params':{'taskId':'of a'}}",
    "'method':'tasks/result','params':{'taskId':'of a'}}",
    "'method':'tasks/list','params':{}}",
    "'method':'m','params':{" RELATED("'of a'") "}}",
    "'method':'m','params':{" RELATED("'its own'") "}}",
    "'method':'tools/call','params':{'taskId':'of b'}}",
};

TEST_ROWS(tasks_own_ones_are_asked_for, COUNT(own_messages))
{
    char text[200], expected[200];

    two_clients();
    begin_tasks();
    snprintf(text, sizeof text, "{'id':'x',%s", own_messages[row]);
    snprintf(expected, sizeof expected, "{'id':6,%s", own_messages[row]);
    expect(give(a, text), worker, expected);
}

/* A worker cannot make a client's task another one's. */
TEST(tasks_have_one_owner)
{
    two_clients();
    begin_tasks();
    give(a, CALL("2"));
    expect_failed(give(worker, BEGUN("6", "'of b'")), a, "task of another client");
    expect_unchanged(worker, NOTE("'of b'"), b);
    /* Twice the same client's: the first tokens count. */
    give(b, CALL("2"));
    expect(give(worker, BEGUN("8", "'of b'")), b, BEGUN("2", "'of b'"));
    expect(give(worker, PROGRESS("4")), b, PROGRESS("'t'"));
    expect_action(give(worker, PROGRESS("8")), ACTION_DROP);
    ck_assert_uint_eq(router.tasks.table.count, 2);
}

/* Of other protocols, taskId is content. */
TEST(tasks_are_of_mcp)
{
    POOL("p", 1, STICKY, REWRITE);
    add_clients();
    expect(give(a, ON_TASK("1", "get", "'x'")), worker, ON_TASK("2", "get", "'x'"));
    expect_action(give(worker, NOTE("'x'")), ACTION_BROADCAST);
}

TEST(tasks_of_the_stateless_era_are_content)
{
    struct pool_mode mode = {MANY, .stateless = CLIENTS_STICKY};

#define OF_TASK(id)                                                                                \
    "{'id':" id ",'method':'tasks/get','params':{'taskId':'x','_meta':{"                           \
    "'io.modelcontextprotocol/protocolVersion':'2026-07-28'}}}"
    pool_count = 2;
    group_init(&pools[0], slice_of("p", 1), &mode);
    group_init(&pools[1], slice_of("p", 1), &mode);
    eras_join(&pools[0], &pools[1]);
    pools[1].support = ERA_SERVED;
    router_add_pool(&router, &pools[0]);
    router_add_pool(&router, &pools[1]);
    ck_assert_int_eq(router_add_worker(&router, worker, &pools[0]), STDIO_BUS_OK);
    waiting_worker_available(&router, worker, PEER_READY);
    a = add_client();
    expect(give(a, OF_TASK("1")), worker, OF_TASK("2"));
}

/* --- their end --- */

/* row: the owner leaves, or the process ends. */
TEST_ROWS(tasks_are_forgotten, 2)
{
    two_clients();
    begin_tasks();
    if (row == 0)
        leave(b);
    else
        end_process();
    ck_assert_uint_eq(router.tasks.table.count, row == 0 ? 1 : 0);
    ck_assert_uint_eq(router.from_clients.by_token.count, row == 0 ? 1 : 0);
    ck_assert_uint_eq(b->held[PEER_TASKS], 0);
    expect_action(give(worker, NOTE("'of b'")), ACTION_DROP);
    expect_action(give(worker, PROGRESS("4")), ACTION_DROP);
    expect_refused(give(a, ON_TASK("1", "result", "'of b'")), "unknown task");
}

/* Of a client that has more than its share the oldest task is forgotten. */
TEST(tasks_are_bounded)
{
    char text[100];

    router.tasks.max = 8;
    two_clients();
    for (int i = 1; i <= 12; i++) {
        give(a, CALL("1"));
        snprintf(text, sizeof text, BEGUN("%d", "'%d'"), 2 * i, i);
        ck_assert_ptr_eq(give(worker, text)->decision.to, a);
        ck_assert_uint_le(router.tasks.table.count, 8);
    }
    expect_refused(give(a, ON_TASK("1", "get", "'4'")), "unknown task");
    expect_action(give(worker, PROGRESS("8")), ACTION_DROP);
    expect(give(worker, PROGRESS("10")), a, PROGRESS("'t'"));
    /* The other one has its share, a quarter. */
    for (int i = 13; i <= 20; i++) {
        give(b, CALL("1"));
        snprintf(text, sizeof text, BEGUN("%d", "'%d'"), 2 * i, i);
        ck_assert_ptr_eq(give(worker, text)->decision.to, b);
    }
    ck_assert_uint_eq(a->held[PEER_TASKS], 8);
    ck_assert_uint_eq(b->held[PEER_TASKS], 2);
    expect_unchanged(worker, NOTE("'19'"), b);
    expect_action(give(worker, NOTE("'18'")), ACTION_DROP);
}

/* Each allocation fails once. Nothing has changed then. */
TEST(tasks_without_memory)
{
    long limit;

    two_clients();
    begin_tasks();
    give(a, CALL("2"));
    give(worker, STATUS("'of a'", "'completed'"));
    give(worker, STATUS("'of b'", "'completed'"));
    while (!list_empty(&router.from_clients.free_extras))
        extras_free(list_entry(list_take_first(&router.from_clients.free_extras),
                               struct request_extras, timed));
    for (limit = 0;; limit++) {
        struct delivery *delivery;

        allocations_left = limit;
        delivery = give(worker, BEGUN("6", "'new'"));
        allocations_left = -1;
        if (delivery->decision.action == ACTION_FORWARD)
            break;
        expect_action(delivery, ACTION_NO_MEMORY);
        ck_assert_uint_eq(router.from_clients.active_count, 1);
    }
    ck_assert_int_ge(limit, 2);
    expect(give(worker, PROGRESS("6")), a, PROGRESS("'t'"));
    expect_unchanged(worker, NOTE("'new'"), a);
}

FIXTURE(set_up, tear_down)
