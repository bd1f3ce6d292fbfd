#include "build_config.h"

#include "test_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_length(const struct worker *worker)
{
    return strcmp(worker->framing, "length") == 0;
}

static void add_frame(struct text *to, bool length, const char *body, size_t len)
{
    if (length) {
        unsigned char bytes[4] = {(unsigned char)(len >> 24), (unsigned char)(len >> 16),
                                  (unsigned char)(len >> 8), (unsigned char)len};
        text_add(to, bytes, 4);
    } else {
        text_printf(to, "Content-Length: %zu\r\n\r\n", len);
    }
    text_add(to, body, len);
}

void worker_frame_lines(struct worker *worker)
{
    struct text frames = {0};
    if (worker->output.len == 0)
        return;
    char *at = worker->output.data, *end = at + worker->output.len;
    while (at < end) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *stop = newline != NULL ? newline : end;
        add_frame(&frames, is_length(worker), at, (size_t)(stop - at));
        at = newline != NULL ? newline + 1 : end;
    }
    text_free(&worker->output);
    worker->output = frames;
}

/* Returns the length that a head announces, and puts the head's own into *head; -1 when the head is
 * not whole. The daemon's heads have one form. */
static long read_head(const struct worker *worker, const char *at, size_t len, size_t *head)
{
    static const char name[] = "Content-Length: ";
    const unsigned char *bytes = (const unsigned char *)at;
    if (is_length(worker)) {
        *head = 4;
        return len < 4 ? -1 : (long)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
    }
    const char *end = len > 0 ? memchr(at, '\n', len) : NULL;
    if (end == NULL || end + 1 >= at + len - 1)
        return -1;
    char *digits_end;
    long body = strtol(at + strlen(name), &digits_end, 10);
    if (memcmp(at, name, strlen(name)) != 0 || memcmp(digits_end, "\r\n\r\n", 4) != 0) {
        fprintf(stderr, "test_worker: not a head: %.*s\n", (int)(end - at), at);
        _exit(5);
    }
    *head = (size_t)(digits_end + 4 - at);
    return body;
}

bool worker_next_body(struct worker *worker, struct span *body)
{
    size_t len = worker->input.len - worker->consumed, head = 0;
    if (len == 0)
        return false;
    const char *at = worker->input.data + worker->consumed;
    long length = read_head(worker, at, len, &head);
    if (length < 0 || len - head < (size_t)length)
        return false;
    *body = (struct span){at + head, (size_t)length};
    worker->consumed += head + (size_t)length;
    return true;
}
