#include "build_config.h"

#include "nats_links_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"

#define INFO "INFO {\"headers\":true,\"max_payload\":100000}\r\n"
#define OPEN_B "stdio_bus.open.b"
#define LINE_MAX_LEN 400
#define HEAD_LEN 33 /* of a message of links */

/* A server. It knows the sids by their subjects: the daemon subscribes in one order, but for what a
 * fault has prevented. */
struct server {
    struct run *run;
    int fd; /* -1: none */
    struct text input;
    unsigned inbox, open; /* sids; 0: not subscribed */
};

static void drop(struct server *server)
{
    if (server->fd >= 0)
        close(server->fd);
    server->fd = -1;
    server->input.len = 0;
    server->inbox = server->open = 0;
}

static void say(struct server *server, const void *bytes, size_t len)
{
    if (server->fd >= 0 && send(server->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        errno != EAGAIN)
        drop(server);
}

static void subscribe(struct server *server, const char *line)
{
    unsigned sid = (unsigned)strtoul(strrchr(line, ' ') + 1, NULL, 10);

    if (strncmp(line, "SUB stdio_bus.node.", 19) == 0)
        server->inbox = sid;
    if (strncmp(line, "SUB " OPEN_B, sizeof "SUB " OPEN_B - 1) == 0)
        server->open = sid;
}

/* A question for a session: no node has one of pool b, and the daemon itself one of pool far. */
static void tell_place(struct server *server, const char *line, const char *payload, size_t len)
{
    const char *reply = strchr(line + 4, ' ') + 1;
    int reply_len = (int)(strrchr(line, ' ') - reply);
    char text[LINE_MAX_LEN], answer[LINE_MAX_LEN];

    if (payload[0] != 'Q' || len + 2 > sizeof answer)
        return;
    if (strstr(line, ".far.") == NULL) {
        snprintf(text, sizeof text, "HMSG %.*s %u 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", reply_len,
                 reply, server->inbox);
        say(server, text, strlen(text));
        return;
    }
    memcpy(answer, payload, len + 2);
    answer[0] = 'H';
    *(char *)memchr(answer + HEAD_LEN, '\n', len - HEAD_LEN) = '-'; /* a part of the node's name */
    snprintf(text, sizeof text, "MSG %.*s %u %zu\r\n", reply_len, reply, server->inbox, len);
    say(server, text, strlen(text));
    say(server, answer, len + 2);
}

/* PUB SUBJECT [REPLY] LENGTH: goes back to the daemon; what opens a link, as if it were for b. */
static void pass_on(struct server *server, const char *line, const char *payload, size_t len)
{
    const char *subject = line + 4, *rest = strchr(subject, ' ');
    const char *reply = strrchr(line, ' ') > rest ? rest : "";
    size_t reply_len = *reply != '\0' ? (size_t)(strrchr(line, ' ') - rest) : 0;
    bool opens = strncmp(subject, "stdio_bus.open.", 15) == 0;
    unsigned sid = opens ? server->open : server->inbox;
    char text[LINE_MAX_LEN];

    if (sid == 0)
        return;
    if (strncmp(subject, "stdio_bus.session.", 18) == 0) {
        tell_place(server, line, payload, len);
        return;
    }
    snprintf(text, sizeof text, "MSG %.*s %u%.*s %zu\r\n",
             opens ? (int)sizeof OPEN_B - 1 : (int)(rest - subject), opens ? OPEN_B : subject, sid,
             (int)reply_len, reply, len);
    say(server, text, strlen(text));
    say(server, payload, len + 2);
}

static size_t handle(struct server *server, const char *line, size_t len)
{
    const char *payload = server->input.data + len;
    size_t size;

    if (strncmp(line, "PING", 4) == 0)
        say(server, "PONG\r\n", 6);
    if (strncmp(line, "SUB ", 4) == 0)
        subscribe(server, line);
    if (strncmp(line, "PUB ", 4) != 0)
        return len;
    size = (size_t)strtoul(strrchr(line, ' ') + 1, NULL, 10);
    if (server->input.len < len + size + 2)
        return 0;
    pass_on(server, line, payload, size);
    return len + size + 2;
}

/* The next line, and its payload. False: it is not whole yet. */
static bool take(struct server *server)
{
    const char *end = server->input.len > 0 ? memchr(server->input.data, '\n', server->input.len)
                                            : NULL;
    char line[LINE_MAX_LEN];
    size_t len, used;

    if (end == NULL)
        return false;
    len = (size_t)(end - server->input.data) + 1;
    snprintf(line, sizeof line, "%.*s", (int)len, server->input.data);
    used = handle(server, line, len);
    if (used == 0 || server->fd < 0)
        return false;
    server->input.len -= used;
    memmove(server->input.data, server->input.data + used, server->input.len);
    return true;
}

static void look(struct server *server)
{
    char bytes[4096];
    ssize_t n;

    if (server->fd < 0) {
        server->fd = accept(server->run->listener, NULL, NULL);
        if (server->fd < 0)
            return;
        fcntl(server->fd, F_SETFL, O_NONBLOCK);
        say(server, INFO, sizeof INFO - 1);
    }
    n = server->fd >= 0 ? read(server->fd, bytes, sizeof bytes) : -1;
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        drop(server);
        return;
    }
    if (n > 0)
        text_add(&server->input, bytes, (size_t)n);
    while (take(server))
        continue;
}

/* Until it is killed, or the run has ended. */
static pid_t start_server(struct run *run)
{
    struct server server = {.run = run, .fd = -1};
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    while (getppid() == parent) {
        look(&server);
        nap();
    }
    _exit(0);
}

void play_nats_links(struct run *run)
{
    struct peer ann = {.in = -1}, ben = {.in = -1};
    pid_t server;

    fcntl(run->listener, F_SETFL, O_NONBLOCK);
    server = start_server(run);
    if (server < 0)
        run_fail(run, "cannot start a server");
    run_arm(run);
    peer_connect(&ann, run, "ann");
    peer_call(&ann, 1, "", ",'pool':'far'");
    peer_call(&ann, 2, "", ",'pool':'far'");
    peer_call(&ann, 6, "", ",'pool':'far','sessionId':'u'");
    peer_call(&ann, 7, "", ",'pool':'b','sessionId':'v'");
    peer_call(&ann, 8, "", ",'pool':'full'");
    peer_connect(&ben, run, "ben");
    peer_call(&ben, 1, "", ",'pool':'full'");
    run_lift(run);
    peer_call(&ann, 3, "", ",'pool':'far'");
    peer_call(&ann, 4, "", ",'pool':'far','sessionId':'s'");
    peer_call(&ann, 5, "", ",'pool':'b','sessionId':'t'");
    peer_call(&ben, 2, "", ",'pool':'full'");
    peer_close(&ben);
    peer_close(&ann);
    run_terminate(run);
    while (run_alive(run)) {
        run_insist(run);
        nap();
    }
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}
