/* The messages of the control plane (RMP 9) on rlp/ctrl: reads requests, and writes the payloads of
 * answers. */
#ifndef STDIO_BUS_RMP_CONTROL_MESSAGE_H
#define STDIO_BUS_RMP_CONTROL_MESSAGE_H

#include "rmp/envelope.h"

#define RMP_TOPIC_CONTROL "rlp/ctrl"
#define RMP_CONTROL_TTL_MS 30000
#define RMP_CONTROL_WAIT_MS 2000 /* how long a client waits for RunAccepted */

enum rmp_control_kind { RMP_CONTROL_SUBMIT, RMP_CONTROL_CANCEL };

struct rmp_control_request {
    enum rmp_control_kind kind;
    struct rmp_id request_id; /* the trace_id of its frame */
    struct rmp_id run_id;     /* the trace_id of the run */
    struct slice members;     /* MsgPack: of RunSubmit or RunCancel */
    uint32_t user;            /* of its client (rmp/peer.h) */
};

/* Reads the body of a frame of schema 2001. False, with *problem (static): it is no request;
 * request->request_id is set all the same. The user is the caller's to set. */
bool rmp_control_read(struct rmp_control_request *request, const struct rmp_header *header,
                      const struct rmp_envelope *envelope, const char **problem);

/* --- payloads of answers --- */

void rmp_control_put_accepted(struct msgpack_writer *writer, struct rmp_id request_id,
                              struct slice opening_id, struct slice opening_name); /* MsgPack */
void rmp_control_put_rejected(struct msgpack_writer *writer, struct rmp_id request_id,
                              struct slice reason); /* a text */
void rmp_control_put_cancelled(struct msgpack_writer *writer, struct rmp_id request_id,
                               struct rmp_id run_id);

/* The same for any id of 16 bytes. */
void rmp_put_id(struct msgpack_writer *writer, struct rmp_id id);

#endif
