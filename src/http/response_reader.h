/* Reads the responses of an HTTP/1.1 server (RFC 9112), for the client side: bytes in, in pieces of
 * any size, and heads and pieces of bodies out. No I/O, no clock, no memory of its own. */
#ifndef STDIO_BUS_HTTP_RESPONSE_READER_H
#define STDIO_BUS_HTTP_RESPONSE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "http/chunked.h"

#define HTTP_RESPONSE_HEAD_MAX 16384 /* bytes of the status line and all fields */

enum http_response_status {
    HTTP_RESPONSE_MORE,     /* all bytes were taken; more are needed */
    HTTP_RESPONSE_HEAD,     /* the head of the response is whole */
    HTTP_RESPONSE_BODY,     /* a piece of its body */
    HTTP_RESPONSE_END,      /* the response is over */
    HTTP_RESPONSE_MALFORMED /* reader->problem; the connection cannot be used any more */
};

/* Zeroed: ready for the first response. */
struct http_response_reader {
    /* Valid from HTTP_RESPONSE_HEAD until the call after HTTP_RESPONSE_END: */
    unsigned status;
    bool keep_alive;     /* the connection stays open after this response */
    struct slice reason; /* the words after the status */
    const char *problem; /* static text */
    /* The rest belongs to response_reader.c. */
    unsigned char part;   /* what the next byte belongs to */
    bool ends_with_close; /* the end of the connection is that of the body */
    bool begun;           /* a byte of the response has come */
    uint32_t head_len;
    uint32_t fields_start;
    uint64_t left; /* bytes of a body with a length */
    struct chunked_reader chunks;
    char head[HTTP_RESPONSE_HEAD_MAX];
};

/* Takes bytes from the front of *bytes. After HTTP_RESPONSE_BODY, *body is the piece, which points
 * into the bytes that were given and is never empty. Responses with a status of 100 to 199 are
 * skipped, but 101 is malformed: no upgrade was asked for. */
enum http_response_status http_response_next(struct http_response_reader *reader,
                                             struct slice *bytes, struct slice *body);

/* The connection has ended: HTTP_RESPONSE_END if that is the end of the body, MORE if no byte of a
 * response had come, MALFORMED if the response is cut. */
enum http_response_status http_response_close(struct http_response_reader *reader);

/* The value of the first field of this name (in lower case), without the spaces around it; data
 * NULL: there is none. Points into the reader. */
struct slice http_response_field(const struct http_response_reader *reader, const char *name);

/* Whether the Content-Type is this, whatever its parameters; lower case. */
bool http_response_is(const struct http_response_reader *reader, const char *type);

#endif
