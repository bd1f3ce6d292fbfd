/* http_echo PORT: a server of HTTP with the least work, behind nginx in `make bench-http`. Each
 * request on a kept connection of 127.0.0.1 gets the same answer, which is as long as that of the
 * daemon with mcp_counter. */
#include "build_config.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
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

static const char answer[] =
    "HTTP/1.1 200 OK\r\n"
    "Content-Type: application/json\r\n"
    "Content-Length: 98\r\n\r\n"
    "{\"jsonrpc\":\"2.0\",\"id\":1234567,\"result\":{\"content\":[{\"type\":\"text\","
    "\"text\":\"number 1234567, from 12345\"}]}}";

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

static void serve(struct peer *peer)
{
    ssize_t n = read(peer->fd, peer->request + peer->len, REQUEST_MAX - 1 - peer->len);
    size_t len;

    if (n <= 0) {
        close(peer->fd);
        free(peer);
        return;
    }
    peer->len += (size_t)n;
    while ((len = request_len(peer)) > 0) {
        if (write(peer->fd, answer, sizeof answer - 1) < 0)
            break;
        memmove(peer->request, peer->request + len, peer->len - len);
        peer->len -= len;
    }
}

static void welcome(int epoll, int listener)
{
    struct peer *peer = calloc(1, sizeof *peer);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    int on = 1;

    if (peer == NULL || (peer->fd = accept(listener, NULL, NULL)) < 0)
        fail("http_echo: accept");
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, peer->fd, &event) < 0)
        fail("http_echo: epoll_ctl");
}

int main(int argc, char **argv)
{
    struct epoll_event events[64], listening = {.events = EPOLLIN};
    int listener = listen_at(argc == 2 ? strtol(argv[1], NULL, 10) : 0), epoll = epoll_create1(0);

    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &listening) < 0)
        fail("http_echo: epoll");
    for (;;) {
        int count = epoll_wait(epoll, events, 64, -1);

        for (int i = 0; i < count; i++)
            if (events[i].data.ptr == NULL)
                welcome(epoll, listener);
            else
                serve(events[i].data.ptr);
    }
}
