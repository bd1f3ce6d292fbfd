/* relay: the floor for measurements of the bus. One client on stdin and stdout, one worker on
 * pipes; bytes are copied both ways, 64 KiB at a time, without parsing.
 *
 *     relay [--lines] PROGRAM [ARGUMENT]...
 *
 * With --lines it copies complete lines only, as every bus must: the floor for long messages. Lines
 * are then shorter than 2 MiB.
 *
 * One thread; a blocked direction never blocks the other. The descriptors are registered once,
 * edge-triggered, so that in steady state each piece costs one wait, one read and one write. */
#include "build_config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_SIZE 65536
#define BUFFER_SIZE (2 << 20)

struct direction {
    int from, to;
    bool lines, readable, ended, closed;
    size_t start, ready, end; /* writable bytes end at `ready`, bytes read at `end` */
    char data[BUFFER_SIZE];
};

static void fail(const char *what)
{
    fprintf(stderr, "relay: ");
    perror(what);
    exit(1);
}

static bool passes(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* True: all was written. */
static bool write_rest(struct direction *direction)
{
    while (direction->start < direction->ready) {
        ssize_t n = write(direction->to, direction->data + direction->start,
                          direction->ready - direction->start);

        if (n < 0 && passes())
            return false;
        if (n < 0)
            fail("write");
        direction->start += (size_t)n;
    }
    if (direction->start > 0) {
        direction->end -= direction->start;
        memmove(direction->data, direction->data + direction->start, direction->end);
    }
    direction->start = direction->ready = 0;
    return true;
}

static void read_more(struct direction *direction)
{
    char *to = direction->data + direction->end, *line_end;
    size_t room = BUFFER_SIZE - direction->end;
    ssize_t n = read(direction->from, to, room < READ_SIZE ? room : READ_SIZE);

    if (n < 0 && !passes())
        fail("read");
    if (n == 0)
        direction->ended = true;
    /* After a short read there is no more input, and new input is a new edge. */
    if (n < READ_SIZE)
        direction->readable = false;
    if (n <= 0)
        return;
    direction->end += (size_t)n;
    if (!direction->lines)
        direction->ready = direction->end;
    else if ((line_end = memrchr(to, '\n', (size_t)n)) != NULL)
        direction->ready = (size_t)(line_end + 1 - direction->data);
}

/* One piece at most. True: there may be more. */
static bool copy_once(struct direction *direction)
{
    if (direction->closed || !write_rest(direction))
        return false;
    if (direction->readable && !direction->ended) {
        read_more(direction);
        if (!write_rest(direction))
            return false;
    }
    if (direction->ended) {
        close(direction->to);
        direction->closed = true;
        return false;
    }
    return direction->readable;
}

static void watch(int epoll, struct direction *direction)
{
    struct epoll_event in = {.events = EPOLLIN | EPOLLET, .data = {.ptr = direction}};
    struct epoll_event out = {.events = EPOLLOUT | EPOLLET, .data = {.ptr = direction}};
    int flags_in = fcntl(direction->from, F_GETFL), flags_out = fcntl(direction->to, F_GETFL);

    if (fcntl(direction->from, F_SETFL, flags_in | O_NONBLOCK) < 0 ||
        fcntl(direction->to, F_SETFL, flags_out | O_NONBLOCK) < 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, direction->from, &in) < 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, direction->to, &out) < 0)
        fail("epoll_ctl");
    direction->readable = true; /* before the first edge: a read without input does no harm */
}

/* Copies until the output of the worker ends. */
static void copy(int epoll, struct direction *to_worker, struct direction *to_client)
{
    bool more = true;

    while (!to_client->closed) {
        struct epoll_event events[4];
        int count = epoll_wait(epoll, events, 4, more ? 0 : -1);
        bool more_to_worker, more_to_client;

        if (count < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < count; i++) {
            struct direction *direction = events[i].data.ptr;

            if (events[i].events & (EPOLLIN | EPOLLHUP))
                direction->readable = true;
        }
        more_to_worker = copy_once(to_worker);
        more_to_client = copy_once(to_client);
        more = more_to_worker || more_to_client;
    }
}

static pid_t start_worker(char **argv, int *to, int *from)
{
    int in[2], out[2];
    pid_t pid;

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        fail("pipe");
    pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execvp(argv[0], argv);
        fail(argv[0]);
    }
    close(in[0]);
    close(out[1]);
    *to = in[1];
    *from = out[0];
    return pid;
}

int main(int argc, char **argv)
{
    static struct direction to_worker = {.from = STDIN_FILENO}, to_client = {.to = STDOUT_FILENO};
    int epoll = epoll_create1(EPOLL_CLOEXEC), status;
    pid_t pid;

    if (argc > 1 && strcmp(argv[1], "--lines") == 0) {
        to_worker.lines = to_client.lines = true;
        argv++, argc--;
    }
    if (argc < 2 || epoll < 0) {
        fprintf(stderr, "usage: relay [--lines] PROGRAM [ARGUMENT]...\n");
        return 64;
    }
    pid = start_worker(argv + 1, &to_worker.to, &to_client.from);
    signal(SIGPIPE, SIG_IGN);
    watch(epoll, &to_worker);
    watch(epoll, &to_client);
    copy(epoll, &to_worker, &to_client);
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}
