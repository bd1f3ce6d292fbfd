#include "build_config.h"

#include "rmp/msgpack.h"

#include <string.h>

#include "base/assert.h"

/* --- the formats from 0xC0 to 0xDF --- */

enum shape {
    SHAPE_NONE,  /* never used */
    SHAPE_NIL,   /* the format says everything */
    SHAPE_BOOL,  /* the same */
    SHAPE_UINT,  /* `width` bytes of a number */
    SHAPE_INT,   /* the same, signed */
    SHAPE_FLOAT, /* the same */
    SHAPE_STR,   /* `width` bytes of a length, and the bytes */
    SHAPE_BIN,   /* the same */
    SHAPE_EXT,   /* the same, with a type before the bytes */
    SHAPE_FIXED, /* an ext of `width` bytes */
    SHAPE_ARRAY, /* `width` bytes of a count */
    SHAPE_MAP    /* the same */
};

#define FORMATS_START 0xC0
#define FORMATS_END 0xDF

static const struct format {
    unsigned char shape, width;
} formats[FORMATS_END - FORMATS_START + 1] = {
    {SHAPE_NIL, 0},    {SHAPE_NONE, 0},  {SHAPE_BOOL, 0},  {SHAPE_BOOL, 0},  /* C0 */
    {SHAPE_BIN, 1},    {SHAPE_BIN, 2},   {SHAPE_BIN, 4},   {SHAPE_EXT, 1},   /* C4 */
    {SHAPE_EXT, 2},    {SHAPE_EXT, 4},   {SHAPE_FLOAT, 4}, {SHAPE_FLOAT, 8}, /* C8 */
    {SHAPE_UINT, 1},   {SHAPE_UINT, 2},  {SHAPE_UINT, 4},  {SHAPE_UINT, 8},  /* CC */
    {SHAPE_INT, 1},    {SHAPE_INT, 2},   {SHAPE_INT, 4},   {SHAPE_INT, 8},   /* D0 */
    {SHAPE_FIXED, 1},  {SHAPE_FIXED, 2}, {SHAPE_FIXED, 4}, {SHAPE_FIXED, 8}, /* D4 */
    {SHAPE_FIXED, 16}, {SHAPE_STR, 1},   {SHAPE_STR, 2},   {SHAPE_STR, 4},   /* D8 */
    {SHAPE_ARRAY, 2},  {SHAPE_ARRAY, 4}, {SHAPE_MAP, 2},   {SHAPE_MAP, 4},   /* DC */
};

/* --- reading --- */

/* A big-endian number of 0, 1, 2, 4 or 8 bytes. */
static uint64_t number_at(const char *p, unsigned width)
{
    switch (width) {
    case 1:
        return (unsigned char)*p;
    case 2:
        return wire_get_u16(p);
    case 4:
        return wire_get_u32(p);
    case 8:
        return wire_get_u64(p);
    default:
        return 0;
    }
}

/* Two's complement of `width` bytes as the number that it means. */
static int64_t signed_of(uint64_t bits, unsigned width)
{
    uint64_t sign = UINT64_C(1) << (8 * width - 1);

    bits &= sign | (sign - 1);
    return bits < sign ? (int64_t)bits : -(int64_t)(sign - (bits - sign) - 1) - 1;
}

static double real_of(uint64_t bits, unsigned width)
{
    uint32_t half = (uint32_t)bits;
    float single;
    double real;

    if (width == 4) {
        memcpy(&single, &half, sizeof single);
        return (double)single;
    }
    memcpy(&real, &bits, sizeof real);
    return real;
}

static void take(struct slice *input, size_t len)
{
    input->data += len;
    input->len -= len;
}

/* Takes `len` bytes as those of the value. */
static bool take_bytes(struct slice *input, struct msgpack_value *value, enum msgpack_type type,
                       uint64_t len)
{
    if (len > input->len)
        return false;
    value->type = type;
    value->bytes = slice_of(input->data, (size_t)len);
    take(input, (size_t)len);
    return true;
}

