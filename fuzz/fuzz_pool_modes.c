/* Pools with a mode. The input is a row of events: requests, progress and cancellations of clients
 * and workers that come, stop reading and vanish.
 *
 * An answer goes to the asker alone, under the id that it wrote; so does progress, under its token;
 * every other byte is unchanged. What is said in a session reaches its owner alone, who got the
 * answer that named or loaded it; a question reaches no client on a guess. A client stays with its
 * worker, and an exclusive worker with its client.
 *
 * No two requests have one id at their answerer, as long as the daemon remembers all
 * abandoned ones. When all queues are read and all requests answered, no peer is held; when all
 * peers have left, the tables are empty. */
#include "build_config.h"

#include "router/router.h"

#include "pool_run.h"
#include "router/affinity.h"
#include "router/deadlines.h"
#include "router/departure.h"
#include "router/to_client.h"
#include "router/to_worker.h"
#include "router/waiting.h"

#define RELEASES_MAX 400

static const char *const pool_names[POOLS] = {"p", "q"};
static const char *const ids[] = {"1", "2", "4", "1.0", "\"\\u0061\"", "\"a\"", "\"\""};
static const char *const tokens[] = {"1", "2", "\"t\"", "\"\\u0074\"", "5e0"};

static struct actor *actor_of(struct run *run, const struct peer *peer)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (run->clients[i].peer == peer)
            return &run->clients[i];
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        if (run->workers[i].peer == peer)
            return &run->workers[i];
    }
    EXPECT(false, "an unknown peer");
    return NULL;
}

/* --- deliveries --- */

static void check_binding(struct run *run, struct actor *client, struct actor *worker)
{
    const struct pool_mode *mode = &run->mode[worker->pool];

    EXPECT(mode->clients != CLIENTS_SHARED, "bound in a shared pool");
    if (client->bound[worker->pool] == NULL)
        client->bound[worker->pool] = worker;
    EXPECT(client->bound[worker->pool] == worker, "the client is another's");
    for (unsigned i = 0; i < CLIENTS && mode->clients == CLIENTS_EXCLUSIVE; i++)
        EXPECT(&run->clients[i] == client || run->clients[i].bound[worker->pool] != worker,
               "two clients have an exclusive worker");
}

static void delivered_request(struct run *run, struct actor *from, struct actor *to,
                              const char *text)
{
    const struct pool_mode *mode = pool_run_mode_of(run, from, to);
    struct asked *asked;
    char seen_id[40];

    pool_run_value_of(seen_id, text, ID);
    asked = pool_run_find_asked(run, to, seen_id);
    EXPECT(asked == NULL || (asked->asker == NULL && run->forgetful), "one id is there twice: %s",
           text);
    if (asked != NULL)
        pool_run_forget(run, asked);
    asked = &run->asked[run->asked_count++];
    EXPECT(run->asked_count < ASKED_MAX, "too many");
    asked->asker = from;
    asked->answerer = to;
    asked->token_counts = pool_mode_reads_tokens(mode);
    pool_run_value_of(asked->id, from->text, ID);
    snprintf(asked->seen_id, sizeof asked->seen_id, "%s", seen_id);
    pool_run_value_of(asked->token, from->text, META);
    pool_run_value_of(asked->seen_token, text, META);
    pool_run_value_of(asked->work, from->text, WORK);
    pool_run_value_of(asked->seen_work, text, WORK);
    pool_run_value_of(asked->loads, from->text, SESSION);
    asked->names_session = asked->loads[0] == 0;
    if (strstr(from->text, "session/load") == NULL)
        asked->loads[0] = 0;
    EXPECT(mode->rewrite_ids || strcmp(from->text, text) == 0, "changed: %s", text);
    EXPECT(pool_run_same_but(from->text, text, ID, META), "%s became %s", from->text, text);
    EXPECT(!mode->rewrite_ids || asked->token[0] == '\0' ||
               strcmp(asked->seen_id, asked->seen_token) == 0,
           "%s", text);
}

static void delivered_answer(struct run *run, struct actor *from, struct actor *to,
                             const char *text)
{
    char id[40], expected[TEXT_MAX];
    struct asked *asked;

    pool_run_value_of(id, from->text, ID);
    asked = pool_run_find_asked(run, from, id);
    EXPECT(asked != NULL && asked->asker == to, "an answer for another peer: %s", text);
    pool_run_with_value(expected, from->text, ID, asked->id);
    EXPECT(strcmp(text, expected) == 0, "%s instead of %s", text, expected);
    pool_run_forget(run, asked);
}

