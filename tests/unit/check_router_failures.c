#include "build_config.h"

#include "router/deadlines.h"
#include "router_fixture.h"

/* --- abandoned ids: a late answer reaches no client --- */

/* row: the late answer comes, or the worker is gone. */
TEST_ROWS(abandoned_id_is_free_again, 2)
{
    struct peer *gone = add_client(), *next = add_client();

    add_pool("a", 1);
    expect_forward(give(gone, request("1")), &workers[0]);
    client_gone(gone);
    ck_assert_uint_eq(router.from_clients.active_count, 0); /* 7.2 */
    expect_hold_for_id(give(next, request("1")));
    if (row == 0) {
        expect_discard(give(&workers[0], response("1")));
    } else {
        worker_gone(&workers[0]);
        ck_assert_int_eq(reported_count, 0); /* the asker is gone */
        worker_is(&workers[0], PEER_READY);
    }
    expect_released(next);
    expect_forward(retry(next), &workers[0]);
    expect_forward(give(&workers[0], response("1")), next);
    expect_discard(give(&workers[0], response("1")));
}

TEST(abandoned_id_is_avoided_where_another_worker_is)
{
    struct peer *gone = add_client(), *next = add_client();

    add_pool("a", 2);
    expect_forward(give(gone, request("1")), &workers[0]);
    client_gone(gone);
    give(next, notification());
    expect_forward(give(next, request("1")), &workers[1]);
    expect_discard(give(&workers[0], response("1")));
    expect_forward(give(&workers[1], response("1")), next);
}

TEST(late_reply_to_a_worker_that_is_gone)
{
    struct peer *client = add_client();

    add_pool("a", 1);
    give(client, in_session(notification(), "s"));
    expect_forward(give(&workers[0], in_session(request("1"), "s")), client);
    worker_gone(&workers[0]);
    worker_is(&workers[0], PEER_READY);
    expect_forward(give(client, in_session(notification(), "s")), &workers[0]);
    /* The new process begins with id 1 again. */
    expect_hold_for_id(give(&workers[0], in_session(request("1"), "s")));
    expect_discard(give(client, response("1")));
    expect_released(&workers[0]);
    expect_forward(retry(&workers[0]), client);
    expect_forward(give(client, response("1")), &workers[0]);
}

TEST(abandoned_ids_are_bounded)
{
    struct peer *client;
    char id[16];

    limit_to(8, 4);
    add_pool("a", 1);
    for (int i = 0; i < 12; i++) {
        client = add_client();
        snprintf(id, sizeof id, "%d", i);
        expect_forward(give(client, request(id)),
                       &workers[0]); /* abandoned requests take no place */
        client_gone(client);
        ck_assert_uint_le(router.from_clients.abandoned_count, 4);
        ck_assert_uint_le(router.from_clients.by_answerer.count, 4);
    }
    /* The oldest ids were forgotten. */
    expect_discard(give(&workers[0], response("11")));
    ck_assert_uint_eq(router.from_clients.by_answerer.count, 3);
    expect_discard(give(&workers[0], response("0")));
    ck_assert_uint_eq(router.from_clients.by_answerer.count, 3);
}

/* An id that is never answered is free in the end, for the peer that waits for it. */
TEST(abandoned_id_is_free_after_its_time)
{
    struct peer *leaving = add_client(), *other = add_client();

    add_pool("a", 1);
    router.now_ms = 1000;
    expect_forward(give(leaving, request("1")), &workers[0]);
    ck_assert_int_eq(deadlines_next(&router), -1);
    client_gone(leaving);
    ck_assert(router.abandoned);
    ck_assert_int_eq(deadlines_next(&router), 301000);
    expect_hold_for_id(give(other, request("1")));
    router.now_ms = 300999;
    ck_assert_uint_eq(deadlines_free_abandoned(&router), 0);
    expect_none_released();
    router.now_ms = 301000;
    ck_assert_uint_eq(deadlines_free_abandoned(&router), 1);
    ck_assert_int_eq(deadlines_next(&router), -1);
    expect_released(other);
    expect_forward(retry(other), &workers[0]);
    expect_forward(give(&workers[0], response("1")), other);
}

