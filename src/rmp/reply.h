/* What clients of the JSON dialect are sent. All of it has its prefix, the length of the text. */
#ifndef STDIO_BUS_RMP_REPLY_H
#define STDIO_BUS_RMP_REPLY_H

#include "rmp/frame.h"
#include "rmp/peer.h"

#define RMP_REPLY_MAX 8192 /* bytes of an answer; of longer texts in it the end is left out */

/* "HelloAck" */
size_t rmp_reply_hello(char to[RMP_REPLY_MAX]);

/* {"PublishAck":{"id":1,"result":{"Ok":null}}}, or with an Err; SubscribeAck has the same form. */
size_t rmp_reply_publish(char to[RMP_REPLY_MAX], uint64_t id, const struct rmp_result *result);
size_t rmp_reply_subscribe(char to[RMP_REPLY_MAX], uint64_t id, const struct rmp_result *result);

/* {"Message":{"sub_id":1,"message":{header, body}}} in two parts: the second is the same for all
 * subscribers. */

#define RMP_MESSAGE_START_MAX 64
#define RMP_MESSAGE_REST_MAX(body_len) ((size_t)4 * (body_len) + 320) /* bytes, at most */

/* Writes what precedes the rest, of rest_len bytes. Returns its length, prefix included. The text
 * may be over RMP_COMMAND_MAX, which public clients do not read. */
size_t rmp_message_start(char to[RMP_MESSAGE_START_MAX], uint64_t sub_id, size_t rest_len);

/* Writes the rest; body_len is that of the body, whatever the header has. Returns its length. */
size_t rmp_message_rest(char *to, const struct rmp_header *header, struct slice body);

#endif
