/* Pools for MCP, ACP and LSP (protocol.md): one process for many clients. */
#include "build_config.h"

#include "harness.h"

#define AGENTS(instances, keys)                                                                    \
    "{'id':'p','command':'@WORKER@','instances':" #instances "," keys "}"

#define STICKY "'clients':'sticky'"
#define REWRITE "'clients':'sticky','ids':'rewrite'"

/* Makes the worker of this client write a message. */
#define SAY(message) "{'method':'say_only','params':{'message':" message "}}"

TEST(agents_clients_stay_with_their_worker)
{
    struct client *clients[6];
    long pids[6];
    struct daemon *daemon = START(.pools = AGENTS(3, STICKY));
    for (int i = 0; i < 6; i++) {
        clients[i] = client_connect(daemon);
        pids[i] = client_pid(clients[i], "1", NULL);
    }
    for (int i = 0; i < 3; i++) { /* two clients for each worker */
        ck_assert_int_eq(pids[i], pids[i + 3]);
        ck_assert_int_ne(pids[i], pids[(i + 1) % 3]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 6; i++)
            ck_assert_int_eq(client_pid(clients[i], "2", NULL), pids[i]);
    }
}

TEST(agents_notifications_go_to_all_clients_of_the_worker)
{
    struct daemon *daemon = START(.pools = AGENTS(2, REWRITE));
    struct client *a = client_connect(daemon), *other = client_connect(daemon);
    struct client *b = client_connect(daemon);
    client_expect_quiet(a);
    client_expect_quiet(other);
    client_expect_quiet(b);
    client_send(a, SAY("{'method':'changed','params':{'list':[1,2]}}"));
    client_expect(a, "{'method':'changed','params':{'list':[1,2]}}");
    client_expect(b, "{'method':'changed','params':{'list':[1,2]}}");
    client_expect_quiet(a);
    client_expect_quiet(b);
    client_expect_quiet(other);
    client_close(b);
    client_send(a, SAY("{'method':'again'}"));
    client_expect(a, "{'method':'again'}");
}

TEST(agents_equal_ids_and_tokens_of_many_clients)
{
    enum { CLIENTS = 20 };
    struct client *clients[CLIENTS];
    struct daemon *daemon = START(.pools = AGENTS(1, REWRITE));
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_connect(daemon);
        client_request(clients[i], "1", NULL, i == 0 ? "hold" : "echo",
                       "{'_meta':{'progressToken':'t'}}");
        if (i == 0) {
            client_result(clients[0], "1");
            continue;
        }
        /* Its id at the worker is 2 * i + 2. */
        client_send(
            clients[i],
            SAY("{'method':'notifications/progress','params':{'progressToken':%d,'progress':%d}}"),
            2 * i + 2, i);
        client_expect(clients[i],
                      "{'method':'notifications/progress','params':"
                      "{'progressToken':'t','progress':%d}}",
                      i);
    }
    client_ask(clients[0], "2", NULL, "release", "{'reverse':true}");
    for (int i = 1; i < CLIENTS; i++) {
        struct span result = client_result(clients[i], "1");
        ck_assert_int_eq(json_long(json_get(result, "params._meta.progressToken"), 0), 2 * i + 2);
        client_expect_quiet(clients[i]);
    }
}

/* The second client names the number of the first one's request wherever a token may stand. */
TEST(security_tokens_of_others_get_no_progress)
{
    struct daemon *daemon = START(.pools = AGENTS(1, REWRITE));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    client_request(a, "1", NULL, "no_answer", "{'_meta':{'progressToken':'t'}}");
    client_expect_quiet(a);
    struct span result = client_ask(b, "1", NULL, "echo",
                                    "{'_meta':{'progressToken':'t'},'workDoneToken':2}");
    expect_member(result, "params.workDoneToken", "'6#'");
    client_send(b, "{'id':null,'method':'x','params':{'workDoneToken':2}}");
    result = client_ask(b, "2", NULL, "last_note", NULL);
    expect_member(result, "params.workDoneToken", "2147483646");
    client_send(b, SAY("{'method':'$/progress','params':{'token':2147483646}}"));
    client_request(b, "3", NULL, "echo", test_format("{'workDoneToken':'%0129d'}", 0));
    client_error(b, "3", -32602, "progress token");
    client_expect_quiet(b);
    client_expect_quiet(a);
}

