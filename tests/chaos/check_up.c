#include "build_config.h"

#include "check_up.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "chaos.h"
#include "check_bound.h"

#define RECORDS_PER_READ 512

static struct incarnation *worker_of(struct chaos *chaos, const struct record *record)
{
    struct incarnation *worker = fleet_find(&chaos->fleet, record->origin);

    if (worker == NULL)
        violation(chaos, "record of a worker %u that never started", record->pid);
    return worker;
}

/* --- what a worker got --- */

static void check_order(struct chaos *chaos, const struct incarnation *worker,
                        const struct entry *entry)
{
    struct pair *pair = ledger_pair(&chaos->ledger, worker->origin, entry->conn);

    if (entry->serial.number <= pair->up)
        violation(chaos,
                  "order: worker %ld got message %" PRIu64 " of client %" PRIu64 " after %" PRIu64,
                  (long)worker->pid, entry->serial.number, entry->conn, pair->up);
    pair->up = entry->serial.number;
}

static bool was_bound_to(const struct session *session, const struct incarnation *worker)
{
    unsigned i;

    for (i = 0; i < SESSION_BEFORE; i++) {
        if (session->before[i] == worker->origin)
            return true;
    }
    return false;
}

/* A message in a session has reached this worker. */
static void check_binding(struct chaos *chaos, struct session *session,
                          const struct incarnation *worker, const struct entry *entry)
{
    const struct incarnation *bound;

    if (session->loose || worker->doomed != 0 || session->worker == worker->origin ||
        was_bound_to(session, worker))
        return;
    bound = fleet_find(&chaos->fleet, session->worker);
    if (session->worker != 0 && bound != NULL && !fleet_may_be_gone(chaos, bound)) {
        if (session->endings == 0)
            violation(chaos, "session %s went from worker %ld to %ld, though nobody ended it",
                      session->name, (long)bound->pid, (long)worker->pid);
        else
            session->endings--;
    }
    session->before[session->moves++ % SESSION_BEFORE] = session->worker;
    session->worker = worker->origin;
    session->owner = entry->conn; /* the first message is what bound it */
}

static bool same_id(const struct list_node *node, const struct entry *entry)
{
    return list_entry(node, struct entry, at_worker)->seen_id == entry->seen_id;
}

static void open_request(struct chaos *chaos, struct incarnation *worker, struct entry *entry)
{
    struct list_node *node, *following;

    list_each(&worker->open, node, following) {
        if (same_id(node, entry))
            violation(chaos, "two requests with one id are in flight at worker %ld: %" PRIu64
                      " and %" PRIu64, (long)worker->pid,
                      list_entry(node, struct entry, at_worker)->serial.number,
                      entry->serial.number);
    }
    list_append(&worker->open, &entry->at_worker);
    if (entry->refused)
        violation(chaos, "worker %ld got request %" PRIu64 ", which the daemon had refused",
                  (long)worker->pid, entry->serial.number);
}

static void check_reply(struct chaos *chaos, const struct incarnation *worker,
                        const struct entry *reply)
{
    struct entry *question = ledger_find(&chaos->ledger, reply->ref);

    if (reply->ref.origin != worker->origin)
        violation(chaos, "worker %ld got a reply to a question of another worker's",
                  (long)worker->pid);
    else if (question == NULL)
        violation(chaos, "worker %ld got a reply to its question %" PRIu64
                  ", which is not open any more", (long)worker->pid, reply->ref.number);
    else
        ledger_remove(&chaos->ledger, question);
}

/* A cancellation has the id that its request has here, and what it gives up for good is not
 * answered any more: else the daemon would not have passed it on. */
static void check_cancel(struct chaos *chaos, const struct incarnation *worker,
                         const struct entry *cancel, uint64_t named_id)
{
    struct entry *request = ledger_find(&chaos->ledger, cancel->ref);

    if (request == NULL)
        return; /* answered meanwhile */
    if (request->worker != worker->origin || request->seen_id != named_id)
        violation(chaos, "worker %ld got a cancellation of request %" PRIu64
                  ", and it is not that which it names", (long)worker->pid,
                  request->serial.number);
    if (wire_cancels_for_good)
        request->resolved = true;
}

