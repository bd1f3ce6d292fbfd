#include "build_config.h"

#include "upgrade/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HAVE_PRCTL
#include <sys/prctl.h>
#endif

#include "base/descriptor.h"
#include "base/error.h"
#include "event/signals.h"

/* It has nothing that would need an orderly end. */
void upgrade_check_stop(struct upgrade_check *check)
{
    int status;

    if (check->loop == NULL)
        return;
    stdio_bus_event_loop_stop_timer(check->loop, &check->deadline);
    stdio_bus_event_loop_remove(check->loop, check->fd);
    close(check->fd);
    kill(check->pid, SIGKILL);
    while (waitpid(check->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    check->loop = NULL;
}

static void finish(struct upgrade_check *check)
{
    upgrade_check_stop(check);
    check->said[check->len] = '\0';
    check->fn(check->user_data, check->said);
}

static void expired(void *user_data)
{
    struct upgrade_check *check = user_data;

    check->len = (size_t)snprintf(check->said, sizeof check->said,
                                  "it did not answer within %d seconds", UPGRADE_CHECK_MS / 1000);
    finish(check);
}

/* More than there is room for is read, and dropped. */
static void readable(void *user_data, unsigned events)
{
    struct upgrade_check *check = user_data;
    char rest[256];
    size_t room = sizeof check->said - 1 - check->len;
    ssize_t got = read(check->fd, room > 0 ? check->said + check->len : rest,
                       room > 0 ? room : sizeof rest);

    (void)events;
    if (got > 0 && room > 0)
        check->len += (size_t)got;
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
        return;
    if (got < 0)
        check->len = (size_t)snprintf(check->said, sizeof check->said, "%s", strerror(errno));
    finish(check);
}

/* --- the child --- */

static void say(int said, const char *text)
{
    ssize_t written = write(said, text, strlen(text));

    (void)written;
}

/* The pipe has its own number, since stdout may still be that of the daemon. */
static void run_child(char *const *argv, int state, int said)
{
    int error;

#ifdef HAVE_PRCTL
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (dup2(state, STDIN_FILENO) >= 0 && dup2(said, STDOUT_FILENO) >= 0 &&
        dup2(said, STDERR_FILENO) >= 0 && signals_reset_in_child() == STDIO_BUS_OK)
        execvp(argv[0], argv);
    error = errno;
    say(said, "cannot be executed: ");
    say(said, strerror(error));
    _exit(127);
}

/* NULL if out of memory. */
static char **arguments_of(char *const *argv)
{
    static char option[] = UPGRADE_CHECK_OPTION;
    size_t count = 0;
    char **arguments;

    while (argv[count] != NULL)
        count++;
    arguments = malloc((count + 2) * sizeof *arguments);
    if (arguments == NULL)
        return NULL;
    arguments[0] = argv[0];
    arguments[1] = option;
    memcpy(arguments + 2, argv + 1, count * sizeof *arguments);
    return arguments;
}

int upgrade_check_start(struct upgrade_check *check, struct stdio_bus_event_loop *loop,
                        char *const *argv, int state, upgrade_checked_fn *fn, void *user_data)
{
    char **arguments = arguments_of(argv);
    int ends[2] = {-1, -1}, error;

    *check = (struct upgrade_check){.fn = fn, .user_data = user_data, .fd = -1};
    timer_init(&check->deadline, expired, check);
    if (arguments == NULL || descriptor_open_pipe(ends, O_NONBLOCK) != STDIO_BUS_OK ||
        stdio_bus_event_loop_add(loop, ends[0], STDIO_BUS_EVENT_READ, readable, check) !=
            STDIO_BUS_OK)
        goto fail;
    check->pid = signals_fork();
    if (check->pid == 0)
        run_child(arguments, state, ends[1]);
    if (check->pid < 0) {
        stdio_bus_event_loop_remove(loop, ends[0]);
        goto fail;
    }
    free(arguments);
    close(ends[1]);
    check->fd = ends[0];
    check->loop = loop;
    stdio_bus_event_loop_start_timer(loop, &check->deadline, UPGRADE_CHECK_MS);
    return STDIO_BUS_OK;

fail:
    error = errno;
    free(arguments);
    descriptor_close_pipe(ends);
    errno = error;
    return STDIO_BUS_ERR;
}
