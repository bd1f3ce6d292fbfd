#include "build_config.h"

#include "router_fixture.h"

/* --- spec 6.1: from client to worker --- */

TEST(without_a_session_workers_take_turns)
{
    struct peer *client = add_client(), *other = add_client();

    add_pool("a", 3);
    for (int round = 0; round < 3; round++) {
        expect_forward(give(client, notification()), &workers[0]);
        expect_forward(give(other, notification()), &workers[1]);
        expect_forward(give(client, notification()), &workers[2]);
    }
    ck_assert_uint_eq(router.sessions.table.count, 0); /* 6.1.3 */
}

TEST(new_sessions_are_assigned_by_turns_and_stay)
{
    struct peer *client = add_client();

    add_pool("a", 3);
    expect_forward(give(client, in_session(request("1"), "s")), &workers[0]);
    expect_forward(give(client, in_session(notification(), "t")), &workers[1]);
    expect_forward(give(client, notification()), &workers[2]);
    for (int round = 0; round < 4; round++) { /* 6.1.2: takes no turn */
        expect_forward(give(client, in_session(notification(), "t")), &workers[1]);
        expect_forward(give(client, in_session(notification(), "s")), &workers[0]);
    }
    expect_forward(give(client, notification()), &workers[0]);
    ck_assert_uint_eq(router.sessions.table.count, 2);
    ck_assert_ptr_eq(sessions_find(&router.sessions, text("s"))->owner, client);
}

TEST(session_is_owned_by_the_client_that_named_it_first)
{
    struct peer *owner = add_client(), *guest = add_client();

    add_pool("a", 2);
    expect_forward(give(owner, in_session(request("1"), "s")), &workers[0]);
    expect_forward(give(guest, in_session(request("2"), "s")), &workers[0]);
    expect_forward(give(&workers[0], in_session(notification(), "s")), owner);
    expect_forward(give(&workers[0], in_session(response("2"), "s")), guest);
    expect_forward(give(&workers[0], in_session(response("1"), "s")), owner);
    ck_assert_ptr_eq(sessions_find(&router.sessions, text("s"))->owner, owner);
}

TEST(session_id_may_be_empty)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    expect_forward(give(client, in_session(notification(), "")), &workers[0]);
    expect_forward(give(client, in_session(notification(), "")), &workers[0]);
    expect_forward(give(&workers[0], in_session(notification(), "")), client);
}

TEST(turn_passes_over_workers_that_take_no_messages)
{
    struct peer *client = add_client();

    add_pool("a", 4);
    worker_is(&workers[0], PEER_ABSENT);
    set_full(&workers[1], true);
    worker_is(&workers[3], PEER_FAILED);
    expect_forward(give(client, notification()), &workers[2]);
    expect_forward(give(client, in_session(notification(), "s")), &workers[2]);
    set_full(&workers[1], false);
    worker_is(&workers[0], PEER_READY);
    expect_forward(give(client, notification()), &workers[0]);
    expect_forward(give(client, notification()), &workers[1]);
    expect_forward(give(client, notification()), &workers[2]);
    expect_forward(give(client, notification()), &workers[0]);
}

TEST(pool_field_picks_the_pool)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    add_pool("b", 1);
    add_pool("ab", 1);
    expect_forward(give(client, in_pool(notification(), "a")), &workers[0]);
    expect_forward(give(client, in_pool(notification(), "b")), &workers[2]);
    expect_forward(give(client, in_pool(request("1"), "a")), &workers[1]);
    expect_forward(give(client, in_pool(notification(), "a")), &workers[0]);
    expect_forward(give(client, in_pool(in_session(notification(), "s"), "ab")), &workers[3]);
    expect_forward(give(client, in_session(notification(), "s")), &workers[3]);
    /* Without it all workers of all pools take turns. */
    expect_forward(give(client, notification()), &workers[0]);
    expect_forward(give(client, notification()), &workers[1]);
    expect_forward(give(client, notification()), &workers[2]);
    expect_forward(give(client, notification()), &workers[3]);
}

