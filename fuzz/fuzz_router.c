/* The router against a plain model of the specification (router_model.h). The input is a row of
 * events: messages of all kinds with few ids and sessions, so that they collide; peers that come,
 * close their input and vanish; queues that fill up and drain; deliveries that fail.
 *
 * Each decision must be the model's. Besides: every request ends exactly once; a held peer has a
 * reason, and is released when that is gone; releasing ends; in the end all tables are empty. */
#include "build_config.h"

#include "router/router.h"

#include "common.h"
#include "router/departure.h"
#include "router/to_client.h"
#include "router/to_worker.h"
#include "router/waiting.h"
#include "router_model.h"

#define RELEASES_MAX 200 /* per step; each actor gets a few at most */

struct actor {
    struct peer peer;
    bool pending; /* its message could not go anywhere yet */
    bool starved; /* for want of memory */
    struct model_message message;
    struct prediction hold; /* the reason */
    bool waits_in_vain;     /* for a peer that is gone */
};

struct run {
    struct tape tape;
    struct limits limits;
    struct router router;
    struct group pools[MODEL_POOLS];
    struct model model;
    struct actor actors[MODEL_ACTORS];
    struct list starved;
    struct model_request reported[MODEL_REQUESTS_MAX]; /* still to be reported */
    size_t reported_count;
    size_t open; /* requests sent and not ended */
    bool traces;
};

static const struct message_id ids[MODEL_IDS] = {
    /* MODEL_NUMBERS of them are numbers. */
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
    for (int i = 0; i < MODEL_ACTORS; i++) {
        if (peer == &run->actors[i].peer)
            return i;
    }
    EXPECT(false, "an unknown peer");
    return NOBODY;
}

static int id_of(struct message_id id)
{
    int i = 0;

    while (i < MODEL_IDS && !message_id_equal(ids[i], id))
        i++;
    EXPECT(i < MODEL_IDS, "an id that was not sent");
    return i;
}

/* The ids that the router keeps free for released peers, and for `deciding`, whose message is
 * decided about next. */
static void read_kept(struct run *run, int deciding)
{
    for (int i = 0; i < MODEL_ACTORS; i++) {
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
                   (i == deciding || peer_held(&actor->peer)),
               "an id is kept for %d, which does not wait for it", i);
        EXPECT(model_find_to_answer(&run->model, known->kept_at, known->kept_id) == NOBODY,
               "an id is kept for %d, and in flight", i);
    }
}

static struct slice text_of(const char *text)
{
    return slice_of(text, strlen(text));
}

/* The message for the router, whose texts live until the decision is made. */
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

static void trace_decision(const struct run *run, int from, const struct decision *decision)
{
    static const char *const actions[] = {"forward", "hold", "refuse", "discard", "no memory"};
    const struct model_message *message = &run->actors[from].message;

    if (run->traces)
        fprintf(stderr, "%d: id %d session %d pool %d%s%s: %s %d\n", from, message->id,
                message->session, message->pool, message->has_method ? " method" : "",
                message->has_result ? " result" : "", actions[decision->action],
                decision->action == ACTION_FORWARD ? actor_of(run, decision->to) : decision->code);
}

static void compare(const struct run *run, const struct prediction *expected,
                    const struct decision *decision)
{
    EXPECT(decision->action == expected->action, "action %d, the model says %d",
           (int)decision->action, (int)expected->action);
    if (decision->action == ACTION_FORWARD) {
        EXPECT(actor_of(run, decision->to) == expected->to, "to %d, the model says %d",
               actor_of(run, decision->to), expected->to);
        EXPECT((decision->recorded != NULL) == expected->asks, "recorded or not");
        EXPECT((decision->answered != NULL) == (expected->answered != NOBODY), "answered or not");
    }
    if (decision->action == ACTION_REFUSE)
        EXPECT(decision->code == expected->code, "code %d, the model says %d", decision->code,
               expected->code);
    if (decision->action == ACTION_REFUSE || decision->action == ACTION_DISCARD)
        EXPECT(strlen(decision->text) > 8 && strchr(decision->text, '\n') == NULL,
               "no reason given");
    if (decision->action == ACTION_HOLD)
        EXPECT((decision->hold_ms > 0) == expected->waits_for_id, "held for an id or not");
}

