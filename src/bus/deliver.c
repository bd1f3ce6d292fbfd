#include "build_config.h"

#include "bus/deliver.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "bus/errands.h"
#include "endpoint/endpoint.h"
#include "router/affinity.h"
#include "router/decision.h"
#include "router/record.h"
#include "router/to_client.h"
#include "router/to_worker.h"
#include "router/waiting.h"
#include "transport/memory.h"

#define STARVED_RETRY_MS 100
#define RELEASES_PER_ROUND 1024

/* --- the log --- */

/* Where ids are rewritten: the id by which the destination knows the request. Otherwise "". */
static const char *other_id(char to[80], const struct decision *decision)
{
    const struct request *request = decision->recorded;
    struct message_id id;
    char text[64];

    to[0] = '\0';
    if (request == NULL)
        request = decision->answered;
    if (request == NULL || !request->rewritten)
        return to;
    id = decision->recorded != NULL ? request->answerer_id : request->asker_id;
    (void)snprintf(to, 80, " as id %s", log_escape(text, sizeof text, id.text));
    return to;
}

/* "discarded a message (id 7, sessionId none): TEXT", as a warning, or else for debugging. */
static void delivery_log(const struct decision *decision, struct stdio_bus *bus, bool warns,
                         const char *done, const char *between, const char *text)
{
    const struct message *message = decision->message;
    const char *from = endpoint_of_peer(decision->from)->context, *id_text = "none",
               *session_text = "none";
    char id[64], session[64];

    if (message->id.type != ID_NONE)
        id_text = log_escape(id, sizeof id, message->id.text);
    if (message->session_id.data != NULL)
        session_text = log_escape(session, sizeof session, message->session_id);
    if (warns)
        log_warn(bus->log, from, "%s a message (id %s, sessionId %s)%s%s", done, id_text,
                 session_text, between, text);
    else
        log_debug(bus->log, from, "%s a message (id %s, sessionId %s)%s%s", done, id_text,
                  session_text, between, text);
}

/* A request can be followed by its ids: each line has that of the sender, and that of the
 * destination if it is another. */
__attribute__((cold)) static void delivery_log_forwarded(const struct decision *decision,
                                                         struct stdio_bus *bus, const char *to)
{
    char text[192], id[80];

    (void)snprintf(text, sizeof text, "%s%s", to, other_id(id, decision));
    delivery_log(decision, bus, false, "forwarding", " to ", text);
}

/* The session of an answer has another client now. */
static void delivery_log_moved_session(const struct decision *decision, struct stdio_bus *bus)
{
    const struct slice id = decision->answered->extras->names;
    char session[64];

    log_repeated(bus->log, LOG_LEVEL_INFO, endpoint_of_peer(decision->former_owner)->context,
                 LOG_NO_SOURCE, "lost the session %s: %s has loaded it",
                 log_escape(session, sizeof session, id), endpoint_of_peer(decision->to)->context);
}

/* --- errors --- */

int deliver_line(struct endpoint *to, struct slice line)
{
    const struct delivery delivery = {.bytes = line};

    return to->ops->deliver(to, &delivery);
}

/* The line ends with a newline; length 0: out of memory. */
static void deliver_own(struct endpoint *to, struct message_id id, struct slice line)
{
    const struct stdio_bus *bus = to->bus;
    const struct delivery delivery = {.bytes = line, .answered = id.type != ID_NONE ? &id : NULL};

    if (bus->options.config->strict && !to->owes_answers)
        return;
    if (line.len == 0 || to->ops->deliver(to, &delivery) != STDIO_BUS_OK)
        log_error(bus->log, to->context, "out of memory: an error reply was lost");
}

void deliver_error(struct endpoint *to, struct message_id id, int code, const char *text)
{
    char line[MESSAGE_ERROR_MAX];

    deliver_own(to, id, slice_of(line, message_write_error(line, sizeof line, id, code, text)));
}

void deliver_error_data(struct endpoint *to, struct message_id id, int code, const char *text,
                        const char *data)
{
    size_t size = MESSAGE_ERROR_MAX + 6 * strlen(text) + (data != NULL ? strlen(data) : 0);
    char *line = malloc(size), plain[MESSAGE_ERROR_MAX];
    size_t len;

    if (line != NULL) {
        len = message_write_error_data(line, size, id, code, text, data);
        deliver_own(to, id, slice_of(line, len));
        free(line);
        return;
    }
    /* Out of memory: an error without data, and without a text that is too long. */
    len = message_write_error(plain, sizeof plain, id, code, text);
    if (len == 0)
        len = message_write_error(plain, sizeof plain, id, code, "out of memory");
    deliver_own(to, id, slice_of(plain, len));
}