static bool take_ext(struct slice *input, struct msgpack_value *value, uint64_t len)
{
    if (input->len == 0)
        return false;
    value->ext_type = (int8_t)signed_of((unsigned char)*input->data, 1);
    take(input, 1);
    return take_bytes(input, value, MSGPACK_EXT, len);
}

static bool set_number(struct msgpack_value *value, struct format format, uint64_t bits)
{
    int64_t number;

    if (format.shape == SHAPE_FLOAT) {
        value->type = MSGPACK_FLOAT;
        value->as.real = real_of(bits, format.width);
        return true;
    }
    number = format.shape == SHAPE_INT ? signed_of(bits, format.width) : 0;
    value->type = number < 0 ? MSGPACK_INT : MSGPACK_UINT;
    if (number < 0)
        value->as.sint = number;
    else
        value->as.uint = bits;
    return true;
}

/* A format from 0xC0 to 0xDF, whose byte was taken. */
static bool read_format(struct slice *input, struct msgpack_value *value, unsigned char byte)
{
    struct format format = formats[byte - FORMATS_START];
    unsigned width = format.shape == SHAPE_FIXED ? 0 : format.width;
    uint64_t number;

    if (width > input->len)
        return false;
    number = number_at(input->data, width);
    take(input, width);
    switch ((enum shape)format.shape) {
    case SHAPE_NONE:
        return false;
    case SHAPE_NIL:
        value->type = MSGPACK_NIL;
        return true;
    case SHAPE_BOOL:
        value->type = MSGPACK_BOOL;
        value->as.boolean = (byte & 1) != 0;
        return true;
    case SHAPE_UINT:
    case SHAPE_INT:
    case SHAPE_FLOAT:
        return set_number(value, format, number);
    case SHAPE_STR:
        return take_bytes(input, value, MSGPACK_STR, number);
    case SHAPE_BIN:
        return take_bytes(input, value, MSGPACK_BIN, number);
    case SHAPE_EXT:
        return take_ext(input, value, number);
    case SHAPE_FIXED:
        return take_ext(input, value, format.width);
    case SHAPE_ARRAY:
    case SHAPE_MAP:
        value->type = format.shape == SHAPE_MAP ? MSGPACK_MAP : MSGPACK_ARRAY;
        value->count = (uint32_t)number;
        return true;
    }
    return false;
}

bool msgpack_read(struct slice *input, struct msgpack_value *value)
{
    unsigned char byte;

    if (input->len == 0)
        return false;
    byte = (unsigned char)*input->data;
    take(input, 1);
    if (byte >= FORMATS_START && byte <= FORMATS_END)
        return read_format(input, value, byte);
    if (byte >= 0xA0 && byte < FORMATS_START)
        return take_bytes(input, value, MSGPACK_STR, byte & 0x1F);
    if (byte >= 0x80 && byte < 0xA0) {
        value->type = byte < 0x90 ? MSGPACK_MAP : MSGPACK_ARRAY;
        value->count = byte & 0xF;
        return true;
    }
    value->type = byte < 0x80 ? MSGPACK_UINT : MSGPACK_INT;
    if (byte < 0x80)
        value->as.uint = byte;
    else
        value->as.sint = (int64_t)byte - 0x100;
    return true;
}

#define LENGTHS_4(n) n, (n) + 1, (n) + 2, (n) + 3
#define LENGTHS_16(n) LENGTHS_4(n), LENGTHS_4((n) + 4), LENGTHS_4((n) + 8), LENGTHS_4((n) + 12)
#define ONES_16 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1

