/* The metrics: counters add up exactly to what was sent. */
#include "build_config.h"

#include "control.h"
#include "harness.h"
#include "rmp.h"
#include "rmp_program.h"

static double metric(struct client *control, const char *name)
{
    double value = control_metric(control, name);

    ck_assert_msg(value >= 0, "no %s", name);
    return value;
}

#define EXPECT(control, name, expected)                                                            \
    do {                                                                                           \
        double found = metric((control), (name));                                                  \
        ck_assert_msg(found == (double)(expected), "%s is %g, not %g", (name), found,              \
                      (double)(expected));                                                         \
    } while (0)

static double sum_of_outcomes(struct client *control, const char *name)
{
    static const char *const outcomes[] = {
        "result", "error", "answer_lost", "answerer_left", "asker_left", "cancelled", "timed_out"};
    double sum = 0;

    for (size_t i = 0; i < COUNT(outcomes); i++)
        sum += metric(control, test_format("%s{pool='pool',outcome='%s'}", name, outcomes[i]));
    return sum;
}

/* --- messages and bytes --- */

TEST(control_metrics_count_each_message_and_byte)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 2);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);
    const char *line = "{\"id\":1,\"method\":\"plain\",\"params\":1}\n";
    const char *answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n";
    const int count = 50;

    for (int round = 0; round < 2; round++) { /* a client that is gone counts, too */
        for (int i = 0; i < count; i++) {
            client_send_bytes(client, line, strlen(line));
            client_result(client, "1");
        }
        client_close(client);
        control_wait(control, "status", "clients", "0");
        client = client_connect(daemon);
    }
    client_send_bytes(client, line, strlen(line));
    client_result(client, "1");
    EXPECT(control, "stdio_bus_client_messages_total{direction='received'}", 2 * count + 1);
    EXPECT(control, "stdio_bus_client_messages_total{direction='sent'}", 2 * count + 1);
    EXPECT(control, "stdio_bus_pool_messages_total{pool='pool',direction='sent'}", 2 * count + 1);
    EXPECT(control, "stdio_bus_pool_messages_total{pool='pool',direction='received'}",
           2 * count + 1);
    EXPECT(control, "stdio_bus_client_bytes_total{direction='received'}",
           (2 * count + 1) * (int)strlen(line));
    EXPECT(control, "stdio_bus_pool_bytes_total{pool='pool',direction='sent'}",
           (2 * count + 1) * (int)strlen(line));
    EXPECT(control, "stdio_bus_client_bytes_total{direction='sent'}",
           (2 * count + 1) * (int)strlen(answer));
    EXPECT(control, "stdio_bus_pool_bytes_total{pool='pool',direction='received'}",
           (2 * count + 1) * (int)strlen(answer));
    EXPECT(control, "stdio_bus_requests_total{pool='pool',outcome='result'}", 2 * count + 1);
    EXPECT(control, "stdio_bus_request_duration_seconds_count{pool='pool'}", 2 * count + 1);
    EXPECT(control, "stdio_bus_connections_total", 3);
    EXPECT(control, "stdio_bus_clients", 1);
}

/* Those of a process that is gone stay. */
TEST(control_metrics_outlive_a_worker)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    client_ask(client, "1", NULL, "echo", NULL);
    client_crash(client, "2", NULL, NULL);
    client_ask(client, "3", NULL, "echo", NULL);
    EXPECT(control, "stdio_bus_pool_messages_total{pool='pool',direction='sent'}", 3);
    EXPECT(control, "stdio_bus_pool_messages_total{pool='pool',direction='received'}", 2);
    EXPECT(control, "stdio_bus_worker_starts_total{pool='pool'}", 2);
    EXPECT(control, "stdio_bus_worker_restarts_total{pool='pool'}", 1);
    EXPECT(control, "stdio_bus_workers{pool='pool',state='running'}", 1);
}

/* --- requests --- */

