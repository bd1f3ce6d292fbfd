/* embed_bench REQUESTS WINDOW WORKER [ARGUMENT]: the cost of requests through libstdio_bus, from
 * stdio_bus_ingest to on_message, with so many in flight. Prints the processor time of this process
 * for each request, in nanoseconds, and the time; tests/bench/embed.sh has the floor beside it. */
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

static void send_next(void)
{
    static const char end[] = MESSAGE_ECHO "{\"text\":\"hello\"}}";
    char text[128];
    int len;

    if (bench.sent == bench.wanted)
        return;
    len = snprintf(text, sizeof text, MESSAGE_START "%lu%s", ++bench.sent, end);
    bench.failed |= stdio_bus_ingest(bench.bus, text, (size_t)len) != STDIO_BUS_OK;
}

static void answered(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    (void)bus;
    (void)user_data;
    bench.answered++;
    bench.failed |= len < LENGTH(MESSAGE_START) || memcmp(msg, MESSAGE_START, 8) != 0;
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
    double used, began;

    if (argc < 4) {
        fputs("usage: embed_bench REQUESTS WINDOW WORKER [ARGUMENT]\n", stderr);
        return 64;
    }
    snprintf(config, sizeof config,
             "{\"pools\":[{\"id\":\"echo\",\"command\":\"%s\",\"args\":[%s%s%s],\"instances\":1}]}",
             argv[3], argc > 4 ? "\"" : "", argc > 4 ? argv[4] : "", argc > 4 ? "\"" : "");
    bench.wanted = strtoul(argv[1], NULL, 10);
    bench.bus = stdio_bus_create(&options);
    if (bench.bus == NULL || stdio_bus_start(bench.bus) != STDIO_BUS_OK)
        return 1;
    used = used_us();
    began = now_us();
    for (unsigned long i = strtoul(argv[2], NULL, 10); i > 0; i--)
        send_next();
    while (bench.answered < bench.wanted && !bench.failed && step() >= 0)
        continue;
    printf("requests=%lu cpu_ns=%.0f us=%.2f\n", bench.answered,
           (used_us() - used) * 1000 / (double)bench.answered,
           (now_us() - began) / (double)bench.answered);
    stdio_bus_destroy(bench.bus);
    return bench.failed;
}
