/* MsgPack: every format is read, whole and cut anywhere, and written in its shortest form. */
#include "build_config.h"

#include "rmp/msgpack.h"
#include "suite.h"

#define BYTES(text) text, sizeof(text) - 1

static const struct format {
    const char *bytes;
    size_t len;
    enum msgpack_type type;
    uint64_t number; /* of UINT; two's complement of INT; count; length of bytes; bool */
    int ext_type;
    double real;
    bool shortest; /* the writer's format */
} formats[] = {
    {BYTES("\xc0"), .type = MSGPACK_NIL, .shortest = true},
    {BYTES("\xc2"), .type = MSGPACK_BOOL, .number = 0, .shortest = true},
    {BYTES("\xc3"), .type = MSGPACK_BOOL, .number = 1, .shortest = true},
    {BYTES("\x00"), .type = MSGPACK_UINT, .number = 0, .shortest = true},
    {BYTES("\x7f"), .type = MSGPACK_UINT, .number = 127, .shortest = true},
    {BYTES("\xff"), .type = MSGPACK_INT, .number = (uint64_t)-1, .shortest = true},
    {BYTES("\xe0"), .type = MSGPACK_INT, .number = (uint64_t)-32, .shortest = true},
    {BYTES("\xcc\x7f"), .type = MSGPACK_UINT, .number = 127},
    {BYTES("\xcc\x80"), .type = MSGPACK_UINT, .number = 128, .shortest = true},
    {BYTES("\xcc\xff"), .type = MSGPACK_UINT, .number = 255, .shortest = true},
    {BYTES("\xcd\x01\x00"), .type = MSGPACK_UINT, .number = 256, .shortest = true},
    {BYTES("\xcd\xff\xff"), .type = MSGPACK_UINT, .number = 65535, .shortest = true},
    {BYTES("\xce\x00\x01\x00\x00"), .type = MSGPACK_UINT, .number = 65536, .shortest = true},
    {BYTES("\xce\xff\xff\xff\xff"), .type = MSGPACK_UINT, .number = UINT32_MAX, .shortest = true},
    {BYTES("\xcf\x00\x00\x00\x01\x00\x00\x00\x00"), .type = MSGPACK_UINT,
     .number = UINT64_C(4294967296), .shortest = true},
    {BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), .type = MSGPACK_UINT, .number = UINT64_MAX,
     .shortest = true},
    {BYTES("\xd0\x7f"), .type = MSGPACK_UINT, .number = 127},
    {BYTES("\xd0\xdf"), .type = MSGPACK_INT, .number = (uint64_t)-33, .shortest = true},
    {BYTES("\xd0\x80"), .type = MSGPACK_INT, .number = (uint64_t)-128, .shortest = true},
    {BYTES("\xd1\x00\x01"), .type = MSGPACK_UINT, .number = 1},
    {BYTES("\xd1\xff\x7f"), .type = MSGPACK_INT, .number = (uint64_t)-129, .shortest = true},
    {BYTES("\xd1\x80\x00"), .type = MSGPACK_INT, .number = (uint64_t)-32768, .shortest = true},
    {BYTES("\xd2\xff\xff\x7f\xff"), .type = MSGPACK_INT, .number = (uint64_t)-32769,
     .shortest = true},
    {BYTES("\xd2\x80\x00\x00\x00"), .type = MSGPACK_INT, .number = (uint64_t)INT32_MIN,
     .shortest = true},
    {BYTES("\xd3\xff\xff\xff\xff\x7f\xff\xff\xff"), .type = MSGPACK_INT,
     .number = (uint64_t)INT64_C(-2147483649), .shortest = true},
    {BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), .type = MSGPACK_INT,
     .number = (uint64_t)INT64_MIN, .shortest = true},
    {BYTES("\xd3\x7f\xff\xff\xff\xff\xff\xff\xff"), .type = MSGPACK_UINT, .number = INT64_MAX},
    {BYTES("\xca\x3f\xc0\x00\x00"), .type = MSGPACK_FLOAT, .real = 1.5},
    {BYTES("\xca\xc0\x00\x00\x00"), .type = MSGPACK_FLOAT, .real = -2},
    {BYTES("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"), .type = MSGPACK_FLOAT, .real = 1.5,
     .shortest = true},
    {BYTES("\xcb\xff\xef\xff\xff\xff\xff\xff\xff"), .type = MSGPACK_FLOAT,
     .real = -1.7976931348623157e308, .shortest = true},
    {BYTES("\xa0"), .type = MSGPACK_STR, .number = 0, .shortest = true},
    {BYTES("\xa3xyz"), .type = MSGPACK_STR, .number = 3, .shortest = true},
    {BYTES("\xd9\x03xyz"), .type = MSGPACK_STR, .number = 3},
    {BYTES("\xda\x00\x03xyz"), .type = MSGPACK_STR, .number = 3},
    {BYTES("\xdb\x00\x00\x00\x03xyz"), .type = MSGPACK_STR, .number = 3},
    {BYTES("\xc4\x00"), .type = MSGPACK_BIN, .number = 0, .shortest = true},
    {BYTES("\xc4\x03xyz"), .type = MSGPACK_BIN, .number = 3, .shortest = true},
    {BYTES("\xc5\x00\x03xyz"), .type = MSGPACK_BIN, .number = 3},
    {BYTES("\xc6\x00\x00\x00\x03xyz"), .type = MSGPACK_BIN, .number = 3},
    {BYTES("\x90"), .type = MSGPACK_ARRAY, .number = 0, .shortest = true},
    {BYTES("\x9f"), .type = MSGPACK_ARRAY, .number = 15, .shortest = true},
    {BYTES("\xdc\x00\x10"), .type = MSGPACK_ARRAY, .number = 16, .shortest = true},
    {BYTES("\xdc\xff\xff"), .type = MSGPACK_ARRAY, .number = 65535, .shortest = true},
    {BYTES("\xdd\x00\x01\x00\x00"), .type = MSGPACK_ARRAY, .number = 65536, .shortest = true},
    {BYTES("\xdd\xff\xff\xff\xff"), .type = MSGPACK_ARRAY, .number = UINT32_MAX, .shortest = true},
    {BYTES("\x80"), .type = MSGPACK_MAP, .number = 0, .shortest = true},
    {BYTES("\x8f"), .type = MSGPACK_MAP, .number = 15, .shortest = true},
    {BYTES("\xde\x00\x10"), .type = MSGPACK_MAP, .number = 16, .shortest = true},
    {BYTES("\xdf\x00\x01\x00\x00"), .type = MSGPACK_MAP, .number = 65536, .shortest = true},
    {BYTES("\xd4\x05x"), .type = MSGPACK_EXT, .number = 1, .ext_type = 5, .shortest = true},
    {BYTES("\xd5\xffxy"), .type = MSGPACK_EXT, .number = 2, .ext_type = -1, .shortest = true},
    {BYTES("\xd6\x80wxyz"), .type = MSGPACK_EXT, .number = 4, .ext_type = -128, .shortest = true},
    {BYTES("\xd7\x7fstuvwxyz"), .type = MSGPACK_EXT, .number = 8, .ext_type = 127,
     .shortest = true},
    {BYTES("\xd8\x01ghijklmnopqrstuv"), .type = MSGPACK_EXT, .number = 16, .ext_type = 1,
     .shortest = true},
    {BYTES("\xc7\x00\x01"), .type = MSGPACK_EXT, .number = 0, .ext_type = 1, .shortest = true},
    {BYTES("\xc7\x03\x01xyz"), .type = MSGPACK_EXT, .number = 3, .ext_type = 1, .shortest = true},
    {BYTES("\xc8\x00\x03\x01xyz"), .type = MSGPACK_EXT, .number = 3, .ext_type = 1},
    {BYTES("\xc9\x00\x00\x00\x03\x01xyz"), .type = MSGPACK_EXT, .number = 3, .ext_type = 1},
};

