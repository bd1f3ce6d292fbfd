#include "build_config.h"

#include "rmp/bridge.h"

#include "rmp/control.h"
#include "rmp/convert.h"
#include "rmp/frame.h"
#include "suite.h"

#define UUID "11223344-5566-7788-99aa-bbccddeeff00"

static const struct rmp_id id = {0x1122334455667788, 0x99aabbccddeeff00};

/* The payload is `json`, once it is JSON. Frees it. */
static void expect_payload(char *payload, size_t len, const char *json)
{
    struct json_text text = {.data = NULL};

    ck_assert_ptr_nonnull(payload);
    ck_assert(convert_to_json(&text, slice_of(payload, len)));
    json_text_add(&text, slice_of("", 1));
    ck_assert_str_eq(text.data, json);
    json_text_free(&text);
    free(payload);
}

/* --- to workers --- */

TEST(request_line)
{
    struct json_text text = {.data = NULL};

    ck_assert(bridge_put_request(&text, 12, "agent/execute", id, slice_of("\x81\xa1\x61\x01", 4)));
    json_text_add(&text, slice_of("", 1));
    ck_assert_str_eq(text.data,
                     "{\"jsonrpc\":\"2.0\",\"id\":\"rmp:12\",\"method\":\"agent/execute\","
                     "\"sessionId\":\"" UUID "\",\"params\":{\"a\":1}}");
    json_text_free(&text);
}

/* --- from workers --- */

static const struct {
    const char *json;
    enum bridge_kind kind;
    uint64_t number;
    const char *text; /* value, id or reason */
    long code;
    bool retryable;
} lines[] = {
    {"{\"id\":\"rmp:7\",\"result\":{\"ports\":{}}}\n", BRIDGE_RESULT, 7, "{\"ports\":{}}", 0,
     false},
    {"{\"result\":null,\"id\":\"rmp:7\"}", BRIDGE_RESULT, 7, "null", 0, false},
    {"{\"id\":\"rmp:7\",\"error\":{\"code\":-5,\"message\":\"no\"}}", BRIDGE_ERROR, 7, "\"no\"", -5,
     false},
    {"{\"id\":\"rmp:7\",\"error\":{\"message\":\"no\",\"data\":{\"retryable\":true}}}",
     BRIDGE_ERROR, 7, "\"no\"", 0, true},
    {"{\"id\":\"rmp:7\",\"error\":{\"message\":1,\"data\":{\"retryable\":1}}}", BRIDGE_ERROR, 7, "",
     0, false},
    {"{\"id\":\"rmp:7\",\"error\":true}", BRIDGE_ERROR, 7, "", 0, false},
    {"{\"id\":\"rmp:7\",\"error\":null,\"result\":1}", BRIDGE_RESULT, 7, "1", 0, false},
    {"{\"id\":\"rmp:\",\"result\":1}", BRIDGE_OTHER, 0, "", 0, false},
    {"{\"id\":\"rmp:1x\",\"result\":1}", BRIDGE_OTHER, 0, "", 0, false},
    {"{\"id\":7,\"result\":1}", BRIDGE_OTHER, 0, "", 0, false},
    {"{\"id\":\"rmp:7\"}", BRIDGE_OTHER, 0, "", 0, false},
    {"{\"id\":7,\"method\":\"run/event\",\"params\":{}}", BRIDGE_QUESTION, 0, "7", 0, false},
    {"{\"method\":\"run/event\",\"params\":{\"a\":1}}", BRIDGE_EVENT, 0, "{\"a\":1}", 0, false},
    {"{\"method\":\"run/event\"}", BRIDGE_OTHER, 0, "", 0, false},
    {"{\"method\":\"log\",\"params\":{}}", BRIDGE_OTHER, 0, "", 0, false},
};

