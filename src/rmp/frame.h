/* A whole frame: prefix, header and body, judged in the order of the taxonomy. */
#ifndef STDIO_BUS_RMP_FRAME_H
#define STDIO_BUS_RMP_FRAME_H

#include "rmp/envelope.h"
#include "rmp/error.h"
#include "rmp/header.h"
#include "rmp/schemas.h"

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

#endif
