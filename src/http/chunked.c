#include "build_config.h"

#include "http/chunked.h"

#include <stdio.h>

#include "http/words.h"

#define SIZE_DIGITS 15

enum state {
    IN_SIZE,
    IN_EXTENSION,
    AT_SIZE_END, /* after the carriage return */
    IN_DATA,
    AT_DATA_END,
    AT_DATA_LF,
    AT_LINE, /* of the trailers: the first byte */
    IN_NAME,
    IN_VALUE,
    AT_VALUE_END,
    AT_LAST_LF,
    OVER
};

static bool read_size(struct chunked_reader *chunks, char c)
{
    int value = http_hex_value(c);

    if (value >= 0) {
        chunks->left = chunks->left * 16 + (unsigned)value;
        return ++chunks->digits <= SIZE_DIGITS;
    }
    chunks->state = c == '\r' ? AT_SIZE_END : IN_EXTENSION;
    return chunks->digits > 0 && (c == '\r' || c == ';');
}

/* A byte of an extension or of a trailer's value, or the carriage return after it. */
static bool read_text(struct chunked_reader *chunks, char c, enum state end)
{
    unsigned char byte = (unsigned char)c;

    if (c == '\r')
        chunks->state = (uint8_t)end;
    return ++chunks->extra <= CHUNKED_EXTRA_MAX &&
           (c == '\r' || c == '\t' || (byte >= ' ' && byte != 0x7F));
}

static bool read_name(struct chunked_reader *chunks, char c)
{
    bool first = chunks->state == AT_LINE;

    chunks->state = IN_NAME;
    if (c == ':' && !first)
        chunks->state = IN_VALUE;
    else if (c == '\r' && first)
        chunks->state = AT_LAST_LF;
    else if (http_span_bytes(slice_of(&c, 1), HTTP_TOKEN_BYTES) == 0)
        return false;
    return ++chunks->extra <= CHUNKED_EXTRA_MAX;
}

static bool read_line_feed(struct chunked_reader *chunks, char c, enum state next)
{
    chunks->state = (uint8_t)next;
    return c == '\n';
}

static bool read_byte(struct chunked_reader *chunks, char c)
{
    switch ((enum state)chunks->state) {
    case IN_SIZE:
        return read_size(chunks, c);
    case IN_EXTENSION:
        return read_text(chunks, c, AT_SIZE_END);
    case AT_SIZE_END:
        return read_line_feed(chunks, c, chunks->left > 0 ? IN_DATA : AT_LINE);
    case AT_DATA_END:
        chunks->state = AT_DATA_LF;
        return c == '\r';
    case AT_DATA_LF:
        chunks->digits = 0;
        return read_line_feed(chunks, c, IN_SIZE);
    case AT_LINE:
    case IN_NAME:
        return read_name(chunks, c);
    case IN_VALUE:
        return read_text(chunks, c, AT_VALUE_END);
    case AT_VALUE_END:
        return read_line_feed(chunks, c, AT_LINE);
    case AT_LAST_LF:
        return read_line_feed(chunks, c, OVER);
    default:
        return false;
    }
}

enum chunked_status chunked_read(struct chunked_reader *chunks, struct slice input,
                                 size_t *consumed)
{
    size_t at = 0;

    if (chunks->state == IN_DATA && chunks->left == 0)
        chunks->state = AT_DATA_END;
    while (chunks->state != IN_DATA && chunks->state != OVER && at < input.len) {
        if (!read_byte(chunks, input.data[at++]))
            return CHUNKED_BAD;
    }
    *consumed = at;
    if (chunks->state == OVER)
        return CHUNKED_END;
    return at < input.len ? CHUNKED_DATA : CHUNKED_MORE;
}

size_t chunk_write_head(char to[CHUNK_HEAD_MAX], size_t len)
{
    return (size_t)snprintf(to, CHUNK_HEAD_MAX, "%zx\r\n", len);
}
