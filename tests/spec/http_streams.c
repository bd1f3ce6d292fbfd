/* MCP over HTTP, handshake era: streams of events, and resuming (protocol.md, "HTTP"). */
#include "build_config.h"

#include "control.h"
#include "harness.h"

#define MCP_POOL(keys)                                                                             \
    .mode = SETUP_HTTP,                                                                            \
    .pools = "{'id':'p','command':'@WORKER@','instances':4,'protocol':'mcp'" keys "}"

#define DEBUGGING .arguments = {"--log-level", "debug"}

/* Bytes: more than the system takes for a client that does not read. */
#define UNREAD (12 << 20)

#define ECHO(id) "{'jsonrpc':'2.0','id':" id ",'method':'echo'}"

/* Writes this message, then answers. */
#define SAY(id, message)                                                                           \
    "{'jsonrpc':'2.0','id':" id ",'method':'say','params':{'message':" message "}}"

#define NOTE(n) "{'jsonrpc':'2.0','method':'notifications/any','params':" n "}"

static void listen_to(struct http *http, const char *session, const char *last_event)
{
    http_send(http, "GET", "/mcp",
              test_format("Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n"
                          "MCP-Protocol-Version: 2025-11-25\r\n%s%s%s",
                          session, last_event != NULL ? "Last-Event-ID: " : "",
                          last_event != NULL ? last_event : "", last_event != NULL ? "\r\n" : ""),
              NULL);
    ck_assert_int_eq(http_status(http), 200);
    ck_assert(span_is(http_field(http, "Content-Type"), "text/event-stream"));
    ck_assert(span_is(http_field(http, "Cache-Control"), "no-cache"));
    ck_assert(span_is(http_field(http, "X-Accel-Buffering"), "no"));
    ck_assert_uint_eq(http_event(http).len, 0); /* with an id, to come back with */
    ck_assert_ptr_nonnull(http_event_id(http).data);
}

static void expect_event(struct http *http, const char *data)
{
    struct span event = http_event(http);
    struct text text = {0};
    text_printf(&text, "%s", data);
    text_quote(&text, 0);
    ck_assert_msg(span_is(event, text.data), "%.*s", SHOWN(event));
    text_free(&text);
}

static const char *last_id(const struct http *http)
{
    struct span id = http_event_id(http);
    ck_assert_ptr_nonnull(id.data);
    return test_format("%.*s", (int)id.len, id.data);
}

/* The request is answered by a stream, which ends with the answer. */
static void expect_stream(struct http *http)
{
    ck_assert_int_eq(http_status(http), 200);
    ck_assert(span_is(http_field(http, "Content-Type"), "text/event-stream"));
    ck_assert_uint_eq(http_event(http).len, 0);
}

TEST(http_notice_before_the_answer_makes_a_stream)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_post(http, session,
              "{'jsonrpc':'2.0','id':1,'method':'progress','params':{'n':5,"
              "'_meta':{'progressToken':'t'}}}");
    expect_stream(http);
    ck_assert(span_is(json_get(http_event(http), "params.progressToken"), "\"t\""));
    message_result(http_event(http), "1");
    http_expect_end(http);
    http_post(http, session, ECHO("2")); /* on the same connection */
    message_result(http_expect(http, 200), "2");
}

/* row: revisions before 2025-11-25 have no event without data. */
TEST(http_older_revision_gets_no_empty_event)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_send(http, "POST", "/mcp",
              test_format(HTTP_POST_FIELDS "Mcp-Session-Id: %s\r\n"
                                           "MCP-Protocol-Version: 2025-06-18\r\n",
                          session),
              SAY("1", NOTE("1")));
    ck_assert_int_eq(http_status(http), 200);
    expect_event(http, NOTE("1"));
    message_result(http_event(http), "1");
    http_expect_end(http);
}

