#include "build_config.h"

#include "check_up.h"

#include <string.h>
#include <unistd.h>

#include "chaos.h"
#include "check_bound.h"

#define RECORDS_PER_READ 512

/* --- messages to workers --- */

static void check_order(struct chaos *chaos, const struct incarnation *worker,
                        const struct entry *entry)
{
    struct pair *pair = ledger_pair(&chaos->ledger, worker->origin, entry->conn);

    if (entry->serial.number <= pair->up)
        worker_violation(chaos, worker, "got message %llu of client %llu after %llu",
                         entry->serial.number, entry->conn, pair->up);
    pair->up = entry->serial.number;
}

static bool was_bound_to(const struct session *session, const struct incarnation *worker)
{
    for (unsigned i = 0; i < SESSION_BEFORE; i++) {
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
    if (session->worker != 0 && bound != NULL && !fleet_may_fail(chaos, bound) && !bound->slept) {
        if (session->endings == 0)
            worker_violation(chaos, bound,
                             "lost session %s to worker %ld, though no client ended it",
                             session->name, (long)worker->pid);
        else
            session->endings--;
    }
    if (wire_session_in_params)
        return;
    session->before[session->moves++ % SESSION_BEFORE] = session->worker;
    session->worker = worker->origin;
    session->owner = entry->conn; /* the first message binds the session */
}

static void open_request(struct chaos *chaos, struct incarnation *worker, struct entry *entry)
{
    each_entry(const struct entry, other, &worker->open, at_worker) {
        if (other->seen_id == entry->seen_id)
            worker_violation(chaos, worker, "has two requests with one id: %llu and %llu",
                             other->serial.number, entry->serial.number);
    }
    list_append(&worker->open, &entry->at_worker);
    if (entry->refused)
        worker_violation(chaos, worker, "got request %llu, which the daemon had refused",
                         entry->serial.number);
}

static void check_reply(struct chaos *chaos, const struct incarnation *worker,
                        const struct entry *reply)
{
    struct entry *question = ledger_find(&chaos->ledger, reply->ref);

    if (reply->ref.origin != worker->origin)
        worker_violation(chaos, worker, "got a reply to a question of another worker's");
    else if (question == NULL)
        worker_violation(chaos, worker,
                         "got a reply to its question %llu, which is not open any more",
                         reply->ref.number);
    else
        ledger_remove(&chaos->ledger, question);
}

/* A cancellation names its request by the id that the worker knows. A request cancelled for good
 * gets no answer. */
static void check_cancel(struct chaos *chaos, const struct incarnation *worker,
                         const struct entry *cancel, unsigned long long named_id)
{
    struct entry *request = ledger_find(&chaos->ledger, cancel->ref);

    if (request == NULL)
        return; /* already answered */
    if (request->worker != worker->origin || request->seen_id != named_id)
        worker_violation(chaos, worker,
                         "got a cancellation of request %llu, and it is not that which it names",
                         request->serial.number);
    if (wire_cancels_for_good)
        request->resolved = true;
}

void check_given_up(struct chaos *chaos, const struct entry *request)
{
    struct pair *pair = ledger_pair(&chaos->ledger, request->worker, request->conn);

    each_entry(struct entry, entry, &pair->expected, expected) {
        if (entry->ref.origin == 0 && entry->ref.number == request->serial.number)
            list_remove(&entry->expected);
    }
}

/* The daemon cancels the request of a client that has left. */
static void cancelled(struct chaos *chaos, struct incarnation *worker, const struct record *record)
{
    if (chaos_exclusive(chaos) || chaos->options.mode.protocol == PROTOCOL_UNKNOWN)
        worker_violation(chaos, worker, "got a cancellation from the daemon");
    each_entry(struct entry, request, &worker->open, at_worker) {
        if (request->seen_id != record->key)
            continue;
        if (client_stays(chaos, request->conn))
            worker_violation(chaos, worker,
                             "got a cancellation of request %llu of client %llu, which stays",
                             request->serial.number, request->conn);
        if (record->detail == 1)
            list_remove(&request->at_worker);
        return;
    }
}

static void got(struct chaos *chaos, struct incarnation *worker, const struct record *record)
{
    struct entry *entry = ledger_find(&chaos->ledger, record->serial);

    chaos->stats.got++;
    if (entry == NULL || entry->got) {
        worker_violation(chaos, worker, "got message '%c' %llu, which %s", record->kind,
                         record->serial.number,
                         entry == NULL ? "is not on its way" : "another worker has got already");
        return;
    }
    if (entry->hash != record->hash || entry->len != record->len)
        worker_violation(chaos, worker, "got message %llu not as it was sent (%u for %zu bytes)",
                         record->serial.number, record->len, entry->len);
    if (entry->pool == POOL_UNKNOWN || (entry->pool != POOL_ANY && entry->pool != worker->pool + 1))
        worker_violation(chaos, worker, "got message %llu for pool %d", record->serial.number,
                         entry->pool - 1);
    check_order(chaos, worker, entry);
    check_bound(chaos, worker, entry->conn);
    entry->got = true;
    entry->worker = worker->origin;
    entry->seen_id = record->key;
    handshake_check(chaos, worker, entry);
    if (entry->session != NULL && chaos_sticky(chaos))
        check_session_seen(chaos, worker, entry);
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

/* The reason why a question must not get this error, or NULL. question == NULL: it is not open. */
static const char *find_error_fault(const struct chaos *chaos, const struct entry *question,
                                    const struct record *record)
{
    enum question_error error = (enum question_error)record->detail;
    bool unroutable = error == QUESTION_UNROUTABLE || error == QUESTION_NO_SESSION ||
                      error == QUESTION_NOBODY;

    if (error == QUESTION_UNKNOWN_TEXT || error == QUESTION_DUPLICATE)
        return "no question gets it";
    if (error == QUESTION_SHUTDOWN)
        return chaos->phase == PHASE_END ? NULL : "it is not";
    if (error == QUESTION_UNFETCHED) /* it was for a session of a hostile client */
        return chaos->phase == PHASE_SIEGE ? NULL : "no client leaves its answers";
    if (record->kind == WIRE_NOWHERE)
        return unroutable ? NULL : "the question was for no client";
    if (question == NULL)
        return "the question is not open";
    if (unroutable && wire_session_in_params && question->session != NULL && question->conn == 0)
        return NULL; /* the session is one of another worker */
    if (question->calm)
        return "the phase is calm";
    if (unroutable && (question->session != NULL || chaos_exclusive(chaos)) &&
        client_stays(chaos, question->conn))
        return "the client of the question is there";
    if (question->got && error != QUESTION_DISCONNECTED && error != QUESTION_INPUT_CLOSED)
        return "the client got the question";
    return NULL;
}

/* The daemon refused a question. */
static void got_error(struct chaos *chaos, const struct incarnation *worker,
                      const struct record *record)
{
    struct entry *question = ledger_find(&chaos->ledger, record->serial);
    const char *fault = find_error_fault(chaos, question, record);

    if (fault != NULL)
        worker_violation(chaos, worker, "got error %u for a question: %s", record->detail, fault);
    if (record->kind == WIRE_NOWHERE || question == NULL)
        return;
    if (question->got || question->calm || record->detail != QUESTION_DISCONNECTED) {
        ledger_remove(&chaos->ledger, question);
        return;
    }
    /* A client that has closed its input may still receive the question. */
    question->resolved = true;
    list_remove(&question->at_worker);
}

/* --- messages from workers --- */

/* The connection that must get an event or question; 0: uncertain. */
static unsigned long long owner_of(const struct chaos *chaos, const struct session *session,
                                   struct incarnation *worker)
{
    const struct client *owner;

    if (chaos_binds(chaos))
        return check_receiver(chaos, worker, session);
    if (session->loose || session->worker != worker->origin || session->owner == 0)
        return 0;
    owner = client_find(chaos, session->owner);
    return owner != NULL && !owner->going ? owner->conn : 0;
}

static void expect(struct chaos *chaos, struct entry *entry, unsigned long long conn)
{
    entry->conn = conn;
    list_append(&ledger_pair(&chaos->ledger, entry->worker, conn)->expected, &entry->expected);
}

static void say_answer(struct chaos *chaos, struct incarnation *worker, struct entry *answer,
                       const char *session)
{
    struct entry *request = ledger_find(&chaos->ledger, answer->ref);

    if (request == NULL)
        return; /* its client has already got an error */
    list_remove(&request->at_worker);
    request->answer = answer->serial.number;
    if (request->resolved || client_find(chaos, request->conn) == NULL)
        return;
    if (!request->given_up || !wire_cancels_for_good)
        expect(chaos, answer, request->conn);
    if (wire_session_in_params && request->session == NULL && session[0] != '\0')
        check_session_named(chaos, worker, session, request->conn);
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
    unsigned long long owner = owner_of(chaos, question->session, worker);

    list_append(&worker->questions, &question->at_worker);
    chaos->stats.questions++;
    if (question->session == NULL && chaos_sticky(chaos))
        check_askers(chaos, worker, question);
    else if (question->calm && owner != 0)
        expect(chaos, question, owner);
    else if (chaos_binds(chaos)) /* the daemon may refuse it; no other client may get it */
        question->conn = owner;
}

static void say_event(struct chaos *chaos, struct incarnation *worker, struct entry *event,
                      bool calm)
{
    unsigned long long owner = owner_of(chaos, event->session, worker);

    if (owner != 0)
        expect(chaos, event, owner);
    else if (event->session != NULL && wire_session_in_params)
        ledger_excuse(&chaos->ledger, event); /* of a session of another worker: it goes nowhere */
    if (event->session != NULL || !chaos_sticky(chaos))
        return;
    event->to_all = true;
    check_to_all(chaos, worker, event, calm);
}

/* A message that need not reach a certain client. */
static bool is_uncertain(const struct chaos *chaos, const struct record *record)
{
    if (record->kind == WIRE_ANSWER) /* the entry of its request is calm */
        return true;
    return chaos_sticky(chaos) && record->name[0] == '\0' && record->kind != WIRE_PROGRESS;
}

static void say(struct chaos *chaos, struct incarnation *worker, const struct record *record)
{
    bool calm = chaos_calm(chaos);
    struct entry *entry;

    chaos->stats.said++;
    if (record->kind == WIRE_NOWHERE ||
        (wire_stateless && record->kind == WIRE_EVENT && record->name[0] == '\0') ||
        (record->ref.number == 0 && (record->kind == WIRE_ANSWER || record->kind == WIRE_PROGRESS)))
        return; /* unknown to the ledger: it must not arrive */
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

/* --- acts of workers --- */

static void termed(struct chaos *chaos, struct incarnation *worker, const char *how)
{
    bool left = fleet_client_left(chaos, worker);
    bool ours = worker->termed || worker->doomed == 'i' || worker->doomed == 'x' ||
                worker->doomed == 'p';

    if (chaos->phase == PHASE_END)
        return;
    if (chaos->options.lazy && list_empty(&worker->open) && list_empty(&worker->questions)) {
        worker->slept = true;
        chaos->stats.sleeps++;
        note_event(chaos, "worker %ld: to sleep", (long)worker->pid);
        return;
    }
    if (worker->doomed == 0 && !left && !fleet_may_be_gone(chaos, worker))
        violation(chaos, "the daemon %s worker %ld without a reason", how, (long)worker->pid);
    else if (!left && !fleet_may_fail(chaos, worker))
        worker->renewed = true;
    if (worker->renewed && worker->doomed == 0)
        note_event(chaos, "worker %ld: renewed", (long)worker->pid);
    else
        fleet_doom(chaos, worker, 's', !ours);
}

static void handle(struct chaos *chaos, const struct record *record)
{
    struct incarnation *worker;

    if (record->type == RECORD_HELLO) {
        fleet_add(chaos, record);
        return;
    }
    worker = fleet_find(&chaos->fleet, record->origin);
    if (worker == NULL) {
        violation(chaos, "record of a worker %u that never started", record->pid);
        return;
    }
    switch (record->type) {
    case RECORD_GOT:
        got(chaos, worker, record);
        break;
    case RECORD_HANDSHAKE:
        handshake_seen(chaos, worker, record);
        break;
    case RECORD_GOT_ERROR:
        got_error(chaos, worker, record);
        break;
    case RECORD_CANCELLED:
        cancelled(chaos, worker, record);
        break;
    case RECORD_BAD:
        worker_violation(chaos, worker, "got %.*s", WIRE_NAME_MAX, record->name);
        break;
    case RECORD_SAY:
        say(chaos, worker, record);
        break;
    case RECORD_DOOM:
        fleet_doom(chaos, worker, (char)record->detail, strchr("gcXk", record->detail) != NULL);
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

    /* Whole records: each batch was one atomic write. */
    while ((got = read(chaos->journal, records, sizeof records)) > 0) {
        for (size_t i = 0; i < (size_t)got / sizeof records[0]; i++)
            handle(chaos, &records[i]);
        if ((size_t)got < sizeof records)
            break;
    }
}
