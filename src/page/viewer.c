#include "build_config.h"

#include "page/viewer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/siphash.h"
#include "base/terminal.h"
#include "bus/listeners.h"
#include "supervisor/bus.h"

#define SECRET_BYTES 16
#define PATH_SIZE (2 * SECRET_BYTES + 3) /* with two slashes and a NUL */

static bool write_path(char path[PATH_SIZE])
{
    unsigned char secret[SECRET_BYTES];

    if (!random_bytes(secret, sizeof secret))
        return false;
    path[0] = '/';
    for (size_t i = 0; i < sizeof secret; i++)
        (void)snprintf(path + 1 + 2 * i, 3, "%02x", secret[i]);
    memcpy(path + PATH_SIZE - 2, "/", 2);
    return true;
}

/* It is printed, and no browser is started with it: any user may see the arguments of programs. */
static enum bus_outcome print_url(const struct stdio_bus *bus, const char *path)
{
    const struct bus_listener *listener = list_entry(bus->listeners.head.next, struct bus_listener,
                                                     link);

    if (terminal_line(stdout, "http://127.0.0.1:%u%s", listeners_port(listener), path) ==
            STDIO_BUS_OK &&
        fflush(stdout) != EOF)
        return BUS_RUNNING;
    log_error(bus->log, "", "cannot write to stdout: %s", strerror(errno));
    return BUS_SYSTEM_ERROR;
}

static int serve(const struct bus_options *options)
{
    enum bus_outcome outcome = BUS_SYSTEM_ERROR;
    struct stdio_bus *bus = bus_create(options);

    if (bus != NULL && bus_start(bus) == STDIO_BUS_OK)
        outcome = print_url(bus, options->figures->path);
    while (outcome == BUS_RUNNING)
        outcome = bus_step(bus, -1);
    bus_destroy(bus);
    return bus_exit_status(outcome);
}

int viewer_run(struct figures_source *source, const struct service *const *services)
{
    const struct config config = {.limits = LIMITS_DEFAULT};
    const struct listen_config listen = {
        .address = {.kind = LISTEN_HTTP},
        .http = {.is_bare = true},
    };
    char path[PATH_SIZE];
    struct log log;
    const struct bus_options options = {
        .config = &config,
        .log = &log,
        .listens = &listen,
        .listen_count = 1,
        .figures = source,
        .services = services,
        .ends_on_hangup = true,
        .handle_signals = true,
    };
    int status = EXIT_OS_ERROR;

    log_open(&log, STDERR_FILENO, LOG_LEVEL_WARN);
    source->path = path;
    if (write_path(path))
        status = serve(&options);
    else
        log_error(&log, "", "no random numbers: %s", strerror(errno));
    log_close(&log);
    return status;
}
