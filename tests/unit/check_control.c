/* The requests and replies of the control socket. */
#include "build_config.h"

#include "control/request.h"

#include "bus/refusal.h"
#include "control/reports.h"
#include "monitor/rows.h"
#include "suite.h"
#include "json/message.h"
#include "json/text.h"

static struct scanner scanner;

/* Reads the line, in which ' stands for ". Returns the code. */
static int read_line(struct control_request *request, const char *line, const char **problem)
{
    struct text *text = test_text();
    struct frame frame;

    text_printf(text, "%s\n", line);
    text_quote(text, 0);
    json_body_check.reset(&scanner, false);
    ck_assert_int_eq(json_body_check.run(&scanner, slice_of(text->data, text->len), &frame),
                     BODY_WHOLE);
    return control_request_read(request, slice_of(text->data, text->len), &scanner.fields, problem);
}

static bool is(struct slice slice, const char *text)
{
    return slice_equal(slice, slice_of(text, strlen(text)));
}

TEST(request_is_read)
{
    struct control_request request;
    const char *problem;

    ck_assert_int_eq(read_line(&request,
                               "{'id':'\\u0061','method':'drain','params':{'pool':'p','worker':3,"
                               "'client':4,'limit':5,'level':'warn','other':null}}",
                               &problem),
                     0);
    ck_assert_int_eq(request.method, CONTROL_DRAIN);
    ck_assert(is(request.id, "\"\\u0061\""));
    ck_assert(is(request.pool, "p") && is(request.level, "warn"));
    ck_assert(request.worker == 3 && request.client == 4 && request.limit == 5);
    control_request_free(&request);
}

TEST(request_without_params_has_defaults)
{
    struct control_request request;
    const char *problem;

    ck_assert_int_eq(read_line(&request, "{'id':1.5e0,'method':'clients'}", &problem), 0);
    ck_assert_int_eq(request.method, CONTROL_CLIENTS);
    ck_assert(is(request.id, "1.5e0"));
    ck_assert_ptr_null(request.pool.data);
    ck_assert(request.worker == 0 && request.client == 0);
    ck_assert_uint_eq(request.limit, CONTROL_LIMIT_DEFAULT);
    control_request_free(&request);
}

TEST(each_method_has_its_name)
{
    struct control_request request;
    const char *problem;

    for (int i = 0; i < CONTROL_METHODS; i++) {
        ck_assert_int_eq(read_line(&request,
                                   test_format("{'method':'%s'}", control_method_names[i]),
                                   &problem),
                         0);
        ck_assert_int_eq((int)request.method, i);
        ck_assert_ptr_null(request.id.data);
        control_request_free(&request);
    }
}

TEST(requests_that_are_refused)
{
    static const struct {
        const char *line;
        int code;
    } rows[] = {
        {"{}", JSONRPC_INVALID_REQUEST},
        {"{'id':1,'method':null}", JSONRPC_INVALID_REQUEST},
        {"{'id':1,'method':'statu'}", JSONRPC_METHOD_NOT_FOUND},
        {"{'id':1,'method':'status\\u0000'}", JSONRPC_METHOD_NOT_FOUND},
        {"{'method':'log','params':null}", JSONRPC_INVALID_PARAMS},
        {"{'method':'log','params':{'level':1}}", JSONRPC_INVALID_PARAMS},
        {"{'method':'drain','params':{'pool':1}}", JSONRPC_INVALID_PARAMS},
        {"{'method':'restart','params':{'worker':'1'}}", JSONRPC_INVALID_PARAMS},
        {"{'method':'restart','params':{'worker':1.5}}", JSONRPC_INVALID_PARAMS},
        {"{'method':'restart','params':{'worker':-1}}", JSONRPC_INVALID_PARAMS},
        {"{'method':'disconnect','params':{'client':0}}", JSONRPC_INVALID_PARAMS},
        {"{'method':'clients','params':{'limit':0}}", JSONRPC_INVALID_PARAMS},
        {"{'method':'clients','params':{'limit':10001}}", JSONRPC_INVALID_PARAMS},
        {"{'method':'log','id':1,'id':2}", JSONRPC_INVALID_REQUEST},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct control_request request;
        const char *problem = NULL;

        ck_assert_msg(read_line(&request, rows[i].line, &problem) == rows[i].code, "%s",
                      rows[i].line);
        ck_assert_ptr_nonnull(problem);
        control_request_free(&request);
    }
}

/* --- replies --- */

static void expect(struct json_text *text, const char *expected)
{
    struct text *wanted = test_text();

    text_printf(wanted, "%s", expected);
    text_quote(wanted, 0);
    ck_assert_msg(is(json_text_slice(text), wanted->data), "%.*s", (int)text->len, text->data);
    json_text_free(text);
}

TEST(replies_are_lines)
{
    struct json_text text = {.data = NULL};

    control_write_result(&text, slice_of("7", 1), slice_of("[]", 2));
    expect(&text, "{'jsonrpc':'2.0','id':7,'result':[]}\n");
    control_write_error(&text, slice_of(NULL, 0), -1, "no");
    expect(&text, "{'jsonrpc':'2.0','id':null,'error':{'code':-1,'message':'no'}}\n");
}

TEST(rows_have_commas_where_they_belong)
{
    struct json_text text = {.data = NULL};

    row_begin(&text, NULL, '{');
    row_begin(&text, "a", '[');
    row_number(&text, NULL, -1);
    row_string(&text, NULL, "[");
    row_begin(&text, NULL, '{');
    row_end(&text, '}');
    row_end(&text, ']');
    row_boolean(&text, "b", true);
    row_string(&text, "c", NULL);
    row_end(&text, '}');
    expect(&text, "{'a':[-1,'[',{}],'b':true,'c':null}");
}

TEST(events_name_what_there_is)
{
    const struct event_report event = {.epoch_ms = 5, .name = "exited", .of = "worker=1"};
    struct json_text text = {.data = NULL};

    control_write_event(&text, &event);
    expect(&text, "{'jsonrpc':'2.0','method':'event','params':{'time_ms':5,'event':'exited',"
                  "'of':'worker=1'}}\n");
}

TEST(clients_are_held_or_not)
{
    struct client_report client = {.number = 1, .peer = "uid 0", .program = ""};
    struct json_text text = {.data = NULL};

    rows_client(&text, &client);
    ck_assert_ptr_nonnull(strstr(text.data, "\"held_ms\":null,\"held_for\":null}"));
    json_text_free(&text);
    client.hold = (struct hold_report){.is_held = true, .what = HELD_FOR_MEMORY};
    rows_client(&text, &client);
    ck_assert_ptr_nonnull(strstr(text.data, "\"held_ms\":0,\"held_for\":\"memory\"}"));
    json_text_free(&text);
}

/* --- reasons --- */

TEST(texts_have_their_reasons)
{
    ck_assert_int_eq(refusal_of("too many sessions (max_sessions 1)"), REFUSAL_SESSIONS);
    ck_assert_int_eq(refusal_of("id is already in use"), REFUSAL_ID_IN_USE);
    ck_assert_int_eq(refusal_of("the daemon is shutting down"), REFUSAL_CLOSING);
    ck_assert_int_eq(refusal_of("unknown task"), REFUSAL_OTHER);
    for (int i = 0; i < REFUSALS; i++)
        ck_assert_ptr_nonnull(refusal_names[i]);
}
