/* An object of JSON that is written member by member. */
#ifndef STDIO_BUS_JSON_ROW_H
#define STDIO_BUS_JSON_ROW_H

#include <stdint.h>

#include "json/text.h"

/* Each adds one member to the object or, where the key is NULL, one element to the array that was
 * begun last; its comma comes by itself. A string that is NULL is null. */
void row_string(struct json_text *text, const char *key, const char *string);
void row_slice(struct json_text *text, const char *key, struct slice string);
void row_number(struct json_text *text, const char *key, int64_t number);
void row_boolean(struct json_text *text, const char *key, bool boolean);

/* Begin and end an object or an array within the one that was begun last. */
void row_begin(struct json_text *text, const char *key, char bracket);
void row_end(struct json_text *text, char bracket);

#endif
