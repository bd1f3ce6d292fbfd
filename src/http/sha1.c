#include "build_config.h"

#include "http/sha1.h"

#include <stdint.h>

#define BLOCK 64
#define LENGTH_BYTES 8

static uint32_t rotate(uint32_t word, unsigned count)
{
    return word << count | word >> (32 - count);
}

/* The function and constant of a round. */
static uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
    switch (round / 20) {
    case 0:
        return ((b & c) | (~b & d)) + UINT32_C(0x5A827999);
    case 1:
        return (b ^ c ^ d) + UINT32_C(0x6ED9EBA1);
    case 2:
        return ((b & c) | (b & d) | (c & d)) + UINT32_C(0x8F1BBCDC);
    default:
        return (b ^ c ^ d) + UINT32_C(0xCA62C1D6);
    }
}

static void add_block(uint32_t hash[5], const unsigned char block[BLOCK])
{
    uint32_t words[80], a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4], next;

    for (size_t i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 80; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        next = rotate(a, 5) + mix(i, b, c, d) + e + words[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    hash[0] += a;
    hash[1] += b;
    hash[2] += c;
    hash[3] += d;
    hash[4] += e;
}

/* The rest of the bytes, a one bit, zeros, and the length in bits: one block, or two. */
static void add_rest(uint32_t hash[5], struct slice rest, uint64_t bits)
{
    unsigned char last[2 * BLOCK] = {0};
    size_t len = rest.len < BLOCK - LENGTH_BYTES ? BLOCK : 2 * BLOCK;

    if (rest.len > 0)
        memcpy(last, rest.data, rest.len);
    last[rest.len] = 0x80;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        last[len - 1 - i] = (unsigned char)(bits >> 8 * i & 0xFF);
    for (size_t at = 0; at < len; at += BLOCK)
        add_block(hash, last + at);
}

void sha1_digest(unsigned char to[SHA1_LEN], struct slice bytes)
{
    uint32_t hash[5] = {UINT32_C(0x67452301), UINT32_C(0xEFCDAB89), UINT32_C(0x98BADCFE),
                        UINT32_C(0x10325476), UINT32_C(0xC3D2E1F0)};
    size_t at = 0;

    for (; bytes.len - at >= BLOCK; at += BLOCK)
        add_block(hash, (const unsigned char *)bytes.data + at);
    add_rest(hash, slice_of(bytes.data + at, bytes.len - at), (uint64_t)bytes.len * 8);
    for (size_t i = 0; i < SHA1_LEN; i++)
        to[i] = (unsigned char)(hash[i / 4] >> (24 - 8 * (i % 4)) & 0xFF);
}
