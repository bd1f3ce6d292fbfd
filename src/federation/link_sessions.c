#include "build_config.h"

#include "federation/link_sessions.h"

#include "bus/clients.h"
#include "bus/deliver.h"
#include "process/worker.h"
#include "router/affinity.h"

/* --- the asking node --- */

static bool find_none(struct placement *placement, struct group *pool, struct slice id,
                      struct place *place)
{
    (void)placement;
    (void)pool;
    (void)id;
    (void)place;
    return true;
}

static void begin_anywhere(struct placement *placement, struct session *session)
{
    (void)placement;
    (void)session;
}

#define TOLD(method) "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"sessionId\":"
#define TOLD_MAX (6 * STDIO_BUS_MAX_SESSION_ID_LEN + 128) /* each byte may become an escape */

static void tell(const struct session *session, const char *told)
{
    struct endpoint *to = endpoint_of_peer(session->worker);
    const struct worker *link = list_entry(to, struct worker, stream.endpoint);
    const struct message_id id = {.type = ID_STRING, .text = session_id(session)};
    char line[TOLD_MAX];
    size_t len;

    if (!session->worker->is_link || !peer_serves(session->worker) || link->output_ended)
        return;
    len = message_write_around(line, sizeof line, told, id, "}\n");
    ASSERT(len > 0);
    if (deliver_line(to, slice_of(line, len)) != STDIO_BUS_OK)
        log_error(((struct stdio_bus *)to->bus)->log, to->context,
                  "out of memory: another node does not hear of a session's client");
}

void link_sessions_left(struct placement *placement, const struct session *session)
{
    (void)placement;
    tell(session, TOLD(PLACEMENT_LEFT_METHOD));
}

void link_sessions_joined(const struct session *session)
{
    tell(session, TOLD(PLACEMENT_JOINED_METHOD));
}

void link_sessions_init(struct placement *placement)
{
    *placement =
        (struct placement){.find = find_none, .began = begin_anywhere, .left = link_sessions_left};
}

/* --- the serving node --- */

static struct session *find_session(struct endpoint *from, struct slice id)
{
    struct stdio_bus *bus = from->bus;
    struct sessions *sessions = &bus->router.sessions;
    const struct peer *worker = affinity_worker(&from->peer, from->peer.opened);

    return worker != NULL ? sessions_find_scoped(sessions, worker, id)
                          : sessions_find(sessions, id);
}

static void end_session(struct endpoint *from, struct slice id)
{
    struct session *session = find_session(from, id);
    struct stdio_bus *bus = from->bus;

    if (session != NULL && session->owner == &from->peer)
        session_remove(&bus->router.sessions, session);
}

/* From another link of the same node: origins of links are nodes. */
static void give_session(struct endpoint *from, struct slice id)
{
    struct session *session = find_session(from, id);

    if (session != NULL && session->owner->is_link && session->owner->origin == from->peer.origin)
        session_give(session, &from->peer);
}

static void read_message(struct endpoint *from, const struct message *message)
{
    if (placement_says_left(message))
        end_session(from, message->session_id);
    else if (placement_says_joined(message))
        give_session(from, message->session_id);
    else
        clients_handler_of(from->bus)->message(from, message);
}

static void read_long(struct endpoint *from, const struct message *message)
{
    clients_handler_of(from->bus)->long_message(from, message);
}

static void read_other(struct stream *stream, const struct message *message,
                       enum message_problem problem)
{
    clients_handler.unacceptable(stream, message, problem);
}

/* The reports of the connection are those of all clients. */
const struct stream_handler link_sessions_handler = {
    .message = read_message,
    .long_message = read_long,
    .unacceptable = read_other,
};