/* The token of a client's notification is none of a request. */
static void delivered_note(struct run *run, struct actor *from, struct actor *to, const char *text)
{
    char token[40];

    pool_run_value_of(token, text, META);
    if (from->is_worker || token[0] == '\0' || !pool_run_mode_of(run, from, to)->rewrite_ids) {
        EXPECT(strcmp(text, from->text) == 0, "changed: %s", text);
        return;
    }
    EXPECT(pool_run_same_but(from->text, text, META, META), "%s became %s", from->text, text);
    for (unsigned i = 0; i < run->asked_count; i++)
        EXPECT(run->asked[i].answerer != to || !pool_run_same_id(run->asked[i].seen_id, token),
               "the token of a request: %s", text);
}

/* Where ids pass unchanged, several requests may have one token: one of their askers gets it. */
static void delivered_progress(struct run *run, struct actor *from, struct actor *to,
                               const char *text)
{
    char token[40], expected[TEXT_MAX];
    bool known = false;

    pool_run_value_of(token, from->text, PROGRESS);
    for (unsigned i = 0; i < run->asked_count; i++) {
        const struct asked *asked = &run->asked[i];

        const char *seen = pool_run_same_id(asked->seen_token, token) ? asked->seen_token
                                                                      : asked->seen_work;
        const char *own = seen == asked->seen_token ? asked->token : asked->work;

        if (asked->answerer != from || own[0] == '\0' || !pool_run_same_id(seen, token))
            continue;
        /* The only client of a worker is found without the token. */
        known = known || asked->token_counts;
        pool_run_with_value(expected, from->text, PROGRESS, strcmp(seen, own) == 0 ? token : own);
        if (asked->asker == to && strcmp(text, expected) == 0)
            return;
    }
    /* A token of the sender's own, or of a request that the only client abandoned: unchanged. */
    known = known && pool_run_mode_of(run, from, to)->clients != CLIENTS_EXCLUSIVE;
    EXPECT(!known && strcmp(text, from->text) == 0, "progress for another peer: %s", text);
}

static void delivered_cancel(struct run *run, struct actor *from, struct actor *to,
                             const char *text)
{
    char seen[40];

    pool_run_value_of(seen, text, CANCEL);
    EXPECT(pool_run_same_but(from->text, text, CANCEL, CANCEL), "%s became %s", from->text, text);
    for (unsigned i = 0; i < run->asked_count; i++) {
        struct asked *asked = &run->asked[i];

        if (asked->answerer == to && asked->asker == from &&
            pool_run_same_id(asked->seen_id, seen)) {
            pool_run_abandon(run, asked);
            return;
        }
    }
    EXPECT(strcmp(text, from->text) == 0, "%s became %s, which names no request", from->text, text);
}

static void delivered(struct run *run, struct actor *from, struct actor *to, const char *text)
{
    bool asks = strstr(from->text, ID) != NULL && strstr(from->text, "method") != NULL &&
                strstr(from->text, ID "null") == NULL;

    EXPECT(from->is_worker != to->is_worker, "to the sender's own side");
    EXPECT(!to->peer->full, "to a full peer");
    if (from->is_worker && run->mode[from->pool].clients == CLIENTS_EXCLUSIVE)
        EXPECT(to->bound[from->pool] == from || strstr(from->text, "result") != NULL,
               "to another than its client");
    if (strstr(from->text, "result") != NULL) {
        delivered_answer(run, from, to, text);
        return;
    }
    if (from->is_worker && strstr(from->text, PROGRESS) == NULL &&
        strstr(from->text, CANCEL) == NULL)
        pool_run_check_addressee(run, from, to);
    if (strstr(from->text, PROGRESS) != NULL)
        delivered_progress(run, from, to, text);
    else if (strstr(from->text, CANCEL) != NULL)
        delivered_cancel(run, from, to, text);
    else if (asks)
        delivered_request(run, from, to, text);
    else
        delivered_note(run, from, to, text);
}

static void failed_answer(struct run *run, struct actor *worker)
{
    char id[40];

    pool_run_value_of(id, worker->text, ID);
    pool_run_forget(run, pool_run_find_asked(run, worker, id));
}

static void dropped(struct run *run, struct actor *from)
{
    char id[40];
    struct asked *asked;

    if (strstr(from->text, "result") == NULL)
        return;
    pool_run_value_of(id, from->text, ID);
    asked = pool_run_find_asked(run, from, id);
    if (asked == NULL)
        return;
    EXPECT(asked->asker == NULL, "an answer was dropped that is waited for: %s", from->text);
    pool_run_forget(run, asked);
}

