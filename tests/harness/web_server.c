#include "build_config.h"

#include "web_server.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deadline.h"
#include "suite.h"

#define READ_SIZE 65536

/* --- the server --- */

static void end_server(void *object)
{
    struct web_server *server = object;
    for (size_t i = 0; i < server->count; i++) {
        if (server->peers[i].fd >= 0)
            close(server->peers[i].fd);
        text_free(&server->peers[i].input);
    }
    close(server->listener);
    free(server);
}

static void end_request(void *object)
{
    struct web_request *request = object;
    text_free(&request->head);
    text_free(&request->body);
    free(request);
}

struct web_server *web_start_later(void)
{
    struct web_server *server = calloc(1, sizeof *server);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    ck_assert_ptr_nonnull(server);
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(server->listener, 0);
    harness_at_end(end_server, server);
    fcntl(server->listener, F_SETFD, FD_CLOEXEC);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(server->listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    return server;
}

void web_listen(struct web_server *server)
{
    ck_assert_int_eq(listen(server->listener, 128), 0);
}

struct web_server *web_start(void)
{
    struct web_server *server = web_start_later();
    web_listen(server);
    return server;
}

const char *web_url(const struct web_server *server, const char *path)
{
    return test_format("http://127.0.0.1:%u%s", server->port, path);
}

/* --- requests --- */

const char *web_field(const struct web_request *request, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = strchr(request->head.data, '\n'); line != NULL;
         line = strchr(line + 1, '\n')) {
        if (strncasecmp(line + 1, name, len) == 0 && line[1 + len] == ':') {
            const char *value = line + 1 + len + 1 + strspn(line + 1 + len + 1, " ");
            return test_format("%.*s", (int)strcspn(value, "\r\n"), value);
        }
    }
    return NULL;
}

/* Takes a whole request from the input of a connection; NULL: there is none. */
static struct web_request *take_request(struct web_server *server, size_t number)
{
    struct text *input = &server->peers[number].input;
    const char *end = input->len > 0 ? strstr(input->data, "\r\n\r\n") : NULL, *length;
    struct web_request *request;
    size_t head_len, body_len = 0;
    if (end == NULL)
        return NULL;
    head_len = (size_t)(end + 4 - input->data);
    request = calloc(1, sizeof *request);
    ck_assert_ptr_nonnull(request);
    text_add(&request->head, input->data, head_len);
    length = web_field(request, "content-length");
    if (length != NULL)
        body_len = (size_t)strtoul(length, NULL, 10);
    if (input->len < head_len + body_len) {
        end_request(request);
        return NULL;
    }
    text_add(&request->body, input->data + head_len, body_len);
    memmove(input->data, input->data + head_len + body_len,
            input->len - head_len - body_len + 1); /* with its NUL */
    input->len -= head_len + body_len;
    request->server = server;
    request->peer = number;
    harness_at_end(end_request, request);
    return request;
}

static void read_peer(struct web_peer *peer)
{
    char *room = text_room(&peer->input, READ_SIZE);
    ssize_t got = read(peer->fd, room, READ_SIZE);
    if (got > 0) {
        peer->input.len += (size_t)got;
        peer->input.data[peer->input.len] = '\0';
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        peer->eof = true;
    }
}

static void accept_peer(struct web_server *server)
{
    int fd = accept(server->listener, NULL, NULL);
    if (fd < 0)
        return;
    ck_assert_uint_lt(server->count, WEB_PEERS_MAX);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    server->peers[server->count++].fd = fd;
}

/* Waits until something has come, and takes it in. False at the deadline. */
static bool serve_once(struct web_server *server, int64_t deadline)
{
    struct pollfd ready[WEB_PEERS_MAX + 1] = {{.fd = server->listener, .events = POLLIN}};
    size_t count = server->count;
    for (size_t i = 0; i < count; i++) {
        const struct web_peer *peer = &server->peers[i];
        ready[i + 1] = (struct pollfd){.fd = peer->eof ? -1 : peer->fd, .events = POLLIN};
    }
    if (poll(ready, (nfds_t)count + 1, deadline_left_ms(deadline)) <= 0)
        return !deadline_over(deadline);
    for (size_t i = 0; i < count; i++) {
        if (ready[i + 1].revents != 0)
            read_peer(&server->peers[i]);
    }
    if (ready[0].revents != 0)
        accept_peer(server);
    return true;
}