/* A copy that ends where its memory ends. */
static char *copy_of(const char *bytes, size_t len)
{
    char *copy = malloc(len + (len == 0));

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, len);
    return copy;
}

static void assert_value(const struct format *format, const struct msgpack_value *value)
{
    ck_assert_int_eq(value->type, format->type);
    switch (value->type) {
    case MSGPACK_NIL:
        break;
    case MSGPACK_BOOL:
        ck_assert(value->as.boolean == (format->number == 1));
        break;
    case MSGPACK_UINT:
        ck_assert_uint_eq(value->as.uint, format->number);
        break;
    case MSGPACK_INT:
        ck_assert_uint_eq((uint64_t)value->as.sint, format->number);
        break;
    case MSGPACK_FLOAT:
        ck_assert_double_eq(value->as.real, format->real);
        break;
    case MSGPACK_EXT:
        ck_assert_int_eq(value->ext_type, format->ext_type);
        ck_assert_uint_eq(value->bytes.len, format->number);
        break;
    case MSGPACK_STR:
    case MSGPACK_BIN:
        ck_assert_uint_eq(value->bytes.len, format->number);
        ck_assert_mem_eq(value->bytes.data, "xyz", value->bytes.len);
        break;
    case MSGPACK_ARRAY:
    case MSGPACK_MAP:
        ck_assert_uint_eq(value->count, format->number);
        break;
    }
}

