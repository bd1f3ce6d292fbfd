/* Specification, chapter 8: tables that are full, and that have room again. */
#include "build_config.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"

/* The one too many gets an error line and is closed; where one goes, another may come. */
START_TEST(spec_8_2_max_connections)
{
    struct daemon daemon;
    struct client clients[3], extra;
    if (!proc_available())
        return;
    START(&daemon, .instances = 1, .limits = "'max_connections':3");
    int fds = client_settled_fds(&daemon, 1);
    for (int i = 0; i < 3; i++) {
        client_connect(&clients[i], &daemon);
        client_expect_quiet(&clients[i]);
    }
    client_connect(&extra, &daemon);
    client_error(&extra, "null", -32000, "max_connections");
    client_expect_eof(&extra);
    client_close(&extra);
    daemon_wait_log(&daemon, " WARN .*max_connections");
    client_close(&clients[1]);
    daemon_wait_fds(&daemon, fds + 2);
    client_connect(&clients[1], &daemon);
    for (int i = 0; i < 3; i++) {
        client_expect_quiet(&clients[i]);
        client_close(&clients[i]);
    }
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_8_2_max_connections_strict)
{
    struct daemon daemon;
    struct client client, extra;
    START(&daemon, .instances = 1, .limits = "'max_connections':1",
          .members = "'strict':true");
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    client_connect(&extra, &daemon);
    client_expect_eof(&extra);
    client_expect_quiet(&client);
    client_close(&extra);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_8_2_max_sessions)
{
    struct daemon daemon;
    struct client first, second;
    if (!proc_available())
        return;
    START(&daemon, .instances = 2, .limits = "'max_sessions':3");
    int fds = client_settled_fds(&daemon, 2) + 1;
    client_connect(&second, &daemon);
    client_pid(&second, "1", "b");
    client_connect(&first, &daemon);
    client_pid(&first, "1", "a");
    client_pid(&first, "1", "c");
    client_request(&second, "'too many'", "d", "echo", NULL);
    client_error(&second, "\"too many\"", -32000, "max_sessions");
    client_request(&second, NULL, "d", "die", NULL);
    daemon_wait_log(&daemon, " WARN .*max_sessions");
    client_pid(&second, "1", "a");
    client_pid(&second, "1", "b");
    client_pid(&second, "1", "c");
    client_expect_quiet(&second);
    client_close(&first);
    daemon_wait_fds(&daemon, fds);
    client_pid(&second, "1", "d");
    client_pid(&second, "1", "e");
    client_request(&second, "2", "f", "echo", NULL);
    client_error(&second, "2", -32000, "max_sessions");
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_8_2_max_pending_requests)
{
    struct daemon daemon;
    struct client first, second;
    START(&daemon, .instances = 1, .limits = "'max_pending_requests':4");
    client_connect(&first, &daemon);
    client_connect(&second, &daemon);
    client_ask(&first, "'h'", "s", "hold", NULL);
    client_request(&first, "1", "s", "echo", NULL);
    client_request(&first, "2", "s", "echo", NULL);
    client_request(&first, "3", "s", "echo", NULL);
    client_request(&first, "4", "s", "echo", NULL);
    client_request(&first, "5", "s", "echo", NULL);
    client_error(&first, "5", -32000, "max_pending_requests");
    client_request(&second, "6", "s", "echo", NULL);
    client_error(&second, "6", -32000, "max_pending_requests");
    client_request(&second, NULL, "s", "release", NULL);
    for (int i = 1; i <= 4; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        client_result(&first, id);
    }
    client_ask(&second, "6", "s", "echo", NULL);
    client_close(&first);
    client_close(&second);
    daemon_stop(&daemon);
}
END_TEST

/* In strict mode nothing is made up, and nobody is closed for it. */
START_TEST(spec_8_2_full_tables_strict)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .members = "'strict':true",
          .limits = "'max_pending_requests':2,'max_sessions':1");
    client_connect(&client, &daemon);
    client_ask(&client, "'h'", "s", "hold", NULL);
    client_request(&client, "1", "s", "echo", NULL);
    client_request(&client, "2", "t", "echo", NULL);
    client_request(&client, "3", "s", "echo", NULL);
    client_request(&client, "4", "s", "echo", NULL);
    client_request(&client, NULL, "s", "release", NULL);
    client_result(&client, "1");
    client_result(&client, "3");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* The default tables take what the specification says, and say no to one more. */
START_TEST(spec_8_2_default_max_sessions)
{
    struct daemon daemon;
    struct client client;
    struct text lines = {0};
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    for (int i = 0; i < 1025; i++)
        text_printf(&lines, "{\"id\":%d,\"sessionId\":\"s%d\",\"method\":\"plain\"}\n", i, i);
    client_send_bytes(&client, lines.data, lines.len);
    int answers = 0, errors = 0;
    for (int i = 0; i < 1025; i++) {
        struct span line = client_line(&client);
        if (json_get(line, "error").data != NULL) {
            ck_assert_int_eq(json_long(json_get(line, "id"), -1), 1024);
            errors++;
        } else {
            answers++;
        }
    }
    ck_assert_int_eq(answers, 1024);
    ck_assert_int_eq(errors, 1);
    text_free(&lines);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_8_2_default_max_pending_requests)
{
    struct daemon daemon;
    struct client client;
    struct text lines = {0};
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_ask(&client, "'h'", NULL, "hold", NULL);
    for (int i = 0; i < 4097; i++)
        text_printf(&lines, "{\"id\":%d,\"method\":\"plain\",\"params\":%d}\n", i, i);
    client_send_bytes(&client, lines.data, lines.len);
    client_error(&client, "4096", -32000, "max_pending_requests");
    client_request(&client, NULL, NULL, "release", NULL);
    for (int i = 0; i < 4096; i++)
        client_expect(&client, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    client_expect_quiet(&client);
    text_free(&lines);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spec 8: limits");
    TCase *tables = harness_case(suite, "8.2 tables");
    tcase_add_test(tables, spec_8_2_max_connections);
    tcase_add_test(tables, spec_8_2_max_connections_strict);
    tcase_add_test(tables, spec_8_2_max_sessions);
    tcase_add_test(tables, spec_8_2_max_pending_requests);
    tcase_add_test(tables, spec_8_2_full_tables_strict);
    tcase_add_test(tables, spec_8_2_default_max_sessions);
    tcase_add_test(tables, spec_8_2_default_max_pending_requests);
    return harness_run(suite);
}
