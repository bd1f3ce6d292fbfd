/* MCP over HTTP, stateless era (protocol.md, "HTTP"). */
#include "build_config.h"

#include "harness.h"

#define MCP_POOL(keys)                                                                             \
    .mode = SETUP_HTTP,                                                                            \
    .pools = "{'id':'p','command':'@WORKER@','instances':4,'protocol':'mcp'" keys "}"

#define STATELESS "2026-07-28"

#define KEYS                                                                                       \
    "'io.modelcontextprotocol/protocolVersion':'" STATELESS                                        \
    "','io.modelcontextprotocol/clientCapabilities':{}"

#define META "'_meta':{" KEYS "}"

#define REQUEST(id, method, params)                                                                \
    "{'jsonrpc':'2.0','id':" id ",'method':'" method "','params':{" params META "}}"

#define FIELDS(method)                                                                             \
    HTTP_POST_FIELDS "MCP-Protocol-Version: " STATELESS "\r\nMcp-Method: " method "\r\n"

static void post(struct http *http, const char *fields, const char *body)
{
    http_send(http, "POST", "/mcp", fields, body);
}

TEST(http_stateless_request_stands_alone)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    long pid;
    post(a, FIELDS("echo") "Mcp-Session-Id: any\r\n", REQUEST("1", "echo", ""));
    pid = json_number(message_result(http_expect(a, 200), "1"), "pid");
    ck_assert_ptr_null(http_field(a, "Mcp-Session-Id").data);
    post(b, FIELDS("echo"), REQUEST("1", "echo", ""));
    ck_assert_int_eq(json_number(message_result(http_expect(b, 200), "1"), "pid"), pid);
}

static const struct {
    const char *fields, *body;
    int status, code;
    const char *word;
} wrongs[] = {
    {HTTP_POST_FIELDS, REQUEST("1", "echo", ""), 400, -32020, "MCP-Protocol-Version is missing"},
    {HTTP_POST_FIELDS "MCP-Protocol-Version: 2026-07-29\r\nMcp-Method: echo\r\n",
     REQUEST("1", "echo", ""), 400, -32020, "MCP-Protocol-Version does not match"},
    {HTTP_POST_FIELDS "MCP-Protocol-Version: " STATELESS "\r\n", REQUEST("1", "echo", ""), 400,
     -32020, "Mcp-Method is missing"},
    {FIELDS("ping"), REQUEST("1", "echo", ""), 400, -32020, "Mcp-Method does not match"},
    {FIELDS("tools/call"), REQUEST("1", "tools/call", "'name':'t',"), 400, -32020,
     "Mcp-Name is missing"},
    {FIELDS("tools/call") "Mcp-Name: u\r\n", REQUEST("1", "tools/call", "'name':'t',"), 400, -32020,
     "Mcp-Name does not match"},
    {FIELDS("resources/read") "Mcp-Name: u\r\n",
     REQUEST("1", "resources/read", "'name':'u','uri':'v',"), 400, -32020,
     "Mcp-Name does not match"},
    {FIELDS("tools/call") "Mcp-Name: =?base64?dQ==?=\r\n",
     REQUEST("1", "tools/call", "'name':'t',"), 400, -32020, "Mcp-Name does not match"},
    {FIELDS("echo"), "{'jsonrpc':'2.0','id':1,'method':'echo'}", 400, -32602, "protocolVersion"},
    {FIELDS("echo"), "{'jsonrpc':'2.0','id':1,'result':{}}", 400, -32600, "no request"},
    {FIELDS("initialize"), "{'jsonrpc':'2.0','id':1,'method':'initialize'}", 400, -32020, ""},
    {FIELDS("fail"), REQUEST("1", "fail", "'code':-32601,"), 404, -32601, ""},
    {FIELDS("fail"), REQUEST("1", "fail", "'code':-32021,"), 400, -32021, ""},
    {FIELDS("fail"), REQUEST("1", "fail", "'code':-32022,"), 400, -32022, ""},
    {FIELDS("echo"),
     "{'jsonrpc':'2.0','id':1,'method':'echo','params':{'_meta':{"
     "'io.modelcontextprotocol/protocolVersion':'" STATELESS "'}}}",
     400, -32602, "clientCapabilities"},
    {HTTP_POST_FIELDS "MCP-Protocol-Version: v999\r\nMcp-Method: echo\r\n",
     "{'jsonrpc':'2.0','id':1,'method':'echo','params':{'_meta':{"
     "'io.modelcontextprotocol/protocolVersion':'v999',"
     "'io.modelcontextprotocol/clientCapabilities':{}}}}",
     400, -32022, "\"supported\":[\"" STATELESS "\"],\"requested\":\"v999\""},
    {FIELDS("initialize"), REQUEST("1", "initialize", ""), 404, -32601, "initialize"},
    {FIELDS("fail"), REQUEST("1", "fail", "'code':-32602,"), 200, -32602, ""},
};

