/* doc/security.md: its claims that no other test shows. */
#include "build_config.h"

#include "harness.h"

/* No message of a client or worker makes a line of the log. */
TEST(security_log_lines_cannot_be_forged)
{
    struct daemon *daemon = START(.instances = 1, .arguments = {"--log-level", "debug"});
    struct client *client = client_connect(daemon);
    client_send(client, "{'id':'x\\n1999-01-01 forged\\u001b[2J\\u009b','pool':'none',"
                        "'sessionId':'\\r\\nforged','method':'m'}");
    client_line(client);
    daemon_wait_log(daemon, " WARN .*\\\\x0a1999-01-01 forged\\\\x1b.*no such pool");
    client_ask(client, "1", "s", "say", "{'message':{'id':'y\\n1999-01-01 forged','result':1}}");
    daemon_wait_log(daemon, " WARN .*worker=.*y\\\\x0a1999-01-01 forged");
    ck_assert(!daemon_logged(daemon, "^1999|^forged|\x1b|\r|\xc2\x9b"));
}

/* The log names ids and sessions, and nothing else of a message. */
TEST(security_log_holds_no_contents)
{
    struct daemon *daemon = START(.instances = 1, .arguments = {"--log-level", "debug"});
    struct client *client = client_connect(daemon), *broken = client_connect(daemon);
    client_send(client, "{'id':1,'sessionId':'s','method':'plain','params':'secret'}");
    client_result(client, "1");
    client_send(client, "{'id':2,'pool':'none','method':'plain','params':'secret'}");
    client_line(client);
    client_ask(client, "3", "s", "say", "{'message':{'id':4,'result':'secret'}}");
    client_send(broken, "{'id':5,'params':'secret'");
    client_line(broken);
    client_expect_eof(broken);
    client_request(client, "6", "s", "garbage", "{'hex':'736563726574'}");
    client_error(client, "6", -32000, DIED);
    daemon_wait_log(daemon, "forwarding a message \\(id 1, sessionId s\\)");
    daemon_wait_log(daemon, "malformed output");
    ck_assert(!daemon_logged(daemon, "secret"));
}

/* Makes the worker write this, in place of an answer to a request with id 1. */
static void have_written(struct client *client, const char *line)
{
    struct text *hex = test_text();
    text_hex(hex, line, strlen(line));
    client_send(client, "{'id':1,'method':'garbage','params':{'hex':'%s'}}", hex->data);
}

/* Some readers of lines take a carriage return for the end of a line: what follows would be a
 * message of its own for them. row: ids unchanged or rewritten. */
TEST_ROWS(security_carriage_return_begins_no_message, 2)
{
    const char *line =
        "{\"id\":1,\"method\":\"mirror\",\"params\":\r{\"id\":3,\"method\":\"evil\"}\r}\r\n";
    struct text *expected = test_text();
    struct daemon *daemon = START(.pools = row == 0
                                               ? POOL("p", 1, "")
                                               : "{'id':'p','command':'@WORKER@','instances':1,"
                                                 "'clients':'sticky','ids':'rewrite'}");
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    text_printf(expected, "%s", line);
    text_replace(expected, "\r}\r\n", " }\r\n");
    text_replace(expected, "\r{", " {");
    if (row == 1)
        text_replace(expected, "\"id\":1", "\"id\":2");
    client_send_bytes(client, line, strlen(line));
    struct text *hex = test_text();
    text_hex(hex, expected->data, expected->len);
    ck_assert(span_is(json_text(json_get(client_result(client, "1"), "line")), hex->data));

    client_pid(other, "1", NULL);
    have_written(client, row == 0 ? "{\"id\":1,\r\"result\":\r{\"result\":2,\"id\":3}\r}\n"
                                  : "{\"id\":6,\r\"result\":\r{\"result\":2,\"id\":3}\r}\n");
    client_expect(client, "{'id':1, 'result': {'result':2,'id':3} }");
    if (row == 0)
        return;
    have_written(client, "{\"method\":\r\"changed\"\r}\n");
    client_expect(client, "{'method': 'changed' }");
    client_expect(other, "{'method': 'changed' }");
}