static void check_broadcast(const struct run *run, const struct actor *from)
{
    EXPECT(run->mode[from->pool].clients == CLIENTS_STICKY, "broadcast");
    EXPECT(strstr(from->text, ID) == NULL, "a request to all");
    for (unsigned i = 0; i < CLIENTS; i++)
        EXPECT(run->clients[i].bound[from->pool] != from || !run->clients[i].peer->full, "full");
}

/* --- decisions --- */

static void check_bindings(struct run *run, struct actor *client)
{
    for (unsigned i = 0; i < POOLS; i++) {
        struct peer *worker = affinity_worker(client->peer, &run->pools[i]);

        if (worker != NULL)
            check_binding(run, client, actor_of(run, worker));
    }
}

static void decide(struct run *run, struct actor *from)
{
    size_t len = strlen(from->text);
    char *line = fuzz_copy(from->text, len), text[TEXT_MAX];
    struct message_scratch scratch;
    struct scanner scanner;
    struct message message;
    struct decision decision;

    memset(&decision, 0xA5, sizeof decision);
    from->pending = from->starved = from->waits_for_id = false;
    scanner_reset(&scanner);
    EXPECT(scanner_run(&scanner, line, len) == SCAN_MESSAGE, "%s", from->text);
    EXPECT(message_from_scan(&message, slice_of(line, len), &scanner.fields, &scratch) ==
               MESSAGE_OK,
           "%s", from->text);
    decision_begin(&decision, &run->router, from->peer, &message);
    if (from->is_worker)
        to_client(&decision);
    else
        to_worker(&decision);
    if (!from->is_worker)
        check_bindings(run, from);
    if (run->traces)
        fprintf(stderr, "%s %d: action %d: %s", from->is_worker ? "worker" : "client",
                (int)(from->is_worker ? from - run->workers : from - run->clients),
                (int)decision.action, from->text);
    if (from->is_worker && decision.answered != NULL)
        pool_run_answer_session(run, from, decision.action == ACTION_FAIL);
    switch (decision.action) {
    case ACTION_FAIL:
        failed_answer(run, from);
        decision_delivered(&decision);
        break;
    case ACTION_FORWARD:
        if (!run->well && tape_below(&run->tape, 16) == 15) {
            decision_failed(&decision);
            waiting_hold(&run->starved, from->peer);
            from->pending = from->starved = true;
            break;
        }
        splice_write(text, line, 0, len, decision.edits, decision.edit_count);
        text[splice_len(len, decision.edits, decision.edit_count)] = '\0';
        delivered(run, from, actor_of(run, decision.to), text);
        decision_delivered(&decision);
        break;
    case ACTION_BROADCAST:
        check_broadcast(run, from);
        break;
    case ACTION_HOLD:
        from->pending = true;
        from->waits_for_id = decision.hold_ms > 0 && from->peer->hold_until_ms == 0;
        break;
    default:
        dropped(run, from);
        break;
    }
    EXPECT(from->pending == peer_held(from->peer), "held, or not");
    free(line);
}

static void settle(struct run *run)
{
    struct peer *peer;
    int count = 0;

    while ((peer = waiting_next_released(&run->router)) != NULL) {
        struct actor *actor = actor_of(run, peer);

        EXPECT(++count < RELEASES_MAX, "released again and again");
        if (actor->pending)
            decide(run, actor);
    }
}

/* --- events --- */

static void note_unanswered(void *user_data, const struct request *request)
{
    struct run *run = user_data;

    actor_of(run, request->asker);
}

/* The actor's requests are abandoned; those that it had to answer are over. */
static void forget_actor(struct run *run, const struct actor *actor)
{
    pool_run_end_sessions(run, actor);
    for (unsigned i = 0; i < run->asked_count;) {
        if (run->asked[i].asker == actor)
            pool_run_abandon(run, &run->asked[i]);
        if (run->asked[i].answerer == actor)
            pool_run_forget(run, &run->asked[i]);
        else
            i++;
    }
}

