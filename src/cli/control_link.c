#include "build_config.h"

#include "cli/control_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/unix_path.h"

#define ANSWER_MS 10000
#define READ_BYTES 65536

/* Always false. */
static bool fail(struct control_link *link, const char *what)
{
    snprintf(link->reason, sizeof link->reason, "%s: %s", what, strerror(errno));
    return false;
}

bool control_link_open(struct control_link *link, const char *path)
{
    *link = (struct control_link){.fd = unix_path_connect(path)};
    if (link->fd >= 0)
        return true;
    snprintf(link->reason, sizeof link->reason, "%s: %s%s", path, strerror(errno),
             errno == EACCES ? "; it is for the user of the daemon, and for root" : "");
    return false;
}

void control_link_adopt(struct control_link *link, int fd)
{
    *link = (struct control_link){.fd = fd};
}

void control_link_close(struct control_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    document_free(&link->reply);
    free(link->in);
    link->in = NULL;
}

bool control_link_send(struct control_link *link, struct slice bytes)
{
    return descriptor_write_all(link->fd, bytes.data, bytes.len) ||
           fail(link, "cannot send the request");
}

/* Waits until there is something to read. */
static bool wait_for_input(struct control_link *link, int64_t until_ms)
{
    struct pollfd ready = {.fd = link->fd, .events = POLLIN};
    int64_t left_ms = -1;
    int count;

    do {
        if (until_ms >= 0)
            left_ms = until_ms - clock_now_ms();
        if (until_ms >= 0 && left_ms < 0)
            left_ms = 0;
        count = poll(&ready, 1, (int)left_ms);
    } while (count < 0 && errno == EINTR);
    if (count > 0)
        return true;
    if (count == 0)
        errno = ETIMEDOUT;
    return fail(link, "no answer");
}

bool control_link_fill(struct control_link *link, int64_t until_ms)
{
    char *grown;
    ssize_t n;

    if (link->in != NULL && link->start > 0)
        memmove(link->in, link->in + link->start, link->len);
    link->start = 0;
    grown = array_grow(link->in, &link->capacity, link->len + READ_BYTES, 1);
    if (grown == NULL)
        return fail(link, "no answer");
    link->in = grown;
    do {
        if (!wait_for_input(link, until_ms))
            return false;
        n = read(link->fd, link->in + link->len, READ_BYTES);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        return fail(link, "no answer");
    link->reason[0] = '\0';
    link->len += (size_t)n;
    return n > 0;
}

bool control_link_read(struct control_link *link, struct slice *line, int timeout_ms)
{
    int64_t until_ms = timeout_ms < 0 ? -1 : clock_now_ms() + timeout_ms;
    size_t seen = 0;

    for (;;) {
        const char *from = link->in != NULL ? link->in + link->start : "";
        const char *newline = link->len > seen ? memchr(from + seen, '\n', link->len - seen) : NULL;

        if (newline != NULL) {
            *line = slice_of(from, (size_t)(newline - from));
            link->start += line->len + 1;
            link->len -= line->len + 1;
            return true;
        }
        seen = link->len;
        if (!control_link_fill(link, until_ms))
            return false;
    }
}

/* NULL with the reason. */
static const struct json_value *result_of(struct control_link *link, struct slice line)
{
    const struct json_value *result, *error, *message;
    struct document_error problem;
    int status;

    document_free(&link->reply);
    status = document_read(&link->reply, line, &problem);
    if (status != STDIO_BUS_OK) {
        snprintf(link->reason, sizeof link->reason, "the answer cannot be read: %s",
                 status == STDIO_BUS_ERR ? "out of memory" : problem.text);
        return NULL;
    }
    result = document_member(link->reply.root, "result");
    if (result != NULL)
        return result;
    error = document_member(link->reply.root, "error");
    message = document_member_of(error, "message", JSON_STRING);
    snprintf(link->reason, sizeof link->reason, "%s",
             message != NULL ? message->text.data : "this is no control socket");
    return NULL;
}

struct slice control_link_result(struct slice line)
{
    static const char before[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":";
    const size_t len = sizeof before - 1;

    if (line.len <= len || memcmp(line.data, before, len) != 0)
        return line;
    return slice_of(line.data + len, line.len - len - 1); /* it is the last member */
}

const struct json_value *control_link_ask(struct control_link *link, const char *method,
                                          const char *params, struct slice *line)
{
    char head[96];
    int len = snprintf(head, sizeof head,
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":", method);

    if (params == NULL)
        params = "{}";
    if (!control_link_send(link, slice_of(head, (size_t)len)) ||
        !control_link_send(link, slice_of_text(params)) ||
        !control_link_send(link, slice_of("}\n", 2)))
        return NULL;
    if (control_link_read(link, line, link->answer_ms > 0 ? link->answer_ms : ANSWER_MS))
        return result_of(link, *line);
    if (link->reason[0] == '\0')
        snprintf(link->reason, sizeof link->reason, "the daemon has closed the connection");
    return NULL;
}
