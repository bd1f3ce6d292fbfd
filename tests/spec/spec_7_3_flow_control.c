/* Specification 7.3: queues that fill up, input that is too long. */
#include "build_config.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define NOTES 24000
#define NOTE_SIZE 1024

static void expect_notes(struct client *client, long from, long to)
{
    for (long n = from; n < to; n++) {
        struct span line = client_line(client);
        ck_assert_int_eq(json_long(json_get(line, "params.n"), -1), n);
        ck_assert_uint_eq(json_text(json_get(line, "params.pad")).len, NOTE_SIZE);
    }
}

static void ask_for_notes(struct client *client, const char *session, long count)
{
    char params[64];
    snprintf(params, sizeof params, "{'n':%ld,'size':%d}", count, NOTE_SIZE);
    client_request(client, "'n'", session, "notify", params);
}

/* A client that does not read, and a worker with 24 megabytes for it: the worker is not read
 * from any more, memory stays within bounds, and nothing is lost once the client reads. */
static void check_stalled_client(const char *limits, enum setup_mode mode)
{
    struct daemon daemon;
    struct client stalled, other;
    START(&daemon, .mode = mode, .limits = limits,
          .pools = POOL("flood", 1, "") "," POOL("other", 1, ""));
    client_connect_small(&stalled, &daemon);
    client_connect(&other, &daemon);
    client_send(&stalled, "{'id':1,'pool':'flood','sessionId':'s','method':'environment'}");
    long worker = json_long(json_get(client_result(&stalled, "1"), "pid"), -1);
    ask_for_notes(&stalled, "s", NOTES);
    ck_assert(wait_fd(stalled.in, POLLIN, deadline_usual()));
    long cpu_ms = -1;
    while (cpu_ms != proc_cpu_ms((pid_t)worker)) {
        cpu_ms = proc_cpu_ms((pid_t)worker);
        for (int i = 0; i < 200; i++) {
            client_send(&other, "{'id':2,'pool':'other','method':'echo'}");
            client_result(&other, "2");
        }
    }
    expect_notes(&stalled, 0, NOTES);
    client_result(&stalled, "\"n\"");
    client_pid(&stalled, "3", "s");
    daemon_check_memory(&daemon, 16384);
    client_close(&stalled);
    client_close(&other);
    daemon_stop(&daemon);
}

START_TEST(spec_7_3_1_stalled_client_pauses_its_worker)
{
    check_stalled_client(NULL, SETUP_UNIX);
}
END_TEST

START_TEST(spec_7_3_1_stalled_tcp_client_pauses_its_worker)
{
    check_stalled_client(NULL, SETUP_TCP);
}
END_TEST

START_TEST(spec_7_3_1_small_queue)
{
    check_stalled_client("'max_output_queue':4096,'max_input_buffer':4096", SETUP_UNIX);
}
END_TEST

/* A worker that does not read, and clients with more for it than its queue holds. */
static void check_stalled_worker(const char *limits, unsigned requests, size_t size)
{
    struct daemon daemon;
    struct client clients[2], helper;
    struct load load = {.clients = 2, .in_flight = requests, .requests = requests, .size = size,
                        .in_sessions = true};
    START(&daemon, .instances = 1, .limits = limits);
    client_connect(&helper, &daemon);
    long worker = client_pid(&helper, "1", NULL);
    client_ask(&helper, "'stop'", NULL, "stop_reading", NULL);
    for (unsigned i = 0; i < 2; i++) {
        client_connect(&clients[i], &daemon);
        load_begin(&load, i, &clients[i]);
    }
    load_push(&load);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_lt(load.members[i].written, load.members[i].output.len);
    kill((pid_t)worker, SIGUSR1);
    load_finish(&load);
    daemon_check_memory(&daemon, 16384);
    load_end(&load);
    client_close(&helper);
    daemon_stop(&daemon);
}

START_TEST(spec_7_3_1_stalled_worker_pauses_its_clients)
{
    check_stalled_worker(NULL, 800, 16384);
}
END_TEST

START_TEST(spec_7_3_1_stalled_worker_with_a_small_queue)
{
    check_stalled_worker("'max_output_queue':10000", 500, 2000);
}
END_TEST

START_TEST(spec_7_3_1_stalled_worker_with_large_messages)
{
    check_stalled_worker(NULL, 12, 900 * 1024);
}
END_TEST

