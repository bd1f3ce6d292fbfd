#include "build_config.h"

#include "web_socket.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "deadline.h"
#include "steps.h"
#include "suite.h"

static void end_socket(void *object)
{
    struct web_socket *socket = object;
    text_free(&socket->head);
    text_free(&socket->payload);
    free(socket);
}

/* --- reading --- */

/* Waits for `len` bytes. False: the connection has ended before. */
static bool wait_bytes(struct web_socket *socket, size_t len)
{
    struct client *client = socket->client;
    int64_t deadline = deadline_usual();
    if (client->input.len - client->consumed < len)
        harness_step();
    while (client->input.len - client->consumed < len) {
        if (client_read_before(client, deadline))
            continue;
        ck_assert_msg(client->eof, "the daemon sends nothing");
        return false;
    }
    return true;
}

static const unsigned char *take(struct web_socket *socket, size_t len)
{
    struct client *client = socket->client;
    client->consumed += len;
    return (const unsigned char *)client->input.data + client->consumed - len;
}

static bool read_head(struct web_socket *socket)
{
    socket->head.len = 0;
    while (wait_bytes(socket, 1)) {
        text_add(&socket->head, take(socket, 1), 1);
        if (socket->head.len >= 4 &&
            strcmp(socket->head.data + socket->head.len - 4, "\r\n\r\n") == 0)
            return true;
    }
    return false;
}

bool ws_read(struct web_socket *socket)
{
    const unsigned char *bytes;
    size_t len, more;
    if (!wait_bytes(socket, 2))
        return false;
    bytes = take(socket, 2);
    socket->first = bytes[0];
    len = bytes[1];
    ck_assert_msg(len < 0x80, "a frame of the daemon is masked");
    more = len == 127 ? 8 : len == 126 ? 2 : 0;
    ck_assert(wait_bytes(socket, more));
    if (more > 0)
        len = 0;
    bytes = take(socket, more);
    for (size_t i = 0; i < more; i++)
        len = len << 8 | bytes[i];
    ck_assert_msg(more == 0 || len > (more == 2 ? 125 : 65535), "the length is not the shortest");
    ck_assert(wait_bytes(socket, len));
    socket->payload.len = 0;
    text_add(&socket->payload, take(socket, len), len);
    return true;
}

/* --- the handshake --- */

int ws_ask(struct web_socket *socket, const struct daemon *daemon, const char *path,
           const char *fields)
{
    struct text text = {0};
    socket->client = client_connect(daemon);
    text_printf(&text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n", path, daemon->port,
                fields);
    client_send_bytes(socket->client, text.data, text.len);
    text_free(&text);
    return read_head(socket) ? (int)strtol(socket->head.data + strlen("HTTP/1.1 "), NULL, 10) : 0;
}

struct web_socket *ws_open_with(const struct daemon *daemon, const char *fields)
{
    struct web_socket *socket = calloc(1, sizeof *socket);
    ck_assert_ptr_nonnull(socket);
    harness_at_end(end_socket, socket);
    ck_assert_int_eq(ws_ask(socket, daemon, "/mcp",
                            test_format("%s%s", WS_UPGRADE WS_KEY WS_VERSION, fields)),
                     101);
    return socket;
}

struct web_socket *ws_open(const struct daemon *daemon)
{
    return ws_open_with(daemon, "");
}

const char *ws_field(const struct web_socket *socket, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = strchr(socket->head.data, '\n'); line != NULL;
         line = strchr(line + 1, '\n')) {
        if (strncasecmp(line + 1, name, len) == 0 && line[1 + len] == ':') {
            const char *value = line + 1 + len + 1 + strspn(line + 1 + len + 1, " ");
            return test_format("%.*s", (int)strcspn(value, "\r\n"), value);
        }
    }
    return NULL;
}

/* --- sending --- */

void ws_frame(struct web_socket *socket, unsigned first, const void *payload, size_t len)
{
    static const unsigned char mask[] = {0x37, 0xfa, 0x21, 0x3d};
    struct text frame = {0};
    unsigned char head[14] = {(unsigned char)first};
    size_t head_len = 2, more = len > 65535 ? 8 : len > 125 ? 2 : 0;
    head[1] = (unsigned char)(0x80 | (more == 8 ? 127 : more == 2 ? 126 : len));
    for (size_t i = 0; i < more; i++)
        head[head_len++] = (unsigned char)(len >> 8 * (more - 1 - i));
    memcpy(head + head_len, mask, sizeof mask);
    text_add(&frame, head, head_len + sizeof mask);
    head_len = frame.len;
    text_add(&frame, payload, len);
    for (size_t i = 0; i < len; i++)
        frame.data[head_len + i] = (char)(frame.data[head_len + i] ^ (char)mask[i % 4]);
    client_send_bytes(socket->client, frame.data, frame.len);
    text_free(&frame);
}

void ws_text(struct web_socket *socket, const char *format, ...)
{
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&text, format, arguments);
    va_end(arguments);
    text_quote(&text, 0);
    ws_frame(socket, WS_FIN | WS_TEXT, text.data, text.len);
    text_free(&text);
}

/* --- expectations --- */

static struct span expect_text(struct web_socket *socket)
{
    ck_assert_msg(ws_read(socket), "the connection has ended");
    ck_assert_msg(socket->first == (WS_FIN | WS_TEXT), "not a text: %02x %s", socket->first,
                  socket->payload.len > 2 ? socket->payload.data + 2 : "");
    return (struct span){socket->payload.data, socket->payload.len};
}

void ws_expect(struct web_socket *socket, const char *format, ...)
{
    struct span text = expect_text(socket);
    va_list arguments;
    va_start(arguments, format);
    message_expect(text, format, arguments);
    va_end(arguments);
}

void ws_error(struct web_socket *socket, const char *id, int code, const char *word)
{
    message_error(expect_text(socket), id, code, word);
}

void ws_expect_control(struct web_socket *socket, unsigned opcode, const char *payload, size_t len)
{
    ck_assert_msg(ws_read(socket), "the connection has ended");
    ck_assert_msg(socket->first == (WS_FIN | opcode), "first byte %02x: %s", socket->first,
                  socket->payload.len > 0 ? socket->payload.data : "");
    ck_assert_uint_eq(socket->payload.len, len);
    ck_assert(len == 0 || memcmp(socket->payload.data, payload, len) == 0);
}

void ws_expect_close(struct web_socket *socket, unsigned code)
{
    const unsigned char *payload;
    ck_assert_msg(ws_read(socket), "the connection ended without a CLOSE");
    ck_assert_msg(socket->first == (WS_FIN | WS_CLOSE), "first byte %02x: %s", socket->first,
                  socket->payload.len > 0 ? socket->payload.data : "");
    payload = (const unsigned char *)socket->payload.data;
    if (code == 0)
        ck_assert_uint_eq(socket->payload.len, 0);
    else
        ck_assert_msg(socket->payload.len >= 2 && (unsigned)(payload[0] << 8 | payload[1]) == code,
                      "code %u, not %u: %s",
                      socket->payload.len >= 2 ? (unsigned)(payload[0] << 8 | payload[1]) : 0, code,
                      socket->payload.len >= 2 ? (const char *)payload + 2 : "");
    ck_assert_msg(!ws_read(socket), "something follows the CLOSE");
}

void ws_expect_alive(struct web_socket *socket)
{
    struct span answer;
    ws_text(socket, "{'jsonrpc':'2.0','id':'alive','method':'echo'}");
    answer = expect_text(socket);
    message_result(answer, "\"alive\"");
}
