/* The fields of a request that say what its message is (MCP 2026-07-28, "Standard Request
 * Headers"). */
#ifndef STDIO_BUS_REMOTE_FIELDS_H
#define STDIO_BUS_REMOTE_FIELDS_H

#include "json/message.h"
#include "json/param_fields.h"

#define FIELDS_VALUE_MAX 3072

/* Writes MCP-Protocol-Version, Mcp-Method and Mcp-Name as the message asks for; one with a value
 * that no field has room for is left out. False: out of memory. */
bool fields_write(struct json_output *out, const struct message *message,
                  const struct param_fields *found);

/* The value, of at most FIELDS_VALUE_MAX bytes, as a field may have it: as it is, or as
 * =?base64?...?=. */
void fields_add_value(struct json_output *out, struct slice value);

/* Whether the text is visible ASCII, and not empty. */
bool fields_is_plain(struct slice text);

#endif
