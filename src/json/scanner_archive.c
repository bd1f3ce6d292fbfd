#include "build_config.h"

#include "json/scanner_archive.h"

#include "json/scanner_quick.h"

static void archive_field(struct archive *archive, struct scan_field *field)
{
    ARCHIVE_INTEGER(archive, field->offset);
    ARCHIVE_INTEGER(archive, field->len);
    ARCHIVE_ENUM(archive, field->type, SCAN_OTHER);
    archive_flag(archive, &field->escaped);
}

static void archive_routing(struct archive *archive, struct scan_fields *fields)
{
    archive_field(archive, &fields->id);
    archive_field(archive, &fields->session_id);
    archive_field(archive, &fields->method);
    archive_field(archive, &fields->pool);
    archive_flag(archive, &fields->has_result);
    archive_flag(archive, &fields->has_error);
    ARCHIVE_INTEGER(archive, fields->oddities);
}

void scanner_archive(struct archive *archive, struct scanner *scanner)
{
    archive_mark(archive, "scanner");
    ARCHIVE_INTEGER(archive, scanner->position);
    archive_routing(archive, &scanner->fields);
    ARCHIVE_ENUM(archive, scanner->error, SCAN_ERROR_DEPTH);
    ARCHIVE_ENUM(archive, scanner->state, FAILED);
    ARCHIVE_ENUM(archive, scanner->key, KEY_POOL);
    ARCHIVE_INTEGER(archive, scanner->partial);
    ARCHIVE_ENUM(archive, scanner->literal, 2);
    ARCHIVE_INTEGER(archive, scanner->utf8_low);
    ARCHIVE_INTEGER(archive, scanner->utf8_high);
    archive_flag(archive, &scanner->in_key);
    archive_flag(archive, &scanner->token_escaped);
    ARCHIVE_ENUM(archive, scanner->form, SCAN_SIZED);
    archive_flag(archive, &scanner->splits_arrays);
    ARCHIVE_ENUM(archive, scanner->depth, STDIO_BUS_MAX_DEPTH);
    ARCHIVE_INTEGER(archive, scanner->token_start);
    ARCHIVE_INTEGER(archive, scanner->levels);
    archive_bytes(archive, scanner->outer_levels, sizeof scanner->outer_levels);
}
