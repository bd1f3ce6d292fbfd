/* http_echo PORT: a server of HTTP with the least work, behind nginx in `make bench-http`. Each
 * request on a kept connection of 127.0.0.1 gets the same answer, whose body is as long as that of
 * the daemon with mcp_counter. At SIGTERM it prints how many connections and requests it had: a
 * proxy that is measured keeps its connections. */
#include "build_config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1024
#define REQUEST_MAX 8192

struct peer {
    int fd;
    size_t len;
    char request[REQUEST_MAX];
};

static const char body[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1234567,\"result\":{\"content\":[{\"type\":\"text\","
    "\"text\":\"number 1234567, from 12345\"}]}}";

struct server {
    char answer[256];
    size_t answer_len;
    uint64_t connections, requests;
};

/* Set by SIGTERM. */
static volatile sig_atomic_t is_over;

static void note_end(int signal)
{
    (void)signal;
    is_over = 1;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int listen_at(long port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(fd, SOMAXCONN) < 0)
        fail("http_echo");
    return fd;
}

/* The length of the first request in the input, 0: it is incomplete. */
static size_t request_len(struct peer *peer)
{
    char *end, *field;
    size_t len;

    peer->request[peer->len] = '\0';
    if ((end = strstr(peer->request, "\r\n\r\n")) == NULL)
        return 0;
    len = (size_t)(end + 4 - peer->request);
    field = strcasestr(peer->request, "\r\nContent-Length:");
    if (field != NULL && field < end)
        len += strtoul(field + 17, NULL, 10);
    return len <= peer->len ? len : 0;
}

static void serve(struct server *server, struct peer *peer)
{
    ssize_t n = read(peer->fd, peer->request + peer->len, REQUEST_MAX - 1 - peer->len);
    size_t len;

    if (n < 0 && errno != ECONNRESET) /* by which nginx ends a request that its client gave up */
        perror("http_echo: read");
    if (n <= 0) {
        close(peer->fd);
        free(peer);
        return;
    }
    peer->len += (size_t)n;
    while ((len = request_len(peer)) > 0) {
        if (write(peer->fd, server->answer, server->answer_len) != (ssize_t)server->answer_len)
            fail("http_echo: write");
        server->requests++;
        memmove(peer->request, peer->request + len, peer->len - len);
        peer->len -= len;
    }
}

static void welcome(struct server *server, int epoll, int listener)
{
    struct peer *peer = calloc(1, sizeof *peer);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    int on = 1;

    if (peer == NULL || (peer->fd = accept(listener, NULL, NULL)) < 0)
        fail("http_echo: accept");
    server->connections++;
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, peer->fd, &event) < 0)
        fail("http_echo: epoll_ctl");
}

static void make_answer(struct server *server)
{
    server->answer_len = (size_t)snprintf(server->answer, sizeof server->answer,
                                          "HTTP/1.1 200 OK\r\n"
                                          "Content-Type: application/json\r\n"
                                          "Content-Length: %zu\r\n\r\n%s",
                                          sizeof body - 1, body);
}

int main(int argc, char **argv)
{
    static struct server server;
    struct epoll_event events[64], listening = {.events = EPOLLIN};
    struct sigaction action = {.sa_handler = note_end};
    sigset_t blocked, before;
    int listener = listen_at(argc == 2 ? strtol(argv[1], NULL, 10) : 0), epoll = epoll_create1(0);

    make_answer(&server);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    sigaction(SIGTERM, &action, NULL);
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &listening) < 0)
        fail("http_echo: epoll");
    while (!is_over) {
        int count = epoll_pwait(epoll, events, 64, -1, &before);

        for (int i = 0; i < count; i++)
            if (events[i].data.ptr == NULL)
                welcome(&server, epoll, listener);
            else
                serve(&server, events[i].data.ptr);
    }
    printf("connections=%" PRIu64 " requests=%" PRIu64 "\n", server.connections, server.requests);
    return EXIT_SUCCESS;
}
