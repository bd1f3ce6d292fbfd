/* The daemon beside a scripted server: it exports pool a. */
#ifndef TESTS_SPEC_NATS_BROKER_H
#define TESTS_SPEC_NATS_BROKER_H

#include "harness.h"
#include "nats_server.h"

#define LOOKS 9 /* subjects of the service convention, for each pool */

static inline void broker_expect_looks(struct broker *broker)
{
    for (int i = 0; i < LOOKS; i++)
        broker_expect(broker, "SUB $SRV.");
}

/* Of each connection, after the pools: who is there, and the inbox of links. */
static inline void broker_expect_nodes(struct broker *broker)
{
    broker_expect(broker, "SUB stdio_bus.nodes ");
    broker_expect(broker, "SUB stdio_bus.nodes.");
    broker_expect(broker, "SUB stdio_bus.node.");
}

/* The daemon is connected, and has subscribed the pool. */
static inline void broker_begin(struct broker *broker)
{
    broker_admit(broker);
    broker_expect(broker, "SUB stdio_bus.rpc.a stdio_bus.rpc.a 1");
    broker_expect(broker, "SUB stdio_bus.open.a stdio_bus.open.a 2");
    broker_expect_looks(broker);
    broker_expect_nodes(broker);
}

static inline void broker_ask(struct broker *broker, const char *reply, const char *json)
{
    struct text *message = test_text();

    text_printf(message, "%s", json);
    text_replace(message, "'", "\"");
    broker_say(broker, test_format("MSG stdio_bus.rpc.a 1 %s %zu\r\n%.*s", reply, message->len,
                                   (int)message->len, message->data));
}

static inline struct span broker_answer(struct broker *broker, const char *reply)
{
    broker_expect(broker, test_format("PUB %s ", reply));
    return client_line(broker->link);
}

#endif
