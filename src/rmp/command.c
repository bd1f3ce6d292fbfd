#include "build_config.h"

#include "rmp/command.h"

#include <stddef.h>

#include "json/number.h"
#include "json/reader.h"
#include "json/string.h"

struct parse {
    struct json_reader json;
    struct rmp_command *command;
    char *work; /* the body from RMP_BODY_OFFSET on; the decoded topic at its end */
    char *work_end;
};

/* --- values --- */

/* 10 times the id, and a digit. False: that is over 128 bits. */
static bool append_digit(struct rmp_id *id, unsigned digit)
{
    uint64_t low = (id->low & UINT32_MAX) * 10 + digit;
    uint64_t middle = (id->low >> 32) * 10 + (low >> 32);

    if (id->high > UINT64_MAX / 10 || id->high * 10 > UINT64_MAX - (middle >> 32))
        return false;
    id->high = id->high * 10 + (middle >> 32);
    id->low = middle << 32 | (low & UINT32_MAX);
    return true;
}

/* Takes a bare integer that is not negative. */
static bool take_integer(struct parse *parse, struct rmp_id *value)
{
    struct json_reader *json = &parse->json;
    bool is_zero = json_peek(json) == '0';
    const char *start = json->p;

    *value = (struct rmp_id){0, 0};
    for (; json->p < json->end && is_digit(*json->p); json->p++) {
        if (!append_digit(value, (unsigned)(*json->p - '0')))
            return false;
    }
    if (json->p == start || (is_zero && json->p > start + 1))
        return false;
    return json->p == json->end || (*json->p != '.' && (*json->p | 0x20) != 'e');
}

/* --- objects --- */

typedef bool read_fn(struct parse *parse);

/* What is read by no function is a number. */
struct field {
    struct slice name;
    read_fn *read;
    size_t offset, size; /* where in the command; size 0: it is not kept, and is always: */
    uint64_t constant;
};

#define NAME(text) .name = {(text), sizeof(text) - 1}
#define FIELD(text, function)                                                                      \
    {                                                                                              \
        NAME(text), .read = (function)                                                             \
    }
#define CONSTANT(text, value)                                                                      \
    {                                                                                              \
        NAME(text), .constant = (value)                                                            \
    }
#define NUMBER(text, member)                                                                       \
    {                                                                                              \
        NAME(text), .offset = offsetof(struct rmp_command, member),                                \
                    .size = sizeof(((struct rmp_command *)NULL)->member)                           \
    }

#define COUNT(array) (unsigned)(sizeof(array) / sizeof(array)[0])

/* Takes a key and its colon. *field is its index; `count` if it is none of the fields. The search
 * begins at *field. */
static bool take_key(struct parse *parse, const struct field *fields, unsigned count,
                     unsigned *field)
{
    char room[32] UNINITIALIZED; /* more than any name has */
    struct slice key;
    bool escaped;
    unsigned i = *field % count;

    if (!json_take_string(&parse->json, &key, &escaped) || !json_take(&parse->json, ':'))
        return false;
    if (escaped)
        key = slice_of(room, json_string_decode(room, sizeof room, key));
    *field = count;
    for (unsigned looked = 0; looked < count && *field == count; looked++) {
        if (key.len <= sizeof room && slice_equal(key, fields[i].name))
            *field = i;
        i = i + 1 < count ? i + 1 : 0;
    }
    return true;
}

static bool take_number_field(struct parse *parse, const struct field *field)
{
    void *to = (char *)parse->command + field->offset;
    struct rmp_id value;

    if (!take_integer(parse, &value))
        return false;
    switch (field->size) {
    case sizeof(struct rmp_id):
        *(struct rmp_id *)to = value;
        return true;
    case sizeof(uint64_t):
        *(uint64_t *)to = value.low;
        return value.high == 0;
    case sizeof(uint32_t):
        *(uint32_t *)to = (uint32_t)value.low;
        return value.high == 0 && value.low <= UINT32_MAX;
    case sizeof(uint16_t):
        *(uint16_t *)to = (uint16_t)value.low;
        return value.high == 0 && value.low <= UINT16_MAX;
    default:
        return value.high == 0 && value.low == field->constant;
    }
}

static bool take_field(struct parse *parse, const struct field *field)
{
    return field->read != NULL ? field->read(parse) : take_number_field(parse, field);
}

/* Takes an object that has each of the first `needed` fields once, in any order, and the others at
 * most once. Unknown ones are ignored. */
static bool take_fields(struct parse *parse, const struct field *fields, unsigned count,
                        unsigned needed)
{
    unsigned seen = 0, next = 0, field;

    if (!json_take(&parse->json, '{') || json_peek(&parse->json) == '}')
        return false;
    do {
        field = next;
        if (!take_key(parse, fields, count, &field))
            return false;
        if (field == count) {
            if (!json_skip_value(&parse->json))
                return false;
            continue;
        }
        if ((seen & 1u << field) != 0 || !take_field(parse, &fields[field]))
            return false;
        seen |= 1u << field;
        next = field + 1;
    } while (json_take(&parse->json, ','));
    return json_take(&parse->json, '}') && (~seen & ((1u << needed) - 1)) == 0;
}

