/* The check of a program before an upgrade in place: a child that reads the state. */
#ifndef STDIO_BUS_UPGRADE_CHECK_H
#define STDIO_BUS_UPGRADE_CHECK_H

#include <sys/types.h>

#include "event/event_loop.h"

#define UPGRADE_CHECK_OPTION "--upgrade-check"
#define UPGRADE_CHECK_MS 5000
#define UPGRADE_CHECK_SAID_MAX 512

/* Gets what the child has written to stdout or stderr, or why there is nothing: it may be long, or
 * of several lines. The check is over. */
typedef void upgrade_checked_fn(void *user_data, const char *said);

/* A zeroed one does not run. */
struct upgrade_check {
    struct stdio_bus_event_loop *loop; /* NULL: it does not run */
    pid_t pid;
    int fd; /* of what it writes */
    struct timer deadline;
    upgrade_checked_fn *fn;
    void *user_data;
    size_t len;
    char said[UPGRADE_CHECK_SAID_MAX];
};

/* Starts the program argv[0], whose first argument is the option above, and then those of argv; its
 * stdin is `state`, which stays the caller's. STDIO_BUS_ERR with errno set. */
int upgrade_check_start(struct upgrade_check *check, struct stdio_bus_event_loop *loop,
                        char *const *argv, int state, upgrade_checked_fn *fn, void *user_data);

/* Ends it without a report. Idempotent. */
void upgrade_check_stop(struct upgrade_check *check);

#endif
