#include "build_config.h"

#include "cli/rmp_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/terminal.h"
#include "rmp/convert.h"
#include "rmp/frame.h"
#include "rmp/msgpack.h"
#include "rmp/schemas.h"
#include "json/text.h"

#define TYPE_SHOWN 512 /* bytes of a type in a line */

static const struct rmp_schemas public_schemas;

static const char *schema_name(uint16_t id)
{
    const struct rmp_schema *schema = rmp_schemas_find(&public_schemas, id);

    return schema != NULL ? schema->type : "unknown";
}

/* frame_len as it was transmitted. */
static uint32_t frame_len(const struct rmp_received *frame)
{
    return wire_get_u32(frame->wire.data);
}

static void print_text(struct json_text *text)
{
    if (text->failed)
        terminal_line(stderr, "stdio_bus_rmp: out of memory");
    else
        terminal_lines(stdout, TERMINAL_JSON, json_text_slice(text));
    json_text_free(text);
}

/* MsgPack as JSON; base64 in quotes where that is impossible. */
static void add_value(struct json_text *text, struct slice value)
{
    size_t before = text->len;

    if (convert_to_json(text, value))
        return;
    text->len = before;
    json_text_literal(text, "\"");
    convert_add_base64(text, value);
    json_text_literal(text, "\"");
}

/* --- JSON --- */

/* A reader of JSON may take numbers over 2^53 for others. */
static void add_number(struct json_text *text, const char *name, uint64_t number)
{
    const char *quote = number < (uint64_t)1 << 53 ? "" : "\"";

    json_text_format(text, "\"%s\":%s%" PRIu64 "%s,", name, quote, number, quote);
}

static void add_header(struct json_text *text, const struct rmp_header *header)
{
    char uuid[RMP_UUID_LEN + 1];

    json_text_literal(text, "\"header\":{");
    add_number(text, "schema_id", header->schema_id);
    add_number(text, "body_len", header->body_len);
    add_number(text, "created_at_ms", header->created_at_ms);
    add_number(text, "ttl_ms", header->ttl_ms);
    add_number(text, "msg_id", header->msg_id);
    json_text_format(text, "\"trace_id\":\"%s\"}", rmp_uuid_write(uuid, header->trace_id));
}

static void add_body(struct json_text *text, const struct rmp_received *frame)
{
    const struct rmp_envelope *envelope = &frame->envelope;

    json_text_literal(text, ",\"body\":");
    if (!frame->has_envelope) {
        size_t offset = frame->wire.len < RMP_BODY_OFFSET ? frame->wire.len : RMP_BODY_OFFSET;

        json_text_literal(text, "\"");
        convert_add_base64(text, slice_of(frame->wire.data + offset, frame->wire.len - offset));
        json_text_literal(text, "\"");
        return;
    }
    json_text_literal(text, "{\"type\":");
    json_text_string(text, envelope->type);
    json_text_literal(text, ",\"payload\":");
    add_value(text, envelope->payload);
    if (envelope->meta.len > 0) {
        json_text_literal(text, ",\"meta\":");
        add_value(text, envelope->meta);
    }
    json_text_literal(text, "}");
}

void rmp_show_json(const char *topic, const struct rmp_received *frame, enum rmp_error judged)
{
    struct json_text text = {.data = NULL};

    json_text_literal(&text, "{");
    if (topic != NULL) {
        json_text_literal(&text, "\"topic\":");
        json_text_string(&text, slice_of_text(topic));
        json_text_literal(&text, ",");
    }
    if (judged != RMP_OK)
        json_text_format(&text, "\"error\":\"%s\",", rmp_error_name(judged));
    json_text_format(&text, "\"frame_len\":%" PRIu32 ",", frame_len(frame));
    add_header(&text, &frame->header);
    add_body(&text, frame);
    json_text_literal(&text, "}\n");
    print_text(&text);
}

/* --- text --- */

