/* Messages: the router decides, and its decision is carried out. */
#ifndef STDIO_BUS_BUS_DELIVER_H
#define STDIO_BUS_BUS_DELIVER_H

#include "bus/state.h"
#include "endpoint/stream.h"
#include "router/decision.h"
#include "json/message.h"

/* What a message is about, as its receiver knows it. */
struct delivery_subject {
    const struct message_id *about; /* the receiver's request that it answers, or else can only
                                     * belong to; NULL: none is known. Lives as long as the
                                     * delivery */
    bool answers;                   /* that request */
    bool asks;                      /* it is a request of its sender */
};

struct delivery_subject delivery_subject(const struct delivery *delivery);

/* Delivers a message of a client or a worker, or pauses its endpoint. */
void deliver_message(struct endpoint *from, const struct message *message);
void deliver_long_message(struct endpoint *from, const struct message *message);

/* The same as deliver_message for an endpoint that has to know what became of its message. */
enum action deliver_offer(struct endpoint *from, const struct message *message);

/* A worker's answer that cannot be forwarded, because of the problem: whoever waits for it gets an
 * error. Of the message its id alone counts. */
void deliver_lost_answer(struct endpoint *worker, const struct message *message,
                         const char *problem);

/* Queues a line of the daemon's own. STDIO_BUS_ERR if out of memory. */
int deliver_line(struct endpoint *to, struct slice line);

/* Sends an error reply, unless the configuration is strict. */
void deliver_error(struct endpoint *to, struct message_id id, int code, const char *text);

/* The same with the member "data", which is JSON; NULL: none. */
void deliver_error_data(struct endpoint *to, struct message_id id, int code, const char *text,
                        const char *data);

/* Caps the unread error replies of an endpoint. True: it is over the cap, and paused until it has
 * read some of them. */
bool deliver_error_held(struct endpoint *to);

/* How long the endpoint has been held; 0: it is not held. And the end of that, with its client. */
int64_t deliver_held_ms(const struct endpoint *endpoint);
void deliver_end_hold(struct endpoint *endpoint);

/* Lets a released peer offer its message again. */
void deliver_resume(struct peer *peer);

/* The same for peers whose turn it is, as many as one round of the event loop is to take. */
void deliver_released(struct stdio_bus *bus);

/* For connection_handler: the queue of a stream is full or drained; there is no memory for its
 * input. */
void deliver_full(struct connection *connection, bool full);
void deliver_starved(struct connection *connection);

/* timer_fn of an endpoint's hold, and of bus->starved_retry. */
void deliver_hold_expired(void *user_data);
void deliver_retry_starved(void *user_data);

#endif