/* Again and again: each time the queue fills and drains, reading is resumed. */
START_TEST(spec_7_3_1_backpressure_is_released)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'max_output_queue':20000");
    client_connect_small(&client, &daemon);
    for (int round = 0; round < 5; round++) {
        ask_for_notes(&client, "s", 1000);
        ck_assert(wait_fd(client.in, POLLIN, deadline_usual()));
        expect_notes(&client, 0, 1000);
        client_result(&client, "'n'");
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Past backpressure_timeout_sec the connection is closed, with a warning that says how much was
 * dropped; everybody else goes on, the worker too. */
START_TEST(spec_7_3_1_stalled_client_is_closed_after_the_timeout)
{
    struct daemon daemon;
    struct client stalled, other;
    START(&daemon, .instances = 1,
          .limits = "'backpressure_timeout_sec':1,'max_output_queue':100000");
    client_connect_small(&stalled, &daemon);
    client_connect(&other, &daemon);
    long pid = client_pid(&other, "1", NULL);
    ask_for_notes(&stalled, "s", NOTES);
    daemon_wait_log(&daemon, " (WARN|ERROR) .*backpressure_timeout_sec.*[0-9]+ bytes");
    ck_assert_int_eq(client_pid(&other, "2", NULL), pid);
    struct span line;
    while (client_line_before(&stalled, deadline_usual(), &line))
        continue;
    ck_assert(stalled.eof);
    client_close(&stalled);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* A worker that does not read for that long is closed: ended, and replaced. */
START_TEST(spec_7_3_1_stalled_worker_is_closed_after_the_timeout)
{
    struct daemon daemon;
    struct client client, other;
    struct text line = {0};
    START(&daemon, .pools = POOL("bad", 1, "") "," POOL("good", 1, ""),
          .limits = "'backpressure_timeout_sec':1,'max_output_queue':100000");
    client_connect(&client, &daemon);
    client_connect(&other, &daemon);
    client_send(&client, "{'id':1,'pool':'bad','sessionId':'s','method':'stop_reading'}");
    long pid = json_long(json_get(client_result(&client, "1"), "pid"), -1);
    text_printf(&line, "{\"id\":2,\"sessionId\":\"s\",\"params\":\"");
    text_fill(&line, 'x', 500000);
    text_printf(&line, "\"}\n");
    client_send_bytes(&client, line.data, line.len);
    client_error(&client, "2", -32000, "worker exited before answering");
    wait_gone(pid);
    client_send(&other, "{'id':3,'pool':'good','method':'echo'}");
    client_result(&other, "3");
    client_send(&client, "{'id':4,'pool':'bad','sessionId':'s','method':'echo'}");
    ck_assert_int_ne(json_long(json_get(client_result(&client, "4"), "pid"), -1), pid);
    text_free(&line);
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* A client that reads slowly, but reads, is not closed: time counts from when the queue is full. */
START_TEST(spec_7_3_1_slow_client_is_not_closed)
{
    struct daemon daemon;
    struct client client;
    struct span line;
    START(&daemon, .instances = 1,
          .limits = "'backpressure_timeout_sec':2,'max_output_queue':50000");
    client_connect_small(&client, &daemon);
    ask_for_notes(&client, "s", 1500);
    int64_t until = now_ms() + 3500;
    long n = 0;
    while (now_ms() < until && n < 1400) {
        for (int i = 0; i < 15; i++, n++) {
            line = client_line(&client);
            ck_assert_int_eq(json_long(json_get(line, "params.n"), -1), n);
        }
        for (int i = 0; i < 20; i++)
            nap();
    }
    expect_notes(&client, n, 1500);
    client_result(&client, "'n'");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

static void add_line(struct text *line, size_t len)
{
    size_t start = line->len;
    text_printf(line, "{\"id\":1,\"method\":\"plain\",\"x\":\"");
    text_fill(line, 'x', len - (line->len - start) - 3);
    text_printf(line, "\"}\n");
}

/* An error line may come before the end. */
static void expect_refusal(struct client *client)
{
    struct span line;
    if (client_line_before(client, deadline_usual(), &line))
        ck_assert(json_get(line, "error").data != NULL);
    client_expect_eof(client);
}

static void check_input_limit(const char *limits, size_t max)
{
    struct daemon daemon;
    struct client client, other;
    struct text line = {0};
    START(&daemon, .instances = 1, .limits = limits);
    client_connect(&other, &daemon);
    for (size_t chunk = 1000; chunk <= max * 3; chunk *= 7) {
        client_connect(&client, &daemon);
        line.len = 0;
        add_line(&line, max);
        client_send_chunks(&client, line.data, line.len, chunk);
        client_result(&client, "1");
        line.len = 0;
        add_line(&line, max + 1);
        client_send_chunks(&client, line.data, line.len, chunk);
        expect_refusal(&client);
        client_close(&client);
        client_expect_quiet(&other);
    }
    daemon_wait_log(&daemon, " ERROR .*\\[?client.*max_input_buffer");
    text_free(&line);
    client_close(&other);
    daemon_stop(&daemon);
}

START_TEST(spec_7_3_2_too_long_a_line_closes_the_client)
{
    check_input_limit("'max_input_buffer':5000", 5000);
}
END_TEST

START_TEST(spec_8_1_default_max_input_buffer)
{
    check_input_limit(NULL, 1048576);
}
END_TEST

/* Many short lines in one go are not a long one. */
START_TEST(spec_7_3_2_limit_is_for_one_message)
{
    struct daemon daemon;
    struct client client;
    struct text lines = {0};
    START(&daemon, .instances = 1, .limits = "'max_input_buffer':2000");
    client_connect(&client, &daemon);
    for (int i = 0; i < 200; i++)
        text_printf(&lines, "{\"id\":%d,\"method\":\"plain\",\"params\":%d}\n", i, i);
    client_send_bytes(&client, lines.data, lines.len);
    for (int i = 0; i < 200; i++)
        client_expect(&client, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    text_free(&lines);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* A line without an end: closed while it is still being sent, and not kept. */
START_TEST(spec_7_3_2_endless_line_closes_the_client)
{
    struct daemon daemon;
    struct client client;
    struct text part = {0};
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_send_bytes(&client, "{\"x\":\"", 6);
    text_fill(&part, 'x', 65536);
    for (int i = 0; i < 1000; i++)
        client_send_bytes(&client, part.data, part.len);
    expect_refusal(&client);
    daemon_check_memory(&daemon, 16384);
    text_free(&part);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_7_3_2_too_long_a_line_closes_the_worker)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'max_input_buffer':5000");
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", "s");
    client_request(&client, "2", "s", "big", "{'size':6000}");
    client_error(&client, "2", -32000, "worker exited before answering");
    daemon_wait_log(&daemon, " ERROR .*\\[worker=[0-9]+ pid=[0-9]+\\].*max_input_buffer");
    ck_assert_int_ne(client_pid(&client, "3", "s"), pid);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spec 7.3: flow control");
    TCase *output = harness_case(suite, "7.3.1 output");
    tcase_add_test(output, spec_7_3_1_stalled_client_pauses_its_worker);
    tcase_add_test(output, spec_7_3_1_stalled_tcp_client_pauses_its_worker);
    tcase_add_test(output, spec_7_3_1_small_queue);
    tcase_add_test(output, spec_7_3_1_stalled_worker_pauses_its_clients);
    tcase_add_test(output, spec_7_3_1_stalled_worker_with_a_small_queue);
    tcase_add_test(output, spec_7_3_1_stalled_worker_with_large_messages);
    tcase_add_test(output, spec_7_3_1_backpressure_is_released);
    tcase_add_test(output, spec_7_3_1_stalled_client_is_closed_after_the_timeout);
    tcase_add_test(output, spec_7_3_1_stalled_worker_is_closed_after_the_timeout);
    tcase_add_test(output, spec_7_3_1_slow_client_is_not_closed);
    TCase *input = harness_case(suite, "7.3.2 input");
    tcase_add_test(input, spec_7_3_2_too_long_a_line_closes_the_client);
    tcase_add_test(input, spec_8_1_default_max_input_buffer);
    tcase_add_test(input, spec_7_3_2_limit_is_for_one_message);
    tcase_add_test(input, spec_7_3_2_endless_line_closes_the_client);
    tcase_add_test(input, spec_7_3_2_too_long_a_line_closes_the_worker);
    return harness_run(suite);
}
