/* A program with the bus inside: lines of its stdin go to the workers of a configuration, and what
 * they answer goes to its stdout. It waits in a poll loop of its own.
 *
 *     cc -o embedded_host embedded_host.c -lstdio_bus
 *     ./embedded_host config.json
 *
 * stdio_bus_embed.h and libstdio_bus(3) describe the functions. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <stdio_bus_embed.h>

#define LINE_MAX_BYTES 65536

struct host {
    char line[LINE_MAX_BYTES];
    size_t len;
    int waiting; /* the first line is for a worker that takes nothing now */
};

static void on_message(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    (void)bus;
    (void)user_data;
    if (fwrite(msg, 1, len, stdout) == len && putchar('\n') != EOF)
        fflush(stdout);
}

static void on_error(stdio_bus_t *bus, int code, const char *message, void *user_data)
{
    (void)bus;
    (void)user_data;
    fprintf(stderr, "embedded_host: %s (%d)\n", message, code);
}

/* Sends the whole lines that were read, up to one that has to wait. */
static void send_lines(struct host *host, stdio_bus_t *bus)
{
    char *end;

    host->waiting = 0;
    while ((end = memchr(host->line, '\n', host->len)) != NULL) {
        size_t len = (size_t)(end - host->line);
        int status = len > 0 ? stdio_bus_ingest(bus, host->line, len) : STDIO_BUS_OK;

        if (status == STDIO_BUS_EFULL || status == STDIO_BUS_EAGAIN) {
            host->waiting = 1;
            return;
        }
        if (status != STDIO_BUS_OK)
            fprintf(stderr, "embedded_host: a line was refused (%d)\n", status);
        host->len -= len + 1;
        memmove(host->line, end + 1, host->len);
    }
}

/* False at the end of stdin, or after a line that is too long. */
static int read_lines(struct host *host)
{
    ssize_t got = read(STDIN_FILENO, host->line + host->len, sizeof host->line - host->len);

    if (got <= 0)
        return 0;
    host->len += (size_t)got;
    return 1;
}

static void run(struct host *host, stdio_bus_t *bus)
{
    struct pollfd fds[2] = {{stdio_bus_get_poll_fd(bus), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    int stopping = 0;

    while (stdio_bus_get_state(bus) != STDIO_BUS_STATE_STOPPED) {
        if (!stopping && fds[1].fd < 0 && !host->waiting && stdio_bus_pending_count(bus) == 0) {
            stopping = 1;
            stdio_bus_stop(bus, -1);
        }
        /* Without a poll_fd the bus is stepped ten times a second. */
        poll(fds, 2, fds[0].fd >= 0 ? -1 : 100);
        stdio_bus_step(bus, 0);
        if (fds[1].fd >= 0 && !host->waiting && (fds[1].revents & (POLLIN | POLLHUP)) != 0 &&
            !read_lines(host))
            fds[1].fd = -1;
        if (!stopping)
            send_lines(host, bus);
        fds[1].events = host->waiting ? 0 : POLLIN;
    }
}

int main(int argc, char *argv[])
{
    static struct host host;
    stdio_bus_options_t options = {0};
    stdio_bus_t *bus;
    int status = 1;

    options.config_path = argc > 1 ? argv[1] : "config.json";
    options.on_message = on_message;
    options.on_error = on_error;
    options.log_level = 2;
    bus = stdio_bus_create(&options);
    if (bus != NULL && stdio_bus_start(bus) == STDIO_BUS_OK) {
        run(&host, bus);
        status = 0;
    }
    stdio_bus_destroy(bus);
    return status;
}