static bool is_container(const struct format *format)
{
    return format->type == MSGPACK_ARRAY || format->type == MSGPACK_MAP;
}

TEST_ROWS(every_format_is_read, COUNT(formats))
{
    const struct format *format = &formats[row];
    char *copy = copy_of(format->bytes, format->len);
    struct slice input = {copy, format->len};
    struct msgpack_value value;

    ck_assert(msgpack_read(&input, &value));
    ck_assert_uint_eq(input.len, 0);
    assert_value(format, &value);
    input = slice_of(copy, format->len);
    ck_assert(msgpack_skip(&input, 1) == (!is_container(format) || format->number == 0));
    free(copy);
}

TEST_ROWS(every_format_is_refused_when_cut, COUNT(formats))
{
    for (size_t len = 0; len < formats[row].len; len++) {
        char *copy = copy_of(formats[row].bytes, len);
        struct slice input = {copy, len}, again = {copy, len};
        struct msgpack_value value;

        ck_assert(!msgpack_read(&input, &value));
        ck_assert(!msgpack_skip(&again, MSGPACK_MAX_DEPTH));
        free(copy);
    }
}

static void put(struct msgpack_writer *writer, const struct msgpack_value *value)
{
    switch (value->type) {
    case MSGPACK_NIL:
        msgpack_put_nil(writer);
        break;
    case MSGPACK_BOOL:
        msgpack_put_bool(writer, value->as.boolean);
        break;
    case MSGPACK_UINT:
        msgpack_put_uint(writer, value->as.uint);
        break;
    case MSGPACK_INT:
        msgpack_put_int(writer, value->as.sint);
        break;
    case MSGPACK_FLOAT:
        msgpack_put_double(writer, value->as.real);
        break;
    case MSGPACK_STR:
        msgpack_put_str(writer, value->bytes);
        break;
    case MSGPACK_BIN:
        msgpack_put_bin(writer, value->bytes);
        break;
    case MSGPACK_ARRAY:
        msgpack_put_array(writer, value->count);
        break;
    case MSGPACK_MAP:
        msgpack_put_map(writer, value->count);
        break;
    case MSGPACK_EXT:
        msgpack_put_ext(writer, value->ext_type, value->bytes);
        break;
    }
}

/* With room of any size: what does not fit is counted, and nothing is written after the room. */
TEST_ROWS(values_are_written_in_the_shortest_format, COUNT(formats))
{
    const struct format *format = &formats[row];
    struct slice input = {format->bytes, format->len};
    struct msgpack_writer counter = {.to = NULL};
    struct msgpack_value value;

    ck_assert(msgpack_read(&input, &value));
    put(&counter, &value);
    ck_assert(format->shortest ? counter.len == format->len
                               : counter.len <= format->len || format->type == MSGPACK_FLOAT);
    for (size_t size = 0; size <= counter.len; size++) {
        char *room = malloc(size + (size == 0));
        struct msgpack_writer writer = {.to = room, .size = size};

        ck_assert_ptr_nonnull(room);
        put(&writer, &value);
        ck_assert_uint_eq(writer.len, counter.len);
        ck_assert(msgpack_fits(&writer) == (size == counter.len));
        if (size == counter.len && format->shortest)
            ck_assert_mem_eq(room, format->bytes, size);
        free(room);
    }
}

