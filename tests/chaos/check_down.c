#include "build_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos.h"
#include "chaos_client.h"
#include "check_bound.h"

#define STATED(text, limit) text " " #limit ")"
#define MAX_TEXT(text, limit) STATED(text, limit)

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
        violation(chaos, "client %" PRIu64 " got an answer to request %" PRIu64 " of client %"
                  PRIu64, client->conn, answer->ref.number, request != NULL ? request->conn : 0);
        return;
    }
    if (request->resolved) {
        violation(chaos, "client %" PRIu64 " got an answer to request %" PRIu64
                  " after it was told that there is none", client->conn, answer->ref.number);
        return;
    }
    if (request->key != answer->key ||
        (wire_ids_rewritten && request->raw_id != wire_key_hash(header->raw_id)))
        violation(chaos, "the answer to request %" PRIu64 " has another id", answer->ref.number);
    if (wire_session_in_params && request->session == NULL && header->session[0] != '\0')
        client_learn(chaos, client, header->session);
    chaos->stats.answered++;
    resolve(client, request);
    ledger_remove(&chaos->ledger, request);
}

/* --- events and questions --- */

static bool has_used(const struct client *client, const struct session *session)
{
    size_t i;

    for (i = 0; i < client->session_count; i++) {
        if (client->sessions[i] == session)
            return true;
    }
    return false;
}

/* The connection is there, and nothing has begun that would end its sessions. */
static bool stays(const struct chaos *chaos, uint64_t conn)
{
    const struct client *client = client_find(chaos, conn);

    return client != NULL && !client->going;
}

/* In a sticky pool. Where nobody owns the session, its worker's only client gets it. */
static void check_heard_owner(struct chaos *chaos, const struct client *client,
                              const struct entry *entry)
{
    struct incarnation *worker = fleet_find(&chaos->fleet, entry->worker);
    uint64_t owner = worker != NULL ? check_listener(chaos, worker, entry->session) : 0;

    if (owner != 0 && owner != client->conn)
        violation(chaos, "client %" PRIu64 " got a message in session %s of worker %ld, which %"
                  PRIu64 " owns", client->conn, entry->session->name, (long)worker->pid, owner);
}

