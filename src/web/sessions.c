#include "build_config.h"

#include "web/sessions.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/siphash.h"
#include "bus/client_limits.h"
#include "bus/deliver.h"
#include "bus/depart.h"
#include "bus/listeners.h"
#include "bus/notifier.h"
#include "bus/origins.h"
#include "bus/reports.h"
#include "process/pool.h"
#include "router/affinity.h"
#include "router/router_archive.h"
#include "router/shares.h"
#include "router/waiting.h"
#include "web/lines.h"

#define EVENTS_MAX 1024 /* that are kept for a session */

static const struct message_id no_id;

static struct http_session *session_of(struct list_node *node)
{
    return list_entry(node, struct http_session, link);
}

/* --- the table --- */

static bool has_id(const void *item, const void *key)
{
    const struct http_session *session = item;

    return memcmp(session->id, key, HTTP_SESSION_ID_LEN) == 0;
}

struct http_session *http_sessions_find(const struct http_hub *hub, struct slice id)
{
    if (id.data == NULL || id.len != HTTP_SESSION_ID_LEN)
        return NULL;
    return hash_table_find(&hub->by_id, siphash(&hub->key, id.data, id.len), has_id, id.data);
}

/* --- its end --- */

static void free_session(void *user_data)
{
    struct http_session *session = user_data;

    http_stream_free(session->general);
    http_lines_clear(session);
    free(session);
}

/* The connections whose messages were not taken continue: what was not answered by then finds no
 * session any more. */
static void release_held(struct http_session *session)
{
    struct list_node *node;

    while ((node = list_take_first(&session->held)) != NULL)
        http_hub_note(session->hub, &list_entry(node, struct http_exchange, held)->due);
}

static void release_exchanges(struct http_session *session)
{
    struct list_node *node;

    while ((node = list_take_first(&session->exchanges)) != NULL)
        list_entry(node, struct http_exchange, in_session)->session = NULL;
}

static void end_streams(struct http_session *session)
{
    while (!list_empty(&session->streams)) {
        struct http_stream *stream = list_entry(session->streams.head.next, struct http_stream,
                                                link);

        if (!stream->over) {
            http_stream_give_up(stream, "the session has ended");
            continue;
        }
        http_stream_finish(stream);
        http_stream_free(stream);
    }
    http_stream_finish(session->general);
    event_stream_clear(&session->general->events); /* kept for no client any more */
}

void http_sessions_end(struct http_session *session, const char *reason)
{
    struct http_hub *hub = session->hub;
    struct stdio_bus *bus = hub->bus;
    struct endpoint *endpoint = &session->endpoint;

    if (!list_linked(&session->link))
        return;
    log_repeated(bus->log, LOG_LEVEL_INFO, endpoint->context, LOG_NO_SOURCE, "session ended: %s",
                 reason);
    reports_session_gone(endpoint, reason);
    session->ending = reason;
    list_remove(&session->link);
    list_remove(&session->rest);
    hash_table_remove(&hub->by_id, session->hash, session);
    hub->session_count--;
    bus->client_count--;
    session->log.forgets = NULL;
    depart_client(endpoint);
    client_limits_stop(endpoint);
    notifier_changed(bus);
    session->paused = false; /* the router holds it no more */
    session->holder = NULL;
    release_held(session);
    end_streams(session);
    release_exchanges(session);
    list_remove(&session->due.node);
    stdio_bus_event_loop_stop_timer(bus->loop, &session->idle);
    origins_release(endpoint->peer.origin);
    stdio_bus_event_loop_defer(bus->loop, &session->deferred, free_session, session);
    bus->end_noted = true;
}

static void idle_over(void *user_data)
{
    struct http_session *session = user_data;
    struct stdio_bus *bus = session->hub->bus;
    int64_t idle_ms = (int64_t)bus->options.config->limits.session_idle_sec * 1000;
    int64_t left_ms = session->used_ms + idle_ms - stdio_bus_event_loop_now_ms(bus->loop);

    if (session->in_flight > 0 || !list_empty(&session->exchanges))
        left_ms = idle_ms;
    if (left_ms > 0)
        stdio_bus_event_loop_start_timer(bus->loop, &session->idle, left_ms);
    else
        http_sessions_end(session, "nothing came for session_idle_sec");
}

