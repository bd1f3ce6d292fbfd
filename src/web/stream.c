#include "build_config.h"

#include "web/stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "bus/deliver.h"
#include "router/router_archive.h"
#include "router/waiting.h"
#include "json/param_fields.h"

#define EVENT_ID_MAX (HTTP_STREAM_TAG_LEN + 24)

static struct stdio_bus *bus_of(const struct http_stream *stream)
{
    return stream->session->hub->bus;
}

static const char *context(const struct http_stream *stream)
{
    return stream->session->endpoint.context;
}

/* --- from its creation to its end --- */

/* Of the streams that are over and may be resumed, the oldest are forgotten. */
static void forget_oldest(struct http_session *session)
{
    struct list_node *node, *following;

    list_each(&session->streams, node, following) {
        struct http_stream *old = list_entry(node, struct http_stream, link);

        if (session->kept <= HTTP_STREAMS_KEPT)
            return;
        if (old->over && old->http == NULL)
            http_stream_free(old);
    }
}

/* Copies the text of an id to the place, which moves on. */
static struct message_id keep_id(char **to, struct message_id id)
{
    struct message_id kept = {id.type, {*to, id.text.len}};

    if (id.text.len > 0)
        memcpy(*to, id.text.data, id.text.len);
    *to += id.text.len;
    return kept;
}

struct http_stream *http_stream_create(struct http_session *session, struct message_id id,
                                       struct message_id token)
{
    struct http_stream *stream = calloc(1, sizeof *stream + id.text.len + token.text.len);
    char *text;

    if (stream == NULL)
        return NULL;
    forget_oldest(session);
    stream->session = session;
    event_stream_init(&stream->events, &session->log);
    if (id.type == ID_NONE)
        return stream;
    text = stream->text;
    stream->id = keep_id(&text, id);
    stream->token = keep_id(&text, token);
    stream->number = ++session->last_stream;
    list_append(&session->streams, &stream->link);
    session->in_flight++;
    return stream;
}

void http_stream_free(struct http_stream *stream)
{
    ASSERT(stream->http == NULL);
    if (list_linked(&stream->link)) {
        if (stream->over)
            stream->session->kept--;
        else
            stream->session->in_flight--;
    }
    list_remove(&stream->link);
    event_stream_clear(&stream->events);
    free(stream);
}

struct http_stream *http_stream_find(const struct http_session *session, struct message_id id)
{
    const struct list_node *node;

    for (node = session->streams.head.next; node != &session->streams.head; node = node->next) {
        struct http_stream *stream = list_entry(node, struct http_stream, link);

        if (!stream->over && message_id_equal(stream->id, id))
            return stream;
    }
    return NULL;
}

bool http_stream_waits(const struct http_stream *stream)
{
    const struct http_exchange *http = stream->http;

    return http != NULL && (list_linked(&http->held) || stream->session->holder == http);
}

static void note_over(struct http_stream *stream)
{
    stream->over = true;
    stream->session->in_flight--;
    stream->session->kept++;
}

/* --- its connection --- */

static void press(struct http_session *session, struct http_exchange *http, bool full)
{
    size_t before = session->pressing;

    if (http->presses == full)
        return;
    http->presses = full;
    session->pressing = full ? before + 1 : before - 1;
    if ((before == 0) != (session->pressing == 0))
        waiting_set_full(&session->hub->bus->router, &session->endpoint.peer, full);
}

void http_stream_press(struct http_stream *stream, bool full)
{
    press(stream->session, stream->http, full);
}

void http_stream_attach(struct http_stream *stream, struct http_exchange *http)
{
    ASSERT(stream->http == NULL && http->stream == NULL);
    stream->http = http;
    http->stream = stream;
    http->client->speaks_for = &stream->session->endpoint.peer;
    if (http_connection(http)->full)
        press(stream->session, http, true);
}

void http_stream_detach(struct http_stream *stream)
{
    struct http_exchange *http = stream->http;

    if (http == NULL)
        return;
    press(stream->session, http, false);
    http->client->speaks_for = NULL;
    stream->http = NULL;
    http->stream = NULL;
}

