/* What is sent over a WebSocket, and the keys of its opening handshake (RFC 6455). */
#ifndef STDIO_BUS_HTTP_WEBSOCKET_WRITE_H
#define STDIO_BUS_HTTP_WEBSOCKET_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

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

#endif