TEST(unknown_pool_is_refused)
{
    struct peer *client = add_client();

    add_pool("a", 1);
    expect_refuse(give(client, in_pool(request("1"), "b")), JSONRPC_INVALID_PARAMS);
    expect_refuse(give(client, in_pool(request("1"), "")), JSONRPC_INVALID_PARAMS);
    expect_refuse(give(client, in_pool(in_session(request("1"), "s"), "A")),
                  JSONRPC_INVALID_PARAMS);
    ck_assert_uint_eq(router.sessions.table.count, 0);
    ck_assert_uint_eq(router.from_clients.active_count, 0);
}

TEST(session_is_not_reassigned_for_a_pool)
{
    struct peer *client = add_client();

    add_pool("a", 1);
    add_pool("b", 1);
    expect_forward(give(client, in_pool(in_session(notification(), "s"), "a")), &workers[0]);
    expect_forward(give(client, in_pool(in_session(notification(), "s"), "b")), &workers[0]);
}

/* The topic bus at a pool: the topic decides the pool (RMP 9.1). */
TEST(sessions_of_a_separate_client_are_its_own)
{
    struct peer *client = add_client(), *port = add_client();

    add_pool("a", 1);
    add_pool("b", 1);
    router_open_pool(port, &pools[1]);
    router_separate_sessions(port);
    pools[1].fallback = port;
    expect_forward(give(client, in_session(request("1"), "s")), &workers[0]);
    expect_forward(give(port, in_session(request("1"), "s")), &workers[1]);
    expect_forward(give(port, in_session(request("2"), "s")), &workers[1]);
    expect_forward(give(client, in_pool(in_session(request("2"), "s"), "b")), &workers[0]);
    expect_forward(give(&workers[0], in_session(notification(), "s")), client);
    expect_forward(give(&workers[1], in_session(notification(), "s")), port);
    ck_assert_uint_eq(client->held[PEER_SESSIONS], 1);
    ck_assert_uint_eq(port->held[PEER_SESSIONS], 1);
}

/* --- spec 6.2, 6.3.1: requests and responses --- */

TEST(request_is_recorded_with_client_and_worker)
{
    struct peer *client = add_client();
    struct decision decision;

    add_pool("a", 1);
    decision = give(client, request("1"));
    ck_assert_ptr_nonnull(decision.recorded);
    ck_assert_ptr_eq(decision.recorded->asker, client);
    ck_assert_ptr_eq(decision.recorded->answerer, &workers[0]);
    ck_assert_uint_eq(router.from_clients.active_count, 1);
    /* An id alone makes a request; no id, or a result, does not. */
    decision = give(client, (struct message){.bytes = {"{}\n", 3}, .id = id_of("2")});
    ck_assert_ptr_nonnull(decision.recorded);
    ck_assert_ptr_null(give(client, notification()).recorded);
    ck_assert_ptr_null(give(client, response("3")).recorded);
    ck_assert_ptr_null(give(client, error_response("4")).recorded);
    ck_assert_uint_eq(router.from_clients.active_count, 2);
}

TEST(response_reaches_the_asker_once)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 1);
    give(a, request("1"));
    give(b, request("2"));
    give(a, request("x"));
    expect_forward(give(&workers[0], error_response("2")), b);
    expect_forward(give(&workers[0], response("x")), a);
    expect_forward(give(&workers[0], response("1")), a);
    expect_discard(give(&workers[0], response("1")));
    expect_discard(give(&workers[0], response("2")));
    expect_discard(give(&workers[0], response("x")));
    ck_assert_uint_eq(router.from_clients.active_count, 0);
}

TEST(response_to_no_request_is_discarded)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    expect_forward(give(client, in_session(request("1"), "s")), &workers[0]);
    expect_discard(give(&workers[0], response("2")));
    expect_discard(give(&workers[0], in_session(response("2"), "s"))); /* the id alone counts */
    expect_discard(give(&workers[1], response("1")));                  /* asked of worker 0 */
    expect_discard(give(&workers[0], (struct message){.bytes = {"{}\n", 3}, .has_result = true}));
    expect_forward(give(&workers[0], response("1")), client);
}

