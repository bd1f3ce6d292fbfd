/* The router against a plain model of the specification (router_model.h). The input is a row of
 * things that happen: messages of all kinds with few ids and sessions, so that they collide; peers
 * that come, fall silent and vanish; queues that fill up and drain; queueing that fails.
 *
 * Each decision must be the model's. Besides: every request ends exactly once; who is held has a
 * reason, and is released when that is gone; releasing comes to an end; at the end all tables are
 * empty. */
#include "build_config.h"

#include "router/router.h"

#include "common.h"
#include "router_model.h"

#define RELEASES_MAX 200 /* per step; each actor gets a few at most */

struct actor {
    struct peer peer;
    bool pending; /* its message could not go anywhere yet */
    bool starved; /* for want of memory */
    struct model_message message;
    struct prediction hold; /* why */
    bool waits_in_vain;     /* for somebody who is gone */
};

struct run {
    struct tape tape;
    struct limits limits;
    struct router router;
    struct model model;
    struct actor actors[MODEL_ACTORS];
    struct list starved;
    struct model_request told[MODEL_REQUESTS_MAX]; /* who must still be told */
    size_t told_count;
    size_t open; /* requests offered and not ended */
    bool traces;
};

static const struct message_id ids[MODEL_IDS] = {
    {ID_NUMBER, {"0", 1}},
    {ID_NUMBER, {"1", 1}},
    {ID_STRING, {"1", 1}},
    {ID_STRING, {"", 0}},
    {ID_STRING, {"a string that is longer than what is kept inside of a request", 60}},
};

static const char *const sessions[MODEL_SESSIONS] = {"a", "b", "a longer one", ""};
static const char *const pools[MODEL_POOLS + 1] = {"p", "q", "none"};

static int actor_of(const struct run *run, const struct peer *peer)
{
    int i;

    for (i = 0; i < MODEL_ACTORS; i++) {
        if (peer == &run->actors[i].peer)
            return i;
    }
    EXPECT(false, "a peer that nobody knows");
    return NOBODY;
}

static int id_of(struct message_id id)
{
    int i = 0;

    while (i < MODEL_IDS && !message_id_equal(ids[i], id))
        i++;
    EXPECT(i < MODEL_IDS, "an id that nobody sent");
    return i;
}

/* The ids that the router keeps free for peers: those that were released, and `offering`, who is
 * just being offered. */
static void read_kept(struct run *run, int offering)
{
    int i;

    for (i = 0; i < MODEL_ACTORS; i++) {
        const struct actor *actor = &run->actors[i];
        const struct request *kept = actor->peer.reserved;
        struct model_actor *known = &run->model.actors[i];

        known->kept_at = known->kept_id = NOBODY;
        if (kept == NULL)
            continue;
        known->kept_at = actor_of(run, kept->answerer);
        known->kept_id = id_of(kept->answerer_id);
        EXPECT(kept->state == REQUEST_RESERVED && kept->asker == &actor->peer, "%d", i);
        EXPECT(actor->pending && actor->message.id == known->kept_id &&
                   (i == offering || peer_held(&actor->peer)),
               "an id is kept for %d, who does not wait for it", i);
        EXPECT(model_find_to_answer(&run->model, known->kept_at, known->kept_id) == NOBODY,
               "an id is kept for %d, and in flight", i);
    }
}

static struct slice text_of(const char *text)
{
    return slice_of(text, strlen(text));
}

/* The message as the router gets it: its texts are gone after the call. */
static struct message build(const struct model_message *from, char **id_text)
{
    struct message message = {.bytes = {"{}\n", 3}};

    *id_text = NULL;
    if (from->id != NOBODY) {
        message.id = ids[from->id];
        *id_text = fuzz_copy(message.id.text.data, message.id.text.len);
        message.id.text.data = *id_text;
    }
    if (from->session != NOBODY)
        message.session_id = text_of(sessions[from->session]);
    if (from->pool != NOBODY)
        message.pool = text_of(pools[from->pool]);
    if (from->has_method)
        message.method = text_of("m");
    message.has_result = from->has_result;
    return message;
}

