#include "build_config.h"

#include "list_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"

#define LOOK_SECONDS 3 /* the page may be lost */

static void read_url(struct viewer_look *look, struct run *run)
{
    char bytes[256];
    ssize_t n;

    while ((n = read(run->from, bytes, sizeof bytes)) > 0)
        text_add(&look->printed, bytes, (size_t)n);
}

/* Connects, and sends the request. */
static void ask(struct viewer_look *look)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct text request = {0};
    char *path;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)strtoul(strrchr(look->printed.data, ':') + 1, &path, 10));
    text_printf(&request,
                "GET %.*s HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n"
                "Connection: close\r\n\r\n",
                (int)strcspn(path, "\n"), path);
    look->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    look->is_sent = true;
    look->deadline = deadline_in(LOOK_SECONDS);
    if (connect(look->fd, (struct sockaddr *)&address, sizeof address) == 0)
        (void)send(look->fd, request.data, request.len, MSG_NOSIGNAL);
    fcntl(look->fd, F_SETFL, O_NONBLOCK);
    text_free(&request);
}

void viewer_look(struct viewer_look *look, struct run *run)
{
    char bytes[4096];
    ssize_t n;

    read_url(look, run);
    if (look->is_over) {
        run_insist(run);
        return;
    }
    if (!look->is_sent && look->printed.len > 0 && strchr(look->printed.data, '\n') != NULL &&
        strstr(look->printed.data, "http://") != NULL)
        ask(look);
    if (!look->is_sent)
        return;
    n = read(look->fd, bytes, sizeof bytes);
    if (n > 0)
        text_add(&look->answer, bytes, (size_t)n);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || deadline_over(look->deadline)) {
        look->is_over = true;
        if (look->answer.len < 13 || memcmp(look->answer.data, "HTTP/1.1 200 ", 13) != 0)
            text_add(&run->log_text, RUN_NO_PAGE "\n", sizeof RUN_NO_PAGE);
        run_lift(run);
        run_terminate(run);
    }
}

void viewer_look_free(struct viewer_look *look)
{
    if (look->is_sent)
        close(look->fd);
    text_free(&look->printed);
    text_free(&look->answer);
}

void take_stdout(struct run *run)
{
    char bytes[4096];
    ssize_t got;

    do {
        got = read(run->from, bytes, sizeof bytes);
        if (got > 0)
            text_add(&run->log_text, bytes, (size_t)got);
    } while (got > 0 || (got < 0 && errno == EINTR));
}

#define STATUS(state, workers)                                                                     \
    "{\"stdio_bus\":\"shares\",\"version\":\"1\",\"pid\":1,\"seconds\":1,\"clients\":1,\"state\":" \
    "\"" state                                                                                     \
    "\",\"state_ms\":1,\"calls\":1,\"identity\":\"arg=sh env=A=1 \",\"workers\":[" workers "]}\n"

/* What a daemon answers to a line; another process runs after a restart, none after a stop. */
static const char *reply_to(const char *line, const char *before)
{
    if (strstr(line, "restart") != NULL)
        return STATUS("awake", "2");
    return strstr(line, "stop") != NULL ? STATUS("asleep", "") : before;
}

/* With a browser for the page; NULL: without. */
static void serve_list(struct run *run, struct viewer_look *look)
{
    const char *now = STATUS("awake", "1"), *next;
    char bytes[4096];
    ssize_t n;
    int fd;

    fcntl(run->listener, F_SETFL, O_NONBLOCK);
    fcntl(run->from, F_SETFL, O_NONBLOCK);
    while (run_alive(run)) {
        fd = accept(run->listener, NULL, NULL);
        n = fd >= 0 ? read(fd, bytes, sizeof bytes - 1) : 0;
        if (n > 0) {
            bytes[n] = '\0';
            next = reply_to(bytes, now);
            (void)send(fd, now, strlen(now), MSG_NOSIGNAL);
            now = next;
        }
        if (fd >= 0)
            close(fd);
        else
            nap();
        if (look != NULL)
            viewer_look(look, run);
        else
            take_stdout(run);
    }
    if (look == NULL)
        take_stdout(run);
}

void play_list(struct run *run)
{
    serve_list(run, NULL);
}

#define CALL(tool, arguments)                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" tool         \
    "\",\"arguments\":{" arguments "}}}\n"

void play_agent(struct run *run)
{
    static const char lines[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tools/list\"}\n" CALL("list", "")
            CALL("logs", "\"name\":\"a\"") CALL("restart", "\"name\":\"a\"");

    if (write(run->to, lines, sizeof lines - 1) > 0)
        close(run->to);
    run->to = -1;
    serve_list(run, NULL);
}

void play_list_page(struct run *run)
{
    struct viewer_look look = {.is_over = false};

    serve_list(run, &look);
    viewer_look_free(&look);
}
