#include "build_config.h"

#include "http/chunked.h"

#include <stdio.h>

#include "http/head.h"

#define SIZE_DIGITS 15

enum state {
    IN_SIZE,
    AT_EXTENSION, /* after a semicolon */
    IN_EXTENSION, /* its name */
    AT_EXTENSION_VALUE,
    IN_EXTENSION_VALUE,
    IN_QUOTES,
    AFTER_BACKSLASH,
    AFTER_QUOTES,
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
    chunks->state = c == '\r' ? AT_SIZE_END : AT_EXTENSION;
    return chunks->digits > 0 && (c == '\r' || c == ';');
}

static bool is_token_byte(char c)
{
    return http_span_bytes(slice_of(&c, 1), HTTP_TOKEN_BYTES) == 1;
}

/* What a field may have in its value. */
static bool is_text_byte(char c)
{
    unsigned char byte = (unsigned char)c;

    return c == '\t' || (byte >= ' ' && byte != 0x7F);
}

/* What follows a name or value of an extension. */
static bool end_extension(struct chunked_reader *chunks, char c)
{
    bool has_value = chunks->state != IN_EXTENSION;

    chunks->state = c == '\r' ? AT_SIZE_END : c == ';' ? AT_EXTENSION : AT_EXTENSION_VALUE;
    return c == '\r' || c == ';' || (c == '=' && !has_value);
}

/* ;NAME or ;NAME=VALUE or ;NAME="VALUE", without white space (7.1.1). */
static bool read_extension(struct chunked_reader *chunks, char c)
{
    if (++chunks->extra > CHUNKED_EXTRA_MAX)
        return false;
    switch ((enum state)chunks->state) {
    case AT_EXTENSION:
        chunks->state = IN_EXTENSION;
        return is_token_byte(c);
    case AT_EXTENSION_VALUE:
        chunks->state = c == '"' ? IN_QUOTES : IN_EXTENSION_VALUE;
        return c == '"' || is_token_byte(c);
    case IN_QUOTES:
        if (c == '"')
            chunks->state = AFTER_QUOTES;
        else if (c == '\\')
            chunks->state = AFTER_BACKSLASH;
        return is_text_byte(c);
    case AFTER_BACKSLASH:
        chunks->state = IN_QUOTES;
        return is_text_byte(c);
    case AFTER_QUOTES:
        return end_extension(chunks, c);
    default:
        return is_token_byte(c) || end_extension(chunks, c);
    }
}

/* A byte of a trailer's value, or the carriage return after it. */
static bool read_value(struct chunked_reader *chunks, char c)
{
    if (c == '\r')
        chunks->state = AT_VALUE_END;
    return ++chunks->extra <= CHUNKED_EXTRA_MAX && (c == '\r' || is_text_byte(c));
}

static bool read_name(struct chunked_reader *chunks, char c)
{
    bool first = chunks->state == AT_LINE;

    chunks->state = IN_NAME;
    if (c == ':' && !first)
        chunks->state = IN_VALUE;
    else if (c == '\r' && first)
        chunks->state = AT_LAST_LF;
    else if (!is_token_byte(c))
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
    case AT_EXTENSION:
    case IN_EXTENSION:
    case AT_EXTENSION_VALUE:
    case IN_EXTENSION_VALUE:
    case IN_QUOTES:
    case AFTER_BACKSLASH:
    case AFTER_QUOTES:
        return read_extension(chunks, c);
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
        return read_value(chunks, c);
    case AT_VALUE_END:
        return read_line_feed(chunks, c, AT_LINE);
    case AT_LAST_LF:
        return read_line_feed(chunks, c, OVER);
    default:
        return false;
    }
}

static bool end_loose_size(struct chunked_reader *chunks, char c)
{
    chunks->state = c != '\n' ? IN_EXTENSION : chunks->left > 0 ? IN_DATA : AT_LINE;
    return true;
}

/* A byte of a line that chunked_reader.loose allows; an extension is limited per chunk. */
static bool read_loose_byte(struct chunked_reader *chunks, char c)
{
    bool ends = c == '\n';

    switch ((enum state)chunks->state) {
    case IN_SIZE:
        if (http_hex_value(c) >= 0)
            return read_size(chunks, c);
        if (chunks->digits == 0 || (c != '\r' && c != '\n' && c != ';' && c != ' ' && c != '\t'))
            return false;
        chunks->extra = 0;
        return end_loose_size(chunks, c);
    case IN_EXTENSION:
        end_loose_size(chunks, c);
        break;
    case AT_DATA_END:
        if (ends)
            chunks->state = IN_SIZE;
        chunks->digits = 0;
        return ends || c == '\r';
    default: /* of the trailers: AT_LINE, until a byte that is not of its end */
        if (ends)
            chunks->state = chunks->state == AT_LINE ? OVER : AT_LINE;
        else if (c != '\r')
            chunks->state = IN_VALUE;
        break;
    }
    return ++chunks->extra <= CHUNKED_EXTRA_MAX;
}

enum chunked_status chunked_read(struct chunked_reader *chunks, struct slice input,
                                 size_t *consumed)
{
    size_t at = 0;

    if (chunks->state == IN_DATA && chunks->left == 0)
        chunks->state = AT_DATA_END;
    while (chunks->state != IN_DATA && chunks->state != OVER && at < input.len) {
        char c = input.data[at++];

        if (!(chunks->loose ? read_loose_byte(chunks, c) : read_byte(chunks, c)))
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
