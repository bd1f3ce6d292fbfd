/* Specification 7.3: full queues, and messages that are too long. */
#include "build_config.h"

#include <poll.h>

#include "harness.h"

#define NOTES 24000
#define NOTE_SIZE 1024

static void expect_notes(struct client *client, long from, long to)
{
    for (long n = from; n < to; n++) {
        struct span line = client_line(client);
        ck_assert_int_eq(json_number(line, "params.n"), n);
        ck_assert_uint_eq(json_text(json_get(line, "params.pad")).len, NOTE_SIZE);
    }
}

static void ask_for_notes(struct client *client, const char *session, long count)
{
    client_request(client, "'n'", session, "notify",
                   test_format("{'n':%ld,'size':%d}", count, NOTE_SIZE));
}

static const struct {
    enum setup_mode mode;
    const char *limits;
} client_stalls[] = {
    {SETUP_UNIX, NULL},
    {SETUP_TCP, NULL},
    {SETUP_UNIX, "'max_output_queue':4096,'max_input_buffer':4096"},
};

/* A client does not read 24 megabytes of its worker: the daemon stops reading from the worker, its
 * memory stays bounded, and nothing is lost when the client reads. */
TEST_ROWS(spec_7_3_1_stalled_client_pauses_its_worker, COUNT(client_stalls))
{
    struct daemon *daemon = START(.mode = client_stalls[row].mode,
                                  .limits = client_stalls[row].limits,
                                  .pools = POOL("flood", 1, "") "," POOL("other", 1, ""));
    struct client *stalled = client_connect_small(daemon), *other = client_connect(daemon);
    client_send(stalled, "{'id':1,'pool':'flood','sessionId':'s','method':'environment'}");
    long worker = json_number(client_result(stalled, "1"), "pid");
    ask_for_notes(stalled, "s", NOTES);
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    long cpu_ms = -1;
    while (cpu_ms != proc_cpu_ms((pid_t)worker)) {
        cpu_ms = proc_cpu_ms((pid_t)worker);
        for (int i = 0; i < 200; i++) {
            client_send(other, "{'id':2,'pool':'other','method':'echo'}");
            client_result(other, "2");
        }
    }
    expect_notes(stalled, 0, NOTES);
    client_result(stalled, "'n'");
    client_pid(stalled, "3", "s");
    daemon_check_memory(daemon, 16384);
}

static const struct {
    const char *limits;
    unsigned requests;
    size_t size;
} worker_stalls[] = {
    {NULL, 800, 16384},
    {"'max_output_queue':10000", 500, 2000},
    {NULL, 12, 900 * 1024},
};

/* A worker does not read, and its clients have more messages than its queue holds. */
TEST_ROWS(spec_7_3_1_stalled_worker_pauses_its_clients, COUNT(worker_stalls))
{
    struct load load = {.clients = 2,
                        .in_sessions = true,
                        .in_flight = worker_stalls[row].requests,
                        .requests = worker_stalls[row].requests,
                        .size = worker_stalls[row].size};
    struct daemon *daemon = START(.instances = 1, .limits = worker_stalls[row].limits);
    struct client *helper = client_connect(daemon);
    long worker = client_pid(helper, "1", NULL);
    client_ask(helper, "'stop'", NULL, "stop_reading", NULL);
    load_begin(&load, daemon);
    load_push(&load);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_lt(load.members[i].written, load.members[i].output.len);
    kill((pid_t)worker, SIGUSR1);
    load_finish(&load);
    daemon_check_memory(daemon, 16384);
    load_end(&load);
}

/* Reading is resumed each time that the queue has filled and drained. */
TEST(spec_7_3_1_backpressure_is_released)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_output_queue':20000");
    struct client *client = client_connect_small(daemon);
    for (int round = 0; round < 5; round++) {
        ask_for_notes(client, "s", 1000);
        ck_assert(wait_fd(client->in, POLLIN, deadline_usual()));
        expect_notes(client, 0, 1000);
        client_result(client, "'n'");
    }
}

/* After backpressure_timeout_sec the connection is closed, with a warning that names the dropped
 * bytes; the other clients and the worker continue. */
TEST(spec_7_3_1_stalled_client_is_closed_after_the_timeout)
{
    struct daemon *daemon =
        START(.instances = 1, .limits = "'backpressure_timeout_sec':1,'max_output_queue':100000");
    struct client *stalled = client_connect_small(daemon), *other = client_connect(daemon);
    long pid = client_pid(other, "1", NULL);
    ask_for_notes(stalled, "s", NOTES);
    daemon_wait_log(daemon, " (WARN|ERROR) .*backpressure_timeout_sec.*[0-9]+ bytes");
    ck_assert_int_eq(client_pid(other, "2", NULL), pid);
    struct span line;
    while (client_line_before(stalled, deadline_usual(), &line))
        continue;
    ck_assert(stalled->eof);
}