/* Those of workers' requests too; a late answer, or the end of the answerer, comes before. */
TEST(abandoned_ids_end_in_several_ways)
{
    struct peer *clients_of_two[2] = {add_client(), add_client()};

    add_pool("a", 2);
    for (int i = 0; i < 2; i++) {
        expect_forward(give(clients_of_two[i], in_session(request("1"), i == 0 ? "s" : "t")),
                       &workers[i]);
        expect_forward(give(&workers[i], in_session(request("q"), i == 0 ? "s" : "t")),
                       clients_of_two[i]);
    }
    router.now_ms = 7;
    worker_gone(&workers[0]);
    ck_assert_int_eq(deadlines_next(&router), 300007);
    router.now_ms = 8;
    client_gone(clients_of_two[1]);
    ck_assert_int_eq(deadlines_next(&router), 300007);
    router.abandoned = false;
    expect_discard(give(clients_of_two[0], response("q")));
    ck_assert(router.abandoned);
    ck_assert_int_eq(deadlines_next(&router), 300008);
    router.abandoned = false;
    worker_gone(&workers[1]);
    ck_assert(router.abandoned);
    ck_assert_int_eq(deadlines_next(&router), -1);
}

/* Entries are forgotten while those of the client are visited. */
TEST(client_that_leaves_with_many_ids)
{
    struct peer *gone, *next, *client;
    char id[16];

    limit_to(8, 4);
    add_pool("a", 1);
    gone = add_client();
    next = add_client();
    client = add_client();
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "%d", i);
        expect_forward(give(gone, request(id)), &workers[0]);
    }
    client_gone(gone);
    for (int i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "n%d", i);
        expect_forward(give(next, request(id)), &workers[0]);
    }
    expect_hold_for_id(give(client, request("0")));
    client_gone(next); /* one too many: id 0 is the oldest, and a client waits for it */
    expect_released(client);
    expect_forward(retry(client), &workers[0]);
    ck_assert_uint_le(router.from_clients.abandoned_count, 4);
    expect_forward(give(&workers[0], response("0")), client);
    expect_discard(give(&workers[0], response("n0")));
}

/* --- a hold has an end --- */

TEST(expired_hold_is_refused)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 1);
    give(a, request("1"));
    expect_hold_for_id(give(b, request("1")));
    expect_hold_for_id(give(c, request("1")));
    waiting_expire(&router, b);
    expect_released(b);
    expect_refuse(retry(b), JSONRPC_SERVER_ERROR);
    expect_none_released();
    expect_forward(give(b, request("2")), &workers[0]); /* the expiry is over */
    expect_hold_for_id(give(b, request("1")));
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(c); /* has waited longest */
    expect_forward(retry(c), &workers[0]);
    expect_forward(give(&workers[0], response("1")), c);
    expect_released(b);
    expect_forward(retry(b), &workers[0]);
}

TEST(expired_hold_of_a_roaming_client)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 2);
    give(a, request("1"));
    give(b, request("1"));
    expect_hold_for_id(give(c, request("1")));
    waiting_expire(&router, c);
    expect_released(c);
    expect_refuse(retry(c), JSONRPC_SERVER_ERROR);
    expect_forward(give(&workers[1], response("1")), b);
    expect_forward(give(&workers[0], response("1")), a);
    expect_none_released();
    ck_assert_uint_eq(router.from_clients.by_answerer.count, 0);
}

TEST(expired_hold_of_a_worker)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    give(client, in_session(notification(), "s"));
    give(client, in_session(notification(), "t"));
    give(&workers[0], in_session(request("1"), "s"));
    expect_hold_for_id(give(&workers[1], in_session(request("1"), "t")));
    waiting_expire(&router, &workers[1]);
    expect_released(&workers[1]);
    expect_refuse(retry(&workers[1]), JSONRPC_SERVER_ERROR);
    expect_forward(give(client, response("1")), &workers[0]);
    expect_none_released();
}

/* --- a worker is gone --- */

