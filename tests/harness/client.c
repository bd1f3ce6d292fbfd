#include "build_config.h"

#include "client.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "deadline.h"
#include "proc.h"
#include "steps.h"
#include "suite.h"

#define READ_SIZE 65536

static struct client *clients; /* of this test */

static void end_client(void *object)
{
    struct client **at = &clients;
    while (*at != object)
        at = &(*at)->next;
    *at = (*at)->next;
    client_close(object);
    free(object);
}

/* The daemon waits a second for the end of what a client sends. */
static void end_output(const struct client *client)
{
    if (client->in >= 0 && client->in == client->out)
        shutdown(client->out, SHUT_WR);
}

void clients_finish(void)
{
    for (const struct client *client = clients; client != NULL; client = client->next)
        end_output(client);
}

struct client *client_adopt(int in, int out)
{
    struct client *client = calloc(1, sizeof *client);
    ck_assert_ptr_nonnull(client);
    harness_at_end(end_client, client);
    client->in = in;
    client->out = out;
    client->next = clients;
    clients = client;
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    fcntl(in, F_SETFD, FD_CLOEXEC);
    fcntl(out, F_SETFD, FD_CLOEXEC);
    return client;
}

static int open_socket(int family, bool small)
{
    int fd = socket(family, SOCK_STREAM, 0), size = 4096, on = 1;
    ck_assert_msg(fd >= 0, "socket: %s", strerror(errno));
    if (small) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    }
    if (family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static socklen_t unix_address(struct sockaddr_storage *storage, const char *path)
{
    struct sockaddr_un *address = (struct sockaddr_un *)storage;
    address->sun_family = AF_UNIX;
    ck_assert_uint_lt(strlen(path), sizeof address->sun_path);
    memcpy(address->sun_path, path, strlen(path) + 1);
    return sizeof *address;
}

static socklen_t inet_address(struct sockaddr_storage *storage, const struct daemon *daemon)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)storage;
    if (inet_pton(AF_INET6, daemon->host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)daemon->port);
        return sizeof *v6;
    }
    ck_assert_int_eq(inet_pton(AF_INET, daemon->host, &v4->sin_addr), 1);
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)daemon->port);
    return sizeof *v4;
}

static int bind_to(int fd, const char *from)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    ck_assert_int_eq(inet_pton(AF_INET, from, &address.sin_addr), 1);
    return bind(fd, (struct sockaddr *)&address, sizeof address);
}

/* `from` may be NULL. */
static struct client *connect_to(const struct daemon *daemon, bool small, const char *from)
{
    struct sockaddr_storage address;
    harness_step();
    memset(&address, 0, sizeof address);
    socklen_t len = daemon->port == 0 ? unix_address(&address, daemon->socket_path)
                                      : inet_address(&address, daemon);
    int fd = open_socket(address.ss_family, small);
    if ((from != NULL && bind_to(fd, from) != 0) ||
        connect(fd, (struct sockaddr *)&address, len) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return NULL;
    }
    return client_adopt(fd, fd);
}

struct client *client_try_connect(const struct daemon *daemon)
{
    return connect_to(daemon, false, NULL);
}

struct client *client_try_connect_from(const struct daemon *daemon, const char *address)
{
    return connect_to(daemon, false, address);
}

static struct client *connected(struct client *client)
{
    ck_assert_msg(client != NULL, "connect: %s", strerror(errno));
    return client;
}

struct client *client_connect(const struct daemon *daemon)
{
    return connected(connect_to(daemon, false, NULL));
}

struct client *client_connect_small(const struct daemon *daemon)
{
    return connected(connect_to(daemon, true, NULL));
}

struct client *client_stdio(struct daemon *daemon)
{
    struct client *client = client_adopt(daemon->stdout_fd, daemon->stdin_fd);
    daemon->stdin_fd = daemon->stdout_fd = -1;
    return client;
}

/* Writes some; 0 when it would have to wait. Bytes that the daemon does not read any more are lost:
 * the test sees the end when it reads. */
static size_t write_some(struct client *client, const char *bytes, size_t len)
{
    ssize_t n;
    do
        n = write(client->out, bytes, len);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
        client->broken = true;
        return 0;
    }
    ck_assert_msg(n > 0, "write: %s", strerror(errno));
    return (size_t)n;
}

void client_send_bytes(struct client *client, const void *bytes, size_t len)
{
    const char *at = bytes;
    int64_t deadline = deadline_usual();
    harness_step();
    while (len > 0 && !client->broken) {
        size_t n = write_some(client, at, len);
        if (n == 0 && !client->broken)
            ck_assert_msg(wait_fd(client->out, POLLOUT, deadline), "the daemon does not read");
        at += n;
        len -= n;
    }
}