static void act_on_session(struct http_due *due)
{
    struct http_session *session = list_entry(due, struct http_session, due);

    if (session->ending != NULL)
        http_sessions_end(session, session->ending);
    else
        http_session_run(session);
}

/* --- its beginning --- */

/* An event of a stream that was not written is lost. */
static void forgets(void *user_data, const struct event *event)
{
    struct http_session *session = user_data;
    const struct http_stream *stream = list_entry(event->stream, struct http_stream, events);

    if (event->number <= stream->written)
        return;
    if (event->asks)
        http_lines_refuse(session, event);
    log_repeated(session->hub->bus->log, LOG_LEVEL_WARN, session->endpoint.context, LOG_NO_SOURCE,
                 "a message for a stream that nobody reads is dropped: too many are kept");
}

static bool make_id(struct http_session *session)
{
    unsigned char bytes[(HTTP_SESSION_ID_LEN + HTTP_STREAM_TAG_LEN) / 2];
    char text[HTTP_SESSION_ID_LEN + HTTP_STREAM_TAG_LEN + 1];

    if (!random_bytes(bytes, sizeof bytes))
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    memcpy(session->id, text, HTTP_SESSION_ID_LEN);
    memcpy(session->tag, text + HTTP_SESSION_ID_LEN, HTTP_STREAM_TAG_LEN);
    return true;
}

static struct http_session *make_session(struct http_hub *hub)
{
    size_t limits = client_limits_size(hub->bus);
    struct http_session *session = calloc(1, sizeof *session + limits);

    if (session == NULL)
        return NULL;
    http_session_init(session);
    session->endpoint.limits = limits > 0 ? (struct client_limits *)(session + 1) : NULL;
    session->hub = hub;
    session->due.act = act_on_session;
    event_log_init(&session->log, &hub->events, EVENTS_MAX,
                   hub->bus->options.config->limits.max_resume);
    session->log.forgets = forgets;
    session->log.user_data = session;
    session->general = http_stream_create(session, no_id, no_id);
    if (session->general != NULL)
        return session;
    free(session);
    return NULL;
}

static int list_session(struct http_session *session)
{
    struct http_hub *hub = session->hub;

    session->hash = siphash(&hub->key, session->id, HTTP_SESSION_ID_LEN);
    return hash_table_insert(&hub->by_id, session->hash, session);
}

static void enter_session(struct http_session *session)
{
    struct stdio_bus *bus = session->hub->bus;
    struct endpoint *endpoint = &session->endpoint;

    endpoint->bus = bus;
    endpoint->owes_answers = true;
    timer_init(&endpoint->hold_timer, deliver_hold_expired, endpoint);
    timer_init(&session->idle, idle_over, session);
    router_add_client(&bus->router, &endpoint->peer);
    list_append(&session->hub->sessions, &session->link);
    session->hub->session_count++;
    bus->client_count++;
    client_limits_start(endpoint, false);
}

static struct http_session *new_session(const struct http_exchange *http)
{
    struct http_session *session = make_session(http->hub);

    if (session == NULL)
        return NULL;
    session->pool = http->pool;
    session->listener = http->client->listener;
    session->token = http->token;
    session->names_itself = true;
    session->used_ms = stdio_bus_event_loop_now_ms(http->hub->bus->loop);
    if (make_id(session) && list_session(session) == STDIO_BUS_OK)
        return session;
    http_stream_free(session->general);
    free(session);
    return NULL;
}