/* --- events --- */

static struct slice event_id(char text[EVENT_ID_MAX], const struct http_stream *stream,
                             uint32_t number)
{
    return slice_of(text, (size_t)snprintf(text, EVENT_ID_MAX, "%s-%u-%u", stream->session->tag,
                                           stream->number, (unsigned)number));
}

/* The client comes back with the last event that it has got. */
static void cut_stream(struct http_stream *stream)
{
    struct http_exchange *http = stream->http;

    log_error(bus_of(stream)->log, context(stream), "out of memory: a stream is cut");
    http->closes = true;
    http_exchange_done(http);
}

int http_stream_open(struct http_stream *stream)
{
    struct http_session *session = stream->session;
    char id[EVENT_ID_MAX];

    if (http_answer_begin_events(stream->http, session->names_itself ? session->id : NULL) !=
        STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    stream->begun = true;
    if (session->primes &&
        http_answer_empty_event(stream->http, event_id(id, stream, stream->written)) !=
            STDIO_BUS_OK)
        cut_stream(stream);
    return STDIO_BUS_OK;
}

/* The stream may be sent events: its client has begun to read it, or can. */
static bool takes_events(const struct http_stream *stream)
{
    return stream->begun || (stream->http != NULL && stream->http->reply != HTTP_REPLY_JSON);
}

static int add_event(struct http_stream *stream, const struct delivery *delivery, bool asks)
{
    struct slice bytes = slice_without_newline(delivery->bytes);
    struct event *event;
    size_t len;

    len = splice_len(bytes.len, delivery->edits, delivery->edit_count);
    event = event_log_add(&stream->events, len);
    if (event == NULL)
        return STDIO_BUS_ERR;
    splice_write(event->data, bytes.data, 0, bytes.len, delivery->edits, delivery->edit_count);
    splice_blank(event->data, len, '\n');
    splice_blank(event->data, len, '\r');
    event->asks = asks;
    return STDIO_BUS_OK;
}

/* The answer is not kept any more: its asker must not wait for it. */
static void replace_answer(struct http_stream *stream)
{
    char line[MESSAGE_ERROR_MAX];
    struct delivery delivery = {.bytes = {line, 0}};

    delivery.bytes.len = message_write_error(line, sizeof line, stream->id, JSONRPC_SERVER_ERROR,
                                             "the answer was not fetched in time");
    if (add_event(stream, &delivery, false) != STDIO_BUS_OK)
        log_error(bus_of(stream)->log, context(stream), "out of memory: an error reply was lost");
}

/* NULL: all was written. */
static const struct event *next_event(struct http_stream *stream)
{
    const struct event *event = event_log_after(&stream->events, stream->written);

    if (event != NULL || !stream->over || stream->written == stream->events.last)
        return event;
    replace_answer(stream);
    return event_log_after(&stream->events, stream->written);
}

static void write_event(struct http_stream *stream, const struct event *event)
{
    const struct delivery delivery = {.bytes = {event->data, event->len}};
    uint32_t number = event->number;
    char id[EVENT_ID_MAX];

    if ((stream->http->state != HTTP_STREAMING && http_stream_open(stream) != STDIO_BUS_OK) ||
        (stream->http != NULL &&
         http_answer_event(stream->http, event_id(id, stream, number), &delivery) != STDIO_BUS_OK))
        cut_stream(stream);
    else
        stream->written = number;
}

void http_stream_flow(struct http_stream *stream)
{
    const struct event *event;

    while (stream->http != NULL && !http_connection(stream->http)->full &&
           (event = next_event(stream)) != NULL)
        write_event(stream, event);
    if (stream->http != NULL && stream->over && stream->written == stream->events.last)
        http_answer_end(stream->http);
}

void http_stream_finish(struct http_stream *stream)
{
    const struct event *event;

    while (stream->http != NULL && (event = next_event(stream)) != NULL)
        write_event(stream, event);
    if (stream->http != NULL)
        http_answer_end(stream->http);
}

/* --- messages --- */

int http_stream_answer(struct http_session *session, struct message_id id,
                       const struct delivery *delivery)
{
    struct http_stream *stream = http_stream_find(session, id);
    struct http_exchange *http = stream != NULL ? stream->http : NULL;
    char field[HTTP_SESSION_ID_LEN + 32] = "";
    int result = STDIO_BUS_OK;

    if (stream == NULL)
        return STDIO_BUS_OK;
    if (http != NULL && http->state == HTTP_OWING && http->reply != HTTP_REPLY_EVENTS) {
        if (session->names_itself)
            snprintf(field, sizeof field, "Mcp-Session-Id: %s\r\n", session->id);
        result = http_answer_delivery(http, 200, delivery, slice_of_text(field));
        if (result == STDIO_BUS_OK)
            http_stream_free(stream);
    } else if (takes_events(stream)) {
        result = add_event(stream, delivery, false);
        if (result != STDIO_BUS_OK)
            return result;
        note_over(stream);
        http_stream_flow(stream);
    } else {
        http_stream_free(stream); /* its client has left, and cannot ask for it */
    }
    return result;
}

/* The only request in flight; NULL: there is none, or more than one, or no worker has it yet. */
static struct http_stream *only_one(const struct http_session *session)
{
    const struct list_node *node;

    if (session->in_flight != 1)
        return NULL;
    for (node = session->streams.head.next; node != &session->streams.head; node = node->next) {
        struct http_stream *stream = list_entry(node, struct http_stream, link);

        if (!stream->over)
            return http_stream_waits(stream) ? NULL : stream;
    }
    return NULL;
}

/* The stream of the request whose progress token the notification has; NULL: there is none. The
 * router reads no tokens in a pool whose processes have one client each. */
static struct http_stream *reported_one(const struct http_session *session,
                                        const struct delivery *delivery)
{
    const struct list_node *node;
    struct message_scratch scratch;
    struct param_fields fields;
    struct message_id token;

    param_fields_find(&fields, delivery->bytes, 0);
    if (!param_fields_has(&fields, PARAM_PROGRESS_TOKEN) ||
        message_read_id(&token, delivery->bytes, &fields.at[PARAM_PROGRESS_TOKEN], &scratch) !=
            MESSAGE_OK ||
        token.type == ID_NONE)
        return NULL;
    for (node = session->streams.head.next; node != &session->streams.head; node = node->next) {
        struct http_stream *stream = list_entry(node, struct http_stream, link);

        if (!stream->over && !http_stream_waits(stream) && message_id_equal(stream->token, token))
            return stream;
    }
    return NULL;
}

int http_stream_tell(struct http_session *session, const struct delivery_subject *subject,
                     const struct delivery *delivery)
{
    struct http_stream *stream = subject->about != NULL ? http_stream_find(session, *subject->about)
                                                        : only_one(session);
    int result;

    if (stream == NULL && subject->about == NULL && session->in_flight > 1)
        stream = reported_one(session, delivery);
    if (stream == NULL || !takes_events(stream))
        stream = session->general;
    result = add_event(stream, delivery, subject->asks);
    if (result == STDIO_BUS_OK)
        http_stream_flow(stream);
    return result;
}

void http_stream_give_up(struct http_stream *stream, const char *text)
{
    struct http_exchange *http = stream->http;
    char line[MESSAGE_ERROR_MAX];
    struct delivery delivery = {.bytes = {line, 0}};

    if (text != NULL) {
        delivery.bytes.len = message_write_error(line, sizeof line, stream->id,
                                                 JSONRPC_SERVER_ERROR, text);
        if (http_stream_answer(stream->session, stream->id, &delivery) == STDIO_BUS_OK)
            return;
        log_error(bus_of(stream)->log, context(stream), "out of memory: an error reply was lost");
    }
    note_over(stream);
    if (http != NULL && http->state == HTTP_OWING)
        http_answer_empty(http, 202, slice_of(NULL, 0));
    else if (http != NULL)
        http_answer_end(http);
    http_stream_free(stream);
}

/* --- resuming --- */

/* Takes a hyphen and at most nine digits from the front of the text. */
static bool take_number(struct slice *text, uint32_t *number)
{
    size_t len = 1;

    if (text->len < 2 || text->data[0] != '-')
        return false;
    for (*number = 0; len < text->len && text->data[len] >= '0' && text->data[len] <= '9'; len++)
        *number = *number * 10 + (uint32_t)(text->data[len] - '0');
    *text = slice_of(text->data + len, text->len - len);
    return len > 1 && len <= 10;
}

struct http_stream *http_stream_named(const struct http_session *session, struct slice event_id,
                                      uint32_t *number)
{
    struct slice numbers;
    const struct list_node *node;
    uint32_t stream_number;

    if (event_id.len < HTTP_STREAM_TAG_LEN || event_id.len >= EVENT_ID_MAX ||
        memcmp(event_id.data, session->tag, HTTP_STREAM_TAG_LEN) != 0)
        return NULL;
    numbers = slice_of(event_id.data + HTTP_STREAM_TAG_LEN, event_id.len - HTTP_STREAM_TAG_LEN);
    if (!take_number(&numbers, &stream_number) || !take_number(&numbers, number) || numbers.len > 0)
        return NULL;
    if (stream_number == 0)
        return session->general;
    for (node = session->streams.head.next; node != &session->streams.head; node = node->next) {
        struct http_stream *stream = list_entry(node, struct http_stream, link);

        if (stream->number == stream_number)
            return stream->begun ? stream : NULL;
    }
    return NULL;
}

void http_stream_resume(struct http_stream *stream, struct http_exchange *http, uint32_t number)
{
    if (stream->http != NULL) /* the newer connection wins */
        http_answer_end(stream->http);
    if (number > stream->events.last)
        number = stream->events.last;
    if (number < stream->events.forgotten)
        log_warn(bus_of(stream)->log, context(stream),
                 "a stream is resumed after event %u, but events up to %u are kept no more",
                 (unsigned)number, (unsigned)stream->events.forgotten);
    event_log_got(&stream->events, number);
    stream->written = number;
    http_stream_attach(stream, http);
    if (http_stream_open(stream) != STDIO_BUS_OK)
        cut_stream(stream);
    else
        http_stream_flow(stream);
}

/* --- the archive --- */

static const struct archive_field stream_fields[] = {
    ARCHIVE_INTEGERS(struct http_stream, number, events.last, events.forgotten, written),
    ARCHIVE_FLAGS(struct http_stream, begun, over),
};

static void archive_id(struct archive *archive, struct message_id *id)
{
    if (archive_present(archive, id->type != ID_NONE))
        router_archive_id(archive, id);
}

static void archive_stream(struct archive *archive, void *owner, void *item)
{
    struct http_session *session = owner;
    struct http_stream *stream = item;
    struct message_id id = {.type = ID_NONE}, token = {.type = ID_NONE};

    if (stream != NULL) {
        id = stream->id;
        token = stream->token;
    }
    archive_id(archive, &id);
    archive_id(archive, &token);
    archive_expect(archive, id.type != ID_NONE, "a stream has no request");
    if (archive_loads(archive))
        stream = http_stream_create(session, id, token);
    if (!archive_made(archive, stream != NULL))
        return;
    ARCHIVE_FIELDS(archive, stream, stream_fields);
    if (!archive->saves && stream->over)
        session->in_flight--;
}

/* How many are over is known at their end: before, none would be forgotten. */
void http_streams_archive(struct archive *archive, struct http_session *session)
{
    ARCHIVE_FIELDS(archive, session->general, stream_fields);
    ARCHIVE_LIST(archive, &session->streams, struct http_stream, link, archive_stream, session);
    if (!archive->saves)
        session->kept = list_count(&session->streams) - session->in_flight;
    ARCHIVE_INTEGER(archive, session->last_stream);
}

struct http_stream *http_stream_archive_one(struct archive *archive, struct http_session *session,
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
