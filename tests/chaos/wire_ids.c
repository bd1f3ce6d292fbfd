#include "build_config.h"

#include "wire.h"

#include <string.h>

#include "json/param_fields.h"
#include "json/scanner.h"

bool wire_ids_rewritten, wire_renumbers, wire_session_in_params, wire_stateless,
    wire_cancels_for_good;

/* A string with its quotes, or a number; empty for any other value. */
static struct wire_hole hole_of(const struct scan_field *field)
{
    size_t quote = field->type == SCAN_STRING ? 1 : 0;
    struct wire_hole hole = {0, 0};

    if (field->type == SCAN_STRING || field->type == SCAN_NUMBER)
        hole = (struct wire_hole){field->offset - quote, field->offset + field->len + quote};
    return hole;
}

/* The message is a question of a worker, or the reply to one. */
static bool is_of_question(const char *line, size_t len)
{
    static const char mark[] = "\"chaos\":\"";
    const char *at = memmem(line, len, mark, sizeof mark - 1);

    return at != NULL && at + sizeof mark <= line + len &&
           (at[sizeof mark - 1] == WIRE_QUESTION || at[sizeof mark - 1] == WIRE_REPLY);
}

static struct wire_hole find_id(const char *line, size_t len)
{
    struct wire_hole hole = {0, 0};
    struct scanner scanner;

    scanner_reset(&scanner);
    if ((wire_ids_rewritten || (wire_renumbers && is_of_question(line, len))) &&
        scanner_run(&scanner, line, len) == SCAN_MESSAGE)
        hole = hole_of(&scanner.fields.id);
    return hole;
}

static struct wire_hole find_token(const char *line, size_t len)
{
    struct wire_hole hole = {0, 0};
    struct param_fields found;

    if (memmem(line, len, "rogressToken", strlen("rogressToken")) == NULL &&
        memmem(line, len, "equestId", strlen("equestId")) == NULL)
        return hole;
    param_fields_find(&found, slice_of(line, len), 0);
    if (param_fields_has(&found, PARAM_META_TOKEN))
        hole = hole_of(&found.at[PARAM_META_TOKEN]);
    else if (param_fields_has(&found, PARAM_PROGRESS_TOKEN))
        hole = hole_of(&found.at[PARAM_PROGRESS_TOKEN]);
    else if (param_fields_has(&found, PARAM_REQUEST_ID))
        hole = hole_of(&found.at[PARAM_REQUEST_ID]);
    return hole;
}

void wire_find_holes(struct wire_hole holes[WIRE_HOLES], const char *line, size_t len)
{
    struct wire_hole id, token;

    memset(holes, 0, WIRE_HOLES * sizeof *holes);
    if (!wire_ids_rewritten && !wire_renumbers)
        return;
    id = find_id(line, len);
    token = wire_ids_rewritten ? find_token(line, len) : (struct wire_hole){0, 0};
    holes[id.start < token.start ? 0 : 1] = id;
    holes[id.start < token.start ? 1 : 0] = token;
}

uint64_t wire_part_hash(const char *line, size_t from, size_t to,
                        const struct wire_hole holes[WIRE_HOLES])
{
    uint64_t hash = 0;

    for (size_t i = 0; i < WIRE_HOLES; i++) {
        if (holes[i].end <= from || holes[i].start >= to)
            continue;
        hash = hash * 31 + wire_hash(line + from, holes[i].start - from);
        from = holes[i].end;
    }
    return hash * 31 + wire_hash(line + from, to - from);
}

uint64_t wire_line_hash(const char *line, size_t len, size_t *counted)
{
    struct wire_hole holes[WIRE_HOLES];

    wire_find_holes(holes, line, len);
    *counted = len;
    for (size_t i = 0; i < WIRE_HOLES; i++)
        *counted -= holes[i].end - holes[i].start;
    return wire_part_hash(line, 0, len, holes);
}

static void copy(char *to, size_t size, const char *line, struct wire_hole hole)
{
    size_t len = hole.end - hole.start;

    if (len >= size)
        len = 0;
    memcpy(to, line + hole.start, len);
    to[len] = '\0';
}

void wire_raw_id(char *to, size_t size, const char *line, size_t len)
{
    copy(to, size, line, find_id(line, len));
}

void wire_token(char to[WIRE_TOKEN_MAX], const char *line, size_t len)
{
    copy(to, WIRE_TOKEN_MAX, line, find_token(line, len));
}