TEST_ROWS(http_stateless_errors_have_their_status, COUNT(wrongs))
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    post(http, wrongs[row].fields, wrongs[row].body);
    struct span body = http_expect(http, wrongs[row].status);
    ck_assert_int_eq(json_number(body, "error.code"), wrongs[row].code);
    ck_assert_int_eq(json_number(body, "id"), 1);
    expect_word(test_format("%.*s", (int)body.len, body.data), wrongs[row].word);
    post(http, FIELDS("echo"), REQUEST("2", "echo", ""));
    message_result(http_expect(http, 200), "2");
}

static const struct {
    const char *fields, *body;
} rights[] = {
    {FIELDS("tools/call") "Mcp-Name: t\r\n", REQUEST("1", "tools/call", "'name':'t',")},
    {FIELDS("tools/call") "Mcp-Name: =?base64?dA==?=\r\n",
     REQUEST("1", "tools/call", "'name':'t',")},
    {FIELDS("tools/call") "Mcp-Name: t\r\n", REQUEST("1", "tools\\/call", "'name':'\\u0074',")},
    {FIELDS("resources/read") "Mcp-Name: u\r\n", REQUEST("1", "resources/read", "'uri':'u',")},
    {FIELDS("tasks/get") "Mcp-Name: k\r\n", REQUEST("1", "tasks/get", "'taskId':'k',")},
    {FIELDS("tools/call"), REQUEST("1", "tools/call", "")}, /* the server says what is wrong */
};

TEST_ROWS(http_stateless_fields_match_the_message, COUNT(rights))
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    post(http, rights[row].fields, rights[row].body);
    struct span body = http_expect(http, 200);
    ck_assert_int_ne(json_number(body, "error.code"), -32020);
}

TEST(http_stateless_notification_is_accepted)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    post(http, FIELDS("n"), "{'jsonrpc':'2.0','method':'n','params':{" META "}}");
    ck_assert_uint_eq(http_expect(http, 202).len, 0);
    post(http, FIELDS("m"), "{'jsonrpc':'2.0','method':'n','params':{" META "}}");
    ck_assert_int_eq(json_number(http_expect(http, 400), "error.code"), -32020);
}

TEST(http_stateless_get_and_delete_are_not_allowed)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    static const char *const methods[] = {"GET", "DELETE"};
    for (size_t i = 0; i < COUNT(methods); i++) {
        http_send(http, methods[i], "/mcp",
                  "Accept: text/event-stream\r\nMCP-Protocol-Version: " STATELESS "\r\n", NULL);
        http_expect(http, 405);
        ck_assert(span_is(http_field(http, "Allow"), "POST, OPTIONS"));
    }
}

TEST(http_stateless_notice_makes_a_stream)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    post(http, FIELDS("progress"),
         "{'jsonrpc':'2.0','id':1,'method':'progress','params':{'n':5,'_meta':{" KEYS
         ",'progressToken':'t'}}}");
    ck_assert_int_eq(http_status(http), 200);
    ck_assert(span_is(http_field(http, "Content-Type"), "text/event-stream"));
    ck_assert(span_is(json_get(http_event(http), "params.progressToken"), "\"t\""));
    ck_assert_ptr_null(http_event_id(http).data);
    message_result(http_event(http), "1");
    http_expect_end(http);
}

/* Its connection is the request: to close it is to cancel it. */
TEST(http_stateless_request_is_cancelled_by_its_end)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    post(a, FIELDS("no_answer"), REQUEST("1", "no_answer", ""));
    post(b, FIELDS("echo"), REQUEST("1", "echo", ""));
    message_result(http_expect(b, 200), "1");
    client_close(a->client);
    daemon_wait_log(daemon, "\\[client=1\\] disconnected: hung up");
    post(b, FIELDS("last_note"), REQUEST("2", "last_note", ""));
    ck_assert(span_is(json_get(message_result(http_expect(b, 200), "2"), "method"),
                      "\"notifications/cancelled\""));
}

/* A subscription keeps its stream open. */
TEST(http_stateless_subscription_is_a_stream)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    post(a, FIELDS("subscriptions/listen"), REQUEST("'s'", "subscriptions/listen", ""));
    post(b, FIELDS("echo"), REQUEST("1", "echo", ""));
    message_result(http_expect(b, 200), "1");
    post(b, FIELDS("say"),
         "{'jsonrpc':'2.0','id':2,'method':'say','params':{" META ",'message':{'jsonrpc':'2.0',"
         "'method':'notifications/tools/list_changed','params':{'_meta':{"
         "'io.modelcontextprotocol/subscriptionId':2}}}}}");
    message_result(http_expect(b, 200), "2");
    ck_assert_int_eq(http_status(a), 200);
    ck_assert(span_is(json_get(http_event(a), "method"), "\"notifications/tools/list_changed\""));
}

/* What a request has named is known where the next one comes, though that is on another connection
 * and there is a worker with less to do. */
