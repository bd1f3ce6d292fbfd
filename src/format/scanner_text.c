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
    __m256i quote = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('"'));
    __m256i newline = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('n'));
    __m256i tab = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('t'));
    __m256i usual = _mm256_or_si256(_mm256_or_si256(newline, tab), quote);
    __m256i turned = _mm256_xor_si256(bytes, _mm256_set1_epi8('"' ^ ' '));
    __m256i special = _mm256_cmpgt_epi8(_mm256_set1_epi8(' ' + 1), turned);

    return _mm256_blendv_epi8(special, _mm256_xor_si256(usual, escaped), escaped);
}

/* Goes over the blocks that have nothing odd. */
AVX2 static position skip_even_blocks(position p, position end)
{
    while (end - p >= WINDOW_BYTES) {
        __m256i odd = _mm256_or_si256(odd_lanes_32(p), odd_lanes_32(p + 32));

        if (!_mm256_testz_si256(odd, odd))
            break;
        p += WINDOW_BYTES;
    }
    return p;
}

static inline bool has_wide_lanes(void)
{
    return __builtin_cpu_supports("avx2");
}

#else

static inline position skip_even_blocks(position p, position end)
{
    (void)end;
    return p;
}

static inline bool has_wide_lanes(void)
{
    return false;
}

#endif

/* Goes over plain bytes and the usual escapes a block at a time, as long as whole ones are there:
 * no branch depends on where in its block an escape stands, or how many there are. The byte before
 * p is no backslash. */
static position skip_blocks(position p, position end)
{
    uint64_t odd = 0;

    if (has_wide_lanes())
        p = skip_even_blocks(p, end);
    while (odd == 0 && end - p >= WINDOW_BYTES) {
        odd = odd_64(p);
        p += odd != 0 ? lowest_bit(odd) : WINDOW_BYTES;
    }
    return p[-1] == '\\' ? p - 1 : p; /* one that is escaped itself is odd, so this one is not */
}

position scanner_text(struct scanner *s, struct input *in, position p)
{
    p = skip_plain(&in->plain, p);
    if (in->end - p <= WINDOW_BYTES || *p != '\\' || !is_usual(p[1]))
        return p;
    s->token_escaped = true;
    return skip_plain(&in->plain, skip_blocks(p + 2, in->end));
}
