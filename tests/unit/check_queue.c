#include "build_config.h"

#include "base/queue.h"

#include "base/error.h"
#include "suite.h"
#include "turns.h"

/* The buffers with an allocator that counts and fails on demand: this object's functions take the
 * place of the library's. */
static bool out_of_memory;
static unsigned allocated, freed;

static void *counting_malloc(size_t size)
{
    if (out_of_memory)
        return NULL;
    allocated++;
    return malloc(size);
}

static void counting_free(void *memory)
{
    freed += memory != NULL;
    free(memory);
}

static void *failing_realloc(void *memory, size_t size)
{
    return out_of_memory ? NULL : realloc(memory, size);
}

#define malloc counting_malloc
#define realloc failing_realloc
#define free counting_free
#include "base/buffer.c"
#undef malloc
#undef realloc
#undef free

#define RECYCLED_MAX (BUFFER_LARGE << (BUFFER_SIZES - 2)) /* the largest size that is kept */
#define STEPS 4000
#define BYTES_MAX ((size_t)1 << 20)
#define PERIOD ((size_t)251 * 256) /* of the bytes that the tests append */

static struct buffer_pool pool;

static void free_pool(void)
{
    out_of_memory = false;
    buffer_pool_free(&pool);
    ck_assert_uint_eq(allocated, freed); /* nothing leaked, nothing freed twice */
    allocated = freed = 0;
}

/* --- buffers --- */

static const struct {
    size_t asked, capacity;
} takes[] = {
    {0, BUFFER_SMALL},
    {1, BUFFER_SMALL},
    {BUFFER_SMALL, BUFFER_SMALL},
    {BUFFER_SMALL + 1, BUFFER_LARGE},
    {BUFFER_LARGE, BUFFER_LARGE},
    {BUFFER_LARGE + 1, 2 * BUFFER_LARGE},
    {1000000, 16 * BUFFER_LARGE},
    {RECYCLED_MAX, RECYCLED_MAX},
    {RECYCLED_MAX + 1, RECYCLED_MAX + 1},
};

static void check_fresh(const struct buffer *buffer, size_t capacity)
{
    ck_assert_ptr_nonnull(buffer);
    ck_assert_uint_eq(buffer->capacity, capacity);
    ck_assert_uint_eq(buffer_len(buffer), 0);
    ck_assert_uint_eq(buffer_room(buffer), capacity);
    ck_assert_ptr_null(buffer->next);
}

TEST_ROWS(buffer_has_the_capacity_asked_for, COUNT(takes))
{
    struct buffer *buffer = buffer_take(&pool, takes[row].asked);

    check_fresh(buffer, takes[row].capacity);
    memset(buffer->data, 'x', buffer->capacity); /* all of it may be used */
    buffer->start = 1;
    buffer->end = buffer->capacity;
    buffer_give(&pool, buffer);
    buffer = buffer_take(&pool, takes[row].asked);
    check_fresh(buffer, takes[row].capacity); /* a recycled one too */
    buffer_give(&pool, buffer);
    ck_assert_uint_eq(allocated, takes[row].capacity > RECYCLED_MAX ? 2 : 1);
}

/* The pool keeps `max` buffers of this capacity and frees the rest. */
static void check_cap(size_t capacity, unsigned max)
{
    static struct buffer *buffers[BUFFER_POOL_SMALL_MAX + 10];
    unsigned count = max + 10, i;

    for (i = 0; i < count; i++) {
        buffers[i] = buffer_take(&pool, capacity);
        ck_assert_ptr_nonnull(buffers[i]);
    }
    ck_assert_uint_eq(allocated, count);
    for (i = 0; i < count; i++)
        buffer_give(&pool, buffers[i]);
    ck_assert_uint_eq(freed, 10);
    for (i = 0; i < count; i++) {
        buffers[i] = buffer_take(&pool, capacity);
        ck_assert_ptr_nonnull(buffers[i]);
    }
    ck_assert_uint_eq(allocated, count + 10); /* the others came from the pool */
    for (i = 0; i < count; i++)
        buffer_give(&pool, buffers[i]);
    free_pool();
}

TEST(pool_is_bounded)
{
    check_cap(BUFFER_SMALL, BUFFER_POOL_SMALL_MAX);
    check_cap(BUFFER_LARGE, BUFFER_POOL_MAX_BYTES / BUFFER_LARGE);
    check_cap(BUFFER_LARGE + 1, BUFFER_POOL_MAX_BYTES / (2 * BUFFER_LARGE));
    check_cap(RECYCLED_MAX, 1);
    check_cap(RECYCLED_MAX + 1, 0);
    buffer_give(&pool, NULL);
}

