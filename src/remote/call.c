#include "build_config.h"

#include "remote/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/terminal.h"
#include "remote/program.h"

struct page {
    struct slice left;
    char *to;
    size_t len, size;
    bool blank; /* something has been written, and blanks came after it */
};

static void page_add(struct page *page, char byte)
{
    bool is_blank = byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';

    if (is_blank) {
        page->blank = page->len > 0;
        return;
    }
    if (page->blank && page->len < page->size)
        page->to[page->len++] = ' ';
    page->blank = false;
    if (page->len < page->size)
        page->to[page->len++] = byte;
}

static void skip(struct page *page, size_t len)
{
    page->left.data += len;
    page->left.len -= len;
}

static bool begins(const struct page *page, const char *word)
{
    size_t len = strlen(word);

    return page->left.len >= len && strncasecmp(page->left.data, word, len) == 0;
}

/* Skips up to the end of the word, or everything. */
static void skip_past(struct page *page, const char *word)
{
    while (page->left.len > 0 && !begins(page, word))
        skip(page, 1);
    if (page->left.len > 0)
        skip(page, strlen(word));
}

static void skip_tag(struct page *page)
{
    static const struct {
        const char *begin, *end;
    } unseen[] = {
        {"<!--", "-->"}, {"<script", "</script"}, {"<style", "</style"}, {"<svg", "</svg"}};

    for (size_t i = 0; i < sizeof unseen / sizeof unseen[0]; i++) {
        if (!begins(page, unseen[i].begin))
            continue;
        skip_past(page, unseen[i].end);
        if (i == 0)
            return;
        break;
    }
    skip_past(page, ">");
}

/* A character that HTML has a name for. False: it is none of these. */
static bool take_entity(struct page *page)
{
    static const struct {
        const char *name;
        char byte;
    } entities[] = {{"&lt;", '<'},   {"&gt;", '>'},    {"&amp;", '&'}, {"&quot;", '"'},
                    {"&#39;", '\''}, {"&apos;", '\''}, {"&nbsp;", ' '}};

    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        if (!begins(page, entities[i].name))
            continue;
        page_add(page, entities[i].byte);
        skip(page, strlen(entities[i].name));
        return true;
    }
    return false;
}

/* Writes what the bytes say in one line, without blanks around it; of HTML without tags, styles,
 * scripts and comments. What has no room is left out. The text may have control characters.
 * Returns its length. */
static size_t page_line(char *to, size_t size, struct slice bytes, bool is_html)
{
    struct page page = {.left = bytes, .to = to, .size = size};

    while (page.left.len > 0 && page.len < size) {
        if (is_html && page.left.data[0] == '<') {
            skip_tag(&page);
            page_add(&page, ' ');
        } else if (!is_html || page.left.data[0] != '&' || !take_entity(&page)) {
            page_add(&page, page.left.data[0]);
            skip(&page, 1);
        }
    }
    return page.len;
}

#define BODY_SHOWN 120    /* bytes of a refusal that is no JSON-RPC */
#define CANCELLED_MAX 100 /* streams of cancelled requests that stay open */

static void add_text(struct json_output *out, const char *text)
{
    json_output_add(out, slice_of_text(text));
}

/* --- creating --- */

struct call *call_create(struct remote *remote, enum call_kind kind,
                         const struct exchange_handler *handler, struct slice message)
{
    struct call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    if (message.len > 0) {
        call->bytes = malloc(message.len);
        if (call->bytes == NULL) {
            free(call);
            return NULL;
        }
        memcpy(call->bytes, message.data, message.len);
        call->len = message.len;
    }
    call->kind = kind;
    call->exchange.remote = remote;
    call->exchange.handler = handler;
    list_append(&remote->calls, &call->node);
    if (kind == CALL_REQUEST)
        remote->request_count++;
    return call;
}

/* --- sending --- */

static int set_fields(struct call *call, const char *accept, const char *last_event)
{
    const struct remote_session *session = &call->exchange.remote->session;
    char text[EXCHANGE_FIELDS_MAX] = "";
    struct json_output out = {.to = text, .size = sizeof text - 1};
    char *copy;

    if (accept != NULL) {
        add_text(&out, "Accept: ");
        add_text(&out, accept);
        add_text(&out, "\r\n");
    }
    if (call->own_fields != NULL)
        add_text(&out, call->own_fields);
    if (!call->is_stateless && !call->begins && session->begun) {
        if (session->id[0] != '\0') {
            add_text(&out, "Mcp-Session-Id: ");
            add_text(&out, session->id);
            add_text(&out, "\r\n");
        }
        add_text(&out, "MCP-Protocol-Version: ");
        add_text(&out, session->version);
        add_text(&out, "\r\n");
    }
    if (last_event != NULL && last_event[0] != '\0') {
        add_text(&out, "Last-Event-ID: ");
        add_text(&out, last_event);
        add_text(&out, "\r\n");
    }
    copy = out.full ? NULL : slice_copy(slice_of(text, out.len));
    if (copy == NULL)
        return STDIO_BUS_ERR;
    free(call->exchange.fields);
    call->exchange.fields = copy;
    call->session = session->begun && !call->is_stateless && !call->begins ? session->number : 0;
    return STDIO_BUS_OK;
}

