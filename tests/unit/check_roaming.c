/* Clients that wait for an id, and would take it at any worker of their pool. */
#include "build_config.h"

#include "router_fixture.h"

#define malloc failing_malloc
#define calloc failing_calloc
#include "router/roaming.c"
#undef malloc
#undef calloc

TEST(client_roams_within_its_pool)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 1);
    add_pool("b", 2);
    worker_is(&workers[2], PEER_ABSENT);
    expect_forward(give(a, in_pool(request("1"), "a")), &workers[0]);
    expect_forward(give(b, in_pool(request("1"), "b")), &workers[1]);
    expect_hold_for_id(give(c, in_pool(request("1"), "a")));
    expect_forward(give(&workers[1], response("1")), b);
    worker_is(&workers[2], PEER_READY);
    set_full(&workers[1], false);
    expect_none_released();
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
}

/* One id in two groups: that of a pool, and that of all. The client that has waited for longest is
 * served first, by a worker of both. */
TEST_ROWS(client_that_has_roamed_longest_is_first, 2)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client(), *d = add_client();
    struct peer *first = row == 0 ? c : d, *second = row == 0 ? d : c;

    add_pool("a", 2);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_forward(give(b, request("1")), &workers[1]);
    expect_forward(give(a, request("2")), &workers[0]);
    expect_forward(give(b, request("2")), &workers[1]);
    expect_hold_for_id(give(first, first == c ? request("1") : in_pool(request("1"), "a")));
    expect_hold_for_id(give(second, second == c ? request("1") : in_pool(request("1"), "a")));
    expect_forward(give(&workers[1], response("2")), b); /* another id */
    expect_none_released();
    expect_forward(give(&workers[1], response("1")), b);
    expect_released(first);
    expect_none_released();
    expect_forward(retry(first), &workers[1]);
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(second);
    expect_forward(retry(second), &workers[0]);
    ck_assert(!roaming_any(&router.roaming));
}

TEST_ROWS(client_does_not_roam_to_a_worker_that_takes_no_messages, 2)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 2);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_forward(give(b, request("1")), &workers[1]);
    expect_hold_for_id(give(c, request("1")));
    if (row == 0)
        set_full(&workers[1], true);
    else
        worker_is(&workers[1], PEER_ABSENT);
    expect_forward(give(&workers[1], response("1")), b);
    settle(); /* ends */
    ck_assert(peer_held(c));
    expect_forward(give(&workers[0], response("1")), a);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
    expect_forward(give(&workers[0], response("1")), c);
}

TEST(client_of_the_session_comes_before_a_roaming_client)
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

/* Without memory for that, its message is offered again later. */
TEST(client_without_memory_roams_later)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    add_pool("a", 2);
    expect_forward(give(a, request("1")), &workers[0]);
    expect_forward(give(b, request("1")), &workers[1]);
    allocations_left = 0;
    ck_assert_int_eq(give(c, request("1")).action, ACTION_NO_MEMORY);
    allocations_left = -1;
    ck_assert(!roaming_any(&router.roaming));
    expect_hold_for_id(retry(c));
    expect_forward(give(&workers[0], response("1")), a);
    expect_forward(give(&workers[1], response("1")), b);
    expect_released(c);
    expect_forward(retry(c), &workers[0]);
}

FIXTURE(set_up, tear_down)