void client_send_chunks(struct client *client, const void *bytes, size_t len, size_t chunk)
{
    const char *at = bytes;
    while (len > 0) {
        size_t n = chunk < len ? chunk : len;
        client_send_bytes(client, at, n);
        at += n;
        len -= n;
    }
}

size_t client_offer(struct client *client, const void *bytes, size_t len)
{
    const char *at = bytes;
    size_t done = 0;
    while (done < len) {
        size_t n = write_some(client, at + done, len - done);
        if (n == 0)
            break;
        done += n;
    }
    return done;
}

void client_send(struct client *client, const char *format, ...)
{
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&text, format, arguments);
    va_end(arguments);
    text_quote(&text, 0);
    text_add(&text, "\n", 1);
    client_send_bytes(client, text.data, text.len);
    text_free(&text);
}

void client_request(struct client *client, const char *id, const char *session, const char *method,
                    const char *params)
{
    struct text text = {0};
    text_printf(&text, "{'jsonrpc':'2.0'");
    if (id != NULL)
        text_printf(&text, ",'id':%s", id);
    if (session != NULL)
        text_printf(&text, ",'sessionId':'%s'", session);
    text_printf(&text, ",'method':'%s'", method);
    if (params != NULL)
        text_printf(&text, ",'params':%s", params);
    text_printf(&text, "}\n");
    text_quote(&text, 0);
    client_send_bytes(client, text.data, text.len);
    text_free(&text);
}

void client_send_plain(struct client *client, const char *session, int count)
{
    char id[16];
    for (int i = 0; i < count; i++) {
        snprintf(id, sizeof id, "%d", i);
        client_request(client, id, session, "plain", id);
    }
}

void client_expect_plain(struct client *client, const char *session, int count)
{
    for (int i = 0; i < count; i++) {
        if (session != NULL)
            client_expect(client, "{'jsonrpc':'2.0','id':%d,'sessionId':'%s','result':%d}", i,
                          session, i);
        else
            client_expect(client, "{'jsonrpc':'2.0','id':%d,'result':%d}", i, i);
    }
}

