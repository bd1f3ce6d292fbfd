#include "build_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos.h"
#include "chaos_client.h"
#include "check_bound.h"

#define TEXT_OF(limit) #limit
#define LIMIT_TEXT(text, name, limit) text " (" name " " TEXT_OF(limit) ")"
#define TOO_MANY_PENDING                                                                           \
    LIMIT_TEXT("too many pending requests", "max_pending_requests", LIMIT_PENDING)
#define TOO_MANY_CONNECTIONS                                                                       \
    LIMIT_TEXT("too many connections", "max_connections", LIMIT_CONNECTIONS)
#define BUSY                                                                                       \
    LIMIT_TEXT("every worker serves another client: too few instances", "busy_timeout_sec",        \
               LIMIT_BUSY_SEC)

#define EXITED "the process of this client has exited"
#define WORKER_EXITED "worker exited before answering"

static void resolve(struct client *client, struct entry *request)
{
    request->resolved = true;
    list_remove(&request->in_flight);
    if (!request->given_up || !wire_cancels_for_good)
        client->in_flight_count--;
}

/* --- answers --- */

static void check_answer(struct chaos *chaos, struct client *client, struct entry *answer,
                         const struct wire_header *header)
{
    struct entry *request = ledger_find(&chaos->ledger, answer->ref);

    if (request == NULL || request->conn != client->conn) {
        client_violation(chaos, client, "got an answer to request %llu of client %llu",
                         answer->ref.number, request != NULL ? request->conn : 0);
        return;
    }
    if (request->resolved) {
        client_violation(chaos, client, "got an answer to request %llu after an error for it",
                         answer->ref.number);
        return;
    }
    if (request->key != answer->key ||
        (wire_ids_rewritten && request->raw_id != wire_key_hash(header->raw_id)))
        violation(chaos, "the answer to request %llu has another id", answer->ref.number);
    if (wire_session_in_params && request->session == NULL && header->session[0] != '\0')
        client_use_named(chaos, client, header->session);
    chaos->stats.answered++;
    siege_answered(chaos, client, request);
    resolve(client, request);
    ledger_remove(&chaos->ledger, request);
}

/* --- events and questions --- */

static bool has_used(const struct client *client, const struct session *session)
{
    for (size_t i = 0; i < client->session_count; i++) {
        if (client->sessions[i] == session)
            return true;
    }
    return false;
}

/* The connection is open and its sessions have not begun to end. */
static bool keeps_sessions(const struct chaos *chaos, unsigned long long conn)
{
    const struct client *client = client_find(chaos, conn);

    return client != NULL && !client->going;
}

/* In a sticky pool. The only client of a worker also gets messages in sessions without owner. */
static void check_sticky_owner(struct chaos *chaos, const struct client *client,
                               const struct entry *entry)
{
    struct incarnation *worker = fleet_find(&chaos->fleet, entry->worker);
    unsigned long long owner = worker != NULL ? check_receiver(chaos, worker, entry->session) : 0;

    if (owner != 0 && owner != client->conn)
        client_violation(chaos, client,
                         "got a message in session %s of worker %ld, which %llu owns",
                         entry->session->name, (long)worker->pid, owner);
}

static void check_owner(struct chaos *chaos, const struct client *client, const struct entry *entry)
{
    const struct session *session = entry->session;

    if (chaos_exclusive(chaos) || session == NULL)
        return; /* check_bound has checked it */
    if (chaos_sticky(chaos)) {
        check_sticky_owner(chaos, client, entry);
        return;
    }
    if (!has_used(client, session)) {
        client_violation(chaos, client, "got a message in session %s, which it never named",
                         session->name);
        return;
    }
    if (session->loose || session->worker != entry->worker || client->going ||
        !keeps_sessions(chaos, session->owner))
        return;
    if (session->owner != client->conn)
        client_violation(chaos, client, "got a message in session %s, which %llu owns",
                         session->name, session->owner);
}

static int64_t reply_delay(struct chaos *chaos, const struct client *client)
{
    if (chaos->phase != PHASE_STORM || client->profile.replying == REPLYING_SOON)
        return dice_below(&chaos->dice, 15);
    if (client->profile.replying == REPLYING_LATE)
        return dice_between(&chaos->dice, 30, 1200);
    return INT32_MAX;
}

