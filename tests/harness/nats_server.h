/* A scripted server of NATS: the test says what it sends. */
#ifndef TESTS_HARNESS_NATS_SERVER_H
#define TESTS_HARNESS_NATS_SERVER_H

#include "client.h"

/* Zeroed: it gets a port. */
struct broker {
    int listener;
    unsigned port;
    struct client *link; /* the connection of the daemon */
};

void broker_listen(struct broker *broker);
void broker_accept(struct broker *broker);

/* Sends a line. */
void broker_say(struct broker *broker, const char *line);

/* INFO with further members. */
void broker_greet(struct broker *broker, const char *more);

/* Accepts, and greets until the connection is ready. */
void broker_admit(struct broker *broker);

/* The next line, which begins with these words. */
const char *broker_expect(struct broker *broker, const char *words);

/* A message that was published with headers. Lives as long as the test. */
struct broker_message {
    const char *headers;
    const char *payload;
    size_t len;
};

/* The next line must be of a message on this subject. */
struct broker_message broker_expect_message(struct broker *broker, const char *subject);

/* Sends a message for the subscription of this number; headers "": none. */
void broker_deliver(struct broker *broker, unsigned sid, const char *headers, const void *payload,
                    size_t len);

#endif