TEST(pool_keeps_more_when_told)
{
    pool.more = BUFFER_POOL_MAX_BYTES;
    check_cap(BUFFER_LARGE, 2 * BUFFER_POOL_MAX_BYTES / BUFFER_LARGE);
    pool.more = 0;
}

TEST(pool_keeps_the_sizes_that_are_in_use)
{
    enum { COUNT = BUFFER_POOL_MAX_BYTES / BUFFER_LARGE };
    struct buffer *buffers[COUNT], *longer;

    for (int i = 0; i < COUNT; i++)
        buffers[i] = buffer_take(&pool, BUFFER_LARGE);
    for (int i = 0; i < COUNT; i++)
        buffer_give(&pool, buffers[i]);
    ck_assert_uint_eq(freed, 0);
    ck_assert_uint_eq(pool.bytes, BUFFER_POOL_MAX_BYTES);
    longer = buffer_take(&pool, 4 * BUFFER_LARGE);
    ck_assert_uint_eq(freed, 4); /* room for it when it comes back */
    buffer_give(&pool, longer);
    ck_assert_uint_eq(freed, 4);
    ck_assert_ptr_eq(buffer_take(&pool, 4 * BUFFER_LARGE), longer);
    buffer_give(&pool, longer);
}

static void fill_ramp(struct buffer *buffer, size_t start, size_t end)
{
    buffer->start = start;
    buffer->end = end;
    for (size_t i = start; i < end; i++)
        buffer->data[i] = (char)(i * 7);
}

static void check_ramp(const struct buffer *buffer, size_t start, size_t end)
{
    ck_assert_uint_eq(buffer->start, 0);
    ck_assert_uint_eq(buffer_len(buffer), end - start);
    for (size_t i = start; i < end; i++)
        ck_assert_int_eq(buffer->data[i - start], (char)(i * 7));
}

static const struct {
    size_t start, end, room;
    bool same; /* the buffer itself has the room, once its content stands at its front */
} rooms[] = {
    {0, 0, BUFFER_SMALL, true},
    {0, 100, BUFFER_SMALL - 100, true},
    {1500, 2000, BUFFER_SMALL - 500, true},
    {100, BUFFER_SMALL, 100, true},
    {100, BUFFER_SMALL, 101, false},
    {0, BUFFER_SMALL, 1, false},
    {10, 11, BUFFER_LARGE, false},
    {10, 2000, 1000000, false},
};

TEST_ROWS(buffer_gets_room_and_keeps_its_content, COUNT(rooms))
{
    size_t start = rooms[row].start, end = rooms[row].end, room = rooms[row].room;
    struct buffer *buffer = buffer_take(&pool, 1), *other;

    fill_ramp(buffer, start, end);
    out_of_memory = true;
    other = buffer_with_room(&pool, buffer, room);
    if (!rooms[row].same) {
        ck_assert_ptr_null(other);
        ck_assert_uint_eq(buffer->start, start);
        ck_assert_uint_eq(buffer->end, end);
        out_of_memory = false;
        other = buffer_with_room(&pool, buffer, room);
    }
    ck_assert_int_eq(other == buffer, rooms[row].same);
    check_ramp(other, start, end);
    ck_assert_uint_ge(buffer_room(other), room);
    buffer_give(&pool, other);
}

TEST_ROWS(buffer_above_the_recycled_sizes_gets_exactly_the_room, 2)
{
    size_t start = row == 0 ? 0 : 1000, end = RECYCLED_MAX + 1;
    struct buffer *buffer = buffer_take(&pool, end), *other;

    fill_ramp(buffer, start, end);
    out_of_memory = true;
    ck_assert_ptr_null(buffer_with_room(&pool, buffer, 5 * RECYCLED_MAX));
    ck_assert_uint_eq(buffer->start, start);
    ck_assert_uint_eq(buffer->end, end);
    ck_assert_uint_eq(pool.used, end);
    out_of_memory = false;
    other = buffer_with_room(&pool, buffer, 5 * RECYCLED_MAX);
    check_ramp(other, start, end);
    ck_assert_uint_eq(buffer_room(other), 5 * RECYCLED_MAX);
    ck_assert_uint_eq(pool.used, other->capacity);
    buffer_give(&pool, other);
    ck_assert_uint_eq(pool.used, 0);
}

