#include "build_config.h"

#include "http/words.h"

#include <stdint.h>

size_t http_span_bytes(struct slice text, enum http_bytes set)
{
    /* A bit per character. */
    static const uint32_t sets[][4] = {
        [HTTP_TOKEN_BYTES] = {0, 0x03FF6CFA, 0xC7FFFFFE, 0x57FFFFFF},
        [HTTP_PATH_BYTES] = {0, 0x2FFFFFF2, 0x87FFFFFF, 0x47FFFFFE},
        [HTTP_QUERY_BYTES] = {0, 0xAFFFFFF2, 0x87FFFFFF, 0x47FFFFFE},
        [HTTP_NAME_BYTES] = {0, 0x2BFF7FF2, 0x87FFFFFE, 0x47FFFFFE},
        [HTTP_ADDRESS_BYTES] = {0, 0x07FF4000, 0x0000007E, 0x0000007E},
    };
    const uint32_t *bits = sets[set];
    size_t len = 0;

    for (; len < text.len; len++) {
        unsigned char c = (unsigned char)text.data[len];

        if (c > 0x7F || !(bits[c / 32] >> c % 32 & 1))
            break;
    }
    return len;
}

int http_hex_value(char c)
{
    if (http_is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct slice http_trim(struct slice text)
{
    while (text.len > 0 && is_blank(text.data[0])) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

bool http_word_is(struct slice text, const char *lower)
{
    size_t i;

    for (i = 0; i < text.len && lower[i] != '\0'; i++) {
        char c = text.data[i];

        if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != lower[i])
            return false;
    }
    return i == text.len && lower[i] == '\0';
}

/* --- escapes --- */

/* The byte that the escape at `text` stands for; 0: it is none, or NUL. */
static int escaped_byte(struct slice text)
{
    int high, low;

    if (text.len < 3)
        return 0;
    high = http_hex_value(text.data[1]);
    low = http_hex_value(text.data[2]);
    return high < 0 || low < 0 ? 0 : high * 16 + low;
}

bool http_escapes_valid(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '%' && escaped_byte(slice_of(text.data + i, text.len - i)) == 0)
            return false;
    }
    return true;
}

bool http_percent_decode(char *to, size_t size, struct slice text, size_t *len)
{
    size_t i = 0, count = 0;

    for (; i < text.len; i++) {
        char c = text.data[i];

        if (c == '%') {
            c = (char)escaped_byte(slice_of(text.data + i, text.len - i));
            if (c == '\0')
                return false;
            i += 2;
        }
        if (count == size)
            return false;
        to[count++] = c;
    }
    *len = count;
    return true;
}

/* --- parts of URIs --- */

struct slice http_query_value(struct slice query, const char *name)
{
    size_t name_len = strlen(name), start = 0;

    while (start < query.len) {
        const char *pair = query.data + start;
        const char *end = memchr(pair, '&', query.len - start);
        size_t len = end != NULL ? (size_t)(end - pair) : query.len - start;

        if (len > name_len && memcmp(pair, name, name_len) == 0 && pair[name_len] == '=')
            return slice_of(pair + name_len + 1, len - name_len - 1);
        start += len + 1;
    }
    return slice_of(NULL, 0);
}

/* The length of the host that the text begins with; false: an IPv6 address without its end. */
static bool host_len(struct slice text, size_t *len)
{
    if (text.len == 0 || text.data[0] != '[') {
        *len = http_span_bytes(text, HTTP_NAME_BYTES);
        return http_escapes_valid(slice_of(text.data, *len));
    }
    *len = 1 + http_span_bytes(slice_of(text.data + 1, text.len - 1), HTTP_ADDRESS_BYTES);
    return *len > 1 && *len < text.len && text.data[(*len)++] == ']';
}

bool http_authority_read(struct slice text, struct slice *host, struct slice *port)
{
    size_t len;

    *host = *port = slice_of(NULL, 0);
    if (!host_len(text, &len))
        return false;
    *host = slice_of(text.data, len);
    if (len == text.len)
        return true;
    if (len == 0 || text.data[len] != ':')
        return false;
    *port = slice_of(text.data + len + 1, text.len - len - 1);
    for (size_t i = 0; i < port->len; i++) {
        if (!http_is_digit(port->data[i]))
            return false;
    }
    return port->len <= 5;
}
