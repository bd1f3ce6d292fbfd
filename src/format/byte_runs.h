/* Runs of bytes of one kind, looked at 64 at a time.
 *
 * A window holds a bit for each of 64 bytes, set where the byte is not of the kind. Whatever the
 * length of a run, its end is then found with a shift and a count, without a branch that depends on
 * the length. The bits are made 16 at a time with SSE2 or NEON and 8 at a time elsewhere. */
#ifndef STDIO_BUS_FORMAT_BYTE_RUNS_H
#define STDIO_BUS_FORMAT_BYTE_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* BYTE_RUNS_PORTABLE leaves the vector instructions out, so that the other way is tested too. */
#if !defined(BYTE_RUNS_PORTABLE) && defined(__SSE2__)
#include <emmintrin.h>
#define BYTE_RUNS_SSE2 1
#elif !defined(BYTE_RUNS_PORTABLE) && defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#define BYTE_RUNS_NEON 1
#endif

#define WINDOW_BYTES 64

/* A window on the bytes from `start` to `end`; its place moves on with the asker. */
struct window {
    const unsigned char *start, *end;
    uintptr_t base; /* where its 64 bytes begin */
    const unsigned char *behind; /* the end of what is in sight */
    uintptr_t last; /* asked for digits behind this address it moves first */
    uint64_t stops; /* never set for a byte at or behind `end` */
};

static inline void window_open(struct window *w, const unsigned char *start,
                               const unsigned char *end)
{
    w->start = start;
    w->end = end;
    w->base = w->last = 0;
    w->behind = NULL;
    w->stops = 0;
}

static inline bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* 1 or 0. Without || and &&, which would be branches that nobody can predict. */
static inline unsigned is_hex_digit(unsigned char c)
{
    unsigned digit = c - (unsigned)'0', letter = (c | 0x20u) - 'a';

    return (unsigned)(digit < 10) | (unsigned)(letter < 6);
}

/* The four bytes at p. */
static inline bool are_hex_digits(const unsigned char *p)
{
    return (is_hex_digit(p[0]) & is_hex_digit(p[1]) & is_hex_digit(p[2]) & is_hex_digit(p[3])) == 1;
}

/* What usually stands behind a backslash. */
static inline bool is_usual(unsigned char c)
{
    return c == 'n' || c == 't' || c == '"';
}

/* For each kind of machine:
 *
 * not_plain_16 has a bit for each of 16 bytes, set where one means something inside a string: a
 * quote, backslash, control or non-ASCII byte. not_digit_16 is the same for what is no digit.
 *
 * odd_64 has a bit for each of 64 bytes, set where one is unusual behind a backslash, or means
 * something and does not stand behind a backslash nor is one. It looks at the byte before p too. */

#if defined(BYTE_RUNS_SSE2)

static inline __m128i load_block(const unsigned char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Quotes, control and non-ASCII bytes. With that bit turned over, the quote is next to the control
 * bytes, and nothing else is; the non-ASCII bytes are below, as signed numbers. */
static inline __m128i special_lanes(__m128i bytes)
{
    __m128i turned = _mm_xor_si128(bytes, _mm_set1_epi8('"' ^ ' '));

    return _mm_cmplt_epi8(turned, _mm_set1_epi8(' ' + 1));
}

static inline uint64_t not_plain_16(const unsigned char *p)
{
    __m128i bytes = load_block(p);
    __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));

    return (uint64_t)_mm_movemask_epi8(_mm_or_si128(special_lanes(bytes), backslash));
}

static inline __m128i odd_lanes(const unsigned char *p)
{
    __m128i bytes = load_block(p);
    __m128i escaped = _mm_cmpeq_epi8(load_block(p - 1), _mm_set1_epi8('\\'));
    __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i newline = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('n'));
    __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('t'));
    __m128i usual = _mm_or_si128(_mm_or_si128(newline, tab), quote);

    return _mm_or_si128(_mm_andnot_si128(escaped, special_lanes(bytes)),
                        _mm_andnot_si128(usual, escaped));
}

static inline uint64_t odd_64(const unsigned char *p)
{
    __m128i a = odd_lanes(p), b = odd_lanes(p + 16);
    __m128i c = odd_lanes(p + 32), d = odd_lanes(p + 48);

    if (_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d))) == 0)
        return 0;
    return (uint64_t)_mm_movemask_epi8(a) | (uint64_t)_mm_movemask_epi8(b) << 16 |
           (uint64_t)_mm_movemask_epi8(c) << 32 | (uint64_t)_mm_movemask_epi8(d) << 48;
}

static inline uint64_t not_digit_16(const unsigned char *p)
{
    /* Moved to where the digits are the lowest ten signed numbers. */
    __m128i moved = _mm_add_epi8(load_block(p), _mm_set1_epi8((char)(0x80 - '0')));

    return (uint64_t)_mm_movemask_epi8(_mm_cmpgt_epi8(moved, _mm_set1_epi8(-128 + 9)));
}

#elif defined(BYTE_RUNS_NEON)

/* One bit for each byte of `lanes`, which are all ones or all zeros. */
static inline uint64_t lane_bits(uint8x16_t lanes)
{
    static const uint8_t bit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t bits = vandq_u8(lanes, vld1q_u8(bit));

    return (uint64_t)vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}

static inline uint8x16_t special_lanes(uint8x16_t bytes)
{
    uint8x16_t turned = veorq_u8(bytes, vdupq_n_u8('"' ^ ' '));

    return vcltq_s8(vreinterpretq_s8_u8(turned), vdupq_n_s8(' ' + 1));
}

static inline uint64_t not_plain_16(const unsigned char *p)
{
    uint8x16_t bytes = vld1q_u8(p);

    return lane_bits(vorrq_u8(special_lanes(bytes), vceqq_u8(bytes, vdupq_n_u8('\\'))));
}

