/* A client over WebSocket (RFC 6455) that sends any frames, right or wrong. In texts that a test
 * passes ' stands for ". Every wait has a deadline; a wait that fails, fails the test. */
#ifndef TESTS_HARNESS_WEB_SOCKET_H
#define TESTS_HARNESS_WEB_SOCKET_H

#include "client.h"

#define WS_FIN 0x80u
enum { WS_CONTINUATION, WS_TEXT, WS_BINARY, WS_CLOSE = 8, WS_PING, WS_PONG };

/* The fields of a good request for an upgrade, but for Host. */
#define WS_KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define WS_VERSION "Sec-WebSocket-Version: 13\r\n"
#define WS_UPGRADE "Connection: Upgrade\r\nUpgrade: websocket\r\n"

struct web_socket {
    struct client *client;
    struct text head;    /* of the daemon's answer */
    unsigned first;      /* of the last frame: its first byte */
    struct text payload; /* of the last frame */
};

/* Sends GET with these fields and Host to a daemon in SETUP_HTTP. Returns the status, 0 at the end
 * of the connection. */
int ws_ask(struct web_socket *socket, const struct daemon *daemon, const char *path,
           const char *fields);

/* A connection that is upgraded, at /mcp, with further fields. Lives until the test ends. */
struct web_socket *ws_open_with(const struct daemon *daemon, const char *fields);
struct web_socket *ws_open(const struct daemon *daemon);

/* The value of a field of the head of the answer; NULL: there is none. */
const char *ws_field(const struct web_socket *socket, const char *name);

/* Sends a frame with this first byte, masked. */
void ws_frame(struct web_socket *socket, unsigned first, const void *payload, size_t len);

/* Sends a text message (printf) in one frame. */
void ws_text(struct web_socket *socket, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads a frame; it must not be masked, and its length written in the shortest way. False: the
 * connection has ended. */
bool ws_read(struct web_socket *socket);

/* The next frame must be a text with this content (printf), or a control frame. */
void ws_expect(struct web_socket *socket, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ws_expect_control(struct web_socket *socket, unsigned opcode, const char *payload, size_t len);

/* The next frame must be a text with the daemon's error. */
void ws_error(struct web_socket *socket, const char *id, int code, const char *word);

/* The next frame must be a CLOSE with this code (0: none), and nothing may follow it. */
void ws_expect_close(struct web_socket *socket, unsigned code);

/* A request must be answered at once by a result. */
void ws_expect_alive(struct web_socket *socket);

#endif