/* A client that takes no stream gets its answer, and the notice waits for a GET. */
TEST(http_client_that_takes_json_alone_gets_json)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_send(http, "POST", "/mcp",
              test_format(HTTP_JSON "Accept: application/json\r\nMcp-Session-Id: %s\r\n", session),
              SAY("1", NOTE("1")));
    message_result(http_expect(http, 200), "1");
    listen_to(http, session, NULL);
    expect_event(http, NOTE("1"));
}

TEST(http_client_that_takes_events_alone_gets_a_stream)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_send(http, "POST", "/mcp",
              test_format(HTTP_JSON "Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n"
                                    "MCP-Protocol-Version: 2025-11-25\r\n",
                          session),
              ECHO("1"));
    expect_stream(http);
    message_result(http_event(http), "1");
    http_expect_end(http);
}

TEST(http_question_is_on_the_stream_of_its_request)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon), *other = http_connect(daemon);
    const char *session = http_session(http);
    http_post(http, session,
              "{'jsonrpc':'2.0','id':1,'method':'ask','params':{'id':'q',"
              "'params':{'x':1}}}");
    expect_stream(http);
    struct span question = http_event(http);
    const char *id = test_format("%.*s", (int)json_get(question, "id").len,
                                 json_get(question, "id").data);
    http_post(other, session, "{'jsonrpc':'2.0','id':%s,'result':{'y':2}}", id);
    ck_assert_uint_eq(http_expect(other, 202).len, 0);
    struct span result = message_result(http_event(http), "1");
    ck_assert(span_is(json_get(result, "result.y"), "2"));
    http_expect_end(http);
}

/* What is about no request in flight, or perhaps about another, is for the stream of a GET. */
TEST(http_other_notices_are_on_the_stream_of_a_get)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *get = http_connect(daemon), *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a);
    listen_to(get, session, NULL);
    http_post(a, session,
              "{'jsonrpc':'2.0','id':2,'method':'say_only','params':{'message':" NOTE("1") "}}");
    expect_stream(a);
    expect_event(a, NOTE("1")); /* one request is in flight */
    http_post(b, session, SAY("3", NOTE("7")));
    expect_event(get, NOTE("7")); /* two of them */
    message_result(http_expect(b, 200), "3");
}

/* row: the token is a word, or the id of another request in flight. */
TEST_ROWS(http_progress_is_on_the_stream_of_its_request, 2)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a), *token = row == 0 ? "'t'" : "2";
    http_post(a, session, "{'jsonrpc':'2.0','id':1,'method':'hold'}");
    message_result(http_expect(a, 200), "1");
    http_post(a, session, ECHO("2"));
    http_post(b, session,
              "{'jsonrpc':'2.0','id':3,'method':'progress',"
              "'params':{'_meta':{'progressToken':%s}}}",
              token);
    expect_stream(b);
    expect_event(b, test_format("{'jsonrpc':'2.0','method':'notifications/progress',"
                                "'params':{'progressToken':%s}}",
                                token));
    http_post(http_connect(daemon), session, "{'jsonrpc':'2.0','id':4,'method':'release'}");
    message_result(http_event(b), "3");
    message_result(http_expect(a, 200), "2");
}

TEST(http_notice_waits_for_a_get)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    http_post(http, session,
              "{'jsonrpc':'2.0','method':'say_only','params':{'message':" NOTE("1") "}}");
    http_expect(http, 202);
    listen_to(http, session, NULL);
    expect_event(http, NOTE("1"));
}

/* --- resuming --- */

TEST(http_stream_that_was_cut_goes_on)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a);
    http_post(b, session, "{'jsonrpc':'2.0','id':1,'method':'hold'}");
    message_result(http_expect(b, 200), "1");
    http_post(a, session, SAY("2", NOTE("1")));
    expect_stream(a);
    const char *first = last_id(a);
    expect_event(a, NOTE("1"));
    client_abort(a->client);
    http_post(b, session, "{'jsonrpc':'2.0','id':3,'method':'release'}");
    message_result(http_expect(b, 200), "3");
    listen_to(b, session, first); /* all that came after it */
    expect_event(b, NOTE("1"));
    const char *second = last_id(b);
    message_result(http_event(b), "2");
    http_expect_end(b);
    listen_to(b, session, second); /* again, the answer alone */
    message_result(http_event(b), "2");
    const char *last = last_id(b);
    http_expect_end(b);
    http_send(b, "GET", "/mcp",
              test_format("Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n"
                          "Last-Event-ID: %s\r\n",
                          session, last),
              NULL);
    http_expect(b, 204); /* that was all */
}

