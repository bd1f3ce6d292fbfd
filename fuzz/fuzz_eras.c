/* The two eras of MCP in one pool. The input is a row of events: handshakes, stateless requests,
 * probes, subscriptions and cancellations of clients that come and go; answers, notices, log
 * messages and deaths of workers.
 *
 * What the server serves is decided by the daemon's own probe of a stateless process, that is, by
 * its answer, silence or exit, and by nothing that clients send or are answered. No stateless
 * message of a client is delivered before. A process hears of one era alone. An answer goes to its
 * asker under the asker's id; a notice of a subscription to the subscriber, and only while it is
 * open; a log message to the only client that can have caused it. When all have left, the tables
 * are empty. */
#include "build_config.h"

#include "router/router.h"

#include "common.h"
#include "router/affinity.h"
#include "router/departure.h"
#include "router/eras.h"
#include "router/to_client.h"
#include "router/to_worker.h"
#include "router/waiting.h"

#define CLIENTS 4
#define WORKERS 3
#define ASKED_MAX 200
#define TEXT_MAX 400
#define RELEASES_MAX 400

#define MCP "\"io.modelcontextprotocol/"
#define META "\"params\":{\"_meta\":{" MCP "protocolVersion\":\"v\"}}"
#define LOGS "\"params\":{\"_meta\":{" MCP "protocolVersion\":\"v\"," MCP "logLevel\":\"info\"}}"

enum kind { HANDSHAKE, CALL, CALL_LOGS, PROBE, LISTEN };

static const struct {
    const char *method, *params;
} kinds[] = {
    [HANDSHAKE] = {"initialize", "\"params\":{}"},
    [CALL] = {"tools/call", META},
    [CALL_LOGS] = {"tools/call", LOGS},
    [PROBE] = {"server/discover", META},
    [LISTEN] = {"subscriptions/listen", META},
};

enum era { ERA_NONE, ERA_HANDSHAKE, ERA_STATELESS };

struct actor {
    struct peer *peer; /* NULL: a client that is not connected */
    bool pending;
    enum era era; /* a worker: of its process */
    bool asked;   /* a worker: the probe was sent */
    enum kind kind;
    unsigned id; /* of its last message */
    char text[TEXT_MAX];
};

/* Delivered, and not answered. */
struct asked {
    const struct actor *asker, *answerer; /* asker NULL: given up */
    const struct actor *cause;            /* the same, but NULL only after it has left */
    enum kind kind;
    unsigned id;
    char seen[16]; /* the id as the worker knows it */
};

struct run {
    struct tape tape;
    struct limits limits;
    struct router router;
    struct group eras[2]; /* handshake, stateless */
    struct actor clients[CLIENTS], workers[WORKERS];
    struct asked asked[ASKED_MAX];
    unsigned asked_count, serial;
    enum era_support verdict;
    bool traces;
};

static bool is_worker(const struct run *run, const struct actor *actor)
{
    return actor >= run->workers && actor < run->workers + WORKERS;
}

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

/* --- what is known of requests --- */

static void forget(struct run *run, struct asked *asked)
{
    *asked = run->asked[--run->asked_count];
}

static struct asked *find_seen(struct run *run, const struct actor *worker, const char *seen)
{
    for (unsigned i = 0; i < run->asked_count; i++) {
        if (run->asked[i].answerer == worker && strcmp(run->asked[i].seen, seen) == 0)
            return &run->asked[i];
    }
    return NULL;
}

/* The only client that may have caused a log message of the worker, or NULL. */
static const struct actor *cause_of_logs(const struct run *run, const struct actor *worker)
{
    const struct actor *found = NULL;

    for (unsigned i = 0; i < run->asked_count; i++) {
        const struct asked *asked = &run->asked[i];

        if (asked->answerer != worker || asked->kind != CALL_LOGS)
            continue;
        if (asked->cause == NULL || (found != NULL && found != asked->cause))
            return NULL;
        found = asked->cause;
    }
    return found;
}

static void value_after(char to[16], const char *text, const char *key)
{
    const char *at = strstr(text, key);
    size_t len;

    to[0] = '\0';
    if (at == NULL)
        return;
    at += strlen(key);
    len = strcspn(at, ",}");
    EXPECT(len < 16, "%s", text);
    memcpy(to, at, len);
    to[len] = '\0';
}

/* --- deliveries --- */

static void heard(struct actor *worker, enum era era, const char *text)
{
    EXPECT(worker->era == ERA_NONE || worker->era == era, "of the other era: %s", text);
    worker->era = era;
}

