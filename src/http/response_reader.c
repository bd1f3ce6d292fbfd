#include "build_config.h"

#include "http/response_reader.h"

#include <string.h>

#include "http/head.h"

enum part {
    PART_HEAD,
    PART_LENGTH, /* `left` bytes of the body */
    PART_CLOSE,  /* the body ends with the connection */
    PART_CHUNKED,
    PART_OVER
};

static enum http_response_status malformed_response(struct http_response_reader *reader,
                                                    const char *problem)
{
    reader->problem = problem;
    return HTTP_RESPONSE_MALFORMED;
}

/* --- fields --- */

/* Reads the field line at *at, and moves *at after it. False: there is no more, or it is malformed.
 */
static bool next_field(const struct http_response_reader *reader, size_t *at, struct slice *name,
                       struct slice *value)
{
    struct slice rest = slice_of(reader->head + *at, reader->head_len - *at);
    size_t len = http_field_line_read(rest, true, name, value);

    *at += len;
    return len > 0;
}

/* Finds the next field of this name from *at on, and moves *at after it. */
static struct slice find_field(const struct http_response_reader *reader, const char *wanted,
                               size_t *at)
{
    struct slice name, value;

    while (next_field(reader, at, &name, &value)) {
        if (http_word_is(name, wanted))
            return value;
    }
    return slice_of(NULL, 0);
}

struct slice http_response_field(const struct http_response_reader *reader, const char *name)
{
    size_t at = reader->fields_start;

    return find_field(reader, name, &at);
}

bool http_response_is(const struct http_response_reader *reader, const char *type)
{
    struct slice value = http_response_field(reader, "content-type");

    return value.data != NULL && http_word_is(http_take_until(&value, ';'), type);
}

/* Whether a list of such fields has the word. */
static bool has_word(const struct http_response_reader *reader, const char *name, const char *word)
{
    size_t at = reader->fields_start;
    struct slice value;

    while ((value = find_field(reader, name, &at)).data != NULL) {
        while (value.len > 0) {
            if (http_word_is(http_take_until(&value, ','), word))
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
    reader->reason = slice_trim(slice_of(at + 5, line.len - len - 5));
    return reader->status >= 100;
}

static bool fields_are_good(const struct http_response_reader *reader)
{
    size_t at = reader->fields_start;
    struct slice name, value;

    while (next_field(reader, &at, &name, &value))
        continue;
    if (reader->head[at] == '\r')
        at++;
    return at + 1 == reader->head_len && reader->head[at] == '\n';
}

/* Several lengths are good if they are the same. */
static bool read_length(struct http_response_reader *reader, bool *found)
{
    size_t at = reader->fields_start;
    struct slice value;

    *found = false;
    while ((value = find_field(reader, "content-length", &at)).data != NULL) {
        do {
            struct slice digits = http_take_until(&value, ',');
            uint64_t len;

            if (!http_length_read(digits, &len) || (*found && reader->left != len))
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
        return malformed_response(reader, "a bad Content-Length");
    reader->ends_with_close = false;
    if (reader->status == 204 || reader->status == 304) {
        reader->part = PART_OVER;
    } else if (coding.data != NULL) {
        if (has_length)
            reader->keep_alive = false;
        if (!http_word_is(coding, "chunked"))
            return malformed_response(reader, "a Transfer-Encoding other than chunked");
        reader->chunks = (struct chunked_reader){.loose = true};
        reader->part = PART_CHUNKED;
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
    reader->head_len = 0;
    reader->begun = false;
}

static enum http_response_status end_head(struct http_response_reader *reader)
{
    struct slice rest = slice_of(reader->head, reader->head_len);
    struct slice line = http_take_until(&rest, '\n');

    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line = slice_trim(slice_of(line.data, line.len - 1));
    reader->fields_start = (uint32_t)(reader->head_len - rest.len);
    if (!read_status_line(reader, line) || !fields_are_good(reader))
        return malformed_response(reader, "no head of an HTTP/1.1 response");
    if (reader->status == 101)
        return malformed_response(reader, "an upgrade that was not asked for");
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
            return malformed_response(reader, "a NUL in the head");
        if (reader->head_len == HTTP_RESPONSE_HEAD_MAX)
            return malformed_response(reader, "a head that is too long");
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

/* Takes at most *left bytes, and subtracts them. */
static enum http_response_status take_body(struct slice *bytes, uint64_t *left, struct slice *body)
{
    size_t len = bytes->len;

    if (len > *left)
        len = (size_t)*left;
    *left -= len;
    *body = slice_of(bytes->data, len);
    *bytes = slice_of(bytes->data + len, bytes->len - len);
    return HTTP_RESPONSE_BODY;
}

static enum http_response_status end_body(struct http_response_reader *reader)
{
    reader->part = PART_OVER;
    reader->begun = false;
    return HTTP_RESPONSE_END;
}

static enum http_response_status read_chunked(struct http_response_reader *reader,
                                              struct slice *bytes, struct slice *body)
{
    size_t consumed = 0;
    enum chunked_status status = chunked_read(&reader->chunks, *bytes, &consumed);

    if (status == CHUNKED_BAD)
        return malformed_response(reader, "a bad chunk");
    *bytes = slice_of(bytes->data + consumed, bytes->len - consumed);
    if (status == CHUNKED_END)
        return end_body(reader);
    return status == CHUNKED_DATA ? take_body(bytes, &reader->chunks.left, body)
                                  : HTTP_RESPONSE_MORE;
}

enum http_response_status http_response_next(struct http_response_reader *reader,
                                             struct slice *bytes, struct slice *body)
{
    uint64_t all = UINT64_MAX;

    switch ((enum part)reader->part) {
    case PART_OVER:
        if (reader->begun)
            return end_body(reader);
        start_response(reader);
        return read_head(reader, bytes);
    case PART_LENGTH:
        if (reader->left == 0)
            return end_body(reader);
        return bytes->len > 0 ? take_body(bytes, &reader->left, body) : HTTP_RESPONSE_MORE;
    case PART_CLOSE:
        return bytes->len > 0 ? take_body(bytes, &all, body) : HTTP_RESPONSE_MORE;
    case PART_CHUNKED:
        return read_chunked(reader, bytes, body);
    default:
        return read_head(reader, bytes);
    }
}

enum http_response_status http_response_close(struct http_response_reader *reader)
{
    if (!reader->begun)
        return HTTP_RESPONSE_MORE;
    if (!reader->ends_with_close || reader->part != PART_CLOSE)
        return malformed_response(reader, "the connection ended within a response");
    return end_body(reader);
}
