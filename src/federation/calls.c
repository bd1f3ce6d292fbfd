#include "build_config.h"

#include "federation/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bus/deliver.h"
#include "bus/depart.h"
#include "bus/origins.h"
#include "router/router_archive.h"
#include "json/message.h"

/* Messages that wait for workers, in bytes. A message beyond that is refused. */
#define HELD_BYTES_MAX ((size_t)64 << 20)

static const struct message_id no_id;

static struct nats_call *call_of(struct endpoint *endpoint)
{
    return list_entry(endpoint, struct nats_call, endpoint);
}

static void note_done(struct nats_call *call)
{
    call->is_done = true;
    call->hub->bus->services_noted = true;
}

/* --- answers --- */

/* An error of the daemon's own in place of an answer; the id is that of the message. */
static int answer_error(struct nats_hub *hub, const char *reply, struct message_id id, int code,
                        const char *problem)
{
    char line[MESSAGE_ERROR_MAX];

    if (reply == NULL)
        return STDIO_BUS_OK;
    return broker_publish_text(&hub->broker, slice_of_text(reply),
                               slice_of(line,
                                        message_write_error(line, sizeof line, id, code, problem)));
}

static int64_t now_ms(const struct nats_call *call)
{
    return stdio_bus_event_loop_now_ms(call->hub->bus->loop);
}

/* The clock of the loop has milliseconds: many times are right together. */
static void count_answer(const struct nats_call *call)
{
    if (call->export == NULL)
        return;
    call->export->answered++;
    call->export->answer_ms += (uint64_t)(now_ms(call) - call->endpoint.since_ms);
}

static int call_deliver(struct endpoint *endpoint, const struct delivery *delivery)
{
    struct nats_call *call = call_of(endpoint);
    struct delivery_subject subject = delivery_subject(delivery);
    struct message_id id = subject.about != NULL ? *subject.about : no_id;
    int status = STDIO_BUS_OK;

    if (!subject.answers || call->is_done)
        return STDIO_BUS_OK; /* notices of a worker have no receiver */
    if (call->reply != NULL)
        status = broker_publish(&call->hub->broker, slice_of_text(call->reply), delivery);
    if (status == STDIO_BUS_EINVAL)
        status = answer_error(call->hub, call->reply, id, JSONRPC_SERVER_ERROR,
                              "the answer is longer than max_payload of the NATS server");
    if (status == STDIO_BUS_EINVAL) { /* nor does the error fit */
        call->hub->broker.counters.lost++;
        status = STDIO_BUS_OK;
    }
    if (status == STDIO_BUS_OK) {
        count_answer(call);
        note_done(call);
    }
    return status;
}

/* --- other operations of the endpoint --- */

static void call_pause(struct endpoint *endpoint)
{
    call_of(endpoint)->paused = true;
}

static void call_resume(struct endpoint *endpoint)
{
    struct nats_call *call = call_of(endpoint);

    call->paused = false;
    call->hub->bus->services_noted = true;
}

static void call_close(struct endpoint *endpoint)
{
    note_done(call_of(endpoint));
}

static void call_watch(struct endpoint *endpoint)
{
    (void)endpoint;
}

static void call_too_long(struct endpoint *endpoint, const struct message *message)
{
    struct nats_call *call = call_of(endpoint);

    (void)answer_error(call->hub, call->reply, message->id, JSONRPC_INVALID_REQUEST,
                       message_problem_text(MESSAGE_TOO_LONG));
    note_done(call);
}

static const struct endpoint_ops call_ops = {
    .deliver = call_deliver,
    .pause = call_pause,
    .resume = call_resume,
    .close = call_close,
    .watch_hangup = call_watch,
    .too_long = call_too_long,
};

/* --- messages --- */

/* A message that asks nothing has an empty reply. */
static void taken(struct nats_call *call, bool asks)
{
    call->hub->held_bytes -= call->len;
    free(call->line);
    call->line = NULL;
    call->len = 0;
    if (call->is_done || (asks && call->reply != NULL))
        return;
    if (!asks && call->reply != NULL)
        (void)broker_publish_text(&call->hub->broker, slice_of_text(call->reply), slice_of("", 0));
    if (!asks)
        note_done(call);
}

