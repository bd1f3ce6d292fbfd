/* Between the MsgPack of the topic bus and the JSON of stdio workers.
 *
 *     MsgPack                        JSON
 *     nil, bool, str, array, map     null, true or false, string, array, object
 *     integer up to 2^53 - 1 (+ -)   number
 *     any other integer              string of decimal digits
 *     float                          number; null for one that is not finite
 *     bin of 16 bytes in an id       string: a UUID
 *     other bin                      string: base64
 *     ext                            {"ext":TYPE,"data":BASE64}
 *     key of a map that is no str    string: an integer or bool as it is written
 *
 * An id is the value of a key that names one: trace_id, request_id, opening_id, run_id, span_id.
 * From JSON a string in an id becomes bin of 16 bytes if it is a UUID, and an integer if it has
 * only digits and fits into 64 bits. Any other string becomes str, base64 or not: what it was is
 * not known. A number without fraction and exponent that fits into 64 bits becomes an integer, any
 * other number a float of 64 bits. */
#ifndef STDIO_BUS_RMP_CONVERT_H
#define STDIO_BUS_RMP_CONVERT_H

#include "rmp/msgpack.h"
#include "json/text.h"

/* Adds a valid value, nested at most MSGPACK_MAX_DEPTH deep, as JSON. False: it is not valid, or a
 * key is of a type that has no text. */
bool convert_to_json(struct json_text *text, struct slice msgpack);

/* The MsgPack of a JSON value. `json` was validated, and a byte that is no digit follows it.
 * *msgpack is the caller's to free. STDIO_BUS_EINVAL: nested more than MSGPACK_MAX_DEPTH deep;
 * STDIO_BUS_ERR: out of memory. */
int convert_to_msgpack(struct slice json, char **msgpack, size_t *len);

/* The value of the last member of that key in a JSON object that was validated; its white space is
 * left out. False: it is no object, or has no such key. */
bool convert_find(struct slice json, const char *key, struct slice *value);

/* Whether the value of this key is an id. */
bool convert_names_id(struct slice key);

/* Adds the bytes in base64, without quotes. */
void convert_add_base64(struct json_text *text, struct slice bytes);

#endif
