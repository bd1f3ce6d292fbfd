/* What programs of a protocol write beside their messages (protocol.md). */
#include "build_config.h"

#include "harness.h"

#define SHARED_MCP(args)                                                                           \
    "{'id':'p','command':'@WORKER@','args':[" args "],'instances':1,'protocol':'mcp',"             \
    "'clients':'sticky'}"
#define PRESERVING                                                                                 \
    "{'id':'p','command':'@WORKER@','instances':1,'protocol':'mcp','ids':'preserve',"              \
    "'clients':'sticky'}"

/* Makes the worker write this. */
static void have_written(struct client *client, const char *id, const char *bytes)
{
    struct text *params = test_text();
    text_printf(params, "{'hex':'");
    text_hex(params, bytes, strlen(bytes));
    text_printf(params, "'}");
    client_request(client, id, NULL, "garbage", params->data);
}

struct noise {
    const char *bytes; /* and a newline */
    const char *reason;
};

static const struct noise noises[] = {
    {"Server v1.2 ready", "not a JSON object: .*Server v1.2 ready"},
    {"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}", "xef.xbb.xbf"},
    {"NaN", "NaN"},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":NaN}", "NaN"},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":1e}", "an invalid number"},
    {"banner{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}", "banner"},
    {"\x1b[32mok\x1b[0m", "x1b"},
    {"\xFF\xFE", "xff.xfe"},
    {"7", "not a JSON object"},
};

/* Programs print to stdout; their own clients log and skip it. */
TEST_ROWS(agents_output_that_is_no_message_is_skipped, COUNT(noises))
{
    struct daemon *daemon = START(.pools = SHARED_MCP(""));
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);
    have_written(client, NULL, noises[row].bytes);
    have_written(client, NULL, "\n");
    daemon_wait_log(daemon, test_format("WARN .*skipped output that is no message.*%s",
                                        noises[row].reason));
    ck_assert_int_eq(client_pid(client, "2", NULL), pid);
}

/* The rest of a line at the end of the output is dropped, and the waiting client gets an error. */
TEST(agents_output_may_end_within_a_line)
{
    struct daemon *daemon = START(.pools = SHARED_MCP(""));
    struct client *client = client_connect(daemon);
    client_pid(client, "1", NULL);
    have_written(client, NULL, "{\"jsonrpc\":\"2.0\",\"id\":6,\"res");
    client_request(client, "2", NULL, "die", "{'code':0}");
    client_error(client, "2", -32000, DIED);
    client_pid(client, "3", NULL);
}

static const struct noise answers[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":DEEP}", "nested too deeply"},
    {"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":NaN}", "not valid JSON"},
    {"{\"id\":ID,\"error\":{\"code\":01}}", "an invalid number"},
    {"{\"result\":1,\"id\":ID}{\"x\":1}", "more text"},
    {"{\"id\":ID,\"result\":1,\"sessionId\":7}", "sessionId must be a string"},
};

static void have_answered(struct client *client, const char *id, const char *answer,
                          const char *raw_id)
{
    struct text *line = test_text(), *deep = test_text();
    text_fill(deep, '[', 1100);
    text_fill(deep, ']', 1100);
    text_printf(line, "%s\n", answer);
    text_replace(line, "ID", raw_id);
    text_replace(line, "DEEP", deep->data);
    have_written(client, id, line->data);
}

/* Where the skipped line can be told to be an answer, its client gets an error. row: ids rewritten
 * or not. */
TEST_ROWS(agents_client_of_an_unreadable_answer_gets_an_error, 2)
{
    struct daemon *daemon = START(.pools = row == 0 ? SHARED_MCP("") : PRESERVING);
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);
    for (int i = 0; i < (int)COUNT(answers); i++) {
        const char *id = test_format("%d", i + 2);
        have_answered(client, NULL, answers[i].bytes, "9999");
        have_answered(client, id, answers[i].bytes, row == 0 ? test_format("%d", 2 * (i + 2)) : id);
        client_error(client, id, -32000, answers[i].reason);
    }
    ck_assert_int_eq(client_pid(other, "1", NULL), pid);
    client_expect_quiet(client);
}

/* row: sent at once, or byte by byte. */
TEST_ROWS(agents_array_is_split_into_its_messages, 2)
{
    struct daemon *daemon = START(.pools = SHARED_MCP(""));
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    const char *requests = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"plain\",\"params\":1} ,"
                           "{\"method\":\"no_answer\"},\r {\"id\":\"b\",\"method\":\"mirror\"}]\n"
                           "{\"id\":3,\"method\":\"plain\",\"params\":3}\n";
    client_pid(other, "1", NULL);
    client_send_chunks(client, requests, strlen(requests), row == 0 ? strlen(requests) : 1);
    client_expect(client, "{'jsonrpc':'2.0','id':1,'result':1}");
    /*  {"id":6,"method":"mirror"} after spaces */
    expect_member(client_result(client, "'b'"), "line",
                  "'2020"
                  "7b226964223a362c226d6574686f64223a226d6972726f72227d0a'");
    client_expect(client, "{'jsonrpc':'2.0','id':3,'result':3}");
    have_written(
        client, "4",
        "[ {\"method\":\"note\"},{\"jsonrpc\":\"2.0\",\"id\":10,\"result\":[{}]},7,{\"x\":1}]\n");
    client_expect(client, "  {'method':'note'}");
    client_expect(client, "{'jsonrpc':'2.0','id':4,'result':[{}]}");
    client_expect(other, "  {'method':'note'}");
    daemon_wait_log(daemon, "WARN .*skipped output that is no message.*: \"7,");
    client_expect_quiet(client);
    client_expect_quiet(other);
}

TEST(agents_text_after_an_array_is_malformed)
{
    struct daemon *daemon = START(.pools = SHARED_MCP(""));
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    client_send(client, "[{'id':1,'method':'no_answer'}] {'id':2,'method':'plain','params':2}");
    client_error(client, "null", -32700, "after the array");
    client_expect_eof(client);
    have_written(other, "1", "[{\"method\":\"note\"}] {\"method\":\"note\"}\n");
    client_expect(other, " {'method':'note'}");
    daemon_wait_log(daemon, "WARN .*skipped output that is no message.*more text after the array");
    client_expect_quiet(other);
}

/* To the letter: where a pool has no protocol, an array is not acceptable. */
TEST(agents_array_for_a_plain_pool_is_malformed)
{
    struct daemon *daemon = START(.pools = SHARED_MCP("") "," POOL("plain", 1, ""));
    struct client *client = client_connect(daemon);
    client_send(client, "[{'id':1,'pool':'p','method':'plain'}]");
    client_error(client, "null", -32700, "not a JSON object");
    client_expect_eof(client);
}