/* Offers the message to the router, which may hold it. */
static void offer(struct nats_call *call)
{
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    struct slice line = slice_of(call->line, call->len);
    enum message_problem problem = MESSAGE_OK;
    struct scanner scanner;
    bool asks;

    if (!message_scan(&scanner, line)) {
        (void)answer_error(call->hub, call->reply, no_id, JSONRPC_PARSE_ERROR,
                           "not one JSON object");
        note_done(call);
        return;
    }
    problem = message_from_scan(&message, line, &scanner.fields, &scratch);
    if (problem != MESSAGE_OK || message_is_response(&message)) {
        (void)answer_error(call->hub, call->reply, message.id, JSONRPC_INVALID_REQUEST,
                           problem != MESSAGE_OK ? message_problem_text(problem)
                                                 : "a request or a notification is expected");
        note_done(call);
        return;
    }
    asks = message.id.type != ID_NONE;
    deliver_message(&call->endpoint, &message);
    if (!call->paused)
        taken(call, asks);
}

/* --- from its beginning to its end --- */

static void enter(struct nats_call *call)
{
    struct nats_hub *hub = call->hub;
    struct endpoint *endpoint = &call->endpoint;

    endpoint->ops = &call_ops;
    endpoint->bus = hub->bus;
    endpoint->owes_answers = true;
    timer_init(&endpoint->hold_timer, deliver_hold_expired, endpoint);
    router_add_client(&hub->bus->router, &endpoint->peer);
    list_append(&hub->calls, &call->link);
    hub->call_count++;
}

static void free_call(struct nats_call *call)
{
    free(call->reply);
    free(call->line);
    free(call);
}

static struct nats_call *make_call(struct nats_hub *hub, const struct nats_frame *frame)
{
    struct nats_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    call->hub = hub;
    call->line = slice_copy(frame->payload);
    call->len = frame->payload.len;
    if (frame->line.reply.data != NULL)
        call->reply = slice_copy(frame->line.reply);
    if (call->line != NULL && (call->reply != NULL || frame->line.reply.data == NULL))
        return call;
    free_call(call);
    return NULL;
}

static void release_call(void *user_data)
{
    free_call(user_data);
}

static void end_call(struct nats_call *call)
{
    struct nats_hub *hub = call->hub;

    list_remove(&call->link);
    hub->call_count--;
    hub->held_bytes -= call->len;
    depart_client(&call->endpoint);
    origins_release(call->endpoint.peer.origin);
    stdio_bus_event_loop_defer(hub->bus->loop, &call->deferred, release_call, call);
    hub->bus->end_noted = true;
}

static struct group *group_of(struct stdio_bus *bus, const char *id)
{
    return router_pool_named(&bus->router, slice_of_text(id));
}

/* Why no further call is taken; NULL: one is. */
static const char *refusal(const struct nats_hub *hub, const struct group *group, size_t len)
{
    const struct limits *limits = &hub->bus->options.config->limits;

    if (group == NULL)
        return "the pool is not served any more";
    if (hub->call_count >= limits->max_pending_requests)
        return "too many requests over NATS (max_pending_requests)";
    if (hub->held_bytes + len > HELD_BYTES_MAX)
        return "too many requests over NATS wait";
    return NULL;
}

static void refuse(struct nats_export *export, const struct nats_frame *frame, const char *problem)
{
    struct nats_hub *hub = export->hub;
    char *reply = frame->line.reply.data != NULL ? slice_copy(frame->line.reply) : NULL;
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    struct scanner scanner;
    struct message_id id = no_id;

    if (message_scan(&scanner, frame->payload) &&
        message_from_scan(&message, frame->payload, &scanner.fields, &scratch) == MESSAGE_OK)
        id = message.id;
    (void)answer_error(hub, reply, id, JSONRPC_SERVER_ERROR, problem);
    log_warn(hub->bus->log, "nats", "a request is refused: %s", problem);
    export->refused++;
    free(reply);
}

