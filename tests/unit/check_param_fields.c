#include "build_config.h"

#include "json/param_fields.h"

#include "suite.h"
#include "json/scanner.h"

#define MCP "\"io.modelcontextprotocol/"

/* The raw value of the field in `to`, or "-" if there is none. The message is in memory of just its
 * size. */
static const char *look(char *to, size_t size, const char *text, enum param_field wanted,
                        bool with_hint)
{
    size_t len = strlen(text), hint = 0;
    char *message = malloc(len + 1);
    struct param_fields found;
    struct scanner scanner;
    struct slice raw;

    ck_assert_ptr_nonnull(message);
    memcpy(message, text, len);
    message[len] = '\n';
    scanner_reset(&scanner);
    ck_assert_msg(scanner_run(&scanner, message, len + 1) == SCAN_MESSAGE, "%s", text);
    if (with_hint && scanner.fields.method.type == SCAN_STRING)
        hint = scanner.fields.method.offset + scanner.fields.method.len + 1;
    memset(&found, 0xa5, sizeof found);
    param_fields_find(&found, slice_of(message, len + 1), hint);
    ck_assert_uint_eq(found.present >> PARAM_FIELDS_COUNT, 0);
    snprintf(to, size, "-");
    if (param_fields_has(&found, wanted)) {
        raw = param_fields_raw(slice_of(message, len + 1), &found.at[wanted]);
        snprintf(to, size, "%.*s", (int)raw.len, raw.data);
    }
    free(message);
    return to;
}

