/* Nothing lost, nothing mixed up. */
#include "build_config.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "harness.h"

static unsigned total_requests(unsigned usual)
{
    const char *text = getenv("TEST_STRESS_REQUESTS");
    unsigned long wanted = text != NULL ? strtoul(text, NULL, 10) : 0;
    return wanted > 0 && wanted < usual ? (unsigned)wanted : usual;
}

static void check_load(struct load load, const struct setup *setup)
{
    struct daemon daemon;
    daemon_start(&daemon, setup);
    load_run(&load, &daemon);
    daemon_check_asleep(&daemon);
    daemon_check_memory(&daemon, 32768);
    daemon_stop(&daemon);
}

/* Sixteen clients with sixteen requests in flight each, 200,000 requests, half of them in
 * sessions, all clients with the ids 0, 1, 2 ... */
START_TEST(stress_many_clients_with_the_same_ids)
{
    struct load load = {.clients = 16, .in_flight = 16, .in_sessions = true,
                        .requests = total_requests(200000) / 16};
    check_load(load, &(struct setup){.instances = 4});
}
END_TEST

/* The same with one worker, where every id is everybody's. */
START_TEST(stress_one_worker)
{
    struct load load = {.clients = 16, .in_flight = 16, .in_sessions = true,
                        .requests = total_requests(32000) / 16};
    check_load(load, &(struct setup){.instances = 1});
}
END_TEST

START_TEST(stress_one_client_over_tcp)
{
    struct load load = {.clients = 1, .in_flight = 64, .in_sessions = true,
                        .requests = total_requests(30000)};
    check_load(load, &(struct setup){.mode = SETUP_TCP, .instances = 2});
}
END_TEST

START_TEST(stress_messages_of_64_kib)
{
    struct load load = {.clients = 8, .in_flight = 4, .requests = 100, .size = 64 * 1024,
                        .in_sessions = true};
    check_load(load, &(struct setup){.instances = 3});
}
END_TEST

START_TEST(stress_messages_of_900_kib)
{
    struct load load = {.clients = 4, .in_flight = 3, .requests = 20, .size = 900 * 1024,
                        .in_sessions = true};
    check_load(load, &(struct setup){.instances = 2});
}
END_TEST

/* Queues that hold one message or none: every one of them is paused and resumed all the time. */
START_TEST(stress_small_queues)
{
    struct load load = {.clients = 6, .in_flight = 50, .requests = 1000, .size = 700,
                        .in_sessions = true};
    check_load(load, &(struct setup){.instances = 2, .limits = "'max_output_queue':1024"});
}
END_TEST

/* Eight clients at work while one does not read for a while, a worker neither, and a worker is
 * asked for more than anybody reads. */
START_TEST(stress_while_others_stall)
{
    struct daemon daemon;
    struct client stalled, helper;
    struct load load = {.clients = 8, .in_flight = 8, .requests = 1500, .in_sessions = true,
                        .pool = "good"};
    START(&daemon, .pools = POOL("good", 3, "") "," POOL("bad", 1, ""),
          .limits = "'max_output_queue':65536");
    client_connect_small(&stalled, &daemon);
    client_connect(&helper, &daemon);
    client_send(&stalled, "{'id':1,'pool':'bad','sessionId':'stalled','method':'notify',"
                          "'params':{'n':3000,'size':500}}");
    ck_assert(wait_fd(stalled.in, POLLIN, deadline_usual()));
    load_run(&load, &daemon);
    for (long n = 0; n < 3000; n++)
        ck_assert_int_eq(json_long(json_get(client_line(&stalled), "params.n"), -1), n);
    client_result(&stalled, "1");
    client_send(&helper, "{'id':2,'pool':'bad','method':'stop_reading'}");
    long pid = json_long(json_get(client_result(&helper, "2"), "pid"), -1);
    load_run(&load, &daemon);
    kill((pid_t)pid, SIGUSR1);
    client_close(&stalled);
    client_close(&helper);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stress: nothing lost");
    TCase *load = harness_case(suite, "load");
    tcase_add_test(load, stress_many_clients_with_the_same_ids);
    tcase_add_test(load, stress_one_worker);
    tcase_add_test(load, stress_one_client_over_tcp);
    tcase_add_test(load, stress_messages_of_64_kib);
    tcase_add_test(load, stress_messages_of_900_kib);
    tcase_add_test(load, stress_small_queues);
    tcase_add_test(load, stress_while_others_stall);
    return harness_run(suite);
}
