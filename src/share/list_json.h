/* stdio_bus --list --json. */
#ifndef STDIO_BUS_SHARE_LIST_JSON_H
#define STDIO_BUS_SHARE_LIST_JSON_H

#include "share/shares.h"
#include "json/text.h"

/* Adds one object, on one line; stdio_bus(1) has its members. `directory` is that of the daemons.
 * If out of memory, text->failed. */
void list_json_write(struct json_text *text, const struct shares *shares, const struct usage *usage,
                     const char *directory);

#endif