TEST(http_stateless_requests_of_an_origin_meet_the_same_process)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *busy = http_connect(daemon), *other = http_connect(daemon);
    long pid;
    post(other, FIELDS("echo"), REQUEST("1", "echo", ""));
    pid = json_number(message_result(http_expect(other, 200), "1"), "pid");
    post(busy, FIELDS("no_answer"), REQUEST("1", "no_answer", ""));
    for (int i = 0; i < 3; i++) {
        struct http *http = http_connect(daemon);
        post(http, FIELDS("echo"), REQUEST("1", "echo", ""));
        ck_assert_int_eq(json_number(message_result(http_expect(http, 200), "1"), "pid"), pid);
    }
}

TEST(http_stateless_shared_process_survives_a_death)
{
    struct daemon *daemon = START(MCP_POOL(""));
    struct http *http = http_connect(daemon);
    post(http, FIELDS("die"), REQUEST("1", "die", "'code':1,"));
    message_error(http_expect(http, 200), "1", -32000, DIED);
    post(http, FIELDS("echo"), REQUEST("1", "echo", ""));
    message_result(http_expect(http, 200), "1");
}

/* --- results that may be kept (protocol.md, "What is remembered") --- */

#define KEEPING                                                                                    \
    MCP_POOL(",'clients':'sticky','lazy':true,'idle_stop_sec':1,"                                  \
             "'args':['--lists','@DIR@/test-lists']")
#define LASTS(ms, name)                                                                            \
    "{'resultType':'complete','ttlMs':" ms ",'cacheScope':'public','tools':[{'name':'" name "'}]}" \
    "\n"

static void set_lists(const struct daemon *daemon, const char *lines)
{
    daemon_write_file(daemon, "@DIR@/test-lists", lines);
}

/* Another request of the same connection follows: the answer is whole. */
static long ask_tools(struct http *http, const char *id, const char *name)
{
    struct span result, found;
    post(http, FIELDS("tools/list"), test_format(REQUEST("%s", "tools/list", ""), id));
    result = message_result(http_expect(http, 200), id);
    found = json_text(json_get(result, "tools.0.name"));
    ck_assert_msg(span_is(found, name), "%.*s, not %s", SHOWN(result), name);
    ck_assert(span_is(http_field(http, "Content-Type"), "application/json"));
    return (long)json_number(result, "ttlMs");
}

TEST(http_stateless_fresh_result_is_for_all_clients)
{
    struct daemon *daemon = START(KEEPING);
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    long left;
    set_lists(daemon, LASTS("60000", "one"));
    ask_tools(a, "1", "one");
    set_lists(daemon, LASTS("60000", "two"));
    usleep(50000);
    left = ask_tools(b, "'an id'", "one");
    ck_assert_msg(left > 0 && left <= 59960, "%ld", left);
    ask_tools(b, "1", "one");
    ask_tools(a, "2", "one");
    /* The fields of the request are looked at first. */
    post(b, FIELDS("prompts/list"), REQUEST("3", "tools/list", ""));
    ck_assert_int_eq(json_number(http_expect(b, 400), "error.code"), -32020);
    daemon_wait_workers(daemon, 0);
    ask_tools(b, "4", "one");
    daemon_wait_workers(daemon, 0);
}

TEST(http_stateless_stale_result_starts_no_process)
{
    struct daemon *daemon = START(KEEPING);
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    set_lists(daemon, LASTS("1", "one"));
    ask_tools(a, "1", "one");
    daemon_wait_workers(daemon, 0);
    set_lists(daemon, LASTS("60000", "two"));
    ck_assert_int_eq(ask_tools(b, "1", "one"), 0);
    daemon_wait_workers(daemon, 0);
    post(a, FIELDS("echo"), REQUEST("2", "echo", ""));
    message_result(http_expect(a, 200), "2");
    ask_tools(b, "3", "two");
}

/* What the server says to a client that listens is for all. */
TEST(http_stateless_fresh_result_that_has_changed)
{
    struct daemon *daemon = START(KEEPING);
    struct http *a = http_connect(daemon), *b = http_connect(daemon);
    set_lists(daemon, LASTS("60000", "one"));
    ask_tools(b, "1", "one");
    post(a, FIELDS("subscriptions/listen"), REQUEST("'s'", "subscriptions/listen", ""));
    post(b, FIELDS("echo"), REQUEST("2", "echo", ""));
    message_result(http_expect(b, 200), "2");
    set_lists(daemon, LASTS("60000", "two"));
    post(b, FIELDS("say"),
         "{'jsonrpc':'2.0','id':3,'method':'say','params':{" META ",'message':{'jsonrpc':'2.0',"
         "'method':'notifications/tools/list_changed','params':{'_meta':{"
         "'io.modelcontextprotocol/subscriptionId':4}}}}}");
    message_result(http_expect(b, 200), "3");
    ck_assert_int_eq(http_status(a), 200);
    ck_assert(span_is(json_get(http_event(a), "method"), "\"notifications/tools/list_changed\""));
    ask_tools(b, "4", "two");
}