static void trace_offer(const struct run *run, int from, const struct route *route)
{
    static const char *const actions[] = {"forward", "hold", "refuse", "discard", "no memory"};
    const struct model_message *message = &run->actors[from].message;

    if (run->traces)
        fprintf(stderr, "%d: id %d session %d pool %d%s%s: %s %d\n", from, message->id,
                message->session, message->pool, message->has_method ? " method" : "",
                message->has_result ? " result" : "", actions[route->action],
                route->action == ROUTE_FORWARD ? actor_of(run, route->to) : route->code);
}

static void compare(const struct run *run, const struct prediction *expected,
                    const struct route *route)
{
    EXPECT(route->action == expected->action, "action %d, the model says %d", (int)route->action,
           (int)expected->action);
    if (route->action == ROUTE_FORWARD) {
        EXPECT(actor_of(run, route->to) == expected->to, "to %d, the model says %d",
               actor_of(run, route->to), expected->to);
        EXPECT((route->recorded != NULL) == expected->asks, "recorded or not");
        EXPECT((route->answered != NULL) == (expected->answered != NOBODY), "answered or not");
    }
    if (route->action == ROUTE_REFUSE)
        EXPECT(route->code == expected->code, "code %d, the model says %d", route->code,
               expected->code);
    if (route->action == ROUTE_REFUSE || route->action == ROUTE_DISCARD)
        EXPECT(strlen(route->text) > 8 && strchr(route->text, '\n') == NULL, "no reason told");
    if (route->action == ROUTE_HOLD)
        EXPECT(route->waits_for_id == expected->waits_for_id, "held for an id or not");
}

/* A request counts as open until it has ended in one of the ways. */
static bool is_request(int from, const struct model_message *message)
{
    return message->id != NOBODY &&
           (model_is_worker(from) ? message->has_method && !message->has_result
                                  : message->has_method || !message->has_result);
}

/* Offers the actor's message, for the first time or again. */
static void offer(struct run *run, int from, bool fail)
{
    struct actor *actor = &run->actors[from];
    struct prediction expected;
    struct message message;
    struct route route;
    char *id_text;

    read_kept(run, from);
    expected = model_predict(&run->model, from, &actor->message);
    message = build(&actor->message, &id_text);
    if (model_is_worker(from))
        router_from_worker(&run->router, &actor->peer, &message, &route);
    else
        router_from_client(&run->router, &actor->peer, &message, &route);
    free(id_text);
    trace_offer(run, from, &route);
    compare(run, &expected, &route);
    EXPECT(actor->peer.reserved == NULL, "an id is still kept for %d", from);
    actor->pending = route.action == ROUTE_HOLD || (route.action == ROUTE_FORWARD && fail);
    actor->hold = expected;
    actor->waits_in_vain = false;
    if (route.action != ROUTE_HOLD)
        run->model.actors[from].expired = false;
    if (route.action == ROUTE_FORWARD) {
        run->open -= !fail && expected.answered != NOBODY;
        model_forwarded(&run->model, from, &actor->message, &expected, !fail);
    } else if (expected.answered != NOBODY) {
        model_end_request(&run->model, expected.answered); /* the asker is gone: not counted */
    }
    run->open -= route.action == ROUTE_REFUSE && is_request(from, &actor->message);
    if (route.action == ROUTE_FORWARD && fail) {
        router_forward_failed(&run->router, &route);
        router_hold(&run->starved, &actor->peer);
        actor->starved = true;
    } else if (route.action == ROUTE_FORWARD) {
        router_forwarded(&run->router, &route);
    }
}

static void send_message(struct run *run, int from, struct model_message message, bool fail)
{
    struct actor *actor = &run->actors[from];

    if (!run->model.actors[from].here || actor->pending ||
        (!model_is_worker(from) && actor->peer.input_ended))
        return;
    actor->message = message;
    run->open += is_request(from, &message);
    offer(run, from, fail);
}

