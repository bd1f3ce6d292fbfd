#include "build_config.h"

#include "web.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"

#define STALL_MS 60 /* without input: a lasting fault has had its effect */

void web_close(struct web *web)
{
    if (web->fd >= 0)
        close(web->fd);
    web->fd = -1;
    text_free(&web->input);
}

/* Only a fault brings this about. */
static void web_lost(struct web *web)
{
    web->run->client_lost = true;
    web_close(web);
}

void web_open(struct web *web, struct run *run)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int64_t deadline = deadline_usual();

    *web = (struct web){.run = run, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/http", run->dir);
    while (connect(web->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        if (!run_alive(run)) {
            web_lost(web);
            return;
        }
        if (deadline_over(deadline))
            run_fail(run, "the HTTP listener cannot be connected to");
        nap();
    }
}

/* Whether the answer is whole. */
static bool is_whole(const struct text *input)
{
    const char *end = input->len > 0 ? strstr(input->data, "\r\n\r\n") : NULL, *length;

    if (end == NULL)
        return false;
    length = strstr(input->data, "Content-Length: ");
    if (length != NULL && length < end)
        return strlen(end + 4) >= strtoul(length + 16, NULL, 10);
    return strstr(input->data, "chunked") == NULL || strstr(end, "\r\n0\r\n\r\n") != NULL;
}

void web_send_bytes(struct web *web, const void *bytes, size_t len)
{
    if (web->fd >= 0 && send(web->fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
        web_lost(web);
}

void web_send(struct web *web, const char *head, const char *body)
{
    struct text text = {0}, quoted = {0};

    text_printf(&quoted, "%s", body);
    text_quote(&quoted, 0);
    text_printf(&text, "%s", head);
    if (quoted.len > 0)
        text_printf(&text, "Content-Length: %zu\r\n", quoted.len);
    text_printf(&text, "\r\n%s", quoted.data);
    text_free(&web->input);
    web_send_bytes(web, text.data, text.len);
    text_free(&text);
    text_free(&quoted);
}

bool web_read(struct web *web)
{
    ssize_t n;

    if (!wait_fd(web->fd, POLLIN, now_ms() + STALL_MS)) {
        run_lift(web->run);
        return false;
    }
    n = read(web->fd, text_room(&web->input, 65536), 65535);
    if (n > 0) {
        web->input.len += (size_t)n;
        web->input.data[web->input.len] = '\0';
    } else {
        web_lost(web);
    }
    return true;
}

bool web_await(struct web *web)
{
    int64_t deadline = deadline_usual();

    while (web->fd >= 0 && !is_whole(&web->input)) {
        if (!web_read(web) && deadline_over(deadline))
            run_fail(web->run, "no whole answer, but %s",
                     web->input.len > 0 ? web->input.data : "nothing");
    }
    return web->fd >= 0;
}

bool web_ask(struct web *web, const char *head, const char *body)
{
    web_send(web, head, body);
    return web_await(web);
}

/* The log says why something may be lost. */
static bool has_warned(struct web *web)
{
    return run_logged(web->run, "WARN ") || run_logged(web->run, "ERROR ");
}

bool web_await_words(struct web *web, const char *words)
{
    int64_t deadline = deadline_usual();

    while (web->fd >= 0) {
        if (web->input.len > 0 && strstr(web->input.data, words) != NULL)
            return true;
        if (web_read(web))
            continue;
        if (has_warned(web))
            return false;
        if (deadline_over(deadline))
            run_fail(web->run, "nothing with %s", words);
    }
    return false;
}
