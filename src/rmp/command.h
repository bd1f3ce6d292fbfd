/* The JSON dialect of the RMP socket: commands of clients, and what clients are sent. A frame is a
 * length of four bytes and one JSON text. */
#ifndef STDIO_BUS_RMP_COMMAND_H
#define STDIO_BUS_RMP_COMMAND_H

#include "rmp/header.h"
#include "rmp/kind.h"
#include "rmp/result.h"

#define RMP_COMMAND_MAX ((size_t)8388676) /* bytes of one command, without its prefix */

enum rmp_command_type { RMP_HELLO, RMP_PUBLISH, RMP_SUBSCRIBE, RMP_UNSUBSCRIBE };

struct rmp_command {
    enum rmp_command_type type;
    enum rmp_kind kind;       /* Hello */
    uint64_t id;              /* Publish, Subscribe */
    uint64_t sub_id;          /* Subscribe, Unsubscribe */
    struct slice topic;       /* Publish, Subscribe: decoded, in the text or in the work area */
    struct rmp_header header; /* Publish: body_len as the client states it; 0: it states none */
    struct slice body; /* Publish: in the work area, RMP_BODY_OFFSET bytes after its start, so that
                        * rmp_header_write_prefixed makes a frame of it */
};

/* The bytes of work area for a command of `len` bytes. */
#define RMP_COMMAND_WORK(len) (RMP_BODY_OFFSET + (len))

/* Reads the payload of a frame. `work` has RMP_COMMAND_WORK(json.len) bytes. False: it is not JSON,
 * or no command of these: an unknown name, a field missing, twice, or of another type or range
 * (integers are bare and exact, up to 2^64 - 1, trace_id up to 2^128 - 1; elements of a body are 0
 * to 255), or a header_version, header_len or flags of another version. Then *command is undefined.
 * Unknown fields are ignored. */
bool rmp_command_read(struct rmp_command *command, struct slice json, char *work);

/* --- what clients are sent; all with their prefix --- */

#define RMP_COMMAND_ANSWER_MAX 8192 /* bytes of an answer; longer texts in it are cut */

/* "HelloAck" */
size_t rmp_command_hello_ack(char to[RMP_COMMAND_ANSWER_MAX]);

/* {"PublishAck":{"id":1,"result":{"Ok":null}}} and its Err values; likewise SubscribeAck. */
size_t rmp_command_publish_ack(char to[RMP_COMMAND_ANSWER_MAX], uint64_t id,
                               const struct rmp_result *result);
size_t rmp_command_subscribe_ack(char to[RMP_COMMAND_ANSWER_MAX], uint64_t id,
                                 const struct rmp_result *result);

/* The bytes that a Message of this body takes, at most. */
#define RMP_COMMAND_MESSAGE_MAX(body_len) ((size_t)4 * (body_len) + 512)

/* {"Message":{"sub_id":1,"message":{header, body}}}; header->body_len is the body's. Returns its
 * length. The payload may be over RMP_COMMAND_MAX, which public clients do not read. */
size_t rmp_command_message(char *to, uint64_t sub_id, const struct rmp_header *header,
                           struct slice body);

#endif
