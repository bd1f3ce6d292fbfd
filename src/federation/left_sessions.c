#include "build_config.h"

#include "federation/left_sessions.h"

#include "bus/clients.h"
#include "bus/deliver.h"
#include "router/affinity.h"
#include "json/text.h"

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

void left_sessions_tell(struct placement *placement, const struct session *session)
{
    struct endpoint *to = endpoint_of_peer(session->worker);
    struct json_text line = {.data = NULL};

    (void)placement;
    if (!session->worker->is_link || !peer_serves(session->worker))
        return;
    row_begin(&line, NULL, '{');
    row_string(&line, "jsonrpc", "2.0");
    row_string(&line, "method", PLACEMENT_LEFT_METHOD);
    row_slice(&line, "sessionId", session_id(session));
    row_end(&line, '}');
    json_text_literal(&line, "\n");
    if (line.failed || deliver_line(to, json_text_slice(&line)) != STDIO_BUS_OK)
        log_error(((struct stdio_bus *)to->bus)->log, to->context,
                  "out of memory: a session stays at another node");
    json_text_free(&line);
}

void left_sessions_init(struct placement *placement)
{
    *placement =
        (struct placement){.find = find_none, .began = begin_anywhere, .left = left_sessions_tell};
}

/* --- the serving node --- */

static void end_session(struct endpoint *from, struct slice id)
{
    struct stdio_bus *bus = from->bus;
    struct sessions *sessions = &bus->router.sessions;
    const struct peer *worker = affinity_worker(&from->peer, from->peer.opened);
    struct session *session = worker != NULL ? sessions_find_scoped(sessions, worker, id)
                                             : sessions_find(sessions, id);

    if (session != NULL && session->owner == &from->peer)
        session_remove(sessions, session);
}

static void read_message(struct endpoint *from, const struct message *message)
{
    if (placement_says_left(message))
        end_session(from, message->session_id);
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
const struct stream_handler left_sessions_handler = {
    .message = read_message,
    .long_message = read_long,
    .unacceptable = read_other,
};
