/* The JSON dialect of the RMP socket: the commands of clients. Each is one JSON text after a
 * length of four bytes. rmp/reply.h is the other direction. */
#ifndef STDIO_BUS_RMP_COMMAND_H
#define STDIO_BUS_RMP_COMMAND_H

#include "rmp/frame.h"
#include "rmp/peer.h"

#define RMP_COMMAND_MAX ((size_t)8388676) /* bytes of one command, without its prefix */

enum rmp_command_type { RMP_HELLO, RMP_PUBLISH, RMP_SUBSCRIBE, RMP_UNSUBSCRIBE };

struct rmp_command {
    enum rmp_command_type type;
    enum rmp_kind kind;       /* Hello */
    uint64_t id;              /* Publish, Subscribe */
    uint64_t sub_id;          /* Subscribe, Unsubscribe */
    bool replay;              /* Subscribe: the events that are kept come first */
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

#endif