TEST(http_newer_connection_of_a_stream_wins)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a);
    listen_to(a, session, NULL);
    listen_to(b, session, NULL);
    http_expect_end(a);
    http_post(a, session,
              "{'jsonrpc':'2.0','method':'say_only','params':{'message':" NOTE("1") "}}");
    http_expect(a, 202);
    expect_event(b, NOTE("1"));
    const char *id = last_id(b);
    listen_to(a, session, id);
    http_expect_end(b);
}

TEST(http_unknown_event_id_gets_405)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    static const char *const ids[] = {"x", "00000000-0-1", "00000000-99-1"};
    for (size_t i = 0; i < COUNT(ids); i++) {
        http_send(http, "GET", "/mcp",
                  test_format("Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n"
                              "Last-Event-ID: %s\r\n",
                              session, ids[i]),
                  NULL);
        http_expect(http, 405);
    }
}

/* Of a stream that has not begun no client knows an event, and its request may still wait to be
 * taken: what a client makes up names no stream. */
TEST(http_stream_that_has_not_begun_cannot_be_named)
{
    struct daemon *daemon = START(MCP_POOL(""), .limits = "'max_output_queue':65536",
                                  .arguments = {"--log-level", "debug"});
    struct http *get = http_connect(daemon), *posts[10];
    const char *session = http_session(get);
    http_post(get, session, "{'jsonrpc':'2.0','id':0,'method':'stop_reading'}");
    long pid = json_number(message_result(http_expect(get, 200), "0"), "pid");
    for (int i = 0; i < 10; i++) {
        posts[i] = http_connect(daemon);
        http_post(posts[i], session, "{'jsonrpc':'2.0','id':%d,'method':'echo','params':'%s'}", i,
                  test_fill('x', 60000));
    }
    daemon_wait_log(daemon, "its queue is full");
    listen_to(get, session, NULL);
    const char *id = last_id(get); /* TAG-0-NUMBER */
    for (int i = 0; i < 20; i++) {
        struct http *http = http_connect(daemon);
        http_send(http, "GET", "/mcp",
                  test_format("Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n"
                              "Last-Event-ID: %.8s-%d-0\r\n",
                              session, id, i + 1),
                  NULL);
        http_expect(http, 405);
    }
    kill((pid_t)pid, SIGUSR1);
    for (int i = 0; i < 10; i++)
        message_result(http_expect(posts[i], 200), test_format("%d", i));
}

/* Beyond max_resume the oldest events are forgotten, and a question gets an error. */
TEST(http_events_that_nobody_fetches_are_bounded)
{
    struct daemon *daemon = START(MCP_POOL(""), .limits = "'max_resume':2000");
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    for (int i = 0; i < 40; i++) {
        http_post(http, session,
                  "{'jsonrpc':'2.0','method':'say_only','params':{'message':"
                  "{'jsonrpc':'2.0','id':'q%d','method':'roots/list'}}}",
                  i);
        http_expect(http, 202);
    }
    daemon_wait_log(daemon, "a message for a stream that nobody reads is dropped");
    http_send(http, "POST", "/mcp",
              test_format(HTTP_JSON "Accept: application/json\r\nMcp-Session-Id: %s\r\n", session),
              "{'jsonrpc':'2.0','id':1,'method':'reply_text'}");
    struct span reply = message_result(http_expect(http, 200), "1");
    expect_word(test_format("%.*s", (int)reply.len, reply.data), "does not fetch");
    ck_assert_msg(memmem(reply.data, reply.len, "}} ", 3) == NULL, "a blank follows: %.*s",
                  (int)reply.len, reply.data);
}

