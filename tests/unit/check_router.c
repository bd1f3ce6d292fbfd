#include "build_config.h"

#include "router_fixture.h"

/* --- spec 6.1: from client to worker --- */

START_TEST(without_a_session_workers_take_turns)
{
    struct peer *client = add_client(), *other = add_client();
    int round;

    add_pool("a", 3);
    for (round = 0; round < 3; round++) {
        expect_forward(give(client, notification()), &workers[0]);
        expect_forward(give(other, notification()), &workers[1]);
        expect_forward(give(client, notification()), &workers[2]);
    }
    ck_assert_uint_eq(router.sessions.table.count, 0); /* 6.1.3 */
}
END_TEST

START_TEST(new_sessions_are_assigned_by_turns_and_stay)
{
    struct peer *client = add_client();
    int round;

    add_pool("a", 3);
    expect_forward(give(client, in_session(request("1"), "s")), &workers[0]);
    expect_forward(give(client, in_session(notification(), "t")), &workers[1]);
    expect_forward(give(client, notification()), &workers[2]);
    for (round = 0; round < 4; round++) { /* 6.1.2, and it is nobody's turn */
        expect_forward(give(client, in_session(notification(), "t")), &workers[1]);
        expect_forward(give(client, in_session(notification(), "s")), &workers[0]);
    }
    expect_forward(give(client, notification()), &workers[0]);
    ck_assert_uint_eq(router.sessions.table.count, 2);
    ck_assert_ptr_eq(sessions_find(&router.sessions, text("s"))->owner, client);
}
END_TEST

START_TEST(session_is_owned_by_who_named_it_first)
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
END_TEST

START_TEST(session_of_nothing_is_a_session)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    expect_forward(give(client, in_session(notification(), "")), &workers[0]);
    expect_forward(give(client, in_session(notification(), "")), &workers[0]);
    expect_forward(give(&workers[0], in_session(notification(), "")), client);
}
END_TEST

START_TEST(turn_passes_over_who_cannot_take_it)
{
    struct peer *client = add_client();

    add_pool("a", 4);
    worker_is(&workers[0], PEER_AWAY);
    set_full(&workers[1], true);
    worker_is(&workers[3], PEER_FAILED);
    expect_forward(give(client, notification()), &workers[2]);
    expect_forward(give(client, in_session(notification(), "s")), &workers[2]);
    set_full(&workers[1], false);
    worker_is(&workers[0], PEER_HERE);
    expect_forward(give(client, notification()), &workers[0]);
    expect_forward(give(client, notification()), &workers[1]);
    expect_forward(give(client, notification()), &workers[2]);
    expect_forward(give(client, notification()), &workers[0]);
}
END_TEST

START_TEST(pool_field_picks_the_pool)
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
END_TEST

START_TEST(unknown_pool_is_refused)
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
END_TEST

START_TEST(session_is_not_reassigned_for_a_pool)
{
    struct peer *client = add_client();

    add_pool("a", 1);
    add_pool("b", 1);
    expect_forward(give(client, in_pool(in_session(notification(), "s"), "a")), &workers[0]);
    expect_forward(give(client, in_pool(in_session(notification(), "s"), "b")), &workers[0]);
}
END_TEST

/* --- spec 6.2, 6.3.1: requests and responses --- */

START_TEST(request_is_recorded_with_client_and_worker)
{
    struct peer *client = add_client();
    struct route route;

    add_pool("a", 1);
    route = give(client, request("1"));
    ck_assert_ptr_nonnull(route.recorded);
    ck_assert_ptr_eq(route.recorded->asker, client);
    ck_assert_ptr_eq(route.recorded->answerer, &workers[0]);
    ck_assert_uint_eq(router.from_clients.active_count, 1);
    /* An id alone makes a request; no id, or a result, does not. */
    route = give(client, (struct message){.bytes = {"{}\n", 3}, .id = id_of("2")});
    ck_assert_ptr_nonnull(route.recorded);
    ck_assert_ptr_null(give(client, notification()).recorded);
    ck_assert_ptr_null(give(client, response("3")).recorded);
    ck_assert_ptr_null(give(client, error_response("4")).recorded);
    ck_assert_uint_eq(router.from_clients.active_count, 2);
}
END_TEST

START_TEST(response_reaches_who_asked_once)
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
END_TEST