static const struct {
    const char *text;
    enum param_field wanted;
    const char *raw;
} cases[] = {
    {"{}", PARAM_SESSION, "-"},
    {"{\"params\":{\"sessionId\":\"s\"}}", PARAM_SESSION, "\"s\""},
    {"{\"params\":{\"sessionId\":\"\"}}", PARAM_SESSION, "\"\""},
    {"{\"sessionId\":\"s\"}", PARAM_SESSION, "-"},
    {"{\"params\":[{\"sessionId\":\"s\"}]}", PARAM_SESSION, "-"},
    {"{\"params\":{\"a\":{\"sessionId\":\"s\"}}}", PARAM_SESSION, "-"},
    {"{\"result\":{\"sessionId\":\"s\"}}", PARAM_SESSION, "-"},
    {"{\"result\":{\"sessionId\":\"s\"}}", RESULT_SESSION, "\"s\""},
    {"{\"result\":{\"stopReason\":\"end_turn\"}}", RESULT_STOP, "\"end_turn\""},
    {"{\"result\":{\"protocolVersion\":2}}", RESULT_VERSION, "2"},
    {"{\"result\":{\"a\":{\"stopReason\":0}},\"params\":{\"stopReason\":1}}", RESULT_STOP, "-"},
    {"{\"result\":{\"a\":[{\"}\":\"]\"}],\"sessionId\":\"s\"}}", RESULT_SESSION, "\"s\""},
    {"{\"params\":{\"_meta\":{\"progressToken\":7}}}", PARAM_META_TOKEN, "7"},
    {"{\"params\":{\"_meta\":{\"progressToken\":-1.5e3 }}}", PARAM_META_TOKEN, "-1.5e3"},
    {"{\"params\":{\"_meta\":{\"progressToken\":null}}}", PARAM_META_TOKEN, "null"},
    {"{\"params\":{\"_meta\":{\"progressToken\":{\"a\":[]}}}}", PARAM_META_TOKEN, "{\"a\":[]}"},
    {"{\"_meta\":{\"progressToken\":7}}", PARAM_META_TOKEN, "-"},
    {"{\"params\":{\"progressToken\":7}}", PARAM_META_TOKEN, "-"},
    {"{\"params\":{\"progressToken\":7}}", PARAM_PROGRESS_TOKEN, "7"},
    {"{\"params\":{\"_meta\":{\"progressToken\":7}}}", PARAM_PROGRESS_TOKEN, "-"},
    {"{\"params\":{\"_meta\":{\"_meta\":{\"progressToken\":7}}}}", PARAM_META_TOKEN, "-"},
    {"{\"params\":{\"workDoneToken\":\"w\",\"partialResultToken\":\"p\"}}", PARAM_WORK_TOKEN,
     "\"w\""},
    {"{\"params\":{\"workDoneToken\":\"w\",\"partialResultToken\":\"p\"}}", PARAM_PARTIAL_TOKEN,
     "\"p\""},
    {"{\"params\":{\"token\":\"t\"}}", PARAM_TOKEN, "\"t\""},
    {"{\"params\":{\"requestId\":1}}", PARAM_REQUEST_ID, "1"},
    {"{\"params\":{\"id\":\"x\"}}", PARAM_ID, "\"x\""},
    {"{\"id\":\"x\"}", PARAM_ID, "-"},
    {"{\"params\":{\"name\":\"t\",\"task\":{\"ttl\":1}}}", PARAM_NEW_TASK, "{\"ttl\":1}"},
    {"{\"params\":{\"a\":{\"task\":{}}},\"task\":{}}", PARAM_NEW_TASK, "-"},
    {"{\"params\":{\"taskId\":\"t\",\"status\":\"failed\"}}", PARAM_TASK, "\"t\""},
    {"{\"params\":{\"taskId\":\"t\",\"status\":\"failed\"}}", PARAM_STATUS, "\"failed\""},
    /* keys of MCP */
    {"{\"params\":{\"_meta\":{" MCP "protocolVersion\":\"2026-07-28\"}}}", PARAM_VERSION,
     "\"2026-07-28\""},
    {"{\"params\":{" MCP "protocolVersion\":\"2026-07-28\"}}", PARAM_VERSION, "-"},
    {"{\"params\":{\"_meta\":{" MCP "clientCapabilities\":{\"roots\":{}}}}}", PARAM_CAPABILITIES,
     "{\"roots\":{}}"},
    {"{\"params\":{\"_meta\":{" MCP "protocolVersioN\":\"2026-07-28\"}}}", PARAM_VERSION, "-"},
    {"{\"params\":{\"_meta\":{\"io.modelcontextprotocol\\/logLevel\":\"info\"}}}", PARAM_LOG_LEVEL,
     "\"info\""},
    {"{\"params\":{\"_meta\":{" MCP "subscriptionId\":\"listen:0\"}}}", PARAM_SUBSCRIPTION,
     "\"listen:0\""},
    {"{\"params\":{\"_meta\":{" MCP "related-task\":{\"taskId\":\"t\"}}}}", PARAM_RELATED_TASK,
     "\"t\""},
    {"{\"params\":{\"_meta\":{" MCP "related-task\":\"t\",\"taskId\":\"u\"}}}", PARAM_RELATED_TASK,
     "-"},
    {"{\"params\":{\"_meta\":{" MCP "related-task\":{\"taskId\":\"t\"},\"progressToken\":5}}}",
     PARAM_META_TOKEN, "5"},
    {"{\"result\":{\"task\":{\"taskId\":\"t\",\"ttl\":null},\"_meta\":{}}}", RESULT_TASK, "\"t\""},
    {"{\"result\":{\"task\":{\"taskId\":\"t\"},\"task\":0}}", RESULT_TASK, "-"},
    {"{\"result\":{\"taskId\":\"t\"}}", RESULT_TASK, "-"},
    {"{\"result\":{\"_meta\":{" MCP "subscriptionId\":7},\"a\":1}}", RESULT_SUBSCRIPTION, "7"},
    {"{\"result\":{\"_meta\":{" MCP "subscriptionId\":7}},\"result\":{}}", RESULT_SUBSCRIPTION,
     "-"},
    {"{\"error\":{\"message\":\"code\",\"code\":-32601}}", ERROR_CODE, "-32601"},
    {"{\"error\":{\"data\":{\"code\":1}}}", ERROR_CODE, "-"},
    /* escaped keys, white space */
    {"{\"p\\u0061rams\":{\"session\\u0049d\":\"a\\\"b\"}}", PARAM_SESSION, "\"a\\\"b\""},
    {"{\"params\":{\"_m\\u0065ta\":{\"progress\\u0054oken\":\"\\\\\"}}}", PARAM_META_TOKEN,
     "\"\\\\\""},
    {"{\"params\":{\"partialResultToke\\u006e\":1}}", PARAM_PARTIAL_TOKEN, "1"},
    {"{\"params\":{\"partialResultToken\\u0000\":1}}", PARAM_PARTIAL_TOKEN, "-"},
    {"{\"params\":{\"sessionid\":\"s\"}}", PARAM_SESSION, "-"},
    {" {\t\"params\" : { \"id\" :\t3\t, \"b\" : 4 } } \r", PARAM_ID, "3"},
    /* the last one counts */
    {"{\"params\":{\"id\":1,\"id\":2}}", PARAM_ID, "2"},
    {"{\"params\":{\"id\":1},\"params\":{}}", PARAM_ID, "-"},
    {"{\"params\":{\"id\":1},\"params\":7}", PARAM_ID, "-"},
    {"{\"params\":7,\"params\":{\"id\":1}}", PARAM_ID, "1"},
    {"{\"params\":{\"_meta\":{\"progressToken\":1},\"_meta\":{}}}", PARAM_META_TOKEN, "-"},
    {"{\"params\":{\"_meta\":{\"progressToken\":1},\"_meta\":[]}}", PARAM_META_TOKEN, "-"},
    {"{\"params\":{\"_meta\":{\"progressToken\":1},\"id\":5}}", PARAM_META_TOKEN, "1"},
    {"{\"params\":{\"_meta\":{\"progressToken\":1}},\"params\":{}}", PARAM_META_TOKEN, "-"},
    {"{\"result\":{\"sessionId\":\"s\"},\"result\":{}}", RESULT_SESSION, "-"},
    {"{\"result\":{\"sessionId\":\"s\"},\"params\":{}}", RESULT_SESSION, "\"s\""},
    /* keys and brackets inside strings */
    {"{\"a\":\"\\\"params\\\":{\\\"id\\\":1}\",\"params\":{\"id\":2}}", PARAM_ID, "2"},
    {"{\"a\":\"\\\\\",\"params\":{\"id\":2}}", PARAM_ID, "2"},
    {"{\"a\":\"\\\\\\\"\",\"params\":{\"id\":2}}", PARAM_ID, "2"},
    {"{\"a\":[\"]\",{\"b\":\"}|{[\"}],\"params\":{\"id\":2}}", PARAM_ID, "2"},
    {"{\"params\":{\"a\":[[[]],{}],\"b\":\"|\xc3\xa9\",\"id\":2}}", PARAM_ID, "2"},
    /* before and after the method */
    {"{\"method\":\"m\",\"params\":{\"id\":1}}", PARAM_ID, "1"},
    {"{\"params\":{\"id\":1},\"method\":\"m\"}", PARAM_ID, "1"},
    {"{\"params\":{\"id\":1},\"method\":\"m\",\"params\":{\"id\":2}}", PARAM_ID, "2"},
    {"{\"params\":{\"id\":1},\"method\":\"m\",\"params\":{\"a\":2}}", PARAM_ID, "-"},
    {"{\"method\":\"m\",\"params\":{\"id\":1},\"a\":2,\"params\":{}}", PARAM_ID, "-"},
    {"{\"method\":\"m\" , \"params\":{\"id\":1},\"a\":2}", PARAM_ID, "1"},
    {"{\"method\":\"m\"}", PARAM_ID, "-"},
};