/* The session is a client of the router, with the share of its client. */
static void begin_session(struct http_session *session, const struct client *client)
{
    struct stdio_bus *bus = session->hub->bus;
    struct endpoint *endpoint = &session->endpoint;

    enter_session(session);
    session->number = ++bus->clients.last_number;
    session->origin = client->visitor.origin;
    snprintf(endpoint->context, sizeof endpoint->context, "client=%u", session->number);
    endpoint->peer.origin = client->stream.endpoint.peer.origin;
    origins_hold(endpoint->peer.origin);
    event_log_set_owner(&session->log, origins_events(endpoint->peer.origin));
    router_admit_client(&bus->router, &endpoint->peer);
    if (session->pool != NULL)
        router_confine(&endpoint->peer, session->pool);
    notifier_changed(bus);
    stdio_bus_event_loop_start_timer(bus->loop, &session->idle,
                                     (int64_t)bus->options.config->limits.session_idle_sec * 1000);
    log_repeated(bus->log, LOG_LEVEL_INFO, endpoint->context, origin_name(&client->visitor.origin),
                 "session of %s: %s", client->stream.endpoint.context, client->visitor.origin.text);
    reports_session_came(endpoint, client->stream.endpoint.context);
}

struct http_session *http_sessions_add(const struct http_exchange *http, const char **problem)
{
    struct stdio_bus *bus = http->hub->bus;
    struct http_session *session;

    *problem = "too many connections and sessions (max_connections)";
    if (!shares_left_of_connections(&bus->router, bus->client_count,
                                    http->client->stream.endpoint.peer.origin))
        return NULL;
    *problem = "out of memory";
    session = new_session(http);
    if (session != NULL)
        begin_session(session, http->client);
    return session;
}

/* --- all of them --- */

bool http_sessions_use(const struct http_hub *hub, const struct bus_listener *listener)
{
    struct list_node *node, *following;

    list_each(&hub->sessions, node, following) {
        if (list_entry(node, struct http_session, link)->listener == listener)
            return true;
    }
    return false;
}

void http_sessions_end_revoked(struct http_hub *hub, const struct bus_listener *listener)
{
    struct list_node *node, *following;

    list_each(&hub->sessions, node, following) {
        struct http_session *session = session_of(node);

        if (session->listener == listener && session->token != 0 &&
            !tokens_has(&listener->tokens, session->token))
            http_sessions_end(session, "its token is no longer valid");
    }
}

struct endpoint *http_sessions_newest(const struct http_hub *hub, const struct peer_origin *origin,
                                      const struct group *pool)
{
    struct list_node *node;

    for (node = hub->sessions.head.prev; node != &hub->sessions.head; node = node->prev) {
        struct endpoint *endpoint = &session_of(node)->endpoint;

        if (endpoint->peer.origin == origin && shares_has_process(pool, &endpoint->peer))
            return endpoint;
    }
    return NULL;
}

void http_sessions_stop_input(struct http_hub *hub)
{
    struct list_node *node, *following;

    list_each(&hub->sessions, node, following) {
        struct http_session *session = session_of(node);

        if (!session->paused)
            continue;
        waiting_leave(&hub->bus->router, &session->endpoint.peer);
        deliver_resume(&session->endpoint.peer);
    }
}

void http_sessions_close(struct http_hub *hub)
{
    while (!list_empty(&hub->sessions))
        http_sessions_end(session_of(hub->sessions.head.next), "shutting down");
}

/* --- idle sessions give way --- */

/* A session between two requests of its client looks idle for this long at least. */
#define REST_MS 2000

#define REASON "it was idle, and gave way to another client"

/* --- sessions --- */

static int64_t rests_for_ms(const struct http_session *session)
{
    return stdio_bus_event_loop_now_ms(session->hub->bus->loop) - session->used_ms;
}

static struct http_session *resting_session(struct list_node *node)
{
    return list_entry(node, struct http_session, rest);
}

void yield_connection(struct http_hub *hub, const struct peer_origin *origin)
{
    const struct stdio_bus *bus = hub->bus;
    struct list_node *node, *following;

    if (shares_left_of_connections(&bus->router, bus->client_count, origin))
        return;
    list_each(&hub->resting, node, following) {
        struct http_session *session = resting_session(node);

        if (rests_for_ms(session) < REST_MS)
            return;
        if (session->in_flight > 0 || session->endpoint.peer.origin != origin)
            continue;
        http_sessions_end(session, REASON);
        return;
    }
}