void check_given_up(struct chaos *chaos, const struct entry *request)
{
    struct pair *pair = ledger_pair(&chaos->ledger, request->worker, request->conn);
    struct list_node *node, *following;

    list_each(&pair->expected, node, following) {
        const struct entry *entry = list_entry(node, struct entry, expected);

        if (entry->ref.origin == 0 && entry->ref.number == request->serial.number)
            list_remove(node);
    }
}

/* The daemon gives up a request of a client that has left. */
static void cancelled(struct chaos *chaos, struct incarnation *worker,
                      const struct record *record)
{
    struct list_node *node, *following;

    if (!chaos_sticky(chaos) || chaos->options.sharing.protocol == PROTOCOL_UNKNOWN)
        violation(chaos, "worker %ld got a cancellation of the daemon's", (long)worker->pid);
    list_each(&worker->open, node, following) {
        struct entry *request = list_entry(node, struct entry, at_worker);

        if (request->seen_id != record->key)
            continue;
        if (client_stays(client_find(chaos, request->conn)))
            violation(chaos, "worker %ld was told that request %" PRIu64 " of client %" PRIu64
                      " is given up", (long)worker->pid, request->serial.number, request->conn);
        if (record->detail == 1)
            list_remove(node);
        return;
    }
}

static void got(struct chaos *chaos, struct incarnation *worker, const struct record *record)
{
    struct entry *entry = ledger_find(&chaos->ledger, record->serial);

    chaos->stats.got++;
    if (entry == NULL || entry->got) {
        violation(chaos, "worker %ld got message '%c' %" PRIu64 ", which %s", (long)worker->pid,
                  record->kind, record->serial.number,
                  entry == NULL ? "is not on its way" : "another worker has got already");
        return;
    }
    if (entry->hash != record->hash || entry->len != record->len)
        violation(chaos, "worker %ld got message %" PRIu64 " not as it was sent (%u for %zu bytes)",
                  (long)worker->pid, record->serial.number, record->len, entry->len);
    if (entry->pool == POOL_UNKNOWN ||
        (entry->pool != POOL_ANY && entry->pool != worker->pool + 1))
        violation(chaos, "worker %ld got message %" PRIu64 " for pool %d", (long)worker->pid,
                  record->serial.number, entry->pool - 1);
    check_order(chaos, worker, entry);
    check_bound(chaos, worker, entry->conn);
    entry->got = true;
    entry->worker = worker->origin;
    entry->seen_id = record->key;
    if (entry->session != NULL && chaos_sticky(chaos))
        check_heard_of(chaos, worker, entry);
    else if (entry->session != NULL && !chaos_binds(chaos))
        check_binding(chaos, entry->session, worker, entry);
    if (entry->kind == WIRE_REQUEST) {
        open_request(chaos, worker, entry);
        return;
    }
    if (entry->kind == WIRE_REPLY)
        check_reply(chaos, worker, entry);
    else if (entry->kind == WIRE_CANCEL)
        check_cancel(chaos, worker, entry, record->key);
    ledger_remove(&chaos->ledger, entry);
}