static void owe_reply(struct chaos *chaos, struct client *client, const struct wire_header *header)
{
    struct reply *reply;

    if (client->reply_count == client->reply_room) {
        client->reply_room = client->reply_room * 2 + 16;
        client->replies = realloc(client->replies, client->reply_room * sizeof *client->replies);
        if (client->replies == NULL)
            abort();
    }
    reply = &client->replies[client->reply_count++];
    reply->question = header->serial;
    reply->due_ms = chaos->now_ms + reply_delay(chaos, client);
    memcpy(reply->key, header->key, sizeof reply->key);
    memcpy(reply->raw_id, header->raw_id, sizeof reply->raw_id);
}

/* --- messages of workers --- */

/* No earlier message of the worker to this client may be missing, unless the client is about to be
 * closed: then it still gets its answers, but no notifications. */
static void check_sequence(struct chaos *chaos, const struct client *client, struct entry *entry)
{
    struct pair *pair = ledger_pair(&chaos->ledger, entry->worker, client->conn);

    if (entry->serial.number <= pair->down)
        violation(chaos, "order: client %llu got message %llu of a worker after %llu", client->conn,
                  entry->serial.number, pair->down);
    pair->down = entry->serial.number;
    if (!list_linked(&entry->expected) || entry->conn != client->conn)
        return;
    while (pair->expected.head.next != &entry->expected) {
        struct list_node *node = list_take_first(&pair->expected);
        const struct entry *lost = list_entry(node, struct entry, expected);
        const struct incarnation *worker = fleet_find(&chaos->fleet, entry->worker);

        if (fleet_may_end_client(chaos, client))
            continue;
        violation(chaos,
                  "lost: '%c' %llu of worker %ld to client %llu, which got the later '%c' %llu",
                  lost->kind, lost->serial.number, worker != NULL ? (long)worker->pid : 0,
                  client->conn, entry->kind, entry->serial.number);
    }
}

/* Progress goes to the client of the request, with the token of the request. */
static void check_progress(struct chaos *chaos, const struct client *client,
                           const struct entry *progress, const char *token)
{
    const struct entry *request = ledger_find(&chaos->ledger, progress->ref);

    if (request == NULL || request->conn != client->conn ||
        (request->resolved && !request->given_up))
        client_violation(chaos, client,
                         "got progress of request %llu, which is not in flight there",
                         progress->ref.number);
    else if (request->token != wire_key_hash(token))
        violation(chaos, "progress of request %llu has another token: %s", progress->ref.number,
                  token);
}

static void check_message(struct chaos *chaos, struct client *client, const char *line, size_t len,
                          const struct wire_header *header)
{
    struct entry *entry = ledger_find_for(&chaos->ledger, header->serial, client->conn);
    struct incarnation *worker;
    size_t counted;

    if (entry == NULL || header->serial.origin == 0 || entry->got) {
        client_violation(chaos, client, "got message '%c' %llx.%llx, which is not in flight",
                         header->kind, header->serial.origin, header->serial.number);
        return;
    }
    if (entry->hash != wire_line_hash(line, len, &counted) || entry->len != counted ||
        !wire_sum_ok(line, len))
        client_violation(chaos, client, "got message '%c' %llu not as it was sent", entry->kind,
                         entry->serial.number);
    if (entry->rival != 0 && entry->rival != client->conn && keeps_sessions(chaos, entry->rival))
        client_violation(chaos, client,
                         "got question %llu of a worker, which could be for %llu as well",
                         entry->serial.number, entry->rival);
    if (entry->conn != client->conn && keeps_sessions(chaos, entry->conn))
        client_violation(chaos, client, "got message '%c' %llu (session %s), which is for %llu",
                         entry->kind, entry->serial.number,
                         entry->session != NULL ? entry->session->name : "-", entry->conn);
    check_sequence(chaos, client, entry);
    worker = fleet_find(&chaos->fleet, entry->worker);
    if (worker != NULL)
        check_bound(chaos, worker, client->conn);
    if (entry->to_all && entry->conn == 0)
        return; /* other clients may get it, too */
    entry->got = true;
    list_remove(&entry->expected);
    if (entry->kind == WIRE_ANSWER)
        check_answer(chaos, client, entry, header);
    else if (entry->kind == WIRE_PROGRESS)
        check_progress(chaos, client, entry, header->token);
    else
        check_owner(chaos, client, entry);
    if (entry->kind == WIRE_QUESTION && !client->going && !entry->resolved)
        owe_reply(chaos, client, header);
    else if (entry->kind == WIRE_QUESTION && !client->going)
        client_violation(chaos, client, "got a question after the worker got an error for it");
    else if (entry->kind != WIRE_QUESTION || entry->resolved)
        ledger_remove(&chaos->ledger, entry);
}

