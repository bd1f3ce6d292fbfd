#include "build_config.h"

#include "nats_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"

#define STALL_MS 300 /* without input: a fault has had its effect */

#define INFO                                                                                       \
    "INFO {\"headers\":true,\"max_payload\":100000,\"connect_urls\":[\"127.0.0.1:%u\"]}\r\n"
#define REQUEST(reply, json, len) "MSG stdio_bus.rpc.b 1 " reply " " len "\r\n" json "\r\n"

/* A server: the connection of the daemon, of which there is one after the other. */
struct server {
    struct run *run;
    int fd; /* -1: none */
    struct text input;
    bool welcomed, greeted; /* INFO, PONG were sent */
};

static void drop(struct server *server)
{
    if (server->fd >= 0)
        close(server->fd);
    server->fd = -1;
    server->input.len = 0;
    server->welcomed = server->greeted = false;
}

static void say(struct server *server, const char *text)
{
    ssize_t sent = send(server->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent < 0 && errno != EAGAIN)
        drop(server);
}

static void greet(struct server *server)
{
    char text[sizeof INFO + 16];

    if (!server->welcomed) {
        server->welcomed = true;
        snprintf(text, sizeof text, INFO, server->run->port);
        say(server, text);
    } else if (!server->greeted && strstr(server->input.data, "PING\r\n") != NULL) {
        server->greeted = true;
        say(server, "PONG\r\n");
    }
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
        text_add(&server->input, "", 1);
        server->input.len = 0;
    }
    n = read(server->fd, bytes, sizeof bytes - 1);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        drop(server);
        return;
    }
    if (n > 0) {
        text_add(&server->input, bytes, (size_t)n);
        text_add(&server->input, "", 1);
        server->input.len--;
    }
    greet(server);
}

/* False: the words do not come, since a call has failed. */
static bool await(struct server *server, const char *words)
{
    int64_t began = now_ms();
    size_t before = 0;

    for (;;) {
        look(server);
        if (server->fd >= 0 && strstr(server->input.data, words) != NULL)
            return true;
        if (!run_alive(server->run))
            return false;
        if (server->input.len != before)
            began = now_ms();
        before = server->input.len;
        if (run_is_stalled(server->run, began, STALL_MS))
            return false;
        nap();
    }
}

/* The daemon closes its connection. */
static void await_end_of(struct server *server)
{
    int64_t began = now_ms();

    while (server->fd >= 0 && run_alive(server->run) &&
           !run_is_stalled(server->run, began, STALL_MS)) {
        look(server);
        nap();
    }
    drop(server);
}

/* A request that is lost on its way has no answer, nor does one during a fault. */
static bool ask(struct server *server)
{
    if (!await(server, "SUB stdio_bus.rpc.b"))
        return false;
    say(server, REQUEST("r.1", "{\"id\":1,\"params\":{\"who\":\"x\"}}", "29"));
    say(server, REQUEST("r.2", "{\"id\":[]}", "9"));
    say(server, REQUEST("r.3", "{\"method\":\"note\"}", "17"));
    return server->fd >= 0 && await(server, "PUB r.2 ") && await(server, "PUB r.3 ") &&
           await(server, "PUB r.1 ");
}

void play_nats(struct run *run)
{
    struct server server = {.run = run, .fd = -1};
    bool served;

    fcntl(run->listener, F_SETFL, O_NONBLOCK);
    run_arm(run);
    served = ask(&server);
    if (served) { /* the answer finds no connection, and waits for the next one */
        say(&server, REQUEST("r.4", "{\"id\":4,\"params\":{\"who\":\"x\"}}",
                             "29") "-ERR 'Stale Connection'\r\n");
        await_end_of(&server);
    }
    if (served)
        served = await(&server, "PUB r.4 ");
    run_lift(run);
    served = served && ask(&server);
    run->client_lost = run->client_lost || !served;
    run_terminate(run);
    while (run_alive(run) && server.fd >= 0) {
        look(&server);
        nap();
    }
    drop(&server);
    text_free(&server.input);
}
