/* The head of a WebSocket frame that is read (RFC 6455, 5.2). */
#ifndef STDIO_BUS_HTTP_WEBSOCKET_HEAD_H
#define STDIO_BUS_HTTP_WEBSOCKET_HEAD_H

#include "http/websocket_write.h"

struct websocket_head {
    enum websocket_opcode opcode;
    bool is_final;
    unsigned char mask[WEBSOCKET_MASK_LEN]; /* zeros of a frame that is not masked */
    uint64_t len;                           /* bytes of the data */
};

enum websocket_head_status { WEBSOCKET_HEAD_MORE, WEBSOCKET_HEAD_WHOLE, WEBSOCKET_HEAD_BAD };

/* Reads a head from the first bytes of the input; *head_len: how many. WEBSOCKET_HEAD_BAD with the
 * problem, static text, and the code to close with: a reserved bit or opcode, a mask that is absent
 * or (is_client: the peer is a server) should not be, a control frame that is too long or in parts,
 * a length that is not in its shortest form; or binary data. */
enum websocket_head_status websocket_head_read(struct websocket_head *head, struct slice input,
                                               bool is_client, size_t *head_len,
                                               enum websocket_code *code, const char **problem);

static inline bool websocket_is_control(enum websocket_opcode opcode)
{
    return opcode >= WEBSOCKET_CLOSE;
}

#endif