static bool has_lengths(const struct framing *framing)
{
    return framing != NULL && framing != &framing_ndjson;
}

/* The longest message that a queue may get. */
static size_t longest_message(const struct stdio_bus *bus)
{
    const struct config *config = bus->options.config;
    bool framed = has_lengths(bus->options.framing);
    size_t i;

    if (config->has_protocol)
        return config->limits.max_message;
    for (i = 0; i < config->pool_count; i++)
        framed = framed || has_lengths(config->pools[i].framing);
    return framed ? config->limits.max_frame_body : config->limits.max_input_buffer;
}

/* A worker may be unable to read because its output is held, and would never be released if it were
 * held for its own queue. So it has as much room for errors again, beside all messages that the
 * queue may hold, the last of which may exceed it. */
static bool owes_too_much(const struct stdio_bus *bus, struct endpoint *endpoint)
{
    const struct limits *limits = &bus->options.config->limits;
    size_t max = 2 * limits->max_output_queue + longest_message(bus);

    return endpoint->peer.full &&
           (!endpoint->is_worker || stream_of(endpoint)->connection.output.bytes > max);
}

/* --- held peers --- */

/* A message that is not taken at once. Such a one may be held again and again. */
static void hold(struct endpoint *endpoint)
{
    struct stdio_bus *bus = endpoint->bus;

    if (endpoint->held_since_ms == 0) {
        endpoint->held_since_ms = stdio_bus_event_loop_now_ms(bus->loop);
        bus->counters.holds[endpoint->is_worker]++;
    }
    endpoint->ops->pause(endpoint);
}

int64_t deliver_held_ms(const struct endpoint *endpoint)
{
    struct stdio_bus *bus = endpoint->bus;

    return endpoint->held_since_ms == 0
               ? 0
               : stdio_bus_event_loop_now_ms(bus->loop) - endpoint->held_since_ms;
}

void deliver_end_hold(struct endpoint *endpoint)
{
    struct stdio_bus *bus = endpoint->bus;

    bus->counters.held_ms[endpoint->is_worker] += (uint64_t)deliver_held_ms(endpoint);
    endpoint->held_since_ms = 0;
}

bool deliver_error_held(struct endpoint *to)
{
    if (!owes_too_much(to->bus, to))
        return false;
    to->blocks_itself = true;
    turns_add(&to->peer.waiting, &to->peer);
    to->peer.held_for = HELD_FOR_REPLIES;
    hold(to);
    return true;
}

/* Pauses an endpoint until there may be memory again. */
static void hold_for_memory(struct endpoint *from)
{
    struct stdio_bus *bus = from->bus;

    from->peer.held_for = HELD_FOR_MEMORY;
    hold(from);
    waiting_hold(&bus->starved, &from->peer);
    if (!timer_started(&bus->starved_retry))
        stdio_bus_event_loop_start_timer(bus->loop, &bus->starved_retry, STARVED_RETRY_MS);
}

static void starve(struct endpoint *from)
{
    struct stdio_bus *bus = from->bus;

    log_warn(bus->log, from->context, "out of memory: trying again in %d ms", STARVED_RETRY_MS);
    hold_for_memory(from);
}

void deliver_retry_starved(void *user_data)
{
    struct stdio_bus *bus = user_data;

    waiting_release_all(&bus->router, &bus->starved);
}

void deliver_resume(struct peer *peer)
{
    struct endpoint *endpoint = endpoint_of_peer(peer);
    struct stdio_bus *bus = endpoint->bus;

    stdio_bus_event_loop_stop_timer(bus->loop, &endpoint->hold_timer);
    endpoint->blocks_itself = false;
    deliver_end_hold(endpoint);
    /* A worker may have stopped reading because its output was not read. */
    if (endpoint->is_worker)
        connection_renew_stall(&stream_of(endpoint)->connection);
    endpoint->ops->resume(endpoint);
}

void deliver_released(struct stdio_bus *bus)
{
    struct peer *peer;
    int count = 0;

    while (count++ < RELEASES_PER_ROUND && (peer = waiting_next_released(&bus->router)) != NULL)
        deliver_resume(peer);
}

void deliver_hold_expired(void *user_data)
{
    struct endpoint *endpoint = user_data;
    struct stdio_bus *bus = endpoint->bus;

    waiting_expire(&bus->router, &endpoint->peer);
}

