#include "build_config.h"

#include "connect_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"

#define ANSWER_SIZE 100000 /* more than a buffer and a pipe */

/* --- a server of lines --- */

/* The server of a daemon in client mode. */
struct server {
    int fd;            /* -1: closed */
    bool heard_all;    /* its input has ended */
    size_t left, size; /* of the answer */
    char answer[ANSWER_SIZE];
};

static void serve(struct server *server)
{
    char bytes[1000];
    ssize_t n = read(server->fd, bytes, sizeof bytes);

    server->heard_all = server->heard_all || n == 0 || (n < 0 && errno != EAGAIN);
    n = send(server->fd, server->answer + server->size - server->left, server->left,
             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        server->left -= (size_t)n;
    if (server->heard_all && (server->left == 0 || (n < 0 && errno != EAGAIN))) {
        close(server->fd);
        server->fd = -1;
    }
}

static void meet(struct run *run, struct server *server)
{
    server->fd = accept(run->listener, NULL, NULL);
    if (server->fd >= 0)
        fcntl(server->fd, F_SETFL, O_NONBLOCK);
}

/* The input ends after one line; the whole answer must come out of stdout. */
void play_connect(struct run *run)
{
    static struct server server;
    static char bytes[65536];
    int64_t deadline = deadline_usual();
    size_t got = 0;
    ssize_t n = -1;

    server = (struct server){.fd = -1, .left = ANSWER_SIZE, .size = ANSWER_SIZE};
    memset(server.answer, '\n', ANSWER_SIZE);
    fcntl(run->listener, F_SETFL, O_NONBLOCK);
    fcntl(run->from, F_SETFL, O_NONBLOCK);
    run_write_stdin(run, "question\n");
    while (n != 0) {
        if (deadline_over(deadline))
            run_fail(run, "its stdout does not end");
        if (server.fd >= 0)
            serve(&server);
        else if (server.left == ANSWER_SIZE)
            meet(run, &server);
        n = read(run->from, bytes, sizeof bytes);
        got += n > 0 ? (size_t)n : 0;
        if (n < 0)
            nap();
    }
    if (server.fd >= 0)
        close(server.fd);
    run->client_lost = got < ANSWER_SIZE;
}

/* --- a server of HTTP --- */

/* The HTTP server of a client mode: one request at a time on each connection. */
struct web_server {
    int fds[8]; /* -1: closed */
    char input[8][4096];
    size_t len[8];
    int count;
};

static const struct {
    const char *word, *answer; /* of a request with this word */
} web_answers[] = {
    {"'initialize'", "200 OK\r\nMcp-Session-Id: s\r\nContent-Type: application/json\r\n"
                     "Content-Length: 50\r\n\r\n"
                     "{\"id\":0,\"result\":{\"protocolVersion\":\"2025-11-25\"}}"},
    {"initialized", "202 Accepted\r\nContent-Length: 0\r\n\r\n"},
    {"'id':1", "200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
               "1b\r\ndata: {\"id\":1,\"result\":{}}\n\r\n1\r\n\n\r\n0\r\n\r\n"},
    {"'id':2", "200 OK\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n"
               "{\"id\":2,\"result\":{}}\n"},
    {"GET ", "405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"},
    {"DELETE ", "204 No Content\r\n\r\n"},
};

/* Whether the request is whole. */
static bool has_request(const char *input)
{
    const char *body = strstr(input, "\r\n\r\n"), *length = strstr(input, "Content-Length: ");

    return body != NULL && (length == NULL || strlen(body + 4) >= strtoul(length + 16, NULL, 10));
}

static void serve_web(struct web_server *server, int i)
{
    char *input = server->input[i];
    ssize_t n = recv(server->fds[i], input + server->len[i],
                     sizeof server->input[i] - 1 - server->len[i], MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        close(server->fds[i]);
        server->fds[i] = -1;
        return;
    }
    server->len[i] += n > 0 ? (size_t)n : 0;
    input[server->len[i]] = '\0';
    if (!has_request(input))
        return;
    for (size_t k = 0; k < sizeof web_answers / sizeof web_answers[0]; k++) {
        struct text word = {0}, answer = {0};
        bool found;

        text_printf(&word, "%s", web_answers[k].word);
        text_quote(&word, 0);
        found = strstr(input, word.data) != NULL;
        text_printf(&answer, "HTTP/1.1 %s", web_answers[k].answer);
        if (found)
            send(server->fds[i], answer.data, answer.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        text_free(&word);
        text_free(&answer);
        if (found)
            break;
    }
    server->len[i] = 0;
}

static void serve_all(struct run *run, struct web_server *server)
{
    int fd = server->count < 8 ? accept(run->listener, NULL, NULL) : -1;

    if (fd >= 0)
        server->fds[server->count++] = fd;
    for (int i = 0; i < server->count; i++) {
        if (server->fds[i] >= 0)
            serve_web(server, i);
    }
}

/* The program openssl is the test worker. */
void plant_openssl(struct run *run)
{
    struct text path = {0};

    text_printf(&path, "%s/openssl", run->dir);
    if (symlink(getenv("TEST_WORKER"), path.data) < 0)
        run_fail(run, "openssl cannot be planted");
    path.len = 0;
    text_printf(&path, "%s:%s", run->dir, getenv("PATH"));
    setenv("PATH", path.data, 1);
    text_free(&path);
}

/* Each request of both eras is answered, by a result or an error. */
void play_url(struct run *run)
{
    static struct web_server server;
    int64_t deadline = deadline_usual();
    struct text out = {0};
    ssize_t n = -1;

    memset(&server, 0, sizeof server);
    fcntl(run->listener, F_SETFL, O_NONBLOCK);
    fcntl(run->from, F_SETFL, O_NONBLOCK);
    run_write_stdin(run, "{'id':0,'method':'initialize','params':{}}\n"
                         "{'method':'notifications/initialized'}\n"
                         "{'id':1,'method':'tools/list'}\n"
                         "{'id':2,'method':'tools/call','params':{'name':'\xC3\xA9','_meta':"
                         "{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}}}\n");
    while (n != 0) {
        if (deadline_over(deadline))
            run_fail(run, "its stdout does not end");
        serve_all(run, &server);
        n = read(run->from, text_room(&out, 1000), 1000);
        out.len += n > 0 ? (size_t)n : 0;
        if (n < 0)
            nap();
    }
    text_printf(&out, " ");
    run->client_lost = strstr(out.data, "\"id\":0") == NULL ||
                       strstr(out.data, "\"id\":1") == NULL || strstr(out.data, "\"id\":2") == NULL;
    text_free(&out);
    for (int i = 0; i < server.count; i++) {
        if (server.fds[i] >= 0)
            close(server.fds[i]);
    }
}