/* No string of the configuration reaches a shell. */
TEST(security_args_reach_no_shell)
{
    struct client *client =
        client_connect(START(.instances = 1, .args = "'--name','$HOME;`id`|exit 1 #*'"));
    struct span born = client_ask(client, "1", NULL, "environment", NULL);
    expect_member(born, "args.2", "'$HOME;`id`|exit 1 #*'");
}

/* A client that never ends its line takes a connection, and nothing else. */
TEST(security_unfinished_messages_delay_no_client)
{
    struct client *slow[100];
    struct daemon *daemon = START(.instances = 1, .limits = "'max_connections':101");
    for (int i = 0; i < 100; i++) {
        slow[i] = client_connect(daemon);
        client_send_bytes(slow[i], "{\"id\":1,\"met", 12);
    }
    client_expect_quiet(client_connect(daemon));
    daemon_check_asleep(daemon);
    for (int i = 0; i < 100; i++) {
        client_send_bytes(slow[i], "hod\":\"plain\"}\n", 14);
        client_result(slow[i], "1");
    }
}

/* Not prevented: a client can make a worker write too long an answer. */
TEST(security_client_can_use_up_the_restarts)
{
    struct daemon *daemon = START(.instances = 1,
                                  .limits = "'max_input_buffer':1024,'max_restarts':1");
    struct client *client = client_connect(daemon);
    for (int i = 0; i < 2; i++) {
        client_send(client, "{'id':1,'method':'mirror','params':'%0900d'}", 0);
        client_error(client, "1", -32000, DIED);
    }
    daemon_wait_log(daemon, " ERROR .*worker=.*max_input_buffer");
    ck_assert_int_eq(daemon_wait(daemon), 69);
}

/* Not prevented: spec 6.3.2 routes by the session alone. */
TEST(security_any_worker_reaches_any_session)
{
    struct daemon *daemon = START(.pools = POOL("a", 1, "") "," POOL("b", 1, ""));
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    client_send(owner, "{'id':1,'pool':'a','sessionId':'s','method':'plain'}");
    client_result(owner, "1");
    client_send(other, "{'id':1,'pool':'b','method':'notify','params':{'n':1,'session':'s'}}");
    client_expect_note(owner, "s", 0);
    client_result(other, "1");
}

/* With the session or without it, and as a request that has a result. */
static const char *const forgeries[] = {
    "{'id':'7','result':'forged'}",
    "{'id':'7','sessionId':'s','result':'forged'}",
    "{'id':7,'sessionId':'s','result':'forged'}",
    "{'id':7,'result':'forged'}",
    "{'id':7.0,'error':'forged'}",
    "{'id':7,'sessionId':'s','method':'m','result':'forged'}",
};

TEST_ROWS(security_no_client_can_answer_for_another, COUNT(forgeries))
{
    struct daemon *daemon = START(.instances = 1);
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    client_request(owner, "'a'", "s", "ask", "{'id':7}");
    client_line(owner);
    client_send(other, "%s", forgeries[row]);
    daemon_wait_log(daemon, " WARN .*client=2. discarded a message .id 7");
    if (strstr(forgeries[row], "method") != NULL)
        client_error(other, "7", -32600, "result");
    client_expect_quiet(other);
    client_send(owner, "{'id':7,'result':'mine'}");
    client_expect(owner, "{'jsonrpc':'2.0','id':'a','sessionId':'s','result':"
                         "{'id':7,'result':'mine'}}");
}

/* Libraries take null for 0. row: a plain pool, or a shared MCP server. */
TEST_ROWS(security_null_with_a_method_answers_nothing, 2)
{
    const char *shared = "{'id':'p','command':'@WORKER@','instances':1,'protocol':'mcp',"
                         "'clients':'sticky'}";
    struct daemon *daemon = START(.pools = row == 0 ? POOL("p", 1, "") : shared);
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    client_request(owner, "'a'", "s", "ask", "{'id':0}");
    client_line(owner);
    client_send(other, "{'id':null,'method':'m','result':'forged'}");
    daemon_wait_log(daemon, " WARN .*client=2. discarded a message");
    client_expect_quiet(owner);
}