static void delivered_to_worker(struct run *run, const struct actor *from, struct actor *worker,
                                const char *text)
{
    struct asked *asked;
    char seen[16];

    if (strstr(from->text, "requestId") != NULL) {
        value_after(seen, text, "\"requestId\":");
        asked = find_seen(run, worker, seen);
        EXPECT(asked != NULL && asked->asker == from && asked->id == from->id, "cancels: %s", text);
        asked->asker = NULL;
        return;
    }
    heard(worker, from->kind == HANDSHAKE ? ERA_HANDSHAKE : ERA_STATELESS, text);
    EXPECT(from->kind == HANDSHAKE || run->verdict == ERA_SERVED, "before the verdict: %s", text);
    value_after(seen, text, "\"id\":");
    asked = find_seen(run, worker, seen);
    EXPECT(asked == NULL, "one id twice: %s", text);
    asked = &run->asked[run->asked_count++];
    EXPECT(run->asked_count < ASKED_MAX, "too many");
    *asked = (struct asked){
        .asker = from, .answerer = worker, .cause = from, .kind = from->kind, .id = from->id};
    memcpy(asked->seen, seen, sizeof seen);
}

static void delivered_to_client(struct run *run, const struct actor *worker, const struct actor *to,
                                const char *text)
{
    char seen[16], expected[32];
    struct asked *asked;

    /* All that a process of the handshake era says is for its client. */
    if (strstr(worker->text, "method") != NULL && worker->era != ERA_STATELESS)
        return;
    if (strstr(worker->text, "notifications/message") != NULL) {
        EXPECT(cause_of_logs(run, worker) == to, "a log message for another client");
        return;
    }
    value_after(seen, worker->text,
                strstr(worker->text, "method") == NULL ? "\"id\":" : MCP "subscriptionId\":");
    asked = find_seen(run, worker, seen);
    EXPECT(asked != NULL && asked->asker == to, "for another client: %s", text);
    snprintf(expected, sizeof expected, "\"i%u\"", asked->id);
    EXPECT(strstr(text, expected) != NULL, "%s has not the id %s", text, expected);
    if (strstr(worker->text, "method") != NULL) {
        EXPECT(asked->kind == LISTEN, "no subscription: %s", text);
        return;
    }
    if (strstr(worker->text, "subscriptionId") != NULL && asked->kind == LISTEN)
        EXPECT(strstr(strstr(text, "subscriptionId"), expected) != NULL, "%s", text);
    forget(run, asked);
}

/* A message of a worker that reached no client. */
static void dropped(struct run *run, const struct actor *worker)
{
    struct asked *asked;
    char seen[16];

    if (strstr(worker->text, "method") != NULL)
        return;
    value_after(seen, worker->text, "\"id\":");
    asked = find_seen(run, worker, seen);
    if (asked == NULL)
        return;
    EXPECT(asked->asker == NULL, "an answer was dropped that is waited for: %s", worker->text);
    forget(run, asked);
}

struct reading {
    struct scanner scanner;
    struct message_scratch scratch;
    struct message message;
};

/* The message lives as long as the line and the reading. */
static struct message *read_line(struct reading *reading, const char *line, size_t len)
{
    struct scanner *scanner = &reading->scanner;

    scanner_reset(scanner);
    EXPECT(scanner_run(scanner, line, len) == SCAN_MESSAGE, "%s", line);
    EXPECT(message_from_scan(&reading->message, slice_of(line, len), &scanner->fields,
                             &reading->scratch) == MESSAGE_OK,
           "%s", line);
    return &reading->message;
}

static void decide(struct run *run, struct actor *from)
{
    size_t len = strlen(from->text);
    char *line = fuzz_copy(from->text, len), text[2 * TEXT_MAX];
    struct reading reading;
    struct decision decision;

    from->pending = false;
    decision_begin(&decision, &run->router, from->peer, read_line(&reading, line, len));
    if (is_worker(run, from))
        to_client(&decision);
    else
        to_worker(&decision);
    if (run->traces)
        fprintf(stderr, "%s %d: action %d: %s", is_worker(run, from) ? "worker" : "client",
                (int)(is_worker(run, from) ? from - run->workers : from - run->clients),
                (int)decision.action, from->text);
    if (decision.action == ACTION_FORWARD) {
        struct actor *to = actor_of(run, decision.to);

        splice_write(text, line, 0, len, decision.edits, decision.edit_count);
        text[splice_len(len, decision.edits, decision.edit_count)] = '\0';
        EXPECT(!to->peer->full, "to a full peer");
        if (is_worker(run, from))
            delivered_to_client(run, from, to, text);
        else
            delivered_to_worker(run, from, to, text);
        decision_delivered(&decision);
    } else if (decision.action == ACTION_HOLD) {
        from->pending = true;
    } else if (is_worker(run, from)) {
        dropped(run, from);
    }
    EXPECT(from->pending == peer_held(from->peer), "held, or not");
    free(line);
}