TEST(each_request_of_a_dead_worker_is_reported_once)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    give(a, in_session(request("1"), "s")); /* at worker 0 */
    give(a, in_session(request("2"), "t")); /* at worker 1 */
    give(b, in_session(request("3"), "s"));
    give(a, in_session(request("x"), "s"));
    worker_gone(&workers[0]);
    ck_assert_int_eq(reported_count, 3);
    expect_reported(0, a, "1");
    expect_reported(1, b, "3");
    expect_reported(2, a, "x");
    ck_assert_uint_eq(router.from_clients.active_count, 1);
    ck_assert_int_eq(workers[0].availability, PEER_ABSENT);
    expect_forward(give(&workers[1], response("2")), a); /* worker 1 keeps its requests */
    /* The ids are free at once; the new process cannot answer for the old one. */
    expect_forward(give(a, request("1")), &workers[1]);
    worker_is(&workers[0], PEER_READY);
    expect_discard(give(&workers[0], response("3")));
}

TEST(sessions_of_a_dead_worker_start_anew_elsewhere)
{
    struct peer *owner = add_client(), *guest = add_client();
    uint64_t number;

    add_pool("a", 2);
    expect_forward(give(owner, in_session(notification(), "s")), &workers[0]);
    expect_forward(give(owner, in_session(notification(), "t")), &workers[1]);
    worker_is(&workers[0], PEER_ABSENT); /* stopping: it may still answer, so the session waits */
    expect_hold(give(owner, in_session(notification(), "s")));
    number = workers[0].number;
    worker_gone(&workers[0]);
    ck_assert_uint_ne(workers[0].number, number);
    expect_released(owner);
    expect_forward(retry(owner), &workers[1]);
    expect_forward(give(guest, in_session(notification(), "s")), &workers[1]);
    expect_forward(give(&workers[1], in_session(notification(), "s")), owner);
    ck_assert_uint_eq(router.sessions.table.count, 2);
}

TEST_ROWS(new_owner_after_the_session_was_invalidated, 2)
{
    struct peer *owner = add_client(), *guest = add_client();

    add_pool("a", 2);
    give(owner, in_session(notification(), "s"));
    give(guest, in_session(notification(), "s"));
    if (row == 0)
        worker_gone(&workers[0]);
    else
        client_gone(owner);
    expect_forward(give(guest, in_session(notification(), "s")), &workers[1]);
    expect_forward(give(&workers[1], in_session(notification(), "s")), guest);
}

TEST(client_that_waits_for_an_id_of_a_dead_worker_goes_elsewhere)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 2);
    give(a, in_session(request("1"), "s"));
    give(b, request("1")); /* at worker 1 */
    expect_hold_for_id(give(c, in_session(request("1"), "s")));
    expect_forward(give(&workers[1], response("1")), b);
    expect_none_released();
    worker_gone(&workers[0]);
    ck_assert_int_eq(reported_count, 1);
    expect_reported(0, a, "1");
    expect_released(c);
    expect_forward(retry(c), &workers[1]);
}

TEST_ROWS(held_worker_that_is_gone_is_on_no_list, 3)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    give(client, in_session(request("1"), "s"));
    give(client, in_session(request("2"), "t"));
    if (row == 0) { /* for a client that does not read */
        set_full(client, true);
        expect_hold(give(&workers[0], response("1")));
    } else if (row == 1) { /* for an id of the client's */
        give(&workers[1], in_session(request("5"), "t"));
        expect_hold_for_id(give(&workers[0], in_session(request("5"), "s")));
    } else { /* with the id kept free for it */
        give(&workers[1], in_session(request("5"), "t"));
        expect_hold_for_id(give(&workers[0], in_session(request("5"), "s")));
        expect_forward(give(client, response("5")), &workers[1]);
        ck_assert_ptr_nonnull(workers[0].reserved);
    }
    worker_gone(&workers[0]);
    ck_assert(!peer_held(&workers[0]));
    ck_assert_ptr_null(workers[0].reserved);
    set_full(client, false);
    if (row == 1)
        expect_forward(give(client, response("5")), &workers[1]);
    expect_none_released(); /* neither the worker nor another peer */
    expect_reported(0, client, "1");
    ck_assert_uint_eq(router.from_workers.by_answerer.count, 0);
}