TEST(agents_ids_come_back_as_they_were_spelled)
{
    static const char *const ids[] = {
        "1.0", "1e2", "-1", "'\\u0061'", "''", "'\xc3\xa9'", "123456789012345678901234567890"};
    struct client *client = client_connect(START(.pools = AGENTS(1, REWRITE)));
    for (size_t i = 0; i < COUNT(ids); i++) {
        client_request(client, ids[i], NULL, "plain", "'x'");
        client_expect(client, "{'jsonrpc':'2.0','id':%s,'result':'x'}", ids[i]);
    }
}

/* Large messages move with their buffers; the id may stand before or after the bulk. */
TEST(agents_large_messages_are_rewritten)
{
    const char *bulk = test_fill('x', 300000);
    struct client *client = client_connect(START(.pools = AGENTS(1, REWRITE)));
    for (int i = 0; i < 3; i++) {
        client_send(client, "{'id':'early','method':'plain','params':'%s'}", bulk);
        client_expect(client, "{'jsonrpc':'2.0','id':'early','result':'%s'}", bulk);
        client_send(client, "{'method':'plain','params':'%s','id':'late'}", bulk);
        client_expect(client, "{'jsonrpc':'2.0','id':'late','result':'%s'}", bulk);
        client_send(client, SAY("{'x':'%s','method':'m','id':'q'}"), bulk);
        client_expect(client, "{'x':'%s','method':'m','id':%d}", bulk, 2 * i + 2);
        client_send(client, "{'id':%d,'result':0}", 2 * i + 2);
        client_expect_quiet(client);
    }
}

/* The worker's answer names the session. */
static void begin_session(struct client *client, const char *id)
{
    client_ask(client, "0", NULL, "plain", test_format("{'result':{'sessionId':'%s'}}", id));
}

/* The second client names the session before the worker gives it to the first one. */
TEST(security_sessions_are_not_guessed)
{
    struct daemon *daemon = START(.pools = AGENTS(1, "'protocol':'acp'"));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    client_ask(b, "1", NULL, "echo", "{'sessionId':'s'}");
    client_send(b, "{'method':'x','params':{'sessionId':'s'}}");
    client_request(b, "2", NULL, "plain", "{'sessionId':'s'}");
    client_result(b, "2");
    begin_session(a, "s");
    client_send(b, SAY("{'method':'session/update','params':{'sessionId':'s'}}"));
    client_expect(a, "{'method':'session/update','params':{'sessionId':'s'}}");
    client_send(b, SAY("{'id':'allow?','method':'m','params':{'sessionId':'s'}}"));
    client_expect(a, "{'id':2,'method':'m','params':{'sessionId':'s'}}");
    client_expect_quiet(b);
    /* A second answer that names it. */
    client_request(b, "3", NULL, "plain", "{'result':{'sessionId':'s'}}");
    client_error(b, "3", -32000, "session of another client");
    client_expect_quiet(a);
}

/* session/load: the replay and all that follows are for the client that loads it. */
TEST(agents_loaded_session_moves)
{
    struct daemon *daemon = START(.pools = AGENTS(1, "'protocol':'acp'"));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    begin_session(a, "s");
    client_request(b, "1", NULL, "session/load", "{'sessionId':'s','n':1}");
    client_expect(b, "{'jsonrpc':'2.0','method':'session/update',"
                     "'params':{'sessionId':'s','n':1}}");
    client_result(b, "1");
    daemon_wait_log(daemon, " INFO .*client=1.* lost the session s: client=2.* has loaded it");
    client_send(a, SAY("{'method':'session/update','params':{'sessionId':'s','n':2}}"));
    client_expect(b, "{'method':'session/update','params':{'sessionId':'s','n':2}}");
    client_expect_quiet(a);
    /* Sessions that the daemon does not know, for example those of an earlier process. */
    client_request(a, "2", NULL, "session/load", "{'sessionId':'old','n':3}");
    client_expect(a, "{'jsonrpc':'2.0','method':'session/update',"
                     "'params':{'sessionId':'old','n':3}}");
    client_result(a, "2");
    client_send(b, SAY("{'method':'session/update','params':{'sessionId':'old','n':4}}"));
    client_expect(a, "{'method':'session/update','params':{'sessionId':'old','n':4}}");
    client_expect_quiet(b);
}

/* ACP 2: an agent takes one initialize, in one connection. The others get its answer. row: lines,
 * lengths. */
