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
    bool is_older; /* it has HTTP+SSE alone, with */
    int stream;    /* this connection, */
};

struct web_answer {
    const char *word, *answer; /* of a request with this word */
    const char *event;         /* and this on the stream; NULL: nothing */
};

/* In their order. */
static const struct web_answer older_answers[] = {
    {.word = "POST /mcp", .answer = "405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"},
    {.word = "GET ",
     .answer = "200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
               "event: endpoint\ndata: /m\n\n"},
    {"'initialize'", "202 Accepted\r\nContent-Length: 0\r\n\r\n",
     "data: {\"id\":0,\"result\":{\"protocolVersion\":\"2024-11-05\"}}\n\n"},
    {"'id':1", "202 Accepted\r\nContent-Length: 0\r\n\r\n", "data: {\"id\":1,\"result\":{}}\n\n"},
    {"'id':2", "202 Accepted\r\nContent-Length: 0\r\n\r\n", "data: {\"id\":2,\"result\":{}}\n\n"},
    {.word = "POST /m", .answer = "202 Accepted\r\nContent-Length: 0\r\n\r\n"},
    {.word = NULL},
};

static const struct web_answer web_answers[] = {
    {.word = "'initialize'",
     .answer = "200 OK\r\nMcp-Session-Id: s\r\nContent-Type: application/json\r\n"
               "Content-Length: 50\r\n\r\n"
               "{\"id\":0,\"result\":{\"protocolVersion\":\"2025-11-25\"}}"},
    {.word = "initialized", .answer = "202 Accepted\r\nContent-Length: 0\r\n\r\n"},
    {.word = "'id':1",
     .answer = "200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
               "1b\r\ndata: {\"id\":1,\"result\":{}}\n\r\n1\r\n\n\r\n0\r\n\r\n"},
    {.word = "'id':2",
     .answer = "200 OK\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n"
               "{\"id\":2,\"result\":{}}\n"},
    {.word = "GET ", .answer = "405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"},
    {.word = "DELETE ", .answer = "204 No Content\r\n\r\n"},
    {.word = NULL},
};

/* Whether the request is whole. */
static bool has_request(const char *input)
{
    const char *body = strstr(input, "\r\n\r\n"), *length = strstr(input, "Content-Length: ");

    return body != NULL && (length == NULL || strlen(body + 4) >= strtoul(length + 16, NULL, 10));
}

static void serve_web(struct web_server *server, int i)
{
    const struct web_answer *answers = server->is_older ? older_answers : web_answers;
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
    for (; answers->word != NULL; answers++) {
        struct text word = {0}, answer = {0};
        bool found;

        text_printf(&word, "%s", answers->word);
        text_quote(&word, 0);
        found = strstr(input, word.data) != NULL;
        text_printf(&answer, "HTTP/1.1 %s", answers->answer);
        if (found)
            send(server->fds[i], answer.data, answer.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (found && strcmp(answers->word, "GET ") == 0)
            server->stream = server->fds[i];
        if (found && answers->event != NULL)
            send(server->stream, answers->event, strlen(answers->event),
                 MSG_DONTWAIT | MSG_NOSIGNAL);
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
static void play_server(struct run *run, bool is_older)
{
    static struct web_server server;
    int64_t deadline = deadline_usual();
    struct text out = {0};
    ssize_t n = -1;

    memset(&server, 0, sizeof server);
    server.is_older = is_older;
    server.stream = -1;
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

void play_url(struct run *run)
{
    play_server(run, false);
}

void play_older_url(struct run *run)
{
    play_server(run, true);
}