/* --- no worker takes messages --- */

TEST_ROWS(client_is_held_until_a_worker_is_ready, 2)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    worker_is(&workers[0], PEER_ABSENT);
    worker_is(&workers[1], row == 0 ? PEER_ABSENT : PEER_FAILED);
    expect_hold(give(a, request("1")));
    expect_hold(give(b, in_session(notification(), "s")));
    ck_assert(!a->reserved && !b->reserved);
    expect_none_released();
    worker_is(&workers[0], PEER_READY);
    expect_released(a);
    expect_forward(retry(a), &workers[0]);
    expect_released(b);
    expect_forward(retry(b), &workers[0]);
    expect_none_released();
}

TEST(hold_for_a_worker_has_no_time_limit)
{
    struct peer *client = add_client();
    struct decision decision;

    add_pool("a", 1);
    worker_is(&workers[0], PEER_ABSENT);
    decision = give(client, request("1"));
    expect_hold(decision);
    ck_assert(decision.hold_ms == 0); /* the restart of the worker ends it */
}

TEST(request_is_refused_when_no_worker_will_come)
{
    struct peer *client = add_client(), *waiting = add_client();

    add_pool("a", 2);
    add_pool("b", 1);
    worker_is(&workers[0], PEER_FAILED);
    worker_is(&workers[1], PEER_ABSENT);
    expect_hold(give(waiting, in_pool(request("1"), "a")));
    worker_is(&workers[1], PEER_FAILED);
    expect_released(waiting);
    expect_refuse(retry(waiting), JSONRPC_SERVER_ERROR);
    expect_refuse(give(client, in_pool(in_session(notification(), "s"), "a")),
                  JSONRPC_SERVER_ERROR);
    ck_assert_uint_eq(router.sessions.table.count, 0);
    expect_forward(give(client, request("1")), &workers[2]); /* the other pool serves the rest */
    worker_gone(&workers[2]);
    worker_is(&workers[2], PEER_FAILED);
    expect_refuse(give(client, request("2")), JSONRPC_SERVER_ERROR);
}

/* In a router that is closing, whatever a client would wait for. */
TEST(closing_router_refuses_clients_that_would_be_held)
{
    struct peer *first, *second, *exclusive;

    add_pool("a", 1);
    first = add_client();
    second = add_client();
    expect_forward(give(first, request("1")), &workers[0]);
    expect_hold_for_id(give(second, request("1")));
    router.closing = true;
    waiting_worker_available(&router, &workers[0], PEER_ABSENT);
    waiting_leave(&router, second);
    expect_refuse_naming(retry(second), JSONRPC_SERVER_ERROR, "shutting down");
    expect_refuse_naming(give(second, request("2")), JSONRPC_SERVER_ERROR, "shutting down");
    workers[0].availability = PEER_READY;
    expect_refuse_naming(give(second, request("1")), JSONRPC_SERVER_ERROR, "shutting down");
    waiting_set_full(&router, &workers[0], true);
    expect_refuse_naming(give(second, request("3")), JSONRPC_SERVER_ERROR, "shutting down");
    /* What was in flight is still answered, and a full client still holds the worker. */
    waiting_set_full(&router, first, true);
    expect_hold(give(&workers[0], response("1")));
    exclusive = add_client();
    add_pool("b", 0)->mode.clients = CLIENTS_EXCLUSIVE;
    expect_refuse(give(exclusive, in_pool(request("1"), "b")), JSONRPC_SERVER_ERROR);
}

TEST(pool_without_workers_is_refused)
{
    struct peer *client = add_client();

    add_pool("a", 0);
    expect_refuse(give(client, in_pool(request("1"), "a")), JSONRPC_SERVER_ERROR);
    expect_refuse(give(client, request("1")), JSONRPC_SERVER_ERROR);
}

/* --- queues are full (spec 7.3.1) --- */