TEST_ROWS(agents_many_clients_at_an_agent_that_takes_one_initialize, 2)
{
    const char *pool = test_format(AGENTS(1, "'protocol':'acp'%s"),
                                   row == 0 ? ""
                                            : ",'framing':'length','args':['--framing','length']");
    struct daemon *daemon = START(.pools = pool);
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    const char *params =
        test_format("{'mark':'%s/first','then':'error','result':{'protocolVersion':2}}",
                    test_dir());
    client_ask(a, "'x'", NULL, "initialize", params);
    struct span result = client_ask(b, "'y'", NULL, "initialize", params);
    expect_member(result, "protocolVersion", "2");
    client_expect_quiet(b);
    client_expect_quiet(a);
}

/* The processes of a shared pool choose one id: the second client gets an error. */
TEST(agents_two_processes_with_one_session_id)
{
    static const char params[] = "{'result':{'sessionId':'s'}}";
    struct daemon *daemon = START(.pools = AGENTS(2, "'session':'params.sessionId'"));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    client_ask(a, "1", NULL, "plain", params);
    client_request(b, "1", NULL, "plain", params);
    client_error(b, "1", -32000, "session of another client");
    daemon_wait_log(daemon, " WARN .*worker=.* discarded a message .id 1");
}

TEST(agents_sessions_are_learned_and_owned)
{
    struct daemon *daemon = START(.pools = AGENTS(1, "'protocol':'acp'"));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    begin_session(a, "of a");
    begin_session(b, "of b");
    client_send(b, SAY("{'method':'session/update','params':{'sessionId':'of a','n':1}}"));
    client_expect(a, "{'method':'session/update','params':{'sessionId':'of a','n':1}}");
    client_send(a, SAY("{'method':'session/update','params':{'sessionId':'of b','n':2}}"));
    client_expect(b, "{'method':'session/update','params':{'sessionId':'of b','n':2}}");
    /* The reply to the worker's request has the worker's own id again. */
    client_send(a, "{'id':5,'method':'ask','params':"
                   "{'id':'q','params':{'sessionId':'of b'},'sessionId':'of b'}}");
    client_expect(b, "{'jsonrpc':'2.0','id':2,'method':'question','params':{'sessionId':'of b'}}");
    client_send(b, "{'id':2,'result':'yes'}");
    client_expect(a, "{'jsonrpc':'2.0','id':5,'result':{'id':'q','result':'yes'}}");
    client_expect_quiet(a);
    client_expect_quiet(b);
}

TEST(agents_request_for_no_certain_client_is_refused)
{
    struct daemon *daemon = START(.pools = AGENTS(1, STICKY),
                                  .arguments = {"--log-level", "debug"});
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    client_expect_quiet(a);
    client_request(a, "'a'", NULL, "no_answer", NULL);
    client_request(b, "'b'", NULL, "no_answer", NULL);
    client_expect_quiet(b);
    client_send(a, SAY("{'id':'q','method':'m'}"));
    daemon_wait_log(daemon, "unroutable");
    struct span result = client_ask(a, "1", NULL, "reply_text", NULL);
    expect_member(result, "error.code", "-32000");
    expect_member(result, "id", "'q'");
    client_expect_quiet(b);
}

/* The other client's request may still run, and the question may be for its sake. row: the other
 * client has cancelled it, or left. */
TEST_ROWS(security_questions_for_given_up_requests_reach_no_other_client, 2)
{
    struct daemon *daemon = START(.pools = AGENTS(1, REWRITE),
                                  .arguments = {"--log-level", "debug"});
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    client_request(b, "'b'", NULL, "no_answer", NULL);
    client_expect_quiet(b);
    client_expect_quiet(a);
    if (row == 0) {
        client_send(b, "{'method':'notifications/cancelled','params':{'requestId':'b'}}");
        client_expect_quiet(b);
    } else {
        client_close(b);
        daemon_wait_log(daemon, "client=2.*disconnected");
    }
    client_request(a, "'a'", NULL, "no_answer", NULL);
    client_send(a, SAY("{'id':'q','method':'m'}"));
    daemon_wait_log(daemon, "unroutable");
    struct span result = client_ask(a, "1", NULL, "reply_text", NULL);
    expect_member(result, "error.code", "-32000");
    /* The late answer ends it. */
    client_send(a, SAY("{'id':2,'result':'late'}"));
    client_send(a, SAY("{'id':'q','method':'m'}"));
    client_expect(a, "{'id':2,'method':'m'}");
}

