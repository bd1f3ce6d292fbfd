/* A daemon under test: started from a setup, watched through its log, stopped; then no process and
 * no file of it may be left.
 *
 * STDIO_BUS (default ./stdio_bus) is the program, STDIO_BUS_WRAPPER words to put before it
 * ("valgrind -q --error-exitcode=99"), TEST_WORKER (default ./test_worker) the scripted worker. */
#ifndef TESTS_HARNESS_DAEMON_H
#define TESTS_HARNESS_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include "text.h"

enum setup_mode { SETUP_UNIX, SETUP_TCP, SETUP_STDIO, SETUP_HTTP };

/* A daemon to start. In every text here ' stands for ", @WORKER@ for the scripted worker's path and
 * @DIR@ for the daemon's directory. All zero: one worker of one pool, reached by a Unix socket. */
struct setup {
    enum setup_mode mode;
    const char *address;       /* of --tcp or --http; NULL: 127.0.0.1:0 */
    const char *config;        /* the whole configuration file; NULL: made of the next members */
    const char *pools;         /* the elements of "pools"; NULL: one pool */
    unsigned instances;        /* of the only pool, "pool"; 0 means 1 */
    const char *args;          /* of the only pool: the elements of "args" */
    const char *limits;        /* members of "limits" */
    const char *members;       /* further members at the top: "'strict':true" */
    const char *arguments[12]; /* further command line words, up to a NULL */
    const char *config_path;   /* --config names this file instead */
    bool config_by_fd;         /* --config-fd instead of --config */
    bool no_config;            /* neither: the arguments end with a command */
    bool default_mode;         /* no --stdio */
    bool no_wait;              /* daemon_start does not wait until the daemon listens */
    bool closed;               /* start it with stdin and stdout closed */
    bool without_dev;          /* with an empty /dev: where harness_can_empty_dev() */
    bool dirty;    /* start it with ignored and blocked signals and one descriptor more */
    int passed_fd; /* descriptor 3 of the daemon, as from a service manager, with the variables: */
    const char *passed_name; /* LISTEN_FDNAMES */
    const char *launch_name; /* in place of all these: the name by which launchd has it */
    int stdin_fd;            /* stdio mode: use this instead of a pipe; 0: a pipe */
    int stdout_fd;
    int stderr_fd;    /* instead of the log file, which then stays empty */
    unsigned max_fds; /* limit of open descriptors; 0: the limit of the test */
};

/* A pool for setup.pools: POOL("a", 2, "'--name','a'"). */
#define POOL(id, instances, args)                                                                  \
    "{'id':'" id "','command':'@WORKER@','args':[" args "],'instances':" #instances "}"

struct daemon {
    pid_t pid;     /* 0: not running */
    int status;    /* of waitpid, after its exit */
    char dir[160]; /* its directory, removed after its exit */
    char config_path[192], log_path[192];
    char socket_path[192]; /* "": none */
    char host[64];
    unsigned port;
    int stdin_fd, stdout_fd; /* the test's ends of its pipes in stdio mode, or -1 */
    size_t log_mark;
    struct text log;  /* as far as it was read */
    struct text line; /* the last result of daemon_wait_log */
};

/* Starts it and waits until it listens (socket modes). It lives until the test ends, which stops it
 * as daemon_stop does if it still runs. A test runs one daemon at a time. */
struct daemon *daemon_start(const struct setup *setup);

/* Whether its process has ended; it is not reaped by this. */
bool daemon_has_ended(const struct daemon *daemon);

/* Upgrades it in place once it serves, and waits until the next program continues. */
#define DAEMON_UPGRADED "upgraded from version"
void daemon_upgrade(struct daemon *daemon);

/* False under a wrapper, which would not be in front of the next program, and without /proc. */
bool daemon_can_upgrade(void);

/* daemon_start(&(struct setup){...}) */
#define START(...) daemon_start(&(struct setup){__VA_ARGS__})

/* Text with the setup's abbreviations replaced, appended to `to`; `daemon` may be NULL if there is
 * no @DIR@ in it. */
void daemon_expand(const struct daemon *daemon, struct text *to, const char *text);

/* Writes a file, which is never seen half written. Both texts are expanded. */
void daemon_write_file(const struct daemon *daemon, const char *name, const char *text);

/* Waits for a line that the extended regular expression matches, among those since the last
 * daemon_mark_log. Fails the test when the daemon ends without one. The line lives until the next
 * call. */
const char *daemon_wait_log(struct daemon *daemon, const char *pattern);

/* True when such a line is there now. */
bool daemon_logged(struct daemon *daemon, const char *pattern);

/* The number of such lines now. */
size_t daemon_count_log(struct daemon *daemon, const char *pattern);

/* Later calls ignore the lines up to now. */
void daemon_mark_log(struct daemon *daemon);

void daemon_signal(struct daemon *daemon, int signo);

/* Waits for its exit and returns the status; a death by signal fails the test. Then checks that
 * nothing is left: no process, no zombie that it should have reaped, no socket, no file but those
 * of the harness and "test-..." ones. Removes the directory. */
int daemon_wait(struct daemon *daemon);

/* SIGTERM, then daemon_wait must return 0, and no worker may have had to be killed. */
void daemon_stop(struct daemon *daemon);

/* SIGKILL; no process may be left. */
void daemon_kill(struct daemon *daemon);

/* SIGTERM at any moment of its start: it must exit with 0 or die of the signal, and no process may
 * be left. */
void daemon_interrupt(struct daemon *daemon);

/* Its workers: direct children, at most `max` of them, all alive. */
size_t daemon_workers(const struct daemon *daemon, pid_t *workers, size_t max);

/* Waits until it has exactly `count` children alive and no zombie. */
void daemon_wait_workers(const struct daemon *daemon, size_t count);

/* Waits until it has exactly `count` open descriptors: until it knows that a client is gone. */
void daemon_wait_fds(const struct daemon *daemon, int count);

/* Waits until the process is gone and reaped. */
void wait_gone(long pid);

/* Fails the test when peak memory is over the limit; does nothing where memory is not measured. */
void daemon_check_memory(const struct daemon *daemon, long max_kib);

/* Watches the idle daemon for a while; fails the test when it is busy. Does nothing under a
 * wrapper. */
void daemon_check_asleep(const struct daemon *daemon);

/* Runs it with an empty stdin (or setup->stdin_fd) until it exits, which must be with `status`. Its
 * stdout is put into `out`; with NULL it must be empty. Returns its stderr; it lives until the test
 * ends. */
const char *daemon_run(const struct setup *setup, int status, struct text *out);

/* Whether the program was built with the part: configure --without-PART. */
bool daemon_has(const char *part);

/* daemon_run(&(struct setup){...}, status, NULL) */
#define RUN(status, ...) daemon_run(&(struct setup){__VA_ARGS__}, (status), NULL)

#endif
