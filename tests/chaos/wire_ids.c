#include "build_config.h"

#include "wire.h"

#include <string.h>

#include "format/scanner.h"

bool wire_ids_rewritten;

/* Where the id's value is, quotes included; both 0 where it does not matter. */
void wire_find_id(const char *line, size_t len, size_t *start, size_t *end)
{
    const struct scan_field *id;
    struct scanner scanner;
    size_t quote;

    *start = *end = 0;
    if (!wire_ids_rewritten)
        return;
    scanner_reset(&scanner);
    if (scanner_run(&scanner, line, len) != SCAN_MESSAGE)
        return;
    id = &scanner.fields.id;
    if (id->type != SCAN_STRING && id->type != SCAN_NUMBER)
        return;
    quote = id->type == SCAN_STRING ? 1 : 0;
    *start = id->offset - quote;
    *end = id->offset + id->len + quote;
}

uint64_t wire_part_hash(const char *line, size_t from, size_t to, size_t id_start, size_t id_end)
{
    if (id_end <= from || id_start >= to || id_end == 0)
        return wire_hash(line + from, to - from);
    return wire_hash(line + from, id_start - from) * 31 + wire_hash(line + id_end, to - id_end);
}

uint64_t wire_line_hash(const char *line, size_t len, size_t *counted)
{
    size_t start, end;

    wire_find_id(line, len, &start, &end);
    *counted = len - (end - start);
    return wire_part_hash(line, 0, len, start, end);
}

void wire_raw_id(char *to, size_t size, const char *line, size_t len)
{
    size_t start, end;

    wire_find_id(line, len, &start, &end);
    if (end - start >= size)
        end = start;
    memcpy(to, line + start, end - start);
    to[end - start] = '\0';
}