/* A note of this number of bytes for the GET of the session, which is kept. */
static void keep_note(struct http *http, const char *session, size_t len)
{
    http_post(http, session, "{'jsonrpc':'2.0','method':'say_only','params':{'message':%s}}",
              test_format(NOTE("'%s'"), test_fill('x', len)));
    http_expect(http, 202);
}

/* How many notes the GET of the session finds, the last of which says `end`. */
static int count_notes(struct http *http, const char *session)
{
    struct span note;
    int count = 0;

    keep_note(http, session, 3);
    listen_to(http, session, NULL);
    do {
        note = json_get(http_event(http), "params");
        count++;
    } while (!span_is(note, "\"xxx\""));
    return count - 1;
}

/* The answer has come after the notes that were kept before. */
static void await_process(struct http *http, const char *session)
{
    http_send(http, "POST", "/mcp",
              test_format(HTTP_JSON "Accept: application/json\r\nMcp-Session-Id: %s\r\n", session),
              ECHO("9"));
    http_expect(http, 200);
}

/* What one address keeps, in many sessions, pushes out nothing of another's. */
TEST(http_kept_events_of_an_address_are_bounded)
{
    struct daemon *daemon = START(MCP_POOL(""), .limits = "'max_resume_total':100000");
    struct client *other = client_try_connect_from(daemon, "127.0.0.2");
    ck_assert_msg(other != NULL || errno == EADDRNOTAVAIL, "127.0.0.2: %s", strerror(errno));
    if (other == NULL)
        return;
    struct http *honest = http_adopt(other), *greedy = http_connect(daemon);
    const char *session = http_session(honest);
    for (int i = 0; i < 3; i++)
        keep_note(honest, session, 10000);
    await_process(honest, session);
    for (int i = 0; i < 3; i++) {
        const char *another = http_session(greedy);
        for (int j = 0; j < 20; j++)
            keep_note(greedy, another, 10000);
        await_process(greedy, another);
    }
    ck_assert_int_eq(count_notes(honest, session), 3);
    daemon_wait_log(daemon, "a message for a stream that nobody reads is dropped");
}

TEST(http_bound_of_kept_events_is_reloaded)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    const char *session = http_session(http);
    for (int i = 0; i < 5; i++)
        keep_note(http, session, 10000);
    await_process(http, session);
    daemon_write_file(daemon, daemon->config_path,
                      "{'pools':[{'id':'p','command':'@WORKER@','instances':4,'protocol':'mcp'}],"
                      "'limits':{'max_resume_total':25000}}");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "reloaded: [0-9]+ pool");
    ck_assert_int_eq(count_notes(http, session), 2);
}

/* --- messages that wait to be taken --- */

#define TWO_POOLS                                                                                  \
    .mode = SETUP_HTTP, .pools = "{'id':'p','command':'@WORKER@','instances':4,'protocol':'mcp'}," \
                                 "{'id':'q','command':'@WORKER@','instances':1,'protocol':'mcp',"  \
                                 "'busy_timeout_sec':600}"

/* The session's process reads no more, and its queue is full. Returns the process. */
static long fill_process(struct daemon *daemon, struct http *http, const char *session)
{
    http_post(http, session, "{'jsonrpc':'2.0','id':0,'method':'stop_reading'}");
    long pid = json_number(message_result(http_expect(http, 200), "0"), "pid");
    do {
        http_post(http, session, "{'jsonrpc':'2.0','method':'nothing','params':'%s'}",
                  test_fill('x', 60000));
        http_expect(http, 202);
    } while (!daemon_logged(daemon, "its queue is full"));
    return pid;
}

/* While a request waits for a process, a question is answered in place of its session, for which
 * another process is too busy. Now the session is held for this reply, and the client of the
 * request leaves: its id is free. */