/* What the tables hold, by count. */
static void check_counts(const struct run *run)
{
    const struct router *router = &run->router;
    const struct model *model = &run->model;
    size_t pending = 0, kept[2] = {0, 0};
    int i;

    for (i = 0; i < MODEL_ACTORS; i++) {
        const struct actor *actor = &run->actors[i];

        pending += actor->pending && is_request(i, &actor->message);
        kept[model_is_worker(i)] += actor->peer.reserved != NULL;
    }
    EXPECT(router->sessions.table.count == model_count_sessions(model), "sessions");
    EXPECT(router->from_clients.active_count == model_count_requests(model, true, false),
           "of clients");
    EXPECT(router->from_workers.active_count == model_count_requests(model, false, false),
           "of workers");
    EXPECT(router->from_clients.abandoned_count == model_count_requests(model, true, true),
           "of clients that are gone");
    EXPECT(router->from_workers.abandoned_count == model_count_requests(model, false, true),
           "of workers that are gone");
    EXPECT(router->from_clients.by_answerer.count ==
               router->from_clients.active_count + router->from_clients.abandoned_count + kept[0],
           "entries");
    EXPECT(router->from_workers.by_answerer.count ==
               router->from_workers.active_count + router->from_workers.abandoned_count + kept[1],
           "entries");
    EXPECT(run->open == pending + router->from_clients.active_count +
                            router->from_workers.active_count,
           "%zu requests are open", run->open);
}

/* True when the actor could go on, and what it waited for is so no more. (A session that begins or
 * ends may show it another way; it is released when what it waits for comes, all the same.) */
static bool is_forgotten(const struct run *run, int who)
{
    const struct actor *actor = &run->actors[who];

    return actor->pending && !actor->starved &&
           model_predict(&run->model, who, &actor->message).action == ROUTE_FORWARD &&
           (actor->waits_in_vain ||
            !model_still_waits(&run->model, who, &actor->message, &actor->hold));
}

/* Released peers try again, until none is left; who is held then has to be. */
static void drain(struct run *run)
{
    struct peer *peer;
    int releases = 0, i;

    while ((peer = router_next_released(&run->router)) != NULL) {
        int who = actor_of(run, peer);

        EXPECT(++releases <= RELEASES_MAX, "releasing does not come to an end");
        EXPECT(run->actors[who].pending, "%d is released, but has nothing to offer", who);
        run->actors[who].starved = false;
        offer(run, who, false);
    }
    read_kept(run, NOBODY);
    for (i = 0; i < MODEL_ACTORS; i++) {
        const struct actor *actor = &run->actors[i];

        EXPECT(peer_held(&actor->peer) == actor->pending, "%d is held or not", i);
        EXPECT(!is_forgotten(run, i), "%d is held, though its message could go", i);
    }
}

/* --- what happens to peers --- */

static void unanswered(void *user_data, struct peer *asker, struct message_id id)
{
    struct run *run = user_data;
    int who = actor_of(run, asker), what = id_of(id);
    size_t i;

    for (i = 0; i < run->told_count; i++) {
        if (run->told[i].asker == who && run->told[i].id == what) {
            run->told[i] = run->told[--run->told_count];
            run->open--;
            return;
        }
    }
    EXPECT(false, "%d is told of id %d", who, what);
}

/* Requests of an actor that vanishes end with it. */
static void forget_asked(struct run *run, int who)
{
    struct actor *actor = &run->actors[who];
    size_t i;

    for (i = 0; i < MODEL_ACTORS; i++)
        run->actors[i].waits_in_vain |= run->actors[i].hold.waits_at == who;
    for (i = 0; i < run->model.request_count; i++)
        run->open -= run->model.requests[i].asker == who;
    run->open -= actor->pending && is_request(who, &actor->message);
    actor->pending = actor->starved = false;
    run->model.actors[who].full = run->model.actors[who].expired = false;
    model_stop_asking(&run->model, who);
}

static void connect_client(struct run *run, int who)
{
    static const struct actor unknown;
    static const struct model_actor fresh;

    if (run->model.actors[who].here)
        return;
    run->actors[who] = unknown;
    run->model.actors[who] = fresh;
    run->model.actors[who].here = true;
    run->model.actors[who].availability = PEER_HERE;
    router_add_client(&run->router, &run->actors[who].peer);
}

static void lose_client(struct run *run, int who)
{
    if (!run->model.actors[who].here)
        return;
    forget_asked(run, who);
    run->told_count = model_stop_answering(&run->model, who, run->told);
    run->model.actors[who].here = false;
    router_client_gone(&run->router, &run->actors[who].peer, unanswered, run);
    EXPECT(run->told_count == 0, "%zu workers are not told", run->told_count);
}