TEST_ROWS(finds_the_fields, COUNT(cases))
{
    char raw[64];

    ck_assert_str_eq(look(raw, sizeof raw, cases[row].text, cases[row].wanted, false),
                     cases[row].raw);
    ck_assert_str_eq(look(raw, sizeof raw, cases[row].text, cases[row].wanted, true),
                     cases[row].raw);
}

/* At each place in the blocks of 64 bytes. */
TEST(finds_them_at_any_place)
{
    char text[1024], raw[100];

    for (int before = 0; before < 140; before++) {
        for (int inside = 0; inside < 70; inside += 3) {
            snprintf(text, sizeof text,
                     "{\"a\":\"%*s\",\"params\":{\"b\":\"%*s\\\"[\",\"id\":\"%*s\"}}", before, "",
                     inside, "", inside, "x");
            look(raw, sizeof raw, text, PARAM_ID, false);
            ck_assert_int_eq((int)strlen(raw), 2 + (inside > 1 ? inside : 1));
        }
    }
}

TEST(strings_are_decoded)
{
    static const char text[] = "{\"params\":{\"sessionId\":\"a\\u0062\",\"id\":7}}\n";
    struct slice message = slice_of(text, sizeof text - 1), value;
    struct param_fields found;
    char to[8];

    param_fields_find(&found, message, 0);
    ck_assert(param_fields_string(&found, PARAM_SESSION, message, to, sizeof to, &value));
    ck_assert(slice_equal(value, slice_of("ab", 2)));
    ck_assert(!param_fields_string(&found, PARAM_SESSION, message, to, 1, &value));
    ck_assert(!param_fields_string(&found, PARAM_ID, message, to, sizeof to, &value));
    ck_assert(!param_fields_string(&found, PARAM_TOKEN, message, to, sizeof to, &value));
}