/* Lengths at which the head of a value changes. */
TEST(long_texts_keep_their_length)
{
    static const size_t lens[] = {31, 32, 255, 256, 65535, 65536};
    static const size_t heads[][3] = {{1, 2, 3}, {2, 2, 3}, {2, 2, 3},
                                      {3, 3, 4}, {3, 3, 4}, {5, 5, 6}}; /* str, bin, ext */
    char *bytes = calloc(1, 65536), *room = malloc(65542);

    ck_assert(bytes != NULL && room != NULL);
    for (size_t i = 0; i < COUNT(lens); i++) {
        for (unsigned kind = 0; kind < 3; kind++) {
            struct msgpack_value value = {.type = kind == 0   ? MSGPACK_STR
                                                  : kind == 1 ? MSGPACK_BIN
                                                              : MSGPACK_EXT,
                                          .ext_type = 9,
                                          .bytes = {bytes, lens[i]}};
            struct msgpack_writer writer = {.to = room, .size = 65542};
            struct msgpack_value again;
            struct slice input;

            put(&writer, &value);
            ck_assert_uint_eq(writer.len, heads[i][kind] + lens[i]);
            input = slice_of(room, writer.len);
            ck_assert(msgpack_read(&input, &again) && input.len == 0);
            ck_assert(again.type == value.type && again.bytes.len == lens[i]);
        }
    }
    free(bytes);
    free(room);
}

TEST(unused_format_is_refused)
{
    struct slice input = {"\xc1", 1}, nested = {"\x92\xc0\xc1", 3};
    struct msgpack_value value;

    ck_assert(!msgpack_read(&input, &value));
    ck_assert(!msgpack_skip(&nested, MSGPACK_MAX_DEPTH));
}

static const struct {
    const char *bytes;
    size_t len;
    size_t skipped; /* 0: refused */
    unsigned depth; /* that is needed */
} nestings[] = {
    {BYTES("\x01\x02"), 1, 0},
    {BYTES("\x90\x02"), 1, 1},
    {BYTES("\x92\x01\x02\x03"), 3, 1},
    {BYTES("\x81\x01\x02\x03"), 3, 1},
    {BYTES("\x91\x91\x91\x01\x02"), 4, 3},
    {BYTES("\x93\x91\x01\x81\x02\x90\x03\x04"), 7, 3},
    {BYTES("\x82\x91\x01\x02\x03\x80"), 6, 2},
    {BYTES("\x82\x91\x01\x02\x03"), 0, 2},
    {BYTES("\xdd\xff\xff\xff\xff\x01\x01"), 0, 1},
    {BYTES("\xdf\xff\xff\xff\xff\x01\x01"), 0, 1},
    {BYTES("\x91"), 0, 1},
};

TEST_ROWS(values_are_skipped, COUNT(nestings))
{
    for (unsigned depth = 0; depth <= MSGPACK_MAX_DEPTH; depth++) {
        char *copy = copy_of(nestings[row].bytes, nestings[row].len);
        struct slice input = {copy, nestings[row].len}, whole = input, head = input;
        bool good = nestings[row].skipped > 0 && depth >= nestings[row].depth;
        struct msgpack_value expected = {.count = 0}, value = {.count = 0};

        ck_assert(msgpack_skip(&input, depth) == good);
        ck_assert(!good || input.data == copy + nestings[row].skipped);
        ck_assert(msgpack_read_whole(&whole, depth, &value) == good);
        ck_assert(!good || whole.data == input.data);
        ck_assert(msgpack_read(&head, &expected));
        ck_assert(!good || (value.type == expected.type && value.count == expected.count));
        free(copy);
    }
}

TEST(members_are_found)
{
    struct slice map = {
        BYTES("\x85\x01\xa1k\xa1j\x91\x05\xa1k\x82\x01\x02\x03\x04\xa1k\x09\xa1z\xc3")};
    struct slice others[] = {{"", 0}, {"\x90", 1}, {"\x81\xa1k", 3}, {"\xa1k", 2}, {NULL, 0}};
    struct msgpack_value value;
    struct slice raw;

    ck_assert(msgpack_find(map, "k", &value, &raw));
    ck_assert(value.type == MSGPACK_MAP && value.count == 2);
    ck_assert(slice_equal(raw, slice_of("\x82\x01\x02\x03\x04", 5)));
    ck_assert(msgpack_find(map, "z", &value, NULL) && value.as.boolean);
    ck_assert(msgpack_find(map, "j", &value, &raw) && raw.len == 2);
    ck_assert(!msgpack_find(map, "", &value, &raw));
    ck_assert(!msgpack_find(map, "kk", &value, &raw));
    for (size_t i = 0; i < COUNT(others); i++)
        ck_assert(!msgpack_find(others[i], "k", &value, &raw));
}
