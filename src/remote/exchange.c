#include "build_config.h"

#include "remote/exchange.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/error.h"

#define HEAD_MAX                                                                                   \
    (EXCHANGE_FIELDS_MAX + URL_PATH_MAX + TOKEN_MAX + HEADERS_BYTES_MAX + 4 * PROXY_LOGIN_MAX +    \
     4096)
#define SHOWN_MAX 65536 /* bytes of the body of a refusal */
#define TEXT_MIN 1024

/* --- the request --- */

static void add(struct json_output *out, const char *text)
{
    json_output_add(out, slice_of_text(text));
}

/* A proxy gets the whole URL. */
static void add_target(const struct exchange *exchange, struct json_output *out)
{
    const struct remote *remote = exchange->remote;

    if (remote->proxy.is_used && !remote->options->url.is_tls) {
        add(out, "http://");
        add(out, remote->options->url.authority);
    }
    add(out, exchange->path != NULL ? exchange->path : remote->path);
}

static void add_proxy_login(struct json_output *out, const struct remote_proxy *proxy)
{
    char login[2 * PROXY_LOGIN_MAX], code[BASE64_LEN(sizeof login)];
    struct slice bytes;

    snprintf(login, sizeof login, "%s:%s", proxy->user, proxy->password);
    bytes = slice_of_text(login);
    base64_encode(code, bytes);
    add(out, "Proxy-Authorization: Basic ");
    json_output_add(out, slice_of(code, BASE64_LEN(bytes.len)));
    add(out, "\r\n");
}

/* What the user says of each request. */
static void add_own_fields(const struct exchange *exchange, struct json_output *out)
{
    const struct remote *remote = exchange->remote;
    const struct remote_options *options = remote->options;

    if (!headers_have(&options->headers, "user-agent"))
        add(out, "User-Agent: " PACKAGE_NAME "/" PACKAGE_VERSION "\r\n");
    if (options->token != NULL) {
        add(out, "Authorization: Bearer ");
        json_output_add(out, slice_of(options->token->text, options->token->len));
        add(out, "\r\n");
    }
    for (size_t i = 0; i < options->headers.count; i++) {
        json_output_add(out, options->headers.all[i].name);
        add(out, ": ");
        add(out, options->headers.all[i].value);
        add(out, "\r\n");
    }
    if (remote->proxy.is_used && !options->url.is_tls && remote->proxy.user[0] != '\0')
        add_proxy_login(out, &remote->proxy);
}

static size_t write_head(const struct exchange *exchange, char *to, size_t size)
{
    struct json_output out = {.to = to, .size = size};
    char length[64];

    add(&out, exchange->method);
    add(&out, " ");
    add_target(exchange, &out);
    add(&out, " HTTP/1.1\r\nHost: ");
    add(&out, exchange->remote->options->url.authority);
    add(&out, "\r\n");
    add_own_fields(exchange, &out);
    if (exchange->fields != NULL)
        add(&out, exchange->fields);
    if (exchange->body.data != NULL) {
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", exchange->body.len);
        add(&out, "Content-Type: application/json\r\n");
        add(&out, length);
    }
    add(&out, "\r\n");
    return out.full ? 0 : out.len;
}

