/* WebSocket frames (RFC 6455, section 5) as a framing: one text message is one body. */
#ifndef STDIO_BUS_HTTP_WEBSOCKET_H
#define STDIO_BUS_HTTP_WEBSOCKET_H

#include "framing/frame.h"
#include "http/websocket_head.h"
#include "json/utf8.h"

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
 * it up. The time of a message begins again where it makes progress (http/progress.h).
 *
 * The prefix is the head of an unmasked text frame: what a server sends. */
extern const struct framing framing_websocket;

#endif
