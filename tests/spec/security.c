/* doc/security.md: what it says of those who mean harm, where no other test shows it. */
#include "build_config.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* Whatever clients and workers put into their messages, a line of the log is the daemon's. */
START_TEST(security_log_lines_cannot_be_forged)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .arguments = {"--log-level", "debug"});
    client_connect(&client, &daemon);
    client_send(&client, "{'id':'x\\n1999-01-01 forged\\u001b[2J\\u009b','pool':'none',"
                         "'sessionId':'\\r\\nforged','method':'m'}");
    client_line(&client);
    daemon_wait_log(&daemon, " WARN .*\\\\x0a1999-01-01 forged\\\\x1b.*no such pool");
    client_request(&client, "1", "s", "say",
                   "{'message':{'id':'y\\n1999-01-01 forged','result':1}}");
    client_result(&client, "1");
    daemon_wait_log(&daemon, " WARN .*worker=.*y\\\\x0a1999-01-01 forged");
    ck_assert(!daemon_logged(&daemon, "^1999|^forged|\x1b|\r|\xc2\x9b"));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Whoever reads the log sees ids and sessions, and nothing of what messages say. */
START_TEST(security_log_holds_no_contents)
{
    struct daemon daemon;
    struct client client, broken;
    START(&daemon, .instances = 1, .arguments = {"--log-level", "debug"});
    client_connect(&client, &daemon);
    client_connect(&broken, &daemon);
    client_send(&client, "{'id':1,'sessionId':'s','method':'plain','params':'secret'}");
    client_result(&client, "1");
    client_send(&client, "{'id':2,'pool':'none','method':'plain','params':'secret'}");
    client_line(&client);
    client_request(&client, "3", "s", "say", "{'message':{'id':4,'result':'secret'}}");
    client_result(&client, "3");
    client_send(&broken, "{'id':5,'params':'secret'");
    client_line(&broken);
    client_expect_eof(&broken);
    client_request(&client, "6", "s", "garbage", "{'hex':'736563726574'}");
    client_error(&client, "6", -32000, "worker exited before answering");
    daemon_wait_log(&daemon, "forwarding a message \\(id 1, sessionId s\\)");
    daemon_wait_log(&daemon, "malformed output");
    ck_assert(!daemon_logged(&daemon, "secret"));
    client_close(&broken);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Nothing that stands in the configuration is given to a shell. */
START_TEST(security_args_reach_no_shell)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .args = "'--name','$HOME;`id`|exit 1 #*'");
    client_connect(&client, &daemon);
    struct span born = client_ask(&client, "1", NULL, "environment", NULL);
    ck_assert(span_is(json_get(born, "args.2"), "\"$HOME;`id`|exit 1 #*\""));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* A web page can make a browser send this to a port of the machine that it runs on. */
START_TEST(security_http_request_is_refused)
{
    struct daemon daemon;
    struct client page, client;
    START(&daemon, .mode = SETUP_TCP, .instances = 1);
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", NULL);
    client_connect(&page, &daemon);
    client_send(&page, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\r\n"
                       "{'id':1,'method':'die'}");
    client_error(&page, "null", -32700, "not a JSON object");
    client_expect_eof(&page);
    ck_assert_int_eq(client_pid(&client, "2", NULL), pid);
    client_close(&page);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Clients that never end their line cost a place each, and nothing else. */
START_TEST(security_unfinished_messages_hold_nobody_up)
{
    struct daemon daemon;
    struct client slow[100], client;
    START(&daemon, .instances = 1, .limits = "'max_connections':101");
    for (int i = 0; i < 100; i++) {
        client_connect(&slow[i], &daemon);
        client_send_bytes(&slow[i], "{\"id\":1,\"met", 12);
    }
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    daemon_check_asleep(&daemon);
    for (int i = 0; i < 100; i++) {
        client_send_bytes(&slow[i], "hod\":\"plain\"}\n", 14);
        client_result(&slow[i], "1");
        client_close(&slow[i]);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Not prevented: a worker is trusted with what its answers are as long as. */
START_TEST(security_client_can_use_up_the_restarts)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'max_input_buffer':1024,'max_restarts':1");
    client_connect(&client, &daemon);
    for (int i = 0; i < 2; i++) {
        client_send(&client, "{'id':1,'method':'mirror','params':'%0900d'}", 0);
        client_error(&client, "1", -32000, "worker exited before answering");
    }
    daemon_wait_log(&daemon, " ERROR .*worker=.*max_input_buffer");
    ck_assert_int_eq(daemon_wait(&daemon), 69);
    client_close(&client);
}
END_TEST

/* Not prevented: spec 6.3.2 asks for the session alone. */
START_TEST(security_any_worker_reaches_any_session)
{
    struct daemon daemon;
    struct client owner, other;
    START(&daemon, .pools = POOL("a", 1, "") "," POOL("b", 1, ""));
    client_connect(&owner, &daemon);
    client_connect(&other, &daemon);
    client_send(&owner, "{'id':1,'pool':'a','sessionId':'s','method':'plain'}");
    client_result(&owner, "1");
    client_send(&other, "{'id':1,'pool':'b','method':'notify','params':{'n':1,'session':'s'}}");
    client_expect(&owner,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'s','params':{'n':0,'pad':''}}");
    client_result(&other, "1");
    client_close(&owner);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* Not prevented: spec 4.3.3, what nobody asked for is routed like anything else. */
START_TEST(security_client_can_answer_for_another)
{
    struct daemon daemon;
    struct client owner, other;
    START(&daemon, .instances = 1);
    client_connect(&owner, &daemon);
    client_connect(&other, &daemon);
    client_request(&owner, "'a'", "s", "ask", "{'id':7}");
    client_line(&owner);
    client_send(&other, "{'id':7,'sessionId':'s','result':'forged'}");
    client_expect(&owner, "{'jsonrpc':'2.0','id':'a','sessionId':'s','result':"
                          "{'id':7,'sessionId':'s','result':'forged'}}");
    client_close(&owner);
    client_close(&other);
    daemon_stop(&daemon);
}
END_TEST

/* Not prevented: what must stay secret has to be taken out before the daemon starts. */
START_TEST(security_workers_inherit_the_environment)
{
    struct daemon daemon;
    struct client client;
    ck_assert_int_eq(setenv("SECURITY_TEST", "secret", 1), 0);
    START(&daemon, .config = "{'pools':[{'id':'p','command':'sh','instances':1,"
                             "'args':['-c','exec @WORKER@ --name $SECURITY_TEST']}]}");
    client_connect(&client, &daemon);
    struct span result = client_ask(&client, "1", NULL, "echo", NULL);
    ck_assert(span_is(json_get(result, "worker"), "\"secret\""));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("security");
    TCase *prevented = harness_case(suite, "prevented");
    tcase_add_test(prevented, security_log_lines_cannot_be_forged);
    tcase_add_test(prevented, security_log_holds_no_contents);
    tcase_add_test(prevented, security_args_reach_no_shell);
    tcase_add_test(prevented, security_http_request_is_refused);
    tcase_add_test(prevented, security_unfinished_messages_hold_nobody_up);
    TCase *open = harness_case(suite, "not prevented");
    tcase_add_test(open, security_client_can_use_up_the_restarts);
    tcase_add_test(open, security_any_worker_reaches_any_session);
    tcase_add_test(open, security_client_can_answer_for_another);
    tcase_add_test(open, security_workers_inherit_the_environment);
    return harness_run(suite);
}
