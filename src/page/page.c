#include "build_config.h"

#include "page/page.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/error.h"
#include "bus/listeners.h"
#include "config/tokens.h"
#include "http/head.h"
#include "page/lines.h"
#include "page/sha256.h"
#include "page/source.h"
#include "page/tables.h"

#define DATA_NAME "page.json"
#define HTML_TYPE "text/html; charset=utf-8"
#define TEXT_TYPE "text/plain; charset=utf-8"
#define HASH_LEN BASE64_LEN((size_t)SHA256_BYTES)

/* --- the source, and its parts --- */

/* The bytes between two texts that are in the source, once each. */
static struct slice source_between(const char *before, const char *after)
{
    const char *from = strstr(page_source, before), *to;

    ASSERT(from != NULL);
    from += strlen(before);
    to = strstr(from, after);
    ASSERT(to != NULL);
    return slice_of(from, (size_t)(to - from));
}

/* What is before the first mark, between the two and after the last one. */
static const char first_mark[] = "<!--@pool-->", last_mark[] = "<!--@end-->";

static struct slice source_pool(void)
{
    return source_between(first_mark, last_mark);
}

static struct slice source_head(void)
{
    return slice_of(page_source,
                    (size_t)(source_pool().data - page_source) - (sizeof first_mark - 1));
}

static struct slice source_tail(void)
{
    struct slice pool = source_pool();
    const char *from = pool.data + pool.len + sizeof last_mark - 1;

    return slice_of(from, page_source_len - (size_t)(from - page_source));
}

static void write_hash(char hash[HASH_LEN + 1], struct slice bytes)
{
    unsigned char digest[SHA256_BYTES];

    sha256(digest, bytes);
    base64_encode(hash, slice_of((const char *)digest, sizeof digest));
    hash[HASH_LEN] = '\0';
}

/* The fields of each answer, with the hashes; written when somebody looks for the first time. */
static const char *fields_of(struct page *page)
{
    char style[HASH_LEN + 1], script[HASH_LEN + 1];
    int len;

    if (page->fields[0] != '\0')
        return page->fields;
    write_hash(style, source_between("<style>", "</style>"));
    write_hash(script, source_between("<script>", "</script>"));
    len = snprintf(page->fields, sizeof page->fields,
                   "Cache-Control: no-store\r\n"
                   "Content-Security-Policy: default-src 'none'; style-src 'sha256-%s'; "
                   "script-src 'sha256-%s'; connect-src 'self'; img-src data:; base-uri 'none'; "
                   "form-action 'none'; frame-ancestors 'none'\r\n"
                   "Cross-Origin-Opener-Policy: same-origin\r\n"
                   "Cross-Origin-Resource-Policy: same-origin\r\n"
                   "Referrer-Policy: no-referrer\r\n"
                   "Vary: Accept, Authorization\r\n"
                   "X-Content-Type-Options: nosniff\r\n"
                   "X-Frame-Options: DENY\r\n",
                   style, script);
    ASSERT(len > 0 && (size_t)len < sizeof page->fields);
    (void)len;
    return page->fields;
}

/* --- from creation to the end --- */

static void note_line(void *user_data, enum log_level level, const char *context, const char *text)
{
    page_errors_note(user_data, level, context, text);
}

struct page *page_create(struct stdio_bus *bus)
{
    struct page *page = calloc(1, sizeof *page);

    if (page == NULL)
        return NULL;
    page->figures.bus = bus;
    page->figures.source = bus->options.figures;
    log_watch(bus->log, note_line, &page->figures.errors);
    return page;
}

void page_free(struct page *page)
{
    log_watch(page->figures.bus->log, NULL, NULL);
    figures_free(&page->figures);
    free(page);
}

/* --- who may look --- */

