/* Fair shares of the processes of an exclusive pool. */
#include "build_config.h"

#include "pool_mode_fixture.h"
#include "router/bind.h"
#include "router/shares.h"

#define MESSAGE "{'id':1,'method':'m'}"

static struct peer_origin one, other, third;

static struct peer *add_client_of(struct peer_origin *origin)
{
    if (origin->clients == 0)
        peer_origin_init(origin);
    clients[client_count].origin = origin;
    return add_client();
}

/* Each of these clients takes a worker; they are the first ones of `clients`. */
static void take_workers(struct peer_origin *origin, int count)
{
    for (; count > 0; count--) {
        struct peer *client = add_client_of(origin);

        expect_action(give(client, MESSAGE), ACTION_FORWARD);
    }
}

static void settle(void)
{
    while (waiting_next_released(&router) != NULL)
        ;
}

TEST(origin_below_its_share_has_a_claim)
{
    struct peer *late;

    POOL("p", 4, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 4);
    ck_assert_ptr_null(shares_holding_most(&router, &pools[0], 0));
    late = add_client_of(&other);
    expect_action(give(late, MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
    ck_assert_ptr_eq(shares_holding_most(&router, &pools[0], 0), &one);
    /* A worker is taken from that origin: nobody else has to give one up, and none of its other
     * clients gets it. */
    affinity_clear_client(&clients[3]);
    ck_assert_ptr_null(shares_holding_most(&router, &pools[0], 0));
    expect_action(give(add_client_of(&one), MESSAGE), ACTION_HOLD);
    departure_worker(&router, &workers[3], note_unanswered, NULL);
    waiting_worker_available(&router, &workers[3], PEER_READY);
    settle();
    expect_action(give(&clients[5], MESSAGE), ACTION_HOLD);
    expect_unchanged(late, MESSAGE, &workers[3]);
    ck_assert_uint_eq(shares_claims(&pools[0]), 0);
}

/* Clients of an origin that has its share wait as ever. */
TEST(origin_with_its_share_has_no_claim)
{
    POOL("p", 4, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 3);
    take_workers(&other, 1);
    expect_action(give(add_client_of(&other), MESSAGE), ACTION_HOLD);
    expect_action(give(add_client_of(&one), MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 0);
    expect_action(give(add_client_of(&third), MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
    ck_assert_ptr_eq(shares_holding_most(&router, &pools[0], 0), &one);
}

/* With as many origins as workers each keeps one: none is taken back and forth. */
TEST(one_worker_is_never_taken)
{
    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 1);
    take_workers(&other, 1);
    expect_action(give(add_client_of(&third), MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
    ck_assert_ptr_null(shares_holding_most(&router, &pools[0], 0));
}

/* A link to another machine is no process that could be taken from its client. */
TEST(links_are_not_taken)
{
    POOL("p", 1, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 1);
    add_workers(&pools[0], 2);
    workers[1].is_passage = workers[2].is_passage = true;
    take_workers(&one, 2);
    ck_assert(shares_has_process(&pools[0], &clients[0]));
    ck_assert(!shares_has_process(&pools[0], &clients[2]));
    ck_assert_uint_eq(shares_processes(&pools[0], &one), 1);
    expect_action(give(add_client_of(&other), MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
    ck_assert_ptr_null(shares_holding_most(&router, &pools[0], 0));
}

/* The client of a link gets no link to a third machine: one that comes is not what its claim waits
 * for, and another client may have that. */
TEST(claim_of_a_link_is_to_a_process)
{
    struct peer *link, *late;

    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 2);
    link = add_client_of(&other);
    link->is_link = true;
    expect_action(give(link, MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
    ck_assert_ptr_eq(shares_holding_most(&router, &pools[0], 1), &one);
    add_workers(&pools[0], 1);
    workers[2].is_passage = true;
    waiting_worker_available(&router, &workers[2], PEER_READY);
    settle();
    expect_action(give(link, MESSAGE), ACTION_HOLD);
    late = add_client_of(&one);
    expect_unchanged(late, MESSAGE, &workers[2]);
    affinity_clear_client(&clients[0]);
    departure_worker(&router, &workers[0], note_unanswered, NULL);
    waiting_worker_available(&router, &workers[0], PEER_READY);
    settle();
    expect_unchanged(link, MESSAGE, &workers[0]);
    ck_assert_uint_eq(shares_claims(&pools[0]), 0);
}

/* With a process and a link that are free, the process is the claim's. */
TEST(claim_of_a_link_leaves_the_link_to_others)
{
    struct peer *link;

    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 2);
    link = add_client_of(&other);
    link->is_link = true;
    expect_action(give(link, MESSAGE), ACTION_HOLD);
    add_workers(&pools[0], 1);
    workers[2].is_passage = true;
    affinity_clear_client(&clients[1]);
    departure_worker(&router, &workers[1], note_unanswered, NULL);
    waiting_worker_available(&router, &workers[1], PEER_READY);
    settle();
    expect_unchanged(add_client_of(&one), MESSAGE, &workers[2]);
    expect_action(give(add_client_of(&one), MESSAGE), ACTION_HOLD);
    expect_unchanged(link, MESSAGE, &workers[1]);
}

/* The link of a client that has left is none of the processes of its origin, which may have a claim
 * while it ends. */
TEST(ending_link_is_no_process)
{
    POOL("p", 1, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 1);
    add_workers(&pools[0], 1);
    workers[1].is_passage = true;
    take_workers(&other, 1);
    shares_ending(&workers[1], &other);
    affinity_clear_client(&clients[1]);
    waiting_worker_available(&router, &workers[1], PEER_ABSENT);
    expect_action(give(add_client_of(&other), MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
}

TEST(claim_ends_with_the_wait)
{
    struct peer *late;

    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 2);
    late = add_client_of(&other);
    expect_action(give(late, MESSAGE), ACTION_HOLD);
    waiting_expire(&router, late);
    expect_released(late);
    expect_refused(give(late, MESSAGE), "busy_timeout_sec");
    ck_assert_uint_eq(shares_claims(&pools[0]), 0);
    expect_action(give(late, MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
    leave(late);
    ck_assert_uint_eq(shares_claims(&pools[0]), 0);
    expect_action(give(add_client_of(&other), MESSAGE), ACTION_HOLD);
    departure_remove_pool(&router, &pools[0]);
    ck_assert_uint_eq(shares_claims(&pools[0]), 0);
    settle();
}

/* The client leaves its worker, whose process begins to end. */
static void begin_end(struct peer *client, struct peer *worker)
{
    shares_ending(worker, client->origin);
    affinity_clear_client(client);
    waiting_worker_available(&router, worker, PEER_ABSENT);
    settle();
}

/* The process has ended; the next one takes messages if it is there. */
static void end(struct peer *worker, enum peer_availability availability)
{
    departure_worker(&router, worker, note_unanswered, NULL);
    shares_ended(worker);
    waiting_worker_available(&router, worker, availability);
    settle();
}

/* However many clients of it wait. */
TEST(claims_of_an_origin_are_at_most_its_share)
{
    struct peer *late[3];

    POOL("p", 8, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 8);
    for (int i = 0; i < 3; i++) {
        late[i] = add_client_of(&other);
        expect_action(give(late[i], MESSAGE), ACTION_HOLD);
    }
    ck_assert_uint_eq(shares_claims(&pools[0]), 2);
    begin_end(&clients[7], &workers[7]);
    ck_assert_ptr_eq(shares_holding_most(&router, &pools[0], 0), &one);
    begin_end(&clients[6], &workers[6]);
    ck_assert_ptr_null(shares_holding_most(&router, &pools[0], 0));
    end(&workers[7], PEER_READY);
    expect_unchanged(late[0], MESSAGE, &workers[7]);
    expect_action(give(late[2], MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
    /* The third client has a claim when the process of the first has ended. */
    begin_end(late[0], &workers[7]);
    expect_action(give(late[2], MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
    end(&workers[7], PEER_ABSENT);
    expect_action(give(late[2], MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 2);
    ck_assert_ptr_null(shares_holding_most(&router, &pools[0], 0));
    end(&workers[7], PEER_READY);
    expect_unchanged(late[2], MESSAGE, &workers[7]);
}

/* The share that an origin keeps is of workers that serve it. */
TEST(origin_with_ending_processes_keeps_its_share)
{
    POOL("p", 4, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 2);
    take_workers(&other, 2);
    begin_end(&clients[3], &workers[3]);
    expect_action(give(add_client_of(&third), MESSAGE), ACTION_HOLD);
    expect_action(give(add_client_of(&other), MESSAGE), ACTION_HOLD);
    ck_assert_ptr_null(shares_holding_most(&router, &pools[0], 0));
}

/* A worker that still ends is claimed, one that comes is not; and not in a sticky pool. */
TEST(ending_processes_are_claimed)
{
    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    POOL("s", 1, STICKY);
    take_workers(&one, 2);
    begin_end(&clients[1], &workers[1]);
    ck_assert(!shares_press(&pools[0], &workers[1]));
    expect_action(give(add_client_of(&other), MESSAGE), ACTION_HOLD);
    ck_assert(shares_press(&pools[0], &workers[1]));
    ck_assert_ptr_null(shares_holding_most(&router, &pools[0], 0));
    end(&workers[1], PEER_ABSENT);
    ck_assert(!shares_press(&pools[0], &workers[1]));
    expect_action(give(add_client_of(&third), MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 2);
    waiting_worker_available(&router, &workers[2], PEER_ABSENT);
    expect_action(give(add_client_of(&one), "{'id':1,'method':'m','pool':'s'}"), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[1]), 0);
}

/* A worker whose process still ends is none for the clients before it in the line. */
TEST(claimed_worker_is_not_taken_while_others_end)
{
    struct peer *first, *late;

    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 2);
    begin_end(&clients[0], &workers[0]);
    begin_end(&clients[1], &workers[1]);
    first = add_client_of(&one);
    expect_action(give(first, MESSAGE), ACTION_HOLD);
    late = add_client_of(&other);
    expect_action(give(late, MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 1);
    end(&workers[0], PEER_READY);
    expect_action(give(first, MESSAGE), ACTION_HOLD);
    expect_unchanged(late, MESSAGE, &workers[0]);
}

/* Of the workers that still end, a client without a claim waits for those of its own origin. */
TEST(ending_processes_are_awaited_by_their_origin)
{
    POOL("p", 3, EXCLUSIVE, .busy_timeout_sec = 10);
    take_workers(&one, 2);
    take_workers(&other, 1);
    begin_end(&clients[0], &workers[0]);
    begin_end(&clients[2], &workers[2]);
    ck_assert(!shares_press(&pools[0], &workers[0]));
    expect_action(give(add_client_of(&one), MESSAGE), ACTION_HOLD);
    ck_assert_uint_eq(shares_claims(&pools[0]), 0);
    ck_assert(shares_press(&pools[0], &workers[0]));
    ck_assert(!shares_press(&pools[0], &workers[2]));
    end(&workers[2], PEER_ABSENT);
    ck_assert(!shares_press(&pools[0], &workers[0]));
}

/* Its clients wait apart: no process is started for them, and no claim keeps others waiting. */
TEST(origin_with_a_penalty_waits_alone)
{
    struct penalty penalty = {.origin = &one, .delays = true};
    struct peer *client;

    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    list_init(&penalty.held);
    list_append(&pools[0].penalties, &penalty.link);
    client = add_client_of(&one);
    expect_action(give(client, MESSAGE), ACTION_HOLD);
    ck_assert(list_empty(&pools[0].waiting));
    ck_assert_uint_eq(shares_claims(&pools[0]), 0);
    expect_action(give(add_client_of(&other), MESSAGE), ACTION_FORWARD);
    penalty.delays = false;
    waiting_release_all(&router, &penalty.held);
    expect_released(client);
    expect_action(give(client, MESSAGE), ACTION_FORWARD);
    list_remove(&penalty.link);
}

static void begin(void)
{
    set_up();
    memset(&one, 0, sizeof one);
    memset(&other, 0, sizeof other);
    memset(&third, 0, sizeof third);
}

FIXTURE(begin, tear_down)
