#include "build_config.h"

#include "cli/ping.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/terminal.h"
#include "cli/connect.h"
#include "cli/control_link.h"

#define DEEP_MS 10000
#define DEEP_BYTES 65536 /* of what is read while the answer is awaited */
#define POOL_SHOWN 64    /* bytes of its id */
#define ID "stdio_bus-ping"

/* --- a worker is asked, by the socket of the clients --- */

static const struct question {
    const char *protocol, *message;
} questions[] = {
    {"mcp", "{\"jsonrpc\":\"2.0\",\"id\":\"" ID "\",\"method\":\"initialize\",\"params\":{"
            "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{"
            "\"name\":\"stdio_bus-ping\",\"version\":\"" PACKAGE_VERSION "\"}}}"},
    {"lsp", "{\"jsonrpc\":\"2.0\",\"id\":\"" ID "\",\"method\":\"initialize\",\"params\":{"
            "\"processId\":null,\"rootUri\":null,\"capabilities\":{}}}"},
};

/* A pool that is asked, and where its clients connect. */
struct deep {
    struct options options;
    const struct json_value *listen; /* of the status */
    const char *token_file;          /* NULL: none */
    char reason[512];
};

static const char *text_of(const struct json_value *object, const char *key)
{
    const struct json_value *value = document_member_of(object, key, JSON_STRING);

    return value != NULL ? value->text.data : NULL;
}

/* Whether the listener is for framed messages of this pool. */
static bool listens_for(const struct json_value *listener, const char *pool)
{
    const char *kind = text_of(listener, "kind"), *own = text_of(listener, "pool");

    ASSERT(pool != NULL);
    return kind != NULL && strcmp(kind, "http") != 0 && (own == NULL || strcmp(own, pool) == 0);
}

static bool read_address(struct listen_address *to, const struct json_value *listener)
{
    const char *path = text_of(listener, "path"), *host = text_of(listener, "host");
    int64_t port = 0;

    *to = (struct listen_address){.kind = path != NULL ? LISTEN_UNIX : LISTEN_TCP,
                                  .is_unix = path != NULL};
    snprintf(to->path, sizeof to->path, "%s", path != NULL ? path : "");
    snprintf(to->host, sizeof to->host, "%s", host != NULL ? host : "");
    if (document_member(listener, "port") != NULL)
        document_integer(document_member(listener, "port"), &port);
    to->port = (uint16_t)port;
    return path != NULL || (host != NULL && port > 0);
}

/* The first listener where clients can ask the pool of the options. False: there is none. */
static bool find_listener(struct deep *deep)
{
    struct options *options = &deep->options;
    const struct json_value *each, *token;
    const char *framing;

    for (each = deep->listen != NULL ? deep->listen->first : NULL; each != NULL;
         each = each->next) {
        if (!listens_for(each, options->pool) || !read_address(&options->connect, each))
            continue;
        framing = text_of(each, "framing");
        token = document_member(each, "token");
        options->framing = framing != NULL ? framing_named(framing) : NULL;
        options->token_file = token != NULL && token->boolean ? deep->token_file : NULL;
        return true;
    }
    snprintf(deep->reason, sizeof deep->reason, "pool %.*s: there is no socket for its clients",
             POOL_SHOWN, options->pool);
    return false;
}

static bool send_question(struct control_link *link, const struct framing *framing,
                          struct slice opening, const char *message)
{
    char prefix[FRAME_PREFIX_MAX];
    size_t len = strlen(message);
    size_t before = framing != NULL && framing->prefix != NULL ? framing->prefix(prefix, len) : 0;

    return control_link_send(link, opening) && control_link_send(link, slice_of(prefix, before)) &&
           control_link_send(link, slice_of(message, len)) &&
           (before > 0 || control_link_send(link, slice_of("\n", 1)));
}

/* Whether the bytes have this word. */
static bool has(const struct control_link *link, const char *word)
{
    size_t len = strlen(word), i;

    for (i = 0; i + len <= link->len; i++) {
        if (memcmp(link->in + link->start + i, word, len) == 0)
            return true;
    }
    return false;
}