/* ACP: before there is a session, as while the user logs in, a question names the request. Both
 * clients have the same ids. */
TEST(agents_question_reaches_the_client_of_its_request)
{
    struct daemon *daemon = START(.pools = AGENTS(1, "'protocol':'acp'"));
    struct client *clients[] = {client_connect(daemon), client_connect(daemon)};
    for (int i = 0; i < 2; i++) {
        client_request(clients[i], "'x'", NULL, "no_answer", NULL);
        client_expect_quiet(clients[i]);
    }
    for (int i = 0; i < 2; i++) { /* its id at the worker is 2 or 6 */
        client_send(clients[1 - i],
                    SAY("{'id':'q%d','method':'elicitation/create','params':{'requestId':%d}}"), i,
                    4 * i + 2);
        client_expect(clients[i],
                      "{'id':2,'method':'elicitation/create','params':{'requestId':'x'}}");
        client_expect_quiet(clients[1 - i]);
        client_send(clients[i], "{'id':2,'result':{'action':'accept'}}");
        client_expect_quiet(clients[i]); /* the worker has it */
        struct span result = client_ask(clients[1 - i], "1", NULL, "reply_text", NULL);
        expect_member(result, "id", test_format("'q%d'", i));
        expect_member(result, "result.action", "'accept'");
    }
}

/* A client that does not read delays the others up to its time limit only. */
TEST(agents_slow_client_is_closed_for_the_sake_of_others)
{
    const char *bulk = test_fill('x', 60000);
    struct daemon *daemon =
        START(.pools = AGENTS(1, STICKY),
              .limits = "'backpressure_timeout_sec':1,'max_output_queue':100000");
    struct client *slow = client_connect_small(daemon), *fast = client_connect(daemon);
    client_expect_quiet(slow);
    client_expect_quiet(fast);
    for (int i = 0; i < 40; i++) {
        client_send(fast, SAY("{'method':'n','params':[%d,'%s']}"), i, bulk);
        client_expect(fast, "{'method':'n','params':[%d,'%s']}", i, bulk);
    }
    client_expect_quiet(fast);
    daemon_wait_log(daemon, "client=1.*did not read for backpressure_timeout_sec");
}

TEST(agents_worker_that_dies_keeps_its_clients)
{
    struct daemon *daemon = START(.pools = AGENTS(2, REWRITE));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    long of_a = client_pid(a, "1", NULL), of_b = client_pid(b, "1", NULL);
    client_crash(a, "'x'", NULL, NULL);
    ck_assert_int_eq(client_pid(b, "2", NULL), of_b);
    long again = client_pid(a, "2", NULL);
    ck_assert_int_ne(again, of_a);
    ck_assert_int_ne(again, of_b);
}

/* --- tasks of MCP --- */

#define RELATED "'_meta':{'io.modelcontextprotocol/related-task':{'taskId':"

/* The worker's answer names the task. */
static void begin_task(struct client *client, const char *task)
{
    client_ask(client, "1", NULL, "plain",
               test_format("{'task':{'taskId':'%s'},'_meta':{'progressToken':'t'}}", task));
}

/* After the answers: progress, questions, notifications; the last client sends all of them. */
TEST(agents_tasks_reach_their_clients)
{
    enum { CLIENTS = 5 };
    struct client *clients[CLIENTS], *last = NULL;
    struct daemon *daemon = START(.pools = AGENTS(1, "'protocol':'mcp','clients':'sticky'"));
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = last = client_connect(daemon);
        begin_task(last, test_format("task %d", i));
    }
    for (int i = 0; i < CLIENTS; i++) { /* its id at the worker was 2 * i + 2 */
        client_send(last,
                    SAY("{'method':'notifications/progress','params':"
                        "{'progressToken':%d,'progress':%d}}"),
                    2 * i + 2, i);
        client_expect(clients[i],
                      "{'method':'notifications/progress','params':"
                      "{'progressToken':'t','progress':%d}}",
                      i);
        client_send(last,
                    SAY("{'id':'q','method':'elicitation/create','params':{" RELATED
                        "'task %d'}}}}"),
                    i);
        client_expect(clients[i],
                      "{'id':2,'method':'elicitation/create','params':{" RELATED "'task %d'}}}}",
                      i);
        client_send(clients[i], "{'id':2,'result':{}}");
        client_send(last,
                    SAY("{'method':'notifications/tasks/status','params':"
                        "{'taskId':'task %d','status':'completed'}}"),
                    i);
        client_expect(clients[i],
                      "{'method':'notifications/tasks/status','params':"
                      "{'taskId':'task %d','status':'completed'}}",
                      i);
        client_send(last, SAY("{'method':'notifications/progress','params':{'progressToken':%d}}"),
                    2 * i + 2);
    }
    for (int i = 0; i < CLIENTS; i++)
        client_expect_quiet(clients[i]);
}

