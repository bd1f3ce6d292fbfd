/* The fields of a request that say what its message is (MCP 2026-07-28, "Standard Request
 * Headers"). */
#ifndef STDIO_BUS_REMOTE_MESSAGES_H
#define STDIO_BUS_REMOTE_MESSAGES_H

#include "json/message.h"
#include "json/param_fields.h"

#define FIELDS_VALUE_MAX 3072

/* Writes MCP-Protocol-Version, Mcp-Method and Mcp-Name as the message asks for; one with a value
 * that no field has room for is left out. False: out of memory. */
bool fields_write(struct json_output *out, const struct message *message,
                  const struct param_fields *found);

/* Whether the text is visible ASCII, and not empty. */
bool fields_is_plain(struct slice text);

/* --- The messages in a text of the server: an object, or an array of them. --- */

/* Makes a message of a text that was scanned: an object, and perhaps what surrounds it in an array.
 * The fields are moved to the object, and live as long as the message. Returns NULL, or what is
 * wrong with the id: static. */
const char *messages_make(struct message *message, struct slice text, struct scan_fields *fields,
                          struct message_scratch *scratch);

/* Whether it is an error of JSON-RPC: version 2.0, and an object `error`. Other programs have a
 * member of that name, too. */
bool messages_is_error(const struct message *message);

/* Calls fn(user, message) for each; the bytes of a message are its object. Returns NULL, or what is
 * wrong with the text after the messages so far: static. */
#define MESSAGES_NO_MEMORY "out of memory"
const char *messages_read(struct slice text, void (*fn)(void *user, const struct message *message),
                          void *user);

#endif