/* Whether a result with the id comes in time. */
static bool read_answer(struct control_link *link)
{
    int64_t until_ms = clock_now_ms() + DEEP_MS;

    while (link->len < DEEP_BYTES && control_link_fill(link, until_ms)) {
        if (has(link, ID) && has(link, "\"result\""))
            return true;
        if (has(link, "\"error\"")) {
            snprintf(link->reason, sizeof link->reason, "the answer is an error");
            return false;
        }
    }
    if (link->reason[0] == '\0')
        snprintf(link->reason, sizeof link->reason, "the daemon has closed the connection");
    return false;
}

static bool ask_pool(struct deep *deep, const char *message)
{
    char opening[OPENING_MAX];
    struct control_link link;
    size_t len;
    bool good;
    int fd;

    if (!find_listener(deep))
        return false;
    if (!connect_write_opening(&deep->options, opening, &len, deep->reason, sizeof deep->reason))
        return false;
    fd = connect_open(&deep->options, deep->reason, sizeof deep->reason);
    if (fd < 0)
        return false;
    control_link_adopt(&link, fd);
    good = send_question(&link, deep->options.framing, slice_of(opening, len), message) &&
           read_answer(&link);
    snprintf(deep->reason, sizeof deep->reason, "pool %.*s: %.400s", POOL_SHOWN, deep->options.pool,
             link.reason);
    control_link_close(&link);
    return good;
}

/* Whether the operator has every worker of the pool left without something new. */
static bool is_drained(const struct json_value *pool)
{
    return document_number(pool, "drained") > 0 &&
           document_number(pool, "drained") >= document_number(pool, "instances");
}

/* Asks one worker of each pool whose protocol is known, and that is not drained. */
static bool ask_pools(struct deep *deep, const struct json_value *pools)
{
    const struct json_value *pool;
    size_t i;

    for (pool = pools != NULL ? pools->first : NULL; pool != NULL; pool = pool->next) {
        const char *protocol = text_of(pool, "protocol");

        deep->options.pool = text_of(pool, "pool");
        for (i = 0; protocol != NULL && i < sizeof questions / sizeof questions[0]; i++) {
            if (strcmp(protocol, questions[i].protocol) == 0 && !is_drained(pool) &&
                !ask_pool(deep, questions[i].message))
                return false;
        }
    }
    return pools != NULL;
}

/* --- the daemon is asked --- */

/* False with link->reason. */
static bool is_healthy(struct control_link *link)
{
    struct slice line;
    const struct json_value *status = control_link_ask(link, "status", NULL, &line), *healthy;

    if (status == NULL)
        return false;
    snprintf(link->reason, sizeof link->reason,
             "not serving, or a pool has lost all of its workers");
    healthy = document_member(status, "healthy");
    return healthy != NULL && healthy->boolean;
}

/* The same; link->reply is the status. */
static bool is_answered(struct control_link *link, const struct options *options)
{
    struct deep deep = {
        .listen = document_member(document_member(link->reply.root, "result"), "listen"),
        .token_file = options->token_file};
    const struct json_value *pools;
    struct control_link other;
    struct slice line;
    bool good = false;

    if (control_link_open(&other, options->ping_path)) {
        pools = control_link_ask(&other, "pools", NULL, &line);
        snprintf(deep.reason, sizeof deep.reason, "%s", other.reason);
        good = pools != NULL && ask_pools(&deep, document_member(pools, "pools"));
    } else {
        snprintf(deep.reason, sizeof deep.reason, "%s", other.reason);
    }
    snprintf(link->reason, sizeof link->reason, "%s", deep.reason);
    control_link_close(&other);
    return good;
}

int ping_run(const struct options *options)
{
    struct control_link link;
    bool good = control_link_open(&link, options->ping_path) && is_healthy(&link) &&
                (!options->deep || is_answered(&link, options));

    if (!good)
        terminal_line(stderr, "stdio_bus: %s", link.reason);
    control_link_close(&link);
    return good ? EXIT_DONE : EXIT_CANNOT_CONNECT;
}
