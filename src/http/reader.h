/* HTTP/1.1 as a framing, at the server's side: heads of requests, and the bodies after them, each
 * in one piece (RFC 9112). */
#ifndef STDIO_BUS_HTTP_READER_H
#define STDIO_BUS_HTTP_READER_H

#include "framing/batch.h"
#include "framing/frame.h"
#include "http/chunked.h"
#include "http/head.h"

/* Of a body that is not wanted, this number of bytes is skipped; after a longer one the connection
 * closes. */
#define HTTP_SKIPPED_MAX 65536

/* What a frame is. */
enum http_part {
    HTTP_PART_HEAD, /* a frame: the head, its empty line included. reader->head describes it */
    HTTP_PART_BODY, /* a frame: the whole body, or one member of a batch */
    HTTP_PART_END   /* noted: the batch is over */
};

/* framing_state.reader of framing_http. It belongs to the owner of the connection, who zeroes it
 * before the connection opens, and reads it in the callbacks of the connection. It stays as it is
 * until the framing is asked for the next frame, also while the connection is paused. */
struct http_reader {
    enum http_part part;
    struct http_head head;
    bool closes;   /* the connection cannot continue after the answer to this message: say so
                    * (Connection: close), and linger. Set with the head, or by a fault */
    bool in_batch; /* the body is an array: HTTP_PART_BODY is one of its members */
    int status;    /* of the answer, in malformed and refused: 400, 413, 414, 417, 431, 501, 505; or
                    * 408 where the message did not come in time, or was cut */

    /* The owner's, through the functions below. */
    bool skips, takes_batch;
    /* The framing's own. */
    bool has_body; /* a head was given, and its body comes */
    struct chunked_reader chunks;
    size_t clean;         /* bytes of the body at the front of the input, */
    size_t gap;           /* and bytes after them that are done with */
    uint64_t timed;       /* bytes of it that were here when its time began */
    bool is_over, is_bad; /* the chunks; is_over also of a batch */
    bool is_array;
    struct batch_reader batch;
};

/* For connection_handler->frame with HTTP_PART_HEAD: the body is not wanted. It is skipped unless
 * it is longer than HTTP_SKIPPED_MAX, or chunked: then reader->closes is set now. Does nothing
 * where there is no body. */
void http_reader_skip_body(struct http_reader *reader);

/* The same: the body may be an array of messages. Each is a frame then, after which comes
 * HTTP_PART_END to connection_handler->noted. Nothing is given before the array is whole and good;
 * an array longer than a message may be is refused (413), as any array is without this (400). */
void http_reader_take_batch(struct http_reader *reader);

/* Requests. FRAME_WHOLE is a head, then, if it has a body that is not skipped, the body; JSON is
 * checked by state->check as it arrives. One request may follow another at once: the owner pauses
 * in `frame` of a head while it owes an answer, and is offered the head again.
 *
 * FRAME_MALFORMED: answer with reader->status and linger. FRAME_REFUSED: the body is no JSON
 * (status 400) or too long (413); answer, and the connection continues unless reader->closes: the
 * rest of the body is skipped. Both come in place of the frame that they are about. A head or body
 * that does not come in time is malformed, with status 408: HTTP_HEAD_MS for a head,
 * frame_timeout_sec without a byte for a body.
 *
 * Chunked bodies lose their chunk heads in place. Leading empty lines before a head are skipped.
 * What is sent to the connection is not framed: connection_send_parts, connection_send_bytes. */
extern const struct framing framing_http;

#define HTTP_HEAD_MS 10000

/* Saves a reader that has stopped at any byte, or loads it. `head`: the bytes of the head that the
 * owner has; len 0: it has none. */
struct archive;
void http_reader_archive(struct archive *archive, struct http_reader *reader, struct slice head);

#endif