TEST_ROWS(line, COUNT(lines))
{
    struct bridge_message message;
    struct slice text;

    bridge_read(&message, slice_of_text(lines[row].json));
    ck_assert_int_eq(message.kind, lines[row].kind);
    text = message.kind == BRIDGE_ERROR      ? message.reason
           : message.kind == BRIDGE_QUESTION ? message.id
                                             : message.value;
    if (message.kind == BRIDGE_RESULT || message.kind == BRIDGE_ERROR)
        ck_assert_uint_eq(message.number, lines[row].number);
    if (message.kind != BRIDGE_OTHER)
        ck_assert(slice_equal(text, slice_of_text(lines[row].text)));
    ck_assert_int_eq(message.code, lines[row].code);
    ck_assert_int_eq(message.retryable, lines[row].retryable);
}

/* --- payloads --- */

TEST(responses)
{
    const char *problem = NULL;
    size_t len;
    char *payload = bridge_completed(slice_of_text("{\"ports\":{}}"), &len, &problem);

    expect_payload(payload, len, "{\"Completed\":{\"ports\":{}}}");
    payload = bridge_failed(true, slice_of_text("gone"), &len);
    expect_payload(payload, len, "{\"Failed\":{\"retryable\":true,\"reason\":\"gone\"}}");
    ck_assert_ptr_null(problem);
}

static const struct {
    const char *result, *payload; /* NULL: not usable */
} accepted[] = {
    {"{\"opening_id\":\"00000000-0000-0001-0000-000000000002\",\"opening_name\":\"x\"}",
     "{\"RunAccepted\":{\"request_id\":\"" UUID "\",\"trace_id\":\"" UUID
     "\",\"opening_id\":\"00000000-0000-0001-0000-000000000002\",\"opening_name\":\"x\"}}"},
    {"{\"opening_id\":7}", "{\"RunAccepted\":{\"request_id\":\"" UUID "\",\"trace_id\":\"" UUID
                           "\",\"opening_id\":7,\"opening_name\":\"\"}}"},
    {"null", "{\"RunAccepted\":{\"request_id\":\"" UUID "\",\"trace_id\":\"" UUID
             "\",\"opening_id\":\"" UUID "\",\"opening_name\":\"\"}}"},
    {"{\"opening_id\":[]}", NULL},
    {"{\"opening_name\":1}", NULL},
};

TEST_ROWS(run_accepted, COUNT(accepted))
{
    const char *problem = NULL;
    size_t len;
    char *payload = bridge_accepted(id, slice_of_text(accepted[row].result), &len, &problem);

    if (accepted[row].payload != NULL) {
        expect_payload(payload, len, accepted[row].payload);
        return;
    }
    ck_assert_ptr_null(payload);
    ck_assert_str_eq(problem, "the runner's opening_id or opening_name is not usable");
}

#define OTHER_KIND "the kind of run/event is none of log, status, plan, trace, artifact, progress"
#define OTHER_LEVEL "the level of run/event is none of info, warn, error"

