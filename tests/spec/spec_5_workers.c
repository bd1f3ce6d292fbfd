/* Specification, chapter 5, and the state of a new worker (DESIGN, "Workers"). */
#include "build_config.h"

#include "harness.h"

TEST(spec_5_1_1_worker_input_is_lines)
{
    struct client *client = client_connect(START(.instances = 1));
    const char *two = "{\"id\":1,\"method\":\"mirror\"}\n{\"id\":2,\"method\":\"mirror\"}\n";
    client_send_bytes(client, two, strlen(two));
    for (int i = 1; i <= 2; i++) {
        struct span line = json_text(json_get(client_line(client), "result.line"));
        ck_assert_uint_eq(line.len, strlen(two));
        ck_assert_int_eq(memcmp(line.data + line.len - 4, "7d0a", 4), 0);
    }
}

TEST(spec_5_1_2_answers_written_byte_by_byte)
{
    struct client *client = client_connect(START(.instances = 1));
    for (int i = 0; i < 3; i++) {
        struct span result = client_ask(client, "1", "s", "split", "['\\u00e9',{}]");
        expect_member(result, "params", "['\\u00e9',{}]");
    }
}

/* "0a0d0a200a" are blank lines, the rest is {"id":1,"result":7}\r\n. */
TEST(spec_5_1_2_blank_lines_and_crlf_from_a_worker)
{
    struct client *client = client_connect(START(.instances = 1));
    client_request(client, "1", NULL, "garbage",
                   "{'hex':'0a0d0a200a7b226964223a312c22726573756c74223a377d0d0a0a'}");
    client_expect(client, "{'id':1,'result':7}\r");
    client_expect_quiet(client);
}

/* Output on stderr reaches the daemon's stderr, and no client. */
TEST(spec_5_1_3_stderr_is_not_processed)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_ask(client, "0", "s", "echo", NULL);
    client_ask(client, "1", "s", "write_stderr", "{'text':'not json { \\\\n and {}'}");
    client_ask(client, "2", "s", "echo", NULL);
    ck_assert(daemon_logged(daemon, "^not json \\{ .* and \\{\\}$"));
}

TEST(spec_5_2_1_answers_follow_their_ids)
{
    struct client *client = client_connect(START(.instances = 1));
    client_ask(client, "'h'", NULL, "hold", NULL);
    for (int i = 0; i < 10; i++)
        client_send(client, "{'id':%d,'method':'plain','params':'p%d'}", i, i);
    client_request(client, "'r'", NULL, "release", "{'reverse':true}");
    for (int i = 9; i >= 0; i--)
        client_expect(client, "{'jsonrpc':'2.0','id':%d,'result':'p%d'}", i, i);
    client_result(client, "'r'");
}

TEST(spec_5_2_1_error_answers_pass)
{
    struct client *client = client_connect(START(.instances = 1));
    client_request(client, "1", "s", "fail", "{'code':-32601}");
    client_expect(client, "{'jsonrpc':'2.0','id':1,'sessionId':'s','error':"
                          "{'code':-32601,'message':'as you asked'}}");
    client_ask(client, "1", "s", "echo", NULL);
}

/* A message with the id of a request, and neither result nor error, is no answer to it. */
TEST(spec_5_2_1_id_alone_is_no_answer)
{
    static const char *const messages[] = {"{'id':1}", "{'id':1,'params':{'result':1}}",
                                           "{'id':1,'method':'error'}"};
    struct daemon *daemon = START(.pools = POOL("a", 1, "") "," POOL("b", 1, ""));
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    client_send(client, "{'id':1,'pool':'a','method':'no_answer'}");
    for (size_t i = 0; i < COUNT(messages); i++)
        client_send(client, "{'pool':'a','method':'say_only','params':{'message':%s}}",
                    messages[i]);
    client_send(client, "{'pool':'a','method':'say_only','params':{'message':"
                        "{'id':1,'result':7}}}");
    client_expect(client, "{'id':1,'result':7}");
    client_expect_quiet(other);
}

/* Malformed output: a name, and the bytes in hex. */
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

/* The worker is terminated and replaced, its sessions end, and requests to it get errors. */
TEST_ROWS(spec_5_3_malformed_worker_is_replaced, COUNT(garbage))
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", "s");
    client_request(client, "2", "s", "garbage", test_format("{'hex':'%s'}", garbage[row].hex));
    client_error(client, "2", -32000, DIED);
    daemon_wait_log(daemon, " ERROR .*\\[worker=[0-9]+ pid=[0-9]+ pool=[a-z]+\\]");
    ck_assert_msg(client_pid(client, "3", "s") != pid, "%s: worker goes on", garbage[row].name);
    wait_gone(pid);
}