void rmp_show_line(const char *topic, const struct rmp_received *frame)
{
    struct json_text text = {.data = NULL};
    char type[TYPE_SHOWN];

    json_text_literal(&text, topic);
    json_text_literal(&text, " ");
    if (frame->has_envelope) {
        json_text_literal(&text, terminal_text(type, sizeof type, frame->envelope.type));
        json_text_literal(&text, " ");
        add_value(&text, frame->envelope.payload);
    } else {
        json_text_literal(&text, schema_name(frame->header.schema_id));
        json_text_format(&text, " (%" PRIu32 " bytes that are no envelope)",
                         frame->header.body_len);
    }
    json_text_literal(&text, "\n");
    print_text(&text);
}

static const char *date(char *to, size_t size, uint64_t epoch_ms)
{
    time_t seconds = (time_t)(epoch_ms / 1000);
    struct tm parts;

    if (epoch_ms > (uint64_t)INT32_MAX * 1000 || gmtime_r(&seconds, &parts) == NULL ||
        strftime(to, size, "%Y-%m-%dT%H:%M:%S", &parts) == 0)
        snprintf(to, size, "?");
    return to;
}

static void show_value(const char *name, struct slice value)
{
    struct json_text text = {.data = NULL};

    json_text_format(&text, "%-14s ", name);
    add_value(&text, value);
    json_text_literal(&text, "\n");
    print_text(&text);
}

void rmp_show_table(const struct rmp_received *frame, enum rmp_error judged)
{
    const struct rmp_header *header = &frame->header;
    char uuid[RMP_UUID_LEN + 1], at[32];

    terminal_line(stdout, "frame_len      %" PRIu32, frame_len(frame));
    terminal_line(stdout, "schema_id      %u (%s)", (unsigned)header->schema_id,
                  schema_name(header->schema_id));
    terminal_line(stdout, "body_len       %" PRIu32, header->body_len);
    terminal_line(stdout, "created_at_ms  %" PRIu64 " (%s.%03uZ)", header->created_at_ms,
                  date(at, sizeof at, header->created_at_ms),
                  (unsigned)(header->created_at_ms % 1000));
    terminal_line(stdout, "ttl_ms         %" PRIu64, header->ttl_ms);
    terminal_line(stdout, "trace_id       %s", rmp_uuid_write(uuid, header->trace_id));
    terminal_line(stdout, "msg_id         %" PRIu64, header->msg_id);
    if (frame->has_envelope) {
        terminal_line(stdout, "type           %.*s", (int)frame->envelope.type.len,
                      frame->envelope.type.data);
        show_value("payload", frame->envelope.payload);
        if (frame->envelope.meta.len > 0)
            show_value("meta", frame->envelope.meta);
    }
    if (judged != RMP_OK)
        terminal_line(stdout, "error          %s: %s", rmp_error_name(judged),
                      rmp_error_text(judged));
}

void rmp_show_hop(unsigned long long number, uint64_t first_ms, const char *topic,
                  const struct rmp_received *frame)
{
    uint64_t at_ms = frame->header.created_at_ms;

    terminal_line(stdout,
                  "%3llu %+8" PRId64 " ms  %-40s %s  msg_id=%" PRIu64 "  frame_len=%" PRIu32,
                  number, (int64_t)at_ms - (int64_t)first_ms, topic,
                  schema_name(frame->header.schema_id), frame->header.msg_id, frame_len(frame));
}

char *rmp_show_member(struct slice map, const char *key)
{
    struct json_text text = {.data = NULL};
    struct msgpack_value value;
    struct slice raw;

    if (msgpack_find(map, key, &value, &raw)) {
        if (value.type == MSGPACK_STR)
            json_text_add(&text, value.bytes);
        else if (value.type == MSGPACK_BIN && value.bytes.len == RMP_ID_LEN) {
            char uuid[RMP_UUID_LEN + 1];

            json_text_literal(&text, rmp_uuid_write(uuid, rmp_id_read(value.bytes.data)));
        } else {
            add_value(&text, raw);
        }
    }
    json_text_add(&text, slice_of("", 1));
    return text.data;
}