void deliver_full(struct connection *connection, bool full)
{
    struct endpoint *endpoint = &list_entry(connection, struct stream, connection)->endpoint;
    struct stdio_bus *bus = endpoint->bus;

    log_debug(bus->log, endpoint->context,
              full ? "backpressure: its queue is full" : "backpressure released");
    waiting_set_full(&bus->router, &endpoint->peer, full);
}

void deliver_starved(struct connection *connection)
{
    starve(&list_entry(connection, struct stream, connection)->endpoint);
}

/* --- decisions --- */

struct delivery_subject delivery_subject(const struct delivery *delivery)
{
    const struct decision *decision = delivery->decision;
    struct delivery_subject subject = {.about = delivery->answered,
                                       .answers = delivery->answered != NULL};
    const struct group *pool; /* NULL: the sender is a client */

    if (decision == NULL)
        return subject;
    pool = decision->from->pool;
    subject.asks = decision->asks;
    subject.answers = decision->answered != NULL;
    if (subject.answers)
        subject.about = &decision->answered->asker_id;
    else if (pool != NULL && !pool->plain && decision->related != NULL)
        subject.about = &decision->related->asker_id;
    return subject;
}

/* The message answers or gives up a request. */
static inline void delivered(struct stdio_bus *bus, struct decision *decision)
{
    if (decision->cancelled != NULL)
        bus_read_clock(bus);
    else if (decision->former_owner != NULL)
        delivery_log_moved_session(decision, bus);
    if (bus->router.measures)
        decision_note_answer(decision);
    decision_delivered(decision);
}

static void forward(struct stdio_bus *bus, struct endpoint *from, struct decision *decision)
{
    struct endpoint *to = list_entry(decision->to, struct endpoint, peer);
    const struct delivery delivery = {
        .from = from,
        .bytes = decision->message->bytes,
        .edits = decision->edits,
        .edit_count = decision->edit_count,
        .decision = decision,
    };

    if (log_enabled(bus->log, LOG_LEVEL_DEBUG))
        delivery_log_forwarded(decision, bus, to->context);
    if (to->ops->deliver(to, &delivery) == STDIO_BUS_OK) {
        if (decision->answered != NULL || decision->cancelled != NULL)
            delivered(bus, decision);
    } else {
        decision_failed(decision);
        starve(from);
    }
}

/* Whether the copies of a message that several clients get must wait: max_memory is used up, beside
 * the message itself. */
static bool copies_wait(const struct stdio_bus *bus, const struct message *message)
{
    return memory_used(&bus->transport) >
               bus->options.config->limits.max_memory + message->bytes.len &&
           message->bytes.len > BUFFER_LARGE;
}

/* Sends a worker's message to all of its clients that are to get it. If memory runs out in between,
 * the clients that have got it are left out the next time. */
static void broadcast(struct endpoint *from, const struct decision *decision)
{
    const struct delivery delivery = {
        .from = from, .bytes = decision->message->bytes, .keep = true, .decision = decision};
    struct list_node *node, *following;

    list_each(&from->peer.bindings, node, following) {
        struct binding *binding = list_entry(node, struct binding, in_worker);
        struct endpoint *to = endpoint_of_peer(binding->client);

        if (binding->order <= from->peer.broadcast || !binding->chosen)
            continue;
        if (copies_wait(from->bus, decision->message)) {
            hold_for_memory(from);
            return;
        }
        if (to->ops->deliver(to, &delivery) != STDIO_BUS_OK) {
            starve(from);
            return;
        }
        from->peer.broadcast = binding->order;
    }
    from->peer.broadcast = 0;
}

/* The client gets an error in place of an answer. */
static void fail_request(struct stdio_bus *bus, struct decision *decision)
{
    delivery_log(decision, bus, true, "discarded", ": ", decision->text);
    deliver_error(endpoint_of_peer(decision->to), decision->answered->asker_id, decision->code,
                  decision->text);
    decision_note_answer(decision);
    decision_delivered(decision);
}

/* A request gets an error, so that its sender does not wait in vain. So does a client's message
 * that was cut, in any case. */