static void half_close(struct run *run, int who)
{
    if (!run->model.actors[who].here || run->actors[who].pending)
        return;
    run->told_count = model_stop_answering(&run->model, who, run->told);
    run->model.actors[who].input_ended = true;
    router_client_input_ended(&run->router, &run->actors[who].peer, unanswered, run);
    EXPECT(run->told_count == 0, "%zu workers are not told", run->told_count);
}

static void lose_worker(struct run *run, int who)
{
    struct model_actor *known = &run->model.actors[who];

    if (!known->here)
        return;
    forget_asked(run, who);
    run->told_count = model_stop_answering(&run->model, who, run->told);
    known->here = false;
    known->availability = PEER_AWAY;
    router_worker_gone(&run->router, &run->actors[who].peer, unanswered, run);
    EXPECT(run->told_count == 0, "%zu clients are not told", run->told_count);
}

static void set_availability(struct run *run, int who, enum peer_availability availability)
{
    struct model_actor *known = &run->model.actors[who];

    if (known->availability == PEER_FAILED || (availability == PEER_FAILED && known->here))
        return;
    known->availability = availability;
    if (availability == PEER_HERE)
        known->here = true;
    router_worker_available(&run->router, &run->actors[who].peer, availability);
}

static void set_full(struct run *run, int who, bool full)
{
    struct model_actor *known = &run->model.actors[who];

    if (!known->here || known->full == full)
        return;
    known->full = full;
    router_set_full(&run->router, &run->actors[who].peer, full);
}

static void expire_hold(struct run *run, int who)
{
    struct actor *actor = &run->actors[who];

    if (!actor->pending || actor->starved || !actor->hold.waits_for_id)
        return;
    run->model.actors[who].expired = true;
    router_hold_expired(&run->router, &actor->peer);
}

static void release_starved(struct run *run)
{
    struct list_node *node, *following;

    list_each(&run->starved, node, following)
        router_release(&run->router, list_entry(node, struct peer, hold));
}

/* --- the row of things --- */

static struct model_message choose_message(struct tape *tape)
{
    unsigned what = tape_byte(tape), where = tape_byte(tape);
    struct model_message message = {(int)(what & 7), (int)(where & 7), (int)(where >> 3 & 7),
                                    (what & 8) == 0, (what & 16) != 0};

    if (message.id >= MODEL_IDS)
        message.id = NOBODY;
    if (message.session >= MODEL_SESSIONS)
        message.session = NOBODY;
    if (message.pool > MODEL_POOLS)
        message.pool = NOBODY;
    return message;
}

/* Answers one of the requests that wait for it, abandoned ones too. */
static void answer(struct run *run, int who, unsigned which)
{
    struct model_message message = {NOBODY, NOBODY, NOBODY, false, true};
    size_t i;

    for (i = 0; i < run->model.request_count; i++) {
        if (run->model.requests[i].answerer == who) {
            message.id = run->model.requests[i].id;
            if (which-- == 0)
                break;
        }
    }
    if (message.id != NOBODY)
        send_message(run, who, message, false);
}

static void step(struct run *run)
{
    unsigned what = tape_byte(&run->tape), which = tape_byte(&run->tape);
    int worker = (int)(which % MODEL_WORKERS);
    int client = MODEL_WORKERS + (int)(which % MODEL_CLIENTS);
    int anybody = (int)(which % MODEL_ACTORS);
    bool fail = (what & 0x20) != 0;

    if (run->traces)
        fprintf(stderr, "-- %u %u%s\n", what & 15, which, what & 0x40 ? " (not drained)" : "");
    switch (what & 15) {
    case 0:
    case 1:
    case 2:
        connect_client(run, client);
        send_message(run, client, choose_message(&run->tape), fail);
        break;
    case 3:
        send_message(run, worker, choose_message(&run->tape), fail);
        break;
    case 4:
    case 5:
        answer(run, worker, which / MODEL_WORKERS);
        break;
    case 6:
        answer(run, client, which / MODEL_CLIENTS);
        break;
    case 7:
        lose_client(run, client);
        break;
    case 8:
        half_close(run, client);
        break;
    case 9:
        lose_worker(run, worker);
        break;
    case 10:
        set_availability(run, worker, (enum peer_availability)(which / MODEL_WORKERS % 3));
        break;
    case 11:
        set_availability(run, worker, PEER_HERE);
        break;
    case 12:
        set_full(run, anybody, true);
        break;
    case 13:
        set_full(run, anybody, false);
        break;
    case 14:
        expire_hold(run, anybody);
        break;
    default:
        release_starved(run);
        break;
    }
    if ((what & 0x40) == 0)
        drain(run);
    check_counts(run);
}