TEST(string_and_number_are_two_ids)
{
    struct peer *a = add_client(), *b = add_client();
    struct message string = request("1"), answer = response("1");

    string.id.type = ID_STRING;
    answer.id.type = ID_STRING;
    add_pool("a", 1);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_forward(give(b, string), &workers[0]);
    expect_forward(give(a, string = request("2")), &workers[0]);
    expect_forward(give(&workers[0], answer), b);
    expect_discard(give(&workers[0], answer));
    expect_forward(give(&workers[0], response("1")), a);
}

TEST(result_makes_a_response_even_with_a_method)
{
    struct peer *client = add_client();
    struct message message = response("1");

    message.method = text("m");
    add_pool("a", 1);
    give(client, request("1"));
    expect_forward(give(&workers[0], message), client);
}

/* --- spec 6.3.2, 6.3.3: the rest of what workers send --- */

TEST(notification_reaches_the_owner)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    expect_forward(give(a, in_session(notification(), "s")), &workers[0]);
    expect_forward(give(b, in_session(notification(), "t")), &workers[1]);
    expect_forward(give(&workers[0], in_session(notification(), "s")), a);
    expect_forward(give(&workers[1], in_session(notification(), "t")), b);
    expect_forward(give(&workers[0], in_session((struct message){.bytes = {"{}\n", 3}}, "s")), a);
}

TEST(unroutable_message_is_dropped)
{
    struct peer *client = add_client();
    struct message id_alone = {.bytes = {"{}\n", 3}, .id = id_of("1")};

    add_pool("a", 1);
    give(client, in_session(request("1"), "s"));
    expect_dropped(give(&workers[0], in_session(notification(), "t")));
    expect_dropped(give(&workers[0], notification()));
    expect_dropped(give(&workers[0], id_alone));
    expect_dropped(give(&workers[0], (struct message){.bytes = {"{}\n", 3}}));
    /* A request is refused, for its worker waits for an answer. */
    expect_refuse(give(&workers[0], request("1")), JSONRPC_SERVER_ERROR);
    expect_refuse(give(&workers[0], in_session(request("1"), "t")), JSONRPC_SERVER_ERROR);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
    expect_forward(give(&workers[0], response("1")), client);
}

/* --- replies to what workers ask --- */

TEST(reply_goes_back_to_the_worker_that_asked)
{
    struct peer *a = add_client(), *b = add_client();
    struct decision decision;

    add_pool("a", 2);
    expect_forward(give(a, in_session(notification(), "s")), &workers[0]);
    expect_forward(give(b, in_session(notification(), "t")), &workers[1]);
    decision = give(&workers[0], in_session(request("1"), "s"));
    expect_forward(decision, a);
    ck_assert_ptr_nonnull(decision.recorded);
    expect_forward(give(&workers[1], in_session(request("1"), "t")),
                   b); /* each worker has its own ids */
    decision = give(b, response("1"));
    expect_forward(decision, &workers[1]);
    ck_assert_ptr_nonnull(decision.answered);
    expect_forward(give(a, error_response("1")), &workers[0]);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
    /* The id may be asked again. */
    expect_forward(give(&workers[0], in_session(request("1"), "s")), a);
    expect_forward(give(a, in_session(response("1"), "s")), &workers[0]);
}

TEST(both_directions_may_use_one_id)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    expect_forward(give(client, in_session(request("1"), "s")), &workers[0]);
    expect_forward(give(&workers[0], in_session(request("1"), "s")), client);
    expect_forward(give(client, response("1")), &workers[0]); /* a reply takes no turn */
    expect_forward(give(&workers[0], in_session(response("1"), "s")), client);
    expect_discard(give(&workers[0], response("1")));
}