/* Every request has one outcome, is in flight, or was refused. */
TEST(control_metrics_account_for_every_request)
{
    struct daemon *daemon = CONTROL_DAEMON(
            .pools = "{'id':'pool','command':'@WORKER@','instances':1,'request_timeout_sec':2,"
                     "'session':'params.sessionId'}",
            .limits = "'max_pending_requests':6");
    struct client *control = control_connect(daemon), *client = client_connect(daemon),
                  *leaves = client_connect(daemon);
    int sent = 0;

    client_ask(client, test_format("%d", ++sent), NULL, "echo", NULL);
    client_request(client, test_format("%d", ++sent), NULL, "fail", "{'code':-5}");
    client_line(client);
    client_request(client, test_format("%d", ++sent), NULL, "no_answer", NULL);
    client_error(client, test_format("%d", sent), -32001, "timed out");
    client_request(leaves, test_format("%d", 100 + ++sent), NULL, "no_answer", NULL);
    control_wait(control, "requests", "total", "1");
    client_close(leaves);
    control_wait(control, "status", "clients", "1");
    client_request(client, test_format("%d", ++sent), NULL, "no_answer", NULL);
    client_request(client, test_format("%d", sent++), NULL, "echo", NULL); /* the same id */
    client_error(client, test_format("%d", sent - 1), -32600, "in use");
    EXPECT(control, "stdio_bus_requests_in_flight{pool='pool',asker='client'}", 1);
    client_request(client, test_format("%d", 100 + ++sent), NULL, "die", NULL);
    client_error(client, test_format("%d", sent - 2), -32000, DIED);
    client_error(client, test_format("%d", 100 + sent), -32000, DIED);
    EXPECT(control, "stdio_bus_requests_in_flight{pool='pool',asker='client'}", 0);
    EXPECT(control, "stdio_bus_requests_total{pool='pool',outcome='result'}", 1);
    EXPECT(control, "stdio_bus_requests_total{pool='pool',outcome='error'}", 1);
    EXPECT(control, "stdio_bus_requests_total{pool='pool',outcome='timed_out'}", 1);
    EXPECT(control, "stdio_bus_requests_total{pool='pool',outcome='asker_left'}", 1);
    EXPECT(control, "stdio_bus_requests_total{pool='pool',outcome='answerer_left'}", 2);
    EXPECT(control, "stdio_bus_refused_total{reason='id_in_use'}", 1);
    ck_assert_int_eq((int)sum_of_outcomes(control, "stdio_bus_requests_total"), sent - 1);
}

TEST(control_metrics_count_cancelled_requests)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = "{'id':'pool','command':'@WORKER@',"
                                                    "'instances':1,'protocol':'mcp'}");
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    client_ask(client, "1", NULL, "initialize", NULL);
    client_request(client, "2", NULL, "no_answer", NULL);
    client_send(client, "{'jsonrpc':'2.0','method':'notifications/cancelled',"
                        "'params':{'requestId':2}}");
    client_ask(client, "3", NULL, "echo", NULL);
    EXPECT(control, "stdio_bus_requests_total{pool='pool',outcome='cancelled'}", 1);
    EXPECT(control, "stdio_bus_requests_total{pool='pool',outcome='result'}", 2);
}

TEST(control_metrics_count_questions_of_workers)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    client_request(client, "1", "s", "ask", "{'id':7,'params':{}}");
    client_line(client);
    EXPECT(control, "stdio_bus_requests_in_flight{pool='pool',asker='worker'}", 1);
    client_send(client, "{'jsonrpc':'2.0','id':7,'sessionId':'s','result':{}}");
    client_result(client, "1");
    client_request(client, "2", "s", "ask", "{'id':8,'params':{}}");
    client_line(client);
    client_close(client);
    control_wait(control, "status", "clients", "0");
    EXPECT(control, "stdio_bus_worker_requests_total{pool='pool',outcome='result'}", 1);
    EXPECT(control, "stdio_bus_worker_requests_total{pool='pool',outcome='answerer_left'}", 1);
    ck_assert_int_eq((int)sum_of_outcomes(control, "stdio_bus_worker_requests_total"), 2);
}

TEST(control_metrics_count_refusals)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1, .limits = "'max_connections':2,"
                                                                     "'max_sessions':1");
    struct client *control = control_connect(daemon), *client = client_connect(daemon),
                  *other = client_connect(daemon), *third;

    client_ask(client, "1", "s", "echo", NULL);
    client_request(client, "2", "t", "echo", NULL);
    client_error(client, "2", -32000, "too many sessions");
    client_send(client, "{'id':3,'pool':'none','method':'m'}");
    client_error(client, "3", -32602, "no such pool");
    client_ask(other, "1", NULL, "echo", NULL);
    third = client_connect(daemon);
    client_error(third, "null", -32000, "too many connections");
    client_send(other, "nonsense");
    client_error(other, "null", -32700, "");
    EXPECT(control, "stdio_bus_refused_total{reason='max_sessions'}", 1);
    EXPECT(control, "stdio_bus_refused_total{reason='no_pool'}", 1);
    EXPECT(control, "stdio_bus_refused_total{reason='max_connections'}", 1);
    EXPECT(control, "stdio_bus_refused_total{reason='malformed'}", 1);
    EXPECT(control, "stdio_bus_table_entries{table='sessions'}", 1);
    EXPECT(control, "stdio_bus_table_limit{table='sessions'}", 1);
}

