/* Runs of bytes of one kind, 64 bytes at a time.
 *
 * A window holds one bit for each of 64 bytes, set where a run ends: a stop. The end of a run is
 * found with a shift and a count, without a branch that depends on the run's length. The bits are
 * made 16 at a time with SSE2 or NEON, 8 at a time elsewhere. */
#ifndef STDIO_BUS_JSON_BYTE_RUNS_H
#define STDIO_BUS_JSON_BYTE_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef const unsigned char *position;

/* --- blocks: the bytes that the machine compares at once --- */

/* A comparison makes a block whose bytes are true or false; BLOCK_BITS collects one bit of each.
 * BLOCK_BELOW compares signed numbers, and `limit` is above 0. BLOCK_INSIDE
 * and BLOCK_OUTSIDE compare unsigned ones with two ASCII limits. The second block of BLOCK_EQUAL is
 * ASCII.
 * BYTE_RUNS_PORTABLE leaves the vector instructions out; the tests use it. */

#if !defined(BYTE_RUNS_PORTABLE) && defined(__SSE2__)
#include <emmintrin.h>

typedef __m128i block;
#define BLOCK_BYTES 16
#define BLOCK_LOAD(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define BLOCK_OF(c) _mm_set1_epi8((char)(c))
#define BLOCK_OR(a, b) _mm_or_si128(a, b)
#define BLOCK_XOR(a, b) _mm_xor_si128(a, b)
#define BLOCK_WITHOUT(a, b) _mm_andnot_si128(b, a)
#define BLOCK_EQUAL(a, b) _mm_cmpeq_epi8(a, b)
#define BLOCK_BELOW(a, limit) _mm_cmplt_epi8(a, BLOCK_OF(limit))
#define BLOCK_OUTSIDE(a, low, high)                                                                \
    _mm_cmpgt_epi8(_mm_add_epi8(a, BLOCK_OF(0x80 - (low))), BLOCK_OF(-128 + (high) - (low)))
#define BLOCK_INSIDE(a, low, high)                                                                 \
    _mm_cmplt_epi8(_mm_add_epi8(a, BLOCK_OF(0x80 - (low))), BLOCK_OF(-127 + (high) - (low)))
#define BLOCK_BITS(a) ((uint64_t)_mm_movemask_epi8(a))
#define BLOCK_IS_FALSE(a) (_mm_movemask_epi8(a) == 0)

#elif !defined(BYTE_RUNS_PORTABLE) && defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>

typedef uint8x16_t block;
#define BLOCK_BYTES 16
#define BLOCK_LOAD(p) vld1q_u8(p)
#define BLOCK_OF(c) vdupq_n_u8(c)
#define BLOCK_OR(a, b) vorrq_u8(a, b)
#define BLOCK_XOR(a, b) veorq_u8(a, b)
#define BLOCK_WITHOUT(a, b) vbicq_u8(a, b)
#define BLOCK_EQUAL(a, b) vceqq_u8(a, b)
#define BLOCK_BELOW(a, limit) vcltq_s8(vreinterpretq_s8_u8(a), vdupq_n_s8(limit))
#define BLOCK_OUTSIDE(a, low, high) vcgtq_u8(vsubq_u8(a, BLOCK_OF(low)), BLOCK_OF((high) - (low)))
#define BLOCK_INSIDE(a, low, high) vcleq_u8(vsubq_u8(a, BLOCK_OF(low)), BLOCK_OF((high) - (low)))
#define BLOCK_BITS(a) block_bits(a)
#define BLOCK_IS_FALSE(a) (vmaxvq_u8(a) == 0)

static inline uint64_t block_bits(block a)
{
    static const uint8_t bit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t bits = vandq_u8(a, vld1q_u8(bit));

    return (uint64_t)vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}

#else

/* Only the high bit of each byte of a comparison counts. In the sums each byte stays within 0 to
 * 0xFF, so nothing is carried. */
typedef uint64_t block;
#define BLOCK_BYTES 8
#define BLOCK_LOAD(p) block_load(p)
#define BLOCK_OF(c) (UINT64_C(0x0101010101010101) * (uint64_t)(c))
#define BLOCK_OR(a, b) ((a) | (b))
#define BLOCK_XOR(a, b) ((a) ^ (b))
#define BLOCK_WITHOUT(a, b) ((a) & ~(b))
#define BLOCK_ASCII(a) (BLOCK_OF(0x7F) & (a))
#define BLOCK_EQUAL(a, b) (~((a) | ((BLOCK_ASCII(a) ^ (b)) + BLOCK_OF(0x7F))))
#define BLOCK_BELOW(a, limit) ((a) | ~(BLOCK_ASCII(a) + BLOCK_OF(0x80 - (limit))))
#define BLOCK_OUTSIDE(a, low, high)                                                                \
    (BLOCK_BELOW(a, low) | (BLOCK_ASCII(a) + BLOCK_OF(0x7F - (high))))
#define BLOCK_INSIDE(a, low, high) (~BLOCK_OUTSIDE(a, low, high))
#define BLOCK_BITS(a) (((BLOCK_OF(0x80) & (a)) >> 7) * UINT64_C(0x0102040810204080) >> 56)

/* The first byte lowest, whatever the machine's order. */
static inline block block_load(position p)
{
    return (block)p[0] | (block)p[1] << 8 | (block)p[2] << 16 | (block)p[3] << 24 |
           (block)p[4] << 32 | (block)p[5] << 40 | (block)p[6] << 48 | (block)p[7] << 56;
}

#endif