static void client_leaves(struct run *run, struct actor *client)
{
    for (unsigned i = 0; i < POOLS; i++) {
        struct actor *worker = client->bound[i];

        if (worker != NULL && worker->peer->availability == PEER_READY)
            worker->left = true;
        if (run->mode[i].clients != CLIENTS_EXCLUSIVE || worker == NULL)
            continue;
        worker->retiring = true;
        waiting_worker_available(&run->router, worker->peer, PEER_ABSENT);
    }
    departure_client(&run->router, client->peer, note_unanswered, run);
    forget_actor(run, client);
    free(client->peer);
    memset(client, 0, sizeof *client);
}

static void client_comes(struct run *run, struct actor *client)
{
    client->peer = calloc(1, sizeof *client->peer);
    if (client->peer == NULL)
        abort();
    router_add_client(&run->router, client->peer);
    router_admit_client(&run->router, client->peer);
}

static void worker_dies(struct run *run, struct actor *worker, bool for_good)
{
    departure_worker(&run->router, worker->peer, note_unanswered, run);
    forget_actor(run, worker);
    worker->pending = worker->retiring = worker->left = false;
    if (!for_good)
        return;
    waiting_worker_available(&run->router, worker->peer, PEER_FAILED);
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (run->clients[i].bound[worker->pool] == worker)
            run->clients[i].bound[worker->pool] = NULL;
    }
}

static void say(struct run *run, struct actor *from, const char *text)
{
    snprintf(from->text, sizeof from->text, "%.*s\n", TEXT_MAX - 2, text);
    decide(run, from);
}

static void send_request(struct run *run, struct actor *from)
{
    unsigned id = tape_below(&run->tape, sizeof ids / sizeof ids[0]);
    unsigned token = tape_below(&run->tape, 2 * sizeof tokens / sizeof tokens[0]);
    unsigned session = tape_below(&run->tape, 4);
    bool loads = !from->is_worker && session < 2 && tape_below(&run->tape, 2) == 0;
    char meta[80] = "", text[TEXT_MAX], where[40] = "", pool[20] = "";

    if (token < sizeof tokens / sizeof tokens[0])
        snprintf(meta, sizeof meta, ",%s%s,\"_meta\":{\"progressToken\":%s}",
                 token % 2 == 0 ? WORK : "\"y\":", tokens[token / 2], tokens[token]);
    if (session < 2)
        snprintf(where, sizeof where, "\"sessionId\":\"s%u\",", session);
    if (!from->is_worker)
        snprintf(pool, sizeof pool, ",\"pool\":\"%s\"", pool_names[tape_below(&run->tape, POOLS)]);
    snprintf(text, sizeof text,
             "{\"id\":%s,\"method\":\"%s\",\"params\":{%s\"x\":%u%s}%s,\"end\":0}", ids[id],
             loads ? "session/load" : "m", where, ++run->serial, meta, pool);
    say(run, from, text);
}

static void send_note(struct run *run, struct actor *from)
{
    char text[TEXT_MAX];

    unsigned what = tape_below(&run->tape, 6);
    char more[60] = "";

    if (from->is_worker && what < 3)
        snprintf(more, sizeof more, "\"sessionId\":\"s%u\",", what);
    else if (!from->is_worker && what < 3)
        snprintf(more, sizeof more, "\"_meta\":{\"progressToken\":%s},", tokens[what]);
    snprintf(text, sizeof text, "{%s\"method\":\"n\",\"params\":{%s\"x\":%u}%s%s}",
             from->is_worker ? "" : "\"id\":null,", more, ++run->serial,
             from->is_worker ? "" : ",\"pool\":",
             from->is_worker             ? ""
             : tape_below(&run->tape, 2) ? "\"p\""
                                         : "\"q\"");
    say(run, from, text);
}

static const struct asked *pick_asked(struct run *run, const struct actor *of, bool answerer)
{
    unsigned start = tape_byte(&run->tape), i;

    for (i = 0; i < run->asked_count; i++) {
        const struct asked *asked = &run->asked[(start + i) % run->asked_count];

        if ((answerer ? asked->answerer : asked->asker) == of)
            return asked;
    }
    return NULL;
}

static void send_answer(struct run *run, struct actor *from)
{
    const struct asked *asked = pick_asked(run, from, true);
    char text[TEXT_MAX];

    snprintf(text, sizeof text, "{\"result\":{\"sessionId\":\"s%u\"},\"id\":%s}", run->serial % 4,
             asked != NULL ? asked->seen_id : ids[tape_below(&run->tape, 4)]);
    say(run, from, text);
}

