/* Specification, chapter 5, and what a worker is born with (DESIGN, "Workers"). */
#include "build_config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

START_TEST(spec_5_1_1_worker_input_is_lines)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    const char *two = "{\"id\":1,\"method\":\"mirror\"}\n{\"id\":2,\"method\":\"mirror\"}\n";
    client_send_bytes(&client, two, strlen(two));
    for (int i = 1; i <= 2; i++) {
        struct span line = json_text(json_get(client_line(&client), "result.line"));
        ck_assert_uint_eq(line.len, strlen(two));
        ck_assert_int_eq(memcmp(line.data + line.len - 4, "7d0a", 4), 0);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_5_1_2_answers_written_byte_by_byte)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    for (int i = 0; i < 3; i++) {
        struct span result = client_ask(&client, "1", "s", "split", "['\\u00e9',{}]");
        ck_assert(span_is(json_get(result, "params"), "[\"\\u00e9\",{}]"));
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Blank lines and CR LF from a worker; "0a0d0a200a" is blank, the rest {"id":1,"result":7}\r\n. */
START_TEST(spec_5_1_2_blank_lines_and_crlf_from_a_worker)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "garbage",
                   "{'hex':'0a0d0a200a7b226964223a312c22726573756c74223a377d0d0a0a'}");
    client_expect(&client, "{'id':1,'result':7}\r");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* A JSON line on stderr goes where stderr goes, and to no client. */
START_TEST(spec_5_1_3_stderr_is_not_processed)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_ask(&client, "0", "s", "echo", NULL);
    client_ask(&client, "1", "s", "write_stderr",
               "{'text':'not json { \\\\n and {}'}");
    client_ask(&client, "2", "s", "echo", NULL);
    ck_assert(daemon_logged(&daemon, "^not json \\{ .* and \\{\\}$"));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_5_2_1_answers_follow_their_ids)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_ask(&client, "'h'", NULL, "hold", NULL);
    for (int i = 0; i < 10; i++)
        client_send(&client, "{'id':%d,'method':'plain','params':'p%d'}", i, i);
    client_request(&client, "'r'", NULL, "release", "{'reverse':true}");
    for (int i = 9; i >= 0; i--)
        client_expect(&client, "{'jsonrpc':'2.0','id':%d,'result':'p%d'}", i, i);
    client_result(&client, "'r'");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_5_2_1_error_answers_pass)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", "s", "fail", "{'code':-32601}");
    client_expect(&client, "{'jsonrpc':'2.0','id':1,'sessionId':'s','error':"
                           "{'code':-32601,'message':'as you asked'}}");
    client_request(&client, "1", "s", "echo", NULL);
    client_result(&client, "1");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* What a worker must not write: name, and its bytes in hex. */
static const struct {
    const char *name, *hex;
} garbage[] = {
    {"text", "68656c6c6f0a"},
    {"array", "5b5d0a"},
    {"cut object", "7b226964220a"},
    {"invalid UTF-8", "7b2261223a22ff227d0a"},
    {"NUL", "000a"},
    {"id is an array", "7b226964223a5b5d7d0a"},
};

/* The worker is terminated and replaced, its sessions begin anew, its askers are told. */
static void check_garbage(const char *name, const char *hex)
{
    struct daemon daemon;
    struct client client;
    char params[64];
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", "s");
    snprintf(params, sizeof params, "{'hex':'%s'}", hex);
    client_request(&client, "2", "s", "garbage", params);
    client_error(&client, "2", -32000, "worker exited before answering");
    daemon_wait_log(&daemon, " ERROR .*\\[worker=[0-9]+ pid=[0-9]+\\]");
    ck_assert_msg(client_pid(&client, "3", "s") != pid, "%s: worker goes on", name);
    wait_gone(pid);
    client_close(&client);
    daemon_stop(&daemon);
}

START_TEST(spec_5_3_malformed_worker_is_replaced)
{
    check_garbage(garbage[_i].name, garbage[_i].hex);
}
END_TEST

/* It gets SIGTERM, not SIGKILL: it can still run its handler, which exits with its own code. */
START_TEST(spec_5_3_malformed_worker_gets_sigterm)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .args = "'--stay'");
    client_connect(&client, &daemon);
    client_ask(&client, "1", "s", "on_sigterm", "{'do':'exit','code':42}");
    client_request(&client, "2", "s", "garbage", "{'hex':'780a'}");
    client_error(&client, "2", -32000, "worker exited before answering");
    daemon_wait_log(&daemon, "\\[worker=[0-9]+ pid=[0-9]+\\].* 42");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_5_3_malformed_worker_ignoring_sigterm_is_killed)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'drain_timeout_sec':1");
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", "s");
    client_ask(&client, "1", "s", "on_sigterm", "{'do':'ignore'}");
    client_request(&client, "2", "s", "garbage", "{'hex':'780a'}");
    client_error(&client, "2", -32000, "worker exited before answering");
    ck_assert_int_ne(client_pid(&client, "3", "s"), pid);
    wait_gone(pid);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* All of the worker's sessions: other clients' too. */