static void look_again(struct http_hub *hub, int64_t after_ms)
{
    if (!timer_started(&hub->yields))
        stdio_bus_event_loop_start_timer(hub->bus->loop, &hub->yields, after_ms);
}

/* A client that waits for a process. */
struct need {
    const struct group *pool;
    const struct peer_origin *origin;
    size_t before; /* clients that come first */
};

static bool gives_way(const struct http_session *session, const struct need *need)
{
    const struct peer_origin *origin = session->endpoint.peer.origin;

    return session->in_flight == 0 &&
           affinity_worker(&session->endpoint.peer, need->pool) != NULL &&
           (origin == need->origin ||
            shares_processes(need->pool, origin) >
                shares_processes(need->pool, need->origin) + need->before);
}

/* False: no idle session has a process for the client. */
static bool yield_process(struct http_hub *hub, const struct need *need)
{
    struct list_node *node, *following;

    list_each(&hub->resting, node, following) {
        struct http_session *session = resting_session(node);

        if (!gives_way(session, need))
            continue;
        if (rests_for_ms(session) >= REST_MS) {
            http_sessions_end(session, REASON);
            return true;
        }
        look_again(hub, REST_MS - rests_for_ms(session));
        return false;
    }
    return false;
}

/* --- pools --- */

#define NEEDS_MAX 32 /* in one round */

/* Notes the clients of the list that wait beyond the processes that are coming. */
static size_t find_needs(struct need needs[NEEDS_MAX], size_t count, const struct group *pool,
                         const struct list *waiting, size_t *coming)
{
    const struct list_node *node;

    for (node = waiting->head.next; node != &waiting->head && count < NEEDS_MAX;
         node = node->next) {
        if (*coming > 0)
            --*coming;
        else
            needs[count++] = (struct need){.pool = pool,
                                           .origin = list_entry(node, struct peer, hold)->origin};
    }
    return count;
}

/* The end of a session releases all clients that wait for the pool. */
static void yield_of_pool(struct http_hub *hub, struct group *pool)
{
    size_t coming = shares_coming(pool), count, i;
    struct need needs[NEEDS_MAX];

    if (pool->mode.clients != CLIENTS_EXCLUSIVE)
        return;
    count = find_needs(needs, 0, pool, &pool->waiting, &coming);
    if (pool->other_era != NULL)
        count = find_needs(needs, count, pool, &pool->other_era->waiting, &coming);
    for (i = 0; i < count; i++) {
        needs[i].before = i;
        if (!yield_process(hub, &needs[i]))
            hub->wanted = true;
    }
}

void yield_processes(struct http_hub *hub)
{
    struct list_node *node, *following;

    hub->wanted = false;
    list_each(&hub->bus->pools, node, following)
        yield_of_pool(hub, &list_entry(node, struct pool, link)->group);
}

/* --- the archive --- */

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

static void archive_endpoint(struct router_archive *state, struct stdio_bus *bus,
                             struct endpoint *endpoint)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct endpoint, since_ms, held_since_ms),
        ARCHIVE_FLAGS(struct endpoint, blocks_itself),
        ARCHIVE_TEXTS(struct endpoint, context),
    };
    struct archive *archive = state->archive;

    timer_archive(archive, bus->loop, &endpoint->hold_timer);
    ARCHIVE_FIELDS(archive, endpoint, fields);
    origins_archive(archive, bus, &endpoint->peer.origin);
    archive_expect(archive, endpoint->peer.origin != NULL, "a session has no origin");
    if (!archive_ok(archive))
        return;
    router_archive_peer(state, &endpoint->peer);
    client_limits_archive(archive, endpoint);
    if (archive_loads(archive))
        router_admit_client(&bus->router, &endpoint->peer);
}