static void refuse(struct stdio_bus *bus, struct endpoint *from, const struct decision *decision)
{
    const struct message *message = decision->message;
    bool has_id = message->id.type != ID_NONE || (message_is_cut(message) && !from->is_worker);
    bool answers = has_id && !decision->is_reply &&
                   (!bus->options.config->strict || from->owes_answers);
    bool failed = decision->text[0] == '\0';
    const char *text = failed ? decision->failure->text : decision->text;

    if (answers && deliver_error_held(from))
        return;
    bus->counters.refused[refusal_of(text)]++;
    delivery_log(decision, bus, true, "discarded", ": ", text);
    if (answers && failed)
        deliver_error_data(from, message->id, decision->code, text, decision->failure->data);
    else if (answers)
        deliver_error(from, message->id, decision->code, text);
}

/* The client gets what another client was answered. */
static void answer_request(struct endpoint *from, const struct decision *decision)
{
    const struct delivery delivery = {.bytes = decision->stored,
                                      .edits = decision->edits,
                                      .edit_count = decision->edit_count,
                                      .keep = true,
                                      .answered = &decision->message->id};

    if (from->ops->deliver(from, &delivery) == STDIO_BUS_OK)
        ((struct stdio_bus *)from->bus)->counters.stored_answers++;
    else
        starve(from);
}

void deliver_lost_answer(struct endpoint *worker, const struct message *message,
                         const char *problem)
{
    struct stdio_bus *bus = worker->bus;
    struct decision decision UNINITIALIZED;

    decision_begin(&decision, &bus->router, &worker->peer, message);
    to_client_lost(&decision, problem);
    if (decision.action == ACTION_FAIL)
        fail_request(bus, &decision);
}

/* A client that waits for a process of its own, or to be initialized. If it leaves, its messages
 * are for no process. */
static bool awaits_beginning(const struct endpoint *from, const struct decision *decision)
{
    const struct group *pool = decision->pool;

    if (from->is_worker || pool == NULL)
        return false;
    return (from->peer.held_for == HELD_FOR_ANSWER && decision->kind == REQUEST_INITIALIZES) ||
           (pool->mode.clients == CLIENTS_EXCLUSIVE && affinity_worker(&from->peer, pool) == NULL);
}

/* Carries out any decision but to forward. */
static void carry_out(struct stdio_bus *bus, struct endpoint *from, struct decision *decision)
{
    bus->carried_out = (int)decision->action;
    switch (decision->action) {
    case ACTION_FORWARD:
        break;
    case ACTION_BROADCAST:
        broadcast(from, decision);
        break;
    case ACTION_HOLD:
        if (decision->hold_ms > 0)
            stdio_bus_event_loop_start_timer(bus->loop, &from->hold_timer, decision->hold_ms);
        if (from->is_worker)
            bus_watch_slow_clients(bus, SLOW_CLIENTS_SOON_MS);
        hold(from);
        if (awaits_beginning(from, decision))
            from->ops->watch_hangup(from);
        break;
    case ACTION_REFUSE:
        refuse(bus, from, decision);
        break;
    case ACTION_FAIL:
        fail_request(bus, decision);
        break;
    case ACTION_ANSWER:
        answer_request(from, decision);
        break;
    case ACTION_DISCARD:
        delivery_log(decision, bus, true, "discarded", ": ", decision->text);
        break;
    case ACTION_DROP:
        delivery_log(decision, bus, false, "discarded", ": ", decision->text);
        break;
    case ACTION_NO_MEMORY:
        starve(from);
        break;
    }
    errands_run(bus);
}

void deliver_message(struct endpoint *from, const struct message *message)
{
    struct stdio_bus *bus = from->bus;
    struct decision decision UNINITIALIZED;

    if (bus->router.clocked)
        bus_read_clock(bus);
    decision_begin(&decision, &bus->router, &from->peer, message);
    if (from->is_worker)
        to_client(&decision);
    else
        to_worker(&decision);
    if (decision.action == ACTION_FORWARD)
        forward(bus, from, &decision);
    else
        carry_out(bus, from, &decision);
}

enum action deliver_offer(struct endpoint *from, const struct message *message)
{
    struct stdio_bus *bus = from->bus;

    bus->carried_out = ACTION_FORWARD;
    deliver_message(from, message);
    return (enum action)bus->carried_out;
}

void deliver_long_message(struct endpoint *from, const struct message *message)
{
    struct stdio_bus *bus = from->bus;
    struct decision decision UNINITIALIZED;

    decision_begin(&decision, &bus->router, &from->peer, message);
    if (!message_is_cut(message)) {
        if (from->is_worker || to_worker_takes_long(&decision))
            deliver_message(from, message);
        else
            from->ops->too_long(from, message);
        return;
    }
    if (from->is_worker)
        to_client_cut(&decision);
    else
        to_worker_cut(&decision);
    carry_out(bus, from, &decision);
}