TEST(full_worker_holds_its_sessions)
{
    struct peer *client = add_client(), *other = add_client();

    add_pool("a", 2);
    give(client, in_session(notification(), "s"));
    set_full(&workers[0], true);
    expect_hold(give(client, in_session(request("1"), "s")));
    expect_forward(give(other, request("1")), &workers[1]); /* other messages pass it over */
    set_full(&workers[1], true);
    expect_hold(give(other, notification()));
    set_full(&workers[1], false);
    expect_released(other);
    expect_none_released();
    expect_forward(retry(other), &workers[1]);
    set_full(&workers[0], false);
    expect_released(client);
    expect_none_released();
    expect_forward(retry(client), &workers[0]);
}

TEST_ROWS(client_waits_for_any_full_worker, 2)
{
    struct peer *a = add_client(), *b = add_client();

    add_pool("a", 2);
    set_full(&workers[0], true);
    set_full(&workers[1], true);
    expect_hold(give(a, request("1")));
    expect_hold(give(b, in_session(request("1"), "s")));
    expect_none_released();
    set_full(&workers[row], false);
    settle();
    ck_assert(!peer_held(a));
    ck_assert(peer_held(b)); /* the id is taken there, and the other one is full */
    set_full(&workers[1 - row], false);
    expect_released(b);
    expect_forward(retry(b), &workers[1 - row]);
}

TEST(full_client_holds_its_workers)
{
    struct peer *client = add_client(), *other = add_client();

    add_pool("a", 3);
    give(client, in_session(request("1"), "s"));
    give(client, in_session(request("2"), "t"));
    give(other, in_session(request("3"), "u"));
    give(client, in_session(notification(), "u"));
    set_full(client, true);
    expect_hold(give(&workers[0], response("1")));
    expect_hold(give(&workers[1], in_session(notification(), "t")));
    expect_forward(give(&workers[2], response("3")), other);
    expect_none_released();
    set_full(client, false);
    expect_released(&workers[0]);
    expect_forward(retry(&workers[0]), client);
    expect_released(&workers[1]);
    expect_forward(retry(&workers[1]), client);
    expect_none_released();
}

TEST(request_to_a_full_client_is_held)
{
    struct peer *client = add_client();

    add_pool("a", 1);
    give(client, in_session(notification(), "s"));
    set_full(client, true);
    expect_hold(give(&workers[0], in_session(request("1"), "s")));
    ck_assert_uint_eq(router.from_workers.active_count, 0);
    set_full(client, false);
    expect_released(&workers[0]);
    expect_forward(retry(&workers[0]), client);
    ck_assert_uint_eq(router.from_workers.active_count, 1);
}

TEST_ROWS(reply_to_a_full_worker_is_held, 2)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    give(client, in_session(notification(), "s"));
    give(&workers[0], in_session(request("1"), "s"));
    set_full(&workers[0], true);
    expect_hold(give(client, response("1"))); /* for that worker, though worker 1 is free */
    if (row == 0) {
        set_full(&workers[0], false);
        expect_released(client);
        expect_forward(retry(client), &workers[0]);
    } else {
        worker_gone(&workers[0]);
        expect_released(client);
        expect_discard(retry(client));
    }
    ck_assert_uint_eq(router.from_workers.by_answerer.count, 0);
}

/* --- a client is gone --- */

TEST(client_that_is_gone_releases_its_workers)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    give(client, in_session(request("1"), "s"));
    give(client, in_session(notification(), "t"));
    set_full(client, true);
    expect_hold(give(&workers[0], response("1")));
    expect_hold(give(&workers[1], in_session(notification(), "t")));
    client_gone(client);
    expect_released(&workers[0]);
    expect_discard(retry(&workers[0]));
    expect_released(&workers[1]);
    expect_dropped(retry(&workers[1]));
    expect_none_released();
    ck_assert_uint_eq(router.sessions.table.count, 0);
    ck_assert_uint_eq(router.from_clients.by_answerer.count, 0);
}

