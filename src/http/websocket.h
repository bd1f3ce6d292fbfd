/* WebSocket frames (RFC 6455, section 5) as a framing: one text message is one body. */
#ifndef STDIO_BUS_HTTP_WEBSOCKET_H
#define STDIO_BUS_HTTP_WEBSOCKET_H

#include "framing/frame.h"

#define WEBSOCKET_CONTROL_MAX 125 /* bytes of data in a control frame */
#define WEBSOCKET_HEAD_MAX 14
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
    WEBSOCKET_NO_CODE = 1005,     /* never sent: a close frame without a code */
    WEBSOCKET_INVALID_DATA = 1007,
    WEBSOCKET_POLICY = 1008,
    WEBSOCKET_TOO_BIG = 1009,
    WEBSOCKET_INTERNAL = 1011,
    WEBSOCKET_TRY_LATER = 1013
};

/* framing_state.reader of framing_websocket. It belongs to the owner of the connection, who zeroes
 * it, and reads it in the callbacks of the connection. */
struct websocket_reader {
    bool is_client; /* the owner's: the peer is the server, and sends without masks */

    /* In connection_handler->noted: a control frame came, perhaps between the fragments of a
     * message. To a PING answer with a PONG of the same data, to a CLOSE with a CLOSE of the same
     * code (none: WEBSOCKET_NO_CODE). After a CLOSE nothing more is read: linger. */
    enum websocket_opcode opcode;
    unsigned char control_len;
    char control[WEBSOCKET_CONTROL_MAX]; /* of a CLOSE: the code's two bytes, and the reason */
    unsigned code;                       /* of the peer's CLOSE */

    /* In malformed and refused: the code to close with. WEBSOCKET_POLICY: the rest of a message did
     * not come in time. */
    unsigned fault_code;

    /* The framing's own. */
    bool in_message; /* a message has begun and is not whole */
    bool finned;     /* the frame at hand is its last */
    bool noting, failed, closed, refused, has_frame, unannounced;
    unsigned char mask[4];
    unsigned char utf8[3]; /* of a sequence that is cut, in a message that was refused */
    unsigned char mask_at;
    uint64_t frame_left; /* bytes of the payload of the frame at hand */
    size_t clean;        /* bytes of the message at the front of the input, */
    size_t gap;          /* and bytes after them that are done with */
    const char *problem;
};

/* FRAME_WHOLE is a text message, unmasked and in one piece; JSON is checked by state->check as it
 * arrives. FRAME_NOTED is a control frame. FRAME_REFUSED: the message is no JSON object
 * (fault_code WEBSOCKET_INVALID_DATA as a proposal); the rest of it is skipped, the stream could go
 * on. FRAME_MALFORMED: send CLOSE with fault_code and linger: a breach of the framing (1002), a
 * binary message (1003), a text that is no UTF-8 (1007), a message that is too long (1009), one
 * that does not come in time (1008).
 *
 * The prefix is the head of an unmasked text frame: what a server sends. */
extern const struct framing framing_websocket;

/* --- writing --- */

/* Writes the head of a final frame of `len` bytes; returns its length. `mask`: what a client's
 * frame needs (four random bytes), to be applied to the data by websocket_mask; NULL: server. */
size_t websocket_write_head(char to[WEBSOCKET_HEAD_MAX], enum websocket_opcode opcode, uint64_t len,
                            const unsigned char mask[4]);

/* Masks or unmasks `len` bytes, of which the first is number `at` of its frame. */
void websocket_mask(char *data, size_t len, const unsigned char mask[4], size_t at);

/* A whole control frame of a server; `data` is at most WEBSOCKET_CONTROL_MAX bytes. Returns its
 * length. */
size_t websocket_write_control(char to[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX],
                               enum websocket_opcode opcode, struct slice data);

/* A CLOSE with this code (WEBSOCKET_NO_CODE: empty) and the reason, which is cut where it does not
 * fit. */
size_t websocket_write_close(char to[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX], unsigned code,
                             const char *reason);

/* --- the opening handshake --- */

/* Whether the value of Sec-WebSocket-Key is the base64 of 16 bytes. */
bool websocket_key_valid(struct slice key);

/* The value of Sec-WebSocket-Accept for a key. */
void websocket_accept(char to[WEBSOCKET_ACCEPT_LEN], struct slice key);

#endif