struct sessions_archive {
    struct router_archive *state;
    struct http_hub *hub;
};

static void archive_session(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field identity[] = {
        ARCHIVE_INTEGERS(struct http_session, number, token),
        ARCHIVE_TEXTS(struct http_session, id, tag),
    };
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct http_session, traffic, used_ms),
        ARCHIVE_FLAGS(struct http_session, answered, names_itself, primes, paused),
    };
    struct sessions_archive *sessions = owner;
    struct stdio_bus *bus = sessions->hub->bus;
    struct http_session *session = item != NULL ? item : make_session(sessions->hub);

    if (!archive_made(archive, session != NULL))
        return;
    archive_mark(archive, "session");
    ARCHIVE_FIELDS(archive, session, identity);
    origin_archive(archive, &session->origin);
    listeners_archive_one(archive, bus, &session->listener);
    if (!archive->saves) {
        archive_done(archive, list_session(session));
        enter_session(session);
    }
    if (!archive_ok(archive))
        return;
    router_archive_group(sessions->state, &session->pool);
    ARCHIVE_FIELDS(archive, session, fields);
    timer_archive(archive, bus->loop, &session->idle);
    http_streams_archive(archive, session);
    http_lines_archive(archive, session);
    archive_endpoint(sessions->state, bus, &session->endpoint);
    if (archive_loads(archive))
        event_log_set_owner(&session->log, origins_events(session->endpoint.peer.origin));
}

static void archive_event(struct archive *archive, void *owner, void *item)
{
    struct event *event = item;
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
    session = http_sessions_archive_one(archive, owner, stream != NULL ? stream->session : NULL);
    if (session != NULL)
        stream = http_stream_archive_one(archive, session, stream);
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
    if (!archive_made(archive, event != NULL))
        return;
    event->asks = asks;
    memcpy(event->data, data.data, data.len);
}

void http_sessions_archive(struct router_archive *state, struct http_hub *hub)
{
    struct sessions_archive sessions = {.state = state, .hub = hub};

    ARCHIVE_LIST(state->archive, &hub->sessions, struct http_session, link, archive_session,
                 &sessions);
    ARCHIVE_LIST(state->archive, &hub->events.events, struct event, in_memory, archive_event, hub);
}

/* --- the archive of messages that wait for their session --- */

static const struct client *client_numbered(struct stdio_bus *bus, unsigned number)
{
    struct list_node *node, *following;

    list_each(&bus->clients.list, node, following) {
        const struct client *client = client_at(node);

        if (client->visitor.number == number)
            return client;
    }
    return NULL;
}

static void archive_held(struct archive *archive, void *owner, void *item)
{
    struct http_session *session = owner;
    struct http_exchange *http = item;
    unsigned number = http != NULL ? http->client->visitor.number : 0;
    const struct client *client;

    ARCHIVE_INTEGER(archive, number);
    if (archive->saves)
        return;
    client = client_numbered(session->hub->bus, number);
    http = client != NULL ? client->http : NULL;
    if (http == NULL || http->session != session || list_linked(&http->held))
        archive_fail(archive, "a session waits for another client");
    else
        list_append(&session->held, &http->held);
}

static void archive_held_list(struct archive *archive, struct http_session *session)
{
    bool is_held = archive_present(archive, session->holder != NULL);

    ARCHIVE_LIST(archive, &session->held, struct http_exchange, held, archive_held, session);
    archive_expect(archive, !is_held || !list_empty(&session->held),
                   "a session is paused, and no message waits for it");
    if (archive_loads(archive) && is_held)
        session->holder = list_entry(session->held.head.next, struct http_exchange, held);
}

void http_sessions_archive_held(struct archive *archive, struct http_hub *hub)
{
    struct list_node *node, *following;

    archive_mark(archive, "held");
    list_each(&hub->sessions, node, following) {
        struct http_session *session = list_entry(node, struct http_session, link);

        archive_held_list(archive, session);
        if (!archive->saves)
            http_session_rest(session);
    }
}