static void send_progress(struct run *run, struct actor *from)
{
    const struct asked *asked = pick_asked(run, from, true);
    char text[TEXT_MAX];

    snprintf(text, sizeof text,
             "{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s},\"x\":%u%s}",
             asked == NULL                                              ? "\"own\""
             : asked->seen_work[0] != '\0' && tape_below(&run->tape, 2) ? asked->seen_work
             : asked->seen_token[0] != '\0'                             ? asked->seen_token
                                                                        : "\"own\"",
             ++run->serial, from->is_worker ? "" : ",\"pool\":\"p\"");
    say(run, from, text);
}

static void send_cancel(struct run *run, struct actor *from)
{
    const struct asked *asked = pick_asked(run, from, false);
    char text[TEXT_MAX];

    snprintf(text, sizeof text,
             "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%s},\"x\":%u%s}",
             asked != NULL ? asked->id : "77", ++run->serial,
             from->is_worker                               ? ""
             : asked != NULL && asked->answerer->pool == 1 ? ",\"pool\":\"q\""
                                                           : ",\"pool\":\"p\"");
    say(run, from, text);
}

static void speak(struct run *run, struct actor *from)
{
    switch (tape_below(&run->tape, 8)) {
    case 0:
    case 1:
        send_request(run, from);
        break;
    case 2:
        send_note(run, from);
        break;
    case 3:
        send_progress(run, from);
        break;
    case 4:
        send_cancel(run, from);
        break;
    default:
        send_answer(run, from);
        break;
    }
}

static void expired(void *user_data, struct request *request)
{
    struct run *run = user_data;
    struct asked *asked;
    char id[40];

    snprintf(id, sizeof id, request->answerer_id.type == ID_STRING ? "\"%.*s\"" : "%.*s",
             (int)request->answerer_id.text.len, request->answerer_id.text.data);
    asked = pool_run_find_asked(run, actor_of(run, request->answerer), id);
    if (asked != NULL)
        pool_run_abandon(run, asked);
}

static void client_event(struct run *run, struct actor *client)
{
    unsigned what = tape_below(&run->tape, 16);

    if (client->peer == NULL)
        client_comes(run, client);
    else if (what == 0)
        client_leaves(run, client);
    else if (what == 1)
        waiting_set_full(&run->router, client->peer, !client->peer->full);
    else if (what == 2 && client->pending)
        waiting_expire(&run->router, client->peer);
    else if (!client->pending)
        speak(run, client);
}

static void worker_event(struct run *run, struct actor *worker)
{
    unsigned what = tape_below(&run->tape, 32);

    if (worker->peer->availability == PEER_FAILED)
        return;
    if (worker->retiring && what < 16)
        worker_dies(run, worker, false);
    else if (worker->peer->availability == PEER_ABSENT && !worker->retiring)
        waiting_worker_available(&run->router, worker->peer, PEER_READY);
    else if (what <= 1)
        worker_dies(run, worker, what == 1);
    else if (what == 2)
        waiting_set_full(&run->router, worker->peer, !worker->peer->full);
    else if (!worker->pending)
        speak(run, worker);
}

static void release_starved(struct run *run)
{
    struct list_node *node, *following;

    list_each(&run->starved, node, following)
        waiting_release(&run->router, list_entry(node, struct peer, hold));
}

/* --- beginning and end --- */

static void begin(struct run *run, const uint8_t *setup)
{
    const struct siphash_key key = {7, 9};

    run->limits = (struct limits)LIMITS_DEFAULT;
    run->limits.max_sessions = SESSIONS_MAX;
    run->limits.max_pending_requests = 24;
    router_init(&run->router, &run->limits, &key);
    list_init(&run->starved);
    for (unsigned i = 0; i < POOLS; i++) {
        struct pool_mode *mode = &run->mode[i];

        mode->clients = (enum pool_clients)(setup[i] % 3);
        mode->rewrite_ids = (setup[i] & 8) != 0;
        mode->session_in_params = (setup[i] & 16) != 0;
        mode->request_timeout_sec = (setup[i] & 32) != 0 ? 1 : 0;
        mode->protocol = PROTOCOL_MCP;
        mode->busy_timeout_sec = 1;
        group_init(&run->pools[i], slice_of(pool_names[i], 1), mode);
        router_add_pool(&run->router, &run->pools[i]);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        run->workers[i].is_worker = true;
        run->workers[i].pool = i % POOLS;
        run->workers[i].peer = calloc(1, sizeof *run->workers[i].peer);
        if (run->workers[i].peer == NULL ||
            router_add_worker(&run->router, run->workers[i].peer, &run->pools[i % POOLS]) != 0)
            abort();
        waiting_worker_available(&run->router, run->workers[i].peer, PEER_READY);
    }
}