static const struct {
    const char *params, *payload, *problem;
} events[] = {
    {"{\"trace_id\":\"" UUID "\",\"kind\":\"log\",\"level\":\"info\",\"message\":\"hi\"}",
     "{\"kind\":\"log\",\"level\":\"info\",\"message\":\"hi\",\"meta\":{\"ts_ms\":5,\"run_id\":"
     "\"" UUID "\"}}",
     NULL},
    {"{\"trace_id\":\"trace:" UUID "\",\"kind\":\"log\",\"message\":\"hi\",\"meta\":{\"ts_ms\":1,"
     "\"node_id\":\"n\"}}",
     "{\"kind\":\"log\",\"message\":\"hi\",\"meta\":{\"run_id\":\"" UUID
     "\",\"ts_ms\":1,\"node_id\":\"n\"}}",
     NULL},
    {"{\"kind\":\"log\",\"message\":\"hi\"}", NULL, "run/event has no trace_id"},
    {"{\"trace_id\":\"x\",\"kind\":\"log\",\"message\":\"hi\"}", NULL, "run/event has no trace_id"},
    {"{\"trace_id\":\"" UUID "\",\"kind\":\"progress\",\"level\":null,\"message\":\"hi\","
     "\"meta\":{\"ts_ms\":1,\"run_id\":1}}",
     "{\"kind\":\"progress\",\"message\":\"hi\",\"meta\":{\"ts_ms\":1,\"run_id\":1}}", NULL},
    {"{\"trace_id\":\"" UUID "\",\"message\":\"hi\"}", NULL, OTHER_KIND},
    {"{\"trace_id\":\"" UUID "\",\"kind\":\"nonsense\",\"message\":\"hi\"}", NULL, OTHER_KIND},
    {"{\"trace_id\":\"" UUID "\",\"kind\":\"logs\",\"message\":\"hi\"}", NULL, OTHER_KIND},
    {"{\"trace_id\":\"" UUID "\",\"kind\":1,\"message\":\"hi\"}", NULL, OTHER_KIND},
    {"{\"trace_id\":\"" UUID "\",\"kind\":\"log\"}", NULL, "run/event has no message"},
    {"{\"trace_id\":\"" UUID "\",\"kind\":\"log\",\"message\":\"\",\"level\":1}", NULL,
     OTHER_LEVEL},
    {"{\"trace_id\":\"" UUID "\",\"kind\":\"log\",\"message\":\"\",\"level\":\"loud\"}", NULL,
     OTHER_LEVEL},
    {"{\"trace_id\":\"" UUID "\",\"kind\":\"log\",\"message\":\"\",\"level\":\"\"}", NULL,
     OTHER_LEVEL},
    {"{\"trace_id\":\"" UUID "\",\"kind\":\"log\",\"message\":\"\",\"meta\":[]}", NULL,
     "the meta of run/event is no object"},
    {"[1]", NULL, "run/event has no trace_id"},
};

TEST_ROWS(event, COUNT(events))
{
    const char *problem = NULL;
    struct rmp_id run;
    size_t len;
    char *payload = bridge_event(slice_of_text(events[row].params), 5, &run, &len, &problem);

    if (events[row].payload == NULL) {
        ck_assert_ptr_null(payload);
        ck_assert_str_eq(problem, events[row].problem);
        return;
    }
    ck_assert_ptr_null(problem);
    ck_assert(rmp_id_equal(run, id));
    expect_payload(payload, len, events[row].payload);
}

TEST(texts)
{
    char topic[BRIDGE_EVENTS_MAX], *text;
    size_t len;

    ck_assert_str_eq(bridge_events_topic(topic, id), "rlp/runs/trace:" UUID "/events");
    text = bridge_text(slice_of_text("\"a\\nb\""), &len);
    ck_assert_uint_eq(len, 3);
    ck_assert_str_eq(text, "a\nb");
    free(text);
}

/* --- frames --- */

TEST(composed_frame)
{
    const struct rmp_schemas schemas = {.added = NULL};
    const struct rmp_rules rules = {.schemas = &schemas, .max_body = RMP_MAX_BODY};
    struct rmp_draft draft = {
        .header = {.schema_id = 8, .created_at_ms = 10, .ttl_ms = 5, .trace_id = id, .msg_id = 3},
        .type = "observation.run.event.v1",
        .topic = slice_of_text("a/b"),
        .payload = {"\x80", 1},
        .ack = true,
    };
    struct rmp_frame frame;
    size_t len;
    char *bytes = rmp_compose(&draft, &len);

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(rmp_frame_read(&frame, slice_of(bytes, len), &rules, 12), RMP_OK);
    ck_assert(rmp_id_equal(frame.header.trace_id, id));
    ck_assert(slice_equal(rmp_envelope_topic(&frame.envelope), draft.topic));
    ck_assert(rmp_envelope_wants_ack(&frame.envelope));
    free(bytes);
}