static bool host_is_loopback(struct slice text)
{
    struct slice host, port;
    char name[INET_ADDRSTRLEN];
    struct in_addr address;

    if (!http_authority_read(text, &host, &port))
        return false;
    if (http_word_is(host, "localhost") || slice_is(host, "[::1]"))
        return true;
    if (host.len >= sizeof name)
        return false;
    memcpy(name, host.data, host.len);
    name[host.len] = '\0';
    return inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

/* No browser reaches a Unix socket but through a proxy. */
static bool is_near(const struct web_look *look)
{
    return look->is_near && !look->listener->config->address.is_unix &&
           host_is_loopback(look->host);
}

/* --- the answers --- */

static void show_text(struct web_view *view, int status, const char *text)
{
    view->status = status;
    view->type = TEXT_TYPE;
    view->body = slice_of_text(text);
}

static void show_nothing(struct page *page, struct web_view *view)
{
    const struct figures_source *source = page->figures.source;

    if (source == NULL)
        log_error(page->figures.bus->log, "", "out of memory: the page is not shown");
    show_text(view, 503, source != NULL ? source->nothing : "out of memory\n");
}

static void show_figures(struct page *page, struct web_view *view)
{
    struct slice text = figures_read(&page->figures);

    if (text.data == NULL) {
        show_nothing(page, view);
        return;
    }
    view->status = 200;
    view->type = "application/json";
    view->body = text;
}

/* `figures` NULL: the script asks for the token. */
static void add_main(struct json_text *to, const struct page *page, const struct web_look *look,
                     const struct json_value *figures)
{
    json_text_literal(to, figures != NULL ? "<main>" : "<main class=locked>");
    if (figures != NULL) {
        tables_add_head(to, figures);
        if (page->figures.source == NULL) {
            json_text_literal(to, "<h2>Lines for clients</h2>");
            lines_add(to, look->listener, look->host, source_pool());
        }
        tables_add_lists(to, figures);
    }
    json_text_literal(to, "</main>");
}

static void show_html(struct page *page, const struct web_look *look, bool is_locked,
                      struct web_view *view)
{
    struct json_text html = {.data = NULL};
    struct document document = {.root = NULL};
    struct document_error error;

    if (!is_locked &&
        document_read(&document, figures_read(&page->figures), &error) != STDIO_BUS_OK)
        html.failed = true;
    json_text_add(&html, source_head());
    add_main(&html, page, look, document.root);
    json_text_add(&html, source_tail());
    document_free(&document);
    if (html.failed) {
        json_text_free(&html);
        show_nothing(page, view);
        return;
    }
    view->status = 200;
    view->type = HTML_TYPE;
    view->owned = html.data;
    view->body = json_text_slice(&html);
}

/* The part of the path after that of the page. data NULL: it is another path. A path that is secret
 * takes the same time however much of it is right. */
static struct slice path_in_page(const struct page *page, struct slice path)
{
    struct slice base = slice_of_text(page->figures.source != NULL ? page->figures.source->path
                                                                   : "/");

    if (path.len < base.len || !token_is(base, slice_of(path.data, base.len)))
        return slice_of(NULL, 0);
    return slice_of(path.data + base.len, path.len - base.len);
}

bool page_show(struct page *page, const struct web_look *look, struct web_view *view)
{
    const struct http_listen_config *http = &look->listener->config->http;
    struct slice path = path_in_page(page, look->path);
    bool is_data = slice_is(path, DATA_NAME),
         is_html = path.data != NULL && path.len == 0 && look->takes_html,
         is_locked = listener_asks_token(look->listener) && !look->has_token;

    if (http->no_page || (http->is_bare && page->figures.source == NULL) ||
        !(is_html || (is_data && !is_locked)))
        return false;
    view->fields = fields_of(page);
    if (look->query.data != NULL)
        show_text(view, 400,
                  "the page takes no parameters: a token in a URL would stay in "
                  "histories and logs\n");
    else if (!look->is_own || (is_data && look->is_linked))
        show_text(view, 403, "the page is for no other page\n");
    else if (!listener_asks_token(look->listener) && !is_near(look))
        show_text(view, 403,
                  "the page is for this machine alone, at http://localhost, or for a "
                  "listener with a token\n");
    else if (is_data)
        show_figures(page, view);
    else
        show_html(page, look, is_locked, view);
    return true;
}