/* The bits of the 64 bytes at p. `kind` makes a block of the bytes at a position. */
#if BLOCK_BYTES == 16
#define BITS_16(kind, p) BLOCK_BITS(kind(p))
#else
#define BITS_16(kind, p) (BLOCK_BITS(kind(p)) | BLOCK_BITS(kind((p) + 8)) << 8)
#endif
#define BITS_64(kind, p)                                                                           \
    (BITS_16(kind, p) | BITS_16(kind, (p) + 16) << 16 | BITS_16(kind, (p) + 32) << 32 |            \
     BITS_16(kind, (p) + 48) << 48)

/* --- kinds of bytes --- */

/* Quotes, control and non-ASCII bytes. With one bit turned over, the quote is next to the control
 * bytes, and nothing else is; the non-ASCII bytes are below them, as signed numbers. */
static inline block special_block(block bytes)
{
    return BLOCK_BELOW(BLOCK_XOR(bytes, BLOCK_OF('"' ^ ' ')), ' ' + 1);
}

/* The bytes that mean something inside a string: the special ones and the backslash. */
static inline block not_plain_block(position p)
{
    block bytes = BLOCK_LOAD(p);

    return BLOCK_OR(special_block(bytes), BLOCK_EQUAL(bytes, BLOCK_OF('\\')));
}

static inline uint64_t not_plain_64(position p)
{
    return BITS_64(not_plain_block, p);
}

static inline block not_digit_block(position p)
{
    return BLOCK_OUTSIDE(BLOCK_LOAD(p), '0', '9');
}

static inline uint64_t not_digit_64(position p)
{
    return BITS_64(not_digit_block, p);
}

/* The escapes that most texts have. */
static inline bool is_usual_escape(unsigned char c)
{
    return c == 'n' || c == 't' || c == '"';
}

/* The special bytes that no backslash precedes, and the unusual ones after a backslash. Reads the
 * byte before p too. */
static inline block odd_block(position p)
{
    block bytes = BLOCK_LOAD(p), escaped = BLOCK_EQUAL(BLOCK_LOAD(p - 1), BLOCK_OF('\\'));
    block usual =
        BLOCK_OR(BLOCK_OR(BLOCK_EQUAL(bytes, BLOCK_OF('n')), BLOCK_EQUAL(bytes, BLOCK_OF('t'))),
                 BLOCK_EQUAL(bytes, BLOCK_OF('"')));

    return BLOCK_OR(BLOCK_WITHOUT(special_block(bytes), escaped), BLOCK_WITHOUT(escaped, usual));
}

static inline uint64_t odd_64(position p)
{
#if BLOCK_BYTES == 16
    block low = BLOCK_OR(odd_block(p), odd_block(p + 16));

    if (BLOCK_IS_FALSE(BLOCK_OR(low, BLOCK_OR(odd_block(p + 32), odd_block(p + 48)))))
        return 0;
#endif
    return BITS_64(odd_block, p);
}

/* --- windows --- */

#define WINDOW_BYTES 64

/* A window on the bytes from `start` to `end`. It moves on with the positions asked for. */
struct window {
    position start, end;
    uintptr_t base;    /* the address of its 64 bytes */
    position seen_end; /* the end of the bytes that it sees */
    uintptr_t last;    /* after this address digit_stops moves it first */
    uint64_t stops;    /* never set for a byte at or after `end` */
};

static inline void window_open(struct window *w, position start, position end)
{
    *w = (struct window){.start = start, .end = end};
}

/* Moves the window to the 64 bytes at p or, where fewer are left, to the last 64, or to a copy of
 * the whole input where that is shorter. */
static inline void window_move(struct window *w, position p, uint64_t (*stops_of)(position))
{
    size_t len = (size_t)(w->end - w->start);

    w->seen_end = w->end;
    if (w->end - p >= WINDOW_BYTES) {
        w->base = (uintptr_t)p;
        w->seen_end = p + WINDOW_BYTES;
        w->last = w->base + WINDOW_BYTES / 2;
        w->stops = stops_of(p);
    } else if (len >= WINDOW_BYTES) {
        w->base = (uintptr_t)(w->end - WINDOW_BYTES);
        w->last = (uintptr_t)w->end;
        w->stops = stops_of(w->end - WINDOW_BYTES);
    } else {
        unsigned char copy[WINDOW_BYTES] = {0};
        memcpy(copy, w->start, len);
        w->base = (uintptr_t)w->start;
        w->last = (uintptr_t)w->end;
        w->stops = stops_of(copy) & ((UINT64_C(1) << len) - 1);
    }
}

/* Bit i of the result is set where p[i] is not plain. p is before the end, and not before the
 * position of an earlier call. No bit set: all bytes up to w->seen_end are plain. */
static inline uint64_t plain_stops(struct window *w, position p)
{
    uint64_t stops = 0;

    if ((uintptr_t)p < (uintptr_t)w->seen_end)
        stops = w->stops >> ((uintptr_t)p - w->base);
    if (stops == 0 && w->seen_end != w->end && (uintptr_t)p != w->base) {
        window_move(w, p, not_plain_64);
        stops = w->stops >> ((uintptr_t)p - w->base);
    }
    return stops;
}

/* Bit i of the result is set where p[i] is no digit. No bit set: 32 digits, or digits up to the
 * end. A window serves either plain_stops or digit_stops. */
static inline uint64_t digit_stops(struct window *w, position p)
{
    if ((uintptr_t)p > w->last)
        window_move(w, p, not_digit_64);
    return w->stops >> ((uintptr_t)p - w->base);
}

/* The number of the lowest bit that is set in `bits`, which is not 0. */
static inline unsigned lowest_bit(uint64_t bits)
{
#if defined(__GNUC__)
    return (unsigned)__builtin_ctzll(bits);
#else
    unsigned n = 0;

    for (; (bits & 1) == 0; bits >>= 1)
        n++;
    return n;
#endif
}

#endif