/* The daemon says that a question gets no reply. */
static void got_error(struct chaos *chaos, const struct incarnation *worker,
                      const struct record *record)
{
    struct entry *question = ledger_find(&chaos->ledger, record->serial);
    bool unroutable = record->detail == QUESTION_UNROUTABLE ||
                      record->detail == QUESTION_NO_SESSION || record->detail == QUESTION_NOBODY;

    if (record->detail == QUESTION_UNKNOWN_TEXT || record->detail == QUESTION_DUPLICATE)
        violation(chaos, "worker %ld was told error %u about its question", (long)worker->pid,
                  record->detail);
    if (record->kind == WIRE_NOWHERE) {
        if (!unroutable)
            violation(chaos, "worker %ld asked nobody and was told error %u", (long)worker->pid,
                      record->detail);
        return;
    }
    if (question == NULL) {
        violation(chaos, "worker %ld was told error %u about a question that is not open",
                  (long)worker->pid, record->detail);
        return;
    }
    if (question->calm)
        violation(chaos, "worker %ld was told error %u about a question of a calm phase",
                  (long)worker->pid, record->detail);
    if (unroutable && (question->session != NULL || chaos_exclusive(chaos)) &&
        question->conn != 0 && client_stays(client_find(chaos, question->conn)))
        violation(chaos, "worker %ld was told error %u about a question to client %" PRIu64,
                  (long)worker->pid, record->detail, question->conn);
    if (question->got && record->detail != QUESTION_DISCONNECTED &&
        record->detail != QUESTION_INPUT_CLOSED)
        violation(chaos, "worker %ld was told error %u about a question that the client got",
                  (long)worker->pid, record->detail);
    if (question->got || question->calm || record->detail != QUESTION_DISCONNECTED) {
        ledger_remove(&chaos->ledger, question);
        return;
    }
    /* A client that has closed its input may find it among what it still gets. */
    question->resolved = true;
    list_remove(&question->at_worker);
}

/* --- what a worker says --- */

/* The connection that must get an event or question, as far as that is certain. */
static uint64_t owner_of(const struct chaos *chaos, const struct session *session,
                         struct incarnation *worker)
{
    const struct client *owner;

    if (chaos_binds(chaos))
        return check_listener(chaos, worker, session);
    if (session->loose || session->worker != worker->origin || session->owner == 0)
        return 0;
    owner = client_find(chaos, session->owner);
    return owner != NULL && !owner->going ? owner->conn : 0;
}

static void expect(struct chaos *chaos, struct entry *entry, uint64_t conn)
{
    entry->conn = conn;
    list_append(&ledger_pair(&chaos->ledger, entry->worker, conn)->expected, &entry->expected);
}

static void say_answer(struct chaos *chaos, struct incarnation *worker, struct entry *answer,
                       const char *session)
{
    struct entry *request = ledger_find(&chaos->ledger, answer->ref);

    if (request == NULL)
        return; /* its client is told already that there will be no answer */
    list_remove(&request->at_worker);
    request->answer = answer->serial.number;
    if (request->resolved || client_find(chaos, request->conn) == NULL)
        return;
    if (!request->given_up || !wire_cancels_for_good)
        expect(chaos, answer, request->conn);
    if (wire_session_in_params && request->session == NULL && session[0] != '\0')
        check_learned(chaos, worker, session, request->conn);
}

static void say_progress(struct chaos *chaos, struct entry *progress)
{
    const struct entry *request = ledger_find(&chaos->ledger, progress->ref);

    if (request != NULL && !request->resolved && client_find(chaos, request->conn) != NULL &&
        !(request->given_up && wire_cancels_for_good))
        expect(chaos, progress, request->conn);
}

static void say_question(struct chaos *chaos, struct incarnation *worker, struct entry *question)
{
    uint64_t owner = owner_of(chaos, question->session, worker);

    list_append(&worker->questions, &question->at_worker);
    chaos->stats.questions++;
    if (question->session == NULL && chaos_sticky(chaos))
        check_askers(chaos, worker, question);
    else if (question->calm && owner != 0)
        expect(chaos, question, owner);
    else if (chaos_binds(chaos)) /* it may be refused, but goes to nobody else */
        question->conn = owner;
}

static void say_event(struct chaos *chaos, struct incarnation *worker, struct entry *event,
                      bool calm)
{
    uint64_t owner = owner_of(chaos, event->session, worker);

    if (owner != 0)
        expect(chaos, event, owner);
    if (event->session != NULL || !chaos_sticky(chaos))
        return;
    event->to_all = true;
    check_to_all(chaos, worker, event, calm);
}

/* One of whom it is not certain what becomes of it. */
static bool is_uncertain(const struct chaos *chaos, const struct record *record)
{
    if (record->kind == WIRE_ANSWER) /* its request is what counts */
        return true;
    return chaos_sticky(chaos) && record->name[0] == '\0' && record->kind != WIRE_PROGRESS;
}

