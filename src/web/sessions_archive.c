#include "build_config.h"

#include "web/sessions_archive.h"

#include "base/error.h"
#include "bus/client_limits.h"
#include "bus/listeners.h"
#include "bus/origins.h"
#include "event/timer_archive.h"
#include "transport/connection_archive.h"
#include "web/lines.h"
#include "web/sessions.h"

#define NO_MEMORY "out of memory"

static const struct message_id no_id;

/* --- references --- */

struct http_session *http_sessions_archive_one(struct archive *archive, struct http_hub *hub,
                                               struct http_session *session)
{
    struct slice id = slice_of(NULL, 0);

    if (session != NULL)
        id = slice_of(session->id, HTTP_SESSION_ID_LEN);
    id = archive_slice(archive, id);
    if (archive->saves)
        return session;
    session = http_sessions_find(hub, id);
    archive_expect(archive, id.data == NULL || session != NULL,
                   "the state names a session that is not there");
    return session;
}

struct http_stream *http_sessions_archive_stream(struct archive *archive,
                                                 struct http_session *session,
                                                 const struct http_stream *saved)
{
    unsigned number = saved != NULL ? saved->number : 0;
    struct list_node *node, *following;

    ARCHIVE_INTEGER(archive, number);
    if (number == 0)
        return session->general;
    list_each(&session->streams, node, following) {
        struct http_stream *stream = list_entry(node, struct http_stream, link);

        if (stream->number == number)
            return stream;
    }
    archive_fail(archive, "the state names a stream that is not there");
    return NULL;
}

/* --- streams --- */

static void archive_id(struct archive *archive, struct message_id *id)
{
    bool is_there = id->type != ID_NONE;

    archive_flag(archive, &is_there);
    if (is_there)
        router_archive_id(archive, id);
}

static void archive_progress(struct archive *archive, struct http_stream *stream)
{
    ARCHIVE_INTEGER(archive, stream->number);
    ARCHIVE_INTEGER(archive, stream->events.last);
    ARCHIVE_INTEGER(archive, stream->events.forgotten);
    ARCHIVE_INTEGER(archive, stream->written);
    archive_flag(archive, &stream->begun);
    archive_flag(archive, &stream->over);
}

static void load_stream(struct archive *archive, struct http_session *session, struct message_id id,
                        struct message_id token)
{
    struct http_stream *stream;

    archive_expect(archive, id.type != ID_NONE, "a stream has no request");
    if (!archive_ok(archive))
        return;
    stream = http_stream_create(session, id, token);
    if (stream == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    archive_progress(archive, stream);
    if (stream->over)
        session->in_flight--;
}

static void archive_stream(struct archive *archive, struct http_session *session,
                           struct http_stream *stream)
{
    struct message_id id = stream != NULL ? stream->id : no_id;
    struct message_id token = stream != NULL ? stream->token : no_id;

    archive_id(archive, &id);
    archive_id(archive, &token);
    if (archive->saves)
        archive_progress(archive, stream);
    else
        load_stream(archive, session, id, token);
}

/* How many are over is known at their end: before, none would be forgotten. */
static void archive_streams(struct archive *archive, struct http_session *session)
{
    size_t count = archive_count(archive, list_count(&session->streams)), all = count;
    struct list_node *node = session->streams.head.next;

    archive_progress(archive, session->general);
    for (; count > 0 && archive_ok(archive); count--)
        archive_stream(archive, session, ARCHIVE_NEXT(archive, node, struct http_stream, link));
    if (!archive->saves)
        session->kept = all - session->in_flight;
    ARCHIVE_INTEGER(archive, session->last_stream);
}

/* --- sessions --- */

/* What makes it known. */
static void archive_identity(struct archive *archive, struct stdio_bus *bus,
                             struct http_session *session)
{
    archive_mark(archive, "session");
    ARCHIVE_INTEGER(archive, session->number);
    archive_text(archive, session->id, sizeof session->id);
    archive_text(archive, session->tag, sizeof session->tag);
    origin_archive(archive, &session->origin);
    listeners_archive_one(archive, bus, &session->listener);
    ARCHIVE_INTEGER(archive, session->token);
}

static void archive_state(struct archive *archive, struct http_session *session)
{
    traffic_archive(archive, &session->traffic);
    archive_flag(archive, &session->answered);
    archive_flag(archive, &session->names_itself);
    archive_flag(archive, &session->primes);
    archive_flag(archive, &session->paused);
    ARCHIVE_INTEGER(archive, session->used_ms);
    timer_archive(archive, session->hub->bus->loop, &session->idle);
}

static void archive_endpoint(struct router_archive *state, struct stdio_bus *bus,
                             struct endpoint *endpoint)
{
    struct archive *archive = state->archive;

