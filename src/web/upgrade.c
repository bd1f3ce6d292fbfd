#include "build_config.h"

#include "web/upgrade.h"

#include <stdio.h>

#include "base/error.h"
#include "base/random.h"
#include "http/response.h"
#include "http/websocket_write.h"
#include "router/group.h"
#include "transport/connection_send.h"
#include "web/websocket.h"

#define ID_BYTES 16
#define ID_LEN (2 * ID_BYTES)

/* What the messages of the daemon are called; the first one that is offered is agreed on. */
static const char *const subprotocols[] = {"mcp", "acp", "lsp", "jsonrpc", "json-rpc"};

bool http_upgrade_wanted(const struct http_head *head, struct slice bytes)
{
    return head->method == HTTP_GET && head->minor > 0 &&
           http_head_lists(head, bytes, HTTP_UPGRADE, "websocket");
}

static const struct message_id no_id;

static void refuse(struct http_exchange *http, int status, const char *text, const char *more)
{
    char line[MESSAGE_ERROR_MAX];
    size_t len = message_write_error(line, sizeof line, no_id, JSONRPC_INVALID_REQUEST, text);

    http_reader_skip_body(&http->reader);
    http_answer(http, status, "application/json", slice_of(line, len),
                slice_of(more, strlen(more)));
}

/* RFC 6455, 4.2.1. True: refused. */
static bool refuse_request(struct http_exchange *http, const struct http_head *head,
                           struct slice bytes)
{
    struct slice version = http_head_value(head, bytes, HTTP_SEC_WEBSOCKET_VERSION);
    struct slice key = http_head_value(head, bytes, HTTP_SEC_WEBSOCKET_KEY);

    if (head->body != HTTP_BODY_NONE)
        refuse(http, 400, "a request for an upgrade has no body", "");
    else if (!http_head_lists(head, bytes, HTTP_CONNECTION, "upgrade"))
        refuse(http, 400, "Upgrade without Connection: Upgrade", "");
    else if (version.data == NULL || !slice_equal(version, slice_of("13", 2)))
        refuse(http, 426, "the version of WebSocket is 13",
               "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
    else if (key.data == NULL || !websocket_key_valid(key))
        refuse(http, 400, "Sec-WebSocket-Key is not the base64 of 16 bytes", "");
    else
        return false;
    return true;
}

/* --- 101 --- */

static void add_subprotocol(struct http_output *out, const struct http_head *head,
                            struct slice bytes)
{
    struct slice offered;
    size_t at = 0;

    while (http_head_next_member(head, bytes, HTTP_SEC_WEBSOCKET_PROTOCOL, &at, &offered)) {
        for (size_t i = 0; i < sizeof subprotocols / sizeof subprotocols[0]; i++) {
            if (slice_equal(offered, slice_of(subprotocols[i], strlen(subprotocols[i])))) {
                http_write_field(out, "Sec-WebSocket-Protocol", offered);
                return;
            }
        }
    }
}

/* The pool, or one that a message may name, is of ACP. */
static bool may_be_acp(const struct http_exchange *http)
{
    const struct config *config = http->hub->bus->options.config;

    if (http->pool != NULL)
        return http->pool->mode.protocol == PROTOCOL_ACP;
    for (size_t i = 0; i < config->pool_count; i++) {
        if (config->pools[i].mode.protocol == PROTOCOL_ACP)
            return true;
    }
    return false;
}

/* ACP names the connection. */
static bool add_connection_id(struct http_output *out, const struct http_exchange *http)
{
    unsigned char random[ID_BYTES];
    char text[ID_LEN + 1];

    if (!may_be_acp(http))
        return true;
    if (!random_bytes(random, sizeof random))
        return false;
    for (size_t i = 0; i < ID_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    http_write_text(out, "Acp-Connection-Id", text);
    return true;
}

/* Extensions are declined: none is named. False: memory or random bytes are out. */
static bool accept_request(struct http_exchange *http, const struct http_head *head,
                           struct slice bytes)
{
    char text[HTTP_RESPONSE_MAX], accept[WEBSOCKET_ACCEPT_LEN];
    struct http_output out = {.to = text, .size = sizeof text};

    websocket_accept(accept, http_head_value(head, bytes, HTTP_SEC_WEBSOCKET_KEY));
    http_write_status(&out, 101);
    http_write_text(&out, "Upgrade", "websocket");
    http_write_text(&out, "Connection", "Upgrade");
    http_write_field(&out, "Sec-WebSocket-Accept", slice_of(accept, sizeof accept));
    add_subprotocol(&out, head, bytes);
    if (!add_connection_id(&out, http))
        return false;
    http_write_end(&out);
    return !out.full &&
           connection_send_bytes(http_connection(http), slice_of(text, out.len)) == STDIO_BUS_OK;
}

void http_upgrade_begin(struct http_exchange *http, struct slice bytes)
{
    const struct http_head *head = &http->reader.head;
    struct http_websocket *websocket;

    if (refuse_request(http, head, bytes))
        return;
    websocket = http_websocket_prepare();
    if (websocket != NULL && accept_request(http, head, bytes)) {
        http_websocket_open(http, websocket);
        return;
    }
    http_websocket_drop(websocket);
    http_reader_skip_body(&http->reader);
    http_answer_error(http, 503, no_id, JSONRPC_SERVER_ERROR, "out of memory");
}
