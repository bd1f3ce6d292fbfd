#include "build_config.h"

#include "http/response_reader.h"

#include <string.h>

#include "http/head.h"

#define CHUNK_SIZE_DIGITS 15
#define TRAILER_MAX 16384 /* bytes of chunk extensions and trailers */

enum part {
    PART_HEAD,
    PART_LENGTH,     /* `left` bytes of the body */
    PART_CLOSE,      /* the body ends with the connection */
    PART_CHUNK_SIZE, /* of a chunked body, */
    PART_EXTENSION,
    PART_CHUNK,     /* `left` bytes of it */
    PART_CHUNK_END, /* and the line's end after it */
    PART_TRAILER,
    PART_OVER
};

static enum http_response_status malformed(struct http_response_reader *reader, const char *problem)
{
    reader->problem = problem;
    return HTTP_RESPONSE_MALFORMED;
}

/* --- fields --- */

static struct slice trimmed(struct slice text)
{
    if (text.len > 0 && text.data[text.len - 1] == '\r')
        text.len--;
    return http_trim(text);
}

/* Takes the next line, without its end, from the front of *rest. */
static struct slice take_line(struct slice *rest)
{
    const char *newline = memchr(rest->data, '\n', rest->len);
    struct slice line = *rest;

    if (newline != NULL)
        line.len = (size_t)(newline - rest->data);
    *rest = slice_of(rest->data + line.len + (newline != NULL),
                     rest->len - line.len - (newline != NULL));
    return trimmed(line);
}

/* The part of the text before the separator, and *rest after it. */
static struct slice take_until(struct slice *rest, char separator)
{
    const char *at = memchr(rest->data, separator, rest->len);
    struct slice first = *rest;

    if (at != NULL)
        first.len = (size_t)(at - rest->data);
    *rest = slice_of(rest->data + first.len + (at != NULL), rest->len - first.len - (at != NULL));
    return trimmed(first);
}

/* Finds the field of this name, beginning at line `*from`, which then is the line after it. */
static struct slice find_field(const struct http_response_reader *reader, const char *name,
                               size_t *from)
{
    struct slice rest = slice_of(reader->head, reader->head_len);

    for (size_t i = 0; rest.len > 0; i++) {
        struct slice line = take_line(&rest), field_name;

        if (i < *from || line.len == 0)
            continue;
        field_name = take_until(&line, ':');
        *from = i + 1;
        if (http_word_is(field_name, name))
            return trimmed(line);
    }
    return slice_of(NULL, 0);
}

struct slice http_response_field(const struct http_response_reader *reader, const char *name)
{
    size_t from = 1;

    return find_field(reader, name, &from);
}

bool http_response_is(const struct http_response_reader *reader, const char *type)
{
    struct slice value = http_response_field(reader, "content-type");

    return value.data != NULL && http_word_is(take_until(&value, ';'), type);
}

/* Whether a list of such fields has the word. */
static bool has_word(const struct http_response_reader *reader, const char *name, const char *word)
{
    size_t from = 1;
    struct slice value;

    while ((value = find_field(reader, name, &from)).data != NULL) {
        while (value.len > 0) {
            if (http_word_is(take_until(&value, ','), word))
                return true;
        }
    }
    return false;
}

/* --- the head --- */

static bool read_status_line(struct http_response_reader *reader, struct slice line)
{
    static const char version[] = "HTTP/1.";
    const size_t len = sizeof version - 1;
    const char *at = line.data + len;

    if (line.len < len + 5 || memcmp(line.data, version, len) != 0 || !http_is_digit(at[0]) ||
        at[1] != ' ' || !http_is_digit(at[2]) || !http_is_digit(at[3]) || !http_is_digit(at[4]) ||
        (line.len > len + 5 && at[5] != ' '))
        return false;
    reader->status = (unsigned)((at[2] - '0') * 100 + (at[3] - '0') * 10 + (at[4] - '0'));
    reader->keep_alive = at[0] != '0' || has_word(reader, "connection", "keep-alive");
    if (has_word(reader, "connection", "close"))
        reader->keep_alive = false;
    reader->reason = trimmed(slice_of(at + 5, line.len - len - 5));
    return reader->status >= 100;
}

