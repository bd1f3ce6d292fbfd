/* A configuration without a file: one pool, described by the command line of stdio_bus(1). */
#ifndef STDIO_BUS_CONFIG_COMMAND_LINE_H
#define STDIO_BUS_CONFIG_COMMAND_LINE_H

#include <stdbool.h>

#include "json/document.h"

struct command_line {
    char *const *words;    /* the command and its arguments, up to a NULL; at least one */
    const char *protocol;  /* the keys of the pool, as written; NULL: left out, */
    const char *clients;   /* or set to suit the others */
    const char *instances; /* a number in decimal digits */
    const char *framing;   /* of its workers */
    bool one_client;       /* on stdin and stdout: it gets all messages of the process */
};

/* The document that the configuration file of this pool would be. Its values have the line 0; its
 * strings are those of the command line. The pool's id is its pool_name. One piece of
 * memory, to be freed with free; NULL when out of memory. */
struct json_value *command_line_document(const struct command_line *line);

#endif
