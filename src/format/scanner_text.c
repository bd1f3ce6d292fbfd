#include "build_config.h"

#include "format/scanner_internal.h"

#if defined(HAVE_VECTOR_FUNCTIONS) && !defined(BYTE_RUNS_PORTABLE) && !defined(BYTE_RUNS_NO_AVX2)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512bw")))

/* What is usual behind a backslash, by its lower four bits; -1 is a byte that is never equal. */
#define USUAL_BY_LOW_BITS                                                                          \
    _mm_setr_epi8(-1, -1, '"', -1, 't', -1, -1, -1, -1, -1, -1, -1, -1, -1, 'n', -1)

AVX2 static inline __m256i odd_lanes_32(const unsigned char *p)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i before = _mm256_loadu_si256((const __m256i *)(const void *)(p - 1));
    __m256i escaped = _mm256_cmpeq_epi8(before, _mm256_set1_epi8('\\'));
    __m256i by_low_bits = _mm256_broadcastsi128_si256(USUAL_BY_LOW_BITS);
    __m256i usual = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(by_low_bits, bytes), bytes);
    __m256i turned = _mm256_xor_si256(bytes, _mm256_set1_epi8('"' ^ ' '));
    __m256i special = _mm256_cmpgt_epi8(_mm256_set1_epi8(' ' + 1), turned);

    return _mm256_blendv_epi8(special, _mm256_xor_si256(usual, escaped), escaped);
}

AVX2 static position skip_blocks_32(position p, position end, uint64_t *odd)
{
    for (; end - p >= WINDOW_BYTES; p += WINDOW_BYTES) {
        __m256i a = odd_lanes_32(p), b = odd_lanes_32(p + 32), both = _mm256_or_si256(a, b);

        if (_mm256_testz_si256(both, both))
            continue;
        *odd = (uint32_t)_mm256_movemask_epi8(a);
        *odd |= (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
        return p + lowest_bit(*odd);
    }
    return p;
}

/* What stands behind a backslash is told by a shift of bits, which is faster here than a second
 * load. */
AVX512 static position skip_blocks_64(position p, position end, uint64_t *odd)
{
    __m512i by_low_bits = _mm512_broadcast_i32x4(USUAL_BY_LOW_BITS);
    uint64_t first_escaped = 0;

    for (; end - p >= WINDOW_BYTES; p += WINDOW_BYTES) {
        __m512i bytes = _mm512_loadu_si512(p);
        __m512i turned = _mm512_xor_si512(bytes, _mm512_set1_epi8('"' ^ ' '));
        uint64_t special = _mm512_cmplt_epi8_mask(turned, _mm512_set1_epi8(' ' + 1));
        uint64_t backslash = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\\'));
        uint64_t unusual =
            _mm512_cmpneq_epi8_mask(_mm512_shuffle_epi8(by_low_bits, bytes), bytes);
        uint64_t escaped = backslash << 1 | first_escaped;

        special = (special & ~escaped) | (unusual & escaped);
        if (special != 0) {
            *odd = special;
            return p + lowest_bit(special);
        }
        first_escaped = backslash >> 63;
    }
    return p;
}

#if defined(BYTE_RUNS_NO_AVX512)
#define HAS_AVX512 0
#else /* asks for what came later: processors before slow down for vectors of 64 bytes */
#define HAS_AVX512 __builtin_cpu_supports("avx512vbmi2")
#endif

#define SKIP_BLOCKS(p, end, odd)                                                                   \
    (HAS_AVX512                       ? skip_blocks_64(p, end, odd)                                \
     : __builtin_cpu_supports("avx2") ? skip_blocks_32(p, end, odd)                                \
                                      : skip_blocks(p, end, odd))

#else
#define SKIP_BLOCKS skip_blocks
#endif

/* Goes over plain bytes and the usual escapes a block at a time, as long as whole ones are there:
 * no branch depends on where in its block an escape stands, or how many there are. The byte before
 * p is no backslash. Stops at the first byte that is odd, and *odd is not 0 then. */
static position skip_blocks(position p, position end, uint64_t *odd)
{
    for (; end - p >= WINDOW_BYTES; p += WINDOW_BYTES) {
        *odd = odd_64(p);
        if (*odd != 0)
            return p + lowest_bit(*odd);
    }
    return p;
}

position scanner_text(struct scanner *s, struct input *in, position p)
{
    uint64_t odd = 0;

    /* Nobody asks whether a text below the top level has escapes: straight to the blocks. */
    if (s->depth > 1 && p < in->end && plain_stops(&in->plain, p) == 0) {
        p = in->plain.behind;
    } else {
        p = skip_plain(&in->plain, p);
        if (in->end - p <= WINDOW_BYTES || *p != '\\' || !is_usual(p[1]))
            return p;
        s->token_escaped = true;
        p += 2;
    }
    p = SKIP_BLOCKS(p, in->end, &odd);
    if (p[-1] == '\\')
        return p - 1; /* were it escaped itself, it would be odd */
    return odd != 0 ? p : skip_plain(&in->plain, p);
}
