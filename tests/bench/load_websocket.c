#include "build_config.h"

#include "load_websocket.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define TEXT_FRAME 0x81 /* the last of its message */
#define MASKED 0x80
#define LEN_16 126
#define LEN_64 127

static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};

bool websocket_upgrade(int fd)
{
    static const char request[] = "GET /mcp HTTP/1.1\r\n"
                                  "Host: localhost\r\n"
                                  "Connection: Upgrade\r\n"
                                  "Upgrade: websocket\r\n"
                                  "Sec-WebSocket-Version: 13\r\n"
                                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    static const char accepted[] = "HTTP/1.1 101 ";
    char head[4096];
    size_t len = 0;

    if (write(fd, request, sizeof request - 1) != (ssize_t)sizeof request - 1)
        return false;
    while (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0) {
        if (len == sizeof head || read(fd, head + len, 1) != 1)
            return false;
        len++;
    }
    return len > sizeof accepted && memcmp(head, accepted, sizeof accepted - 1) == 0;
}

size_t websocket_put_head(char *to, size_t len)
{
    unsigned char *at = (unsigned char *)to;
    unsigned bytes = 0;

    *at++ = TEXT_FRAME;
    if (len < LEN_16) {
        *at++ = (unsigned char)(MASKED | len);
    } else {
        bytes = len <= UINT16_MAX ? 2 : 8;
        *at++ = MASKED | (bytes == 2 ? LEN_16 : LEN_64);
    }
    while (bytes-- > 0)
        *at++ = (unsigned char)((uint64_t)len >> (8 * bytes));
    memcpy(at, mask, sizeof mask);
    return (size_t)((char *)at - to) + sizeof mask;
}

void websocket_mask(char *message, size_t len)
{
    for (size_t i = 0; i < len; i++)
        message[i] = (char)(message[i] ^ mask[i % sizeof mask]);
}

const char *websocket_read_head(const char *at, size_t *len)
{
    const unsigned char *head = (const unsigned char *)at;
    unsigned bytes;

    if (head[0] != TEXT_FRAME || (head[1] & MASKED) != 0)
        return NULL;
    *len = head[1];
    if (*len < LEN_16)
        return at + 2;
    bytes = *len == LEN_16 ? 2 : 8;
    *len = 0;
    for (unsigned i = 0; i < bytes; i++)
        *len = *len << 8 | head[2 + i];
    return at + 2 + bytes;
}