START_TEST(response_to_nothing_is_discarded)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    expect_forward(give(client, in_session(request("1"), "s")), &workers[0]);
    expect_discard(give(&workers[0], response("2")));
    expect_discard(give(&workers[0], in_session(response("2"), "s"))); /* by its id alone */
    expect_discard(give(&workers[1], response("1")));                  /* it was asked of another */
    expect_discard(give(&workers[0], (struct message){.bytes = {"{}\n", 3}, .has_result = true}));
    expect_forward(give(&workers[0], response("1")), client);
}
END_TEST

START_TEST(string_and_number_are_two_ids)
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
END_TEST

START_TEST(result_makes_a_response_even_with_a_method)
{
    struct peer *client = add_client();
    struct message message = response("1");

    message.method = text("m");
    add_pool("a", 1);
    give(client, request("1"));
    expect_forward(give(&workers[0], message), client);
}
END_TEST

/* --- spec 6.3.2, 6.3.3: the rest of what workers send --- */

START_TEST(notification_reaches_the_owner)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    expect_forward(give(a, in_session(notification(), "s")), &workers[0]);
    expect_forward(give(b, in_session(notification(), "t")), &workers[1]);
    expect_forward(give(&workers[0], in_session(notification(), "s")), a);
    expect_forward(give(&workers[1], in_session(notification(), "t")), b);
    expect_forward(give(&workers[0], in_session((struct message){.bytes = {"{}\n", 3}}, "s")), a);
}
END_TEST

START_TEST(unroutable_is_dropped)
{
    struct peer *client = add_client();
    struct message id_alone = {.bytes = {"{}\n", 3}, .id = id_of("1")};

    add_pool("a", 1);
    give(client, in_session(request("1"), "s"));
    expect_dropped(give(&workers[0], in_session(notification(), "t")));
    expect_dropped(give(&workers[0], notification()));
    expect_dropped(give(&workers[0], id_alone));
    expect_dropped(give(&workers[0], (struct message){.bytes = {"{}\n", 3}}));
    /* A worker that asks is told. */
    expect_refuse(give(&workers[0], request("1")), JSONRPC_SERVER_ERROR);
    expect_refuse(give(&workers[0], in_session(request("1"), "t")), JSONRPC_SERVER_ERROR);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
    expect_forward(give(&workers[0], response("1")), client);
}
END_TEST

/* --- replies to what workers ask --- */

START_TEST(reply_goes_back_to_the_worker_that_asked)
{
    struct peer *a = add_client(), *b = add_client();
    struct route route;

    add_pool("a", 2);
    expect_forward(give(a, in_session(notification(), "s")), &workers[0]);
    expect_forward(give(b, in_session(notification(), "t")), &workers[1]);
    route = give(&workers[0], in_session(request("1"), "s"));
    expect_forward(route, a);
    ck_assert_ptr_nonnull(route.recorded);
    expect_forward(give(&workers[1], in_session(request("1"), "t")), b); /* ids of their own */
    route = give(b, response("1"));
    expect_forward(route, &workers[1]);
    ck_assert_ptr_nonnull(route.answered);
    expect_forward(give(a, error_response("1")), &workers[0]);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
    /* The id may be asked again. */
    expect_forward(give(&workers[0], in_session(request("1"), "s")), a);
    expect_forward(give(a, in_session(response("1"), "s")), &workers[0]);
}
END_TEST

START_TEST(both_directions_may_use_one_id)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    expect_forward(give(client, in_session(request("1"), "s")), &workers[0]);
    expect_forward(give(&workers[0], in_session(request("1"), "s")), client);
    expect_forward(give(client, response("1")), &workers[0]); /* the reply, although not its turn */
    expect_forward(give(&workers[0], in_session(response("1"), "s")), client);
    expect_discard(give(&workers[0], response("1")));
}
END_TEST

START_TEST(reply_to_nothing_is_no_reply)
{
    struct peer *a = add_client(), *b = add_client();
    struct message odd = response("9");
    struct route route;

    add_pool("a", 2);
    expect_forward(give(a, in_session(notification(), "s")), &workers[0]);
    expect_forward(give(&workers[0], in_session(request("1"), "s")), a);
    route = give(b, response("1")); /* b was asked nothing */
    ck_assert_ptr_null(route.answered);
    ck_assert_uint_eq(router.from_workers.active_count, 1);
    route = give(a, response("2"));
    ck_assert_ptr_null(route.answered);
    route = give(a, request("1")); /* a request is no reply, whatever its id */
    ck_assert_ptr_null(route.answered);
    odd.method = text("m"); /* a result beside the method does not make it one */
    route = give(b, odd);
    ck_assert_ptr_nonnull(route.recorded);
    ck_assert_ptr_null(route.answered);
    expect_forward(give(a, response("1")), &workers[0]);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
}
END_TEST