static bool fields_are_good(const struct http_response_reader *reader)
{
    struct slice rest = slice_of(reader->head, reader->head_len);

    take_line(&rest);
    while (rest.len > 0) {
        bool folded = rest.data[0] == ' ' || rest.data[0] == '\t';
        struct slice line = take_line(&rest);

        if (line.len > 0 && (folded || memchr(line.data, ':', line.len) == NULL))
            return false;
    }
    return true;
}

/* Several lengths are good if they are the same. */
static bool read_length(struct http_response_reader *reader, bool *found)
{
    size_t from = 1;
    struct slice value;

    *found = false;
    while ((value = find_field(reader, "content-length", &from)).data != NULL) {
        do {
            struct slice digits = take_until(&value, ',');
            uint64_t len = 0;

            if (digits.len == 0 || digits.len > 18)
                return false;
            for (size_t i = 0; i < digits.len; i++) {
                if (!http_is_digit(digits.data[i]))
                    return false;
                len = len * 10 + (unsigned)(digits.data[i] - '0');
            }
            if (*found && reader->left != len)
                return false;
            reader->left = len;
            *found = true;
        } while (value.len > 0);
    }
    return true;
}

/* RFC 9112, section 6.3. */
static enum http_response_status start_body(struct http_response_reader *reader)
{
    struct slice coding = http_response_field(reader, "transfer-encoding");
    bool has_length;

    if (!read_length(reader, &has_length))
        return malformed(reader, "a bad Content-Length");
    reader->ends_with_close = false;
    if (reader->status == 204 || reader->status == 304) {
        reader->part = PART_OVER;
    } else if (coding.data != NULL) {
        if (has_length)
            reader->keep_alive = false;
        if (!http_word_is(coding, "chunked"))
            return malformed(reader, "a Transfer-Encoding other than chunked");
        reader->left = 0;
        reader->line = 0;
        reader->part = PART_CHUNK_SIZE;
    } else if (has_length) {
        reader->part = PART_LENGTH;
    } else {
        reader->keep_alive = false;
        reader->ends_with_close = true;
        reader->part = PART_CLOSE;
    }
    return HTTP_RESPONSE_HEAD;
}

static void start_response(struct http_response_reader *reader)
{
    reader->part = PART_HEAD;
    reader->head_len = reader->trailer_len = 0;
    reader->begun = false;
}

static enum http_response_status end_head(struct http_response_reader *reader)
{
    struct slice rest = slice_of(reader->head, reader->head_len);

    if (!read_status_line(reader, take_line(&rest)) || !fields_are_good(reader))
        return malformed(reader, "no head of an HTTP/1.1 response");
    if (reader->status == 101)
        return malformed(reader, "an upgrade that was not asked for");
    if (reader->status < 200) {
        start_response(reader);
        return HTTP_RESPONSE_MORE;
    }
    return start_body(reader);
}

static bool head_is_whole(const struct http_response_reader *reader)
{
    const char *end = reader->head + reader->head_len;

    return reader->head_len >= 2 && end[-1] == '\n' &&
           (end[-2] == '\n' || (reader->head_len >= 3 && end[-2] == '\r' && end[-3] == '\n'));
}

static enum http_response_status read_head(struct http_response_reader *reader, struct slice *bytes)
{
    while (bytes->len > 0) {
        char c = *bytes->data;

        *bytes = slice_of(bytes->data + 1, bytes->len - 1);
        if (!reader->begun && (c == '\r' || c == '\n'))
            continue; /* as the end of a body that had one too many */
        reader->begun = true;
        if (c == '\0')
            return malformed(reader, "a NUL in the head");
        if (reader->head_len == HTTP_RESPONSE_HEAD_MAX)
            return malformed(reader, "a head that is too long");
        reader->head[reader->head_len++] = c;
        if (c == '\n' && head_is_whole(reader)) {
            enum http_response_status status = end_head(reader);

            if (status != HTTP_RESPONSE_MORE)
                return status;
        }
    }
    return HTTP_RESPONSE_MORE;
}

/* --- the body --- */

static enum http_response_status take_body(struct http_response_reader *reader, struct slice *bytes,
                                           struct slice *body)
{
    size_t len = bytes->len;