/* --- the end --- */

static bool anybody_pending(const struct run *run)
{
    bool pending = false;
    int i;

    for (i = 0; i < MODEL_ACTORS; i++)
        pending = pending || run->actors[i].pending;
    return pending;
}

/* Everybody does what is asked, and time passes: then nobody is held, nothing is in flight. */
static void settle(struct run *run)
{
    int i, round;

    release_starved(run);
    for (i = 0; i < MODEL_ACTORS; i++) {
        set_full(run, i, false);
        if (model_is_worker(i))
            set_availability(run, i, PEER_HERE);
    }
    drain(run);
    for (round = 0; round < 100; round++) {
        if (run->model.request_count == 0 && !anybody_pending(run))
            break;
        for (i = 0; i < MODEL_ACTORS; i++) {
            answer(run, i, 0);
            drain(run);
        }
        /* Two who are held for an id that the other would free: only time helps. */
        for (i = 0; i < MODEL_ACTORS && round % 10 == 9; i++) {
            expire_hold(run, i);
            drain(run);
        }
        check_counts(run);
    }
    EXPECT(run->model.request_count == 0, "%zu requests stay unanswered",
           run->model.request_count);
    EXPECT(!anybody_pending(run), "somebody is held for ever");
    EXPECT(run->open == 0, "%zu requests are open", run->open);
}

static void part(struct run *run)
{
    const struct router *router = &run->router;
    int i;

    for (i = 0; i < MODEL_ACTORS; i++) {
        if (model_is_worker(i))
            lose_worker(run, i);
        else
            lose_client(run, i);
    }
    drain(run);
    check_counts(run);
    EXPECT(run->open == 0, "%zu requests are open", run->open);
    EXPECT(router->sessions.table.count == 0, "sessions are left");
    EXPECT(router->from_clients.by_answerer.count == 0 &&
               router->from_clients.by_asker.count == 0 &&
               router->from_workers.by_answerer.count == 0 &&
               router->from_workers.by_asker.count == 0, "requests are left");
    EXPECT(list_empty(&router->waiting_for_worker) && list_empty(&router->roaming) &&
               list_empty(&router->released) && list_empty(&run->starved), "held peers are left");
}

static void begin(struct run *run)
{
    static const struct limits defaults = LIMITS_DEFAULT;
    static const struct siphash_key key = {1, 2};
    unsigned limits = tape_byte(&run->tape);
    int i;

    run->limits = defaults;
    run->limits.max_pending_requests = 1 + limits % MODEL_LIMIT_MAX;
    run->limits.max_sessions = 1 + limits / MODEL_LIMIT_MAX % MODEL_SESSIONS;
    run->traces = fuzz_traces();
    list_init(&run->starved);
    model_init(&run->model, run->limits.max_pending_requests, run->limits.max_sessions);
    router_init(&run->router, &run->limits, &key);
    for (i = 0; i < MODEL_POOLS; i++)
        EXPECT(router_add_pool(&run->router, text_of(pools[i])) == i, "a pool");
    for (i = 0; i < MODEL_WORKERS; i++) {
        EXPECT(router_add_worker(&run->router, &run->actors[i].peer, i == 2) == 0, "a worker");
        run->model.actors[i].here = true; /* it starts */
        if ((limits & 0x80) == 0)
            set_availability(run, i, PEER_HERE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *run = calloc(1, sizeof *run);

    if (run == NULL)
        abort();
    run->tape.next = data;
    run->tape.end = data + size;
    begin(run);
    while (!tape_over(&run->tape))
        step(run);
    settle(run);
    part(run);
    router_free(&run->router);
    free(run);
    return 0;
}
