#include "build_config.h"

#include "format/scanner_internal.h"

#if defined(HAVE_VECTOR_FUNCTIONS) && !defined(BYTE_RUNS_PORTABLE) && !defined(BYTE_RUNS_NO_AVX2)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512bw")))

/* Sixteen values, to be looked up by four bits. */
#define BY_FOUR_BITS(...) _mm256_broadcastsi128_si256(_mm_setr_epi8(__VA_ARGS__))

/* What is usual behind a backslash, by its lower four bits; -1 is a byte that is never equal. */
#define USUAL_BY_LOW_BITS -1, -1, '"', -1, 't', -1, -1, -1, -1, -1, -1, -1, -1, -1, 'n', -1

AVX2 static inline __m256i load_32(position p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

AVX2 static inline uint64_t bits_64(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* --- UTF-8 --- */

/* What can be wrong with two bytes of UTF-8, a bit each: found by the upper half of the first, by
 * its lower half and by the upper half of the second. What all three say is so. (J. Keiser and D.
 * Lemire, "Validating UTF-8 in less than one instruction per byte", 2021) */
enum {
    TOO_SHORT = 1,   /* a lead byte, and no continuation */
    TOO_LONG = 2,    /* a continuation behind ASCII */
    OVERLONG_2 = 4,  /* of so many bytes */
    OVERLONG_3 = 8,
    OVERLONG_4 = 16, /* or above U+13FFFF, which other leads have with the same second byte */
    TOO_LARGE = 32,  /* above U+10FFFF */
    SURROGATE = 64,
    GOES_ON = -128,  /* a continuation behind another: right in three bytes and four */

    ANY = TOO_SHORT | TOO_LONG | GOES_ON,
    ANY_LARGE = ANY | TOO_LARGE | OVERLONG_4,
    NOT_SHORT = TOO_LONG | OVERLONG_2 | GOES_ON
};

/* All ones for each of the 32 bytes that is what those before it ask for. */
AVX2 static inline __m256i right_utf8_lanes(position p)
{
    const __m256i by_first_high =
        BY_FOUR_BITS(TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
                     TOO_LONG, GOES_ON, GOES_ON, GOES_ON, GOES_ON, TOO_SHORT | OVERLONG_2,
                     TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE,
                     TOO_SHORT | TOO_LARGE | OVERLONG_4);
    const __m256i by_first_low =
        BY_FOUR_BITS(ANY | OVERLONG_2 | OVERLONG_3 | OVERLONG_4, ANY | OVERLONG_2, ANY, ANY,
                     ANY | TOO_LARGE, ANY_LARGE, ANY_LARGE, ANY_LARGE, ANY_LARGE, ANY_LARGE,
                     ANY_LARGE, ANY_LARGE, ANY_LARGE, ANY_LARGE | SURROGATE, ANY_LARGE, ANY_LARGE);
    const __m256i by_second_high =
        BY_FOUR_BITS(TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
                     TOO_SHORT, NOT_SHORT | OVERLONG_3 | OVERLONG_4,
                     NOT_SHORT | OVERLONG_3 | TOO_LARGE, NOT_SHORT | SURROGATE | TOO_LARGE,
                     NOT_SHORT | SURROGATE | TOO_LARGE, TOO_SHORT, TOO_SHORT, TOO_SHORT,
                     TOO_SHORT);
    const __m256i low = _mm256_set1_epi8(0xF);
    __m256i first = load_32(p - 1), first_low = _mm256_and_si256(first, low);
    __m256i first_high = _mm256_and_si256(_mm256_srli_epi16(first, 4), low);
    __m256i second_high = _mm256_and_si256(_mm256_srli_epi16(load_32(p), 4), low);
    __m256i wrong = _mm256_and_si256(_mm256_shuffle_epi8(by_first_high, first_high),
                                     _mm256_shuffle_epi8(by_first_low, first_low));
    /* The highest bit is that of GOES_ON, and set behind the leads of as many bytes. */
    __m256i third = _mm256_subs_epu8(load_32(p - 2), _mm256_set1_epi8(0xE0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(load_32(p - 3), _mm256_set1_epi8(0xF0 - 0x80));
    __m256i goes_on =
        _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(GOES_ON));

    wrong = _mm256_and_si256(wrong, _mm256_shuffle_epi8(by_second_high, second_high));
    return _mm256_cmpeq_epi8(wrong, goes_on);
}

/* The start of the sequence that has to go on at p, or p. */
static inline position sequence_start(position p)
{
    return p - (p[-1] >= 0xC0 ? 1 : p[-2] >= 0xE0 ? 2 : p[-3] >= 0xF0 ? 3 : 0);
}

/* Looks once more at a block that has odd bytes: what is not ASCII stays odd only where it is wrong
 * or behind a backslash. Returns where to go on: at the first odd byte or the start of its
 * sequence; where none is left, behind the block or at the start of the sequence there. */
AVX2 static position end_block(position p, uint64_t *odd)
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

/* --- blocks of 64 bytes --- */

AVX2 static inline __m256i odd_lanes_32(position p)
{
    __m256i bytes = load_32(p), escaped = _mm256_cmpeq_epi8(load_32(p - 1), _mm256_set1_epi8('\\'));
    __m256i by_low_bits = BY_FOUR_BITS(USUAL_BY_LOW_BITS);
    __m256i usual = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(by_low_bits, bytes), bytes);
    __m256i turned = _mm256_xor_si256(bytes, _mm256_set1_epi8('"' ^ ' '));
    __m256i special = _mm256_cmpgt_epi8(_mm256_set1_epi8(' ' + 1), turned);

    return _mm256_blendv_epi8(special, _mm256_xor_si256(usual, escaped), escaped);
}

AVX2 static position skip_blocks_32(position p, position end, uint64_t *odd)
{
    while (end - p >= WINDOW_BYTES) {
        __m256i a = odd_lanes_32(p), b = odd_lanes_32(p + 32), both = _mm256_or_si256(a, b);

        if (_mm256_testz_si256(both, both)) {
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

/* What stands behind a backslash is told by a shift of bits, which is faster here than a second
 * load. */
AVX512 static position skip_blocks_64(position p, position end, uint64_t *odd)
{
    __m512i by_low_bits = _mm512_broadcast_i32x4(_mm_setr_epi8(USUAL_BY_LOW_BITS));
    uint64_t first_escaped = 0;

    while (end - p >= WINDOW_BYTES) {
        __m512i bytes = _mm512_loadu_si512(p);
        __m512i turned = _mm512_xor_si512(bytes, _mm512_set1_epi8('"' ^ ' '));
        uint64_t special = _mm512_cmplt_epi8_mask(turned, _mm512_set1_epi8(' ' + 1));
        uint64_t backslash = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\\'));
        uint64_t unusual =
            _mm512_cmpneq_epi8_mask(_mm512_shuffle_epi8(by_low_bits, bytes), bytes);
        uint64_t escaped = backslash << 1 | first_escaped;

        special = (special & ~escaped) | (unusual & escaped);
        if (special == 0) {
            first_escaped = backslash >> 63;
            p += WINDOW_BYTES;
            continue;
        }
        *odd = special;
        p = end_block(p, odd);
        if (*odd != 0)
            return p;
        first_escaped = p[-1] == '\\';
    }
    return p;
}

#if defined(BYTE_RUNS_NO_AVX512)
#define HAS_AVX512 0
#else /* asks for what came later: processors before slow down for vectors of 64 bytes */
#define HAS_AVX512 __builtin_cpu_supports("avx512vbmi2")
#endif

#define SKIP_BLOCKS(p, end, odd)                                                                   \
    (HAS_AVX512         ? skip_blocks_64(p, end, odd)                                              \
     : BLOCKS_KNOW_UTF8 ? skip_blocks_32(p, end, odd)                                              \
                        : skip_blocks(p, end, odd))

/* The two above judge what is not ASCII, and are the fastest for plain bytes too. */
#define BLOCKS_KNOW_UTF8 __builtin_cpu_supports("avx2")

#else
#define SKIP_BLOCKS skip_blocks
#define BLOCKS_KNOW_UTF8 false
#endif

/* Goes over plain bytes and the usual escapes a block at a time, as long as whole ones are there:
 * no branch depends on where in its block an escape stands, or how many there are. The functions
 * above do the same with what is not ASCII. Three bytes or more are there before p, and no sequence
 * has to go on at p, nor is there a backslash before it. Stops where *odd is not 0, then, at the
 * first odd byte or the start of its sequence, or before the last block that is not whole. */
static position skip_blocks(position p, position end, uint64_t *odd)
{
    for (; end - p >= WINDOW_BYTES; p += WINDOW_BYTES) {
        *odd = odd_64(p);
        if (*odd != 0)
            return p + lowest_bit(*odd);
    }
    return p;
}

/* Returns the first byte from p on that is not plain, or the end. */
static position skip_plain(struct window *w, position p)
{
    while (p < w->end) {
        uint64_t stops = plain_stops(w, p);
        if (stops != 0)
            return p + lowest_bit(stops);
        p = w->behind;
    }
    return p;
}

position scanner_text(struct scanner *s, struct input *in, position p)
{
    /* Does somebody ask whether this text has escapes? */
    bool told = s->depth == 1 && !s->token_escaped && (s->in_key || s->key != KEY_OTHER);
    bool at_once = BLOCKS_KNOW_UTF8 && !told;
    uint64_t odd = 0;

    if (at_once && p < in->end && plain_stops(&in->plain, p) == 0) {
        p = in->plain.behind;
    } else {
        p = skip_plain(&in->plain, p);
        if (in->end - p <= WINDOW_BYTES || p - in->start < 3)
            return p;
        if (*p == '\\' && is_usual(p[1])) {
            s->token_escaped = true;
            p += 2;
        } else if (!at_once || *p < 0x80 || p[-1] == '\\') {
            return p;
        }
    }
    p = SKIP_BLOCKS(p, in->end, &odd);
    if (p[-1] == '\\')
        return p - 1; /* were it escaped itself, it would be odd */
    return odd != 0 ? p : skip_plain(&in->plain, p);
}