START_TEST(worker_that_reuses_its_id_is_refused)
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
END_TEST

/* Two workers that ask one client with the same id: the second waits for the first one's reply. */
START_TEST(second_worker_waits_for_the_id)
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
END_TEST

START_TEST(client_without_input_is_asked_nothing)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    give(client, in_session(request("1"), "s"));
    give(client, in_session(notification(), "t"));
    expect_forward(give(&workers[0], in_session(request("7"), "s")), client);
    expect_hold(give(&workers[1], in_session(request("7"), "t")));
    client_input_ended(client);
    ck_assert_int_eq(told_count, 1);
    expect_told(0, &workers[0], "7");
    expect_released(&workers[1]);
    expect_refuse(retry(&workers[1]), JSONRPC_SERVER_ERROR);
    expect_refuse(give(&workers[0], in_session(request("8"), "s")), JSONRPC_SERVER_ERROR);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
    /* It still gets what it asked for, and notifications. */
    expect_forward(give(&workers[0], in_session(notification(), "s")), client);
    expect_forward(give(&workers[0], response("1")), client);
}
END_TEST

/* --- ids in flight --- */

START_TEST(same_id_of_two_clients_goes_to_two_workers)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 3);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_forward(give(b, request("1")), &workers[1]);
    give(a, notification()); /* the third worker's turn: the next would be the first one's */
    expect_forward(give(c, request("1")), &workers[2]);
    expect_forward(give(&workers[1], response("1")), b);
    expect_forward(give(&workers[2], response("1")), c);
    expect_forward(give(&workers[0], response("1")), a);
}
END_TEST

START_TEST(client_that_reuses_its_id_is_refused)
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
END_TEST

START_TEST(id_is_waited_for_in_order)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client(), *d = add_client();

    add_pool("a", 1);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_hold_for_id(give(b, request("1")));
    expect_hold_for_id(give(c, request("1")));
    expect_forward(give(d, request("2")), &workers[0]); /* others go on */
    expect_none_released();
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(b);
    expect_none_released();
    expect_hold_for_id(give(d, request("1"))); /* not before b, nor before c */
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
END_TEST

START_TEST(session_waits_for_the_id_at_its_worker)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    expect_forward(give(a, in_session(request("1"), "s")), &workers[0]);
    expect_hold_for_id(give(b, in_session(request("1"), "s"))); /* though another has it free */
    worker_is(&workers[1], PEER_HERE);
    set_full(&workers[1], false);
    expect_none_released();
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(b);
    expect_forward(retry(b), &workers[0]);
    expect_forward(give(&workers[0], response("1")), b);
}
END_TEST

START_TEST(roams_to_the_worker_whose_id_is_free_first)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 2);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_forward(give(b, request("1")), &workers[1]);
    expect_hold_for_id(give(c, request("1")));
    /* It waits at one of them; whoever is first serves it. */
    expect_forward(give(&workers[_i], response("1")), _i == 0 ? a : b);
    expect_released(c);
    expect_forward(retry(c), &workers[_i]);
    expect_forward(give(&workers[1 - _i], response("1")), _i == 0 ? b : a);
    expect_none_released();
    expect_forward(give(&workers[_i], response("1")), c);
}
END_TEST

START_TEST(roams_to_a_worker_that_appears)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    worker_is(&workers[1], PEER_AWAY);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_hold_for_id(give(b, request("1")));
    worker_is(&workers[1], PEER_HERE);
    expect_released(b);
    expect_forward(retry(b), &workers[1]);
    expect_forward(give(&workers[0], response("1")), a);
    expect_none_released();
    expect_forward(give(&workers[1], response("1")), b);
}
END_TEST

START_TEST(roams_to_a_worker_that_drains)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    set_full(&workers[1], true);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_hold_for_id(give(b, request("1")));
    set_full(&workers[1], false);
    expect_released(b);
    expect_forward(retry(b), &workers[1]);
}
END_TEST

/* Its id is not free there either: it stays where it is in the line. */
START_TEST(does_not_roam_to_where_its_id_is_taken)
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
    worker_is(&workers[1], PEER_HERE);
    expect_none_released();
    expect_forward(give(&workers[1], response("1")), a);
    expect_released(c);
    expect_forward(retry(c), &workers[1]);
}
END_TEST

