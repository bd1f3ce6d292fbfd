/* No message is lost, and none reaches another client. */
#include "build_config.h"

#include <poll.h>

#include "harness.h"

static unsigned total_requests(unsigned usual)
{
    const char *text = getenv("TEST_STRESS_REQUESTS");
    unsigned long wanted = text != NULL ? strtoul(text, NULL, 10) : 0;
    return wanted > 0 && wanted < usual ? (unsigned)wanted : usual;
}

/* All clients use the ids 0, 1, 2 and so on. */
static const struct {
    struct load load;
    struct setup setup;
} loads[] = {
    /* Half of 200,000 requests belong to sessions. */
    {{.clients = 16, .in_flight = 16, .requests = 200000 / 16}, {.instances = 4}},
    /* At one worker all clients compete for each id. */
    {{.clients = 16, .in_flight = 16, .requests = 32000 / 16}, {.instances = 1}},
    {{.clients = 1, .in_flight = 64, .requests = 30000}, {.mode = SETUP_TCP, .instances = 2}},
    {{.clients = 8, .in_flight = 4, .requests = 100, .size = 64 * 1024}, {.instances = 3}},
    {{.clients = 4, .in_flight = 3, .requests = 20, .size = 900 * 1024}, {.instances = 2}},
    /* Queues that hold one message or none are paused and resumed all the time. */
    {{.clients = 6, .in_flight = 50, .requests = 1000, .size = 700},
     {.instances = 2, .limits = "'max_output_queue':1024"}},
};

TEST_ROWS(stress_many_clients_with_the_same_ids, COUNT(loads))
{
    struct load load = loads[row].load;
    load.in_sessions = true;
    if (load.size == 0)
        load.requests = total_requests(load.requests * load.clients) / load.clients;
    struct daemon *daemon = daemon_start(&loads[row].setup);
    load_run(&load, daemon);
    daemon_check_asleep(daemon);
    daemon_check_memory(daemon, 32768);
}

/* Eight clients are served while another client does not read its many messages, and then while a
 * worker does not read. */
TEST(stress_while_others_stall)
{
    struct load load = {
        .clients = 8, .in_flight = 8, .requests = 1500, .in_sessions = true, .pool = "good"};
    struct daemon *daemon = START(.pools = POOL("good", 3, "") "," POOL("bad", 1, ""),
                                  .limits = "'max_output_queue':65536");
    struct client *stalled = client_connect_small(daemon), *helper = client_connect(daemon);
    client_send(stalled, "{'id':1,'pool':'bad','sessionId':'stalled','method':'notify',"
                         "'params':{'n':3000,'size':500}}");
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    load_run(&load, daemon);
    for (long n = 0; n < 3000; n++)
        ck_assert_int_eq(json_number(client_line(stalled), "params.n"), n);
    client_result(stalled, "1");
    client_send(helper, "{'id':2,'pool':'bad','method':'stop_reading'}");
    long pid = json_number(client_result(helper, "2"), "pid");
    load_run(&load, daemon);
    kill((pid_t)pid, SIGUSR1);
}
