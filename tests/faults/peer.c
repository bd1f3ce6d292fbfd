#include "build_config.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"
#include "json.h"
#include "run.h"

#define READ_SIZE 65536
#define STALL_MS 60 /* without input: a lasting fault has had its effect */

bool peer_gone(const struct peer *peer)
{
    return peer->out < 0;
}

void peer_close(struct peer *peer)
{
    if (peer->out >= 0)
        close(peer->out);
    if (peer->in >= 0 && peer->in != peer->out)
        close(peer->in);
    peer->in = peer->out = -1;
    peer->asked_count = 0;
    text_free(&peer->input);
}

static void lost(struct peer *peer)
{
    peer->run->client_lost = true;
    peer_close(peer);
}

static int try_connect(const struct run *run)
{
    struct board *board = run->board;
    socklen_t len = __atomic_load_n(&board->address_len, __ATOMIC_SEQ_CST);
    int fd;

    if (len == 0)
        return -1;
    fd = socket(board->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&board->address, len) == 0)
        return fd;
    close(fd);
    return -1;
}

void peer_connect(struct peer *peer, struct run *run, const char *name)
{
    int64_t deadline = deadline_usual();
    int fd;

    *peer = (struct peer){.run = run, .name = name, .in = -1, .out = -1};
    while ((fd = try_connect(run)) < 0) {
        if (!run_alive(run) || run->terminated > 0)
            return;
        if (deadline_over(deadline))
            run_fail(run, "%s cannot connect", name);
        nap();
    }
    peer->in = peer->out = fd;
    if (run->scene->token)
        peer_send(peer, "{'token':'faults'}");
}

void peer_stdio(struct peer *peer, struct run *run, const char *name)
{
    *peer = (struct peer){.run = run, .name = name, .in = run->from, .out = run->to};
    run->from = run->to = -1;
}

/* The peer got a line that it must not get. */
static void fail_line(const struct peer *peer, const char *what, struct span line)
    __attribute__((noreturn));
static void fail_line(const struct peer *peer, const char *what, struct span line)
{
    run_fail(peer->run, "%s got %s: %.*s", peer->name, what, (int)(line.len < 200 ? line.len : 200),
             line.data);
}

static void take_answer(struct peer *peer, struct span line, struct span id)
{
    /* The second one: the worker's question was refused, since a restart has ended the session. */
    bool is_error = json_get(line, "error").data != NULL ||
                    json_get(line, "result.error").data != NULL;
    long number = json_long(id, -1);
    size_t i;

    if (span_is(id, "null") && is_error)
        return; /* for no request: the daemon will close the connection */
    for (i = 0; i < peer->asked_count && peer->asked[i] != (unsigned)number; i++)
        continue;
    if (i == peer->asked_count && number == (long)peer->cancelled && number > 0)
        return;
    if (i == peer->asked_count)
        fail_line(peer, "an answer to no open request", line);
    peer->asked[i] = peer->asked[--peer->asked_count];
    peer->errors += is_error;
    if (!is_error && memmem(line.data, line.len, peer->name, strlen(peer->name)) == NULL)
        fail_line(peer, "an answer for another client", line);
}

/* A message that is no answer names its client. */
static bool is_for(const struct peer *peer, struct span line)
{
    static const char *const places[] = {"sessionId", "params.sessionId", "params.progressToken",
                                         "params.who"};
    struct span name = {NULL, 0};

    for (size_t i = 0; i < sizeof places / sizeof places[0] && name.data == NULL; i++)
        name = json_text(json_get(line, places[i]));
    return name.data != NULL && (span_is(name, peer->name) || span_is(name, "all"));
}

static void take_line(struct peer *peer, struct span line)
{
    struct span id = json_get(line, "id");

    if (json_get(line, "method").data == NULL)
        take_answer(peer, line, id);
    else if (!is_for(peer, line))
        fail_line(peer, "a message for another client", line);
    else if (id.data == NULL)
        peer->notes++;
    else
        peer_send(peer, "{'jsonrpc':'2.0','id':%.*s,'sessionId':'%s','result':'%s'}", (int)id.len,
                  id.data, peer->name, peer->name);
}

