/* stdio_bus_ctl(1), --mcp: an MCP server for agents that look after shared servers. */
#include "build_config.h"

#include "harness.h"
#include "share.h"

#define ERA "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}"

static struct sharer *start_agent(void)
{
    return SHARE(.share = "ctl", .arguments = {"--mcp"}, .whole = true);
}

static struct sharer *share_tools(const char *argument)
{
    struct sharer *sharer = SHARE(.share = "--share=tools", .env = {"TOKEN=verysecret"},
                                  .command = {getenv("TEST_WORKER"), "--name", argument});
    client_request(sharer->client, "'i'", NULL, "initialize",
                   "{'protocolVersion':'2025-11-25','result':{'protocolVersion':'2025-11-25',"
                   "'capabilities':{}}}");
    client_result(sharer->client, "\"i\"");
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    client_ask(sharer->client, "1", NULL, "echo", NULL);
    return sharer;
}

/* The result of a tool. */
static struct span call(const struct sharer *agent, const char *tool, const char *arguments)
{
    client_request(agent->client, "7", NULL, "tools/call",
                   test_format("{'name':'%s','arguments':%s}", tool, arguments));
    return client_result(agent->client, "7");
}

/* As it is written in JSON. */
static const char *text_of(struct span result)
{
    struct span written = json_text(json_get(result, "content.0.text"));
    struct text *text = test_text();
    text_add(text, written.data, written.len);
    text_add(text, "", 1);
    return text->data;
}

/* --- the protocol --- */

TEST(design_care_mcp_with_a_handshake)
{
    static const char *const versions[][2] = {{"2024-11-05", "2024-11-05"},
                                              {"2025-06-18", "2025-06-18"},
                                              {"2025-11-25", "2025-11-25"},
                                              {"1999-01-01", "2025-11-25"}};
    struct sharer *agent = start_agent();
    for (size_t i = 0; i < COUNT(versions); i++) {
        client_request(agent->client, "'i'", NULL, "initialize",
                       test_format("{'protocolVersion':'%s'}", versions[i][0]));
        struct span result = client_result(agent->client, "\"i\"");
        expect_member(result, "protocolVersion", test_format("'%s'", versions[i][1]));
        expect_member(result, "serverInfo.name", "'stdio_bus'");
        ck_assert_ptr_null(json_get(result, "resultType").data);
    }
    client_send(agent->client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    client_request(agent->client, "2", NULL, "ping", NULL);
    ck_assert(span_is(client_result(agent->client, "2"), "{}"));
    share_finish(agent);
}

TEST(design_care_mcp_without_a_handshake)
{
    struct sharer *agent = start_agent();
    client_request(agent->client, "1", NULL, "server/discover", "{" ERA "}");
    struct span result = client_result(agent->client, "1");
    expect_member(result, "supportedVersions.0", "'2026-07-28'");
    expect_member(result, "resultType", "'complete'");
    expect_member(result, "cacheScope", "'public'");
    client_request(agent->client, "2", NULL, "tools/list", "{" ERA "}");
    expect_member(client_result(agent->client, "2"), "ttlMs", "3600000");
    client_request(agent->client, "3", NULL, "tools/call", "{'name':'list'," ERA "}");
    result = client_result(agent->client, "3");
    expect_member(result, "resultType", "'complete'");
    expect_member(result, "content.0.text", "'{\\\"servers\\\":[]}'");
    client_request(agent->client, "4", NULL, "ping",
                   "{'_meta':{'io.modelcontextprotocol/protocolVersion':'2030-01-01'}}");
    struct span line = client_line(agent->client);
    expect_member(line, "error.code", "-32022");
    expect_member(line, "error.data.supported.0", "'2026-07-28'");
    share_finish(agent);
}

TEST(design_care_mcp_tools)
{
    static const char *const names[] = {"list", "status", "logs", "restart", "stop"};
    struct sharer *agent = start_agent();
    client_request(agent->client, "1", NULL, "tools/list", NULL);
    struct span result = client_result(agent->client, "1");
    for (size_t i = 0; i < COUNT(names); i++) {
        struct span tool = json_get(result, test_format("tools.%zu", i));
        expect_member(tool, "name", test_format("'%s'", names[i]));
        expect_member(tool, "annotations.readOnlyHint", i < 3 ? "true" : "false");
        expect_member(tool, "inputSchema.type", "'object'");
        if (i >= 3)
            expect_member(tool, "annotations.destructiveHint", "true");
    }
    ck_assert_ptr_null(json_get(result, "tools.5").data);
    share_finish(agent);
}

static const struct {
    const char *line, *code;
} mistakes[] = {
    {"nonsense", "-32700"},
    {"[1]", "-32600"},
    {"{'jsonrpc':'2.0','id':1}", "-32600"},
    {"{'jsonrpc':'2.0','id':null,'method':'ping'}", "-32600"},
    {"{'jsonrpc':'2.0','id':1,'method':'fly'}", "-32601"},
    {"{'jsonrpc':'2.0','id':1,'method':'initialize'}", "-32602"},
    {"{'jsonrpc':'2.0','id':1,'method':'tools/call'}", "-32602"},
    {"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'fly'}}", "-32602"},
};

TEST(design_care_mcp_refuses_bad_messages)
{
    struct sharer *agent = start_agent();
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        client_send(agent->client, "%s", mistakes[i].line);
        expect_member(client_line(agent->client), "error.code", mistakes[i].code);
    }
    /* A line that is too long, and what needs no answer. */
    client_send(agent->client, "{'id':1,'method':'%s'}", test_fill('x', 300000));
    expect_member(client_line(agent->client), "error.code", "-32600");
    client_send(agent->client, "{'jsonrpc':'2.0','id':1,'result':{}}");
    client_send(agent->client, " ");
    client_request(agent->client, "2", NULL, "ping", NULL);
    client_result(agent->client, "2");
    share_finish(agent);
}

