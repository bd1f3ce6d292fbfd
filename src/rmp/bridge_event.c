#include "build_config.h"

#include <stdlib.h>

#include "base/error.h"
#include "rmp/bridge.h"
#include "rmp/control.h"
#include "rmp/convert.h"

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
