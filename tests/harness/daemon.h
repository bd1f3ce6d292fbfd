/* A daemon under test: started from a setup, watched through its log, stopped, and nothing of it
 * left behind.
 *
 * STDIO_BUS (default ./stdio_bus) is the program, STDIO_BUS_WRAPPER words to put in front of it
 * ("valgrind -q --error-exitcode=99"), TEST_WORKER (default ./test_worker) the scripted worker. */
#ifndef TESTS_HARNESS_DAEMON_H
#define TESTS_HARNESS_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include "text.h"

enum setup_mode { SETUP_UNIX, SETUP_TCP, SETUP_STDIO };

/* What to start. In every text here ' stands for ", @WORKER@ for the scripted worker's path and
 * @DIR@ for the test's directory. All zero: one worker of one pool behind a Unix socket. */
struct setup {
    enum setup_mode mode;
    const char *address;  /* of --tcp; NULL: 127.0.0.1:0 */
    const char *config;   /* the whole configuration file; NULL: made of what follows */
    const char *pools;    /* what stands between the brackets of "pools"; NULL: one pool */
    unsigned instances;   /* of the only pool, "pool"; 0 means 1 */
    const char *args;     /* of the only pool: what stands between the brackets of "args" */
    const char *limits;   /* members of "limits" */
    const char *members;  /* further members at the top: "'strict':true" */
    const char *arguments[8]; /* further command line words, up to a NULL */
    const char *config_path; /* --config names this instead of the file with all that */
    bool config_by_fd;    /* --config-fd instead of --config */
    bool default_mode;    /* no --stdio */
    bool no_wait;         /* do not wait until the daemon listens */
    bool closed;          /* start it with stdin and stdout closed */
    bool dirty;           /* start it with ignored and blocked signals and a descriptor too many */
    int stdin_fd;         /* stdio mode: use this instead of a pipe; 0: a pipe */
    int stdout_fd;
    int stderr_fd;        /* instead of the log file, which then stays empty */
    unsigned max_fds;     /* limit of open descriptors; 0: as it is */
};

/* A pool for setup.pools: POOL("a", 2, "'--name','a'"). */
#define POOL(id, instances, args)                                                                  \
    "{'id':'" id "','command':'@WORKER@','args':[" args "],'instances':" #instances "}"

struct daemon {
    pid_t pid;      /* 0: not running */
    int status;     /* of waitpid, once it ended */
    char dir[160];  /* the test's directory; daemon_stop removes it */
    char config_path[192], log_path[192];
    char socket_path[192]; /* "": none */
    char host[64];
    unsigned port;
    int stdin_fd, stdout_fd; /* our ends of its pipes in stdio mode, or -1 */
    bool leaves_files;       /* daemon_wait does not look for files that were left behind */
    size_t log_mark;
    struct text log; /* as far as it was read */
    struct text line; /* what daemon_wait_log returned last */
};

/* Starts it and waits until it listens (socket modes). */
void daemon_start(struct daemon *daemon, const struct setup *setup);

/* daemon_start(daemon, &(struct setup){...}) */
#define START(daemon, ...) daemon_start((daemon), &(struct setup){__VA_ARGS__})

/* Text with the setup's abbreviations spelled out, appended to `to`. */
void daemon_expand(const struct daemon *daemon, struct text *to, const char *text);

/* DIR/name in `path` (of 256 bytes). Names must start with "test-" to be no surprise at the end. */
const char *daemon_path(const struct daemon *daemon, char *path, const char *name);

/* Waits for a line that the extended regular expression matches, among those since the last
 * daemon_mark_log. Fails the test when the daemon ends without one. Returns the line; it lives
 * until the next call. */
const char *daemon_wait_log(struct daemon *daemon, const char *pattern);

/* True when such a line is there now. */
bool daemon_logged(struct daemon *daemon, const char *pattern);

/* How many such lines are there now. */
size_t daemon_count_log(struct daemon *daemon, const char *pattern);

/* Lines up to now are not looked at any more. */
void daemon_mark_log(struct daemon *daemon);

void daemon_signal(struct daemon *daemon, int signo);

/* Waits for its end and returns the exit status; a death by signal fails the test. Then checks
 * that nothing is left: no process, no zombie that it should have reaped, no socket, no
 * unexpected file. Removes the directory. */
int daemon_wait(struct daemon *daemon);

/* SIGTERM, then daemon_wait must return 0, without a worker that had to be killed. */
void daemon_stop(struct daemon *daemon);

/* SIGKILL; then no process may be left either. */
void daemon_kill(struct daemon *daemon);

/* Its processes: direct children, at most `max` of them, all alive. */
size_t daemon_workers(const struct daemon *daemon, pid_t *workers, size_t max);

/* Waits until it has exactly `count` children alive and no zombie. */
void daemon_wait_workers(const struct daemon *daemon, size_t count);

/* Waits until it has exactly `count` open descriptors: until it knows that a client went away. */
void daemon_wait_fds(const struct daemon *daemon, int count);

/* Waits until the process is gone and reaped. */
void wait_gone(long pid);

/* Fails the test when peak memory is over the limit; does nothing where memory is not measured. */
void daemon_check_memory(const struct daemon *daemon, long max_kib);

/* Fails the test when it is busy although nothing happens: watches it for a while. Does nothing
 * under a wrapper. */
void daemon_check_asleep(const struct daemon *daemon);

/* Runs it to its end with nothing on stdin; returns the exit status. stdout and stderr are put into
 * `out` and `err`, which may be NULL. For command line and configuration errors. */
int daemon_run(const struct setup *setup, struct text *out, struct text *err);

#endif
