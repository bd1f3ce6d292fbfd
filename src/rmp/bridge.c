#include "build_config.h"

#include "rmp/bridge.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "rmp/control.h"
#include "rmp/convert.h"

#define ID_PREFIX "\"rmp:"
#define OPENING_MAX_BYTES 1024 /* of the opening_id and opening_name of a runner */

/* --- to workers --- */

bool bridge_put_request(struct json_text *text, uint64_t number, const char *method,
                        struct rmp_id session, struct slice params)
{
    char uuid[RMP_UUID_LEN + 1];

    json_text_format(text, "{\"jsonrpc\":\"2.0\",\"id\":" ID_PREFIX "%llu\",\"method\":\"%s\",",
                     (unsigned long long)number, method);
    json_text_format(text, "\"sessionId\":\"%s\",\"params\":", rmp_uuid_write(uuid, session));
    if (!convert_to_json(text, params))
        return false;
    json_text_literal(text, "}");
    return true;
}

void bridge_put_refusal(struct json_text *text, struct slice id)
{
    json_text_literal(text, "{\"jsonrpc\":\"2.0\",\"id\":");
    json_text_add(text, id);
    json_text_literal(text, ",\"error\":{\"code\":-32601,\"message\":\"the topic bus answers no "
                            "requests\"}}");
}

/* --- from workers --- */

static bool is_text(struct slice json, const char *text)
{
    return slice_equal(json, slice_of(text, strlen(text)));
}

/* The number of an id "rmp:NUMBER". */
static bool read_number(struct slice id, uint64_t *number)
{
    size_t prefix = sizeof ID_PREFIX - 1;

    *number = 0;
    if (id.len <= prefix + 1 || id.len > prefix + 21 || memcmp(id.data, ID_PREFIX, prefix) != 0)
        return false;
    for (size_t i = prefix; i < id.len - 1; i++) {
        if (id.data[i] < '0' || id.data[i] > '9')
            return false;
        *number = *number * 10 + (uint64_t)(id.data[i] - '0');
    }
    return true;
}

static void read_error(struct bridge_message *message, struct slice error)
{
    struct slice value;

    message->kind = BRIDGE_ERROR;
    if (convert_find(error, "message", &value) && value.len > 0 && value.data[0] == '"')
        message->reason = value;
    if (convert_find(error, "code", &value))
        message->code = strtol(value.data, NULL, 10);
    if (convert_find(error, "data", &value) && convert_find(value, "retryable", &value))
        message->retryable = is_text(value, "true");
}

void bridge_read(struct bridge_message *message, struct slice json)
{
    struct slice method, value;
    bool has_id = convert_find(json, "id", &message->id) && !is_text(message->id, "null");

    *message = (struct bridge_message){.kind = BRIDGE_OTHER, .id = message->id};
    if (convert_find(json, "method", &method)) {
        if (has_id)
            message->kind = BRIDGE_QUESTION;
        else if (is_text(method, "\"run/event\"") && convert_find(json, "params", &message->value))
            message->kind = BRIDGE_EVENT;
        return;
    }
    if (!has_id || !read_number(message->id, &message->number))
        return;
    if (convert_find(json, "error", &value) && !is_text(value, "null"))
        read_error(message, value);
    else if (convert_find(json, "result", &message->value))
        message->kind = BRIDGE_RESULT;
}

/* --- what is published --- */

static void note_problem(int status, const char **problem)
{
    if (status == STDIO_BUS_EINVAL)
        *problem = "the worker's JSON is nested too deep";
}

/* A function that writes a payload; called twice. */
typedef void put_fn(struct msgpack_writer *writer, const void *what);

static char *written(put_fn *put, const void *what, size_t *len)
{
    struct msgpack_writer writer = {.to = NULL};
    char *payload;

    put(&writer, what);
    payload = malloc(writer.len);
    if (payload == NULL)
        return NULL;
    writer = (struct msgpack_writer){.to = payload, .size = writer.len};
    put(&writer, what);
    *len = writer.len;
    return payload;
}

static void put_completed(struct msgpack_writer *writer, const void *what)
{
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, "Completed");
    msgpack_put_raw(writer, *(const struct slice *)what);
}

char *bridge_completed(struct slice result, size_t *len, const char **problem)
{
    char *value, *payload;
    struct slice raw;
    int status = convert_to_msgpack(result, &value, &raw.len);

    note_problem(status, problem);
    if (status != STDIO_BUS_OK)
        return NULL;
    raw.data = value;
    payload = written(put_completed, &raw, len);
    free(value);
    return payload;
}

struct failed {
    bool retryable;
    struct slice reason;
};