/* Whoever is first may fill the queue again: it must not be the same ones each time. */
START_TEST(a_queue_that_drains_serves_the_first_one_first)
{
    struct peer *bound = add_client(), *any = add_client(), *other = add_client();

    add_pool("a", 1);
    give(bound, in_session(notification(), "s"));
    set_full(&workers[0], true);
    expect_hold(give(any, notification()));
    expect_hold(give(bound, in_session(notification(), "s")));
    expect_hold(give(other, notification()));
    set_full(&workers[0], false);
    expect_released(any);
    expect_forward(retry(any), &workers[0]);
    set_full(&workers[0], true);
    expect_released(bound);
    expect_hold(retry(bound));
    expect_hold(give(any, notification()));
    expect_released(other);
    expect_hold(retry(other));
    set_full(&workers[0], false);
    expect_released(bound);
    expect_released(any);
    expect_released(other);
    expect_none_released();
}
END_TEST

START_TEST(roams_within_its_pool)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 1);
    add_pool("b", 2);
    worker_is(&workers[2], PEER_AWAY);
    expect_forward(give(a, in_pool(request("1"), "a")), &workers[0]);
    expect_forward(give(b, in_pool(request("1"), "b")), &workers[1]);
    expect_hold_for_id(give(c, in_pool(request("1"), "a")));
    expect_forward(give(&workers[1], response("1")), b);
    worker_is(&workers[2], PEER_HERE);
    set_full(&workers[1], false);
    expect_none_released();
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
}
END_TEST

START_TEST(does_not_roam_to_who_cannot_take_it)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 2);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_forward(give(b, request("1")), &workers[1]);
    expect_hold_for_id(give(c, request("1")));
    if (_i == 0)
        set_full(&workers[1], true);
    else
        worker_is(&workers[1], PEER_AWAY);
    expect_forward(give(&workers[1], response("1")), b);
    settle(); /* comes to an end */
    ck_assert(peer_held(c));
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
    expect_forward(give(&workers[0], response("1")), c);
}
END_TEST

START_TEST(who_waits_at_the_worker_comes_before_who_roams)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client(), *d = add_client();

    add_pool("a", 2);
    give(a, in_session(notification(), "s")); /* bound to worker 0 */
    expect_forward(give(b, request("1")), &workers[1]);
    expect_forward(give(a, in_session(request("1"), "s")), &workers[0]);
    expect_hold_for_id(give(c, request("1"))); /* roams */
    expect_hold_for_id(give(d, in_session(request("1"), "s")));
    expect_forward(give(&workers[1], response("1")), b);
    expect_released(c);
    expect_forward(retry(c), &workers[1]);
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(d);
    expect_forward(retry(d), &workers[0]);
}
END_TEST

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

START_TEST(reservation_of_a_client_that_goes_passes_on)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    if (_i == 1)
        expect_released(b); /* gone after it was taken off the list, or before */
    client_gone(b);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
    expect_forward(give(&workers[0], response("1")), c);
    ck_assert_int_eq(told_count, 0);
}
END_TEST

START_TEST(second_answer_does_not_reach_the_next)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    expect_discard(give(&workers[0], response("1"))); /* nobody has asked yet */
    expect_released(b);
    expect_discard(give(&workers[0], response("1")));
    expect_none_released();
    expect_forward(retry(b), &workers[0]);
    expect_forward(give(&workers[0], response("1")), b);
}
END_TEST

START_TEST(second_reply_does_not_reach_the_next_worker)
{
    struct peer *client = add_client();
    struct route route;

    add_pool("a", 2);
    give(client, in_session(notification(), "s"));
    give(client, in_session(notification(), "t"));
    give(&workers[0], in_session(request("1"), "s"));
    expect_hold_for_id(give(&workers[1], in_session(request("1"), "t")));
    expect_forward(give(client, response("1")), &workers[0]);
    ck_assert_ptr_nonnull(workers[1].reserved);
    route = give(client, response("1"));
    ck_assert_ptr_null(route.answered);
    expect_released(&workers[1]);
    expect_forward(retry(&workers[1]), client);
    expect_forward(give(client, response("1")), &workers[1]);
}
END_TEST

START_TEST(reservation_that_is_not_used_passes_on)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    expect_released(b);
    router_hold_expired(&router, b); /* at the very moment */
    expect_released(b);
    expect_refuse(retry(b), JSONRPC_SERVER_ERROR);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
}
END_TEST

