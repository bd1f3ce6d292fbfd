#include "build_config.h"

#include "rmp/header.h"

#include "rmp/wire.h"

#define MAGIC UINT32_C(0x524D5030) /* RMP0 */

/* Where the fields are. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_LEN = 6,
    AT_FLAGS = 8,
    AT_SCHEMA = 12,
    AT_RESERVED2 = 14,
    AT_BODY_LEN = 16,
    AT_CREATED = 20,
    AT_TTL = 28,
    AT_TRACE = 36,
    AT_MSG = 52,
    AT_RESERVED4 = 60
};

struct rmp_id rmp_id_read(const char from[RMP_ID_LEN])
{
    return (struct rmp_id){.high = wire_get_u64(from), .low = wire_get_u64(from + 8)};
}

void rmp_id_write(char to[RMP_ID_LEN], struct rmp_id id)
{
    wire_put_u64(to, id.high);
    wire_put_u64(to + 8, id.low);
}

enum rmp_error rmp_header_read(struct rmp_header *header, struct slice bytes)
{
    const char *p = bytes.data;

    if (bytes.len < RMP_HEADER_LEN)
        return RMP_TRUNCATED_HEADER;
    *header = (struct rmp_header){
        .schema_id = wire_get_u16(p + AT_SCHEMA),
        .body_len = wire_get_u32(p + AT_BODY_LEN),
        .created_at_ms = wire_get_u64(p + AT_CREATED),
        .ttl_ms = wire_get_u64(p + AT_TTL),
        .trace_id = rmp_id_read(p + AT_TRACE),
        .msg_id = wire_get_u64(p + AT_MSG),
    };
    if (wire_get_u32(p + AT_MAGIC) != MAGIC)
        return RMP_INVALID_MAGIC;
    if (wire_get_u16(p + AT_VERSION) != 0 || wire_get_u16(p + AT_LEN) != RMP_HEADER_LEN)
        return RMP_UNSUPPORTED_VERSION;
    if (wire_get_u32(p + AT_FLAGS) != 0 || wire_get_u16(p + AT_RESERVED2) != 0 ||
        wire_get_u32(p + AT_RESERVED4) != 0)
        return RMP_INVALID_HEADER_FLAGS;
    return RMP_OK;
}

void rmp_header_write(char to[RMP_HEADER_LEN], const struct rmp_header *header)
{
    wire_put_u32(to + AT_MAGIC, MAGIC);
    wire_put_u16(to + AT_VERSION, 0);
    wire_put_u16(to + AT_LEN, RMP_HEADER_LEN);
    wire_put_u32(to + AT_FLAGS, 0);
    wire_put_u16(to + AT_SCHEMA, header->schema_id);
    wire_put_u16(to + AT_RESERVED2, 0);
    wire_put_u32(to + AT_BODY_LEN, header->body_len);
    wire_put_u64(to + AT_CREATED, header->created_at_ms);
    wire_put_u64(to + AT_TTL, header->ttl_ms);
    rmp_id_write(to + AT_TRACE, header->trace_id);
    wire_put_u64(to + AT_MSG, header->msg_id);
    wire_put_u32(to + AT_RESERVED4, 0);
}

void rmp_header_write_prefixed(char to[RMP_BODY_OFFSET], const struct rmp_header *header)
{
    wire_put_u32(to, RMP_HEADER_LEN + header->body_len);
    rmp_header_write(to + RMP_PREFIX_LEN, header);
}

/* The sum of two 64-bit numbers always fits in 128 bits: what is left of RMP 4 is that it may not
 * fit in 64. */
enum rmp_error rmp_header_expiry(const struct rmp_header *header, uint64_t *expires_at_ms)
{
    bool fits = header->ttl_ms <= UINT64_MAX - header->created_at_ms;

    *expires_at_ms = fits ? header->created_at_ms + header->ttl_ms : UINT64_MAX;
    if (header->ttl_ms == 0)
        return RMP_INVALID_TTL;
    return fits ? RMP_OK : RMP_INVALID_EXPIRY;
}

enum rmp_error rmp_header_check_expiry(const struct rmp_header *header, uint64_t now_ms)
{
    uint64_t expires_at_ms;
    enum rmp_error error = rmp_header_expiry(header, &expires_at_ms);

    return error == RMP_OK && now_ms >= expires_at_ms ? RMP_EXPIRED : error;
}
