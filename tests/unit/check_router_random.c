/* The router under random events, against a naive model that only knows who was asked what. After
 * every event: nothing went to the wrong peer, and nobody is held who could go on. */
#include "build_config.h"

#include "router_fixture.h"

#define CLIENTS 6
#define WORKERS 4 /* 0 to 2 in pool "a", 3 in pool "b" */
#define POOL_A 3
#define STEPS 30000
#define GONE (-1)

static const char *const id_names[] = {"0", "1", "2", "x", "y"};
static const char *const session_names[] = {"s", "t", "u", "v", "w", "z"};
static const char *const pool_names[] = {"a", "b"};

#define IDS (int)(sizeof id_names / sizeof id_names[0])
#define SESSIONS (int)(sizeof session_names / sizeof session_names[0])

/* A request that was delivered and not answered yet; by answerer's index and id. */
static struct {
    bool present;
    int asker; /* index, or GONE */
} boxes[2 * PEERS_MAX][IDS];

static struct {
    bool present;
    int worker, owner;   /* indices */
    unsigned generation; /* counts its comings and goings */
} sessions[SESSIONS];

/* Of its message's session when a peer was held. */
static unsigned held_generation[2 * PEERS_MAX];

static struct list starved; /* peers whose message met a lack of memory */
static uint64_t random_state;
static long answered; /* requests that were answered, so that the test is known to do something */

static int pick(int below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int)(random_state % (unsigned)below);
}

static bool chance(int one_in)
{
    return pick(one_in) == 0;
}

static struct peer *peer_at(int index)
{
    return index < PEERS_MAX ? &clients[index] : &workers[index - PEERS_MAX];
}

static int name_index(const char *const *names, int count, struct slice name)
{
    int i;

    for (i = 0; i < count; i++) {
        if (slice_equal(text(names[i]), name))
            return i;
    }
    return -1;
}

static int id_index(const struct message *message)
{
    return message->id.type == ID_NONE ? -1 : name_index(id_names, IDS, message->id.text);
}

static int session_index(const struct message *message)
{
    if (message->session_id.data == NULL)
        return -1;
    return name_index(session_names, SESSIONS, message->session_id);
}

static bool is_answer(const struct message *message)
{
    return message_is_response(message) && message->method.data == NULL;
}

static bool asks(const struct message *message)
{
    return message->id.type != ID_NONE && message->method.data != NULL;
}

/* The asker waits for an answer to this id, from whomever. */
static bool in_flight(int asker, int id)
{
    int i;

    for (i = 0; i < 2 * PEERS_MAX; i++) {
        if (boxes[i][id].present && boxes[i][id].asker == asker)
            return true;
    }
    return false;
}

/* --- what a decision means for the model --- */

static void note_session(struct peer *from, const struct message *message, struct peer *to)
{
    int s = session_index(message);

    if (s < 0 || !is_client(from))
        return;
    if (sessions[s].present) {
        QUICK_ASSERT(sessions[s].worker == peer_index(to)); /* 6.1.2 */
        return;
    }
    sessions[s].present = true;
    sessions[s].generation++;
    sessions[s].worker = peer_index(to);
    sessions[s].owner = peer_index(from);
}

static void note_forward(struct peer *from, const struct message *message,
                         const struct route *route)
{
    int id = id_index(message), me = peer_index(from), to = peer_index(route->to);

    if (route->answered != NULL) {
        QUICK_ASSERT(is_answer(message));
        QUICK_ASSERT(boxes[me][id].present);
        QUICK_ASSERT(boxes[me][id].asker == to);
        boxes[me][id].present = false;
        answered++;
        return;
    }
    QUICK_ASSERT((route->recorded != NULL) == asks(message));
    if (asks(message)) {
        QUICK_ASSERT(!boxes[to][id].present); /* its answer could be meant for either */
        QUICK_ASSERT(!in_flight(me, id));
        boxes[to][id].present = true;
        boxes[to][id].asker = me;
    }
    if (!is_client(from))
        QUICK_ASSERT(sessions[session_index(message)].owner == to); /* 6.3.2 */
    else
        note_session(from, message, route->to);
}

