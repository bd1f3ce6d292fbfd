#include "build_config.h"

#include "format/scanner_internal.h"

#include <string.h>

#include "format/json_string.h"

static enum key key_named(struct scanner *s, const char *name, size_t len)
{
    switch (len) {
    case 2:
        return memcmp(name, "id", 2) == 0 ? KEY_ID : KEY_OTHER;
    case 4:
        return memcmp(name, "pool", 4) == 0 ? KEY_POOL : KEY_OTHER;
    case 5:
        s->fields.has_error |= memcmp(name, "error", 5) == 0;
        return KEY_OTHER;
    case 6:
        s->fields.has_result |= memcmp(name, "result", 6) == 0;
        return memcmp(name, "method", 6) == 0 ? KEY_METHOD : KEY_OTHER;
    case 9:
        return memcmp(name, "sessionId", 9) == 0 ? KEY_SESSION_ID : KEY_OTHER;
    default:
        return KEY_OTHER;
    }
}

void scanner_note_key(struct scanner *s, const struct input *in, position p)
{
    const char *name = (const char *)in->start + s->token_start;
    size_t len = (size_t)(p - in->start) - s->token_start;
    char decoded[sizeof "sessionId"];

    if (s->token_escaped) {
        len = json_string_decode(decoded, sizeof decoded, slice_of(name, len));
        name = decoded;
    }
    s->key = (unsigned char)key_named(s, name, len);
}

void scanner_note_value(struct scanner *s, const struct input *in, position p, enum scan_type type)
{
    struct scan_field *field = s->key == KEY_ID           ? &s->fields.id
                               : s->key == KEY_SESSION_ID ? &s->fields.session_id
                               : s->key == KEY_METHOD     ? &s->fields.method
                                                          : &s->fields.pool;

    field->offset = s->token_start;
    field->len = (size_t)(p - in->start) - s->token_start;
    field->type = type;
    field->escaped = s->token_escaped;
}
