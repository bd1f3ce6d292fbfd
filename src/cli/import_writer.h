/* What stdio_bus --import writes: a configuration, and notes for the user; with the variables and
 * placeholders of clients in their texts. */
#ifndef STDIO_BUS_CLI_IMPORT_WRITER_H
#define STDIO_BUS_CLI_IMPORT_WRITER_H

#include <stdbool.h>

#include "base/slice.h"
#include "config/pool_name.h"
#include "json/string.h"

/* What is written; once more with more room if one of them is full. */
struct import_writer {
    struct json_output config, notes, scratch;
    size_t servers;
    bool is_toml;        /* the client's file */
    const char *name;    /* of the server being read */
    const char *project; /* its directory; "": it is of none */
    char pool[POOL_ID_MAX * 2];
};

enum import_use {
    USE_VALUE,   /* a variable becomes its value */
    USE_PATH,    /* the same, and ~/ at the beginning is the home directory */
    USE_VARIABLE /* a variable becomes ${NAME}, for the daemon to replace */
};

void import_add(struct json_output *out, const char *text);

/* Adds the text as a string of JSON. */
void import_add_string(struct json_output *out, const char *text);

/* Begins a note about the server: the name, and the text. */
void import_note(struct import_writer *writer, const char *text);

/* Translates the text into writer->scratch. Returns false if it names something that is not known
 * here; that stays as it is. */
bool import_translate(struct import_writer *writer, struct slice text, enum import_use use);

/* What to do about a placeholder that the client fills in; NULL: the text, which ends with a NUL,
 * has none. */
const char *import_remedy(struct slice text);

/* Notes that the text, which ends with a NUL, names something that is not known here; what becomes
 * of it; and what to do about it. */
void import_note_placeholder(struct import_writer *writer, const char *key, struct slice text,
                             const char *effect);

#endif
