#include "build_config.h"

#include "check_bound.h"

#include "chaos.h"

/* --- bindings --- */

void check_bound(struct chaos *chaos, struct incarnation *worker, unsigned long long conn)
{
    struct client *client = client_find(chaos, conn);
    struct incarnation *before;

    if (!chaos_binds(chaos))
        return;
    if (chaos_exclusive(chaos) && worker->client != 0 && worker->client != conn)
        worker_violation(chaos, worker, "serves client %llu, and has served %llu", conn,
                         worker->client);
    worker->client = conn;
    if (client == NULL || ledger_pair(&chaos->ledger, worker->origin, conn)->bound)
        return;
    before = fleet_find(&chaos->fleet, client->bound[worker->pool]);
    if (chaos_ends_clients(chaos) && client->bound[worker->pool] != 0 &&
        client->bound[worker->pool] != worker->origin)
        worker_violation(chaos, worker, "serves client %llu, whose process has exited", conn);
    if (before != NULL && before != worker && fleet_may_be_gone(chaos, worker))
        return; /* perhaps a late message of the process before */
    if (!client->asked[worker->pool])
        violation(chaos,
                  "client %llu is served by worker %ld of pool %u, where it has asked"
                  " nothing",
                  conn, (long)worker->pid, worker->pool);
    if (before != NULL && !fleet_may_be_gone(chaos, before))
        violation(chaos, "client %llu went from worker %ld to %ld", conn, (long)before->pid,
                  (long)worker->pid);
    else if (before != NULL)
        fleet_replaced(chaos, before, worker);
    client->bound[worker->pool] = worker->origin;
    ledger_pair(&chaos->ledger, worker->origin, conn)->bound = true;
}

/* --- sessions --- */

void check_session_seen(const struct chaos *chaos, struct incarnation *worker,
                        const struct entry *entry)
{
    struct session *session = ledger_session_in(&worker->sessions, entry->session->name);

    if (session->owner == 0 && wire_session_in_params)
        return; /* of a process that is gone: no client owns it here */
    if (session->owner == 0)
        session->owner = entry->conn;
    if (!client_stays(chaos, session->owner)) /* the daemon may see its end at any time */
        session->loose = true;
}

void check_session_named(struct chaos *chaos, struct incarnation *worker, const char *name,
                         unsigned long long conn)
{
    struct session *session = chaos_sticky(chaos) ? ledger_session_in(&worker->sessions, name)
                                                  : ledger_session(&chaos->ledger, name);

    session->worker = worker->origin;
    session->owner = conn;
    session->loose = !client_stays(chaos, conn);
}

/* --- events and questions --- */

unsigned long long check_receiver(const struct chaos *chaos, struct incarnation *worker,
                                  const struct session *session)
{
    const struct session *known;
    unsigned long long conn = worker->client;

    if (chaos_sticky(chaos)) {
        if (session == NULL)
            return 0;
        known = ledger_session_in(&worker->sessions, session->name);
        conn = known->loose ? 0 : known->owner;
    }
    return client_stays(chaos, conn) ? conn : 0;
}

/* The daemon knows that the client awaits this answer. (A client that does not read sees the end of
 * its connection late.) */
static bool awaits_answer(const struct chaos *chaos, const struct entry *request)
{
    const struct client *client = client_find(chaos, request->conn);

    return !request->resolved && !request->given_up && client_stays(chaos, request->conn) &&
           client->profile.reading == READING_FAST;
}

void check_askers(const struct chaos *chaos, const struct incarnation *worker,
                  struct entry *question)
{
    each_entry(const struct entry, request, &worker->open, at_worker) {
        if (request->conn == question->conn || !awaits_answer(chaos, request))
            continue;
        if (question->conn != 0)
            question->rival = request->conn;
        question->conn = request->conn;
    }
}

void check_to_all(struct chaos *chaos, const struct incarnation *worker, const struct entry *event,
                  bool calm)
{
    each_client(client, chaos) {
        struct entry *copy;

        if (!client_stays(chaos, client->conn) || client->bound[worker->pool] != worker->origin)
            continue;
        copy = ledger_add(&chaos->ledger, event->serial, event->kind, calm);
        copy->hash = event->hash;
        copy->len = event->len;
        copy->worker = event->worker;
        copy->conn = client->conn;
        copy->to_all = true;
        list_append(&ledger_pair(&chaos->ledger, worker->origin, client->conn)->expected,
                    &copy->expected);
    }
}