TEST(requests_to_a_client_that_is_gone_are_reported)
{
    struct peer *client = add_client();

    add_pool("a", 2);
    give(client, in_session(notification(), "s"));
    give(client, in_session(notification(), "t"));
    give(&workers[0], in_session(request("1"), "s"));
    give(&workers[1], in_session(request("2"), "t"));
    expect_hold_for_id(give(&workers[1], in_session(request("1"), "t")));
    client_gone(client);
    ck_assert_int_eq(reported_count, 2);
    expect_reported(0, &workers[0], "1");
    expect_reported(1, &workers[1], "2");
    expect_released(&workers[1]);
    expect_refuse(retry(&workers[1]), JSONRPC_SERVER_ERROR); /* no such session any more */
    ck_assert_uint_eq(router.from_workers.by_answerer.count, 0);
}

/* The ways for a client to be held; 0 to HELD_WAYS - 1. */
#define HELD_WAYS 6

static void hold_somehow(int way, struct peer *client, struct peer *other)
{
    give(client, in_session(notification(), "s")); /* at worker 0 */
    give(client, in_session(notification(), "t")); /* at worker 1 */
    switch (way) {
    case 0: /* for an id at its session's worker */
        give(other, in_session(request("1"), "s"));
        expect_hold(give(client, in_session(request("1"), "s")));
        return;
    case 1: /* for an id at any worker */
        give(other, in_session(request("1"), "s"));
        worker_is(&workers[1], PEER_ABSENT);
        expect_hold(give(client, request("1")));
        return;
    case 2: /* for its session's worker to read */
        set_full(&workers[0], true);
        expect_hold(give(client, in_session(request("1"), "s")));
        return;
    case 3: /* for any worker */
        worker_is(&workers[0], PEER_ABSENT);
        worker_is(&workers[1], PEER_ABSENT);
        expect_hold(give(client, request("1")));
        return;
    case 4: /* with a reply, for the worker to read */
        give(&workers[0], in_session(request("1"), "s"));
        set_full(&workers[0], true);
        expect_hold(give(client, response("1")));
        return;
    default: /* as in 0, and expired */
        give(other, in_session(request("1"), "s"));
        expect_hold(give(client, in_session(request("1"), "s")));
        waiting_expire(&router, client);
        return;
    }
}

TEST_ROWS(held_client_that_is_gone_is_on_no_list, HELD_WAYS)
{
    struct peer *client = add_client(), *other = add_client();

    add_pool("a", 2);
    hold_somehow((int)row, client, other);
    client_gone(client); /* overwrites the peer: a list that still has it crashes */
    worker_is(&workers[0], PEER_READY);
    worker_is(&workers[1], PEER_READY);
    set_full(&workers[0], false);
    set_full(&workers[1], false);
    give(&workers[0], response("1"));
    expect_none_released();
    ck_assert(!roaming_any(&router.roaming));
    ck_assert(list_empty(&router.waiting_for_worker));
    give(other, request("1"));
    give(other, request("2"));
    worker_gone(&workers[0]);
    worker_gone(&workers[1]);
    expect_none_released();
}

/* --- tables are full --- */

TEST(full_pending_table_refuses_requests)
{
    struct peer *client, *other;

    limit_to(8, 3);
    client = add_client();
    other = add_client();
    add_pool("a", 2);
    give(client, request("1"));
    give(client, request("2"));
    give(other, request("3"));
    expect_refuse_naming(give(client, request("4")), JSONRPC_SERVER_ERROR,
                         "max_pending_requests 3");
    expect_refuse_naming(give(other, in_session(request("5"), "s")), JSONRPC_SERVER_ERROR,
                         "max_pending_requests 3");
    ck_assert_uint_eq(router.sessions.table.count, 0);
    expect_forward(give(client, notification()), &workers[1]); /* takes no place */
    expect_forward(give(&workers[0], response("1")), client);
    expect_forward(give(client, request("4")), &workers[0]);
}

