#include "build_config.h"

#include "remote/login.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/terminal.h"
#include "remote/call.h"
#include "remote/program.h"
#include "json/document.h"

#define TRY_MS 2000
#define NAME_SHOWN 128
#define SCOPES_SHOWN 200
#define WELL_KNOWN "/.well-known/oauth-protected-resource"
#define PATH_SIZE (sizeof WELL_KNOWN + URL_PATH_MAX)

static void refuse(struct call *call)
{
    struct remote *remote = call->exchange.remote;
    char text[CALL_REASON_MAX + REMOTE_LOGIN_MAX];

    snprintf(text, sizeof text, "%s%s", call->refusal, remote->login);
    call_fail(call, text);
}

static void too_late(void *user_data)
{
    refuse(user_data);
}

/* --- what the metadata says --- */

static const char *first_text(const struct json_value *array)
{
    const struct json_value *first = array != NULL && array->type == JSON_ARRAY ? array->first
                                                                                : NULL;

    return first != NULL && first->type == JSON_STRING ? first->text.data : NULL;
}

static void write_scopes(char to[SCOPES_SHOWN], const struct json_value *scopes)
{
    size_t len = 0;

    to[0] = '\0';
    if (scopes == NULL || scopes->type != JSON_ARRAY)
        return;
    for (const struct json_value *scope = scopes->first; scope != NULL; scope = scope->next) {
        if (scope->type != JSON_STRING || scope->text.len + 2 > SCOPES_SHOWN - len)
            continue;
        len += (size_t)snprintf(to + len, SCOPES_SHOWN - len, "%s%s", len > 0 ? " " : "",
                                scope->text.data);
    }
}

static void read_metadata(struct remote *remote, const struct json_value *root)
{
    char place[NAME_SHOWN], scopes[SCOPES_SHOWN], shown[SCOPES_SHOWN];
    const char *server;

    if (root->type != JSON_OBJECT)
        return;
    server = first_text(document_member(root, "authorization_servers"));
    write_scopes(scopes, document_member(root, "scopes_supported"));
    if (server == NULL)
        return;
    snprintf(remote->login, sizeof remote->login,
             "; it gives tokens at %s%s%s%s: npx mcp-remote can log in there",
             terminal_text(place, sizeof place, slice_of_text(server)),
             scopes[0] != '\0' ? " (scopes " : "",
             terminal_text(shown, sizeof shown, slice_of_text(scopes)),
             scopes[0] != '\0' ? ")" : "");
}

/* --- the request --- */

static void metadata_head(struct exchange *exchange, const struct http_response_reader *response)
{
    (void)response;
    if (exchange->status != 200 || !exchange->is_json)
        refuse(call_of(exchange));
}

static void metadata_event(struct exchange *exchange, char *bytes, size_t len)
{
    (void)exchange;
    (void)bytes;
    (void)len;
}

static void metadata_ended(struct exchange *exchange, enum exchange_end end)
{
    struct document document = {.root = NULL};
    struct document_error error;

    if (end == EXCHANGE_COMPLETE &&
        document_read(&document, slice_of(exchange->text, exchange->text_len), &error) ==
            STDIO_BUS_OK) {
        read_metadata(exchange->remote, document.root);
        document_free(&document);
    }
    refuse(call_of(exchange));
}

static const struct exchange_handler handler = {
    .head = metadata_head, .event = metadata_event, .ended = metadata_ended};

/* The value of resource_metadata="URL" in the challenge, or else the place that RFC 9728 has for
 * the path. False: it is at another server, which is not asked. */
static bool find_path(char path[PATH_SIZE], const struct exchange *exchange)
{
    static const char word[] = "resource_metadata=\"";
    const struct remote_url *url = &exchange->remote->options->url;
    const char *at = strstr(exchange->challenge, word);
    struct remote_url to = {.is_tls = false};
    char text[EXCHANGE_CHALLENGE_MAX];

    if (at == NULL) {
        snprintf(path, PATH_SIZE, WELL_KNOWN "%.*s", (int)strcspn(exchange->remote->path, "?"),
                 exchange->remote->path);
        return true;
    }
    at += sizeof word - 1;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(at, "\""), at);
    if (url_read(&to, text) != NULL || !url_is_same(&to, url))
        return false;
    snprintf(path, PATH_SIZE, "%s", to.path);
    return true;
}

bool login_try(struct call *call)
{
    struct remote *remote = call->exchange.remote;
    char reason[CALL_REASON_MAX], path[PATH_SIZE];

    if (call->exchange.status != 401 || remote->login[0] != '\0' ||
        remote->options->token != NULL || headers_have(&remote->options->headers, "authorization"))
        return false;
    free(call->refusal);
    call->refusal = slice_copy(slice_of_text(call_reason(call, reason)));
    if (call->refusal == NULL)
        return false;
    snprintf(remote->login, sizeof remote->login, "; npx mcp-remote can log in");
    if (!find_path(path, &call->exchange)) {
        refuse(call);
        return true;
    }
    call->exchange.handler = &handler;
    timer_init(&call->again, too_late, call);
    stdio_bus_event_loop_start_timer(remote->loop, &call->again, TRY_MS);
    if (call_look(call, path) != STDIO_BUS_OK)
        refuse(call);
    return true;
}
