#include "build_config.h"

#include "federation/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bus/deliver.h"
#include "bus/depart.h"
#include "bus/origins.h"
#include "framing/batch.h"
#include "router/router_archive.h"
#include "json/message.h"

/* Messages that wait for workers, and answers that wait for others of their array, in bytes. What
 * is beyond that is refused. */
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

/* The subject of the answer; NULL: none is asked for. */
static struct slice reply_of(const struct nats_call *call)
{
    return slice_of(call->reply, call->reply != NULL ? strlen(call->reply) : 0);
}

/* An error of the daemon's own in place of an answer; the id is that of the message. */
static int answer_error(struct nats_hub *hub, struct slice reply, struct message_id id, int code,
                        const char *problem)
{
    char line[MESSAGE_ERROR_MAX];

    if (reply.data == NULL)
        return STDIO_BUS_OK;
    return broker_publish_text(&hub->broker, reply,
                               slice_of(line,
                                        message_write_error(line, sizeof line, id, code, problem)));
}

/* Counts and reports an answer that was not sent, after the status of broker_publish. */
static void note_lost(struct nats_hub *hub, int status)
{
    if (status == STDIO_BUS_OK)
        return;
    hub->broker.counters.lost++;
    log_warn(hub->bus->log, "nats", "an answer is lost: %s",
             status == STDIO_BUS_EINVAL ? "max_payload of the NATS server is too small"
                                        : "out of memory");
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

/* Sends the answer, or an error in its place. STDIO_BUS_ERR if out of memory: nothing was sent. */
static int send_answer(struct nats_call *call, struct message_id id,
                       const struct delivery *delivery)
{
    int status = STDIO_BUS_OK;

    if (call->reply != NULL)
        status = broker_publish(&call->hub->broker, reply_of(call), delivery);
    if (status == STDIO_BUS_EINVAL)
        status = answer_error(call->hub, reply_of(call), id, JSONRPC_SERVER_ERROR,
                              "the answer is longer than max_payload of the NATS server");
    if (status == STDIO_BUS_EINVAL) { /* nor does the error fit */
        note_lost(call->hub, status);
        status = STDIO_BUS_OK;
    }
    if (status == STDIO_BUS_OK) {
        count_answer(call);
        note_done(call);
    }
    return status;
}

/* The message is refused, or the whole array. */
static void refuse_call(struct nats_call *call, struct message_id id, int code, const char *problem)
{
    note_lost(call->hub, answer_error(call->hub, reply_of(call), id, code, problem));
    note_done(call);
}

/* Whether another answer of `len` bytes fits into the array. */
static bool has_room(const struct nats_call *call, size_t len)
{
    const struct nats_hub *hub = call->hub;
    uint64_t max = hub->broker.info.max_payload;

    if (max == 0 || max > BROKER_KEPT_MAX)
        max = BROKER_KEPT_MAX;
    return call->answers.len + len + 2 <= max && hub->held_bytes + len + 2 <= HELD_BYTES_MAX;
}

/* All of the answer, or nothing. */
static int join_answer(struct nats_call *call, struct slice bytes, const struct delivery *delivery)
{
    struct json_text *answers = &call->answers;
    size_t before = answers->len;

    if (before == 0)
        json_text_literal(answers, "[");
    json_text_splice(answers, bytes, delivery->edits, delivery->edit_count);
    json_text_literal(answers, ",");
    if (answers->failed) {
        answers->failed = false;
        answers->len = before;
        return STDIO_BUS_ERR;
    }
    call->hub->held_bytes += answers->len - before;
    return STDIO_BUS_OK;
}

/* One of an array: the answers are sent together. A worker's line ends with a newline. */
static int keep_answer(struct nats_call *call, const struct delivery *delivery)
{
    struct slice bytes = slice_without_newline(delivery->bytes);
    size_t len = splice_len(bytes.len, delivery->edits, delivery->edit_count);

    if (call->reply != NULL && !has_room(call, len)) {
        refuse_call(call, no_id, JSONRPC_SERVER_ERROR,
                    "the answers are longer than max_payload of the NATS server, or too many wait");
        return STDIO_BUS_OK;
    }
    if (call->reply != NULL && join_answer(call, bytes, delivery) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    call->owed--;
    call->hub->bus->services_noted = true;
    return STDIO_BUS_OK;
}

static int call_deliver(struct endpoint *endpoint, const struct delivery *delivery)
{
    struct nats_call *call = call_of(endpoint);
    struct delivery_subject subject = delivery_subject(delivery);

    if (!subject.answers || call->is_done || call->owed == 0)
        return STDIO_BUS_OK; /* notices of a worker have no receiver */
    if (call->is_batch)
        return keep_answer(call, delivery);
    return send_answer(call, subject.about != NULL ? *subject.about : no_id, delivery);
}

/* All of it was taken, and nothing is owed any more. What asks nothing has an empty reply. */
static void finish(struct nats_call *call)
{
    struct json_text *answers = &call->answers;
    const struct delivery whole = {.bytes = json_text_slice(answers)};
    int status = STDIO_BUS_OK;

    if (answers->len > 0) {
        answers->data[answers->len - 1] = ']';
        status = send_answer(call, no_id, &whole);
    } else if (call->reply != NULL) {
        status = broker_publish_text(&call->hub->broker, reply_of(call), slice_of("", 0));
    }
    note_lost(call->hub, status);
    note_done(call);
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
    refuse_call(call_of(endpoint), message->id, JSONRPC_INVALID_REQUEST,
                message_problem_text(MESSAGE_TOO_LONG));
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

static void all_taken(struct nats_call *call)
{
    call->hub->held_bytes -= call->len;
    free(call->line);
    call->line = NULL;
    call->len = call->taken = 0;
    call->hub->bus->services_noted = true;
}

/* Offers a message that was scanned to the router, which may hold it. */
static void offer_message(struct nats_call *call, struct slice line, const struct scanner *scanner)
{
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    enum message_problem problem = message_from_scan(&message, line, &scanner->fields, &scratch);
    bool is_response = message_is_response(&message) && message.method.data == NULL;

    if (problem != MESSAGE_OK || (is_response && !call->is_batch)) {
        refuse_call(call, message.id, JSONRPC_INVALID_REQUEST,
                    problem != MESSAGE_OK ? message_problem_text(problem)
                                          : "a request or a notification is expected");
        return;
    }
    if (message.id.type != ID_NONE && !is_response && !call->offered)
        call->owed++;
    deliver_message(&call->endpoint, &message);
    call->offered = call->paused;
}

/* An array: one member after the other, until the router holds one. */
static void offer_members(struct nats_call *call)
{
    struct scanner scanner = {.splits_arrays = false};
    const struct framing_state state = {.check = &json_body_check, .check_state = &scanner};

    while (!call->paused && !call->is_done) {
        struct slice rest = slice_of(call->line + call->taken, call->len - call->taken);
        size_t gap = batch_gap(rest);
        struct slice member = slice_of(rest.data + gap, rest.len - gap);

        if (member.len == 0) {
            all_taken(call);
            return;
        }
        member.len = batch_member(&state, member);
        offer_message(call, member, &scanner);
        if (!call->paused)
            call->taken += gap + member.len;
    }
}

static void offer(struct nats_call *call)
{
    struct scanner scanner;

    if (call->is_batch) {
        offer_members(call);
        return;
    }
    if (!message_scan(&scanner, slice_of(call->line, call->len))) {
        refuse_call(call, no_id, JSONRPC_PARSE_ERROR, "not one JSON object, nor an array of them");
        return;
    }
    offer_message(call, slice_of(call->line, call->len), &scanner);
    if (!call->paused && !call->is_done)
        all_taken(call);
}

/* An array is judged as a whole before its first member is offered. */
static void begin_members(struct nats_call *call)
{
    struct scanner scanner = {.splits_arrays = false};
    const struct framing_state state = {.check = &json_body_check, .check_state = &scanner};
    struct batch_reader reader = {.checked = 0};
    struct frame frame = {.consumed = 0};

    if (batch_check(&reader, &state, slice_of(call->line, call->len), true, &frame) == BATCH_BAD)
        refuse_call(call, no_id, JSONRPC_PARSE_ERROR, frame.problem);
    else
        offer_members(call);
}

static void begin(struct nats_call *call)
{
    bool decided;

    call->is_batch = batch_begins(slice_of(call->line, call->len), &decided);
    if (call->is_batch)
        begin_members(call);
    else
        offer(call);
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
    json_text_free(&call->answers);
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
    hub->held_bytes -= call->len + call->answers.len;
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
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    struct scanner scanner;
    struct message_id id = no_id;

    if (message_scan(&scanner, frame->payload) &&
        message_from_scan(&message, frame->payload, &scanner.fields, &scratch) == MESSAGE_OK)
        id = message.id;
    note_lost(hub, answer_error(hub, frame->line.reply, id, JSONRPC_SERVER_ERROR, problem));
    log_warn(hub->bus->log, "nats", "a request is refused: %s", problem);
    export->refused++;
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
    begin(call);
}

void nats_calls_act(struct nats_hub *hub)
{
    struct list_node *node, *following;

    list_each(&hub->calls, node, following) {
        struct nats_call *call = list_entry(node, struct nats_call, link);

        if (call->line != NULL && !call->paused && !call->is_done)
            offer(call);
        if (call->line == NULL && call->owed == 0 && !call->is_done)
            finish(call);
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
        ARCHIVE_FLAGS(struct nats_call, is_batch, offered, paused, is_done),
        ARCHIVE_INTEGERS(struct nats_call, owed),
        ARCHIVE_INTEGERS(struct nats_call, endpoint.since_ms, endpoint.held_since_ms),
        ARCHIVE_FLAGS(struct nats_call, endpoint.blocks_itself),
        ARCHIVE_TEXTS(struct nats_call, endpoint.context),
    };
    struct calls_archive *calls = owner;
    struct stdio_bus *bus = calls->hub->bus;
    struct nats_call *call = item != NULL ? item : calloc(1, sizeof *call);
    struct slice reply, line, answers;

    if (!archive_made(archive, call != NULL))
        return;
    archive_mark(archive, "natscall");
    reply = reply_of(call);
    line = slice_of(call->line, call->len);
    if (call->taken > 0)
        line = slice_of(line.data + call->taken, line.len - call->taken);
    reply = archive_slice(archive, reply);
    line = archive_slice(archive, line);
    answers = archive_slice(archive, json_text_slice(&call->answers));
    if (item == NULL) {
        call->hub = calls->hub;
        call->reply = loaded(archive, reply);
        call->line = loaded(archive, line);
        call->len = call->line != NULL ? line.len : 0;
        json_text_add(&call->answers, answers);
        archive_made(archive, !call->answers.failed);
        call->hub->held_bytes += call->len + call->answers.len;
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