/* The worker gets SIGTERM, not SIGKILL: its handler runs and exits with a code of its own. */
TEST(spec_5_3_malformed_worker_gets_sigterm)
{
    struct daemon *daemon = START(.instances = 1, .args = "'--stay'");
    struct client *client = client_connect(daemon);
    client_ask(client, "1", "s", "on_sigterm", "{'do':'exit','code':42}");
    client_request(client, "2", "s", "garbage", "{'hex':'780a'}");
    client_error(client, "2", -32000, DIED);
    daemon_wait_log(daemon, "\\[worker=[0-9]+ pid=[0-9]+ pool=[a-z]+\\].* 42");
}

TEST(spec_5_3_malformed_worker_ignoring_sigterm_is_killed)
{
    struct client *client =
        client_connect(START(.instances = 1, .limits = "'drain_timeout_sec':1"));
    long pid = client_pid(client, "1", "s");
    client_ask(client, "1", "s", "on_sigterm", "{'do':'ignore'}");
    client_request(client, "2", "s", "garbage", "{'hex':'780a'}");
    client_error(client, "2", -32000, DIED);
    ck_assert_int_ne(client_pid(client, "3", "s"), pid);
    wait_gone(pid);
}

/* The sessions of other clients at the worker end too. */
TEST(spec_5_3_sessions_of_a_malformed_worker_end)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    long pid = client_pid(client, "1", "mine");
    ck_assert_int_eq(client_pid(other, "1", "yours"), pid);
    client_request(client, "2", "mine", "garbage", "{'hex':'780a'}");
    client_error(client, "2", -32000, DIED);
    ck_assert_int_ne(client_pid(client, "3", "mine"), pid);
    client_ask(client, "4", "mine", "notify", "{'session':'yours'}");
    client_expect_quiet(other);
}

/* A worker writes garbage without end: other clients are served, and memory stays bounded. */
TEST(spec_5_3_flood_of_garbage)
{
    struct daemon *daemon = START(.pools = POOL("bad", 1, "") "," POOL("good", 1, ""));
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    client_send(client, "{'id':1,'pool':'bad','method':'garbage','params':"
                        "{'hex':'676172626167650a','times':-1}}");
    for (int i = 0; i < 100; i++) {
        client_send(other, "{'id':1,'pool':'good','method':'plain'}");
        client_result(other, "1");
    }
    client_error(client, "1", -32000, DIED);
    client_send(client, "{'id':2,'pool':'bad','method':'echo'}");
    client_result(client, "2");
    daemon_check_memory(daemon, 16384);
}

/* Descriptors 0 to 2 alone, and default signals. */
static void expect_clean(struct span born)
{
    expect_member(born, "fds.2.fd", "2");
    ck_assert_msg(json_get(born, "fds.3").data == NULL, "%.*s", (int)born.len, born.data);
    expect_member(born, "blocked", "[]");
    expect_member(born, "ignored", "[]");
}

TEST(design_worker_inherits_nothing_but_its_pipes)
{
    struct client *client = client_connect(START(.instances = 2, .dirty = true));
    for (int i = 0; i < 4; i++)
        expect_clean(client_ask(client, "1", NULL, "environment", NULL));
}

TEST(design_worker_leads_its_process_group)
{
    struct daemon *daemon = START(.instances = 1, .args = "'--name','with \\u0020 spaces'");
    struct client *client = client_connect(daemon);
    struct span born = client_ask(client, "1", NULL, "environment", NULL);
    ck_assert(span_same(json_get(born, "pid"), json_get(born, "pgid")));
    ck_assert_int_ne(json_number(born, "pgid"), daemon->pid);
    expect_member(born, "args.1", "'--name'");
    expect_member(born, "args.2", "'with   spaces'");
}

/* A restarted worker inherits no client's connection. */
TEST(design_restarted_worker_inherits_nothing)
{
    struct client *client = client_connect(START(.instances = 1));
    client_crash(client, "1", NULL, "{'signal':9}");
    expect_clean(client_ask(client, "2", NULL, "environment", NULL));
}

TEST(design_worker_command_is_found_in_path)
{
    struct client *client =
        client_connect(START(.pools = "{'id':'p','command':'sh','instances':1,"
                                      "'args':['-c','exec @WORKER@ --name by-sh']}"));
    expect_member(client_ask(client, "1", NULL, "echo", NULL), "worker", "'by-sh'");
}
