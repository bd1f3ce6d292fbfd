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
        message->retryable = slice_is(value, "true");
}

void bridge_read(struct bridge_message *message, struct slice json)
{
    struct slice method, value;
    bool has_id = convert_find(json, "id", &message->id) && !slice_is(message->id, "null");

    *message = (struct bridge_message){.kind = BRIDGE_OTHER, .id = message->id};
    if (convert_find(json, "method", &method)) {
        if (has_id)
            message->kind = BRIDGE_QUESTION;
        else if (slice_is(method, "\"run/event\"") && convert_find(json, "params", &message->value))
            message->kind = BRIDGE_EVENT;
        return;
    }
    if (!has_id || !read_number(message->id, &message->number))
        return;
    if (convert_find(json, "error", &value) && !slice_is(value, "null"))
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

/* --- events of runs --- */

/* MsgPack; those that are missing are empty. */
struct event {
    struct slice kind, level, message;
    struct slice pairs; /* of meta, without its head */
    uint32_t pair_count;
    bool has_time, has_run; /* among the pairs */
    struct rmp_id run;
    uint64_t now_ms;
};

static const char *const kinds[] = {"log", "status", "plan", "trace", "artifact", "progress", NULL};
static const char *const levels[] = {"info", "warn", "error", NULL};

static bool is_one_of(const struct msgpack_value *value, const char *const *names)
{
    while (*names != NULL && !msgpack_is(value, *names))
        names++;
    return *names != NULL;
}

static bool find_text(struct slice map, const char *key, struct slice *raw)
{
    struct msgpack_value value;

    return msgpack_find(map, key, &value, raw) && value.type == MSGPACK_STR;
}

/* An id, or its text: "<uuid>" or "trace:<uuid>". */
static bool read_run(struct slice map, struct rmp_id *run)
{
    static const char prefix[] = "trace:";
    struct msgpack_value value;

    if (!msgpack_find(map, "trace_id", &value, NULL))
        return false;
    if (rmp_id_of_value(&value, run))
        return true;
    return value.type == MSGPACK_STR && value.bytes.len > sizeof prefix - 1 &&
           memcmp(value.bytes.data, prefix, sizeof prefix - 1) == 0 &&
           rmp_uuid_read(slice_of(value.bytes.data + sizeof prefix - 1,
                                  value.bytes.len - (sizeof prefix - 1)),
                         run);
}

static bool read_meta(struct event *event, struct slice map)
{
    struct msgpack_value head;
    struct slice meta;

    if (!msgpack_find(map, "meta", &head, &meta) || head.type == MSGPACK_NIL)
        return true;
    if (head.type != MSGPACK_MAP)
        return false;
    event->has_time = msgpack_find(meta, "ts_ms", &head, NULL);
    event->has_run = msgpack_find(meta, "run_id", &head, NULL);
    event->pairs = meta;
    (void)msgpack_read(&event->pairs, &head);
    event->pair_count = head.count;
    return true;
}

static const char *read_event(struct event *event, struct slice map)
{
    struct msgpack_value value;

    if (!read_run(map, &event->run))
        return "run/event has no trace_id";
    if (!msgpack_find(map, "kind", &value, &event->kind) || !is_one_of(&value, kinds))
        return "the kind of run/event is none of log, status, plan, trace, artifact, progress";
    if (!find_text(map, "message", &event->message))
        return "run/event has no message";
    if (msgpack_find(map, "level", &value, &event->level) && value.type == MSGPACK_NIL)
        event->level.len = 0;
    else if (event->level.len > 0 && !is_one_of(&value, levels))
        return "the level of run/event is none of info, warn, error";
    return read_meta(event, map) ? NULL : "the meta of run/event is no object";
}

static void put_member(struct msgpack_writer *writer, const char *key, struct slice raw)
{
    if (raw.len == 0)
        return;
    msgpack_put_text(writer, key);
    msgpack_put_raw(writer, raw);
}

static void put_event(struct msgpack_writer *writer, const struct event *event)
{
    msgpack_put_map(writer, event->level.len > 0 ? 4 : 3);
    put_member(writer, "kind", event->kind);
    put_member(writer, "level", event->level);
    put_member(writer, "message", event->message);
    msgpack_put_text(writer, "meta");
    msgpack_put_map(writer, event->pair_count + !event->has_time + !event->has_run);
    if (!event->has_time) {
        msgpack_put_text(writer, "ts_ms");
        msgpack_put_uint(writer, event->now_ms);
    }
    if (!event->has_run) {
        msgpack_put_text(writer, "run_id");
        rmp_put_id(writer, event->run);
    }
    msgpack_put_raw(writer, event->pairs);
}

char *bridge_event(struct slice params, uint64_t now_ms, struct rmp_id *run, size_t *len,
                   const char **problem)
{
    struct event event = {.now_ms = now_ms};
    struct msgpack_writer writer = {.to = NULL};
    char *map, *payload = NULL;
    const char *fault;
    size_t map_len;
    int status = convert_to_msgpack(params, &map, &map_len);

    if (status == STDIO_BUS_EINVAL)
        *problem = "run/event is nested too deep";
    if (status != STDIO_BUS_OK)
        return NULL;
    fault = read_event(&event, slice_of(map, map_len));
    if (fault != NULL) {
        *problem = fault;
    } else {
        *run = event.run;
        put_event(&writer, &event);
        payload = malloc(writer.len);
        writer = (struct msgpack_writer){.to = payload, .size = payload != NULL ? writer.len : 0};
        put_event(&writer, &event);
        *len = writer.len;
    }
    free(map);
    return payload;
}