/* --- the tools --- */

TEST(design_care_mcp_shows_no_secrets)
{
    struct sharer *tools = share_tools("s3cret"), *agent = start_agent();
    struct span result = call(agent, "list", "{}");
    struct span server = json_get(result, "structuredContent.servers.0");
    expect_member(server, "name", test_format("'tools@%s'", PACKAGE_VERSION));
    expect_member(server, "state", "'awake'");
    expect_member(server, "clients", "1");
    expect_member(server, "command.1", "'--name'");
    expect_member(server, "command.2", "'...'");
    ck_assert_ptr_null(strstr(text_of(result), "s3cret"));
    result = call(agent, "status", "{'name':'tools'}");
    expect_member(result, "structuredContent.processes", "1");
    share_finish(tools);
    share_finish(agent);
}

TEST(design_care_mcp_restarts_and_stops)
{
    struct sharer *tools = share_tools("tools"), *agent = start_agent();
    long pid = client_pid(tools->client, "1", NULL);
    expect_word(text_of(call(agent, "restart", "{'name':'tools'}")), "1 client stays connected");
    ck_assert_int_ne(client_pid(tools->client, "2", NULL), pid);
    expect_word(text_of(call(agent, "stop", "{'name':'tools'}")), "stopped; 1 client stays");
    expect_member(call(agent, "status", "{'name':'tools'}"), "structuredContent.state", "'asleep'");
    client_pid(tools->client, "3", NULL);
    const char *log = text_of(call(agent, "logs", "{'name':'tools','lines':3}"));
    int lines = 0;
    for (const char *at = log; (at = strstr(at, "\\n")) != NULL; at += 2)
        lines++;
    ck_assert_msg(lines == 3, "%s", log);
    expect_word(text_of(call(agent, "logs", "{'name':'tools'}")), "restart, asked for by the user");
    share_finish(tools);
    share_finish(agent);
}

static const char *const wrong[][3] = {
    {"status", "{}", "as in the schema"},
    {"status", "{'name':7}", "as in the schema"},
    {"status", "{'name':'a\\u0000'}", "as in the schema"},
    {"list", "{'name':'tools'}", "as in the schema"},
    {"list", "[]", "as in the schema"},
    {"logs", "{'name':'tools','lines':0}", "as in the schema"},
    {"logs", "{'name':'tools','lines':1001}", "as in the schema"},
    {"logs", "{'name':'other'}", "other: no such server; there is tools@"},
    {"stop", "{'name':'other'}", "other: no such server; there is tools@"},
};

TEST(design_care_mcp_reports_wrong_arguments)
{
    struct sharer *tools = share_tools("tools"), *agent = start_agent();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct span result = call(agent, wrong[i][0], wrong[i][1]);
        expect_member(result, "isError", "true");
        expect_word(text_of(result), wrong[i][2]);
    }
    share_finish(tools);
    share_finish(agent);
}

TEST(design_care_mcp_stands_alone)
{
    static const char *const words[] = {"ctl", "--mcp", "status", NULL};
    share_run(words, 64);
}