static void check_owner(struct chaos *chaos, const struct client *client,
                        const struct entry *entry)
{
    const struct session *session = entry->session;

    if (chaos_exclusive(chaos) || session == NULL)
        return; /* who is bound to the worker gets it */
    if (chaos_sticky(chaos)) {
        check_heard_owner(chaos, client, entry);
        return;
    }
    if (!has_used(client, session)) {
        violation(chaos, "client %" PRIu64 " got a message in session %s, which it never named",
                  client->conn, session->name);
        return;
    }
    if (session->loose || session->worker != entry->worker || client->going ||
        !stays(chaos, session->owner))
        return;
    if (session->owner != client->conn)
        violation(chaos, "client %" PRIu64 " got a message in session %s, which %" PRIu64 " owns",
                  client->conn, session->name, session->owner);
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

/* --- what came from a worker --- */

/* Nothing that the worker said to this client before may be missing. */
static void check_sequence(struct chaos *chaos, const struct client *client, struct entry *entry)
{
    struct pair *pair = ledger_pair(&chaos->ledger, entry->worker, client->conn);

    if (entry->serial.number <= pair->down)
        violation(chaos, "order: client %" PRIu64 " got message %" PRIu64 " of a worker after %"
                  PRIu64, client->conn, entry->serial.number, pair->down);
    pair->down = entry->serial.number;
    if (!list_linked(&entry->expected) || entry->conn != client->conn)
        return;
    while (pair->expected.head.next != &entry->expected) {
        struct list_node *node = list_take_first(&pair->expected);
        const struct entry *lost = list_entry(node, struct entry, expected);

        violation(chaos, "lost: '%c' %" PRIu64 " of a worker to client %" PRIu64
                  ", which got the later %" PRIu64, lost->kind, lost->serial.number, client->conn,
                  entry->serial.number);
    }
}

/* Progress goes to who has asked, with the token that it has given. */
static void check_progress(struct chaos *chaos, const struct client *client,
                           const struct entry *progress, const char *token)
{
    const struct entry *request = ledger_find(&chaos->ledger, progress->ref);

    if (request == NULL || request->conn != client->conn ||
        (request->resolved && !request->given_up))
        violation(chaos, "client %" PRIu64 " got progress of request %" PRIu64
                  ", which is none of its", client->conn, progress->ref.number);
    else if (request->token != wire_key_hash(token))
        violation(chaos, "progress of request %" PRIu64 " has another token: %s",
                  progress->ref.number, token);
}

static void check_message(struct chaos *chaos, struct client *client, const char *line, size_t len,
                          const struct wire_header *header)
{
    struct entry *entry = ledger_find_for(&chaos->ledger, header->serial, client->conn);
    struct incarnation *worker;
    size_t counted;

    if (entry == NULL || header->serial.origin == 0 || entry->got) {
        violation(chaos, "client %" PRIu64 " got message '%c' %" PRIx64 ".%" PRIx64
                  ", which is not on its way to anybody", client->conn, header->kind,
                  header->serial.origin, header->serial.number);
        return;
    }
    if (entry->hash != wire_line_hash(line, len, &counted) || entry->len != counted ||
        !wire_sum_ok(line, len))
        violation(chaos, "client %" PRIu64 " got message '%c' %" PRIu64 " not as it was sent",
                  client->conn, entry->kind, entry->serial.number);
    if (entry->rival != 0 && entry->rival != client->conn && stays(chaos, entry->rival))
        violation(chaos, "client %" PRIu64 " got question %" PRIu64 " of a worker, which could be"
                  " for %" PRIu64 " as well", client->conn, entry->serial.number, entry->rival);
    if (entry->conn != client->conn && stays(chaos, entry->conn))
        violation(chaos, "client %" PRIu64 " got message '%c' %" PRIu64 " (session %s), which is"
                  " for %" PRIu64, client->conn, entry->kind, entry->serial.number,
                  entry->session != NULL ? entry->session->name : "-", entry->conn);
    check_sequence(chaos, client, entry);
    worker = fleet_find(&chaos->fleet, entry->worker);
    if (worker != NULL)
        check_bound(chaos, worker, client->conn);
    if (entry->to_all && entry->conn == 0)
        return; /* the next one may get it, too */
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
        violation(chaos, "client %" PRIu64 " got a question after the worker was told that it does"
                  " not answer", client->conn);
    else if (entry->kind != WIRE_QUESTION || entry->resolved)
        ledger_remove(&chaos->ledger, entry);
}

/* --- errors of the daemon's --- */

enum refusal {
    REFUSED,
    REFUSED_SECOND, /* another with its id is in flight */
    REFUSED_BUSY    /* every worker of its pool serves another client */
};

static enum refusal refusal_of(const char *text)
{
    static const char busy[] = "every worker serves";

    if (strcmp(text, "id is already in use by a request of yours that is still in flight") == 0)
        return REFUSED_SECOND;
    return strncmp(text, busy, sizeof busy - 1) == 0 ? REFUSED_BUSY : REFUSED;
}

/* The request that an error is about: the oldest with that id, which is the one that the daemon
 * has; or the next. One that is refused for want of a worker is rather for a pool where the client
 * has none, which it may have got when it reads this. */
static struct entry *find_request(const struct client *client, const char *key,
                                  enum refusal refusal)
{
    uint64_t hash = wire_key_hash(key);
    struct list_node *node, *following;
    struct entry *bound = NULL;

    list_each(&client->given_up, node, following) {
        struct entry *entry = list_entry(node, struct entry, in_flight);

        if (entry->key == hash && !entry->resolved)
            return entry;
    }
    list_each(&client->in_flight, node, following) {
        struct entry *entry = list_entry(node, struct entry, in_flight);

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

static const char *worker_exit_excuse(const struct chaos *chaos, const struct client *client,
                                      const struct entry *request)
{
    const struct incarnation *worker = fleet_find(&chaos->fleet, request->worker);

    if (worker == NULL)
        return chaos->fleet.dooms + chaos->fleet.stalls > 0 ? NULL : "no worker ever exited";
    if (!fleet_may_be_gone(chaos, worker) && !client->profile.loose)
        return "its worker has no reason to exit";
    if (request->answer != 0 && worker->left && !worker->unclean)
        return "its worker answered and exited in order";
    return NULL;
}

/* Why this error is wrong, or NULL. */
static const char *find_fault(const struct chaos *chaos, const struct client *client,
                              const struct entry *request, const struct wire_error *error)
{
    char sessions[80];
    static const char *const limits[] = {
        MAX_TEXT("too many pending requests (max_pending_requests", LIMIT_PENDING),
        MAX_TEXT("every worker serves another client (busy_timeout_sec", LIMIT_BUSY_SEC),
    };
    const char *text = error->text;

    if (request->calm)
        return "everything behaves";
    if (strcmp(text, "no such pool") == 0)
        return error->code == -32602 && request->pool == POOL_UNKNOWN ? NULL : "there is";
    if (strcmp(text, "id is already in use by a request of yours that is still in flight") == 0)
        return error->code == -32600 ? NULL : "the code is wrong";
    if (error->code != -32000)
        return "the code is wrong";
    if (strcmp(text, "worker exited before answering") == 0)
        return worker_exit_excuse(chaos, client, request);
    if (request->got)
        return "a worker got it";
    if (strcmp(text, limits[0]) == 0)
        return NULL;
    snprintf(sessions, sizeof sessions, "too many sessions (max_sessions %u)",
             chaos_max_sessions(chaos));
    if (strcmp(text, sessions) == 0)
        return request->session != NULL ? NULL : "it is in no session";
    if (chaos_exclusive(chaos) && strcmp(text, limits[1]) == 0)
        return chaos->now_ms - request->sent_ms >= LIMIT_BUSY_SEC * 1000 - 20 ? NULL : "too early";
    if (strcmp(text, "id is still in use by another request that is in flight") == 0)
        return chaos->now_ms - request->sent_ms >= BACKPRESSURE_MS - 200 ? NULL : "too early";
    return "unknown text";
}

static void check_refusal(struct chaos *chaos, struct client *client,
                          const struct wire_error *error)
{
    struct entry *request = find_request(client, error->key, refusal_of(error->text));
    const char *fault;

    if (request == NULL) {
        violation(chaos, "client %" PRIu64 " got an error for id %s, which is not in flight: %s",
                  client->conn, error->key, error->text);
        return;
    }
    fault = find_fault(chaos, client, request, error);
    if (fault != NULL)
        violation(chaos, "client %" PRIu64 " got error %d \"%s\" for request %" PRIu64
                  " (session %s): %s", client->conn, error->code, error->text,
                  request->serial.number, request->session != NULL ? request->session->name : "-",
                  fault);
    request->refused = strcmp(error->text, "worker exited before answering") != 0;
    resolve(client, request);
    chaos->stats.refused++;
    if (request->answer != 0) /* it was on its way in vain */
        note_event(chaos, "request %" PRIu64 " of client %" PRIu64 ": answered, and lost",
                   request->serial.number, client->conn);
}

/* An error with the id null: the daemon closes the connection. */
static void check_rejection(struct chaos *chaos, struct client *client,
                            const struct wire_error *error)
{
    if (client->bad_frames + client->odd_frames > 0 &&
        (error->code == -32700 || error->code == -32600)) {
        *(client->bad_frames > 0 ? &client->bad_frames : &client->odd_frames) -= 1;
        return;
    }
    if (client->lines == 1 && error->code == -32000 &&
        strcmp(error->text, MAX_TEXT("too many connections (max_connections", LIMIT_CONNECTIONS)) ==
            0 && chaos->phase != PHASE_CALM) {
        client->turned_away = true;
        client->silent = true;
        client_begin_going(client);
        chaos->stats.turned_away++;
    } else if (client->wanted_code != error->code || client->rejected ||
               strcmp(client->wanted_text, error->text) != 0) {
        violation(chaos, "client %" PRIu64 " got error %d \"%s\", should get \"%s\"", client->conn,
                  error->code, error->text,
                  client->wanted_code != 0 ? client->wanted_text : "none");
    }
    client->rejected = true;
}

void check_line(struct chaos *chaos, struct client *client, const char *line, size_t len)
{
    struct wire_header header;
    struct wire_error error;

    if (wire_parse(&header, line, len))
        check_message(chaos, client, line, len, &header);
    else if (!wire_parse_error(&error, line, len))
        violation(chaos, "client %" PRIu64 " got what nobody sent: %.*s", client->conn,
                  len < 200 ? (int)len : 200, line);
    else if (error.key[0] == '\0')
        check_rejection(chaos, client, &error);
    else
        check_refusal(chaos, client, &error);
}

/* --- the end of a connection --- */

/* Why the daemon should not have closed it, or NULL. */
static const char *find_closing_fault(const struct chaos *chaos, const struct client *client)
{
    if (client->turned_away)
        return NULL;
    if (client->profile.loose)
        return chaos->now_ms - client->opened_ms >= BACKPRESSURE_MS * 3 / 4
                   ? NULL
                   : "it had no time yet to find that the client does not read";
    if (client->in.len > 0)
        return "in the middle of a line";
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
        violation(chaos, "client %" PRIu64 " was disconnected (%s): %s", client->conn,
                  error != 0 ? strerror(error) : "end of input", fault);
}