    timer_archive(archive, bus->loop, &endpoint->hold_timer);
    ARCHIVE_INTEGER(archive, endpoint->since_ms);
    ARCHIVE_INTEGER(archive, endpoint->held_since_ms);
    archive_flag(archive, &endpoint->blocks_itself);
    archive_text(archive, endpoint->context, sizeof endpoint->context);
    origins_archive(archive, bus, &endpoint->peer.origin);
    archive_expect(archive, endpoint->peer.origin != NULL, "a session has no origin");
    if (!archive_ok(archive))
        return;
    router_archive_peer(state, &endpoint->peer);
    client_limits_archive(archive, endpoint);
    if (!archive->saves && archive_ok(archive))
        router_admit_client(&bus->router, &endpoint->peer);
}

static void archive_rest(struct router_archive *state, struct stdio_bus *bus,
                         struct http_session *session)
{
    router_archive_group(state, &session->pool);
    archive_state(state->archive, session);
    archive_streams(state->archive, session);
    http_lines_archive(state->archive, session);
    archive_endpoint(state, bus, &session->endpoint);
    if (!state->archive->saves && archive_ok(state->archive))
        event_log_set_owner(&session->log, origins_events(session->endpoint.peer.origin));
}

static void load_session(struct router_archive *state, struct http_hub *hub)
{
    struct stdio_bus *bus = hub->bus;
    struct http_session *session = http_sessions_make(hub);

    if (session == NULL) {
        archive_fail(state->archive, NO_MEMORY);
        return;
    }
    archive_identity(state->archive, bus, session);
    if (http_sessions_list(session) != STDIO_BUS_OK)
        archive_fail(state->archive, NO_MEMORY);
    http_sessions_enter(session);
    if (archive_ok(state->archive))
        archive_rest(state, bus, session);
}

/* --- the events of all sessions, in their order --- */

static void archive_event(struct archive *archive, struct http_hub *hub, struct event *event)
{
    struct http_stream *stream = NULL;
    struct http_session *session;
    struct slice data = slice_of(NULL, 0);
    uint32_t number = 0;
    bool asks = false;

    if (event != NULL) {
        stream = list_entry(event->stream, struct http_stream, events);
        data = slice_of(event->data, event->len);
        number = event->number;
        asks = event->asks;
    }
    session = http_sessions_archive_one(archive, hub, stream != NULL ? stream->session : NULL);
    if (session != NULL)
        stream = http_sessions_archive_stream(archive, session, stream);
    ARCHIVE_INTEGER(archive, number);
    archive_flag(archive, &asks);
    data = archive_slice(archive, data);
    if (archive->saves)
        return;
    if (!archive_ok(archive) || stream == NULL || data.data == NULL) {
        archive_fail(archive, "an event has no stream");
        return;
    }
    event = event_log_restore(&stream->events, number, data.len);
    if (event == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    event->asks = asks;
    memcpy(event->data, data.data, data.len);
}

static void archive_events(struct archive *archive, struct http_hub *hub)
{
    size_t count = archive_count(archive, list_count(&hub->events.events));
    struct list_node *node = hub->events.events.head.next;

    for (; count > 0 && archive_ok(archive); count--)
        archive_event(archive, hub, ARCHIVE_NEXT(archive, node, struct event, in_memory));
}

void http_sessions_archive(struct router_archive *state, struct http_hub *hub)
{
    struct archive *archive = state->archive;
    size_t count = archive_count(archive, hub->session_count);
    struct list_node *node, *following;

    if (archive->saves) {
        list_each(&hub->sessions, node, following) {
            struct http_session *session = list_entry(node, struct http_session, link);

            archive_identity(archive, hub->bus, session);
            archive_rest(state, hub->bus, session);
        }
    } else {
        for (; count > 0 && archive_ok(archive); count--)
            load_session(state, hub);
    }
    archive_events(archive, hub);
}

/* --- messages that wait for their session --- */

static const struct client *client_numbered(struct stdio_bus *bus, unsigned number)
{
    struct list_node *node, *following;

    list_each(&bus->clients, node, following) {
        const struct client *client = list_entry(node, struct client, link);

        if (client->number == number)
            return client;
    }
    return NULL;
}

static void archive_held(struct archive *archive, struct stdio_bus *bus,
                         struct http_session *session, struct http_exchange *http)
{
    unsigned number = http != NULL ? http->client->number : 0;
    const struct client *client;

    ARCHIVE_INTEGER(archive, number);
    if (archive->saves)
        return;
    client = client_numbered(bus, number);
    http = client != NULL ? client->http : NULL;
    if (http == NULL || http->session != session || list_linked(&http->held))
        archive_fail(archive, "a session waits for another client");
    else
        list_append(&session->held, &http->held);
}

static void archive_held_list(struct archive *archive, struct stdio_bus *bus,
                              struct http_session *session)
{
    size_t count = archive_count(archive, list_count(&session->held));
    struct list_node *node = session->held.head.next;
    bool is_held = session->holder != NULL;

    archive_flag(archive, &is_held);
    for (; count > 0 && archive_ok(archive); count--)
        archive_held(archive, bus, session,
                     ARCHIVE_NEXT(archive, node, struct http_exchange, held));
    archive_expect(archive, !is_held || !list_empty(&session->held),
                   "a session is paused, and no message waits for it");
    if (!archive->saves && is_held && archive_ok(archive))
        session->holder = list_entry(session->held.head.next, struct http_exchange, held);
}

void http_sessions_archive_held(struct archive *archive, struct http_hub *hub)
{
    struct list_node *node, *following;

    archive_mark(archive, "held");
    list_each(&hub->sessions, node, following) {
        struct http_session *session = list_entry(node, struct http_session, link);

        if (archive_ok(archive))
            archive_held_list(archive, hub->bus, session);
        if (!archive->saves)
            http_session_rest(session);
    }
}