int call_post(struct call *call)
{
    if (set_fields(call, "application/json, text/event-stream", NULL) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    call->exchange.method = "POST";
    call->exchange.body = slice_of(call->bytes, call->len);
    return exchange_start(&call->exchange);
}

int call_continue(struct call *call)
{
    if (set_fields(call, "text/event-stream", call->exchange.events.id) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    call->exchange.method = "GET";
    call->exchange.body = slice_of(NULL, 0);
    return exchange_start(&call->exchange);
}

int call_delete(struct call *call)
{
    if (set_fields(call, NULL, NULL) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    call->exchange.method = "DELETE";
    return exchange_start(&call->exchange);
}

int call_look(struct call *call, const char *path)
{
    free(call->place);
    call->place = slice_copy(slice_of_text(path));
    if (call->place == NULL || set_fields(call, "application/json", NULL) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    call->exchange.path = call->place;
    call->exchange.method = "GET";
    call->exchange.body = slice_of(NULL, 0);
    return exchange_start(&call->exchange);
}

/* --- the end --- */

static void free_call(void *user_data)
{
    struct call *call = user_data;

    exchange_free(&call->exchange);
    free(call->bytes);
    free(call->own_fields);
    free(call->location);
    free(call->refusal);
    free(call->place);
    free(call);
}

void call_end(struct call *call)
{
    struct remote *remote = call->exchange.remote;
    bool held = call->holds;

    if (!list_linked(&call->node))
        return;
    list_remove(&call->node);
    list_remove(&call->waiting);
    stdio_bus_event_loop_stop_timer(remote->loop, &call->again);
    if (call->answered)
        exchange_drain(&call->exchange);
    else
        exchange_stop(&call->exchange);
    if (remote->session.listener == call)
        remote->session.listener = NULL;
    if (call->kind == CALL_REQUEST && !call->cancelled)
        remote->request_count--;
    remote->cancelled_count -= call->cancelled;
    call->holds = false;
    stdio_bus_event_loop_defer(remote->loop, &call->deferred, free_call, call);
    if (held)
        remote_release(remote);
}

void call_fail(struct call *call, const char *text)
{
    struct remote *remote = call->exchange.remote;

    if (!call->cancelled)
        log_warn(remote->log, "", "%s", text);
    if (call->kind == CALL_REQUEST && !call->answered && !call->cancelled)
        program_send_error(remote, call->id, JSONRPC_SERVER_ERROR, text);
    call_end(call);
}

static void end_oldest_cancelled(struct remote *remote)
{
    struct list_node *node, *following;

    list_each(&remote->calls, node, following) {
        struct call *call = list_entry(node, struct call, node);

        if (!call->cancelled)
            continue;
        call_end(call);
        return;
    }
}

void call_cancel(struct call *call)
{
    struct remote *remote = call->exchange.remote;

    if (call->exchange.link == NULL) { /* its stream was cut */
        call_end(call);
        return;
    }
    if (remote->cancelled_count >= CANCELLED_MAX)
        end_oldest_cancelled(remote);
    call->cancelled = true;
    remote->cancelled_count++;
    remote->request_count--;
}

void calls_trim(struct remote *remote)
{
    struct list_node *node;

    for (node = remote->calls.head.next; node != &remote->calls.head; node = node->next) {
        struct call *call = list_entry(node, struct call, node);

        if (call->len <= CALL_KEPT_MAX || !call->exchange.is_sent)
            continue;
        free(call->bytes);
        call->bytes = NULL;
        call->len = 0;
    }
}

struct call *call_find(const struct remote *remote, struct message_id id)
{
    struct list_node *node;

    for (node = remote->calls.head.next; node != &remote->calls.head; node = node->next) {
        struct call *call = list_entry(node, struct call, node);

        if (call->kind == CALL_REQUEST && !call->cancelled && message_id_equal(call->id, id))
            return call;
    }
    return NULL;
}

/* --- the reason --- */

/* What the user can do about a status. */
static const char *advice(const struct call *call)
{
    switch (call->exchange.status) {
    case 401:
        return headers_have(&call->exchange.remote->options->headers, "authorization")
                   ? " (the server does not accept the field Authorization)"
               : call->exchange.remote->options->token != NULL
                   ? " (the server does not accept the token of --token-file)"
                   : " (the server asks for a token: --token-file)";
    case 403:
        return call->exchange.remote->options->token != NULL
                   ? " (the server does not allow this with the token of --token-file)"
                   : " (the server does not allow this; it may ask for a token: --token-file)";
    case 404:
        return call->session != 0 ? "" : " (is the path right?)";
    case 405:
        return " (is the path that of an MCP server?)";
    default:
        return "";
    }
}

/* Appends ": " and the text in one line, unless it says nothing. */
static void show(char to[CALL_REASON_MAX], struct slice text, bool is_html)
{
    size_t len = strlen(to), line_len;
    char line[BODY_SHOWN];

    line_len = page_line(line, sizeof line, text, is_html);
    if (line_len == 0 || len + 2 >= CALL_REASON_MAX)
        return;
    memcpy(to + len, ": ", 3);
    terminal_text(to + len + 2, CALL_REASON_MAX - len - 2, slice_of(line, line_len));
}

const char *call_reason(const struct call *call, char to[CALL_REASON_MAX])
{
    const struct exchange *exchange = &call->exchange;
    const struct remote *remote = exchange->remote;
    const struct remote_url *url = &remote->options->url;
    size_t len;
    bool by_proxy = remote->proxy.is_used && exchange->status == 0;

    snprintf(to, CALL_REASON_MAX, "%s%s%s%s: %s%s%s%s", url_scheme(url), url->authority,
             by_proxy ? " by the proxy " : "", by_proxy ? remote->proxy.url.authority : "",
             exchange->reason, advice(call), call->location != NULL ? ", moved to " : "",
             call->location != NULL ? call->location : "");
    show(to, slice_of_text(exchange->challenge), false);
    if (exchange->status >= 300 || exchange->is_html)
        show(to, slice_of(exchange->text, exchange->text_len), exchange->is_html);
    len = strlen(to);
    if (exchange->status == 401)
        snprintf(to + len, CALL_REASON_MAX - len, "%s", remote->login);
    return to;
}