static inline uint8x16_t odd_lanes(const unsigned char *p)
{
    uint8x16_t bytes = vld1q_u8(p);
    uint8x16_t escaped = vceqq_u8(vld1q_u8(p - 1), vdupq_n_u8('\\'));
    uint8x16_t quote = vceqq_u8(bytes, vdupq_n_u8('"'));
    uint8x16_t newline = vceqq_u8(bytes, vdupq_n_u8('n'));
    uint8x16_t tab = vceqq_u8(bytes, vdupq_n_u8('t'));
    uint8x16_t usual = vorrq_u8(vorrq_u8(newline, tab), quote);

    return vbslq_u8(escaped, vmvnq_u8(usual), special_lanes(bytes));
}

static inline uint64_t odd_64(const unsigned char *p)
{
    uint8x16_t a = odd_lanes(p), b = odd_lanes(p + 16);
    uint8x16_t c = odd_lanes(p + 32), d = odd_lanes(p + 48);

    if (vmaxvq_u8(vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d))) == 0)
        return 0;
    return lane_bits(a) | lane_bits(b) << 16 | lane_bits(c) << 32 | lane_bits(d) << 48;
}

static inline uint64_t not_digit_16(const unsigned char *p)
{
    uint8x16_t value = vsubq_u8(vld1q_u8(p), vdupq_n_u8('0'));

    return lane_bits(vcgtq_u8(value, vdupq_n_u8(9)));
}

#else

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* The first byte lowest, whatever the machine's order. */
static inline uint64_t load_block(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

/* The high bit of each byte of `x`, gathered in the lowest byte. */
static inline uint64_t high_bits(uint64_t x)
{
    return ((x & EACH_BYTE(0x80)) >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

/* In the sums and differences below each byte stays within 0 to 0xFF, so nothing is carried. In the
 * results only the high bits of the bytes count. */
static inline uint64_t differs(uint64_t bytes, unsigned char c)
{
    return bytes | (((bytes & EACH_BYTE(0x7F)) ^ EACH_BYTE(c)) + EACH_BYTE(0x7F));
}

static inline uint64_t special_8(uint64_t bytes)
{
    uint64_t turned = (bytes ^ EACH_BYTE('"' ^ ' ')) & EACH_BYTE(0x7F);

    return bytes | ~(turned + EACH_BYTE(0x80 - (' ' + 1)));
}

static inline uint64_t not_plain_8(const unsigned char *p)
{
    uint64_t bytes = load_block(p);

    return high_bits(special_8(bytes) | ~differs(bytes, '\\'));
}

static inline uint64_t not_digit_8(const unsigned char *p)
{
    uint64_t bytes = load_block(p), ascii = bytes & EACH_BYTE(0x7F);
    uint64_t from_0 = ascii + EACH_BYTE(0x80 - '0');
    uint64_t above_9 = ascii + EACH_BYTE(0x80 - '9' - 1);

    return high_bits(bytes | ~from_0 | above_9);
}

static inline uint64_t not_plain_16(const unsigned char *p)
{
    return not_plain_8(p) | not_plain_8(p + 8) << 8;
}

static inline uint64_t not_digit_16(const unsigned char *p)
{
    return not_digit_8(p) | not_digit_8(p + 8) << 8;
}

static inline uint64_t odd_8(const unsigned char *p)
{
    uint64_t bytes = load_block(p), escaped = ~differs(load_block(p - 1), '\\');
    uint64_t unusual = differs(bytes, 'n') & differs(bytes, 't') & differs(bytes, '"');

    return high_bits((escaped & unusual) | (~escaped & special_8(bytes)));
}

static inline uint64_t odd_64(const unsigned char *p)
{
    uint64_t odd = 0;

    for (unsigned i = 0; i < 64; i += 8)
        odd |= odd_8(p + i) << i;
    return odd;
}

#endif

static inline uint64_t not_plain_64(const unsigned char *p)
{
    return not_plain_16(p) | not_plain_16(p + 16) << 16 | not_plain_16(p + 32) << 32 |
           not_plain_16(p + 48) << 48;
}

static inline uint64_t not_digit_64(const unsigned char *p)
{
    return not_digit_16(p) | not_digit_16(p + 16) << 16 | not_digit_16(p + 32) << 32 |
           not_digit_16(p + 48) << 48;
}

/* Puts the window where it sees 64 bytes from p on or, where fewer are left, the last 64, or a copy
 * of the whole input where that is shorter. */
static inline void window_move(struct window *w, const unsigned char *p,
                               uint64_t (*stops_of)(const unsigned char *))
{
    size_t len = (size_t)(w->end - w->start);

    w->behind = w->end;
    if (w->end - p >= WINDOW_BYTES) {
        w->base = (uintptr_t)p;
        w->behind = p + WINDOW_BYTES;
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

/* Bit i of the result is set where p[i] is not plain. p is before the end, and not before that of
 * an earlier call. No bit set: all bytes in sight are, which are 64 or all there are. */
static inline uint64_t plain_stops(struct window *w, const unsigned char *p)
{
    uint64_t stops = 0;

    if ((uintptr_t)p < (uintptr_t)w->behind)
        stops = w->stops >> ((uintptr_t)p - w->base);
    if (stops == 0 && w->behind != w->end && (uintptr_t)p != w->base) {
        window_move(w, p, not_plain_64);
        stops = w->stops >> ((uintptr_t)p - w->base);
    }
    return stops;
}

/* The same for digits, where several stops may be asked for: no bit set tells of 32 bytes or all
 * there are. A window is for one kind only. */
static inline uint64_t digit_stops(struct window *w, const unsigned char *p)
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
