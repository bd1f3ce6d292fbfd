#include "build_config.h"

#include "json/scanner_cut.h"

#include <string.h>

/* A routing field that is longer than this is too long in any case; so is a part of it. */
#define CUT_TAIL 1024

/* The bytes before `start` will be dropped: moves the id to the front if it is there. Returns its
 * length then, otherwise 0. */
static size_t keep_id(struct scan_field *id, char *message, size_t start)
{
    if (id->type == SCAN_ABSENT)
        return 0;
    if (id->offset >= start) {
        id->offset -= start;
        return 0;
    }
    if (id->len > CUT_TAIL) {
        id->len = CUT_TAIL;
        id->escaped = false;
    }
    memmove(message, message + id->offset, id->len);
    id->offset = 0;
    return id->len;
}

size_t scanner_cut(struct scanner *scanner, char *message, size_t len)
{
    struct scan_fields *fields = &scanner->fields;
    size_t start = len - CUT_TAIL, kept;

    if (len <= SCANNER_KEPT_MAX)
        return len;
    fields->session_id.type = fields->pool.type = SCAN_ABSENT;
    fields->method.offset = fields->method.len = 0;
    kept = keep_id(&fields->id, message, start);
    /* A token that began before is no routing field, or too long for one. */
    if (scanner->token_start < start) {
        scanner->token_start = start;
        scanner->token_escaped = false;
    }
    memmove(message + kept, message + start, CUT_TAIL);
    scanner->token_start -= start - kept;
    scanner->position -= start - kept;
    return kept + CUT_TAIL;
}