static void note_dropped(struct peer *from, const struct message *message,
                         const struct route *route)
{
    int id = id_index(message), me = peer_index(from);

    if (asks(message)) {
        QUICK_ASSERT(route->action == ROUTE_REFUSE);
        if (route->code == JSONRPC_INVALID_REQUEST)
            QUICK_ASSERT(in_flight(me, id));
        else
            QUICK_ASSERT(!is_client(from) || !in_flight(me, id));
    } else if (is_answer(message) && boxes[me][id].present) {
        QUICK_ASSERT(route->action == ROUTE_DISCARD);
        QUICK_ASSERT(boxes[me][id].asker == GONE);
        boxes[me][id].present = false;
    }
}

/* Could not be queued, or recorded: comes again when there is memory. The router may have made the
 * session already. */
static void starve(struct peer *from, const struct message *message, const struct route *route)
{
    if (route->action == ROUTE_FORWARD) {
        router_forward_failed(&router, route);
        if (is_client(from) && message->session_id.data != NULL && route->answered == NULL &&
            sessions_find(&router.sessions, message->session_id) != NULL)
            note_session(from, message, route->to);
    }
    router_hold(&starved, from);
}

static void act(struct peer *from, struct message message)
{
    struct route route;

    if (chance(15))
        allocations_left = pick(3);
    route = offer_message(from, message);
    allocations_left = -1;
    if (route.action == ROUTE_NO_MEMORY || (route.action == ROUTE_FORWARD && chance(20))) {
        starve(from, &message, &route);
    } else if (route.action == ROUTE_FORWARD) {
        note_forward(from, &message, &route);
        router_forwarded(&router, &route);
    } else if (route.action != ROUTE_HOLD) {
        note_dropped(from, &message, &route);
    } else if (session_index(&message) >= 0) {
        held_generation[peer_index(from)] = sessions[session_index(&message)].generation;
    }
}

static void settle_all(void)
{
    struct peer *peer;
    int count = 0;

    while ((peer = router_next_released(&router)) != NULL) {
        act(peer, last_offered[peer_index(peer)]);
        if (++count > RELEASES_MAX)
            ck_abort_msg("peers are released again and again");
    }
}

/* --- nobody is held in vain --- */

static bool takes(int worker, const struct message *message)
{
    const struct peer *peer = peer_at(worker);
    int id = id_index(message);

    if (peer->availability != PEER_HERE || peer->full)
        return false;
    return !asks(message) || !boxes[worker][id].present;
}

static bool client_could_go_on(int me, const struct message *message)
{
    int s = session_index(message), id = id_index(message), i;
    int first = 0, end = WORKERS;

    if (is_answer(message) && boxes[me][id].present)
        return boxes[me][id].asker == GONE || !peer_at(boxes[me][id].asker)->full;
    if (s >= 0 && sessions[s].present)
        return takes(sessions[s].worker, message);
    if (message->pool.data != NULL) {
        first = slice_equal(message->pool, text("a")) ? 0 : POOL_A;
        end = slice_equal(message->pool, text("a")) ? POOL_A : WORKERS;
    }
    for (i = first; i < end; i++) {
        if (takes(PEERS_MAX + i, message))
            return true;
    }
    return false;
}

static bool worker_could_go_on(int me, const struct message *message)
{
    int s = session_index(message), id = id_index(message);

    if (is_answer(message)) {
        return !boxes[me][id].present || boxes[me][id].asker == GONE ||
               !peer_at(boxes[me][id].asker)->full;
    }
    if (s < 0 || !sessions[s].present)
        return true;
    return !peer_at(sessions[s].owner)->full &&
           !(asks(message) && boxes[sessions[s].owner][id].present);
}

static bool is_starved(const struct peer *peer)
{
    const struct list_node *node;

    for (node = starved.head.next; node != &starved.head; node = node->next) {
        if (node == &peer->hold)
            return true;
    }
    return false;
}

