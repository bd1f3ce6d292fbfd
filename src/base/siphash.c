#include "build_config.h"

#include "base/siphash.h"

#include <fcntl.h>
#ifdef HAVE_SYS_RANDOM_H
#include <sys/random.h> /* getentropy of macOS and glibc; the BSDs have it in unistd.h */
#endif
#include <time.h>
#include <unistd.h>

bool random_bytes(void *to, size_t len)
{
#ifdef HAVE_GETENTROPY
    if (getentropy(to, len) == 0)
        return true;
#endif
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return false;
    got = read(fd, to, len);
    close(fd);
    return got == (ssize_t)len;
}

struct sip_state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline void sip_round(struct sip_state *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

/* Little-endian on each machine, since nodes compare hashes (nats/link_stream.c,
 * federation/place_text.c). Compilers make one load of it where they can. */
static inline uint64_t load_word(const unsigned char *from)
{
    return (uint64_t)from[0] | (uint64_t)from[1] << 8 | (uint64_t)from[2] << 16 |
           (uint64_t)from[3] << 24 | (uint64_t)from[4] << 32 | (uint64_t)from[5] << 40 |
           (uint64_t)from[6] << 48 | (uint64_t)from[7] << 56;
}

uint64_t siphash(const struct siphash_key *key, const void *data, size_t len)
{
    const unsigned char *at = data;
    struct sip_state s = {
        key->k0 ^ UINT64_C(0x736f6d6570736575), key->k1 ^ UINT64_C(0x646f72616e646f6d),
        key->k0 ^ UINT64_C(0x6c7967656e657261), key->k1 ^ UINT64_C(0x7465646279746573)};
    uint64_t word, last = (uint64_t)len << 56;
    size_t left = len;

    for (; left >= 8; left -= 8, at += 8) {
        word = load_word(at);
        s.v3 ^= word;
        sip_round(&s);
        s.v0 ^= word;
    }
    while (left-- > 0) /* at most seven times; a call of memcpy takes longer */
        last ^= (uint64_t)at[left] << 8 * left;
    s.v3 ^= last;
    sip_round(&s);
    s.v0 ^= last;
    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

struct siphash_key siphash_random_key(void)
{
    struct siphash_key key = {0, 0};
    struct timespec now;

    if (random_bytes(&key, sizeof key))
        return key;
    clock_gettime(CLOCK_REALTIME, &now);
    key.k0 = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid();
    key.k1 = (uint64_t)(uintptr_t)&key ^ key.k0 * UINT64_C(0x9e3779b97f4a7c15);
    return key;
}
