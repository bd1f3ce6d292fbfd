/* A program with the bus inside and one event loop for all that it waits for: lines of its stdin go
 * to the workers of a configuration, what they answer goes to its stdout, and a timer writes the
 * number of requests in flight to its stderr every second.
 *
 *     cc -o event_loop_host event_loop_host.c -lstdio_bus
 *     ./event_loop_host config.json
 *
 * stdio_bus_embed.h, stdio_bus_event_loop.h and libstdio_bus(3) describe the functions. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <stdio_bus_embed.h>
#include <stdio_bus_event_loop.h>

#define LINE_MAX_BYTES 65536
#define REPORT_MS 1000
#define STEP_MS 50

struct host {
    stdio_bus_t *bus;
    stdio_bus_event_loop_t *loop;
    stdio_bus_event_timer_t *report; /* every REPORT_MS */
    stdio_bus_event_timer_t *step;   /* every STEP_MS, where the bus has no poll_fd */
    char line[LINE_MAX_BYTES];
    size_t len;
    int ended; /* stdin was read to its end */
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
    fprintf(stderr, "event_loop_host: %s (%d)\n", message, code);
}

/* Sends the whole lines that were read. False: the first one is for a worker that takes nothing
 * now. */
static int send_lines(struct host *host)
{
    char *end;

    while ((end = memchr(host->line, '\n', host->len)) != NULL) {
        size_t len = (size_t)(end - host->line);
        int status = len > 0 ? stdio_bus_ingest(host->bus, host->line, len) : STDIO_BUS_OK;

        if (status == STDIO_BUS_EFULL || status == STDIO_BUS_EAGAIN)
            return 0;
        if (status != STDIO_BUS_OK)
            fprintf(stderr, "event_loop_host: a line was refused (%d)\n", status);
        host->len -= len + 1;
        memmove(host->line, end + 1, host->len);
    }
    return 1;
}

/* Sends what is left, reads stdin only when nothing is, and stops the bus after the last answer. */
static void proceed(struct host *host)
{
    int sent_all = stdio_bus_get_state(host->bus) != STDIO_BUS_STATE_RUNNING || send_lines(host);

    if (!host->ended)
        stdio_bus_event_loop_modify(host->loop, STDIN_FILENO, sent_all ? STDIO_BUS_EVENT_READ : 0);
    else if (sent_all && stdio_bus_pending_count(host->bus) == 0)
        stdio_bus_stop(host->bus, -1);
}

static void read_stdin(void *user_data, unsigned events)
{
    struct host *host = user_data;
    ssize_t got = read(STDIN_FILENO, host->line + host->len, sizeof host->line - host->len);

    (void)events;
    if (got > 0) {
        host->len += (size_t)got;
    } else { /* the end, or a line that is too long */
        host->ended = 1;
        stdio_bus_event_loop_remove(host->loop, STDIN_FILENO);
    }
    proceed(host);
}

static void step(void *user_data, unsigned events)
{
    struct host *host = user_data;

    (void)events;
    stdio_bus_step(host->bus, 0);
    proceed(host);
}

static void step_due(void *user_data)
{
    struct host *host = user_data;

    step(host, 0);
    stdio_bus_event_timer_start(host->step, STEP_MS);
}

static void report_due(void *user_data)
{
    struct host *host = user_data;

    fprintf(stderr, "event_loop_host: %d requests in flight\n", stdio_bus_pending_count(host->bus));
    stdio_bus_event_timer_start(host->report, REPORT_MS);
}

/* Puts stdin, the bus and the timers into the loop. */
static int join_loop(struct host *host)
{
    int fd = stdio_bus_get_poll_fd(host->bus);

    host->loop = stdio_bus_event_loop_create();
    if (host->loop == NULL)
        return -1;
    host->report = stdio_bus_event_timer_create(host->loop, report_due, host);
    host->step = stdio_bus_event_timer_create(host->loop, step_due, host);
    if (host->report == NULL || host->step == NULL)
        return -1;
    stdio_bus_event_timer_start(host->report, REPORT_MS);
    if (fd < 0)
        stdio_bus_event_timer_start(host->step, STEP_MS);
    else if (stdio_bus_event_loop_add(host->loop, fd, STDIO_BUS_EVENT_READ, step, host) != 0)
        return -1;
    return stdio_bus_event_loop_add(host->loop, STDIN_FILENO, STDIO_BUS_EVENT_READ, read_stdin,
                                    host);
}

static int run(struct host *host)
{
    int status = join_loop(host);

    while (status >= 0 && stdio_bus_get_state(host->bus) != STDIO_BUS_STATE_STOPPED)
        status = stdio_bus_event_loop_run_once(host->loop, -1);
    return status < 0;
}

int main(int argc, char *argv[])
{
    static struct host host;
    stdio_bus_options_t options = {0};
    int status = 1;

    options.config_path = argc > 1 ? argv[1] : "config.json";
    options.on_message = on_message;
    options.on_error = on_error;
    options.log_level = 2;
    host.bus = stdio_bus_create(&options);
    if (host.bus != NULL && stdio_bus_start(host.bus) == STDIO_BUS_OK)
        status = run(&host);
    /* The loop goes first: it holds the poll_fd of the bus. */
    stdio_bus_event_timer_destroy(host.step);
    stdio_bus_event_timer_destroy(host.report);
    stdio_bus_event_loop_destroy(host.loop);
    stdio_bus_destroy(host.bus);
    return status;
}