/* NULL at the deadline. */
static struct web_request *wait_request(struct web_server *server)
{
    int64_t deadline = deadline_usual();
    do {
        for (size_t i = 0; i < server->count; i++) {
            struct web_request *request = take_request(server, i);
            if (request != NULL)
                return request;
        }
    } while (serve_once(server, deadline));
    return NULL;
}

struct web_request *web_next_any(struct web_server *server)
{
    struct web_request *request = wait_request(server);
    ck_assert_msg(request != NULL, "no request comes");
    return request;
}

struct web_request *web_next(struct web_server *server, const char *line, const char *word)
{
    struct web_request *request = wait_request(server);
    struct text wanted = {0};
    ck_assert_msg(request != NULL, "no request comes: %s", line);
    ck_assert_msg(strncmp(request->head.data, line, strlen(line)) == 0 &&
                      request->head.data[strlen(line)] == ' ',
                  "expected %s, got %s%s", line, request->head.data,
                  request->body.len > 0 ? request->body.data : "");
    if (word == NULL)
        return request;
    text_printf(&wanted, "%s", word);
    text_quote(&wanted, 0);
    ck_assert_msg(request->body.len > 0 && strstr(request->body.data, wanted.data) != NULL,
                  "expected %s in %s", wanted.data, request->body.data);
    text_free(&wanted);
    return request;
}

/* --- responses --- */

void web_send_bytes(const struct web_request *request, const char *bytes, size_t len)
{
    int fd = request->server->peers[request->peer].fd;
    int64_t deadline = deadline_usual();
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0) {
            ck_assert_msg(errno == EAGAIN && wait_fd(fd, POLLOUT, deadline), "send: %s",
                          strerror(errno));
            continue;
        }
        bytes += sent;
        len -= (size_t)sent;
    }
}

void web_send(const struct web_request *request, const char *format, ...)
{
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&text, format, arguments);
    va_end(arguments);
    web_send_bytes(request, text.data, text.len);
    text_free(&text);
}

void web_answer(const struct web_request *request, const char *status, const char *fields,
                const char *format, ...)
{
    struct text body = {0}, text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&body, format, arguments);
    va_end(arguments);
    text_quote(&body, 0);
    text_printf(&text, "HTTP/1.1 %s\r\n%s%sContent-Length: %zu\r\n\r\n", status, fields,
                body.len > 0 && strstr(fields, "Content-Type") == NULL
                    ? "Content-Type: application/json\r\n"
                    : "",
                body.len);
    text_add(&text, body.len > 0 ? body.data : "", body.len);
    web_send_bytes(request, text.data, text.len);
    text_free(&body);
    text_free(&text);
}

void web_stream(const struct web_request *request, const char *fields)
{
    web_send(request,
             "HTTP/1.1 200 OK\r\n%sContent-Type: text/event-stream\r\n"
             "Transfer-Encoding: chunked\r\n\r\n",
             fields);
}

void web_event(const struct web_request *request, const char *id, const char *data)
{
    struct text event = {0}, chunk = {0};
    if (id != NULL)
        text_printf(&event, "id: %s\n", id);
    text_printf(&event, "data: %s\n\n", data);
    text_quote(&event, 0);
    text_printf(&chunk, "%zx\r\n%s\r\n", event.len, event.data);
    web_send_bytes(request, chunk.data, chunk.len);
    text_free(&event);
    text_free(&chunk);
}

void web_stream_end(const struct web_request *request)
{
    web_send(request, "0\r\n\r\n");
}

void web_cut(const struct web_request *request)
{
    struct web_peer *peer = &request->server->peers[request->peer];
    close(peer->fd);
    peer->fd = -1;
    peer->eof = true;
}

void web_wait_gone(const struct web_request *request)
{
    int64_t deadline = deadline_usual();
    while (!request->server->peers[request->peer].eof)
        ck_assert_msg(serve_once(request->server, deadline), "the connection stays open");
}