/* The second client knows the id of the first one's task, for example from tasks/list. */
TEST(security_tasks_of_others_are_unknown)
{
    static const char *const methods[] = {"tasks/get", "tasks/result", "tasks/cancel"};
    struct daemon *daemon = START(.pools = AGENTS(1, "'protocol':'mcp','clients':'sticky'"));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    begin_task(a, "secret");
    for (size_t i = 0; i < COUNT(methods); i++) {
        client_request(b, "1", NULL, methods[i], "{'taskId':'secret'}");
        client_error(b, "1", -32602, "unknown task");
        client_request(b, "2", NULL, methods[i], "{'taskId':'s\\u0065cret'}");
        client_error(b, "2", -32602, "unknown task");
        client_ask(a, "1", NULL, methods[i], "{'taskId':'secret'}");
    }
    client_send(b, "{'method':'notifications/tasks/status','params':"
                   "{'taskId':'secret','status':'cancelled'}}");
    struct span result = client_ask(b, "3", NULL, "last_note", NULL);
    ck_assert_msg(span_is(result, "null"), "%.*s", SHOWN(result));
    /* Nor does it get what belongs to the task after its owner has left. */
    client_close(a);
    daemon_wait_log(daemon, "client=1.*disconnected");
    client_send(b, SAY("{'method':'notifications/message','params':{" RELATED "'secret'}}}}"));
    client_expect_quiet(b);
    client_request(b, "4", NULL, "tasks/result", "{'taskId':'secret'}");
    client_error(b, "4", -32602, "unknown task");
}

/* --- cancelling --- */

/* The cancellation of a request that has the id 4 at the worker. */
static const struct {
    const char *keys, *line;
} cancellations[] = {
    {",'protocol':'mcp'", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                          "\"params\":{\"requestId\":4}}"},
    {",'protocol':'acp'", "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\","
                          "\"params\":{\"requestId\":4}}"},
    {"", "null"},
};

TEST_ROWS(agents_requests_of_a_leaving_client_are_cancelled, COUNT(cancellations))
{
    const char *pool = test_format(AGENTS(1, "'ids':'rewrite','clients':'sticky'%s"),
                                   cancellations[row].keys);
    struct daemon *daemon = START(.pools = pool, .arguments = {"--log-level", "debug"});
    struct client *leaving = client_connect(daemon), *staying = client_connect(daemon);
    client_expect_quiet(staying);
    client_request(leaving, "'x'", NULL, "no_answer", NULL);
    daemon_wait_log(daemon, "client=1.*forwarding a message .id x");
    client_close(leaving);
    daemon_wait_log(daemon, "client=1.*disconnected");
    struct span result = client_ask(staying, "1", NULL, "last_note", NULL);
    ck_assert_msg(span_is(result, cancellations[row].line), "%.*s", SHOWN(result));
}

/* A turn is cancelled as every agent knows it; not that of another client's session. */
TEST_ROWS(agents_turn_of_a_leaving_client_is_cancelled, 2)
{
    static const char *const lines[] = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\","
        "\"params\":{\"sessionId\":\"of a\"}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":8}}",
    };
    struct daemon *daemon = START(.pools = AGENTS(1, "'protocol':'acp'"),
                                  .arguments = {"--log-level", "debug"});
    struct client *leaving = client_connect(daemon), *staying = client_connect(daemon);
    begin_session(leaving, "of a");
    begin_session(staying, "of b");
    client_ask(staying, "1", NULL, "hold", NULL);
    client_request(leaving, "'x'", NULL, "session/prompt",
                   row == 0 ? "{'sessionId':'of a'}" : "{'sessionId':'of b'}");
    daemon_wait_log(daemon, "client=1.*forwarding a message .id x");
    client_close(leaving);
    daemon_wait_log(daemon, "client=1.*disconnected");
    client_request(staying, "2", NULL, "last_note", NULL);
    client_request(staying, "3", NULL, "release", NULL);
    struct span result = client_result(staying, "2");
    ck_assert_msg(span_is(result, lines[row]), "%.*s", SHOWN(result));
}