static bool take_object(struct parse *parse, const struct field *fields, unsigned count)
{
    return take_fields(parse, fields, count, count);
}

/* --- the header --- */

static bool read_header(struct parse *parse)
{
    static const struct field fields[] = {
        CONSTANT("header_version", 0),
        CONSTANT("header_len", RMP_HEADER_LEN),
        CONSTANT("flags", 0),
        NUMBER("schema_id", header.schema_id),
        NUMBER("body_len", header.body_len),
        NUMBER("created_at_ms", header.created_at_ms),
        NUMBER("ttl_ms", header.ttl_ms),
        NUMBER("trace_id", header.trace_id),
        NUMBER("msg_id", header.msg_id),
    };

    return take_object(parse, fields, COUNT(fields));
}

/* --- the body --- */

static const char *skip_blank(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* Reads a number from 0 to 255. Returns its end, or NULL. */
static const char *read_byte(const char *p, const char *end, char *byte)
{
    const char *start = p, *limit = end - p > 4 ? p + 4 : end;
    unsigned value = 0;

    while (p < limit && is_digit(*p))
        value = value * 10 + (unsigned)(*p++ - '0');
    if (p == start || value > 255 || (*start == '0' && p > start + 1))
        return NULL;
    *byte = (char)value;
    return p;
}

/* An array of bytes. What follows an element, a comma or a bracket, rules out fractions and
 * exponents. */
static bool read_body(struct parse *parse)
{
    struct json_reader *json = &parse->json;
    char *start = parse->work + RMP_BODY_OFFSET, *to = start;
    const char *p, *end = json->end;

    if (!json_take(json, '['))
        return false;
    p = json->p - 1;
    if (json_peek(json) != ']') {
        do {
            p = read_byte(skip_blank(p + 1, end), end, to++);
            if (p == NULL)
                return false;
            p = skip_blank(p, end);
        } while (p < end && *p == ',');
        json->p = p;
    }
    parse->command->body = slice_of(start, (size_t)(to - start));
    return json_take(json, ']');
}

static bool read_message(struct parse *parse)
{
    static const struct field fields[] = {FIELD("header", read_header), FIELD("body", read_body)};

    return take_object(parse, fields, COUNT(fields));
}

/* --- commands --- */

/* A decoded topic has at most the bytes of its text, and a body at most half of them: neither
 * reaches the other's part of the work area. */
static bool read_topic(struct parse *parse)
{
    struct slice *topic = &parse->command->topic;
    char *room;
    bool escaped;

    if (!json_take_string(&parse->json, topic, &escaped))
        return false;
    if (escaped) {
        room = parse->work_end - topic->len;
        *topic = slice_of(room, json_string_decode(room, topic->len, *topic));
    }
    return true;
}

static bool read_kind(struct parse *parse)
{
    char room[32];
    struct slice name;

    return json_take_text(&parse->json, &name, room, sizeof room) &&
           rmp_kind_read(name, &parse->command->kind);
}

static bool read_hello(struct parse *parse)
{
    static const struct field fields[] = {FIELD("kind", read_kind)};

    parse->command->type = RMP_HELLO;
    return take_object(parse, fields, COUNT(fields));
}

static bool read_publish(struct parse *parse)
{
    static const struct field fields[] = {NUMBER("id", id), FIELD("topic", read_topic),
                                          FIELD("message", read_message)};

    parse->command->type = RMP_PUBLISH;
    return take_object(parse, fields, COUNT(fields));
}

static bool read_replay(struct parse *parse)
{
    char first = json_peek(&parse->json);

    parse->command->replay = first == 't';
    return (first == 't' || first == 'f') && json_skip_value(&parse->json);
}

static bool read_subscribe(struct parse *parse)
{
    static const struct field fields[] = {NUMBER("id", id), FIELD("topic", read_topic),
                                          NUMBER("sub_id", sub_id), FIELD("replay", read_replay)};

    parse->command->type = RMP_SUBSCRIBE;
    return take_fields(parse, fields, COUNT(fields), COUNT(fields) - 1);
}

static bool read_unsubscribe(struct parse *parse)
{
    static const struct field fields[] = {NUMBER("sub_id", sub_id)};

    parse->command->type = RMP_UNSUBSCRIBE;
    return take_object(parse, fields, COUNT(fields));
}

bool rmp_command_read(struct rmp_command *command, struct slice json, char *work)
{
    static const struct field commands[] = {
        FIELD("Publish", read_publish),
        FIELD("Subscribe", read_subscribe),
        FIELD("Unsubscribe", read_unsubscribe),
        FIELD("Hello", read_hello),
    };
    struct parse parse = {.json = {json.data, json.data + json.len},
                          .command = command,
                          .work = work,
                          .work_end = work + RMP_COMMAND_WORK(json.len)};
    unsigned which = 0;

    *command = (struct rmp_command){.type = RMP_HELLO};
    if (!json_take(&parse.json, '{') || !take_key(&parse, commands, COUNT(commands), &which) ||
        which == COUNT(commands) || !commands[which].read(&parse))
        return false;
    return json_take(&parse.json, '}') && json_peek(&parse.json) == '\0' &&
           parse.json.p == parse.json.end;
}
