/* SipHash-1-3: keyed hashing, so that a client or worker cannot choose colliding ids. */
#ifndef STDIO_BUS_BASE_SIPHASH_H
#define STDIO_BUS_BASE_SIPHASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct siphash_key {
    uint64_t k0, k1;
};

/* A key from the system's random source, or, if it fails, from time, pid and addresses, which is no
 * worse than no key. Never fails. */
struct siphash_key siphash_random_key(void);

/* The hash of `len` bytes, the same on each machine. `data` may be NULL when len is 0. */
uint64_t siphash(const struct siphash_key *key, const void *data, size_t len);

/* --- Bytes of the system's random source. --- */

/* Fills `to` with at most 256 bytes that cannot be guessed. False: the source has failed. */
bool random_bytes(void *to, size_t len);

#endif