/* --- queues: the content is always the numbers from `gone` to `come`, as bytes --- */

static struct {
    struct queue queue;
    size_t gone, come;
    uint64_t random;
} stream;

static void set_up(void)
{
    memset(&stream, 0, sizeof stream);
    stream.random = 1;
}

static void tear_down(void)
{
    queue_clear(&stream.queue, &pool);
    free_pool();
}

/* The bytes from the position on, as many as a queue may have. */
static const char *bytes_at(size_t position)
{
    static char bytes[PERIOD + BYTES_MAX];

    if (bytes[1] == 0) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(i * 31 + i / 251);
    }
    return bytes + position % PERIOD;
}

static size_t next_random(size_t below)
{
    stream.random ^= stream.random << 13;
    stream.random ^= stream.random >> 7;
    stream.random ^= stream.random << 17;
    return (size_t)(stream.random % below);
}

/* Appends the next `len` bytes as a copy. */
static int append(size_t len)
{
    static char bytes[BYTES_MAX];
    int status;

    memcpy(bytes, bytes_at(stream.come), len);
    status = queue_append(&stream.queue, &pool, slice_of(len > 0 ? bytes : NULL, len));
    memset(bytes, '#', len); /* it must have been a copy */
    if (status == STDIO_BUS_OK)
        stream.come += len;
    return status;
}

/* Appends the next `len` bytes in a buffer of their own, after `start` bytes that do not count. */
static void append_buffer(size_t start, size_t len)
{
    struct buffer *buffer = buffer_take(&pool, start + len);

    ck_assert_ptr_nonnull(buffer);
    memset(buffer->data, '#', buffer->capacity);
    memcpy(buffer->data + start, bytes_at(stream.come), len);
    buffer->start = start;
    buffer->end = start + len;
    queue_append_buffer(&stream.queue, buffer);
    stream.come += len;
}

/* The first pieces are the first bytes; looks at no more than `max` pieces. */
static void check_pieces(int max)
{
    struct iovec pieces[32];
    int count = queue_pieces(&stream.queue, pieces, max);
    size_t at = stream.gone;

    ck_assert_uint_eq(stream.queue.bytes, stream.come - stream.gone);
    ck_assert_int_le(count, max);
    for (int i = 0; i < count; i++) {
        size_t len = pieces[i].iov_len;

        ck_assert_uint_gt(len, 0);
        ck_assert_uint_le(len, BYTES_MAX);
        ck_assert_msg(memcmp(pieces[i].iov_base, bytes_at(at), len) == 0,
                      "of the %zu bytes from %zu on one is wrong", len, at);
        at += len;
    }
    ck_assert_uint_le(at, stream.come);
    if (count < max)
        ck_assert_uint_eq(at, stream.come);
}

static void consume(size_t len)
{
    queue_consume(&stream.queue, &pool, len);
    stream.gone += len;
    ck_assert_uint_eq(stream.queue.bytes, stream.come - stream.gone);
}

static void check_empty(const struct queue *queue)
{
    ck_assert_uint_eq(queue->bytes, 0);
    ck_assert_ptr_null(queue->first);
    ck_assert_ptr_null(queue->last);
}

static const size_t sizes[] = {
    0,
    1,
    2,
    100,
    BUFFER_SMALL - 1,
    BUFFER_SMALL,
    BUFFER_SMALL + 1,
    BUFFER_LARGE - 1,
    BUFFER_LARGE,
    BUFFER_LARGE + 1,
    200000,
};

TEST(any_size_after_any_size)
{
    for (size_t first = 0; first < COUNT(sizes); first++) {
        for (size_t second = 0; second < COUNT(sizes); second++) {
            ck_assert_int_eq(append(sizes[first]), STDIO_BUS_OK);
            check_pieces(8);
            ck_assert_int_eq(append(sizes[second]), STDIO_BUS_OK);
            check_pieces(8);
            consume(sizes[first]);
            check_pieces(8);
            consume(sizes[second]);
            check_empty(&stream.queue);
        }
    }
}