/* Not prevented: secrets must leave the environment before the daemon starts. */
TEST(security_workers_inherit_the_environment)
{
    ck_assert_int_eq(setenv("SECURITY_TEST", "secret", 1), 0);
    struct client *client =
        client_connect(START(.pools = "{'id':'p','command':'sh','instances':1,"
                                      "'args':['-c','exec @WORKER@ --name $SECURITY_TEST']}"));
    expect_member(client_ask(client, "1", NULL, "echo", NULL), "worker", "'secret'");
}

#define LIMITED_POOL(id, keys)                                                                     \
    "{'id':'" id "','command':'sh','instances':1," keys                                            \
    "'args':['-c','exec @WORKER@ --name $(ulimit -Sc):$(ulimit -Hc)']}"

/* "SOFT:HARD" in quotes: the limits of a core file, as the worker's shell shows them. */
static const char *core_limits(struct client *client, const char *pool)
{
    struct span name;
    client_send(client, "{'id':1,'pool':'%s'}", pool);
    name = json_get(client_result(client, "1"), "worker");
    return test_format("%.*s", (int)name.len, name.data);
}

TEST(security_worker_leaves_no_core)
{
    struct daemon *daemon =
        START(.pools =
                  LIMITED_POOL("a", "'core':false,") "," LIMITED_POOL("b", "'core':true,") "," //
              LIMITED_POOL("c", ""));
    struct client *client = client_connect(daemon);
    ck_assert_str_eq(core_limits(client, "a"), "\"0:0\"");
    ck_assert_str_eq(core_limits(client, "b"), core_limits(client, "c"));
}

/* With such a worker su and sudo are programs like all others. */
TEST(security_worker_gains_no_rights)
{
    if (!harness_has_prctl()) {
        expect_word(RUN(78, .pools = "{'id':'a','command':'@WORKER@','instances':1,"
                                     "'no_new_privs':true}"),
                    "no_new_privs");
        return;
    }
    struct daemon *daemon =
        START(.pools = "{'id':'a','command':'@WORKER@','instances':1,'no_new_privs':true},"
                       "{'id':'b','command':'@WORKER@','instances':1}");
    struct client *client = client_connect(daemon);
    if (!proc_available())
        return;
    client_send(client, "{'id':1,'pool':'a'}");
    ck_assert_int_eq(proc_status((pid_t)json_number(client_result(client, "1"), "pid"),
                                 "NoNewPrivs"),
                     1);
    client_send(client, "{'id':2,'pool':'b'}");
    ck_assert_int_eq(proc_status((pid_t)json_number(client_result(client, "2"), "pid"),
                                 "NoNewPrivs"),
                     proc_status(getpid(), "NoNewPrivs"));
}

/* Many connections of one address hide no line about a connection of another address. */
TEST(security_storm_does_not_hide_other_connections)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1);
    struct client *other = client_try_connect_from(daemon, "127.0.0.2");
    ck_assert_msg(other != NULL || errno == EADDRNOTAVAIL, "127.0.0.2: %s", strerror(errno));
    if (other == NULL)
        return;
    for (int i = 0; i < 100; i++) {
        struct client *client = client_connect(daemon);
        client_expect_quiet(client);
        client_close(client);
    }
    daemon_mark_log(daemon);
    client_close(other);
    client_expect_quiet(client_try_connect_from(daemon, "127.0.0.2"));
    daemon_wait_log(daemon, "\\[client=1\\] disconnected: ");
    daemon_wait_log(daemon, "\\] connected: 127\\.0\\.0\\.2:[0-9]+$");
    daemon_wait_log(daemon, "more lines of 127\\.0\\.0\\.1 left out within .* connected: 127");
}
