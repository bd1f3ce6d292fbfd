/* stdio_bus --import: the configuration of an MCP client becomes one of the daemon. */
#ifndef STDIO_BUS_CLI_IMPORT_H
#define STDIO_BUS_CLI_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "config/command.h"
#include "config/command_line.h"
#include "json/document.h"
#include "json/string.h"

struct import {
    char *config;   /* the configuration of the daemon */
    char *notes;    /* for the user: what was left out, and what to write into the client */
    size_t servers; /* the pools of the configuration */
};

/* Reads the servers of client_servers_each. The notes are in the notation of the file, JSON or
 * TOML. STDIO_BUS_EINVAL: there is no object of servers; STDIO_BUS_ERR: out of memory. import_free
 * in any case. */
int import_read(struct import *import, const struct json_value *root, bool is_toml);

void import_free(struct import *import);

/* --- The file of an MCP client, for stdio_bus --import. --- */

/* import_read from a file: TOML if its name ends in ".toml", else JSON, which may have comments and
 * commas before closing brackets.
 * STDIO_BUS_EINVAL after an error was printed to stderr; one is that there is no server for the
 * daemon, and then there are notes. */
int import_file(struct import *import, const char *path);

/* --- The program of a server that is imported, as one finds it that no shell starts. --- */

struct import_program {
    char command[COMMAND_FILE_MAX];   /* as it is to be written */
    bool is_moved;                    /* that is the path of what was a name */
    char directory[COMMAND_FILE_MAX]; /* of the interpreter that its script needs and that the
                                       * PATH of services lacks; "": none */
};

/* What stdio_bus --import writes: a configuration, and notes for the user; with the variables and
 * placeholders of clients in their texts. */

/* What is written; once more with more room if one of them is full. */
struct import_writer {
    struct json_output config, notes, scratch;
    size_t servers, fields; /* the second: of the server being read */
    bool is_toml;           /* the client's file */
    const char *name;       /* of the server being read */
    const char *project;    /* its directory; "": it is of none */
    char pool[POOL_ID_MAX * 2];
};

enum import_use {
    USE_VALUE,   /* a variable becomes its value */
    USE_PATH,    /* the same, and ~/ at the beginning is the home directory */
    USE_VARIABLE /* a variable becomes ${NAME}, for the daemon to replace */
};

/* Adds the text as a string of JSON. */

/* Begins a note about the server: the name, and the text. */

/* Translates the text into writer->scratch. Returns false if it names something that is not known
 * here; that stays as it is. */
bool import_translate(struct import_writer *writer, struct slice text, enum import_use use);

/* What to do about a placeholder that the client fills in; NULL: the text, which ends with a NUL,
 * has none. */
const char *import_remedy(struct slice text);

#endif
