#include "build_config.h"

#include "share/join.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "share/directory.h"
#include "share/exchange.h"
#include "share/greeting.h"
#include "share/identity.h"
#include "share/shares.h"

#define REPLY_MS 20000 /* a daemon that is very busy */
#define ATTEMPTS 100   /* while daemons end, or fail to start */
#define STARTS 3
#define NAP_MS 10
#define NAMES 256 /* of one hash: of daemons that differ in variables of the machine */

enum outcome {
    JOINED,
    GONE,     /* no daemon listens, or it was about to end */
    HINDERED, /* this program could not ask the daemon: it tries again */
    DIFFERS,  /* it shares another server */
    FAILED
};

/* --- the name --- */

/* The name of the daemon that shares the identity, or of one with the same hash. */
static void set_base(struct join *join, unsigned number)
{
    char hash[IDENTITY_NAME_MAX];

    if (join->name != NULL) {
        snprintf(join->daemon.base, sizeof join->daemon.base, "%s@%s", join->name, PACKAGE_VERSION);
        return;
    }
    identity_name(hash, join->daemon.identity);
    if (number == 0)
        snprintf(join->daemon.base, sizeof join->daemon.base, "%s", hash);
    else
        snprintf(join->daemon.base, sizeof join->daemon.base, "%s-%u", hash, number);
}

/* --- joining --- */

__attribute__((format(printf, 2, 3))) static enum outcome fail(struct join *join,
                                                               const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(join->reason, sizeof join->reason, format, args);
    va_end(args);
    return FAILED;
}

static enum outcome judge(struct join *join, const char *reply)
{
    size_t begin = strlen(GREETING_DIFFERS), end = strlen(GREETING_DIFFERS_END);
    size_t len = strlen(reply);

    if (strcmp(reply, GREETING_JOINED) == 0)
        return JOINED;
    if (len < begin + end || strncmp(reply, GREETING_DIFFERS, begin) != 0)
        return fail(join, "%s" DAEMON_SOCKET " in %s belongs to another program", join->daemon.base,
                    join->directory);
    fail(join, "\"%s\" is shared by other clients already, for another server; what differs: %.*s",
         join->name != NULL ? join->name : join->daemon.base, (int)(len - begin - end),
         reply + begin);
    return DIFFERS;
}

static enum outcome hindered(struct join *join, const char *file)
{
    fail(join, "cannot join the daemon at %s in %s: %s", file, join->directory, strerror(errno));
    return HINDERED;
}

/* An end of the connection is that of a daemon that ends. */
static enum outcome greet(struct join *join, int *fd)
{
    const char *parts[] = {GREETING_JOIN, join->daemon.identity, GREETING_JOIN_END "\n"};
    char file[DAEMON_FILE_MAX], *reply;
    enum outcome outcome;

    snprintf(file, sizeof file, "%s" DAEMON_SOCKET, join->daemon.base);
    *fd = exchange_connect(file, parts, 3);
    if (*fd < 0 && (share_has_ended(errno) || errno == EAGAIN))
        return GONE;
    if (*fd < 0)
        return fail(join, "cannot connect to %s in %s: %s", file, join->directory, strerror(errno));
    reply = exchange_read_reply(*fd, REPLY_MS);
    if (reply != NULL)
        outcome = judge(join, reply);
    else if (errno == ETIMEDOUT)
        outcome = fail(join, "%s in %s: the daemon does not answer", file, join->directory);
    else if (share_has_ended(errno))
        outcome = GONE;
    else
        outcome = hindered(join, file);
    free(reply);
    if (outcome == JOINED && fcntl(*fd, F_SETFL, O_NONBLOCK) < 0)
        outcome = fail(join, "cannot use the socket: %s", strerror(errno));
    if (outcome != JOINED)
        descriptor_close(*fd);
    return outcome;
}

/* A daemon that fits may have any of the names: those before its own were in use when it started,
 * by daemons that may have ended. GONE: none fits, and the first name without a daemon is set. */
static enum outcome greet_all(struct join *join, int *fd)
{
    unsigned count = join->name != NULL ? 1 : NAMES, unused = count, number;
    enum outcome outcome;

    for (number = 0; number < count; number++) {
        set_base(join, number);
        outcome = greet(join, fd);
        if (outcome != GONE && outcome != DIFFERS)
            return outcome;
        if (outcome == GONE && unused == count)
            unused = number;
    }
    if (unused == count)
        return DIFFERS;
    set_base(join, unused);
    return GONE;
}

/* The caller has the lock. */
static void start_daemon(struct join *join, unsigned *starts)
{
    if (daemon_fork(&join->daemon)) {
        tidy_directory();
        return;
    }
    if (errno != 0 && join->log != NULL)
        log_error(join->log, "", "cannot start a daemon: %s", strerror(errno));
    ++*starts;
}

/* Of clients that come at once, one starts the daemon while the others wait for the lock. */
static enum outcome start(struct join *join, int *fd, unsigned *starts)
{
    char reason[DIRECTORY_REASON_MAX];
    int lock = directory_lock(reason);
    enum outcome outcome;

    if (lock < 0)
        return fail(join, "cannot share: %s", reason);
    outcome = greet_all(join, fd);
    if (outcome == GONE && *starts >= STARTS)
        outcome = fail(join, "the daemon does not start; see %s/%s" DAEMON_LOG, join->directory,
                       join->daemon.base);
    if (outcome == GONE)
        start_daemon(join, starts);
    close(lock);
    return outcome;
}

static enum outcome join_or_start(struct join *join, int *fd)
{
    enum outcome outcome = GONE;
    unsigned starts = 0;
    int i;

    for (i = 0; i < ATTEMPTS && (outcome == GONE || outcome == HINDERED); i++) {
        if (i > 1)
            poll(NULL, 0, NAP_MS);
        outcome = greet_all(join, fd);
        if (outcome == GONE)
            outcome = start(join, fd, &starts);
    }
    if (outcome == HINDERED)
        return FAILED;
    return outcome != GONE
               ? outcome
               : fail(join, "the daemon ends as soon as it is joined; see %s/%s" DAEMON_LOG,
                      join->directory, join->daemon.base);
}

int join_open(struct join *join)
{
    char reason[DIRECTORY_REASON_MAX];
    enum outcome outcome;
    int fd = -1;

    if (directory_enter(join->directory, true, reason) != STDIO_BUS_OK)
        outcome = fail(join, "cannot share: %s", reason);
    else
        outcome = join_or_start(join, &fd);
    if (outcome == JOINED)
        return fd;
    if (join->log != NULL)
        log_error(join->log, "", "%s", join->reason);
    errno = ECONNREFUSED;
    return -1;
}

static int dial(void *user_data)
{
    return join_open(user_data);
}

void join_init(struct join *join)
{
    join->dialer = (struct dialer){.dial = dial, .user_data = join};
    set_base(join, 0);
}
