#include "build_config.h"

#include "json/scanner_text.h"

#if defined(HAVE_VECTOR_FUNCTIONS) && !defined(BYTE_RUNS_PORTABLE) && !defined(BYTE_RUNS_NO_AVX2)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))

/* Sixteen values, looked up by four bits. */
#define BY_FOUR_BITS(...) _mm256_broadcastsi128_si256(_mm_setr_epi8(__VA_ARGS__))

AVX2 static inline __m256i load_32(position p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

AVX2 static inline uint64_t bits_64(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* --- UTF-8 --- */

/* The errors that two bytes of UTF-8 can show, a bit each. The upper half of the first byte, its
 * lower half and the upper half of the second byte each allow some of them; an error that all three
 * allow is there. (J. Keiser and D. Lemire, "Validating UTF-8 in less than one instruction per
 * byte", 2021) */
enum {
    TOO_SHORT = 1,  /* a lead byte without a continuation */
    TOO_LONG = 2,   /* a continuation after ASCII */
    OVERLONG_2 = 4, /* in a sequence of this number of bytes */
    OVERLONG_3 = 8,
    OVERLONG_4 = 16, /* or above U+13FFFF, where other leads have the same second byte */
    TOO_LARGE = 32,  /* above U+10FFFF */
    SURROGATE = 64,
    GOES_ON = -128, /* a continuation after another: right in sequences of three and four */

    ANY = TOO_SHORT | TOO_LONG | GOES_ON,
    ANY_LARGE = ANY | TOO_LARGE | OVERLONG_4,
    NOT_SHORT = TOO_LONG | OVERLONG_2 | GOES_ON
};

/* All ones for each of the 32 bytes that may follow the bytes before it. */
AVX2 static inline __m256i right_utf8_lanes(position p)
{
    const __m256i by_first_high =
        BY_FOUR_BITS(TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
                     GOES_ON, GOES_ON, GOES_ON, GOES_ON, TOO_SHORT | OVERLONG_2, TOO_SHORT,
                     TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | OVERLONG_4);
    const __m256i by_first_low =
        BY_FOUR_BITS(ANY | OVERLONG_2 | OVERLONG_3 | OVERLONG_4, ANY | OVERLONG_2, ANY, ANY,
                     ANY | TOO_LARGE, ANY_LARGE, ANY_LARGE, ANY_LARGE, ANY_LARGE, ANY_LARGE,
                     ANY_LARGE, ANY_LARGE, ANY_LARGE, ANY_LARGE | SURROGATE, ANY_LARGE, ANY_LARGE);
    const __m256i by_second_high =
        BY_FOUR_BITS(TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
                     TOO_SHORT, NOT_SHORT | OVERLONG_3 | OVERLONG_4,
                     NOT_SHORT | OVERLONG_3 | TOO_LARGE, NOT_SHORT | SURROGATE | TOO_LARGE,
                     NOT_SHORT | SURROGATE | TOO_LARGE, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT);
    const __m256i low = _mm256_set1_epi8(0xF);
    __m256i first = load_32(p - 1), first_low = _mm256_and_si256(first, low);
    __m256i first_high = _mm256_and_si256(_mm256_srli_epi16(first, 4), low);
    __m256i second_high = _mm256_and_si256(_mm256_srli_epi16(load_32(p), 4), low);
    __m256i wrong = _mm256_and_si256(_mm256_shuffle_epi8(by_first_high, first_high),
                                     _mm256_shuffle_epi8(by_first_low, first_low));
    /* The highest bit is that of GOES_ON. It is set after the leads of three and four bytes. */
    __m256i third = _mm256_subs_epu8(load_32(p - 2), _mm256_set1_epi8(0xE0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(load_32(p - 3), _mm256_set1_epi8(0xF0 - 0x80));
    __m256i goes_on = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(GOES_ON));

    wrong = _mm256_and_si256(wrong, _mm256_shuffle_epi8(by_second_high, second_high));
    return _mm256_cmpeq_epi8(wrong, goes_on);
}

/* The start of the sequence that is not complete at p, or p. */
static inline position sequence_start(position p)
{
    return p - (p[-1] >= 0xC0 ? 1 : p[-2] >= 0xE0 ? 2 : p[-3] >= 0xF0 ? 3 : 0);
}

/* Looks again at 64 bytes of which some are odd: a non-ASCII byte stays odd only where it is wrong
 * or after a backslash. Returns the first odd byte or the start of its sequence. With no odd byte
 * left, returns the end of the 64 bytes or the start of the sequence there. Not inlined: its tables
 * would take the registers of skip_blocks_32. */
__attribute__((noinline)) AVX2 static position end_block(position p, uint64_t *odd)
{
    const __m256i backslash = _mm256_set1_epi8('\\');
    uint64_t escaped = bits_64(_mm256_cmpeq_epi8(load_32(p - 1), backslash),
                               _mm256_cmpeq_epi8(load_32(p + 31), backslash));
    uint64_t not_ascii = bits_64(load_32(p), load_32(p + 32)) & ~escaped;

    if ((not_ascii >> lowest_bit(*odd) & 1) == 0)
        return p + lowest_bit(*odd);
    *odd &= ~not_ascii;
    *odd |= ~bits_64(right_utf8_lanes(p), right_utf8_lanes(p + 32));
    return sequence_start(*odd != 0 ? p + lowest_bit(*odd) : p + WINDOW_BYTES);
}

/* --- 64 bytes at a time --- */

/* The highest bit of each byte is set where it is odd, as in odd_block. */
AVX2 static inline __m256i odd_lanes_32(position p)
{
    __m256i bytes = load_32(p), escaped = _mm256_cmpeq_epi8(load_32(p - 1), _mm256_set1_epi8('\\'));
    /* The usual escapes, by their lower four bits; -1 is equal to no byte. */
    __m256i by_low_bits = BY_FOUR_BITS(-1, -1, '"', -1, 't', -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                       'n', -1);
    __m256i usual = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(by_low_bits, bytes), bytes);
    __m256i turned = _mm256_xor_si256(bytes, _mm256_set1_epi8('"' ^ ' '));
    __m256i special = _mm256_subs_epi8(turned, _mm256_set1_epi8(' ' + 1));

    return _mm256_or_si256(_mm256_andnot_si256(escaped, special),
                           _mm256_andnot_si256(usual, escaped));
}

AVX2 static position skip_blocks_32(position p, position end, uint64_t *odd)
{
    while (end - p >= WINDOW_BYTES) {
        __m256i a = odd_lanes_32(p), b = odd_lanes_32(p + 32);

        if (_mm256_testz_si256(_mm256_or_si256(a, b), _mm256_set1_epi8(-128))) {
            p += WINDOW_BYTES;
            continue;
        }
        *odd = bits_64(a, b);
        p = end_block(p, odd);
        if (*odd != 0)
            return p;
    }
    return p;
}

#define HAS_AVX2 __builtin_cpu_supports("avx2")
#define SKIP_BLOCKS(p, end, odd) (HAS_AVX2 ? skip_blocks_32(p, end, odd) : skip_blocks(p, end, odd))

#else
#define HAS_AVX2 false
#define SKIP_BLOCKS skip_blocks
#endif

/* Skips plain bytes and the usual escapes, 64 bytes at a time as long as so many are there. No
 * branch depends on the place or number of the escapes. The AVX2 version skips valid UTF-8 as well.
 * At least three bytes precede p, the last of them no backslash and no part of an incomplete
 * sequence. Where *odd becomes other than 0, returns the first odd byte or the start of its
 * sequence; otherwise less than 64 bytes are left. */
static position skip_blocks(position p, position end, uint64_t *odd)
{
    for (; end - p >= WINDOW_BYTES; p += WINDOW_BYTES) {
        *odd = odd_64(p);
        if (*odd != 0)
            return p + lowest_bit(*odd);
    }
    return p;
}

/* The first byte from p on that is not plain, or the end. */
static position skip_plain(struct window *w, position p)
{
    while (p < w->end) {
        uint64_t stops = plain_stops(w, p);
        if (stops != 0)
            return p + lowest_bit(stops);
        p = w->seen_end;
    }
    return p;
}

position scanner_text(struct window *w, position p, bool exact, bool *escaped)
{
    /* With AVX2 the blocks judge UTF-8 too, and are the fastest for plain bytes. */
    bool at_once = HAS_AVX2 && !exact;
    uint64_t odd = 0;

    if (at_once && p < w->end && plain_stops(w, p) == 0) {
        p = w->seen_end;
    } else {
        p = skip_plain(w, p);
        if (w->end - p <= WINDOW_BYTES || p - w->start < 3)
            return p;
        if (*p == '\\' && is_usual_escape(p[1])) {
            *escaped = true;
            p += 2;
        } else if (!at_once || *p < 0x80 || p[-1] == '\\') {
            return p;
        }
    }
    p = SKIP_BLOCKS(p, w->end, &odd);
    if (p[-1] == '\\')
        return p - 1; /* an escaped backslash would be odd */
    return odd != 0 ? p : skip_plain(w, p);
}