/* A worker that does not read for that time is terminated and replaced. */
TEST(spec_7_3_1_stalled_worker_is_closed_after_the_timeout)
{
    struct daemon *daemon =
        START(.pools = POOL("bad", 1, "") "," POOL("good", 1, ""),
              .limits = "'backpressure_timeout_sec':1,'max_output_queue':100000");
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    client_send(client, "{'id':1,'pool':'bad','sessionId':'s','method':'stop_reading'}");
    long pid = json_number(client_result(client, "1"), "pid");
    client_send(client, "{'id':2,'sessionId':'s','params':'%s'}", test_fill('x', 500000));
    client_error(client, "2", -32000, DIED);
    wait_gone(pid);
    client_send(other, "{'id':3,'pool':'good','method':'echo'}");
    client_result(other, "3");
    client_send(client, "{'id':4,'pool':'bad','sessionId':'s','method':'echo'}");
    ck_assert_int_ne(json_number(client_result(client, "4"), "pid"), pid);
}

/* A client that reads slowly is not closed: the time begins again each time the queue is full. */
TEST(spec_7_3_1_slow_client_is_not_closed)
{
    struct daemon *daemon =
        START(.instances = 1, .limits = "'backpressure_timeout_sec':2,'max_output_queue':50000");
    struct client *client = client_connect_small(daemon);
    ask_for_notes(client, "s", 1500);
    int64_t until = now_ms() + 3500;
    long n = 0;
    while (now_ms() < until && n < 1400) {
        for (int i = 0; i < 15; i++, n++)
            ck_assert_int_eq(json_number(client_line(client), "params.n"), n);
        for (int i = 0; i < 20; i++)
            nap();
    }
    expect_notes(client, n, 1500);
    client_result(client, "'n'");
}

/* A message of `len` bytes, its newline included. */
static const char *line_of(size_t len)
{
    static const char head[] = "{\"id\":1,\"method\":\"plain\",\"x\":\"";
    return test_format("%s%s\"}\n", head, test_fill('x', len - strlen(head) - 3));
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
    struct daemon *daemon = START(.instances = 1, .limits = limits);
    struct client *other = client_connect(daemon);
    for (size_t chunk = 1000; chunk <= max * 3; chunk *= 7) {
        struct client *client = client_connect(daemon);
        client_send_chunks(client, line_of(max), max, chunk);
        client_result(client, "1");
        client_send_chunks(client, line_of(max + 1), max + 1, chunk);
        expect_refusal(client);
        client_close(client);
        client_expect_quiet(other);
    }
    daemon_wait_log(daemon, " ERROR .*\\[?client.*max_input_buffer");
}

TEST(spec_7_3_2_too_long_a_line_closes_the_client)
{
    check_input_limit("'max_input_buffer':5000", 5000);
}

TEST(spec_8_1_default_max_input_buffer)
{
    check_input_limit(NULL, 1048576);
}

/* Many short messages in one write are not a long one. */
TEST(spec_7_3_2_limit_is_for_one_message)
{
    struct text *lines = test_text();
    struct client *client =
        client_connect(START(.instances = 1, .limits = "'max_input_buffer':2000"));
    for (int i = 0; i < 200; i++)
        text_printf(lines, "{\"id\":%d,\"method\":\"plain\",\"params\":%d}\n", i, i);
    client_send_bytes(client, lines->data, lines->len);
    for (int i = 0; i < 200; i++)
        client_expect(client, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
}

/* A line without an end: the client is closed while it sends, and the line is not kept. */
TEST(spec_7_3_2_endless_line_closes_the_client)
{
    const char *part = test_fill('x', 65536);
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_send_bytes(client, "{\"x\":\"", 6);
    for (int i = 0; i < 1000; i++)
        client_send_bytes(client, part, 65536);
    expect_refusal(client);
    daemon_check_memory(daemon, 16384);
}

TEST(spec_7_3_2_too_long_a_line_closes_the_worker)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_input_buffer':5000");
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", "s");
    client_request(client, "2", "s", "big", "{'size':6000}");
    client_error(client, "2", -32000, DIED);
    daemon_wait_log(daemon,
                    " ERROR .*\\[worker=[0-9]+ pid=[0-9]+ pool=[a-z]+\\].*max_input_buffer");
    ck_assert_int_ne(client_pid(client, "3", "s"), pid);
}