TEST(http_request_that_was_never_taken_leaves_with_its_client)
{
    struct daemon *daemon = START(TWO_POOLS, DEBUGGING,
                                  .limits = "'max_output_queue':65536,"
                                            "'max_resume_total':4000");
    struct http *a = http_connect(daemon), *b = http_connect(daemon), *c = http_connect(daemon);
    struct http *leaving = http_connect(daemon);
    const char *session = http_session(a), *second = http_session(b), *third = http_session(c);
    http_post(a, session,
              "{'jsonrpc':'2.0','method':'say_only','params':{'message':"
              "{'jsonrpc':'2.0','id':'q','method':'roots/list'}}}");
    http_expect(a, 202);
    await_process(a, session);
    long pid = fill_process(daemon, a, session);
    http_post(c, third, "{'jsonrpc':'2.0','id':1,'pool':'q','method':'echo'}");
    message_result(http_expect(c, 200), "1");
    http_post(leaving, session, "{'jsonrpc':'2.0','id':7,'pool':'q','method':'echo'}");
    http_post(leaving, session, "{'jsonrpc':'2.0','id':8,'pool':'q','method':'echo'}");
    for (int i = 0; i < 4; i++)
        keep_note(b, second, 1500);
    daemon_wait_log(daemon, "a message for a stream that nobody reads is dropped");
    daemon_mark_log(daemon);
    http_send(c, "DELETE", "/mcp", test_format("Mcp-Session-Id: %s\r\n", third), NULL);
    http_expect(c, 204);
    daemon_wait_log(daemon, "pool=q.*(started|running)");
    daemon_mark_log(daemon);
    client_abort(leaving->client);
    daemon_wait_log(daemon, "ended: ");
    kill((pid_t)pid, SIGUSR1);
    http_post(a, session, "{'jsonrpc':'2.0','id':7,'method':'echo'}");
    message_result(http_expect(a, 200), "7");
}

/* Its session ends while the process takes no message. */
TEST(http_connection_goes_on_after_a_request_that_was_never_taken)
{
    struct daemon *daemon = CONTROL_DAEMON(MCP_POOL(""), DEBUGGING,
                                           .limits = "'max_output_queue':65536");
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a);
    fill_process(daemon, a, session);
    http_post(a, session, ECHO("1"));
    control_wait(control_connect(daemon), "clients", "clients.2.held_for", "'a queue'");
    http_post(b, session, ECHO("2"));
    http_send(http_connect(daemon), "DELETE", "/mcp",
              test_format("Mcp-Session-Id: %s\r\n", session), NULL);
    message_error(http_expect(a, 200), "1", -32000, "the session has ended");
    http_session(a);
    http_expect(b, 404);
    http_session(b);
}

/* A session whose client does not read its GET is full, and its next request waits. The shutdown
 * disconnects the one connection, and answers on the other. */