TEST(message_that_answers_no_request_is_no_reply)
{
    struct peer *a = add_client(), *b = add_client();
    struct message odd = response("9");
    struct decision decision;

    add_pool("a", 2);
    expect_forward(give(a, in_session(notification(), "s")), &workers[0]);
    expect_forward(give(&workers[0], in_session(request("1"), "s")), a);
    decision = give(b, response("2")); /* b was asked nothing */
    expect_forward(decision, &workers[1]);
    ck_assert_ptr_null(decision.answered);
    ck_assert_uint_eq(router.from_workers.active_count, 1);
    decision = give(a, response("2"));
    expect_forward(decision, &workers[0]);
    ck_assert_ptr_null(decision.answered);
    decision = give(a, request("1")); /* has a method: a request */
    ck_assert_ptr_null(decision.answered);
    odd.method = text("m"); /* with a method a result makes no reply */
    decision = give(b, odd);
    ck_assert_ptr_nonnull(decision.recorded);
    ck_assert_ptr_null(decision.answered);
    expect_forward(give(a, response("1")), &workers[0]);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
}

/* Of a question the client that was asked is the only one to decide, in whatever form. */
TEST(reply_to_anothers_question_is_discarded)
{
    struct peer *a = add_client(), *b = add_client();
    struct message odd = response("1");

    add_pool("a", 1);
    give(a, in_session(notification(), "s"));
    expect_forward(give(&workers[0], in_session(request("1"), "s")), a);
    expect_discard(give(b, response("1")));
    expect_discard(give(b, error_response("1")));
    expect_discard(give(b, in_session(response("1"), "s")));
    expect_discard(give(b, in_session(error_response("1"), "s")));
    expect_forward(give(b, response("2")), &workers[0]);
    odd.method = text("m");
    expect_refuse(give(b, odd), JSONRPC_INVALID_REQUEST);
    odd.id = (struct message_id){ID_NONE, {NULL, 0}}; /* null, which libraries take for 0 */
    expect_discard(give(b, odd));
    ck_assert_uint_eq(router.from_clients.active_count, 0);
    expect_forward(give(a, response("1")), &workers[0]);
    expect_forward(give(b, response("1")), &workers[0]); /* as the specification has it */
}

/* Libraries take "7" for 7, and null for 0. row: the type of the worker's id. */
TEST_ROWS(reply_with_an_id_of_another_type_answers_for_nobody, 2)
{
    struct peer *a = add_client(), *b = add_client();
    struct message question = request("7"), odd = response("7"), right = response("7");
    struct message none = response("7");

    question.id.type = right.id.type = row == 0 ? ID_NUMBER : ID_STRING;
    odd.id.type = row == 0 ? ID_STRING : ID_NUMBER;
    none.id = (struct message_id){ID_NONE, {NULL, 0}};
    add_pool("a", 1);
    give(a, in_session(notification(), "s"));
    expect_forward(give(b, odd), &workers[0]);
    expect_forward(give(&workers[0], in_session(question, "s")), a);
    expect_discard(give(b, odd));
    expect_discard(give(b, in_session(odd, "s")));
    expect_discard(give(b, none));
    expect_forward(give(a, odd), &workers[0]); /* as the specification has it */
    expect_forward(give(a, right), &workers[0]);
    expect_forward(give(b, odd), &workers[0]);
}

TEST(worker_that_reuses_its_id_is_refused)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 1);
    give(a, in_session(notification(), "s"));
    give(b, in_session(notification(), "t"));
    expect_forward(give(&workers[0], in_session(request("1"), "s")), a);
    expect_refuse(give(&workers[0], in_session(request("1"), "s")), JSONRPC_INVALID_REQUEST);
    expect_refuse(give(&workers[0], in_session(request("1"), "t")), JSONRPC_INVALID_REQUEST);
    expect_forward(give(a, response("1")), &workers[0]);
    expect_forward(give(&workers[0], in_session(request("1"), "t")), b);
}

/* Two workers that ask one client with the same id: the second waits for the first one's reply. */
TEST(second_worker_waits_for_the_id)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    give(client, in_session(notification(), "s"));
    give(client, in_session(notification(), "t"));
    expect_forward(give(&workers[0], in_session(request("1"), "s")), client);
    expect_hold_for_id(give(&workers[1], in_session(request("1"), "t")));
    expect_none_released();
    expect_forward(give(client, response("1")), &workers[0]);
    expect_released(&workers[1]);
    expect_forward(retry(&workers[1]), client);
    expect_forward(give(client, response("1")), &workers[1]);
}