START_TEST(spec_5_3_sessions_of_a_malformed_worker_end)
{
    struct daemon daemon;
    struct client client, other;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_connect(&other, &daemon);
    long pid = client_pid(&client, "1", "mine");
    ck_assert_int_eq(client_pid(&other, "1", "yours"), pid);
    client_request(&client, "2", "mine", "garbage", "{'hex':'780a'}");
    client_error(&client, "2", -32000, "worker exited before answering");
    ck_assert_int_ne(client_pid(&client, "3", "mine"), pid);
    client_request(&client, "4", "mine", "notify", "{'session':'yours'}");
    client_result(&client, "4");
    client_expect_quiet(&other);
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* Garbage without end: everybody else goes on, memory stays bounded. */
START_TEST(spec_5_3_flood_of_garbage)
{
    struct daemon daemon;
    struct client client, other;
    START(&daemon, .pools = POOL("bad", 1, "") "," POOL("good", 1, ""));
    client_connect(&client, &daemon);
    client_connect(&other, &daemon);
    client_send(&client, "{'id':1,'pool':'bad','method':'garbage','params':"
                         "{'hex':'676172626167650a','times':-1}}");
    for (int i = 0; i < 100; i++) {
        client_send(&other, "{'id':1,'pool':'good','method':'plain'}");
        client_result(&other, "1");
    }
    client_error(&client, "1", -32000, "worker exited before answering");
    client_send(&client, "{'id':2,'pool':'bad','method':'echo'}");
    client_result(&client, "2");
    daemon_check_memory(&daemon, 16384);
    client_close(&client);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_worker_inherits_nothing_but_its_pipes)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 2, .dirty = true);
    client_connect(&client, &daemon);
    for (int i = 0; i < 4; i++) {
        struct span born = client_ask(&client, "1", NULL, "environment", NULL);
        ck_assert(span_is(json_get(born, "fds.2.fd"), "2"));
        ck_assert_msg(json_get(born, "fds.3").data == NULL, "%.*s", (int)born.len, born.data);
        ck_assert(span_is(json_get(born, "blocked"), "[]"));
        ck_assert_msg(span_is(json_get(born, "ignored"), "[]"), "%.*s", (int)born.len, born.data);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_worker_leads_its_process_group)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .args = "'--name','with \\u0020 spaces'");
    client_connect(&client, &daemon);
    struct span born = client_ask(&client, "1", NULL, "environment", NULL);
    ck_assert(span_same(json_get(born, "pid"), json_get(born, "pgid")));
    ck_assert_int_ne(json_long(json_get(born, "pgid"), -1), daemon.pid);
    ck_assert(span_is(json_get(born, "args.1"), "\"--name\""));
    ck_assert(span_is(json_get(born, "args.2"), "\"with   spaces\""));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* A restarted worker is born the same way, while clients are connected. */
START_TEST(design_restarted_worker_inherits_nothing)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    client_request(&client, "1", NULL, "die", "{'signal':9}");
    client_error(&client, "1", -32000, "worker exited before answering");
    struct span born = client_ask(&client, "2", NULL, "environment", NULL);
    ck_assert_msg(json_get(born, "fds.3").data == NULL, "%.*s", (int)born.len, born.data);
    ck_assert(span_is(json_get(born, "blocked"), "[]"));
    ck_assert(span_is(json_get(born, "ignored"), "[]"));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_worker_command_is_found_in_path)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .config = "{'pools':[{'id':'p','command':'sh','instances':1,"
                             "'args':['-c','exec @WORKER@ --name by-sh']}]}");
    client_connect(&client, &daemon);
    struct span result = client_ask(&client, "1", NULL, "echo", NULL);
    ck_assert(span_is(json_get(result, "worker"), "\"by-sh\""));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spec 5: workers");
    TCase *io = harness_case(suite, "5.1 input and output");
    tcase_add_test(io, spec_5_1_1_worker_input_is_lines);
    tcase_add_test(io, spec_5_1_2_answers_written_byte_by_byte);
    tcase_add_test(io, spec_5_1_2_blank_lines_and_crlf_from_a_worker);
    tcase_add_test(io, spec_5_1_3_stderr_is_not_processed);
    TCase *answers = harness_case(suite, "5.2 answers");
    tcase_add_test(answers, spec_5_2_1_answers_follow_their_ids);
    tcase_add_test(answers, spec_5_2_1_error_answers_pass);
    TCase *malformed = harness_case(suite, "5.3 malformed");
    tcase_add_loop_test(malformed, spec_5_3_malformed_worker_is_replaced, 0,
                        (int)(sizeof garbage / sizeof garbage[0]));
    tcase_add_test(malformed, spec_5_3_malformed_worker_gets_sigterm);
    tcase_add_test(malformed, spec_5_3_malformed_worker_ignoring_sigterm_is_killed);
    tcase_add_test(malformed, spec_5_3_sessions_of_a_malformed_worker_end);
    tcase_add_test(malformed, spec_5_3_flood_of_garbage);
    TCase *birth = harness_case(suite, "workers are born");
    tcase_add_test(birth, design_worker_inherits_nothing_but_its_pipes);
    tcase_add_test(birth, design_worker_leads_its_process_group);
    tcase_add_test(birth, design_restarted_worker_inherits_nothing);
    tcase_add_test(birth, design_worker_command_is_found_in_path);
    return harness_run(suite);
}
