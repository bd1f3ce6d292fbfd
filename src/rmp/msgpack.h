/* MsgPack: values read one by one from borrowed bytes, and written. Nothing is allocated. */
#ifndef STDIO_BUS_RMP_MSGPACK_H
#define STDIO_BUS_RMP_MSGPACK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

#define MSGPACK_MAX_DEPTH 128 /* arrays and maps within each other */

/* --- reading --- */

enum msgpack_type {
    MSGPACK_NIL,
    MSGPACK_BOOL,
    MSGPACK_UINT,  /* an integer that is not negative, whatever its format */
    MSGPACK_INT,   /* a negative one */
    MSGPACK_FLOAT, /* of 32 or 64 bits */
    MSGPACK_STR,   /* not necessarily UTF-8 */
    MSGPACK_BIN,
    MSGPACK_ARRAY,
    MSGPACK_MAP,
    MSGPACK_EXT
};

struct msgpack_value {
    enum msgpack_type type;
    int8_t ext_type;
    uint32_t count;     /* elements of an array, or pairs of a map, which follow */
    struct slice bytes; /* of STR, BIN and EXT: points into the input */
    union {
        bool boolean;
        uint64_t uint;
        int64_t sint;
        double real;
    } as;
};

/* Reads the value that *input begins with, and moves *input past it; of an array or a map only past
 * its head. False: it is cut, or not MsgPack (0xC1). */
bool msgpack_read(struct slice *input, struct msgpack_value *value);

/* Moves *input past a whole value, with all that it contains. False: it is cut, not MsgPack, or
 * deeper than max_depth: 0 allows no array and no map. max_depth is at most MSGPACK_MAX_DEPTH. */
bool msgpack_skip(struct slice *input, unsigned max_depth);

/* Reads and skips: *value is the head of the whole value that *input moves past. */
bool msgpack_read_whole(struct slice *input, unsigned max_depth, struct msgpack_value *value);

/* Finds the first member of that key in a valid map. *value is its head; *raw, unless NULL, the
 * whole member's value. False: `map` is empty or no map, or has no such key. */
bool msgpack_find(struct slice map, const char *key, struct msgpack_value *value,
                  struct slice *raw);

/* Whether a value that was read is this string. */
static inline bool msgpack_is(const struct msgpack_value *value, const char *text)
{
    return value->type == MSGPACK_STR && slice_is(value->bytes, text);
}

/* --- writing --- */

/* Zeroed, it counts without writing: `len` is what the room must be. Each value takes its shortest
 * format, a float always 64 bits. What does not fit is not written, but counted. */
struct msgpack_writer {
    char *to;
    size_t size, len;
};

/* Whether everything was written. */
static inline bool msgpack_fits(const struct msgpack_writer *writer)
{
    return writer->len <= writer->size;
}

void msgpack_put_nil(struct msgpack_writer *writer);
void msgpack_put_bool(struct msgpack_writer *writer, bool value);
void msgpack_put_uint(struct msgpack_writer *writer, uint64_t value);
void msgpack_put_int(struct msgpack_writer *writer, int64_t value);
void msgpack_put_double(struct msgpack_writer *writer, double value);
/* At most UINT32_MAX bytes. */
void msgpack_put_str(struct msgpack_writer *writer, struct slice text);
void msgpack_put_text(struct msgpack_writer *writer, const char *text);
void msgpack_put_bin(struct msgpack_writer *writer, struct slice bytes);
void msgpack_put_ext(struct msgpack_writer *writer, int8_t type, struct slice bytes);
/* The head; the values, or keys and values in turns, are to follow. */
void msgpack_put_array(struct msgpack_writer *writer, uint32_t count);
void msgpack_put_map(struct msgpack_writer *writer, uint32_t count);
/* Values that are MsgPack already. */
void msgpack_put_raw(struct msgpack_writer *writer, struct slice values);

/* --- Integers of the wire: big-endian, at any address (RMP 1). --- */

static inline uint16_t wire_get_u16(const char *from)
{
    const unsigned char *p = (const unsigned char *)from;

    return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t wire_get_u32(const char *from)
{
    const unsigned char *p = (const unsigned char *)from;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t wire_get_u64(const char *from)
{
    return (uint64_t)wire_get_u32(from) << 32 | wire_get_u32(from + 4);
}

static inline void wire_put_u16(char *to, uint16_t value)
{
    to[0] = (char)(value >> 8);
    to[1] = (char)(value & 0xFF);
}

static inline void wire_put_u32(char *to, uint32_t value)
{
    wire_put_u16(to, (uint16_t)(value >> 16));
    wire_put_u16(to + 2, (uint16_t)(value & 0xFFFF));
}

static inline void wire_put_u64(char *to, uint64_t value)
{
    wire_put_u32(to, (uint32_t)(value >> 32));
    wire_put_u32(to + 4, (uint32_t)(value & 0xFFFFFFFF));
}

#endif
