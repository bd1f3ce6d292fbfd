/* ACP: many clients at an agent that takes one initialize. */
#include "build_config.h"

#include "pool_mode_fixture.h"
#include "router/greeting.h"

#define ACP STICKY, NESTED, REWRITE
#define HELLO(id) "{'id':" id ",'method':'initialize','params':{'protocolVersion':2}}"
#define WELCOME(id) "{'jsonrpc':'2.0','id':" id ",'result':{'protocolVersion':2}}"

static void end_process(struct peer *worker)
{
    departure_worker(&router, worker, note_unanswered, NULL);
    waiting_worker_available(&router, worker, PEER_READY);
}

/* The sender gets the worker's earlier answer. */
static void expect_answered(struct delivery *delivery, const struct peer *worker, const char *text)
{
    ck_assert_int_eq(delivery->decision.action, ACTION_ANSWER);
    (void)worker;
    ck_assert_str_eq(delivery->text, text);
}

/* row 1: without rewriting; row 2: shared. */
TEST_ROWS(greeting_is_for_all_clients, 3)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("p", 1,
             (struct pool_mode){.clients = row == 2 ? CLIENTS_SHARED : CLIENTS_STICKY,
                                NESTED,
                                .rewrite_ids = row != 1});
    give(a, HELLO("'a'"));
    expect_action(give(b, HELLO("'\\u0062'")), ACTION_HOLD);
    expect_action(give(c, HELLO("7.0")), ACTION_HOLD);
    expect(give(&workers[0], row == 1 ? WELCOME("'a'") : WELCOME("2")), a, WELCOME("'a'"));
    expect_released(b);
    expect_none_released();
    expect_answered(give(b, HELLO("'\\u0062'")), &workers[0], WELCOME("'\\u0062'"));
    expect_released(c);
    expect_answered(give(c, HELLO("7.0")), &workers[0], WELCOME("7.0"));
    expect_answered(give(a, HELLO("'a'")), &workers[0], WELCOME("'a'"));
    ck_assert_uint_eq(router.from_clients.active_count, 0);
    /* Clients continue. */
    expect(give(b, "{'id':7,'method':'session/new'}"), &workers[0],
           row == 1 ? "{'id':7,'method':'session/new'}" : "{'id':4,'method':'session/new'}");
    end_process(&workers[0]);
}

/* Without an answer that says so, an agent takes each of them. */
TEST_ROWS(greeting_of_an_agent_of_another_version_is_not_kept, 4)
{
    static const char *const results[] = {"{'protocolVersion':1}", "{'protocolVersion':'2'}",
                                          "{'capabilities':{'protocolVersion':2}}", "2"};
    struct peer *a = add_client(), *b = add_client(), *c = add_client();
    char text[100];

    POOL("p", 1, ACP);
    give(a, HELLO("1"));
    expect_action(give(b, HELLO("1")), ACTION_HOLD);
    snprintf(text, sizeof text, "{'id':2,'result':%s}", results[row]);
    ck_assert_ptr_eq(give(&workers[0], text)->decision.to, a);
    expect_released(b);
    expect(give(b, HELLO("1")), &workers[0], HELLO("4"));
    expect(give(c, HELLO("1")), &workers[0], HELLO("6"));
    expect(give(&workers[0], WELCOME("6")), c, WELCOME("1"));
    end_process(&workers[0]);
}

/* The next client is the first one. */
TEST(greeting_that_failed)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    POOL("p", 1, ACP);
    give(a, HELLO("1"));
    expect_action(give(b, HELLO("1")), ACTION_HOLD);
    expect_action(give(c, HELLO("1")), ACTION_HOLD);
    expect(give(&workers[0], "{'id':2,'error':{}}"), a, "{'id':1,'error':{}}");
    expect_released(b);
    give(b, HELLO("1"));
    expect_released(c);
    expect_action(give(c, HELLO("1")), ACTION_HOLD);
    expect(give(&workers[0], WELCOME("4")), b, WELCOME("1"));
    expect_released(c);
    expect_answered(give(c, HELLO("1")), &workers[0], WELCOME("1"));
    end_process(&workers[0]);
}

/* The first client leaves before the answer. */
TEST(greeting_that_comes_late)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, ACP);
    give(a, HELLO("1"));
    expect_action(give(b, HELLO("1")), ACTION_HOLD);
    leave(a);
    expect_none_released();
    expect_action(give(&workers[0], WELCOME("2")), ACTION_DROP);
    expect_released(b);
    expect_answered(give(b, HELLO("1")), &workers[0], WELCOME("1"));
    end_process(&workers[0]);
}

/* The next process has a greeting of its own. */
TEST(greeting_ends_with_the_process)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, ACP);
    give(a, HELLO("1"));
    expect_action(give(b, HELLO("1")), ACTION_HOLD);
    end_process(&workers[0]);
    expect_released(b);
    expect(give(b, HELLO("1")), &workers[0], HELLO("4"));
    give(&workers[0], WELCOME("4"));
    expect_answered(give(a, HELLO("1")), &workers[0], WELCOME("1"));
    end_process(&workers[0]);
    expect(give(a, HELLO("1")), &workers[0], HELLO("6"));
    end_process(&workers[0]);
}

/* Decides without delivering: the text is longer than the fixture takes. */
TEST(greeting_of_great_length_is_not_kept)
{
    static char text[GREETING_MAX + 100];
    struct peer *a = add_client();
    struct message_scratch scratch;
    struct decision decision;
    struct scanner scanner;
    struct message message;
    size_t len;

    POOL("p", 1, ACP);
    give(a, HELLO("1"));
    len = (size_t)snprintf(text, sizeof text,
                           "{\"id\":2,\"result\":{\"protocolVersion\":2,\"x\":\"%0*d\"}}\n",
                           GREETING_MAX, 0);
    scanner_reset(&scanner);
    ck_assert_int_eq(scanner_run(&scanner, text, len), SCAN_MESSAGE);
    ck_assert_int_eq(message_from_scan(&message, slice_of(text, len), &scanner.fields, &scratch),
                     MESSAGE_OK);
    decision_begin(&decision, &router, &workers[0], &message);
    to_client(&decision);
    ck_assert_int_eq(decision.action, ACTION_FORWARD);
    ck_assert_ptr_null(workers[0].greeting.line.data);
}

/* Other pools pass each initialize. */
TEST(greeting_is_not_for_other_pools)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("mcp", 1, STICKY, REWRITE);
    POOL("one each", 2, EXCLUSIVE, NESTED);
    give(a, HELLO("1"));
    expect(give(b, HELLO("1")), &workers[0], HELLO("4"));
    expect(give(&workers[0], WELCOME("2")), a, WELCOME("1"));
    expect(give(&workers[0], WELCOME("4")), b, WELCOME("1"));
    ck_assert_ptr_eq(give(a, "{'id':2,'method':'initialize','pool':'one each'}")->decision.to,
                     &workers[1]);
    ck_assert_ptr_eq(give(b, "{'id':2,'method':'initialize','pool':'one each'}")->decision.to,
                     &workers[2]);
    give(&workers[1], WELCOME("2"));
    expect_unchanged(a, "{'id':2,'method':'initialize','pool':'one each'}", &workers[1]);
}

FIXTURE(set_up, tear_down)