/* The length of a scalar by its first byte, where that byte alone tells it; else 0. */
/* clang-format off */
static const unsigned char lengths[256] = {
    ONES_16, ONES_16, ONES_16, ONES_16, ONES_16, ONES_16, ONES_16, ONES_16, /* small integers */
    [0xA0] = LENGTHS_16(1), LENGTHS_16(17),                                 /* short strings */
    [0xC0] = 1, 0, 1, 1,                                                    /* nil, bools */
    [0xCA] = 5, 9, 2, 3, 5, 9, 2, 3, 5, 9,                                  /* other numbers */
    [0xE0] = ONES_16, ONES_16,                                              /* negative ones */
};
/* clang-format on */

static uint64_t values_in(const struct msgpack_value *container)
{
    return (uint64_t)container->count << (container->type == MSGPACK_MAP);
}

/* Moves past `left` values, with all that they contain. */
static bool skip_values(struct slice *input, uint64_t left, unsigned max_depth)
{
    uint64_t outer[MSGPACK_MAX_DEPTH] UNINITIALIZED; /* values to come after the container */
    struct msgpack_value value UNINITIALIZED;
    unsigned depth = 0;
    size_t len;

    ASSERT(max_depth <= MSGPACK_MAX_DEPTH);
    for (;;) { /* `left`: values to come in the innermost container */
        while (left == 0 && depth > 0)
            left = outer[--depth];
        if (left == 0)
            return true;
        left--;
        if (input->len == 0)
            return false;
        len = lengths[(unsigned char)*input->data];
        if (len > 0 && len <= input->len) {
            take(input, len);
            continue;
        }
        if (!msgpack_read(input, &value))
            return false;
        if (value.type != MSGPACK_ARRAY && value.type != MSGPACK_MAP)
            continue;
        if (depth == max_depth)
            return false;
        outer[depth++] = left;
        left = values_in(&value);
    }
}

bool msgpack_skip(struct slice *input, unsigned max_depth)
{
    return skip_values(input, 1, max_depth);
}

bool msgpack_read_whole(struct slice *input, unsigned max_depth, struct msgpack_value *value)
{
    if (!msgpack_read(input, value))
        return false;
    if (value->type != MSGPACK_ARRAY && value->type != MSGPACK_MAP)
        return true;
    return max_depth > 0 && skip_values(input, values_in(value), max_depth - 1);
}

bool msgpack_find(struct slice map, const char *key, struct msgpack_value *value, struct slice *raw)
{
    struct slice wanted = slice_of_text(key), at;
    struct msgpack_value head UNINITIALIZED, name UNINITIALIZED;

    if (!msgpack_read(&map, &head) || head.type != MSGPACK_MAP)
        return false;
    for (uint32_t i = 0; i < head.count; i++) {
        if (!msgpack_read_whole(&map, MSGPACK_MAX_DEPTH, &name))
            return false;
        at = map;
        if (name.type == MSGPACK_STR && slice_equal(name.bytes, wanted)) {
            if (!msgpack_read_whole(&map, MSGPACK_MAX_DEPTH, value))
                return false;
            if (raw != NULL)
                *raw = slice_of(at.data, at.len - map.len);
            return true;
        }
        if (!msgpack_skip(&map, MSGPACK_MAX_DEPTH))
            return false;
    }
    return false;
}

/* --- writing --- */

static void put(struct msgpack_writer *writer, const char *bytes, size_t len)
{
    if (len > 0 && writer->len <= writer->size && len <= writer->size - writer->len)
        memcpy(writer->to + writer->len, bytes, len);
    writer->len += len;
}

/* A format, and a number of 0, 1, 2, 4 or 8 bytes. */
static void put_number(struct msgpack_writer *writer, unsigned format, uint64_t number,
                       unsigned width)
{
    char bytes[9];

    bytes[0] = (char)format;
    for (unsigned i = 0; i < width; i++)
        bytes[1 + i] = (char)(number >> 8 * (width - 1 - i) & 0xFF);
    put(writer, bytes, 1 + (size_t)width);
}

void msgpack_put_nil(struct msgpack_writer *writer)
{
    put_number(writer, 0xC0, 0, 0);
}