TEST(client_without_input_is_asked_nothing)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    give(client, in_session(request("1"), "s"));
    give(client, in_session(notification(), "t"));
    expect_forward(give(&workers[0], in_session(request("7"), "s")), client);
    expect_hold(give(&workers[1], in_session(request("7"), "t")));
    client_input_ended(client);
    ck_assert_int_eq(reported_count, 1);
    expect_reported(0, &workers[0], "7");
    expect_released(&workers[1]);
    expect_refuse(retry(&workers[1]), JSONRPC_SERVER_ERROR);
    expect_refuse(give(&workers[0], in_session(request("8"), "s")), JSONRPC_SERVER_ERROR);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
    /* The client still gets answers and notifications. */
    expect_forward(give(&workers[0], in_session(notification(), "s")), client);
    expect_forward(give(&workers[0], response("1")), client);
}

/* --- ids in flight --- */

TEST(same_id_of_two_clients_goes_to_two_workers)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 3);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_forward(give(b, request("1")), &workers[1]);
    give(a, notification()); /* worker 2 has had its turn: worker 0 is next */
    expect_forward(give(c, request("1")), &workers[2]);
    expect_forward(give(&workers[1], response("1")), b);
    expect_forward(give(&workers[2], response("1")), c);
    expect_forward(give(&workers[0], response("1")), a);
}

TEST(client_that_reuses_its_id_is_refused)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    expect_forward(give(client, request("1")), &workers[0]);
    expect_refuse(give(client, request("1")), JSONRPC_INVALID_REQUEST);
    expect_refuse(give(client, in_session(request("1"), "s")), JSONRPC_INVALID_REQUEST);
    ck_assert_uint_eq(router.sessions.table.count, 0);
    expect_forward(give(&workers[0], response("1")), client);
    expect_discard(give(&workers[0], response("1"))); /* one answer, to the first */
    expect_forward(give(client, request("1")), &workers[1]);
}

TEST(clients_wait_for_an_id_in_order)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client(), *d = add_client();

    add_pool("a", 1);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_hold_for_id(give(b, request("1")));
    expect_hold_for_id(give(c, request("1")));
    expect_forward(give(d, request("2")), &workers[0]); /* other ids continue */
    expect_none_released();
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(b);
    expect_none_released();
    expect_hold_for_id(give(d, request("1"))); /* after b and c */
    expect_hold_for_id(give(a, request("1")));
    expect_forward(retry(b), &workers[0]);
    expect_forward(give(&workers[0], response("1")), b);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
    expect_forward(give(&workers[0], response("1")), c);
    expect_released(d);
    expect_forward(retry(d), &workers[0]);
    expect_forward(give(&workers[0], response("2")), d);
    expect_forward(give(&workers[0], response("1")), d);
    expect_released(a);
    expect_forward(retry(a), &workers[0]);
    expect_forward(give(&workers[0], response("1")), a);
    expect_none_released();
    ck_assert_uint_eq(router.from_clients.active_count, 0);
}

TEST(session_waits_for_the_id_at_its_worker)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    expect_forward(give(a, in_session(request("1"), "s")), &workers[0]);
    expect_hold_for_id(give(b, in_session(request("1"), "s"))); /* though it is free at worker 1 */
    worker_is(&workers[1], PEER_READY);
    set_full(&workers[1], false);
    expect_none_released();
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(b);
    expect_forward(retry(b), &workers[0]);
    expect_forward(give(&workers[0], response("1")), b);
}

TEST_ROWS(client_roams_to_the_worker_where_its_id_is_free_first, 2)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 2);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_forward(give(b, request("1")), &workers[1]);
    expect_hold_for_id(give(c, request("1")));
    /* The client waits at one of them; the first worker where the id is free serves it. */
    expect_forward(give(&workers[row], response("1")), row == 0 ? a : b);
    expect_released(c);
    expect_forward(retry(c), &workers[row]);
    expect_forward(give(&workers[1 - row], response("1")), row == 0 ? b : a);
    expect_none_released();
    expect_forward(give(&workers[row], response("1")), c);
}