/* The limit is of each client's own, and not of the requests of workers. */
TEST(requests_of_a_client_are_limited)
{
    struct peer *client, *other;

    limits.max_requests_per_client = 2;
    client = add_client();
    other = add_client();
    add_pool("a", 1);
    give(client, in_session(request("1"), "s"));
    give(client, in_session(request("2"), "s"));
    expect_refuse_naming(give(client, request("3")), JSONRPC_SERVER_ERROR,
                         "max_requests_per_client 2");
    ck_assert_uint_eq(router.limited_requests, 1);
    expect_forward(give(client, in_session(notification(), "s")), &workers[0]);
    expect_forward(give(other, request("3")), &workers[0]);
    for (int i = 0; i < 3; i++) {
        static const char *const ids[] = {"a", "b", "c"};
        expect_forward(give(&workers[0], in_session(request(ids[i]), "s")), client);
    }
    expect_forward(give(client, response("a")), &workers[0]);
    expect_forward(give(&workers[0], response("1")), client);
    expect_forward(give(client, request("4")), &workers[0]);
}

TEST(full_session_table_refuses_new_sessions)
{
    struct peer *a, *b;

    limit_to(2, 8);
    a = add_client();
    b = add_client();
    add_pool("a", 1);
    give(a, in_session(request("1"), "s"));
    give(b, in_session(request("2"), "t"));
    expect_refuse_naming(give(a, in_session(request("3"), "u")), JSONRPC_SERVER_ERROR,
                         "max_sessions 2");
    expect_dropped(give(a, in_session(notification(), "u")));
    ck_assert_uint_eq(router.from_clients.active_count, 2);
    expect_forward(give(a, in_session(request("3"), "s")), &workers[0]);
    expect_forward(give(a, request("4")), &workers[0]);
    client_gone(b);
    expect_forward(give(a, in_session(request("5"), "u")), &workers[0]);
}

TEST(full_pending_table_refuses_requests_of_workers)
{
    struct peer *client;

    limit_to(8, 2);
    client = add_client();
    add_pool("a", 1);
    give(client, in_session(request("1"), "s"));
    give(client, in_session(request("2"), "s"));
    expect_forward(give(&workers[0], in_session(request("a"), "s")), client);
    expect_forward(give(&workers[0], in_session(request("b"), "s")), client);
    expect_refuse_naming(give(&workers[0], in_session(request("c"), "s")), JSONRPC_SERVER_ERROR,
                         "max_pending_requests 2");
    expect_forward(give(&workers[0], in_session(notification(), "s")), client);
    expect_forward(give(client, response("a")), &workers[0]);
    expect_forward(give(&workers[0], in_session(request("c"), "s")), client);
}

/* --- out of memory --- */

TEST(failed_forward_of_a_request)
{
    struct peer *client = add_client(), *other = add_client();
    struct decision decision;

    add_pool("a", 1);
    decision = decide(client, in_session(request("1"), "s"));
    expect_forward(decision, &workers[0]);
    expect_hold_for_id(give(other, in_session(request("1"), "s")));
    decision_failed(&decision);
    ck_assert_uint_eq(router.from_clients.active_count, 0);
    expect_released(other); /* the id goes to the next client */
    expect_forward(retry(other), &workers[0]);
    expect_hold_for_id(retry(client)); /* not refused as a duplicate */
    expect_forward(give(&workers[0], response("1")), other);
    expect_released(client);
    expect_forward(retry(client), &workers[0]);
    expect_forward(give(&workers[0], response("1")), client);
}

TEST(failed_forward_of_an_answer)
{
    struct peer *client = add_client();
    struct decision decision;

    add_pool("a", 1);
    give(client, in_session(request("1"), "s"));
    give(&workers[0], in_session(request("2"), "s"));
    decision = decide(&workers[0], response("1"));
    expect_forward(decision, client);
    decision_failed(&decision);
    expect_forward(give(&workers[0], response("1")), client); /* still active */
    decision = decide(client, response("2"));
    expect_forward(decision, &workers[0]);
    decision_failed(&decision);
    expect_forward(give(client, response("2")), &workers[0]);
}

TEST(failed_forward_of_a_notification)
{
    struct peer *client = add_client();
    struct decision decision;

    add_pool("a", 1);
    decision = decide(client, in_session(notification(), "s"));
    decision_failed(&decision);
    expect_forward(give(client, in_session(notification(), "s")), &workers[0]);
    decision = decide(&workers[0], in_session(notification(), "s"));
    expect_forward(decision, client);
    decision_failed(&decision);
    expect_forward(give(&workers[0], in_session(notification(), "s")), client);
}

