/* Fair shares: of which one client takes what it can get, the others always get theirs. */
#include "build_config.h"

#include "router/shares.h"
#include "router_fixture.h"

#define CLIENTS 12
#define STEPS 400

static struct peer_origin origins[CLIENTS];
static bool present[CLIENTS];
static unsigned last_id;

/* The client arrives, from this origin. */
static void arrive(int which, int origin)
{
    memset(&clients[which], 0, sizeof clients[which]);
    if (origins[origin].clients == 0)
        peer_origin_init(&origins[origin]);
    clients[which].origin = &origins[origin];
    router_add_client(&router, &clients[which]);
    router_admit_client(&router, &clients[which]);
    present[which] = true;
}

static void depart(int which)
{
    departure_client(&router, &clients[which], note_unanswered, &router);
    present[which] = false;
}

static bool ask(int which)
{
    char id[16];

    snprintf(id, sizeof id, "%u", ++last_id);
    return give(&clients[which], request(id)).action == ACTION_FORWARD;
}

static bool start(int which)
{
    char session_id[16];

    snprintf(session_id, sizeof session_id, "%u", ++last_id);
    return give(&clients[which], in_session(notification(), session_id)).action == ACTION_FORWARD;
}

/* What a client or an origin may hold in a full table, with this number present: the first number
 * that is not less than max/(2n). */
static size_t share_of(size_t max, size_t count)
{
    return (max + 2 * count - 1) / (2 * count);
}

static size_t owed(const struct peer *client, enum peer_share share, size_t max)
{
    size_t of_client = share_of(max, router.client_count);
    size_t of_origin = share_of(max, router.origin_count);
    size_t held_there = client->origin->held[share];

    of_client -= client->held[share] < of_client ? client->held[share] : of_client;
    of_origin -= held_there < of_origin ? held_there : of_origin;
    return of_client > of_origin ? of_client : of_origin;
}

/* As router/shares.h has it: what a table may hold with n clients of m origins present. */
static size_t bound(size_t max, size_t n, size_t m)
{
    size_t sum = max;

    for (size_t k = 2; k <= n; k++)
        sum += share_of(max, k);
    for (size_t k = 2; k <= m; k++)
        sum += share_of(max, k);
    return sum;
}

static size_t count_origins(void)
{
    size_t count = 0;

    for (int i = 0; i < CLIENTS; i++)
        count += origins[i].clients > 0;
    return count;
}

/* The first client takes all that it can get; then each of the others gets its share, or has it. */
static void check_shares(size_t max_sessions, size_t max_requests)
{
    while (ask(0))
        ;
    while (start(0))
        ;
    for (int i = 1; i < CLIENTS; i++) {
        size_t requests, sessions;

        if (!present[i])
            continue;
        requests = owed(&clients[i], PEER_REQUESTS, max_requests);
        sessions = owed(&clients[i], PEER_SESSIONS, max_sessions);
        while (requests-- > 0)
            ck_assert(ask(i));
        while (sessions-- > 0)
            ck_assert(start(i));
        ck_assert(!ask(i));
        ck_assert(!start(i));
    }
    ck_assert_uint_eq(router.origin_count, count_origins());
}

static void answer_one(struct peer *client)
{
    const struct request *request;
    char id[16];

    if (list_empty(&client->asked))
        return;
    request = list_entry(client->asked.head.next, struct request, in_asker);
    snprintf(id, sizeof id, "%.*s", (int)request->asker_id.text.len, request->asker_id.text.data);
    expect_forward(give(request->answerer, response(id)), client);
}

TEST_ROWS(everyone_gets_a_share, 20)
{
    size_t max_sessions, max_requests;

    random_state = 0x9e3779b97f4a7c15u + (unsigned)row;
    max_sessions = 1 + next_random(40);
    max_requests = 1 + next_random(40);
    limit_to(max_sessions, max_requests);
    add_pool("a", 2);
    arrive(0, 0);
    for (int step = 0; step < STEPS; step++) {
        int which = 1 + (int)next_random(CLIENTS - 1);

        if (!present[which])
            arrive(which, (int)next_random(CLIENTS));
        else if (next_random(3) == 0)
            depart(which);
        else if (next_random(2) == 0)
            answer_one(&clients[which]);
        else
            answer_one(&clients[0]);
        if (step % 20 == 0)
            check_shares(max_sessions, max_requests);
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (present[i])
            depart(i);
    }
    ck_assert_uint_eq(router.client_count, 0);
    ck_assert_uint_eq(router.origin_count, 0);
    ck_assert_uint_eq(router.from_clients.active_count, 0);
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_uint_eq(origins[i].clients, 0);
        ck_assert_uint_eq(origins[i].held[PEER_REQUESTS], 0);
        ck_assert_uint_eq(origins[i].held[PEER_SESSIONS], 0);
    }
}

static void take_all(int which)
{
    while (ask(which))
        ;
    while (start(which))
        ;
}

/* Each client takes all that it can get, before the next one comes. */
TEST_ROWS(greedy_clients_get_the_sum_of_their_shares, 40)
{
    size_t max = 1 + (size_t)row * 7;

    limit_to(max, max);
    add_pool("a", 1);
    for (int i = 0; i < CLIENTS; i++) {
        arrive(i, 0);
        take_all(i);
        ck_assert_uint_eq(router.from_clients.active_count, bound(max, (size_t)i + 1, 1));
        ck_assert_uint_eq(router.sessions.table.count, bound(max, (size_t)i + 1, 1));
    }
}