/* row: the worker starts, or its queue drains. */
TEST_ROWS(client_roams_to_a_worker_that_takes_messages_again, 2)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    worker_is(&workers[1], row == 0 ? PEER_ABSENT : PEER_READY);
    set_full(&workers[1], row == 1);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_hold_for_id(give(b, request("1")));
    worker_is(&workers[1], PEER_READY);
    set_full(&workers[1], false);
    expect_released(b);
    expect_forward(retry(b), &workers[1]);
    expect_forward(give(&workers[0], response("1")), a);
    expect_none_released();
    expect_forward(give(&workers[1], response("1")), b);
}

/* The id is not free there either: the client keeps its place in the queue. */
TEST(client_does_not_roam_to_a_worker_where_its_id_is_taken)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client(), *d = add_client();

    add_pool("a", 2);
    give(d, in_session(notification(), "s")); /* bound to worker 0 */
    expect_forward(give(a, request("1")), &workers[1]);
    expect_forward(give(b, request("1")), &workers[0]);
    expect_hold_for_id(give(c, request("1")));
    expect_hold_for_id(give(d, in_session(request("1"), "s")));
    set_full(&workers[1], true);
    set_full(&workers[1], false);
    worker_is(&workers[1], PEER_READY);
    expect_none_released();
    expect_forward(give(&workers[1], response("1")), a);
    expect_released(c);
    expect_forward(retry(c), &workers[1]);
}

/* The first client may fill the queue again: another one is first the next time. Those that were
 * not released wait on, in their order. */
TEST(queue_that_drains_serves_the_first_client_first)
{
    struct peer *bound = add_client(), *any = add_client(), *other = add_client();

    add_pool("a", 1);
    give(bound, in_session(notification(), "s"));
    set_full(&workers[0], true);
    expect_hold(give(any, notification()));
    expect_hold(give(bound, in_session(notification(), "s")));
    expect_hold(give(other, notification()));
    set_full(&workers[0], false);
    expect_released(bound);
    expect_forward(retry(bound), &workers[0]);
    set_full(&workers[0], true);
    expect_none_released();
    expect_hold(give(bound, in_session(notification(), "s")));
    set_full(&workers[0], false);
    expect_released(bound);
    expect_released(any);
    expect_forward(retry(any), &workers[0]);
    set_full(&workers[0], true);
    expect_hold(give(any, notification()));
    expect_none_released();
    set_full(&workers[0], false);
    expect_released(other);
    expect_released(any);
    expect_none_released();
}

/* --- reservations --- */

/* A one-worker pool; a has the id, b and c wait for it, then the answer releases b. */
static void reserve_for(struct peer *a, struct peer *b, struct peer *c)
{
    add_pool("a", 1);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_hold_for_id(give(b, request("1")));
    expect_hold_for_id(give(c, request("1")));
    expect_forward(give(&workers[0], response("1")), a);
    ck_assert_ptr_nonnull(b->reserved);
}

TEST_ROWS(reservation_of_a_client_that_leaves_passes_on, 2)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    if (row == 1)
        expect_released(b); /* row 1: released before it leaves */
    client_gone(b);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
    expect_forward(give(&workers[0], response("1")), c);
    ck_assert_int_eq(reported_count, 0);
}

TEST(second_answer_does_not_reach_the_next_client)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    expect_discard(give(&workers[0], response("1"))); /* not asked again yet */
    expect_released(b);
    expect_discard(give(&workers[0], response("1")));
    expect_none_released();
    expect_forward(retry(b), &workers[0]);
    expect_forward(give(&workers[0], response("1")), b);
}

