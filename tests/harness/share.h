/* Clients that share a server: each is a process of `stdio_bus --share`, and a client on its stdin
 * and stdout. Their daemons have a directory of this test alone, and are ended with it. */
#ifndef TESTS_HARNESS_SHARE_H
#define TESTS_HARNESS_SHARE_H

#include <stdbool.h>
#include <sys/types.h>

#include "client.h"

struct sharer {
    pid_t pid;
    struct client *client;
    const char *stderr_path;
};

struct share_setup {
    const char *arguments[12]; /* beside --share, --idle-exit and the command */
    const char *share;         /* instead of --share; NULL: that */
    bool whole;                /* neither --idle-exit nor a command follows */
    const char *command[8];    /* NULL: the scripted worker */
    const char *env[8];        /* "NAME=value", or "NAME" to be unset */
    const char *cwd;           /* NULL: the test's */
    const char *idle_exit;     /* NULL: 20 */
};

/* The directory of the daemons. */
const char *share_dir(void);

/* Starts one. */
struct sharer *share_with(const struct share_setup *setup);

/* share_with(&(struct share_setup){...}) */
#define SHARE(...) share_with(&(struct share_setup){__VA_ARGS__})

/* Starts stdio_bus with these words, in the background. */
pid_t share_start(const char *const words[]);

/* Connects to the socket of --share=NAME. */
struct client *share_connect(const char *name);

/* Runs stdio_bus with these words; it must exit with `status`. Returns its stdout. */
const char *share_run(const char *const words[], int status);

/* Waits for its exit, which must be with this status. Its stdin is closed already. */
void share_expect_exit(struct sharer *sharer, int status);

/* Closes stdin; all that was asked is answered by now, so nothing but the end may come. */
void share_finish(struct sharer *sharer);

/* What it has written to stderr so far. */
const char *share_errors(const struct sharer *sharer);

/* The daemons that run, at most `max`. Returns how many there are. */
size_t share_daemons(pid_t *pids, size_t max);

/* Waits until a daemon, or one of its processes, has ended. */
void share_wait_gone(pid_t pid);

/* The only one. */
pid_t share_daemon(void);

/* How many lines the extended regular expression matches in the logs of all daemons. */
size_t share_logged(const char *pattern);

#endif