static void random_step(void)
{
    size_t size = sizes[next_random(COUNT(sizes))];
    size_t len = next_random(2) == 0 ? size : next_random(size + 1);

    if (stream.queue.bytes + len > BYTES_MAX)
        consume(stream.queue.bytes - stream.queue.bytes / 4);
    switch (next_random(4)) {
    case 0:
        ck_assert_int_eq(append(len), STDIO_BUS_OK);
        break;
    case 1:
        append_buffer(next_random(100), len + 1);
        break;
    default:
        consume(len < stream.queue.bytes ? len : stream.queue.bytes);
        break;
    }
    if (stream.queue.bytes == 0)
        check_empty(&stream.queue);
}

TEST_ROWS(bytes_come_out_as_they_went_in, 4)
{
    int steps = turns(STEPS);

    stream.random = 0x2545f4914f6cdd1d + (unsigned)row;
    for (int i = 0; i < steps; i++) {
        random_step();
        check_pieces(1 + (int)next_random(3));
        if (i % 100 == 0)
            check_pieces(32);
    }
    while (stream.queue.bytes > 0) {
        check_pieces(2);
        consume(1 + next_random(stream.queue.bytes));
    }
    check_empty(&stream.queue);
}

TEST(byte_by_byte_over_every_edge)
{
    ck_assert_int_eq(append(BUFFER_SMALL + 3), STDIO_BUS_OK);
    append_buffer(5, 1);
    append_buffer(0, 700);
    while (stream.queue.bytes > 0) {
        check_pieces(2);
        consume(1);
    }
    check_empty(&stream.queue);
}

TEST(handed_over_buffer_is_not_copied)
{
    struct iovec piece;
    struct buffer *buffer;

    append_buffer(17, 100000);
    buffer = stream.queue.last;
    ck_assert_int_eq(queue_pieces(&stream.queue, &piece, 1), 1);
    ck_assert_ptr_eq(piece.iov_base, buffer->data + 17);
    ck_assert_uint_eq(piece.iov_len, 100000);
    ck_assert_uint_eq(allocated, 1);
    consume(100000);
    ck_assert_ptr_eq(buffer_take(&pool, 100000), buffer); /* given back as a whole */
    buffer_give(&pool, buffer);
}

TEST(failed_append_appends_nothing)
{
    out_of_memory = true;
    ck_assert_int_eq(append(1), STDIO_BUS_ERR);
    check_empty(&stream.queue);
    out_of_memory = false;
    ck_assert_int_eq(append(BUFFER_SMALL - 10), STDIO_BUS_OK);
    out_of_memory = true;
    ck_assert_int_eq(append(11), STDIO_BUS_ERR); /* ten of them would have fitted */
    check_pieces(8);
    ck_assert_int_eq(append(10), STDIO_BUS_OK); /* needs no memory */
    check_pieces(8);
    ck_assert_int_eq(append(1), STDIO_BUS_ERR);
    check_pieces(8);
    out_of_memory = false;
    ck_assert_int_eq(append(1), STDIO_BUS_OK);
    check_pieces(8);
}

TEST(clear_forgets_everything)
{
    queue_clear(&stream.queue, &pool);
    check_empty(&stream.queue);
    ck_assert_int_eq(append(300000), STDIO_BUS_OK);
    append_buffer(1, 5000);
    ck_assert_int_eq(append(100), STDIO_BUS_OK);
    queue_clear(&stream.queue, &pool);
    check_empty(&stream.queue);
    stream.gone = stream.come;
    ck_assert_int_eq(append(10), STDIO_BUS_OK); /* and is usable still */
    check_pieces(8);
}

TEST(short_messages_share_buffers)
{
    for (size_t i = 0; i < BUFFER_SMALL / 10; i++)
        ck_assert_int_eq(append(10), STDIO_BUS_OK);
    ck_assert_uint_eq(allocated, 1);
    while (stream.queue.bytes + 100 < BYTES_MAX)
        ck_assert_int_eq(append(100), STDIO_BUS_OK);
    /* What a long queue occupies is little more than its bytes. */
    ck_assert_uint_le(allocated, 2 + BYTES_MAX / BUFFER_LARGE);
}

TEST(steady_traffic_allocates_nothing)
{
    unsigned warm = 0;

    for (int i = 0; i < 1000; i++) {
        if (i == 10)
            warm = allocated;
        if (i > 10)
            ck_assert_uint_eq(allocated, warm);
        ck_assert_int_eq(append(100), STDIO_BUS_OK);
        ck_assert_int_eq(append(10000), STDIO_BUS_OK);
        consume(i % 2 == 0 ? 5000 : 15200);
    }
}

FIXTURE(set_up, tear_down)
