/* The body of a frame: a MsgPack map of type, payload and meta (RMP 2). */
#ifndef STDIO_BUS_RMP_ENVELOPE_H
#define STDIO_BUS_RMP_ENVELOPE_H

#include "rmp/error.h"
#include "rmp/header.h"
#include "rmp/msgpack.h"

/* All point into the body. */
struct rmp_envelope {
    struct slice type;    /* the text itself */
    struct slice payload; /* MsgPack: a map or bin, with its head */
    struct slice meta;    /* MsgPack: a map with its head; empty: none, or nil */
};

/* Reads and validates the whole body, to its last byte. RMP_BODY_DECODE_ERROR: not MsgPack or not a
 * map; type or payload missing, of another type, or twice; meta neither a map nor nil, or twice;
 * nested deeper than MSGPACK_MAX_DEPTH; bytes after the map. The order of the keys is free, and
 * unknown ones are ignored. *envelope is undefined after an error. */
enum rmp_error rmp_envelope_read(struct rmp_envelope *envelope, struct slice body);

/* Writes a body: type, payload and, unless it is empty, meta. */
void rmp_envelope_write(struct msgpack_writer *writer, const struct rmp_envelope *envelope);

/* meta.topic, the topic that a frame is published to; empty if there is none. */
struct slice rmp_envelope_topic(const struct rmp_envelope *envelope);

/* meta.ack: whether the publisher wants an answer. */
bool rmp_envelope_wants_ack(const struct rmp_envelope *envelope);

/* An id within a body: bin of 16 bytes, big-endian, or an unsigned integer. False: neither. */
bool rmp_id_of_value(const struct msgpack_value *value, struct rmp_id *id);

#endif