/* ACP 2: the answer only accepts the prompt, which an upgrade in place does not forget. Version 1
 * ends the turn by it. */
TEST_ROWS(agents_turn_that_goes_on_after_its_answer_is_cancelled, 3)
{
    static const struct {
        const char *keys, *result, *line;
    } rows[] = {
        {"", "{'messageId':'m'}",
         "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\","
         "\"params\":{\"sessionId\":\"\\\"s\"}}"},
        {",'clients':'shared'", "{'messageId':'m'}",
         "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\","
         "\"params\":{\"sessionId\":\"\\\"s\"}}"},
        {"", "{'stopReason':'end_turn'}", "null"},
    };
    const char *pool = test_format(AGENTS(1, "'protocol':'acp'%s"), rows[row].keys);
    struct daemon *daemon = START(.pools = pool);
    struct client *leaving = client_connect(daemon), *staying = client_connect(daemon);
    begin_session(leaving, "\\\"s");
    client_expect_quiet(staying);
    client_ask(leaving, "1", NULL, "session/prompt",
               test_format("{'sessionId':'\\\"s','result':%s}", rows[row].result));
    if (row > 0 && daemon_can_upgrade())
        daemon_upgrade(daemon);
    client_close(leaving);
    daemon_wait_log(daemon, "client=1.*disconnected");
    struct span result = client_ask(staying, "1", NULL, "last_note", NULL);
    ck_assert_msg(span_is(result, rows[row].line), "%.*s", SHOWN(result));
}

/* Another client's cancellation with the same id has no effect. */
TEST(agents_client_cancels_its_own_request)
{
    static const char line[] = "{\"method\":\"$/cancelRequest\",\"params\":{\"id\":2},\"x\":7}";
    struct daemon *daemon = START(.pools = AGENTS(1, "'ids':'rewrite'"));
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    client_request(a, "7", NULL, "no_answer", NULL);
    client_send(a, "{'method':'$/cancelRequest','params':{'id':7},'x':7}");
    ck_assert(span_is(client_ask(a, "1", NULL, "last_note", NULL), line));
    client_send(b, "{'method':'$/cancelRequest','params':{'id':7},'x':8}");
    ck_assert(span_is(client_ask(b, "1", NULL, "last_note", NULL), line));
}

/* MCP servers do not answer a cancelled request. */
TEST(agents_cancelled_id_is_free_in_the_end)
{
    struct daemon *daemon =
        START(.pools = AGENTS(1, "'protocol':'mcp','clients':'shared','ids':'preserve'"),
              .limits = "'abandoned_id_sec':1");
    struct client *client = client_connect(daemon);
    client_request(client, "7", NULL, "no_answer", NULL);
    client_send(client, "{'method':'notifications/cancelled','params':{'requestId':7}}");
    client_request(client, "7", NULL, "plain", "'again'");
    ck_assert(span_is(client_result(client, "7"), "\"again\""));
}

/* Where clients of a protocol share a process, no client waits for another one's id. */
TEST_ROWS(agents_shared_protocol_rewrites_ids, 4)
{
    static const char *const protocols[] = {"mcp", "acp"};
    const char *pool = test_format(AGENTS(1, "'protocol':'%s','clients':'%s'"), protocols[row / 2],
                                   row % 2 == 0 ? "sticky" : "shared");
    struct daemon *daemon = START(.pools = pool);
    struct client *a = client_connect(daemon), *b = client_connect(daemon);
    client_request(a, "1", NULL, "no_answer", NULL);
    client_ask(a, "2", NULL, "echo", NULL);
    ck_assert(span_is(client_ask(b, "1", NULL, "plain", "'b'"), "\"b\""));
}

/* --- time limits --- */

TEST(agents_requests_time_out)
{
    struct daemon *daemon = START(.pools = AGENTS(1, "'ids':'rewrite','request_timeout_sec':1"));
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "hold", NULL);
    int64_t start = now_ms();
    client_request(client, "'slow'", NULL, "echo", NULL);
    client_error(client, "'slow'", -32001, "timed out");
    ck_assert_int_ge(now_ms() - start, 1000);
    /* The late answer reaches no client. */
    client_ask(client, "2", NULL, "release", NULL);
    client_expect_quiet(client);
    ck_assert(!daemon_logged(daemon, "WARN.*discarded"));
}