static void take_lines(struct peer *peer)
{
    size_t consumed = 0;
    const char *newline;

    while (!peer_gone(peer) && peer->input.len > consumed &&
           (newline = memchr(peer->input.data + consumed, '\n', peer->input.len - consumed)) !=
               NULL) {
        struct span line = {peer->input.data + consumed, 0};

        line.len = (size_t)(newline - line.data);
        consumed += line.len + 1;
        take_line(peer, line);
    }
    if (peer_gone(peer) || consumed == 0)
        return;
    memmove(peer->input.data, peer->input.data + consumed, peer->input.len - consumed);
    peer->input.len -= consumed;
}

/* Reads once. */
static void take_input(struct peer *peer)
{
    char *to = text_room(&peer->input, READ_SIZE);
    ssize_t n = read(peer->in, to, READ_SIZE);

    if (n > 0)
        peer->input.len += (size_t)n;
    else if (n == 0 || errno != EINTR)
        lost(peer);
}

static bool ready(struct peer *peer, int fd, short events, int64_t deadline)
{
    if (wait_fd(fd, events, now_ms() + STALL_MS))
        return true;
    run_lift(peer->run);
    run_insist(peer->run);
    if (run_logged(peer->run, "reply was lost"))
        lost(peer); /* it would wait in vain */
    else if (deadline_over(deadline))
        run_fail(peer->run, "%s got no input; %zu of its requests have no answer; %zu notes came",
                 peer->name, peer->asked_count, peer->notes);
    return false;
}

/* Reads meanwhile: otherwise both sides could wait for each other. */
static void send_all(struct peer *peer, const char *bytes, size_t len)
{
    int64_t deadline = deadline_usual();

    while (len > 0 && !peer_gone(peer)) {
        struct pollfd fds[2] = {{peer->out, POLLOUT, 0}, {peer->in, POLLIN, 0}};
        ssize_t n;

        if (poll(fds, 2, STALL_MS) <= 0)
            ready(peer, peer->out, POLLOUT, deadline);
        if (fds[1].revents != 0) {
            take_input(peer);
            continue;
        }
        if (fds[0].revents == 0)
            continue;
        n = write(peer->out, bytes, len < 4096 ? len : 4096);
        if (n < 0 && errno != EINTR) {
            lost(peer);
        } else if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
}

void peer_send(struct peer *peer, const char *format, ...)
{
    struct text line = {0};
    va_list arguments;

    va_start(arguments, format);
    text_vprintf(&line, format, arguments);
    va_end(arguments);
    text_quote(&line, 0);
    text_add(&line, "\n", 1);
    send_all(peer, line.data, line.len);
    text_free(&line);
}

void peer_ask(struct peer *peer, unsigned id, const char *params, const char *members)
{
    if (peer_gone(peer))
        return;
    peer->asked[peer->asked_count++] = id;
    peer_send(peer, "{'jsonrpc':'2.0','id':%u,'params':{'who':'%s'%s}%s}", id, peer->name, params,
              members);
}

/* Takes input until at most `asked` requests are open and `notes` notifications have come, or until
 * the end of the connection. */
static void await(struct peer *peer, size_t asked, size_t notes)
{
    int64_t deadline = deadline_usual();

    take_lines(peer);
    while (!peer_gone(peer) && (peer->asked_count > asked || peer->notes < notes)) {
        if (ready(peer, peer->in, POLLIN, deadline))
            take_input(peer);
        take_lines(peer);
    }
}

void peer_await(struct peer *peer)
{
    await(peer, 0, 0);
}

void peer_await_notes(struct peer *peer, size_t count)
{
    await(peer, PEER_ASKED_MAX, count);
}

void peer_await_end(struct peer *peer)
{
    bool client_lost = peer->run->client_lost;

    await(peer, PEER_ASKED_MAX, SIZE_MAX);
    peer->run->client_lost = client_lost;
}

void peer_call(struct peer *peer, unsigned id, const char *params, const char *members)
{
    peer_ask(peer, id, params, members);
    peer_await(peer);
}
