/* A Unix datagram socket in the place of the service manager's or of the system's log. */
#ifndef TESTS_HARNESS_MANAGER_H
#define TESTS_HARNESS_MANAGER_H

#include <stdbool.h>

struct manager {
    int fd;
    char dir[160]; /* removed at the test's end */
    char name[200];
    char text[2048]; /* the last datagram */
};

/* Binds a socket; its name is a path, or one of Linux's abstract names, which begins with '@'. It
 * lives until the test ends. */
struct manager *manager_open(bool is_abstract);

/* The next datagram. */
const char *manager_next(struct manager *manager);

/* Reads datagrams up to one that the extended regular expression matches. */
const char *manager_wait(struct manager *manager, const char *pattern);

#endif