static int send_request(struct exchange *exchange)
{
    char head[HEAD_MAX];
    size_t len = write_head(exchange, head, sizeof head);

    if (len == 0 || link_send(exchange->link, slice_of(head, len)) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (exchange->body.data != NULL && link_send(exchange->link, exchange->body) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    exchange->is_sent = true;
    return STDIO_BUS_OK;
}

/* --- the response --- */

static void finish(struct exchange *exchange, enum exchange_end how)
{
    exchange->link = NULL;
    exchange->handler->ended(exchange, how);
}

/* Ends it while its connection is open. */
static void give_up(struct exchange *exchange, enum exchange_end how, const char *reason)
{
    snprintf(exchange->reason, sizeof exchange->reason, "%s", reason);
    link_free(exchange->link);
    finish(exchange, how);
}

static void ready(void *user)
{
    struct exchange *exchange = user;

    if (send_request(exchange) != STDIO_BUS_OK)
        give_up(exchange, EXCHANGE_FAILED, "out of memory");
}

static bool is_good(const struct exchange *exchange)
{
    return exchange->status >= 200 && exchange->status < 300;
}

static void read_challenge(struct exchange *exchange, const struct http_response_reader *response)
{
    struct slice field = {NULL, 0};

    if (exchange->status == 401 || exchange->status == 403)
        field = http_response_field(response, "www-authenticate");
    snprintf(exchange->challenge, sizeof exchange->challenge, "%.*s",
             field.len < INT_MAX ? (int)field.len : INT_MAX, field.len > 0 ? field.data : "");
}

static void read_head(void *user, const struct http_response_reader *response)
{
    struct exchange *exchange = user;

    exchange->status = response->status;
    exchange->is_json = http_response_is(response, "application/json");
    exchange->is_html = http_response_is(response, "text/html");
    read_challenge(exchange, response);
    exchange->text_len = 0;
    exchange->text_max =
        is_good(exchange) && exchange->is_json ? exchange->remote->limits.max_message : SHOWN_MAX;
    exchange->kind = EXCHANGE_BODY_TEXT;
    if (is_good(exchange) && http_response_is(response, "text/event-stream")) {
        exchange->kind = EXCHANGE_BODY_EVENTS;
        exchange->events.max_data = exchange->remote->limits.max_message;
        http_event_reset(&exchange->events);
    }
    snprintf(exchange->reason, sizeof exchange->reason, "%u %.*s", response->status,
             (int)(response->reason.len < 64 ? response->reason.len : 64), response->reason.data);
    exchange->handler->head(exchange, response);
}

/* What exceeds the limit of a refusal is left out. */
static void add_text(struct exchange *exchange, struct slice bytes)
{
    size_t size = exchange->text_size, room = exchange->text_max - exchange->text_len;
    char *text = exchange->text;

    if (bytes.len > room && is_good(exchange) && exchange->is_json) {
        give_up(exchange, EXCHANGE_UNUSABLE, "the server's answer is longer than 64 MiB");
        return;
    }
    if (bytes.len > room)
        bytes.len = room;
    while (size - exchange->text_len < bytes.len)
        size = size < TEXT_MIN ? TEXT_MIN : size * 2;
    if (size > exchange->text_size) {
        text = realloc(exchange->text, size);
        if (text == NULL) {
            give_up(exchange, EXCHANGE_UNUSABLE, "out of memory");
            return;
        }
        exchange->text = text;
        exchange->text_size = size;
    }
    if (bytes.len > 0)
        memcpy(text + exchange->text_len, bytes.data, bytes.len);
    exchange->text_len += bytes.len;
}

static void read_events(struct exchange *exchange, struct slice bytes)
{
    struct http_event_reader *events = &exchange->events;
    const struct remote_link *link = exchange->link;

    while (exchange->link == link) {
        switch (http_event_next(events, &bytes)) {
        case HTTP_EVENT_MORE:
            return;
        case HTTP_EVENT_WHOLE:
            if (events->is_message && events->len > 0)
                exchange->handler->event(exchange, events->bytes, events->len);
            else if (events->is_endpoint && exchange->handler->endpoint != NULL)
                exchange->handler->endpoint(exchange);
            break;
        case HTTP_EVENT_TOO_LONG:
            give_up(exchange, EXCHANGE_UNUSABLE, "a message of the server is longer than 64 MiB");
            return;
        case HTTP_EVENT_NO_MEMORY:
            give_up(exchange, EXCHANGE_UNUSABLE, "out of memory");
            return;
        }
    }
}

static void read_body(void *user, struct slice bytes)
{
    struct exchange *exchange = user;

    if (exchange->kind == EXCHANGE_BODY_EVENTS)
        read_events(exchange, bytes);
    else if (exchange->kind == EXCHANGE_BODY_TEXT)
        add_text(exchange, bytes);
}

static void over(void *user)
{
    struct exchange *exchange = user;

    finish(exchange, is_good(exchange) ? EXCHANGE_COMPLETE : EXCHANGE_REFUSED);
}

static void broken(void *user, const char *reason)
{
    struct exchange *exchange = user;
    bool has_head = exchange->status != 0;

    if (!has_head || is_good(exchange))
        snprintf(exchange->reason, sizeof exchange->reason, "%s", reason);
    finish(exchange, !has_head           ? EXCHANGE_FAILED
                     : is_good(exchange) ? EXCHANGE_CUT
                                         : EXCHANGE_REFUSED);
}

static const struct link_handler link_handler = {
    .ready = ready,
    .head = read_head,
    .body = read_body,
    .over = over,
    .broken = broken,
};

/* --- start and end --- */

int exchange_start(struct exchange *exchange)
{
    exchange->is_sent = false;
    exchange->status = 0;
    exchange->is_json = exchange->is_html = false;
    exchange->reason[0] = exchange->challenge[0] = '\0';
    exchange->link = link_take(exchange->remote, &link_handler, exchange);
    if (exchange->link == NULL)
        return STDIO_BUS_ERR;
    if (!link_is_ready(exchange->link) || send_request(exchange) == STDIO_BUS_OK)
        return STDIO_BUS_OK;
    exchange_stop(exchange);
    return STDIO_BUS_ERR;
}

void exchange_stop(struct exchange *exchange)
{
    if (exchange->link != NULL)
        link_free(exchange->link);
    exchange->link = NULL;
}

void exchange_drain(struct exchange *exchange)
{
    if (exchange->link != NULL)
        link_drain(exchange->link);
    exchange->link = NULL;
}

void exchange_free(struct exchange *exchange)
{
    exchange_stop(exchange);
    http_event_free(&exchange->events);
    free(exchange->text);
    free(exchange->fields);
    exchange->text = exchange->fields = NULL;
    exchange->text_len = exchange->text_size = 0;
}
