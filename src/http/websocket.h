/* WebSocket frames (RFC 6455, section 5) as a framing: one text message is one body. */
#ifndef STDIO_BUS_HTTP_WEBSOCKET_H
#define STDIO_BUS_HTTP_WEBSOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/utf8.h"
#include "framing/frame.h"

/* --- What is sent over a WebSocket, and the keys of its opening handshake (RFC 6455). --- */

#define WEBSOCKET_CONTROL_MAX 125 /* bytes of data in a control frame */
#define WEBSOCKET_HEAD_MAX 14
#define WEBSOCKET_MASK_LEN 4
#define WEBSOCKET_ACCEPT_LEN 28

enum websocket_opcode {
    WEBSOCKET_CONTINUATION = 0,
    WEBSOCKET_TEXT = 1,
    WEBSOCKET_BINARY = 2,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING = 9,
    WEBSOCKET_PONG = 10
};

enum websocket_code {
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_GOING_AWAY = 1001,
    WEBSOCKET_PROTOCOL_ERROR = 1002,
    WEBSOCKET_UNSUPPORTED = 1003, /* data of this type */
    WEBSOCKET_NO_CODE = 1005,     /* never sent: a CLOSE without a code */
    WEBSOCKET_INVALID_DATA = 1007,
    WEBSOCKET_POLICY = 1008,
    WEBSOCKET_TOO_BIG = 1009,
    WEBSOCKET_INTERNAL = 1011,
    WEBSOCKET_TRY_LATER = 1013
};

/* --- frames --- */

/* Writes the head of a final frame of `len` bytes; returns its length. `mask`: what a client's
 * frame needs (four random bytes), to be applied to the data by websocket_mask; NULL: none. */
size_t websocket_write_head(char to[WEBSOCKET_HEAD_MAX], enum websocket_opcode opcode, uint64_t len,
                            const unsigned char *mask);

/* Masks or unmasks `len` bytes, of which the first is number `at` of its frame. */
void websocket_mask(char *data, size_t len, const unsigned char mask[WEBSOCKET_MASK_LEN],
                    uint64_t at);

/* A whole control frame of a server; `data` is at most WEBSOCKET_CONTROL_MAX bytes. Returns its
 * length. */
size_t websocket_write_control(char to[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX],
                               enum websocket_opcode opcode, struct slice data);

/* A CLOSE of a server with this code (WEBSOCKET_NO_CODE: none, and no reason) and the reason, ASCII
 * that is cut where it does not fit. */
size_t websocket_write_close(char to[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX], unsigned code,
                             const char *reason);

/* Whether a CLOSE may have this code on the wire. */
bool websocket_code_valid(unsigned code);

/* --- the opening handshake --- */

/* Whether the value of Sec-WebSocket-Key is the base64 of 16 bytes. */
bool websocket_key_valid(struct slice key);

/* The value of Sec-WebSocket-Accept for such a key. */
void websocket_accept(char to[WEBSOCKET_ACCEPT_LEN], struct slice key);

/* --- The head of a WebSocket frame that is read (RFC 6455, 5.2). --- */

struct websocket_head {
    enum websocket_opcode opcode;
    bool is_final;
    unsigned char mask[WEBSOCKET_MASK_LEN]; /* zeros of a frame that is not masked */
    uint64_t len;                           /* bytes of the data */
};

enum websocket_head_status { WEBSOCKET_HEAD_MORE, WEBSOCKET_HEAD_WHOLE, WEBSOCKET_HEAD_BAD };

static inline bool websocket_is_control(enum websocket_opcode opcode)
{
    return opcode >= WEBSOCKET_CLOSE;
}

/* framing_state.reader of framing_websocket. It belongs to the owner of the connection, and is read
 * in the callbacks of the connection. */
struct websocket_reader {
    bool is_client; /* the owner's, before the framing begins: the peer is the server, which sends
                     * without masks */

    /* In connection_handler->noted: a control frame came, perhaps between the fragments of a
     * message. A PING wants a PONG with the same data, a CLOSE wants a CLOSE with the same code.
     * After a CLOSE nothing more is read: send the reply and linger. */
    enum websocket_opcode opcode;
    unsigned char control_len;
    char control[WEBSOCKET_CONTROL_MAX]; /* of a CLOSE: two bytes of code, and the reason */
    unsigned code;                       /* of the CLOSE; WEBSOCKET_NO_CODE: it has none */

    /* In malformed and refused: the code to close with. */
    unsigned fault_code;

    /* The framing's own. */
    bool in_message; /* a message has begun and is not whole */
    bool in_frame;   /* so has a frame of it: */
    bool is_whole;   /* the message is */
    bool is_refused; /* the rest of the message is skipped */
    bool has_note, has_failed, is_closed;
    bool skips_utf8;       /* the rest of a refused message is not looked at */
    struct utf8_rest utf8; /* in a message that was refused */
    struct websocket_head frame;
    uint64_t frame_left; /* bytes of its data that were not taken yet */
    uint64_t total;      /* bytes of the message so far */
    uint64_t dropped;    /* of them, by a cut */
    uint64_t timed;
    size_t clean; /* bytes of the message at the front of the input, */
    size_t gap;   /* and bytes after them that are done with */
    size_t rest;  /* and bytes after those that are too few for a head or a control frame */
    enum websocket_code failed_code;
    const char *problem;
};

/* FRAME_WHOLE is a text message, unmasked and in one piece, of which JSON is checked by
 * state->check as it arrives. FRAME_NOTED is a control frame. FRAME_REFUSED: the message is no JSON
 * object (fault_code WEBSOCKET_INVALID_DATA, for an owner who closes then); the rest of it is
 * skipped, and the stream continues. FRAME_MALFORMED: send a CLOSE with fault_code, and linger:
 *   1002  a breach of the framing
 *   1003  a binary message
 *   1007  a message, or the reason of a CLOSE, that is not UTF-8
 *   1008  the rest of a frame or message did not come in time
 *   1009  a message that is too long
 * A message is as long as state->max_body and max_long allow; frames of any number and length make
 * it up. The time of a message begins again where it makes progress (http/event_log.h).
 *
 * The prefix is the head of an unmasked text frame: what a server sends. */
extern const struct framing framing_websocket;

/* Saves a reader that has stopped at any byte, or loads it. */
struct archive;
void websocket_reader_archive(struct archive *archive, struct websocket_reader *reader);

#endif