TEST(second_reply_does_not_reach_the_next_worker)
{
    struct peer *client = add_client();
    struct decision decision;

    add_pool("a", 2);
    give(client, in_session(notification(), "s"));
    give(client, in_session(notification(), "t"));
    give(&workers[0], in_session(request("1"), "s"));
    expect_hold_for_id(give(&workers[1], in_session(request("1"), "t")));
    expect_forward(give(client, response("1")), &workers[0]);
    ck_assert_ptr_nonnull(workers[1].reserved);
    decision = give(client, response("1"));
    ck_assert_ptr_null(decision.answered);
    expect_released(&workers[1]);
    expect_forward(retry(&workers[1]), client);
    expect_forward(give(client, response("1")), &workers[1]);
}

TEST(reservation_that_is_not_used_passes_on)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    expect_released(b);
    waiting_expire(&router, b); /* at the moment of its release */
    expect_released(b);
    expect_refuse(retry(b), JSONRPC_SERVER_ERROR);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
}

TEST(reservation_at_a_worker_that_is_gone)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    worker_gone(&workers[0]);
    ck_assert_int_eq(reported_count, 0); /* no request was in flight */
    expect_released(b);
    expect_hold(retry(b));
    expect_released(c);
    expect_hold(retry(c));
    expect_none_released();
    worker_is(&workers[0], PEER_READY);
    expect_released(b);
    expect_forward(retry(b), &workers[0]);
    expect_released(c);
    expect_hold_for_id(retry(c));
    expect_forward(give(&workers[0], response("1")), b);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
}

TEST_ROWS(reservation_at_a_worker_that_takes_no_messages, 2)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    if (row == 0)
        set_full(&workers[0], true);
    else
        worker_is(&workers[0], PEER_ABSENT);
    settle();
    ck_assert(peer_held(b) && peer_held(c));
    ck_assert_uint_eq(router.from_clients.by_answerer.count, 0);
    set_full(&workers[0], false);
    worker_is(&workers[0], PEER_READY);
    settle();
    expect_forward(give(&workers[0], response("1")), b);
    settle();
    expect_forward(give(&workers[0], response("1")), c);
}

/* The session has ended when its client is released: the message begins a new session, in a pool
 * other than that of the worker where the id was kept free. */
TEST(reservation_does_not_override_the_pool)
{
    struct peer *owner = add_client(), *guest = add_client();

    add_pool("a", 1);
    add_pool("b", 1);
    expect_forward(give(owner, in_pool(in_session(request("1"), "s"), "a")), &workers[0]);
    expect_hold_for_id(give(guest, in_pool(in_session(request("1"), "s"), "b")));
    expect_forward(give(&workers[0], response("1")), owner);
    client_gone(owner);
    expect_released(guest);
    expect_forward(retry(guest), &workers[1]);
    expect_forward(give(&workers[1], response("1")), guest);
    ck_assert_uint_eq(router.from_clients.by_answerer.count, 0);
}

/* --- workers and pools that are added to and taken out of a running router --- */

TEST(added_worker_takes_turns_and_releases_clients)
{
    struct peer *a = add_client(), *b = add_client();
    struct group *pool = add_pool("a", 1);

    expect_forward(give(a, request("1")), &workers[0]);
    expect_hold_for_id(give(b, request("1")));
    ck_assert_ptr_eq(add_worker(pool), &workers[1]);
    expect_released(b);
    expect_forward(retry(b), &workers[1]);
    expect_forward(give(a, notification()), &workers[0]);
    expect_forward(give(a, in_pool(notification(), "a")), &workers[0]);
    expect_forward(give(a, in_pool(notification(), "a")), &workers[1]);
    add_pool("b", 1);
    expect_forward(give(a, in_pool(in_session(notification(), "s"), "b")), &workers[2]);
    expect_forward(give(a, notification()), &workers[1]);
    expect_forward(give(a, in_session(notification(), "s")), &workers[2]);
    expect_forward(give(a, notification()), &workers[2]);
    expect_forward(give(a, notification()), &workers[0]);
}

