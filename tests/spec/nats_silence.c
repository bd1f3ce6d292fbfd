/* doc/federation.md: a node that gives no sign of life. */
#include "build_config.h"

#include "nats_letters.h"

/* Signs of life come each second where there is a link. A node that gives none is gone. */
TEST(nats_node_is_silent)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;

    daemon = serve_pool(&broker, "");
    open_link(&broker);
    broker_expect(&broker, "PUB stdio_bus.node." OTHER ".0 49");
    client_line(broker.link);
    broker_expect(&broker, "PUB stdio_bus.node." OTHER ".0 49");
    daemon_wait_log(daemon, "node far is gone: 1 link lost");
    daemon_wait_log(daemon, "disconnected: ");
}

/* After a new connection it may be on its way for 12 s, which further ones do not prolong. */
TEST(nats_node_is_silent_after_new_connections)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    int64_t begin;

    daemon = serve_pool(&broker, "");
    open_link(&broker);
    client_abort(broker.link);
    broker_begin(&broker);
    begin = now_ms();
    while (now_ms() < begin + 6000)
        client_line(broker.link); /* signs of life are among them */
    client_abort(broker.link);
    broker_begin(&broker);
    daemon_wait_log(daemon, "node far is gone: 1 link lost");
    ck_assert_int_lt(now_ms(), begin + 16000);
    daemon_wait_log(daemon, "disconnected: ");
}