static void check_held(int index)
{
    const struct peer *peer = peer_at(index);
    const struct message *message = &last_offered[index];
    int s = session_index(message);

    if (!peer_held(peer) || is_starved(peer))
        return;
    /* Who waits at a session's worker goes on waiting there when the session comes to its end. */
    if (s >= 0 && sessions[s].generation != held_generation[index])
        return;
    if (is_client(peer) ? client_could_go_on(index, message) : worker_could_go_on(index, message))
        ck_abort_msg("peer %d is held and could go on", index);
}

static void check_all_held(void)
{
    int i;

    for (i = 0; i < CLIENTS; i++)
        check_held(i);
    for (i = 0; i < WORKERS; i++)
        check_held(PEERS_MAX + i);
}

/* --- events --- */

static struct message random_message(bool from_client)
{
    struct message message = chance(3) ? notification() : request(id_names[pick(IDS)]);

    if (!from_client || chance(2))
        message = in_session(message, session_names[pick(SESSIONS)]);
    if (from_client && chance(3))
        message = in_pool(message, pool_names[pick(2)]);
    return message;
}

/* Answers something that it was asked, or, at times, something that it was not. */
static void answer(int index)
{
    int id = pick(IDS), tries;

    for (tries = 0; tries < IDS && !boxes[index][id].present; tries++)
        id = (id + 1) % IDS;
    if (boxes[index][id].present || chance(10))
        act(peer_at(index), chance(2) ? response(id_names[id]) : error_response(id_names[id]));
}

static void client_event(int index)
{
    struct peer *peer = &clients[index];

    if (peer_held(peer) || peer->input_ended)
        return;
    if (chance(3))
        answer(index);
    else
        act(peer, random_message(true));
}

static void worker_event(int index)
{
    struct peer *peer = &workers[index];

    if (peer_held(peer))
        return;
    if (chance(4))
        act(peer, random_message(false));
    else
        answer(PEERS_MAX + index);
}

/* Whoever asked the one that is going was told exactly once per request. */
static void check_told(int index)
{
    int id, i, count = 0;

    for (id = 0; id < IDS; id++) {
        int times = 0;

        if (!boxes[index][id].present || boxes[index][id].asker == GONE)
            continue;
        for (i = 0; i < told_count; i++)
            times += told[i].asker == peer_at(boxes[index][id].asker) &&
                     strcmp(told[i].id, id_names[id]) == 0;
        ck_assert_int_eq(times, 1);
        count++;
    }
    ck_assert_int_eq(told_count, count);
    for (id = 0; id < IDS; id++)
        boxes[index][id].present = false;
    told_count = 0;
}

/* What the peer asked is answered to nobody, and its sessions are no more. */
static void forget_peer(int index)
{
    int i, id;

    check_told(index);
    for (i = 0; i < 2 * PEERS_MAX; i++) {
        for (id = 0; id < IDS; id++) {
            if (boxes[i][id].asker == index)
                boxes[i][id].asker = GONE;
        }
    }
    for (i = 0; i < SESSIONS; i++) {
        if (!sessions[i].present || (sessions[i].worker != index && sessions[i].owner != index))
            continue;
        sessions[i].present = false;
        sessions[i].generation++;
    }
}

static void client_goes(int index)
{
    client_gone(&clients[index]);
    forget_peer(index);
    memset(&clients[index], 0, sizeof clients[index]);
    router_add_client(&router, &clients[index]); /* another one in its place */
}

static void worker_goes(int index)
{
    worker_gone(&workers[index]);
    forget_peer(PEERS_MAX + index);
}

static void end_input(int index)
{
    if (peer_held(&clients[index]) || clients[index].input_ended)
        return;
    client_input_ended(&clients[index]);
    check_told(index);
}

static void expire(int index)
{
    struct peer *peer = peer_at(index);

    /* The owner's timer runs only while an id is waited for. */
    if (peer_held(peer) && !is_starved(peer) && asks(&last_offered[index]))
        router_hold_expired(&router, peer);
}