TEST(http_request_that_waits_for_a_full_session_is_answered_at_the_end)
{
    struct daemon *daemon =
        CONTROL_DAEMON(.mode = SETUP_HTTP,
                       .pools = "{'id':'p','command':'@WORKER@','instances':1,'protocol':'mcp'}",
                       .limits = "'max_output_queue':65536,'drain_timeout_sec':1");
    struct http *get = http_connect(daemon), *post = http_connect(daemon);
    struct client *control = control_connect(daemon);
    const char *session = http_session(post);
    listen_to(get, session, NULL);
    http_post(post, session,
              "{'jsonrpc':'2.0','method':'notify','params':{'session':'s','n':2,'size':%d}}",
              UNREAD);
    http_expect(post, 202);
    control_wait(control, "workers", "workers.0.held_for", "\"a queue\"");
    http_post(post, session, ECHO("5"));
    control_wait(control, "clients", "clients.2.held_for", "\"a queue\"");
    daemon_signal(daemon, SIGTERM);
    http_status(post);
    struct span event;
    do
        event = http_event(post);
    while (json_get(event, "id").data == NULL);
    message_error(event, "5", -32000, "");
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* Two requests are in flight, asked one after the other, and more was written to the first one's
 * stream than the system takes for a client that does not read. (A small receive buffer would make
 * that less, but its window would open by a few kilobytes each 200 ms.) Returns the process. */
static long fill_stream(struct daemon *daemon, struct http *a, struct http *b, const char *session)
{
    struct http *c = http_connect(daemon);
    http_post(c, session, ECHO("0"));
    long pid = (long)json_number(message_result(http_expect(c, 200), "0"), "pid");
    http_post(a, session,
              "{'jsonrpc':'2.0','id':1,'method':'no_answer','params':{'_meta':{"
              "'progressToken':'t'}}}");
    daemon_wait_log(daemon, "forwarding a message .id 1,");
    http_send(b, "POST", "/mcp",
              test_format(HTTP_JSON "Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n", session),
              "{'jsonrpc':'2.0','id':2,'method':'no_answer'}");
    daemon_wait_log(daemon, "forwarding a message .id 2,");
    http_post(c, session,
              "{'jsonrpc':'2.0','method':'say_only','params':{'message':{'jsonrpc':'2.0',"
              "'method':'notifications/progress','params':{'progressToken':'t','progress':1,"
              "'message':'%s'}}}}",
              test_fill('x', UNREAD));
    http_expect(c, 202);
    daemon_wait_log(daemon, "forwarding a message .id none, sessionId none. to client=");
    return pid;
}

/* What was kept for it was forgotten before its client read on. */
TEST(http_answer_that_is_forgotten_is_an_error)
{
    struct daemon *daemon = START(MCP_POOL(""), DEBUGGING,
                                  .limits = "'max_resume':0,'max_output_queue':65536,"
                                            "'backpressure_timeout_sec':600");
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a);
    kill((pid_t)fill_stream(daemon, a, b, session), SIGKILL);
    expect_stream(b);
    message_error(http_event(b), "2", -32000, DIED);
    expect_stream(a);
    http_event(a);
    message_error(http_event(a), "1", -32000, "not fetched in time");
    http_expect_end(a);
}

/* The last words are for a client that reads late, too. */
TEST(http_session_that_ends_answers_on_full_streams)
{
    struct daemon *daemon = START(MCP_POOL(""), DEBUGGING,
                                  .limits = "'max_output_queue':65536,"
                                            "'backpressure_timeout_sec':600");
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    struct http *c = http_connect(daemon);
    const char *session = http_session(a);
    fill_stream(daemon, a, b, session);
    http_send(c, "DELETE", "/mcp", test_format("Mcp-Session-Id: %s\r\n", session), NULL);
    http_expect(c, 204);
    expect_stream(a);
    http_event(a);
    message_error(http_event(a), "1", -32000, "the session has ended");
    http_expect_end(a);
}

/* A cancelled request is not answered: its stream ends. */
TEST(http_stream_of_a_cancelled_request_ends)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a);
    http_post(a, session, "{'jsonrpc':'2.0','id':1,'method':'no_answer'}");
    http_post(b, session, ECHO("2"));
    http_status(b);
    http_body(b);
    http_post(b, session,
              "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1}}");
    http_expect(b, 202);
    http_expect(a, 202);
}

/* A client that does not read its stream holds its own worker, and is cut off in the end. */
TEST(http_stream_that_is_not_read_is_cut)
{
    struct daemon *daemon = START(MCP_POOL(""), .limits = "'backpressure_timeout_sec':1,"
                                                          "'max_output_queue':65536");
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    const char *session = http_session(a);
    http_post(a, session,
              "{'jsonrpc':'2.0','id':1,'method':'notify','params':{'session':'s',"
              "'n':3000,'size':10000}}");
    daemon_wait_log(daemon, "did not read for backpressure_timeout_sec");
    http_post(b, session, ECHO("2"));
    ck_assert_int_eq(http_status(b), 200);
}