/* A request is open until it has ended in one of the ways. */
static bool is_request(int from, const struct model_message *message)
{
    return message->id != NOBODY &&
           (model_is_worker(from) ? message->has_method && !message->has_result
                                  : message->has_method || !message->has_result);
}

/* Decides about the actor's message, for the first time or again. */
static void decide(struct run *run, int from, bool fail)
{
    struct actor *actor = &run->actors[from];
    struct prediction expected;
    struct message message;
    struct decision decision;
    char *id_text;

    read_kept(run, from);
    expected = model_predict(&run->model, from, &actor->message);
    message = build(&actor->message, &id_text);
    decision_begin(&decision, &run->router, &actor->peer, &message);
    if (model_is_worker(from))
        to_client(&decision);
    else
        to_worker(&decision);
    free(id_text);
    trace_decision(run, from, &decision);
    compare(run, &expected, &decision);
    EXPECT(actor->peer.reserved == NULL, "an id is still kept for %d", from);
    actor->pending = decision.action == ACTION_HOLD || (decision.action == ACTION_FORWARD && fail);
    actor->hold = expected;
    actor->waits_in_vain = false;
    if (decision.action != ACTION_HOLD)
        run->model.actors[from].expired = false;
    if (decision.action == ACTION_FORWARD) {
        run->open -= !fail && expected.answered != NOBODY;
        model_forwarded(&run->model, from, &actor->message, &expected, !fail);
    } else if (expected.took_turn != NOBODY) {
        model_took_turn(&run->model, &expected);
    } else if (expected.answered != NOBODY) {
        model_end_request(&run->model, expected.answered); /* the asker is gone: not counted */
    }
    run->open -= decision.action == ACTION_REFUSE && is_request(from, &actor->message);
    if (decision.action == ACTION_FORWARD && fail) {
        decision_failed(&decision);
        waiting_hold(&run->starved, &actor->peer);
        actor->starved = true;
    } else if (decision.action == ACTION_FORWARD) {
        decision_delivered(&decision);
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
    decide(run, from, fail);
}

/* The counts of the tables. */
static void check_counts(const struct run *run)
{
    const struct router *router = &run->router;
    const struct model *model = &run->model;
    size_t pending = 0, kept[2] = {0, 0};

    for (int i = 0; i < MODEL_ACTORS; i++) {
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
    EXPECT(run->open ==
               pending + router->from_clients.active_count + router->from_workers.active_count,
           "%zu requests are open", run->open);
}

/* True when the message could go and the reason of the hold is gone. (A session that begins or ends
 * may open another way; the actor is released when the reason is gone all the same.) */
static bool is_forgotten(const struct run *run, int number)
{
    const struct actor *actor = &run->actors[number];

    return actor->pending && !actor->starved &&
           model_predict(&run->model, number, &actor->message).action == ACTION_FORWARD &&
           (actor->waits_in_vain ||
            !model_still_waits(&run->model, number, &actor->message, &actor->hold));
}

/* Decides again about released peers. A peer that is held then must have a reason. */
static void drain(struct run *run)
{
    struct peer *peer;
    int releases = 0, i;

    while ((peer = waiting_next_released(&run->router)) != NULL) {
        int number = actor_of(run, peer);

        EXPECT(++releases <= RELEASES_MAX, "releasing does not come to an end");
        EXPECT(run->actors[number].pending, "%d is released without a message", number);
        run->actors[number].starved = false;
        decide(run, number, false);
    }
    read_kept(run, NOBODY);
    for (i = 0; i < MODEL_ACTORS; i++) {
        const struct actor *actor = &run->actors[i];

        EXPECT(peer_held(&actor->peer) == actor->pending, "%d is held or not", i);
        EXPECT(!is_forgotten(run, i), "%d is held, though its message could go", i);
    }
}

/* --- events of peers --- */

static void unanswered(void *user_data, const struct request *request)
{
    struct run *run = user_data;
    int number = actor_of(run, request->asker), sent = id_of(request->asker_id);

    for (size_t i = 0; i < run->reported_count; i++) {
        if (run->reported[i].asker == number && run->reported[i].id == sent) {
            run->reported[i] = run->reported[--run->reported_count];
            run->open--;
            return;
        }
    }
    EXPECT(false, "id %d of %d is reported", sent, number);
}

/* Requests of an actor that vanishes end with it. */
static void forget_asked(struct run *run, int number)
{
    struct actor *actor = &run->actors[number];

    for (size_t i = 0; i < MODEL_ACTORS; i++)
        run->actors[i].waits_in_vain |= run->actors[i].hold.waits_at == number;
    for (size_t i = 0; i < run->model.request_count; i++)
        run->open -= run->model.requests[i].asker == number;
    run->open -= actor->pending && is_request(number, &actor->message);
    actor->pending = actor->starved = false;
    run->model.actors[number].full = run->model.actors[number].expired = false;
    model_stop_asking(&run->model, number);
}

static void connect_client(struct run *run, int number)
{
    static const struct actor unknown;
    static const struct model_actor fresh;

    if (run->model.actors[number].here)
        return;
    run->actors[number] = unknown;
    run->model.actors[number] = fresh;
    run->model.actors[number].here = true;
    run->model.actors[number].availability = PEER_READY;
    router_add_client(&run->router, &run->actors[number].peer);
    router_admit_client(&run->router, &run->actors[number].peer);
}

static void lose_client(struct run *run, int number)
{
    if (!run->model.actors[number].here)
        return;
    forget_asked(run, number);
    run->reported_count = model_stop_answering(&run->model, number, run->reported);
    run->model.actors[number].here = false;
    departure_client(&run->router, &run->actors[number].peer, unanswered, run);
    EXPECT(run->reported_count == 0, "%zu requests of workers are not reported",
           run->reported_count);
}

static void half_close(struct run *run, int number)
{
    if (!run->model.actors[number].here || run->actors[number].pending)
        return;
    run->reported_count = model_stop_answering(&run->model, number, run->reported);
    run->model.actors[number].input_ended = true;
    departure_client_input(&run->router, &run->actors[number].peer, unanswered, run);
    EXPECT(run->reported_count == 0, "%zu requests of workers are not reported",
           run->reported_count);
}

static void lose_worker(struct run *run, int number)
{
    struct model_actor *known = &run->model.actors[number];

    if (!known->here)
        return;
    forget_asked(run, number);
    run->reported_count = model_stop_answering(&run->model, number, run->reported);
    known->here = false;
    known->availability = PEER_ABSENT;
    departure_worker(&run->router, &run->actors[number].peer, unanswered, run);
    EXPECT(run->reported_count == 0, "%zu requests of clients are not reported",
           run->reported_count);
}

static const enum peer_availability availabilities[] = {PEER_ABSENT, PEER_READY, PEER_FAILED};

static void set_availability(struct run *run, int number, enum peer_availability availability)
{
    struct model_actor *known = &run->model.actors[number];

    if (known->availability == PEER_FAILED || (availability == PEER_FAILED && known->here))
        return;
    known->availability = availability;
    if (availability == PEER_READY)
        known->here = true;
    waiting_worker_available(&run->router, &run->actors[number].peer, availability);
}

static void set_full(struct run *run, int number, bool full)
{
    struct model_actor *known = &run->model.actors[number];

    if (!known->here || known->full == full)
        return;
    known->full = full;
    waiting_set_full(&run->router, &run->actors[number].peer, full);
}

static void expire_hold(struct run *run, int number)
{
    struct actor *actor = &run->actors[number];

    if (!actor->pending || actor->starved || !actor->hold.waits_for_id)
        return;
    run->model.actors[number].expired = true;
    waiting_expire(&run->router, &actor->peer);
}

static void release_starved(struct run *run)
{
    struct list_node *node, *following;

    list_each(&run->starved, node, following)
        waiting_release(&run->router, list_entry(node, struct peer, hold));
}

/* --- the row of events --- */

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

/* Answers one of the requests that the actor has to answer, abandoned ones too. */
static void answer(struct run *run, int number, unsigned which)
{
    struct model_message message = {NOBODY, NOBODY, NOBODY, false, true};

    for (size_t i = 0; i < run->model.request_count; i++) {
        if (run->model.requests[i].answerer == number) {
            message.id = run->model.requests[i].id;
            if (which-- == 0)
                break;
        }
    }
    if (message.id != NOBODY)
        send_message(run, number, message, false);
}

static void step(struct run *run)
{
    unsigned what = tape_byte(&run->tape), which = tape_byte(&run->tape);
    int worker = (int)(which % MODEL_WORKERS);
    int client = MODEL_WORKERS + (int)(which % MODEL_CLIENTS);
    int actor = (int)(which % MODEL_ACTORS);
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
        set_availability(run, worker, availabilities[which / MODEL_WORKERS % 3]);
        break;
    case 11:
        set_availability(run, worker, PEER_READY);
        break;
    case 12:
        set_full(run, actor, true);
        break;
    case 13:
        set_full(run, actor, false);
        break;
    case 14:
        expire_hold(run, actor);
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

static bool is_any_pending(const struct run *run)
{
    bool pending = false;

    for (int i = 0; i < MODEL_ACTORS; i++)
        pending = pending || run->actors[i].pending;
    return pending;
}

/* All requests are answered and time passes: then no peer is held, no request in flight. */
static void settle(struct run *run)
{
    release_starved(run);
    for (int i = 0; i < MODEL_ACTORS; i++) {
        set_full(run, i, false);
        if (model_is_worker(i))
            set_availability(run, i, PEER_READY);
    }
    drain(run);
    for (int round = 0; round < 100; round++) {
        if (run->model.request_count == 0 && !is_any_pending(run))
            break;
        for (int i = 0; i < MODEL_ACTORS; i++) {
            answer(run, i, 0);
            drain(run);
        }
        /* Two peers may each wait for an id that the other would free: a time limit ends that. */
        for (int i = 0; i < MODEL_ACTORS && round % 10 == 9; i++) {
            expire_hold(run, i);
            drain(run);
        }
        check_counts(run);
    }
    EXPECT(run->model.request_count == 0, "%zu requests stay unanswered", run->model.request_count);
    EXPECT(!is_any_pending(run), "a peer is held for ever");
    EXPECT(run->open == 0, "%zu requests are open", run->open);
}

static void part(struct run *run)
{
    const struct router *router = &run->router;

    for (int i = 0; i < MODEL_ACTORS; i++) {
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
               router->from_workers.by_asker.count == 0,
           "requests are left");
    EXPECT(list_empty(&router->waiting_for_worker) && !roaming_any(&router->roaming) &&
               turns_empty(&router->released) && list_empty(&run->starved),
           "held peers are left");
}

static void begin(struct run *run)
{
    static const struct limits defaults = LIMITS_DEFAULT;
    static const struct siphash_key key = {1, 2};
    static const struct pool_mode plain;
    unsigned limits = tape_byte(&run->tape);

    run->limits = defaults;
    run->limits.max_pending_requests = 1 + limits % MODEL_LIMIT_MAX;
    run->limits.max_sessions = 1 + limits / MODEL_LIMIT_MAX % MODEL_SESSIONS;
    run->traces = fuzz_traces();
    list_init(&run->starved);
    model_init(&run->model, run->limits.max_pending_requests, run->limits.max_sessions);
    router_init(&run->router, &run->limits, &key);
    for (int i = 0; i < MODEL_POOLS; i++) {
        group_init(&run->pools[i], text_of(pools[i]), &plain);
        router_add_pool(&run->router, &run->pools[i]);
    }
    for (int i = 0; i < MODEL_WORKERS; i++) {
        EXPECT(router_add_worker(&run->router, &run->actors[i].peer, &run->pools[i == 2]) == 0,
               "a worker");
        run->model.actors[i].here = true; /* it starts */
        if ((limits & 0x80) == 0)
            set_availability(run, i, PEER_READY);
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
    group_free(&run->pools[0]);
    group_free(&run->pools[1]);
    free(run);
    return 0;
}
