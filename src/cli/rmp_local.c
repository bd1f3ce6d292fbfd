#include "build_config.h"

#include "cli/rmp_local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/terminal.h"
#include "bus/state.h"
#include "cli/default_config.h"
#include "cli/rmp_options.h"
#include "event/signals.h"
#include "process/pool.h"
#include "supervisor/bus.h"
#include "topics/service.h"

enum { READ_END, WRITE_END };

static int fail(int status, const char *what)
{
    terminal_line(stderr, "stdio_bus_rmp: --local: %s: %s", what, strerror(errno));
    return status;
}

/* --- the configuration --- */

static void print_problem(void *user_data, bool is_error, const char *text)
{
    (void)user_data;
    if (is_error)
        terminal_line(stderr, "stdio_bus_rmp: %s", text);
}

/* One run needs one process of the runner; its exit ends the run. */
static bool take_one_runner(struct config *config)
{
    for (size_t i = 0; i < config->pool_count; i++) {
        if (config->pools[i].rmp.runner) {
            config->pools[i].instances = 1;
            return true;
        }
    }
    return false;
}

static int read_config(struct config *config, const char *path)
{
    char usual[DEFAULT_CONFIG_MAX];

    if (path == NULL && !default_config_find(usual, SYSTEM_CONFIG)) {
        terminal_line(stderr, "stdio_bus_rmp: --local needs a configuration: --config FILE");
        return EXIT_CONFIG_ERROR;
    }
    if (path == NULL)
        path = usual;
    if (config_read_file(config, path, print_problem, NULL) != STDIO_BUS_OK)
        return EXIT_CONFIG_ERROR;
    /* The directory is a daemon's, which may be running. */
    rmp_keys_drop_history(&config->rmp);
    if (take_one_runner(config))
        return EXIT_DONE;
    terminal_line(
        stderr, "stdio_bus_rmp: --local: %s has no runner: a pool with \"rmp\": {\"runner\": true}",
        path);
    config_free(config);
    return EXIT_CONFIG_ERROR;
}

/* --- the bus, in the child --- */

static bool runner_has_exited(const struct stdio_bus *bus)
{
    struct list_node *node, *following, *slot, *next;

    list_each(&bus->pools, node, following) {
        const struct pool *pool = list_entry(node, struct pool, link);

        if (!pool->config->rmp.runner)
            continue;
        list_each(&pool->workers, slot, next) {
            const struct worker *worker = list_entry(slot, struct worker, link);

            if (worker->executed && worker_finished(worker))
                return true;
        }
    }
    return false;
}

/* Returns the exit status. */
static int run_bus(struct stdio_bus *bus)
{
    enum bus_outcome outcome = BUS_RUNNING;
    bool has_exited = false;

    while (outcome == BUS_RUNNING) {
        outcome = bus_step(bus, -1);
        if (!has_exited && bus->phase < BUS_PHASE_DRAINING && runner_has_exited(bus)) {
            has_exited = true;
            bus_stop(bus);
        }
    }
    return has_exited && outcome == BUS_DONE ? EXIT_RMP_FAILED : bus_exit_status(outcome);
}

static int serve(const struct rmp_local *local, const struct config *config)
{
    static const struct service *const services[] = {&rmp_service, NULL};
    struct log log;
    const struct bus_options options = {.config = config,
                                        .log = &log,
                                        .stdio = true,
                                        .sockets = {local->path},
                                        .services = services,
                                        .handle_signals = true};
    struct stdio_bus *bus;
    int status = EXIT_OS_ERROR;

    log_open(&log, STDERR_FILENO, LOG_LEVEL_WARN);
    bus = bus_create(&options);
    if (bus != NULL && bus_start(bus) == STDIO_BUS_OK && readiness_report())
        status = run_bus(bus);
    bus_destroy(bus);
    log_close(&log);
    return status;
}

/* Its stdin is a client that says nothing; its stdout is not that of the run. */
__attribute__((noreturn)) static void run(const struct rmp_local *local,
                                          const struct config *config, int life, int ready)
{
    int null = open("/dev/null", O_WRONLY), status;

    if (signals_forget() != STDIO_BUS_OK || null < 0 || dup2(life, STDIN_FILENO) < 0 ||
        dup2(null, STDOUT_FILENO) < 0 || !readiness_keep(ready))
        _exit(fail(EXIT_OS_ERROR, "cannot prepare its process"));
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    /* Once the bus is over, the SIGTERM that follows the end of `life` would be its exit status. */
    signal(SIGTERM, SIG_IGN);
    status = serve(local, config);
    (void)unlink(local->path); /* of a bus that could not start */
    (void)rmdir(local->directory);
    _exit(status);
}

/* --- in this program --- */

/* The directory, below TMPDIR or /tmp. */
static bool make_directory(struct rmp_local *local)
{
    const char *base = getenv("TMPDIR");
    int len;

    if (base == NULL || base[0] != '/' || strlen(base) > sizeof local->directory / 2)
        base = "/tmp";
    snprintf(local->directory, sizeof local->directory, "%s/stdio_bus_rmp.XXXXXX", base);
    if (mkdtemp(local->directory) == NULL) {
        local->directory[0] = '\0';
        return false;
    }
    len = snprintf(local->path, sizeof local->path, "%s" RMP_SOCKET_NAME, local->directory);
    return len > 0 && (size_t)len < sizeof local->path;
}

/* Forks, and waits until the child listens. */
static int start(struct rmp_local *local, const struct config *config, int life[2], int ready[2])
{
    local->pid = signals_fork();
    if (local->pid < 0) {
        local->pid = 0;
        return fail(EXIT_OS_ERROR, "cannot fork");
    }
    if (local->pid == 0) {
        descriptor_close(life[WRITE_END]);
        run(local, config, life[READ_END], ready[WRITE_END]);
    }
    local->life = life[WRITE_END];
    life[WRITE_END] = -1;
    descriptor_close(ready[WRITE_END]);
    ready[WRITE_END] = -1;
    return readiness_await(ready[READ_END]) ? EXIT_DONE : EXIT_OS_ERROR;
}

static int start_with(struct rmp_local *local, const struct config *config)
{
    int life[2] = {-1, -1}, ready[2] = {-1, -1}, status;

    if (!make_directory(local))
        return fail(EXIT_OS_ERROR, "cannot make a directory for its socket");
    if (descriptor_open_pipe(life, 0) == STDIO_BUS_OK &&
        descriptor_open_pipe(ready, 0) == STDIO_BUS_OK)
        status = start(local, config, life, ready);
    else
        status = fail(EXIT_OS_ERROR, "cannot make a pipe");
    descriptor_close_pipe(life);
    descriptor_close_pipe(ready);
    return status;
}

int rmp_local_start(struct rmp_local *local, const char *config_path)
{
    struct config config;
    int status;

    *local = (struct rmp_local){.life = -1};
    status = read_config(&config, config_path);
    if (status != EXIT_DONE)
        return status;
    status = start_with(local, &config);
    config_free(&config);
    return status;
}

int rmp_local_end(struct rmp_local *local)
{
    int status = 0;
    pid_t ended = 0;

    if (local->pid > 0) {
        descriptor_close(local->life);
        (void)kill(local->pid, SIGTERM);
        do
            ended = waitpid(local->pid, &status, 0);
        while (ended < 0 && errno == EINTR);
    }
    if (local->directory[0] != '\0') { /* of a child that was killed */
        (void)unlink(local->path);
        (void)rmdir(local->directory);
    }
    *local = (struct rmp_local){.life = -1};
    if (ended <= 0)
        return EXIT_DONE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_OS_ERROR;
}