    if (reader->part != PART_CLOSE) {
        if (len > reader->left)
            len = (size_t)reader->left;
        reader->left -= len;
    }
    *body = slice_of(bytes->data, len);
    *bytes = slice_of(bytes->data + len, bytes->len - len);
    return HTTP_RESPONSE_BODY;
}

/* The head of a chunk is over. */
static void start_chunk(struct http_response_reader *reader)
{
    reader->line = 0;
    reader->part = reader->left > 0 ? PART_CHUNK : PART_TRAILER;
}

static bool read_chunk_size(struct http_response_reader *reader, char c)
{
    int value = http_hex_value(c);

    if (value >= 0) {
        if (reader->line >= CHUNK_SIZE_DIGITS)
            return false;
        reader->left = reader->left * 16 + (unsigned)value;
        reader->line++;
        return true;
    }
    if (reader->line == 0)
        return false;
    if (c == '\n')
        start_chunk(reader);
    else if (c == ';' || c == ' ' || c == '\t' || c == '\r')
        reader->part = PART_EXTENSION;
    else
        return false;
    return true;
}

/* One byte between two pieces of a chunked body. */
static bool read_between(struct http_response_reader *reader, char c)
{
    switch (reader->part) {
    case PART_CHUNK_SIZE:
        return read_chunk_size(reader, c);
    case PART_EXTENSION:
        if (c == '\n')
            start_chunk(reader);
        return ++reader->trailer_len <= TRAILER_MAX;
    case PART_CHUNK_END:
        if (c == '\n') {
            reader->left = 0;
            reader->line = 0;
            reader->part = PART_CHUNK_SIZE;
        }
        return c == '\n' || c == '\r';
    default: /* PART_TRAILER; `line` counts the bytes of a line that are no part of its end */
        if (c == '\n' && reader->line == 0)
            reader->part = PART_OVER;
        reader->line = (unsigned char)(c == '\n' ? 0 : c == '\r' ? reader->line : 1);
        return ++reader->trailer_len <= TRAILER_MAX;
    }
}

static enum http_response_status read_chunked(struct http_response_reader *reader,
                                              struct slice *bytes, struct slice *body)
{
    if (reader->part == PART_CHUNK && reader->left == 0)
        reader->part = PART_CHUNK_END;
    while (bytes->len > 0 && reader->part != PART_CHUNK && reader->part != PART_OVER) {
        if (!read_between(reader, *bytes->data))
            return malformed(reader, "a bad chunk");
        *bytes = slice_of(bytes->data + 1, bytes->len - 1);
    }
    if (reader->part == PART_OVER)
        return HTTP_RESPONSE_END;
    return bytes->len > 0 ? take_body(reader, bytes, body) : HTTP_RESPONSE_MORE;
}

enum http_response_status http_response_next(struct http_response_reader *reader,
                                             struct slice *bytes, struct slice *body)
{
    switch (reader->part) {
    case PART_OVER:
        if (reader->begun) {
            reader->begun = false;
            return HTTP_RESPONSE_END;
        }
        start_response(reader);
        return read_head(reader, bytes);
    case PART_HEAD:
        return read_head(reader, bytes);
    case PART_LENGTH:
        if (reader->left == 0) {
            reader->part = PART_OVER;
            reader->begun = false;
            return HTTP_RESPONSE_END;
        }
        return bytes->len > 0 ? take_body(reader, bytes, body) : HTTP_RESPONSE_MORE;
    case PART_CLOSE:
        return bytes->len > 0 ? take_body(reader, bytes, body) : HTTP_RESPONSE_MORE;
    default: {
        enum http_response_status status = read_chunked(reader, bytes, body);

        if (status == HTTP_RESPONSE_END)
            reader->begun = false;
        return status;
    }
    }
}

enum http_response_status http_response_close(struct http_response_reader *reader)
{
    if (!reader->begun)
        return HTTP_RESPONSE_MORE;
    if (!reader->ends_with_close || reader->part != PART_CLOSE)
        return malformed(reader, "the connection ended within a response");
    reader->part = PART_OVER;
    reader->begun = false;
    return HTTP_RESPONSE_END;
}
