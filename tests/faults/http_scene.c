#include "build_config.h"

#include "http_scene.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"

#define STALL_MS 60 /* without input: a lasting fault has had its effect */
#define HOST "Host: localhost\r\n"
#define TOKEN "Authorization: Bearer faults\r\n"
#define POSTED                                                                                     \
    HOST TOKEN "Content-Type: application/json\r\n"                                                \
               "Accept: application/json, text/event-stream\r\n"

/* A connection to the listener. */
struct web {
    struct run *run;
    int fd; /* -1: closed */
    struct text input;
};

static void web_close(struct web *web)
{
    if (web->fd >= 0)
        close(web->fd);
    web->fd = -1;
    text_free(&web->input);
}

/* The connection has ended, which only a fault brings about. */
static void web_lost(struct web *web)
{
    web->run->client_lost = true;
    web_close(web);
}

static void web_open(struct web *web, struct run *run)
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

/* Sends a request (' for " in the body) and reads the answer. False: it was lost. */
static bool web_ask(struct web *web, const char *head, const char *body)
{
    struct text text = {0}, quoted = {0};
    int64_t deadline = deadline_usual();

    text_printf(&quoted, "%s", body);
    text_quote(&quoted, 0);
    text_printf(&text, "%s", head);
    if (quoted.len > 0)
        text_printf(&text, "Content-Length: %zu\r\n", quoted.len);
    text_printf(&text, "\r\n%s", quoted.data);
    text_free(&web->input);
    if (web->fd >= 0 && send(web->fd, text.data, text.len, MSG_NOSIGNAL) != (ssize_t)text.len)
        web_lost(web);
    text_free(&text);
    text_free(&quoted);
    while (web->fd >= 0 && !is_whole(&web->input)) {
        ssize_t n;

        if (!wait_fd(web->fd, POLLIN, now_ms() + STALL_MS)) {
            run_lift(web->run);
            if (deadline_over(deadline))
                run_fail(web->run, "no answer to %s", head);
            continue;
        }
        n = read(web->fd, text_room(&web->input, 65536), 65535);
        if (n <= 0) {
            web_lost(web);
            break;
        }
        web->input.len += (size_t)n;
        web->input.data[web->input.len] = '\0';
    }
    return web->fd >= 0;
}

/* A session of MCP, from its beginning to its end. */
static void have_session(struct web *web)
{
    struct text head = {0};
    const char *at;
    char id[128];
    int len;

    if (!web_ask(web, "POST /mcp/a HTTP/1.1\r\n" POSTED,
                 "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':"
                 "'2025-11-25','capabilities':{},'clientInfo':{'name':'x','version':'1'}}}"))
        return;
    at = strstr(web->input.data, "Mcp-Session-Id: ");
    if (at == NULL) /* an error, for want of memory */
        return;
    len = snprintf(id, sizeof id, "%.*s", (int)strcspn(at, "\r") - 16, at + 16);
    text_printf(&head, "POST /mcp/a HTTP/1.1\r\n" POSTED "Mcp-Session-Id: %.*s\r\n", len, id);
    web_ask(web, head.data, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    web_ask(web, head.data, "{'jsonrpc':'2.0','id':1,'method':'plain'}");
    text_free(&head);
    text_printf(&head, "DELETE /mcp/a HTTP/1.1\r\n" HOST TOKEN "Mcp-Session-Id: %.*s\r\n", len, id);
    web_ask(web, head.data, "");
    text_free(&head);
}

static void talk(struct web *web)
{
    web_ask(web, "GET /healthz HTTP/1.1\r\n" HOST, "");
    web_ask(web, "GET /readyz HTTP/1.1\r\n" HOST, "");
    web_ask(web, "GET /.well-known/oauth-protected-resource HTTP/1.1\r\n" HOST, "");
    web_ask(web, "GET /mcp/a HTTP/1.1\r\n" HOST, "");
    web_ask(web,
            "OPTIONS /mcp/a HTTP/1.1\r\n" HOST "Origin: https://app.example\r\n"
            "Access-Control-Request-Method: POST\r\n",
            "");
    web_ask(web, "POST /rpc/b HTTP/1.1\r\n" POSTED "Origin: https://app.example\r\n",
            "{'jsonrpc':'2.0','id':1,'method':'plain'}");
    web_ask(web, "POST /rpc/b HTTP/1.1\r\n" POSTED,
            "[{'jsonrpc':'2.0','id':1,'method':'plain'},{'jsonrpc':'2.0','id':2,"
            "'method':'plain'}]");
    have_session(web);
}

static bool is_served(struct run *run)
{
    struct web web;
    bool served;

    web_open(&web, run);
    served = web_ask(&web, "POST /rpc/b HTTP/1.1\r\n" POSTED,
                     "{'jsonrpc':'2.0','id':1,'method':'plain'}") &&
             strstr(web.input.data, "200 OK") != NULL;
    web_close(&web);
    return served;
}

void play_http(struct run *run)
{
    int64_t deadline = deadline_usual();
    struct web web, other;

    web_open(&web, run);
    web_ask(&web, "GET /healthz HTTP/1.1\r\n" HOST, "");
    run_arm(run);
    talk(&web);
    if (run_alive(run))
        kill(run->daemon, SIGUSR1); /* the tokens are read anew */
    web_open(&other, run);
    talk(&other);
    run_lift(run);
    while (run_alive(run) && !is_served(run)) {
        if (deadline_over(deadline))
            run_fail(run, "the daemon is alive but does not serve");
    }
    run_terminate(run);
    web_close(&web);
    web_close(&other);
}