void nats_call_came(struct nats_subscription *subscription, const struct nats_frame *frame)
{
    struct nats_export *export = list_entry(subscription, struct nats_export, subscription);
    struct nats_hub *hub = export->hub;
    struct stdio_bus *bus = hub->bus;
    struct group *group = group_of(bus, export->id);
    const char *problem = refusal(hub, group, frame->payload.len);
    struct nats_call *call = NULL;

    if (!slice_is(frame->line.subject, export->subject)) /* a server at fault */
        return;
    hub->requests++;
    export->requests++;
    if (problem == NULL) {
        call = make_call(hub, frame);
        problem = "out of memory";
    }
    if (call == NULL) {
        refuse(export, frame, problem);
        return;
    }
    enter(call);
    call->export = export;
    call->endpoint.since_ms = now_ms(call);
    hub->held_bytes += call->len;
    snprintf(call->endpoint.context, sizeof call->endpoint.context, "nats=%llu",
             (unsigned long long)++hub->last_number);
    call->endpoint.peer.origin = hub->broker.origin;
    origins_hold(hub->broker.origin);
    router_admit_client(&bus->router, &call->endpoint.peer);
    router_confine(&call->endpoint.peer, group);
    router_set_brief(&call->endpoint.peer, true);
    offer(call);
}

void nats_calls_act(struct nats_hub *hub)
{
    struct list_node *node, *following;

    list_each(&hub->calls, node, following) {
        struct nats_call *call = list_entry(node, struct nats_call, link);

        if (call->line != NULL && !call->paused && !call->is_done)
            offer(call);
        if (call->is_done)
            end_call(call);
    }
}

void nats_calls_forget(struct nats_export *export)
{
    struct list_node *node, *following;

    list_each(&export->hub->calls, node, following) {
        struct nats_call *call = list_entry(node, struct nats_call, link);

        if (call->export == export)
            call->export = NULL;
    }
}

void nats_calls_end(struct nats_hub *hub)
{
    struct list_node *node, *following;

    list_each(&hub->calls, node, following)
        end_call(list_entry(node, struct nats_call, link));
}

/* --- the archive --- */

struct calls_archive {
    struct router_archive *state;
    struct nats_hub *hub;
};

static char *loaded(struct archive *archive, struct slice text)
{
    char *made = text.data != NULL ? slice_copy(text) : NULL;

    return archive_made(archive, made != NULL || text.data == NULL) ? made : NULL;
}

static void archive_call(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_FLAGS(struct nats_call, paused, is_done),
        ARCHIVE_INTEGERS(struct nats_call, endpoint.since_ms, endpoint.held_since_ms),
        ARCHIVE_FLAGS(struct nats_call, endpoint.blocks_itself),
        ARCHIVE_TEXTS(struct nats_call, endpoint.context),
    };
    struct calls_archive *calls = owner;
    struct stdio_bus *bus = calls->hub->bus;
    struct nats_call *call = item != NULL ? item : calloc(1, sizeof *call);
    struct slice reply, line;

    if (!archive_made(archive, call != NULL))
        return;
    archive_mark(archive, "natscall");
    reply = slice_of(call->reply, call->reply != NULL ? strlen(call->reply) : 0);
    line = slice_of(call->line, call->len);
    reply = archive_slice(archive, reply);
    line = archive_slice(archive, line);
    if (!archive->saves) {
        call->hub = calls->hub;
        call->reply = loaded(archive, reply);
        call->line = loaded(archive, line);
        call->len = call->line != NULL ? line.len : 0;
        call->hub->held_bytes += call->len;
        enter(call);
    }
    if (!archive_ok(archive))
        return;
    ARCHIVE_FIELDS(archive, call, fields);
    timer_archive(archive, bus->loop, &call->endpoint.hold_timer);
    origins_archive(archive, bus, &call->endpoint.peer.origin);
    archive_expect(archive, call->endpoint.peer.origin != NULL, "a call has no origin");
    if (!archive_ok(archive))
        return;
    router_archive_peer(calls->state, &call->endpoint.peer);
    if (archive_loads(archive))
        router_admit_client(&bus->router, &call->endpoint.peer);
}

void nats_calls_archive(struct router_archive *archive, struct nats_hub *hub)
{
    struct calls_archive calls = {.state = archive, .hub = hub};

    ARCHIVE_INTEGER(archive->archive, hub->last_number);
    ARCHIVE_LIST(archive->archive, &hub->calls, struct nats_call, link, archive_call, &calls);
}
