#include "build_config.h"

#include "share/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "bus/state.h"
#include "event/signals.h"
#include "share/directory.h"
#include "share/greeting.h"
#include "share/memory.h"
#include "share/watch.h"
#include "supervisor/bus.h"
#include "supervisor/halt.h"
#include "supervisor/sleep.h"

#define LOG_MAX ((off_t)1 << 20) /* a longer log of former daemons is cut to nothing */

#define POOLS_MAX 2

enum { READ_END, WRITE_END };

/* --- in the background --- */

/* The log is stderr too, for that of the workers. STDIO_BUS_ERR with errno set. */
static int redirect(const char *log_file)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW;
    struct stat status;
    int log, null;

    if (stat(log_file, &status) == 0 && status.st_size > LOG_MAX)
        flags |= O_TRUNC;
    log = open(log_file, flags, 0600);
    null = open("/dev/null", O_RDWR);
    if (log < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        return STDIO_BUS_ERR;
    close(log);
    close(null);
    return STDIO_BUS_OK;
}

/* watch */
static void files_changed(void *user_data)
{
    struct stdio_bus *bus = user_data;

    (void)halt_processes(bus, HALT_RESTART);
    sleep_renew(bus);
}

static enum bus_outcome run_bus(struct stdio_bus *bus, struct memory *memory, struct watch *watch,
                                struct greeting *greeting, struct log *log)
{
    enum bus_outcome outcome;

    router_measure(&bus->router); /* --list counts the calls */
    memory_attach(memory, bus);
    if (bus_start(bus) != STDIO_BUS_OK)
        return BUS_SYSTEM_ERROR;
    if (!readiness_report())
        log_debug(log, "", "the client that has started this daemon is gone");
    watch->loop = bus->loop;
    watch->user_data = bus;
    watch_begin(watch);
    do {
        one_client_look(&greeting->one_client, bus);
        greeting_look(greeting, bus);
    } while ((outcome = bus_step(bus, memory_keep(memory))) == BUS_RUNNING);
    watch_end(watch);
    return outcome;
}

/* No process is started before a message needs it, if what it would answer first is remembered. The
 * copies of the pools live as long as that of the configuration. */
static void copy_config(struct config *config, struct pool_config pools[POOLS_MAX],
                        const struct daemon *daemon, bool is_lazy)
{
    *config = *daemon->config;
    pools[0] = config->pools[0];
    pools[0].mode.lazy = is_lazy;
    if (daemon->alone != NULL)
        pools[config->pool_count++] = daemon->alone->pools[0];
    config->pools = pools;
}

static enum bus_outcome serve(const struct daemon *daemon, struct memory *memory, struct log *log)
{
    char path[DAEMON_FILE_MAX], problem[LISTEN_PROBLEM_MAX];
    char log_path[DIRECTORY_MAX + DAEMON_FILE_MAX];
    struct greeting greeting;
    struct config config;
    struct pool_config pools[POOLS_MAX];
    struct listen_config listen = daemon->config->listen;
    struct bus_options options = {
        .config = &config,
        .log = log,
        .listens = &listen,
        .listen_count = 1,
        .greeter = &greeting.greeter,
        .told_log = log_path,
        .idle_exit_sec = daemon->idle_exit_sec,
        .handle_signals = true,
    };
    enum bus_outcome outcome = BUS_SYSTEM_ERROR;
    struct stdio_bus *bus;
    struct watch watch = {
        .backend = WATCH_BACKEND_DEFAULT,
        .paths = daemon->watched,
        .count = daemon->watched_count,
        .changed = files_changed,
        .log = log,
        .silence_ms = WATCH_SILENCE_MS,
        .look_ms = WATCH_LOOK_MS,
    };

    snprintf(path, sizeof path, "%s" DAEMON_SOCKET, daemon->base);
    snprintf(log_path, sizeof log_path, "%s/%s" DAEMON_LOG, daemon->directory, daemon->base);
    if (!listen_address_of_path(&listen.address, path, problem)) {
        log_error(log, "", "cannot listen on %s: %s", path, problem);
        return BUS_SYSTEM_ERROR;
    }
    copy_config(&config, pools, daemon, memory_open(memory));
    greeting_init(&greeting, daemon->identity);
    greeting.alone = daemon->alone != NULL ? daemon->alone->pools[0].id : NULL;
    bus = bus_create(&options);
    if (bus != NULL)
        outcome = run_bus(bus, memory, &watch, &greeting, log);
    bus_destroy(bus);
    greeting_free(&greeting);
    return outcome;
}

__attribute__((noreturn)) static void run(const struct daemon *daemon)
{
    char log_file[DAEMON_FILE_MAX];
    struct memory memory = {
        .config = &daemon->config->pools[0],
        .identity = daemon->identity,
        .base = daemon->base,
        .path = daemon->memory,
    };
    enum bus_outcome outcome;
    struct log log;
    int error;

    snprintf(log_file, sizeof log_file, "%s" DAEMON_LOG, daemon->base);
    if (redirect(log_file) != STDIO_BUS_OK)
        _exit(EXIT_OS_ERROR);
    if (log_open_file(&log, log_file, daemon->log_level) != STDIO_BUS_OK) {
        error = errno;
        log_open(&log, STDERR_FILENO, daemon->log_level);
        log_warn(&log, "", "cannot open the log a second time: %s", strerror(error));
    }
    memory.log = &log;
    outcome = serve(daemon, &memory, &log);
    memory_close(&memory);
    log_close(&log);
    _exit(outcome == BUS_DONE ? EXIT_DONE : EXIT_OS_ERROR);
}

/* A session of its own, and no child of the client, which need not reap it. */
__attribute__((noreturn)) static void detach(const struct daemon *daemon, int ready)
{
    pid_t pid;

    (void)setsid();
    pid = fork();
    if (pid != 0)
        _exit(pid < 0 ? EXIT_OS_ERROR : EXIT_DONE);
    if (signals_forget() != STDIO_BUS_OK || !readiness_keep(ready))
        _exit(EXIT_OS_ERROR);
    signal(SIGXFSZ, SIG_IGN); /* an unwritable log is never fatal */
    run(daemon);
}

/* --- in the client --- */

/* Waits for the process between this one and the daemon. */
static bool await_daemon(pid_t pid, int ready)
{
    bool listens;

    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    listens = readiness_await(ready);
    errno = 0;
    return listens;
}

bool daemon_fork(const struct daemon *daemon)
{
    bool ready = false;
    int ends[2], error;
    pid_t pid;

    if (descriptor_open_pipe(ends, 0) != STDIO_BUS_OK)
        return false;
    pid = signals_fork();
    if (pid == 0)
        detach(daemon, ends[WRITE_END]);
    error = errno;
    descriptor_close(ends[WRITE_END]);
    ends[WRITE_END] = -1;
    errno = error;
    if (pid > 0)
        ready = await_daemon(pid, ends[READ_END]);
    descriptor_close_pipe(ends);
    return ready;
}