/* As supervisor/probe.c does. */
static void send_probes(struct run *run)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        struct actor *worker = &run->workers[i];

        if (!worker->peer->probed || worker->asked)
            continue;
        EXPECT(run->verdict == ERA_UNKNOWN, "a needless probe");
        heard(worker, ERA_STATELESS, "probe");
        worker->asked = true;
    }
}

static void settle(struct run *run)
{
    struct peer *peer;
    int count = 0;

    EXPECT(run->eras[1].support == run->verdict, "verdict %d, not %d", (int)run->eras[1].support,
           (int)run->verdict);
    send_probes(run);
    while ((peer = waiting_next_released(&run->router)) != NULL) {
        struct actor *actor = actor_of(run, peer);

        EXPECT(++count < RELEASES_MAX, "released again and again");
        if (actor->pending)
            decide(run, actor);
    }
    send_probes(run);
}

/* --- events --- */

static void unanswered(void *user_data, const struct request *request)
{
    (void)user_data;
    EXPECT(request->asker != NULL, "no asker");
}

static void client_leaves(struct run *run, struct actor *client)
{
    for (unsigned i = 0; i < run->asked_count; i++) {
        if (run->asked[i].asker == client)
            run->asked[i].asker = NULL;
        if (run->asked[i].cause == client)
            run->asked[i].cause = NULL;
    }
    departure_client(&run->router, client->peer, unanswered, NULL);
    free(client->peer);
    client->peer = NULL;
    client->pending = false;
}

/* The process has shown that its server does not serve the stateless era, unless another one has
 * shown that it does. */
static void refuse(struct run *run)
{
    if (run->verdict == ERA_UNKNOWN)
        run->verdict = ERA_REFUSED;
}

static void worker_dies(struct run *run, struct actor *worker)
{
    for (unsigned i = run->asked_count; i > 0; i--) {
        if (run->asked[i - 1].answerer == worker)
            forget(run, &run->asked[i - 1]);
    }
    worker->pending = worker->asked = false;
    worker->era = ERA_NONE;
    if (worker->peer->probed && !list_empty(&worker->peer->bindings))
        refuse(run);
    departure_worker(&run->router, worker->peer, unanswered, NULL);
    EXPECT(worker->peer->pool == &run->eras[0], "it keeps its era");
    waiting_worker_available(&run->router, worker->peer, PEER_READY);
}

static void client_asks(struct run *run, struct actor *client)
{
    client->kind = (enum kind)tape_below(&run->tape, LISTEN + 1);
    client->id = ++run->serial;
    snprintf(client->text, TEXT_MAX, "{\"id\":\"i%u\",\"method\":\"%s\",%s}\n", client->id,
             kinds[client->kind].method, kinds[client->kind].params);
    decide(run, client);
}

/* Gives up one of its own requests. */
static void client_cancels(struct run *run, struct actor *client)
{
    unsigned first = tape_below(&run->tape, ASKED_MAX), i;

    for (i = 0; i < run->asked_count; i++) {
        const struct asked *asked = &run->asked[(first + i) % run->asked_count];

        if (asked->asker != client)
            continue;
        client->id = asked->id;
        snprintf(client->text, TEXT_MAX,
                 "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"i%u\"}}\n",
                 asked->id);
        decide(run, client);
        return;
    }
}

static void client_event(struct run *run, struct actor *client)
{
    unsigned what = tape_below(&run->tape, 8);

    if (client->peer == NULL) {
        client->peer = calloc(1, sizeof *client->peer);
        if (client->peer == NULL)
            abort();
        router_add_client(&run->router, client->peer);
    }
    if (what == 0)
        client_leaves(run, client);
    else if (what == 1)
        waiting_set_full(&run->router, client->peer, !client->peer->full);
    else if (!client->pending && what == 2)
        client_cancels(run, client);
    else if (!client->pending)
        client_asks(run, client);
}

/* Answers one of its requests, or one that there never was. */
static void worker_answers(struct run *run, struct actor *worker)
{
    static const char *const answers[] = {
        "\"result\":{\"_meta\":{" MCP "subscriptionId\":%s}}",
        "\"error\":{\"code\":-32601}",
        "\"error\":{\"code\":-32022}",
    };
    unsigned first = tape_below(&run->tape, ASKED_MAX), what = tape_below(&run->tape, 3), i;
    char body[200], id[16] = "9";

    for (i = 0; i < run->asked_count; i++) {
        const struct asked *asked = &run->asked[(first + i) % run->asked_count];

        if (asked->answerer == worker) {
            memcpy(id, asked->seen, sizeof id);
            break;
        }
    }
    if (what == 0)
        snprintf(body, sizeof body, answers[0], id);
    else
        snprintf(body, sizeof body, "%s", answers[what]);
    snprintf(worker->text, TEXT_MAX, "{\"id\":%s,%s}\n", id, body);
    decide(run, worker);
}