static void end_starvation(void)
{
    struct list_node *node, *following;

    list_each(&starved, node, following)
        router_release(&router, list_entry(node, struct peer, hold));
}

static void rare_event(void)
{
    int client = pick(CLIENTS), worker = pick(WORKERS);

    switch (pick(8)) {
    case 0:
        client_goes(client);
        break;
    case 1:
        worker_goes(worker);
        break;
    case 2:
        worker_is(&workers[worker], PEER_AWAY);
        break;
    case 3:
        end_input(client);
        break;
    case 4:
    case 5:
        set_full(&workers[worker], true);
        break;
    default:
        set_full(&clients[client], true);
        break;
    }
}

static void event(void)
{
    int kind = pick(100);

    if (kind < 35)
        client_event(pick(CLIENTS));
    else if (kind < 70)
        worker_event(pick(WORKERS));
    else if (kind < 76)
        worker_is(&workers[pick(WORKERS)], PEER_HERE);
    else if (kind < 80)
        set_full(&workers[pick(WORKERS)], false);
    else if (kind < 85)
        set_full(&clients[pick(CLIENTS)], false);
    else if (kind < 89)
        end_starvation();
    else if (kind < 97)
        expire(chance(3) ? PEERS_MAX + pick(WORKERS) : pick(CLIENTS));
    else
        rare_event();
}

/* Everybody takes messages and answers, and holds end in time: then all that was asked is answered
 * and nobody is held. (A client and a worker may each wait for an id that the other one's next
 * message would free; that is what the time limit is for.) */
static void finish(void)
{
    int round, i, id;

    for (round = 0; round < 200; round++) {
        if (round % 10 == 9)
            expire(round / 10 < CLIENTS ? round / 10 : PEERS_MAX + (round / 10) % WORKERS);
        end_starvation();
        for (i = 0; i < CLIENTS; i++)
            set_full(&clients[i], false);
        for (i = 0; i < WORKERS; i++) {
            set_full(&workers[i], false);
            worker_is(&workers[i], PEER_HERE);
        }
        settle_all();
        for (i = 0; i < 2 * PEERS_MAX; i++) {
            for (id = 0; id < IDS; id++) {
                if (boxes[i][id].present && !peer_held(peer_at(i)))
                    act(peer_at(i), response(id_names[id]));
            }
        }
    }
    for (i = 0; i < CLIENTS; i++)
        ck_assert(!peer_held(&clients[i]));
    for (i = 0; i < WORKERS; i++)
        ck_assert(!peer_held(&workers[i]));
    ck_assert_uint_eq(router.from_clients.by_answerer.count, 0);
    ck_assert_uint_eq(router.from_workers.by_answerer.count, 0);
    ck_assert_uint_eq(router.from_clients.by_asker.count, 0);
    ck_assert_uint_eq(router.from_workers.by_asker.count, 0);
    ck_assert_uint_eq(router.from_clients.abandoned_count, 0);
    ck_assert_uint_eq(router.from_workers.abandoned_count, 0);
    ck_assert(list_empty(&router.roaming) && list_empty(&router.waiting_for_worker));
}

START_TEST(nothing_is_mixed_up_and_nobody_is_stuck)
{
    int i;

    random_state = UINT64_C(0x9e3779b97f4a7c15) + (unsigned)_i;
    list_init(&starved);
    memset(boxes, 0, sizeof boxes);
    memset(sessions, 0, sizeof sessions);
    answered = 0;
    limit_to(SESSIONS - 1, 20);
    for (i = 0; i < CLIENTS; i++)
        add_client();
    add_pool("a", POOL_A);
    add_pool("b", WORKERS - POOL_A);
    for (i = 0; i < STEPS; i++) {
        event();
        settle_all();
        check_all_held();
    }
    finish();
    ck_assert_int_gt(answered, STEPS / 30);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("router_random");
    TCase *tcase = tcase_create("router_random");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, nothing_is_mixed_up_and_nobody_is_stuck, 0, 8);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
