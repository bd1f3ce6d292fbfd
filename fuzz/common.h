/* For all fuzzers: the entry point, the report of a violation, and the parts of an input. */
#ifndef STDIO_BUS_FUZZ_COMMON_H
#define STDIO_BUS_FUZZ_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One run over one input; called by libFuzzer, by AFL++ and by replay.c. Always returns 0: a
 * violation aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts the run unless the condition holds. The rest is printed as by printf. */
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected %s: ", __FILE__, __LINE__, #condition);               \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* With FUZZ_TRACE in the environment a run prints its events: for reading a reproducer. */
static inline bool fuzz_traces(void)
{
    return getenv("FUZZ_TRACE") != NULL;
}

/* A copy of `len` bytes (1 at least is allocated) that ends where its memory ends, so that a
 * sanitizer notices reads past it. */
static inline char *fuzz_copy(const void *data, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1);

    if (copy == NULL)
        abort();
    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

/* An input as a row of choices. At its end it continues with zeros. */
struct tape {
    const uint8_t *next, *end;
};

static inline bool tape_over(const struct tape *tape)
{
    return tape->next == tape->end;
}

static inline unsigned tape_byte(struct tape *tape)
{
    return tape->next < tape->end ? *tape->next++ : 0;
}

/* 0 to count - 1. */
static inline unsigned tape_below(struct tape *tape, unsigned count)
{
    return tape_byte(tape) % count;
}

/* The sizes of the pieces that a stream is cut into, from the first two bytes of an input. A small
 * first byte is the size of all pieces; a large one bounds sizes that look random. */
struct cutter {
    size_t size;
    bool varied;
    uint32_t random;
};

#define CUTTER_BYTES 2

static inline struct cutter cutter_of(const uint8_t bytes[CUTTER_BYTES])
{
    struct cutter cutter = {bytes[0] % 128u + 1u, bytes[0] >= 128, bytes[1] + 1u};

    return cutter;
}

/* The size of the next piece: 1 to `left`, which is over 0. */
static inline size_t cutter_next(struct cutter *cutter, size_t left)
{
    size_t size = cutter->size;

    if (cutter->varied) {
        cutter->random = cutter->random * 1664525u + 1013904223u;
        size = (cutter->random >> 16) % cutter->size + 1;
    }
    return size < left ? size : left;
}

#endif
