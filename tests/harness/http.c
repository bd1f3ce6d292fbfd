#include "build_config.h"

#include "http.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "deadline.h"
#include "steps.h"
#include "suite.h"

static void http_free(void *object)
{
    struct http *http = object;

    text_free(&http->head);
    text_free(&http->event);
    text_free(&http->body);
    free(http);
}

struct http *http_adopt(struct client *client)
{
    struct http *http = calloc(1, sizeof *http);

    if (http == NULL)
        abort();
    http->client = client;
    http->over = true;
    harness_at_end(http_free, http);
    return http;
}

struct http *http_connect(const struct daemon *daemon)
{
    return http_adopt(client_connect(daemon));
}

struct http *http_connect_from(const struct daemon *daemon, const char *address)
{
    struct client *client = client_try_connect_from(daemon, address);

    ck_assert_msg(client != NULL, "cannot connect from %s", address);
    return http_adopt(client);
}

struct client *http_client_at(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    ck_assert_msg(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "port %u: %s",
                  port, strerror(errno));
    return client_adopt(fd, fd);
}

struct client *http_client(struct daemon *daemon)
{
    const char *line = daemon_wait_log(daemon, "listening on [0-9.]+:[0-9]+");

    return http_client_at((unsigned)strtoul(strrchr(line, ':') + 1, NULL, 10));
}

const char *http_ask(struct client *client, const char *head, const char *body)
{
    struct text *text = test_text();
    const char *answer;

    text_printf(text, "%sConnection: close\r\n", head);
    if (body != NULL)
        text_printf(text, "Content-Length: %zu\r\n", strlen(body));
    text_printf(text, "\r\n%s", body != NULL ? body : "");
    client_send_bytes(client, text->data, text->len);
    while (client_read_before(client, deadline_usual()))
        ;
    ck_assert_msg(client->eof, "no end of the answer");
    answer = test_format("%.*s", (int)client->input.len,
                         client->input.len > 0 ? client->input.data : "");
    client_close(client);
    return answer;
}

/* --- requests --- */

static void send_request(struct http *http, const char *method, const char *target,
                         const char *fields, const char *body, size_t len)
{
    struct text text = {0};

    text_printf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, target,
                fields != NULL ? fields : "");
    if (body != NULL)
        text_printf(&text, "Content-Length: %zu\r\n", len);
    text_printf(&text, "\r\n");
    text_add(&text, body != NULL ? body : "", len);
    client_send_bytes(http->client, text.data, text.len);
    text_free(&text);
}

void http_send(struct http *http, const char *method, const char *target, const char *fields,
               const char *body)
{
    struct text text = {0};

    text_printf(&text, "%s", body != NULL ? body : "");
    text_quote(&text, 0);
    send_request(http, method, target, fields, body != NULL ? text.data : NULL, text.len);
    text_free(&text);
}

void http_post(struct http *http, const char *session, const char *format, ...)
{
    struct text body = {0};
    const char *fields = HTTP_POST_FIELDS;
    va_list arguments;

    va_start(arguments, format);
    text_vprintf(&body, format, arguments);
    va_end(arguments);
    text_quote(&body, 0);
    if (session != NULL)
        fields = test_format(HTTP_POST_FIELDS "Mcp-Session-Id: %s\r\n"
                                              "MCP-Protocol-Version: 2025-11-25\r\n",
                             session);
    send_request(http, "POST", "/mcp", fields, body.data, body.len);
    text_free(&body);
}

/* --- answers --- */

static const char *wait_bytes(struct http *http, size_t len)
{
    struct client *client = http->client;
    int64_t deadline = deadline_usual();

    if (client->input.len - client->consumed < len)
        harness_step();
    while (client->input.len - client->consumed < len) {
        if (!client_read_before(client, deadline))
            ck_abort_msg("%s instead of an answer; so far: %.*s",
                         client->eof ? "the end" : "nothing",
                         (int)(client->input.len - client->consumed),
                         client->input.data != NULL ? client->input.data + client->consumed : "");
    }
    return client->input.data + client->consumed;
}

/* The next line, its end included. */
static struct span take_line(struct http *http)
{
    size_t len = 1;
    const char *at = wait_bytes(http, len);

    while (at[len - 1] != '\n')
        at = wait_bytes(http, ++len);
    http->client->consumed += len;
    return (struct span){at, len};
}

