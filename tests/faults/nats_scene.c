#include "build_config.h"

#include "nats_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "deadline.h"
#include "rmp/frame.h"

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

/* What comes may have bytes of 0. */
static bool has_come(const struct server *server, const char *words)
{
    return memmem(server->input.data, server->input.len, words, strlen(words)) != NULL;
}

static void greet(struct server *server)
{
    char text[sizeof INFO + 16];

    if (!server->welcomed) {
        server->welcomed = true;
        snprintf(text, sizeof text, INFO, server->run->port);
        say(server, text);
    } else if (!server->greeted && has_come(server, "PING\r\n")) {
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
        if (server->fd >= 0 && has_come(server, words))
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

/* The number of the subscription; 0: it has not come. */
static unsigned sid_of(const struct server *server, const char *subject)
{
    char words[64];
    int len = snprintf(words, sizeof words, "SUB %s ", subject);
    const char *found = server->input.len > 0
                            ? memmem(server->input.data, server->input.len, words, (size_t)len)
                            : NULL;

    return found != NULL ? (unsigned)strtoul(found + len, NULL, 10) : 0;
}

/* Another node asks, and answers. Nothing depends on it. */
static void meet(struct server *server)
{
    static const char node[] = "{\"id\":\"0123456789abcdef\",\"node\":\"a\",\"version\":\"1\","
                               "\"up_ms\":1}";
    unsigned sid = sid_of(server, "stdio_bus.nodes");
    char text[256];

    if (sid == 0)
        return;
    snprintf(text, sizeof text, "MSG stdio_bus.nodes %u r.5 0\r\n\r\nMSG n.1 %u %zu\r\n%s\r\n", sid,
             sid + 1, sizeof node - 1, node);
    say(server, text);
    (void)await(server, "PUB r.5 ");
}

/* A request that is lost on its way has no answer, nor does one during a fault. */
static bool ask(struct server *server)
{
    if (!await(server, "SUB stdio_bus.rpc.b"))
        return false;
    say(server, REQUEST("r.1", "{\"id\":1,\"params\":{\"who\":\"x\"}}", "29"));
    say(server, REQUEST("r.2", "{\"id\":[]}", "9"));
    say(server, REQUEST("r.3", "{\"method\":\"note\"}", "17"));
    say(server, REQUEST("r.6", "[{\"id\":6,\"params\":{\"who\":\"x\"}}]", "31"));
    return server->fd >= 0 && await(server, "PUB r.2 ") && await(server, "PUB r.3 ") &&
           await(server, "PUB r.1 ") && await(server, "PUB r.6 ");
}

void play_nats(struct run *run)
{
    struct server server = {.run = run, .fd = -1};
    bool served;

    fcntl(run->listener, F_SETFL, O_NONBLOCK);
    run_arm(run);
    served = ask(&server);
    meet(&server);
    if (served) { /* the answer finds no connection, and waits for the next one */
        say(&server, REQUEST("r.4", "{\"id\":4,\"params\":{\"who\":\"x\"}}",
                             "29") "-ERR 'Stale Connection'\r\n");
        await_end_of(&server);
    }
    if (served && !await(&server, "PUB r.4 ")) {
        run_lift(run); /* time may have stood still */
        served = await(&server, "PUB r.4 ");
    }
    run_lift(run);
    served = served && ask(&server);
    run->client_lost = run->client_lost || !served;
    run_terminate(run);
    while (run_alive(run) && server.fd >= 0) {
        run_insist(run);
        look(&server);
        nap();
    }
    drop(&server);
    text_free(&server.input);
}

/* ---- topics --------------------------------------------------------------------------------- */

#define SUBSCRIBE "{\"Subscribe\":{\"id\":1,\"topic\":\"a%u\",\"sub_id\":1}}"
#define PUBLISH                                                                                    \
    "{\"Publish\":{\"id\":2,\"topic\":\"t/x y\",\"message\":{\"header\":{\"header_version\":0,"    \
    "\"header_len\":64,\"flags\":0,\"schema_id\":3003,\"body_len\":0,\"created_at_ms\":%llu,"      \
    "\"ttl_ms\":3600000,\"trace_id\":1,\"msg_id\":%u},\"body\":[1,2]}}}"
#define SUBJECT "SUB stdio_bus.topic.a"

/* A client of the topic bus; -1: the daemon takes none. */
static int open_client(struct run *run)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int64_t deadline = deadline_usual();

    snprintf(address.sun_path, sizeof address.sun_path, "%s/bus/rmp.sock", run->dir);
    while (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        if (!run_alive(run) || deadline_over(deadline)) {
            close(fd);
            return -1;
        }
        nap();
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void command(int fd, const char *json)
{
    size_t len = strlen(json);
    const char head[] = {0, 0, (char)(len >> 8), (char)(len & 0xFF)};

    (void)(send(fd, head, sizeof head, MSG_NOSIGNAL) + send(fd, json, len, MSG_NOSIGNAL));
}

/* A frame comes from another node. */
static void deliver(struct server *server, unsigned number)
{
    const struct rmp_header header = {.schema_id = 3003,
                                      .body_len = 1,
                                      .created_at_ms = (uint64_t)time(NULL) * 1000,
                                      .ttl_ms = 3600000,
                                      .msg_id = number};
    char frame[64 + RMP_BODY_OFFSET + 8], subject[64];
    size_t len;

    snprintf(subject, sizeof subject, "stdio_bus.topic.a%u", number);
    len = (size_t)snprintf(frame, 64, "MSG %s %u %d\r\n", subject, sid_of(server, subject),
                           RMP_BODY_OFFSET + 1);
    rmp_header_write_prefixed(frame + len, &header);
    memcpy(frame + len + RMP_BODY_OFFSET, "b\r\n", 3);
    (void)send(server->fd, frame, len + RMP_BODY_OFFSET + 3, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The client gets a message. */
static bool await_message(struct server *server, int fd)
{
    int64_t began = now_ms();
    struct text got = {0};
    bool found = false;

    while (!found && run_alive(server->run) && !run_is_stalled(server->run, began, STALL_MS)) {
        ssize_t n = read(fd, text_room(&got, 4096), 4096);

        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
        got.len += n > 0 ? (size_t)n : 0;
        found = got.len > 0 && memmem(got.data, got.len, "\"Message\"", 9) != NULL;
        look(server);
        nap();
    }
    text_free(&got);
    return found;
}

static bool talk(struct server *server, unsigned number)
{
    char publication[512], subscription[128], subject[64];
    int fd = open_client(server->run);
    bool served;

    if (fd < 0)
        return false;
    snprintf(publication, sizeof publication, PUBLISH, (unsigned long long)time(NULL) * 1000,
             number);
    snprintf(subscription, sizeof subscription, SUBSCRIBE, number);
    command(fd, subscription);
    snprintf(subject, sizeof subject, SUBJECT "%u ", number);
    served = await(server, subject);
    command(fd, publication);
    served = served && await(server, "HPUB stdio_bus.topic.t.x%20y ");
    if (served) {
        deliver(server, number);
        served = await_message(server, fd);
    }
    close(fd);
    return served;
}

void play_nats_topics(struct run *run)
{
    struct server server = {.run = run, .fd = -1};
    bool served;

    fcntl(run->listener, F_SETFL, O_NONBLOCK);
    run_arm(run);
    (void)talk(&server, 1);
    run_lift(run);
    served = talk(&server, 2) || talk(&server, 3);
    run->client_lost = run->client_lost || !served;
    run_terminate(run);
    while (run_alive(run) && server.fd >= 0) {
        run_insist(run);
        look(&server);
        nap();
    }
    drop(&server);
    text_free(&server.input);
}
