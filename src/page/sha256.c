#include "build_config.h"

#include "page/sha256.h"

#include <stdint.h>
#include <string.h>

#define BLOCK 64
#define LENGTH_BYTES 8
#define ROUNDS 64
#define WORDS 8

static const uint32_t constants[ROUNDS] = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2};

static uint32_t rotate(uint32_t word, unsigned count)
{
    return word >> count | word << (32 - count);
}

static uint32_t word_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void expand(uint32_t words[ROUNDS], const unsigned char *block)
{
    for (unsigned i = 0; i < 16; i++)
        words[i] = word_at(block + (size_t)4 * i);
    for (unsigned i = 16; i < ROUNDS; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];

        words[i] = words[i - 16] + words[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
                   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void add_block(uint32_t hash[WORDS], const unsigned char *block)
{
    uint32_t words[ROUNDS], s[WORDS];

    expand(words, block);
    memcpy(s, hash, sizeof s);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t first = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                         ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + words[i];
        uint32_t second = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                          ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

        memmove(s + 1, s, sizeof s - sizeof s[0]);
        s[4] += first;
        s[0] = first + second;
    }
    for (unsigned i = 0; i < WORDS; i++)
        hash[i] += s[i];
}

void sha256(unsigned char to[SHA256_BYTES], struct slice bytes)
{
    uint32_t hash[WORDS] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                            0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
    unsigned char last[2 * BLOCK] = {0};
    uint64_t bits = (uint64_t)bytes.len * 8;
    size_t at = 0, left = bytes.len % BLOCK, size;

    for (; at + BLOCK <= bytes.len; at += BLOCK)
        add_block(hash, (const unsigned char *)bytes.data + at);
    if (left > 0)
        memcpy(last, bytes.data + at, left);
    last[left] = 0x80;
    size = left + 1 + LENGTH_BYTES <= BLOCK ? BLOCK : sizeof last;
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        last[size - 1 - i] = (unsigned char)(bits >> 8 * i);
    for (at = 0; at < size; at += BLOCK)
        add_block(hash, last + at);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        to[i] = (unsigned char)(hash[i / 4] >> (24 - 8 * (i % 4)));
}