void msgpack_put_bool(struct msgpack_writer *writer, bool value)
{
    put_number(writer, value ? 0xC3 : 0xC2, 0, 0);
}

void msgpack_put_uint(struct msgpack_writer *writer, uint64_t value)
{
    if (value < 0x80)
        put_number(writer, (unsigned)value, 0, 0);
    else if (value <= UINT8_MAX)
        put_number(writer, 0xCC, value, 1);
    else if (value <= UINT16_MAX)
        put_number(writer, 0xCD, value, 2);
    else if (value <= UINT32_MAX)
        put_number(writer, 0xCE, value, 4);
    else
        put_number(writer, 0xCF, value, 8);
}

void msgpack_put_int(struct msgpack_writer *writer, int64_t value)
{
    uint64_t bits = (uint64_t)value;

    if (value >= 0)
        msgpack_put_uint(writer, bits);
    else if (value >= -32)
        put_number(writer, (unsigned)(bits & 0xFF), 0, 0);
    else if (value >= INT8_MIN)
        put_number(writer, 0xD0, bits, 1);
    else if (value >= INT16_MIN)
        put_number(writer, 0xD1, bits, 2);
    else if (value >= INT32_MIN)
        put_number(writer, 0xD2, bits, 4);
    else
        put_number(writer, 0xD3, bits, 8);
}

void msgpack_put_double(struct msgpack_writer *writer, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_number(writer, 0xCB, bits, 8);
}

/* The head of a value of a length or count: up to `few` in the byte `fixed` itself; otherwise in
 * `format8` (0: there is none) or the two formats after it. */
static void put_head(struct msgpack_writer *writer, uint64_t count, unsigned fixed, unsigned few,
                     unsigned format8, unsigned format16)
{
    if (count < few)
        put_number(writer, fixed | (unsigned)count, 0, 0);
    else if (count <= UINT8_MAX && format8 != 0)
        put_number(writer, format8, count, 1);
    else if (count <= UINT16_MAX)
        put_number(writer, format16, count, 2);
    else
        put_number(writer, format16 + 1, count, 4);
}

void msgpack_put_str(struct msgpack_writer *writer, struct slice text)
{
    ASSERT(text.len <= UINT32_MAX);
    put_head(writer, text.len, 0xA0, 32, 0xD9, 0xDA);
    put(writer, text.data, text.len);
}

void msgpack_put_text(struct msgpack_writer *writer, const char *text)
{
    msgpack_put_str(writer, slice_of_text(text));
}

void msgpack_put_bin(struct msgpack_writer *writer, struct slice bytes)
{
    ASSERT(bytes.len <= UINT32_MAX);
    put_head(writer, bytes.len, 0, 0, 0xC4, 0xC5);
    put(writer, bytes.data, bytes.len);
}

void msgpack_put_ext(struct msgpack_writer *writer, int8_t type, struct slice bytes)
{
    char type_byte = (char)type;

    ASSERT(bytes.len <= UINT32_MAX);
    if (bytes.len == 1 || bytes.len == 2 || bytes.len == 4)
        put_number(writer, 0xD4 + (unsigned)bytes.len / 2, 0, 0);
    else if (bytes.len == 8 || bytes.len == 16)
        put_number(writer, 0xD6 + (unsigned)bytes.len / 8, 0, 0);
    else
        put_head(writer, bytes.len, 0, 0, 0xC7, 0xC8);
    put(writer, &type_byte, 1);
    put(writer, bytes.data, bytes.len);
}

void msgpack_put_array(struct msgpack_writer *writer, uint32_t count)
{
    put_head(writer, count, 0x90, 16, 0, 0xDC);
}

void msgpack_put_map(struct msgpack_writer *writer, uint32_t count)
{
    put_head(writer, count, 0x80, 16, 0, 0xDE);
}

void msgpack_put_raw(struct msgpack_writer *writer, struct slice values)
{
    put(writer, values.data, values.len);
}
