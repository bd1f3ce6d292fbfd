/* The fixed header of a frame (RMP 1.1), and its expiry (RMP 4). */
#ifndef STDIO_BUS_RMP_HEADER_H
#define STDIO_BUS_RMP_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "rmp/error.h"

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

#endif
