#include "build_config.h"

#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 4
#define REUSED_BYTES 65536 /* fewer written bytes are not worth a copy */
#define HEADER "Content-Length: "
#define HEADER_END "\r\n\r\n"

const char *const wire_framing_words[] = {"ndjson", "content-length", "length", NULL};
enum wire_framing wire_framing;
bool wire_bridged;

void wire_add_frame(struct text *out, const char *body, size_t len)
{
    char bytes[LENGTH_BYTES] = {(char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len};

    if (wire_framing == WIRE_CONTENT_LENGTH)
        text_printf(out, HEADER "%zu" HEADER_END, len);
    else
        text_add(out, bytes, sizeof bytes);
    text_add(out, body, len);
}

void wire_frame(struct text *out, size_t start)
{
    struct text body = {0};

    if (wire_framing == WIRE_LINES)
        return;
    text_add(&body, out->data + start, out->len - start - 1); /* without the newline */
    out->len = start;
    wire_add_frame(out, body.data, body.len);
    text_free(&body);
}

/* The start of the body, or NULL if the head is incomplete. */
static const char *find_body(const char *bytes, size_t len, size_t *body_len)
{
    const unsigned char *at = (const unsigned char *)bytes;
    const char *end;

    if (wire_framing == WIRE_LENGTH) {
        if (len < LENGTH_BYTES)
            return NULL;
        *body_len = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
        return bytes + LENGTH_BYTES;
    }
    end = memmem(bytes, len, HEADER_END, strlen(HEADER_END));
    if (end == NULL)
        return NULL;
    *body_len = (size_t)strtoull(bytes + strlen(HEADER), NULL, 10);
    return end + strlen(HEADER_END);
}

/* Copies the first frame and a newline to `line`. Returns its size; 0: it is incomplete. */
static size_t unframe(struct text *line, const char *bytes, size_t len)
{
    size_t body_len = 0;
    const char *body = find_body(bytes, len, &body_len);

    line->len = 0;
    if (wire_framing == WIRE_CONTENT_LENGTH && len >= strlen(HEADER) &&
        memcmp(bytes, HEADER, strlen(HEADER)) != 0) { /* not written by the daemon */
        text_add(line, bytes, len);
        return len;
    }
    if (body == NULL || (size_t)(bytes + len - body) < body_len)
        return 0;
    text_add(line, body, body_len);
    text_add(line, "\n", 1);
    return (size_t)(body - bytes) + body_len;
}

/* The size of the first line; 0: it is incomplete. */
static size_t line_size(struct wire_input *input, const char *bytes, size_t len)
{
    const char *newline = memchr(bytes + input->searched, '\n', len - input->searched);

    input->searched = newline != NULL ? 0 : len;
    return newline != NULL ? (size_t)(newline - bytes) + 1 : 0;
}

bool wire_next(struct wire_input *input, const char **line, size_t *len)
{
    struct text *bytes = &input->bytes;
    size_t left = bytes->len - input->taken, size = 0;

    *line = bytes->data + input->taken;
    if (left > 0 && wire_framing == WIRE_LINES)
        size = *len = line_size(input, *line, left);
    else if (left > 0)
        size = unframe(&input->frame, *line, left);
    input->taken += size;
    if (size > 0 && wire_framing != WIRE_LINES) {
        *line = input->frame.data;
        *len = input->frame.len;
    }
    if (size == 0 && input->taken > 0) {
        memmove(bytes->data, *line, left);
        bytes->len = left;
        input->taken = 0;
    }
    return size > 0;
}

void wire_written(struct text *out, size_t *at, size_t len)
{
    *at += len;
    if (*at < out->len && (*at <= out->len / 2 || *at <= REUSED_BYTES))
        return;
    memmove(out->data, out->data + *at, out->len - *at);
    out->len -= *at;
    *at = 0;
}
