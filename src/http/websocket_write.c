#include "build_config.h"

#include "http/websocket_write.h"

#include "base/assert.h"
#include "http/base64.h"
#include "http/sha1.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_LEN BASE64_LEN((size_t)16)
#define FINAL 0x80
#define MASKED 0x80

size_t websocket_write_head(char to[WEBSOCKET_HEAD_MAX], enum websocket_opcode opcode, uint64_t len,
                            const unsigned char *mask)
{
    size_t extra = len < 126 ? 0 : len < 65536 ? 2 : 8, at = 2;

    to[0] = (char)(FINAL | (int)opcode);
    to[1] = (char)((mask != NULL ? MASKED : 0) | (extra == 0 ? (int)len : extra == 2 ? 126 : 127));
    while (extra > 0)
        to[at++] = (char)(len >> 8 * --extra & 0xFF);
    if (mask != NULL) {
        memcpy(to + at, mask, WEBSOCKET_MASK_LEN);
        at += WEBSOCKET_MASK_LEN;
    }
    return at;
}

void websocket_mask(char *data, size_t len, const unsigned char mask[WEBSOCKET_MASK_LEN],
                    uint64_t at)
{
    unsigned char turned[sizeof(uint64_t)];
    uint64_t word, words;
    size_t i = 0;

    for (size_t k = 0; k < sizeof turned; k++)
        turned[k] = mask[(at + k) % WEBSOCKET_MASK_LEN];
    memcpy(&words, turned, sizeof words);
    for (; len - i >= sizeof word; i += sizeof word) {
        memcpy(&word, data + i, sizeof word);
        word ^= words;
        memcpy(data + i, &word, sizeof word);
    }
    for (; i < len; i++)
        data[i] = (char)(data[i] ^ turned[i % WEBSOCKET_MASK_LEN]);
}

size_t websocket_write_control(char to[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX],
                               enum websocket_opcode opcode, struct slice data)
{
    size_t len = websocket_write_head(to, opcode, data.len, NULL);

    ASSERT(data.len <= WEBSOCKET_CONTROL_MAX);
    if (data.len > 0)
        memcpy(to + len, data.data, data.len);
    return len + data.len;
}

size_t websocket_write_close(char to[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX], unsigned code,
                             const char *reason)
{
    struct slice text = slice_of(reason, strlen(reason));
    char data[WEBSOCKET_CONTROL_MAX];

    if (code == WEBSOCKET_NO_CODE)
        return websocket_write_control(to, WEBSOCKET_CLOSE, slice_of(NULL, 0));
    if (text.len > sizeof data - 2)
        text.len = sizeof data - 2;
    data[0] = (char)(code >> 8);
    data[1] = (char)(code & 0xFF);
    memcpy(data + 2, text.data, text.len);
    return websocket_write_control(to, WEBSOCKET_CLOSE, slice_of(data, text.len + 2));
}

bool websocket_code_valid(unsigned code)
{
    return (code >= 3000 && code <= 4999) ||
           (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006));
}

bool websocket_key_valid(struct slice key)
{
    char bytes[KEY_LEN / 4 * 3];
    size_t len;

    return key.len == KEY_LEN && base64_decode(bytes, key, &len) && len == 16;
}

void websocket_accept(char to[WEBSOCKET_ACCEPT_LEN], struct slice key)
{
    char text[KEY_LEN + sizeof GUID - 1];
    unsigned char digest[SHA1_LEN];

    ASSERT(key.len == KEY_LEN);
    memcpy(text, key.data, KEY_LEN);
    memcpy(text + KEY_LEN, GUID, sizeof GUID - 1);
    sha1_digest(digest, slice_of(text, sizeof text));
    base64_encode(to, slice_of((const char *)digest, sizeof digest));
}
