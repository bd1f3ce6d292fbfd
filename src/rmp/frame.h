/* A whole frame: prefix, header and body, judged in the order of the taxonomy. */
#ifndef STDIO_BUS_RMP_FRAME_H
#define STDIO_BUS_RMP_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "rmp/msgpack.h"
#include "rmp/schemas.h"

/* The error taxonomy (RMP 7), in the order in which a frame is judged: the first failure wins. */

enum rmp_error {
    RMP_OK,
    RMP_TRUNCATED_HEADER,
    RMP_INVALID_MAGIC,
    RMP_UNSUPPORTED_VERSION,
    RMP_INVALID_HEADER_FLAGS,
    RMP_LENGTH_MISMATCH,
    RMP_BODY_TOO_LARGE,
    RMP_UNKNOWN_SCHEMA,
    RMP_INVALID_TTL,
    RMP_INVALID_EXPIRY,
    RMP_EXPIRED,
    RMP_BODY_DECODE_ERROR,
    RMP_BODY_TYPE_MISMATCH,
    RMP_DUPLICATE,
    RMP_ERROR_COUNT
};

/* The name as the specification spells it: "InvalidMagic". "Ok" for RMP_OK. */
const char *rmp_error_name(enum rmp_error error);

/* One sentence for people, without a period at its end. */
const char *rmp_error_text(enum rmp_error error);

/* --- The fixed header of a frame (RMP 1.1), and its expiry (RMP 4). --- */

#define RMP_PREFIX_LEN 4  /* frame_len, before the header */
#define RMP_HEADER_LEN 64 /* bytes; the value of header_len */
#define RMP_BODY_OFFSET (RMP_PREFIX_LEN + RMP_HEADER_LEN)
#define RMP_MAX_BODY ((uint32_t)8 << 20) /* the default of the limit */

/* 128 bits. */
struct rmp_id {
    uint64_t high, low;
};

static inline bool rmp_id_equal(struct rmp_id a, struct rmp_id b)
{
    return a.high == b.high && a.low == b.low;
}

#define RMP_ID_LEN 16 /* bytes of an id on the wire, big-endian */

struct rmp_id rmp_id_read(const char from[RMP_ID_LEN]);
void rmp_id_write(char to[RMP_ID_LEN], struct rmp_id id);

/* What may differ between two headers of v0. */
struct rmp_header {
    uint16_t schema_id;
    uint32_t body_len;
    uint64_t created_at_ms, ttl_ms;
    struct rmp_id trace_id;
    uint64_t msg_id;
};

/* Reads the header that `bytes` begin with. Judges what does not depend on anything else:
 * RMP_TRUNCATED_HEADER (fewer than 64 bytes), RMP_INVALID_MAGIC, RMP_UNSUPPORTED_VERSION,
 * RMP_INVALID_HEADER_FLAGS. The fields of *header are set unless it is truncated. */
enum rmp_error rmp_header_read(struct rmp_header *header, struct slice bytes);

/* Writes a header of v0. */
void rmp_header_write(char to[RMP_HEADER_LEN], const struct rmp_header *header);

/* Writes the prefix for header->body_len, and the header. */
void rmp_header_write_prefixed(char to[RMP_BODY_OFFSET], const struct rmp_header *header);

/* The first millisecond in which the message is expired. RMP_INVALID_TTL, RMP_INVALID_EXPIRY (then
 * *expires_at_ms is UINT64_MAX), or RMP_OK. */
enum rmp_error rmp_header_expiry(const struct rmp_header *header, uint64_t *expires_at_ms);

/* The same, and RMP_EXPIRED. */
enum rmp_error rmp_header_check_expiry(const struct rmp_header *header, uint64_t now_ms);

/* --- An id as text: 8-4-4-4-12 hexadecimal digits. --- */

#define RMP_UUID_LEN 36

/* Writes the id in lower case, with a NUL after it. Returns `to`. */
const char *rmp_uuid_write(char to[RMP_UUID_LEN + 1], struct rmp_id id);

/* False: the text is no UUID. Letters may be of either case. */
bool rmp_uuid_read(struct slice text, struct rmp_id *id);

/* --- The body of a frame: a MsgPack map of type, payload and meta (RMP 2). --- */

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

/* --- The whole: prefix, header and body. --- */

/* What a daemon accepts. */
struct rmp_rules {
    const struct rmp_schemas *schemas;
    uint32_t max_body; /* bytes of a body; RMP_MAX_BODY by default */
};

/* The slices point into the bytes that were read. */
struct rmp_frame {
    struct rmp_header header;
    struct slice wire; /* prefix, header and body, as transmitted */
    struct slice body;
    struct rmp_envelope envelope; /* valid if has_envelope */
    bool has_envelope;
};

/* Judges prefix and header, the first RMP_BODY_OFFSET bytes of a frame, or fewer where frame_len
 * says that there are no more: the errors up to RMP_UNKNOWN_SCHEMA. *header is set unless it is
 * truncated. */
enum rmp_error rmp_frame_judge_head(struct rmp_header *header, struct slice head,
                                    const struct rmp_rules *rules);

/* Whether the next frame can be found after this error: not after RMP_TRUNCATED_HEADER,
 * RMP_INVALID_MAGIC and RMP_UNSUPPORTED_VERSION, nor where frame_len and body_len contradict each
 * other. `header` is that of rmp_frame_judge_head. */
bool rmp_frame_goes_on(enum rmp_error error, uint32_t frame_len, const struct rmp_header *header);

/* Reads a frame from `wire`, exactly its bytes. The first error of the taxonomy, up to
 * RMP_BODY_TYPE_MISMATCH; RMP_TRUNCATED_HEADER if there are fewer than RMP_BODY_OFFSET bytes,
 * RMP_LENGTH_MISMATCH if frame_len is not what `wire` has. After RMP_INVALID_TTL,
 * RMP_INVALID_EXPIRY, RMP_EXPIRED and RMP_BODY_TYPE_MISMATCH the envelope is there all the same if
 * the body is good (has_envelope): for topics and notices. */
enum rmp_error rmp_frame_read(struct rmp_frame *frame, struct slice wire,
                              const struct rmp_rules *rules, uint64_t now_ms);

/* The same for a frame whose head was judged good: frame->header is set, and `wire` has
 * RMP_BODY_OFFSET + frame->header.body_len bytes. */
enum rmp_error rmp_frame_read_body(struct rmp_frame *frame, struct slice wire,
                                   const struct rmp_rules *rules, uint64_t now_ms);

/* Writes a whole frame into room for `size` bytes. header->body_len is ignored: the body's is
 * written. Returns the length of the frame; if it is over `size`, nothing is written that may be
 * used. */
size_t rmp_frame_write(char *to, size_t size, const struct rmp_header *header,
                       const struct rmp_envelope *envelope);

/* --- Frames that are made here: of the bridge and of the command line client. --- */

struct rmp_draft {
    struct rmp_header header;
    const char *type;     /* of the body */
    struct slice topic;   /* meta.topic; empty: none */
    struct slice payload; /* MsgPack: a map or bin */
    bool ack;             /* meta.ack */
    const char *ended;    /* meta.ended; NULL: none */
};

/* The whole frame, to be freed by the caller. NULL if out of memory. */
char *rmp_compose(const struct rmp_draft *draft, size_t *len);

/* Saves or loads a header. */
struct archive;
void rmp_header_archive(struct archive *archive, struct rmp_header *header);

#endif