/* Worker 1 of 3 has the next turn. row: the worker that is removed. */
TEST_ROWS(turns_go_on_after_a_worker_was_removed, 3)
{
    static const int next[3][4] = {{1, 2, 1, 2}, {2, 0, 2, 0}, {1, 0, 1, 0}};
    struct peer *client = add_client();

    add_pool("a", 3);
    expect_forward(give(client, notification()), &workers[0]);
    expect_forward(give(client, in_pool(notification(), "a")), &workers[0]);
    worker_gone(&workers[row]);
    remove_worker(&workers[row]);
    ck_assert_uint_eq(router.all.count, 2);
    for (int i = 0; i < 4; i++) {
        expect_forward(give(client, notification()), &workers[next[row][i]]);
        expect_forward(give(client, in_pool(notification(), "a")), &workers[next[row][i]]);
    }
}

/* The ways for a client to wait for worker 0 of two. The id 1 is taken at both. */
static const struct {
    bool absent, full_0, full_1;
    const char *session, *id;
} waits[] = {
    {.id = "1"},                                 /* for the id, at any worker */
    {.id = "1", .session = "s"},                 /* for the id, at the worker of its session */
    {.id = "9", .full_0 = true, .session = "s"}, /* for the queue */
    {.id = "9", .absent = true, .session = "s"}, /* for the start of the process */
    {.id = "9", .full_0 = true, .full_1 = true}, /* for any worker */
};

TEST_ROWS(client_held_for_a_removed_worker_is_served_elsewhere, COUNT(waits))
{
    struct peer *client = add_client(), *other = add_client(), *third = add_client();
    struct message message = request(waits[row].id);

    add_pool("a", 2);
    expect_forward(give(other, in_session(request("1"), "s")), &workers[0]);
    expect_forward(give(third, request("1")), &workers[1]);
    if (waits[row].session != NULL)
        message = in_session(message, waits[row].session);
    if (waits[row].absent)
        worker_is(&workers[0], PEER_ABSENT);
    set_full(&workers[0], waits[row].full_0);
    set_full(&workers[1], waits[row].full_1);
    expect_hold(give(client, message));
    expect_none_released();
    worker_gone(&workers[0]);
    expect_reported(0, other, "1");
    remove_worker(&workers[0]);
    settle();
    ck_assert(peer_held(client) == (waits[row].id[0] == '1' || waits[row].full_1));
    set_full(&workers[1], false);
    expect_forward(give(&workers[1], response("1")), third);
    settle();
    ck_assert(!peer_held(client));
    expect_forward(give(&workers[1], response(waits[row].id)), client);
    ck_assert_uint_eq(router.from_clients.by_answerer.count, 0);
}

/* row: held for the id, or for the start of the process. */
TEST_ROWS(client_held_for_the_last_worker_is_refused, 2)
{
    struct peer *client = add_client(), *other = add_client();
    struct group *pool = add_pool("a", 1);

    add_pool("b", 1);
    expect_forward(give(other, in_pool(request("1"), "a")), &workers[0]);
    if (row == 1)
        worker_is(&workers[0], PEER_ABSENT);
    expect_hold(give(client, in_pool(request("1"), "a")));
    worker_gone(&workers[0]);
    expect_released(client);
    expect_hold(retry(client)); /* the worker may start again */
    remove_worker(&workers[0]);
    expect_released(client);
    expect_refuse_naming(retry(client), JSONRPC_SERVER_ERROR, "no worker left");
    departure_remove_pool(&router, pool);
    expect_none_released();
    expect_refuse_naming(give(client, in_pool(request("1"), "a")), JSONRPC_INVALID_PARAMS,
                         "no such pool");
    expect_forward(give(client, request("1")), &workers[1]);
}

/* Clients that wait for a worker of the pool, or of any pool. */
TEST(removed_pool_releases_its_clients)
{
    struct peer *a = add_client(), *b = add_client();
    struct group *pool = add_pool("a", 0);

    waiting_hold(&pool->waiting, a);
    waiting_hold(&router.waiting_for_worker, b);
    departure_remove_pool(&router, pool);
    expect_released(a);
    expect_released(b);
    expect_none_released();
    ck_assert_ptr_null(router_pool_named(&router, text("a")));
}

FIXTURE(set_up, tear_down)