/* --- errors from the daemon --- */

enum refusal {
    REFUSED,
    REFUSED_SECOND, /* an earlier request with its id is in flight */
    REFUSED_BUSY    /* all workers of its pool serve other clients */
};

static enum refusal refusal_of(const char *text)
{
    if (strcmp(text, "id is already in use by a request of yours that is still in flight") == 0)
        return REFUSED_SECOND;
    return strcmp(text, BUSY) == 0 ? REFUSED_BUSY : REFUSED;
}

/* The request that an error is about: the oldest with that id is the one that the daemon has;
 * REFUSED_SECOND means the next. REFUSED_BUSY prefers a request to a pool where the client has no
 * worker; it may have got one before it reads this error. */
static struct entry *find_request(const struct client *client, const char *key,
                                  enum refusal refusal)
{
    uint64_t hash = wire_key_hash(key);
    struct entry *bound = NULL;

    each_entry(struct entry, entry, &client->given_up, in_flight) {
        if (entry->key == hash && !entry->resolved)
            return entry;
    }
    each_entry(struct entry, entry, &client->in_flight, in_flight) {
        if (entry->key != hash ||
            (refusal == REFUSED_BUSY && (entry->got || entry->pool == POOL_UNKNOWN)))
            continue;
        if (refusal == REFUSED_BUSY && client->bound[entry->pool - 1] != 0)
            bound = bound != NULL ? bound : entry;
        else if (refusal != REFUSED_SECOND)
            return entry;
        else
            refusal = REFUSED;
    }
    return bound;
}

/* If the process had answered nothing yet, the text ends with how it exited. */
static bool worker_exited(const char *text)
{
    return strncmp(text, WORKER_EXITED, sizeof WORKER_EXITED - 1) == 0;
}

/* Why "worker exited" is wrong, or NULL. */
static const char *find_exit_fault(const struct chaos *chaos, const struct client *client,
                                   const struct entry *request)
{
    const struct incarnation *worker = fleet_find(&chaos->fleet, request->worker);

    if (worker == NULL)
        return chaos->fleet.dooms + chaos->fleet.stalls > 0 ? NULL : "no worker ever exited";
    if (!fleet_may_fail(chaos, worker) && !client->profile.loose)
        return "its worker has no reason to exit";
    if (request->answer != 0 && worker->left && !worker->unclean)
        return "its worker answered and exited in order";
    return NULL;
}

/* Why this error is wrong, or NULL. */
static const char *find_fault(const struct chaos *chaos, const struct client *client,
                              const struct entry *request, const struct wire_error *error)
{
    int64_t waited_ms = chaos->now_ms - request->sent_ms;
    const char *text = error->text;
    char sessions[80];

    if (request->calm)
        return "the phase is calm";
    if (strcmp(text, "no such pool") == 0)
        return error->code == -32602 && request->pool == POOL_UNKNOWN ? NULL : "the pool exists";
    if (refusal_of(text) == REFUSED_SECOND)
        return error->code == -32600 ? NULL : "the code is wrong";
    if (error->code != -32000)
        return "the code is wrong";
    if (worker_exited(text))
        return find_exit_fault(chaos, client, request);
    if (request->got)
        return "a worker got it";
    if (strcmp(text, TOO_MANY_PENDING) == 0)
        return NULL;
    if (strcmp(text, chaos_ends_clients(chaos) ? EXITED ": connect again"
                                               : EXITED
                         " and was replaced by one that has exited too") == 0)
        return fleet_may_end_client(chaos, client) ? NULL : "its processes are well";
    if (strcmp(text, "the daemon is shutting down") == 0)
        return chaos->phase == PHASE_END ? NULL : "it is not";
    snprintf(sessions, sizeof sessions, "too many sessions (max_sessions %u)",
             chaos_max_sessions(chaos));
    if (strcmp(text, sessions) == 0)
        return request->session != NULL || wire_session_in_params ? NULL : "it is in no session";
    if (chaos_exclusive(chaos) && strcmp(text, BUSY) == 0)
        return waited_ms >= LIMIT_BUSY_SEC * 1000 - 20 ? NULL : "too early";
    if (strcmp(text, "id is still in use by another request that is in flight") == 0)
        return waited_ms >= BACKPRESSURE_MS - 200 ? NULL : "too early";
    return "unknown text";
}