/* Reads once. Returns false when there is nothing to read now. */
static bool read_some(struct client *client)
{
    ssize_t n = read(client->in, text_room(&client->input, READ_SIZE), READ_SIZE);
    if (n > 0) {
        client->input.len += (size_t)n;
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return false;
    ck_assert_msg(n == 0 || errno == ECONNRESET || errno == EPIPE, "read: %s", strerror(errno));
    client->eof = true;
    return true;
}

static bool take_line(struct client *client, struct span *line)
{
    if (client->input.len == client->consumed)
        return false;
    const char *start = client->input.data + client->consumed;
    const char *newline = memchr(start, '\n', client->input.len - client->consumed);
    if (newline == NULL)
        return false;
    line->data = start;
    line->len = (size_t)(newline - start);
    client->consumed += line->len + 1;
    return true;
}

/* Makes room: removes the bytes that were given out. */
static void drop_consumed(struct client *client)
{
    if (client->consumed == 0 || client->consumed < client->input.len / 2)
        return;
    client->input.len -= client->consumed;
    memmove(client->input.data, client->input.data + client->consumed, client->input.len);
    client->consumed = 0;
}

bool client_read_before(struct client *client, int64_t deadline)
{
    drop_consumed(client);
    while (!client->eof) {
        if (read_some(client))
            return !client->eof;
        if (!wait_fd(client->in, POLLIN, deadline))
            return false;
    }
    return false;
}

bool client_line_before(struct client *client, int64_t deadline, struct span *line)
{
    if (take_line(client, line))
        return true;
    harness_step();
    while (!take_line(client, line)) {
        if (!client_read_before(client, deadline))
            return false;
    }
    return true;
}

struct span client_line(struct client *client)
{
    struct span line = {NULL, 0};
    if (!client_line_before(client, deadline_usual(), &line)) {
        ck_assert_msg(!client->eof, "the end instead of a line");
        ck_abort_msg("no line came");
    }
    return line;
}

/* --- expectations --- */

/* True when the bytes begin with the text, in which ' stands for ". */
static bool begins(struct span span, const char *text)
{
    size_t i = 0;
    for (; text[i] != '\0'; i++) {
        if (i >= span.len || span.data[i] != (text[i] == '\'' ? '"' : text[i]))
            return false;
    }
    return true;
}

static bool is_raw(struct span span, const char *text)
{
    return span.data != NULL && span.len == strlen(text) && begins(span, text);
}

void expect_member(struct span value, const char *path, const char *raw)
{
    ck_assert_msg(is_raw(json_get(value, path), raw), "%s is not %s: %.*s", path, raw,
                  SHOWN(value));
}

void message_expect(struct span message, const char *format, va_list arguments)
{
    struct text text = {0};
    text_vprintf(&text, format, arguments);
    text_quote(&text, 0);
    ck_assert_msg(span_is(message, text.data), "instead of %.300s\n%.*s", text.data,
                  SHOWN(message));
    text_free(&text);
}

struct span message_result(struct span message, const char *id)
{
    struct span result = json_get(message, "result");
    ck_assert_msg(is_raw(json_get(message, "id"), id) && result.data != NULL,
                  "not the answer to %s: %.*s", id, SHOWN(message));
    return result;
}

void message_error(struct span message, const char *id, int code, const char *word)
{
    struct span words = json_text(json_get(message, "error.message"));
    struct text head = {0}, text = {0};
    text_printf(&head, "{'jsonrpc':'2.0','id':%s,'error':{'code':%d,'message':'", id, code);
    if (words.data != NULL)
        text_add(&text, words.data, words.len);
    ck_assert_msg(begins(message, head.data) && text.len > 0 && strstr(text.data, word) != NULL,
                  "not error %d for %s naming \"%s\": %.*s", code, id, word, SHOWN(message));
    text_free(&head);
    text_free(&text);
}

struct span client_result(struct client *client, const char *id)
{
    return message_result(client_line(client), id);
}

void client_error(struct client *client, const char *id, int code, const char *word)
{
    message_error(client_line(client), id, code, word);
}

struct span client_ask(struct client *client, const char *id, const char *session,
                       const char *method, const char *params)
{
    client_request(client, id, session, method, params);
    return client_result(client, id);
}

void client_expect(struct client *client, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message_expect(client_line(client), format, arguments);
    va_end(arguments);
}

void client_expect_note(struct client *client, const char *session, int n)
{
    client_expect(client,
                  "{'jsonrpc':'2.0','method':'note','sessionId':'%s','params':{'n':%d,'pad':''}}",
                  session, n);
}

void client_expect_eof(struct client *client)
{
    int64_t deadline = deadline_usual();
    harness_step();
    while (!client->eof) {
        if (!read_some(client))
            ck_assert_msg(wait_fd(client->in, POLLIN, deadline), "no end of input");
    }
    size_t rest = client->input.len - client->consumed;
    struct span left = {client->input.data + client->consumed, rest};
    ck_assert_msg(rest == 0, "before the end: %.*s", SHOWN(left));
    end_output(client);
}

long client_pid(struct client *client, const char *id, const char *session)
{
    long pid = json_number(client_ask(client, id, session, "echo", NULL), "pid");
    ck_assert_int_gt(pid, 0);
    return pid;
}

void client_crash(struct client *client, const char *id, const char *session, const char *params)
{
    client_request(client, id, session, "die", params);
    client_error(client, id, -32000, DIED);
}

void client_meet_workers(struct client *client, size_t count, long *pids)
{
    int64_t deadline = deadline_usual();
    size_t known = 0, next = 0;
    while (next < count) {
        long pid = client_pid(client, "'meet'", NULL);
        for (known = 0; known < next && pids[known] != pid; known++)
            continue;
        if (known == next)
            pids[next++] = pid;
        ck_assert_msg(!deadline_over(deadline), "met %zu of %zu workers", next, count);
    }
}

int client_settled_fds(const struct daemon *daemon, size_t workers)
{
    struct client *client = client_connect(daemon);
    long pids[16];
    ck_assert_uint_le(workers, 16);
    client_meet_workers(client, workers, pids);
    int fds = proc_fd_count(daemon->pid) - 1;
    client_close(client);
    daemon_wait_fds(daemon, fds);
    return fds;
}

void client_expect_quiet(struct client *client)
{
    client_ask(client, "'quiet?'", NULL, "plain", NULL);
}

void client_half_close(struct client *client)
{
    if (client->in == client->out) {
        shutdown(client->out, SHUT_WR);
    } else {
        close(client->out);
        client->out = -1;
    }
}

void client_abort(struct client *client)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(client->in, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    client_close(client);
}

void client_close(struct client *client)
{
    if (client->out >= 0 && client->out != client->in)
        close(client->out);
    if (client->in >= 0)
        close(client->in);
    client->in = client->out = -1;
    text_free(&client->input);
    client->consumed = 0;
}

void client_finish(struct client *client, struct daemon *daemon)
{
    client_half_close(client);
    client_expect_eof(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}