/* The time to the answer is that of the worker. */
TEST(control_metrics_measure_the_time_to_the_answer)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    steps_without_upgrades("each program counts the rounds of its loop");
    client_ask(client, "1", NULL, "hold", NULL);
    client_request(client, "2", NULL, "echo", NULL);
    for (int i = 0; i < 300; i++) { /* of time, and of rounds that answer others */
        usleep(1000);
        control_ask(control, "status", NULL);
    }
    client_request(client, "3", NULL, "release", NULL);
    client_result(client, "2");
    client_result(client, "3");
    ck_assert(metric(control, "stdio_bus_request_duration_seconds_sum{pool='pool'}") >= 0.3);
    ck_assert(metric(control, "stdio_bus_request_duration_seconds_bucket{pool='pool',le='0.25'}") <
              3);
    EXPECT(control, "stdio_bus_request_duration_seconds_bucket{pool='pool',le='+Inf'}", 3);
    ck_assert(metric(control, "stdio_bus_loop_rounds_total") > 300);
    ck_assert(metric(control, "stdio_bus_loop_busy_seconds_total") > 0);
}

/* --- limits of a client --- */

TEST(control_metrics_count_what_limits_of_a_client_do)
{
    struct daemon *daemon = CONTROL_DAEMON(
            .instances = 1,
            .limits = "'max_requests_per_client':1,'max_message_rate':20,'idle_timeout_sec':1");
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    client_send(client, "{'id':1,'method':'no_answer'}\n{'id':2,'method':'echo'}");
    client_error(client, "2", -32000, "max_requests_per_client");
    EXPECT(control, "stdio_bus_limited_total{limit='max_requests_per_client'}", 1);
    EXPECT(control, "stdio_bus_limited_total{limit='max_message_rate'}", 0);
    EXPECT(control, "stdio_bus_limited_total{limit='idle_timeout_sec'}", 0);
    client_close(client);
    client = client_connect(daemon);
    steps_without("they take the time in which there would be too many messages");
    for (int i = 0; i < 30; i++)
        client_ask(client, "9", NULL, "echo", NULL);
    ck_assert_double_ge(metric(control, "stdio_bus_limited_total{limit='max_message_rate'}"), 1);
    client_expect_eof(client);
    ck_assert_double_ge(metric(control, "stdio_bus_limited_total{limit='idle_timeout_sec'}"), 1);
}

/* --- the topic bus --- */

TEST(rmp_5_metrics_count_drops_by_reason)
{
    struct daemon *daemon = CONTROL_DAEMON(.arguments = {"--rmp", "@DIR@/rmp.sock"});
    struct client *control = control_connect(daemon), *client;

    daemon_wait_log(daemon, "listening on .*/rmp\\.sock");
    client = rmp_program_connect(daemon);
    rmp_subscribe(client, true, "t", 0);
    RMP_SEND(client, .topic = "t", .trace = 1, .msg_id = 1);
    rmp_next(client);
    for (int i = 0; i < 2; i++) {
        RMP_SEND(client, .topic = "t", .trace = 1, .msg_id = 1, .ack = true);
        rmp_expect_word(client, RMP_OK_SCHEMA, "publish");
    }
    RMP_SEND(client, .topic = "t", .trace = 1, .msg_id = 2, .created_ms = 1, .ttl_ms = 1);
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "Expired");
    RMP_SEND(client, .topic = "u", .trace = 1, .msg_id = 3, .ack = true);
    rmp_expect_word(client, RMP_OK_SCHEMA, "publish");
    EXPECT(control, "stdio_bus_rmp_drops_total{reason='ttl_expired'}", 1);
    EXPECT(control, "stdio_bus_rmp_drops_total{reason='duplicate'}", 2);
    EXPECT(control, "stdio_bus_rmp_drops_total{reason='backpressure_timeout'}", 0);
    EXPECT(control, "stdio_bus_rmp_publications_total", 4);
    EXPECT(control, "stdio_bus_rmp_deliveries_total", 1);
    EXPECT(control, "stdio_bus_rmp_topics", 2); /* rlp/ctrl is the bridge's */
    EXPECT(control, "stdio_bus_rmp_subscriptions", 2);
    EXPECT(control, "stdio_bus_rmp_dedupe_keys", 1);
    EXPECT(control, "stdio_bus_rmp_waits_total", 0);
}
