#include "build_config.h"

#include "check_bound.h"

#include <inttypes.h>

#include "chaos.h"

/* --- bindings --- */

void check_bound(struct chaos *chaos, struct incarnation *worker, uint64_t conn)
{
    const struct client *found = client_find(chaos, conn);
    struct client *client = found != NULL ? &chaos->clients[found - chaos->clients] : NULL;
    struct incarnation *before;

    if (!chaos_binds(chaos))
        return;
    if (chaos_exclusive(chaos) && worker->client != 0 && worker->client != conn)
        violation(chaos, "worker %ld serves client %" PRIu64 ", and has served %" PRIu64,
                  (long)worker->pid, conn, worker->client);
    worker->client = conn;
    if (client == NULL || ledger_pair(&chaos->ledger, worker->origin, conn)->bound)
        return;
    before = fleet_find(&chaos->fleet, client->bound[worker->pool]);
    if (before != NULL && before != worker && fleet_may_be_gone(chaos, worker))
        return; /* perhaps told late, by the process whose place that one took */
    if (!client->asked[worker->pool])
        violation(chaos, "client %" PRIu64 " is served by worker %ld of pool %u, where it has asked"
                  " nothing", conn, (long)worker->pid, worker->pool);
    if (before != NULL && !fleet_may_be_gone(chaos, before))
        violation(chaos, "client %" PRIu64 " went from worker %ld to %ld", conn, (long)before->pid,
                  (long)worker->pid);
    else if (before != NULL)
        fleet_replaced(chaos, before, worker);
    client->bound[worker->pool] = worker->origin;
    ledger_pair(&chaos->ledger, worker->origin, conn)->bound = true;
}

/* --- sessions --- */

static bool stays(const struct chaos *chaos, uint64_t conn)
{
    return client_stays(client_find(chaos, conn));
}

void check_heard_of(const struct chaos *chaos, struct incarnation *worker,
                    const struct entry *entry)
{
    struct session *session = ledger_session_in(&worker->sessions, entry->session->name);

    if (session->owner == 0)
        session->owner = entry->conn;
    if (!stays(chaos, session->owner)) /* who knows when the daemon sees it go */
        session->loose = true;
}

void check_learned(struct chaos *chaos, struct incarnation *worker, const char *name,
                   uint64_t conn)
{
    struct session *session = chaos_sticky(chaos) ? ledger_session_in(&worker->sessions, name)
                                                  : ledger_session(&chaos->ledger, name);

    session->worker = worker->origin;
    session->owner = conn;
    session->loose = !stays(chaos, conn);
}

/* --- what nobody asked for --- */

uint64_t check_listener(const struct chaos *chaos, struct incarnation *worker,
                        const struct session *session)
{
    const struct session *known;
    uint64_t conn = worker->client;

    if (chaos_sticky(chaos)) {
        if (session == NULL)
            return 0;
        known = ledger_session_in(&worker->sessions, session->name);
        conn = known->loose ? 0 : known->owner;
    }
    return stays(chaos, conn) ? conn : 0;
}

/* The daemon knows it as somebody who waits for this. It does not when it has closed the connection
 * of who does not read, of which that one knows nothing yet. */
static bool waits_for(const struct chaos *chaos, const struct entry *request)
{
    const struct client *client = client_find(chaos, request->conn);

    return !request->resolved && !request->given_up && client_stays(client) &&
           client->profile.reading == READING_FAST;
}

void check_askers(const struct chaos *chaos, const struct incarnation *worker,
                  struct entry *question)
{
    struct list_node *node, *following;

    list_each(&worker->open, node, following) {
        const struct entry *request = list_entry(node, struct entry, at_worker);

        if (request->conn == question->conn || !waits_for(chaos, request))
            continue;
        if (question->conn != 0)
            question->rival = request->conn;
        question->conn = request->conn;
    }
}

void check_to_all(struct chaos *chaos, const struct incarnation *worker,
                  const struct entry *event, bool calm)
{
    size_t i;

    for (i = 0; i < CLIENTS_MAX; i++) {
        const struct client *client = &chaos->clients[i];
        struct entry *copy;

        if (!client_stays(client) || client->bound[worker->pool] != worker->origin)
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