/* Offers the message with one allocation more each time, until the router has enough. Nothing may
 * have changed before. Returns the number of failures. */
static long decide_while_memory_grows(struct peer *from, struct message message, struct peer *to)
{
    struct pending *table = is_client(from) ? &router.from_clients : &router.from_workers;
    size_t sessions = router.sessions.table.count;
    size_t requests = table->by_answerer.count;
    struct decision decision;
    long limit;

    for (limit = 0;; limit++) {
        allocations_left = limit;
        decision = decide(from, message);
        allocations_left = -1;
        if (decision.action != ACTION_NO_MEMORY)
            break;
        ck_assert_uint_eq(router.sessions.table.count, sessions);
        ck_assert_uint_eq(table->by_answerer.count, requests);
        ck_assert_uint_eq(table->by_asker.count, requests);
        ck_assert_uint_eq(table->active_count, requests);
        ck_assert(list_empty(&to->answering));
    }
    expect_forward(decision, to);
    decision_delivered(&decision);
    return limit;
}

TEST(decision_without_memory_changes_nothing)
{
    struct peer *client = add_client();

    add_pool("a", 1);
    /* The entry, its tables, the session and its table allocate. */
    ck_assert_int_ge(decide_while_memory_grows(client, in_session(request("1"), "s"), &workers[0]),
                     2);
    ck_assert_int_ge(decide_while_memory_grows(&workers[0], in_session(request("1"), "s"), client),
                     2);
}

TEST(reservation_survives_no_memory)
{
    struct peer *a = add_client(), *b = add_client();
    struct decision decision;
    char id[16];

    add_pool("a", 1);
    give(a, request("1"));
    expect_hold_for_id(give(b, request("1")));
    expect_forward(give(&workers[0], response("1")), a);
    for (int i = 0; router.from_clients.by_asker.count < 48;
         i++) { /* until the next entry makes the table grow */
        snprintf(id, sizeof id, "x%d", i);
        give(a, request(id));
    }
    expect_released(b);
    allocations_left = 0;
    decision = decide(b, request("1"));
    ck_assert_int_eq(decision.action, ACTION_NO_MEMORY);
    allocations_left = -1;
    expect_none_released();
    expect_forward(retry(b), &workers[0]);
    expect_forward(give(&workers[0], response("1")), b);
}

TEST(worker_added_without_memory_is_in_no_group)
{
    struct peer *client = add_client();
    long limit;
    int status;

    add_pool("a", 0);
    for (limit = 0;; limit++) {
        allocations_left = limit;
        status = router_add_worker(&router, &workers[0], &pools[0]);
        allocations_left = -1;
        if (status == STDIO_BUS_OK)
            break;
        ck_assert_int_eq(status, STDIO_BUS_ERR);
        expect_refuse(give(client, request("1")), JSONRPC_SERVER_ERROR); /* in no group */
        expect_refuse(give(client, in_pool(request("1"), "a")), JSONRPC_SERVER_ERROR);
    }
    ck_assert_int_eq(limit, 2);
    worker_is(&workers[0], PEER_READY);
    expect_forward(give(client, request("1")), &workers[0]);
}

/* A list of the owner's, as for peers that wait for memory. */
TEST(owner_holds_and_releases_peers)
{
    struct peer *a = add_client(), *b = add_client();
    struct list starved;

    list_init(&starved);
    add_pool("a", 1);
    waiting_hold(&starved, a);
    waiting_hold(&starved, b);
    ck_assert(peer_held(a) && peer_held(b));
    set_full(&workers[0], false);
    worker_is(&workers[0], PEER_READY);
    expect_none_released();
    client_gone(b);
    waiting_release(&router, a);
    ck_assert(list_empty(&starved));
    expect_released(a);
    ck_assert(!peer_held(a));
    expect_forward(give(a, request("1")), &workers[0]);
}

FIXTURE(set_up, tear_down)
