#include "build_config.h"

#include "format/scanner_internal.h"

#if defined(HAVE_AVX2_FUNCTIONS) && !defined(BYTE_RUNS_PORTABLE) && !defined(BYTE_RUNS_NO_AVX2)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i odd_lanes_32(const unsigned char *p)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i before = _mm256_loadu_si256((const __m256i *)(const void *)(p - 1));
    __m256i escaped = _mm256_cmpeq_epi8(before, _mm256_set1_epi8('\\'));
    /* What is usual, by its lower four bits; -1 is a byte that is never equal. */
    __m256i by_low_bits = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-1, -1, '"', -1, 't', -1, -1, -1, -1, -1, -1, -1, -1, -1, 'n', -1));
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

#define SKIP_BLOCKS(p, end, odd)                                                                   \
    (__builtin_cpu_supports("avx2") ? skip_blocks_32(p, end, odd) : skip_blocks(p, end, odd))

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

    p = skip_plain(&in->plain, p);
    if (in->end - p <= WINDOW_BYTES || *p != '\\' || !is_usual(p[1]))
        return p;
    s->token_escaped = true;
    p = SKIP_BLOCKS(p + 2, in->end, &odd);
    if (p[-1] == '\\')
        return p - 1; /* were it escaped itself, it would be odd */
    return odd != 0 ? p : skip_plain(&in->plain, p);
}
