#include "build_config.h"

#include "manager.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <regex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "deadline.h"
#include "suite.h"

static void close_manager(void *object)
{
    struct manager *manager = object;
    close(manager->fd);
    harness_remove_dir(manager->dir);
    free(manager);
}

struct manager *manager_open(bool is_abstract)
{
    struct manager *manager = calloc(1, sizeof *manager);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len;
    ck_assert_ptr_nonnull(manager);
    harness_make_dir(manager->dir, sizeof manager->dir);
    len = (size_t)snprintf(manager->name, sizeof manager->name, "%s%s/manager",
                           is_abstract ? "@" : "", manager->dir);
    ck_assert_uint_lt(len, sizeof address.sun_path);
    memcpy(address.sun_path, manager->name, len);
    if (is_abstract)
        address.sun_path[0] = '\0';
    manager->fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    ck_assert_int_ge(manager->fd, 0);
    ck_assert_msg(bind(manager->fd, (struct sockaddr *)&address,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0,
                  "%s: %s", manager->name, strerror(errno));
    harness_at_end(close_manager, manager);
    return manager;
}

const char *manager_next(struct manager *manager)
{
    ssize_t len;
    ck_assert_msg(wait_fd(manager->fd, POLLIN, deadline_usual()), "no datagram has come");
    len = recv(manager->fd, manager->text, sizeof manager->text - 1, 0);
    ck_assert_int_ge(len, 0);
    manager->text[len] = '\0';
    return manager->text;
}

const char *manager_wait(struct manager *manager, const char *pattern)
{
    int64_t deadline = deadline_usual();
    regex_t regex;
    ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    while (regexec(&regex, manager_next(manager), 0, NULL, 0) != 0)
        ck_assert_msg(!deadline_over(deadline), "no datagram matches %s", pattern);
    regfree(&regex);
    return manager->text;
}