static void probe_answered(struct run *run, struct actor *worker)
{
    static const struct {
        const char *line;
        bool serves;
    } answers[] = {
        {"{\"id\":1,\"result\":{}}\n", true},
        {"{\"id\":1,\"error\":{\"code\":-32022}}\n", true},
        {"{\"id\":1,\"error\":{\"code\":-32602}}\n", false},
        {"{\"id\":null,\"error\":{}}\n", false},
    };
    unsigned what = tape_below(&run->tape, sizeof answers / sizeof answers[0]);
    const char *line = answers[what].line;
    struct reading reading;
    bool ready;

    if (answers[what].serves)
        run->verdict = ERA_SERVED;
    else
        refuse(run);
    ready = eras_probe_answered(&run->router, worker->peer,
                                read_line(&reading, line, strlen(line)));
    EXPECT(ready == (run->verdict == ERA_SERVED), "ready, or not");
    if (ready)
        waiting_worker_available(&run->router, worker->peer, PEER_READY);
}

static void probe_expires(struct run *run, struct actor *worker)
{
    refuse(run);
    eras_probe_expired(&run->router, worker->peer);
    EXPECT(list_empty(&worker->peer->bindings), "a client waits for it");
}

static void worker_event(struct run *run, struct actor *worker)
{
    unsigned what = tape_below(&run->tape, 8);
    char seen[16];

    if (what == 0) {
        worker_dies(run, worker);
    } else if (worker->asked && worker->peer->probed && what > 2) {
        if (what == 3)
            probe_expires(run, worker);
        else
            probe_answered(run, worker);
    } else if (worker->pending) {
        return;
    } else if (what == 1) {
        snprintf(worker->text, TEXT_MAX, "{\"method\":\"notifications/message\"}\n");
        decide(run, worker);
    } else if (what == 2 && run->asked_count > 0) {
        memcpy(seen, run->asked[tape_below(&run->tape, run->asked_count)].seen, sizeof seen);
        snprintf(worker->text, TEXT_MAX,
                 "{\"method\":\"n\",\"params\":{\"_meta\":{" MCP "subscriptionId\":%s}}}\n", seen);
        decide(run, worker);
    } else {
        worker_answers(run, worker);
    }
}

/* --- beginning and end --- */

static void begin(struct run *run)
{
    const struct siphash_key key = {7, 9};
    struct pool_mode mode = {.clients = CLIENTS_EXCLUSIVE,
                             .protocol = PROTOCOL_MCP,
                             .stateless = CLIENTS_STICKY,
                             .busy_timeout_sec = 1},
                     stateless = pool_mode_of_stateless(&mode);

    run->verdict = ERA_UNKNOWN;
    run->limits = (struct limits)LIMITS_DEFAULT;
    router_init(&run->router, &run->limits, &key);
    group_init(&run->eras[0], slice_of("p", 1), &mode);
    group_init(&run->eras[1], slice_of("p", 1), &stateless);
    eras_join(&run->eras[0], &run->eras[1]);
    router_add_pool(&run->router, &run->eras[0]);
    router_add_pool(&run->router, &run->eras[1]);
    for (unsigned i = 0; i < WORKERS; i++) {
        run->workers[i].peer = calloc(1, sizeof *run->workers[i].peer);
        if (run->workers[i].peer == NULL ||
            router_add_worker(&run->router, run->workers[i].peer, &run->eras[0]) != 0)
            abort();
        waiting_worker_available(&run->router, run->workers[i].peer, PEER_READY);
    }
}

static void end(struct run *run)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (run->clients[i].peer != NULL)
            client_leaves(run, &run->clients[i]);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        worker_dies(run, &run->workers[i]);
        EXPECT(list_empty(&run->workers[i].peer->bindings), "a binding is left");
        EXPECT(list_empty(&run->workers[i].peer->logging), "a cause of logs is left");
    }
    EXPECT(run->router.from_clients.by_answerer.count == 0, "a request is left");
    while (waiting_next_released(&run->router) != NULL)
        continue;
    router_free(&run->router);
    group_free(&run->eras[0]);
    group_free(&run->eras[1]);
    for (unsigned i = 0; i < WORKERS; i++)
        free(run->workers[i].peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run run;
    unsigned number;

    memset(&run, 0, sizeof run);
    run.traces = fuzz_traces();
    run.tape = (struct tape){data, data + size};
    begin(&run);
    while (!tape_over(&run.tape) && run.asked_count < ASKED_MAX - CLIENTS - WORKERS) {
        number = tape_below(&run.tape, CLIENTS + WORKERS);
        if (number < CLIENTS)
            client_event(&run, &run.clients[number]);
        else
            worker_event(&run, &run.workers[number - CLIENTS]);
        settle(&run);
    }
    end(&run);
    return 0;
}