static void say(struct chaos *chaos, struct incarnation *worker, const struct record *record)
{
    bool calm = chaos->phase == PHASE_CALM;
    struct entry *entry;

    chaos->stats.said++;
    if (record->kind == WIRE_NOWHERE ||
        (record->ref.number == 0 &&
         (record->kind == WIRE_ANSWER || record->kind == WIRE_PROGRESS)))
        return; /* unknown to the ledger: whoever gets it should not have */
    entry = ledger_add(&chaos->ledger, record->serial, (char)record->kind,
                       calm && !is_uncertain(chaos, record));
    entry->ref = record->ref;
    entry->hash = record->hash;
    entry->key = record->key;
    entry->len = record->len;
    entry->worker = worker->origin;
    entry->sent_ms = chaos->now_ms;
    if (record->name[0] != '\0' && entry->kind != WIRE_ANSWER)
        entry->session = ledger_session(&chaos->ledger, record->name);
    if (entry->kind == WIRE_ANSWER)
        say_answer(chaos, worker, entry, record->name);
    else if (entry->kind == WIRE_PROGRESS)
        say_progress(chaos, entry);
    else if (entry->kind == WIRE_QUESTION)
        say_question(chaos, worker, entry);
    else
        say_event(chaos, worker, entry, calm);
}

/* --- what a worker does --- */

static void termed(struct chaos *chaos, struct incarnation *worker, const char *how)
{
    bool left = fleet_client_left(chaos, worker);
    bool ours = worker->termed || worker->doomed == 'i' || worker->doomed == 'x' ||
                worker->doomed == 'p';

    if (chaos->phase == PHASE_END)
        return;
    if (worker->doomed == 0 && !left && !fleet_may_be_gone(chaos, worker))
        violation(chaos, "the daemon %s worker %ld without a reason", how, (long)worker->pid);
    fleet_doom(chaos, worker, 's', !ours);
}

static void handle(struct chaos *chaos, const struct record *record)
{
    struct incarnation *worker;

    if (record->type == RECORD_HELLO) {
        fleet_add(chaos, record);
        return;
    }
    worker = worker_of(chaos, record);
    if (worker == NULL)
        return;
    switch (record->type) {
    case RECORD_GOT:
        got(chaos, worker, record);
        break;
    case RECORD_GOT_ERROR:
        got_error(chaos, worker, record);
        break;
    case RECORD_CANCELLED:
        cancelled(chaos, worker, record);
        break;
    case RECORD_BAD:
        violation(chaos, "worker %ld got %.*s", (long)worker->pid, WIRE_NAME_MAX, record->name);
        break;
    case RECORD_SAY:
        say(chaos, worker, record);
        break;
    case RECORD_DOOM:
        fleet_doom(chaos, worker, (char)record->detail,
                   strchr("gcXk", record->detail) != NULL);
        break;
    case RECORD_STALL:
        fleet_stall(chaos, worker, record->len);
        break;
    case RECORD_TERM:
        termed(chaos, worker, "terminated");
        break;
    case RECORD_EOF:
        if (record->len > 0)
            note_event(chaos, "worker %ld: stdin ended within a line", (long)worker->pid);
        termed(chaos, worker, "closed the stdin of");
        break;
    default: /* RECORD_EXIT */
        worker->left = true;
        worker->unclean |= record->detail == 0;
        note_event(chaos, "worker %ld leaves%s", (long)worker->pid,
                   record->detail == 0 ? ", not all was written" : "");
        break;
    }
}

void check_up_drain(struct chaos *chaos)
{
    struct record records[RECORDS_PER_READ];
    ssize_t got;
    size_t i;

    /* Whole records: each was written with all its bytes at once. */
    while ((got = read(chaos->journal, records, sizeof records)) > 0) {
        for (i = 0; i < (size_t)got / sizeof records[0]; i++)
            handle(chaos, &records[i]);
        if ((size_t)got < sizeof records)
            break;
    }
}
