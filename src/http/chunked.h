/* The chunked transfer coding (RFC 9112, 7.1): a resumable reader of everything but the data. */
#ifndef STDIO_BUS_HTTP_CHUNKED_H
#define STDIO_BUS_HTTP_CHUNKED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define CHUNKED_EXTRA_MAX 16384 /* bytes of extensions and trailers of one body together */

/* Zeroed: before the first chunk. */
struct chunked_reader {
    uint64_t left;  /* bytes of data of the current chunk that were not taken yet */
    uint32_t extra; /* bytes of extensions and trailers */
    uint8_t state;
    uint8_t digits; /* of the size */
    bool loose;     /* the caller's, as a client reads a server: a line may end with a line feed
                     * alone, blanks may follow a size, extensions and trailers are any text, and
                     * each chunk may have CHUNKED_EXTRA_MAX of an extension */
};

enum chunked_status {
    CHUNKED_MORE, /* all bytes were read */
    CHUNKED_DATA, /* the next byte is data: chunks->left of it */
    CHUNKED_END,  /* the body is over */
    CHUNKED_BAD   /* malformed */
};

/* Reads what precedes data, or the end. *consumed: how many bytes. With CHUNKED_DATA, the caller
 * takes bytes of data and subtracts them from chunks->left. */
enum chunked_status chunked_read(struct chunked_reader *chunks, struct slice input,
                                 size_t *consumed);

/* --- writing --- */

#define CHUNK_HEAD_MAX 20 /* bytes */
#define CHUNK_TAIL "\r\n" /* after the data of a chunk */
#define CHUNKED_LAST "0\r\n\r\n"

/* Writes the head of a chunk of `len` bytes, which are not 0. Returns its length. */
size_t chunk_write_head(char to[CHUNK_HEAD_MAX], size_t len);

#endif