static void put_failed(struct msgpack_writer *writer, const void *what)
{
    const struct failed *failed = what;

    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, "Failed");
    msgpack_put_map(writer, 2);
    msgpack_put_text(writer, "retryable");
    msgpack_put_bool(writer, failed->retryable);
    msgpack_put_text(writer, "reason");
    msgpack_put_str(writer, failed->reason);
}

char *bridge_failed(bool retryable, struct slice reason, size_t *len)
{
    const struct failed failed = {retryable, reason};

    return written(put_failed, &failed, len);
}

struct accepted {
    struct rmp_id request_id;
    struct slice opening_id, opening_name;
};

static void put_accepted(struct msgpack_writer *writer, const void *what)
{
    const struct accepted *accepted = what;

    rmp_control_put_accepted(writer, accepted->request_id, accepted->opening_id,
                             accepted->opening_name);
}

/* The members of a runner's result. Those that are missing stay as they are. */
static bool read_accepted(struct accepted *accepted, struct slice map)
{
    struct msgpack_value value;
    struct rmp_id id;
    struct slice raw;

    if (msgpack_find(map, "opening_id", &value, &raw)) {
        if (value.type != MSGPACK_STR && !rmp_id_of_value(&value, &id))
            return false;
        accepted->opening_id = raw;
    }
    if (msgpack_find(map, "opening_name", &value, &raw)) {
        if (value.type != MSGPACK_STR)
            return false;
        accepted->opening_name = raw;
    }
    return accepted->opening_id.len + accepted->opening_name.len <= OPENING_MAX_BYTES;
}

char *bridge_accepted(struct rmp_id request_id, struct slice result, size_t *len,
                      const char **problem)
{
    static const char empty[] = "\xa0";
    char own_id[RMP_ID_LEN + 2], *value, *payload = NULL;
    struct msgpack_writer writer = {.to = own_id, .size = sizeof own_id};
    struct accepted accepted = {.request_id = request_id, .opening_name = {empty, 1}};
    size_t value_len;
    int status = convert_to_msgpack(result, &value, &value_len);

    note_problem(status, problem);
    if (status != STDIO_BUS_OK)
        return NULL;
    rmp_put_id(&writer, request_id);
    accepted.opening_id = slice_of(own_id, sizeof own_id);
    if (read_accepted(&accepted, slice_of(value, value_len)))
        payload = written(put_accepted, &accepted, len);
    else
        *problem = "the runner's opening_id or opening_name is not usable";
    free(value);
    return payload;
}

char *bridge_text(struct slice json, size_t *len)
{
    struct msgpack_value value;
    struct slice rest;
    char *raw, *text;
    size_t raw_len;

    if (convert_to_msgpack(json, &raw, &raw_len) != STDIO_BUS_OK)
        return NULL;
    rest = slice_of(raw, raw_len);
    if (!msgpack_read(&rest, &value) || value.type != MSGPACK_STR)
        value.bytes = slice_of("", 0);
    text = malloc(value.bytes.len + 1);
    if (text != NULL) {
        *len = value.bytes.len;
        memcpy(text, value.bytes.data, *len);
        text[*len] = '\0';
    }
    free(raw);
    return text;
}

const char *bridge_events_topic(char to[BRIDGE_EVENTS_MAX], struct rmp_id run)
{
    char uuid[RMP_UUID_LEN + 1];

    snprintf(to, BRIDGE_EVENTS_MAX, "rlp/runs/trace:%s/events", rmp_uuid_write(uuid, run));
    return to;
}

/* Takes the text off the beginning, if it is there. */
static bool take_text(struct slice *text, const char *beginning)
{
    size_t len = strlen(beginning);

    if (text->len < len || memcmp(text->data, beginning, len) != 0)
        return false;
    *text = slice_of(text->data + len, text->len - len);
    return true;
}

/* Topics are compared byte by byte: the UUID must be as the daemon writes it. */
bool bridge_run_of_topic(struct slice topic, struct rmp_id *run)
{
    static const char start[] = "rlp/runs/", prefix[] = "trace:", end[] = "/events";
    char uuid[RMP_UUID_LEN + 1];
    struct slice rest = topic;

    if (!take_text(&rest, start))
        return false;
    (void)take_text(&rest, prefix);
    if (rest.len != RMP_UUID_LEN + sizeof end - 1 ||
        memcmp(rest.data + RMP_UUID_LEN, end, sizeof end - 1) != 0)
        return false;
    rest.len = RMP_UUID_LEN;
    return rmp_uuid_read(rest, run) &&
           memcmp(rmp_uuid_write(uuid, *run), rest.data, RMP_UUID_LEN) == 0;
}