static bool waits_for_leave(const struct run *run, const struct actor *client)
{
    for (unsigned i = 0; i < POOLS; i++) {
        const struct list_node *node;
        const struct list *waiting = &run->pools[i].waiting;

        for (node = waiting->head.next; node != &waiting->head; node = node->next) {
            if (node == &client->peer->hold)
                return run->mode[i].clients == CLIENTS_EXCLUSIVE;
        }
    }
    return false;
}

static void end_waiting(struct run *run, struct actor *actor)
{
    if (actor->peer != NULL && actor->pending && actor->waits_for_id && peer_held(actor->peer))
        waiting_expire(&run->router, actor->peer);
}

/* Workers start, queues drain, requests are answered and time limits pass. */
static void make_well(struct run *run)
{
    run->well = true;
    for (unsigned rounds = 0; rounds < 20; rounds++) {
        release_starved(run);
        for (unsigned i = 0; i < WORKERS; i++) {
            if (run->workers[i].retiring)
                worker_dies(run, &run->workers[i], false);
            if (run->workers[i].peer->availability == PEER_ABSENT)
                waiting_worker_available(&run->router, run->workers[i].peer, PEER_READY);
            waiting_set_full(&run->router, run->workers[i].peer, false);
        }
        for (unsigned i = 0; i < CLIENTS; i++) {
            if (run->clients[i].peer == NULL)
                continue;
            waiting_set_full(&run->router, run->clients[i].peer, false);
            if (run->clients[i].pending && waits_for_leave(run, &run->clients[i]))
                waiting_expire(&run->router, run->clients[i].peer);
        }
        for (unsigned i = 0; rounds > 10 && i < CLIENTS; i++)
            end_waiting(run, &run->clients[i]);
        for (unsigned i = 0; rounds > 10 && i < WORKERS; i++)
            end_waiting(run, &run->workers[i]);
        settle(run);
        for (unsigned i = run->asked_count; i > 0; i--) {
            struct actor *answerer = i <= run->asked_count ? run->asked[i - 1].answerer : NULL;

            if (answerer != NULL && !answerer->pending)
                send_answer(run, answerer);
            settle(run);
        }
    }
}

static void end(struct run *run)
{
    make_well(run);
    for (unsigned i = 0; i < WORKERS; i++)
        EXPECT(!run->workers[i].pending, "worker %u is held in vain: %s", i, run->workers[i].text);
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (run->clients[i].peer != NULL)
            EXPECT(!run->clients[i].pending, "client %u is held in vain: %s", i,
                   run->clients[i].text);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (run->clients[i].peer != NULL)
            client_leaves(run, &run->clients[i]);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        worker_dies(run, &run->workers[i], false);
        EXPECT(list_empty(&run->workers[i].peer->bindings), "a binding is left");
    }
    EXPECT(run->router.sessions.table.count == 0, "a session is left");
    EXPECT(run->router.from_clients.by_answerer.count == 0, "a request is left");
    EXPECT(run->router.from_workers.by_answerer.count == 0, "a request of a worker is left");
    for (unsigned i = 0; i < POOLS; i++)
        EXPECT(list_empty(&run->pools[i].timed), "a deadline is left");
    while (waiting_next_released(&run->router) != NULL)
        continue;
    router_free(&run->router);
    for (unsigned i = 0; i < POOLS; i++)
        group_free(&run->pools[i]);
    for (unsigned i = 0; i < WORKERS; i++)
        free(run->workers[i].peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run run;
    unsigned number;

    if (size < POOLS)
        return 0;
    memset(&run, 0, sizeof run);
    run.traces = fuzz_traces();
    run.tape = (struct tape){data + POOLS, data + size};
    begin(&run, data);
    while (!tape_over(&run.tape) && run.asked_count < ASKED_MAX - 2 * (CLIENTS + WORKERS)) {
        number = tape_below(&run.tape, CLIENTS + WORKERS + 2);
        if (number < CLIENTS) {
            client_event(&run, &run.clients[number]);
        } else if (number < CLIENTS + WORKERS) {
            worker_event(&run, &run.workers[number - CLIENTS]);
        } else if (number == CLIENTS + WORKERS) {
            release_starved(&run);
        } else {
            run.router.now_ms += 400;
            deadlines_expire(&run.router, expired, &run);
        }
        settle(&run);
    }
    end(&run);
    return 0;
}