int http_status(struct http *http)
{
    struct span line, length;

    ck_assert_msg(http->over, "the last answer was not read");
    text_free(&http->head);
    text_free(&http->body);
    do {
        line = take_line(http);
        text_add(&http->head, line.data, line.len);
    } while (line.len > 2);
    ck_assert_msg(sscanf(http->head.data, "HTTP/1.1 %d ", &http->status) == 1, "no head: %s",
                  http->head.data);
    http->chunked = http_field(http, "Transfer-Encoding").data != NULL;
    length = http_field(http, "Content-Length");
    http->left = length.data != NULL ? strtoul(length.data, NULL, 10) : 0;
    http->over = !http->chunked && http->left == 0;
    return http->status;
}

struct span http_field(const struct http *http, const char *name)
{
    const char *line = http->head.data;
    size_t len = strlen(name);

    while ((line = strstr(line, "\r\n")) != NULL) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && strncmp(line + len, ": ", 2) == 0) {
            line += len + 2;
            return (struct span){line, strcspn(line, "\r")};
        }
    }
    return (struct span){NULL, 0};
}

/* Reads more of the body. */
static void read_body(struct http *http)
{
    struct client *client = http->client;
    size_t len;
    const char *at;

    if (http->left == 0) { /* a chunk, or the last one */
        http->left = strtoul(take_line(http).data, NULL, 16);
        if (http->left == 0) {
            ck_assert_uint_eq(take_line(http).len, 2);
            http->over = true;
            return;
        }
    }
    at = wait_bytes(http, 1);
    len = client->input.len - client->consumed;
    len = len < http->left ? len : http->left;
    text_add(&http->body, at, len);
    client->consumed += len;
    http->left -= len;
    if (http->left > 0)
        return;
    if (http->chunked)
        ck_assert_uint_eq(take_line(http).len, 2);
    else
        http->over = true;
}

struct span http_body(struct http *http)
{
    while (!http->over)
        read_body(http);
    return (struct span){http->body.data != NULL ? http->body.data : "", http->body.len};
}

struct span http_expect(struct http *http, int status)
{
    struct span body;

    http_status(http);
    body = http_body(http);
    ck_assert_msg(http->status == status, "%d instead of %d: %.*s", http->status, status,
                  SHOWN(body));
    return body;
}

/* --- events --- */

struct span http_event(struct http *http)
{
    for (;;) {
        const char *end, *data;

        while (http->body.data == NULL || (end = strstr(http->body.data, "\n\n")) == NULL) {
            ck_assert_msg(!http->over, "the stream ended instead of an event");
            read_body(http);
        }
        text_free(&http->event);
        text_add(&http->event, http->body.data, (size_t)(end + 1 - http->body.data));
        end += 2;
        memmove(http->body.data, end, http->body.len - (size_t)(end - http->body.data) + 1);
        http->body.len -= http->event.len + 1;
        if (http->event.data[0] == ':')
            continue;
        data = strstr(http->event.data, "data:");
        ck_assert_msg(data != NULL, "an event without data: %s", http->event.data);
        data += strncmp(data, "data: ", 6) == 0 ? 6 : 5;
        return (struct span){data, strcspn(data, "\n")};
    }
}

struct span http_event_id(const struct http *http)
{
    const char *id = strstr(http->event.data, "id: ");

    if (id == NULL)
        return (struct span){NULL, 0};
    return (struct span){id + 4, strcspn(id + 4, "\n")};
}

void http_expect_end(struct http *http)
{
    struct span body = http_body(http);

    ck_assert_msg(body.len == 0, "more events: %.*s", SHOWN(body));
}

/* --- sessions --- */

const char *http_session(struct http *http)
{
    const char *session;
    struct span id;

    http_post(http, NULL,
              "{'jsonrpc':'2.0','id':'init','method':'initialize','params':{"
              "'result':{'protocolVersion':'2025-11-25'}}}");
    http_expect(http, 200);
    id = http_field(http, "Mcp-Session-Id");
    ck_assert_ptr_nonnull(id.data);
    session = test_format("%.*s", (int)id.len, id.data);
    http_post(http, session, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    http_expect(http, 202);
    return session;
}

void http_open_stream(struct http *http, const char *session)
{
    http_send(http, "GET", "/mcp",
              test_format("Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n", session), NULL);
    ck_assert_int_eq(http_status(http), 200);
}