START_TEST(reservation_at_a_worker_that_goes)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    worker_gone(&workers[0]);
    ck_assert_int_eq(told_count, 0); /* nobody's request was in flight */
    expect_released(b);
    expect_hold(retry(b));
    expect_released(c);
    expect_hold(retry(c));
    expect_none_released();
    worker_is(&workers[0], PEER_HERE);
    expect_released(b);
    expect_forward(retry(b), &workers[0]);
    expect_released(c);
    expect_hold_for_id(retry(c));
    expect_forward(give(&workers[0], response("1")), b);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
}
END_TEST

START_TEST(reservation_at_a_worker_that_cannot_take_it)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    reserve_for(a, b, c);
    if (_i == 0)
        set_full(&workers[0], true);
    else
        worker_is(&workers[0], PEER_AWAY);
    settle();
    ck_assert(peer_held(b) && peer_held(c));
    ck_assert_uint_eq(router.from_clients.by_answerer.count, 0);
    set_full(&workers[0], false);
    worker_is(&workers[0], PEER_HERE);
    settle();
    expect_forward(give(&workers[0], response("1")), b);
    settle();
    expect_forward(give(&workers[0], response("1")), c);
}
END_TEST

/* The session that a client waited in is gone when it is released: its message is a new session's,
 * and for another pool than the worker whose id was kept free for it. */
START_TEST(reservation_does_not_override_the_pool)
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
END_TEST

int main(void)
{
    Suite *suite = suite_create("router");
    TCase *tcase = tcase_create("routing");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, without_a_session_workers_take_turns);
    tcase_add_test(tcase, new_sessions_are_assigned_by_turns_and_stay);
    tcase_add_test(tcase, session_is_owned_by_who_named_it_first);
    tcase_add_test(tcase, session_of_nothing_is_a_session);
    tcase_add_test(tcase, turn_passes_over_who_cannot_take_it);
    tcase_add_test(tcase, pool_field_picks_the_pool);
    tcase_add_test(tcase, unknown_pool_is_refused);
    tcase_add_test(tcase, session_is_not_reassigned_for_a_pool);
    tcase_add_test(tcase, request_is_recorded_with_client_and_worker);
    tcase_add_test(tcase, response_reaches_who_asked_once);
    tcase_add_test(tcase, response_to_nothing_is_discarded);
    tcase_add_test(tcase, string_and_number_are_two_ids);
    tcase_add_test(tcase, result_makes_a_response_even_with_a_method);
    tcase_add_test(tcase, notification_reaches_the_owner);
    tcase_add_test(tcase, unroutable_is_dropped);
    tcase_add_test(tcase, reply_goes_back_to_the_worker_that_asked);
    tcase_add_test(tcase, both_directions_may_use_one_id);
    tcase_add_test(tcase, reply_to_nothing_is_no_reply);
    tcase_add_test(tcase, worker_that_reuses_its_id_is_refused);
    tcase_add_test(tcase, second_worker_waits_for_the_id);
    tcase_add_test(tcase, client_without_input_is_asked_nothing);
    tcase_add_test(tcase, same_id_of_two_clients_goes_to_two_workers);
    tcase_add_test(tcase, client_that_reuses_its_id_is_refused);
    tcase_add_test(tcase, id_is_waited_for_in_order);
    tcase_add_test(tcase, session_waits_for_the_id_at_its_worker);
    tcase_add_loop_test(tcase, roams_to_the_worker_whose_id_is_free_first, 0, 2);
    tcase_add_test(tcase, roams_to_a_worker_that_appears);
    tcase_add_test(tcase, roams_to_a_worker_that_drains);
    tcase_add_test(tcase, does_not_roam_to_where_its_id_is_taken);
    tcase_add_test(tcase, a_queue_that_drains_serves_the_first_one_first);
    tcase_add_test(tcase, roams_within_its_pool);
    tcase_add_loop_test(tcase, does_not_roam_to_who_cannot_take_it, 0, 2);
    tcase_add_test(tcase, who_waits_at_the_worker_comes_before_who_roams);
    tcase_add_loop_test(tcase, reservation_of_a_client_that_goes_passes_on, 0, 2);
    tcase_add_test(tcase, second_answer_does_not_reach_the_next);
    tcase_add_test(tcase, second_reply_does_not_reach_the_next_worker);
    tcase_add_test(tcase, reservation_that_is_not_used_passes_on);
    tcase_add_test(tcase, reservation_at_a_worker_that_goes);
    tcase_add_loop_test(tcase, reservation_at_a_worker_that_cannot_take_it, 0, 2);
    tcase_add_test(tcase, reservation_does_not_override_the_pool);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