/* Clients of any origin come, take all they can get, get answers and leave, in any order. */
TEST_ROWS(greedy_clients_get_no_more_than_the_sum, 20)
{
    size_t max_sessions, max_requests;

    random_state = 0x2545f4914f6cdd1du + (unsigned)row;
    max_sessions = 1 + next_random(60);
    max_requests = 1 + next_random(60);
    limit_to(max_sessions, max_requests);
    add_pool("a", 1);
    for (int step = 0; step < STEPS; step++) {
        int which = (int)next_random(CLIENTS);

        if (!present[which])
            arrive(which, (int)next_random(1 + (unsigned)row % CLIENTS));
        else if (next_random(3) == 0)
            depart(which);
        else
            answer_one(&clients[which]);
        if (present[which])
            take_all(which);
        ck_assert_uint_le(router.from_clients.active_count,
                          bound(max_requests, router.client_count, router.origin_count));
        ck_assert_uint_le(router.sessions.table.count,
                          bound(max_sessions, router.client_count, router.origin_count));
    }
}

/* A client on its own gets the whole table, and not more. */
TEST(lone_client_gets_the_maximum)
{
    limit_to(5, 7);
    add_pool("a", 1);
    arrive(0, 0);
    for (int i = 0; i < 7; i++)
        ck_assert(ask(0));
    ck_assert(!ask(0));
    for (int i = 0; i < 5; i++)
        ck_assert(start(0));
    ck_assert(!start(0));
}

/* Many clients of one origin leave the clients of another one their share. */
TEST(origins_have_shares)
{
    limit_to(8, 40);
    add_pool("a", 1);
    for (int i = 0; i < CLIENTS - 1; i++)
        arrive(i, 0);
    for (int i = 0; i < CLIENTS - 1; i++) {
        while (ask(i))
            ;
    }
    arrive(CLIENTS - 1, 1);
    for (int i = 0; i < 10; i++)
        ck_assert(ask(CLIENTS - 1));
    ck_assert(!ask(CLIENTS - 1));
}

/* Workers that ask clients have shares of their own. */
TEST(workers_have_shares)
{
    limit_to(8, 4);
    add_pool("a", 2);
    arrive(0, 0);
    expect_forward(give(&clients[0], in_session(notification(), "s")), &workers[0]);
    for (int i = 0; i < 4; i++)
        expect_forward(give(&workers[0], in_session(request(&"abcd"[i]), "s")), &clients[0]);
    expect_refuse(give(&workers[0], in_session(request("e"), "s")), JSONRPC_SERVER_ERROR);
    expect_forward(give(&workers[1], in_session(request("x"), "s")), &clients[0]);
    expect_refuse(give(&workers[1], in_session(request("y"), "s")), JSONRPC_SERVER_ERROR);
}

TEST(connections_have_shares)
{
    limits.max_connections = 4;
    for (int i = 0; i < 4; i++) {
        ck_assert(shares_left_of_connections(&router, (size_t)i, i > 0 ? &origins[0] : NULL));
        arrive(i, 0);
    }
    ck_assert(!shares_left_of_connections(&router, 4, &origins[0]));
    ck_assert(shares_left_of_connections(&router, 4, NULL));
    arrive(4, 1);
    ck_assert(!shares_left_of_connections(&router, 5, &origins[1]));
    ck_assert(shares_left_of_connections(&router, 5, NULL));
}

/* Each origin connects as often as it can, before the next one comes. */
TEST_ROWS(greedy_origins_get_the_sum_of_their_shares, 8)
{
    static struct peer peers[200];
    size_t count = 0;

    memset(peers, 0, sizeof peers);
    limits.max_connections = 1 + (size_t)row * 5;
    for (int i = 0; i < CLIENTS; i++) {
        while (shares_left_of_connections(&router, count, &origins[i])) {
            ck_assert_uint_lt(count, COUNT(peers));
            peers[count].origin = &origins[i];
            router_add_client(&router, &peers[count]);
            router_admit_client(&router, &peers[count++]);
        }
        ck_assert_uint_eq(count, bound(limits.max_connections, 1, (size_t)i + 1));
    }
}

/* A connection that was not admitted lessens nobody's share. */
TEST(strangers_have_no_shares)
{
    limit_to(8, 8);
    limits.max_connections = 4;
    add_pool("a", 1);
    arrive(0, 0);
    arrive(1, 1);
    for (int i = 2; i < CLIENTS; i++) {
        clients[i].origin = &origins[i];
        router_add_client(&router, &clients[i]);
    }
    while (ask(0))
        ;
    ck_assert(ask(1));
    ck_assert(ask(1));
    ck_assert(!ask(1));
    ck_assert(shares_left_of_connections(&router, 4, &origins[2]));
    for (int i = 2; i < CLIENTS; i++)
        departure_client(&router, &clients[i], note_unanswered, &router);
    ck_assert_uint_eq(router.client_count, 2);
    ck_assert_uint_eq(router.origin_count, 2);
}

static void begin(void)
{
    set_up();
    memset(origins, 0, sizeof origins);
    memset(present, 0, sizeof present);
    last_id = 0;
}

FIXTURE(begin, tear_down)
