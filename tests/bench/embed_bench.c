/* embed_bench REQUESTS WINDOW WORKER [ARGUMENT]: the cost of requests through libstdio_bus, from
 * stdio_bus_ingest to on_message, with so many in flight. Prints the processor time of this process
 * for each request, in nanoseconds, without that of the host's own work, which comes next: writing
 * a request and looking at an answer, measured without a bus. tests/bench/embed.sh has the floor
 * beside it. */
#include "build_config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "embed/stdio_bus_embed.h"
#include "messages.h"

static struct {
    stdio_bus_t *bus;
    unsigned long wanted, sent, answered;
    int failed;
} bench;

#define TEXT_MAX 128

static size_t write_request(char text[TEXT_MAX], unsigned long id)
{
    static const char end[] = MESSAGE_ECHO "{\"text\":\"hello\"}}";

    return (size_t)snprintf(text, TEXT_MAX, MESSAGE_START "%lu%s", id, end);
}

static void send_next(void)
{
    char text[TEXT_MAX];

    if (bench.sent < bench.wanted)
        bench.failed |= stdio_bus_ingest(bench.bus, text, write_request(text, ++bench.sent)) !=
                        STDIO_BUS_OK;
}

static void look_at(const char *msg, size_t len)
{
    bench.answered++;
    bench.failed |= len < LENGTH(MESSAGE_START) || memcmp(msg, MESSAGE_START, 8) != 0;
}

static void answered(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    (void)bus;
    (void)user_data;
    look_at(msg, len);
    send_next();
}

static double used_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* The host's own work for as many requests, in nanoseconds for each. */
static double host_ns(void)
{
    double before = used_us();
    char text[TEXT_MAX];

    for (unsigned long id = 1; id <= bench.wanted; id++)
        look_at(text, write_request(text, id));
    bench.answered = 0;
    return (used_us() - before) * 1000 / (double)bench.wanted;
}

/* Waits for the descriptor, as a host with a loop of its own does. */
static int step(void)
{
    struct pollfd wanted = {stdio_bus_get_poll_fd(bench.bus), POLLIN, 0};

    if (wanted.fd >= 0 && poll(&wanted, 1, -1) < 0)
        return -1;
    return stdio_bus_step(bench.bus, wanted.fd >= 0 ? 0 : -1);
}

int main(int argc, char *argv[])
{
    char config[1024];
    stdio_bus_options_t options = {.config_json = config, .on_message = answered, .log_level = 3};
    double used, began, own_ns;

    if (argc < 4) {
        fputs("usage: embed_bench REQUESTS WINDOW WORKER [ARGUMENT]\n", stderr);
        return 64;
    }
    snprintf(config, sizeof config,
             "{\"pools\":[{\"id\":\"echo\",\"command\":\"%s\",\"args\":[%s%s%s],\"instances\":1}]}",
             argv[3], argc > 4 ? "\"" : "", argc > 4 ? argv[4] : "", argc > 4 ? "\"" : "");
    bench.wanted = strtoul(argv[1], NULL, 10);
    own_ns = host_ns();
    bench.bus = stdio_bus_create(&options);
    if (bench.bus == NULL || stdio_bus_start(bench.bus) != STDIO_BUS_OK)
        return 1;
    used = used_us();
    began = now_us();
    for (unsigned long i = strtoul(argv[2], NULL, 10); i > 0; i--)
        send_next();
    while (bench.answered < bench.wanted && !bench.failed && step() >= 0)
        continue;
    printf("requests=%lu cpu_ns=%.0f host_ns=%.0f us=%.2f\n", bench.answered,
           (used_us() - used) * 1000 / (double)bench.answered - own_ns, own_ns,
           (now_us() - began) / (double)bench.answered);
    stdio_bus_destroy(bench.bus);
    return bench.failed;
}