static void check_refusal(struct chaos *chaos, struct client *client,
                          const struct wire_error *error)
{
    struct greeting *greeting = handshake_find(client, error->key);
    struct entry *request = greeting != NULL
                                ? &greeting->request
                                : find_request(client, error->key, refusal_of(error->text));
    const char *fault;

    if (request == NULL) {
        client_violation(chaos, client, "got an error for id %s, which is not in flight: %s",
                         error->key, error->text);
        return;
    }
    fault = find_fault(chaos, client, request, error);
    if (fault != NULL)
        client_violation(chaos, client, "got error %d \"%s\" for request %llu (session %s): %s",
                         error->code, error->text, request->serial.number,
                         request->session != NULL ? request->session->name : "-", fault);
    request->refused = !worker_exited(error->text);
    if (greeting != NULL) {
        handshake_refused(greeting, !request->refused);
        return;
    }
    resolve(client, request);
    chaos->stats.refused++;
    if (request->answer != 0)
        note_event(chaos, "request %llu of client %llu: answered, and lost", request->serial.number,
                   client->conn);
}

/* An error with the id null: a rejected connection, or a bad frame. */
static void check_rejection(struct chaos *chaos, struct client *client,
                            const struct wire_error *error)
{
    if (client->bad_frames + client->odd_frames > 0 &&
        (error->code == -32700 || error->code == -32600)) {
        *(client->bad_frames > 0 ? &client->bad_frames : &client->odd_frames) -= 1;
        return;
    }
    if (client->lines == 1 && error->code == -32000 &&
        strcmp(error->text, TOO_MANY_CONNECTIONS) == 0 && !chaos_calm(chaos)) {
        client->turned_away = true;
        client->silent = true;
        client_begin_going(client);
        chaos->stats.turned_away++;
    } else if (client->wanted_code != error->code || client->rejected ||
               strcmp(client->wanted_text, error->text) != 0) {
        client_violation(chaos, client, "got error %d \"%s\", should get \"%s\"", error->code,
                         error->text, client->wanted_code != 0 ? client->wanted_text : "none");
    }
    client->rejected = true;
}

void check_line(struct chaos *chaos, struct client *client, const char *line, size_t len)
{
    struct wire_header header;
    struct wire_error error;

    if (wire_parse(&header, line, len))
        check_message(chaos, client, line, len, &header);
    else if (handshake_take_line(chaos, client, line, len))
        return;
    else if (!wire_parse_error(&error, line, len))
        client_violation(chaos, client, "got a line of unknown origin: %.*s",
                         len < 200 ? (int)len : 200, line);
    else if (error.key[0] == '\0')
        check_rejection(chaos, client, &error);
    else
        check_refusal(chaos, client, &error);
}

/* --- the end of a connection --- */

/* Why the daemon must not have closed the connection, or NULL. */
static const char *find_closing_fault(const struct chaos *chaos, const struct client *client)
{
    if (client->turned_away)
        return NULL;
    if (client->profile.loose)
        return fleet_may_end_client(chaos, client) ||
                       chaos->now_ms - client->opened_ms >= BACKPRESSURE_MS * 3 / 4
                   ? NULL
                   : "too early for a client that does not read";
    if (client->in.bytes.len > 0)
        return "in the middle of a line";
    if (fleet_may_end_client(chaos, client))
        return NULL;
    if (client->wanted_code != 0)
        return client->rejected ? NULL : "without the error for an unacceptable line";
    if (!client->shut)
        return "without a reason";
    if (client->bad_frames > 0)
        return "without the error for a bad frame";
    return client->in_flight_count == 0 ? NULL : "before all requests were answered";
}

void check_ended(struct chaos *chaos, const struct client *client, int error)
{
    const char *fault;

    if (client->profile.loose && !client->turned_away)
        chaos->stats.stalled++;
    if (chaos->phase == PHASE_END)
        return;
    fault = find_closing_fault(chaos, client);
    if (fault != NULL)
        client_violation(chaos, client, "was disconnected (%s): %s",
                         error != 0 ? strerror(error) : "end of input", fault);
}
