#include "build_config.h"

#include "base/datagram.h"

#include <fcntl.h>

#include "base/error.h"
#include "manager.h"
#include "suite.h"

TEST_ROWS(text_arrives, 2)
{
    struct manager *manager;
    struct notify notify;
#ifndef __linux__
    if (row == 1)
        return; /* no other system has abstract names */
#endif
    manager = manager_open(row == 1);
    ck_assert_int_eq(notify_open(&notify, &(struct notify_variables){.socket = manager->name}),
                     STDIO_BUS_OK);
    ck_assert_int_eq(fcntl(notify.to.fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(notify_send(&notify, "READY=1\nSTATUS=x\n"), STDIO_BUS_OK);
    ck_assert_str_eq(manager_next(manager), "READY=1\nSTATUS=x\n");
    notify_close(&notify);
    notify_close(&notify);
    ck_assert_int_eq(notify.to.fd, -1);
}

/* A manager that was restarted has another socket of the same name. */
TEST(restarted_manager_gets_the_text)
{
    struct manager *manager = manager_open(false), *other = manager_open(false);
    struct notify notify;

    ck_assert_int_eq(notify_open(&notify, &(struct notify_variables){.socket = manager->name}),
                     STDIO_BUS_OK);
    close(manager->fd);
    ck_assert_int_eq(rename(other->name, manager->name), 0);
    manager->fd = dup(other->fd);
    ck_assert_int_eq(notify_send(&notify, "WATCHDOG=1\n"), STDIO_BUS_OK);
    ck_assert_str_eq(manager_next(manager), "WATCHDOG=1\n");
    notify_close(&notify);
}

/* Sending does not wait for a manager that does not read, and continues once it does. */
TEST(full_socket_is_no_wait)
{
    struct manager *manager = manager_open(false);
    struct notify notify;
    int status = STDIO_BUS_OK;

    ck_assert_int_eq(notify_open(&notify, &(struct notify_variables){.socket = manager->name}),
                     STDIO_BUS_OK);
    for (int i = 0; i < 100000 && status == STDIO_BUS_OK; i++)
        status = notify_send(&notify, "STATUS=1\n");
    ck_assert_int_eq(status, STDIO_BUS_EAGAIN);
    manager_next(manager);
    ck_assert_int_eq(notify_send(&notify, "STATUS=1\n"), STDIO_BUS_OK);
    notify_close(&notify);
}

TEST(lost_manager_is_an_error)
{
    struct manager *manager = manager_open(false);
    struct notify notify;

    ck_assert_int_eq(notify_open(&notify, &(struct notify_variables){.socket = manager->name}),
                     STDIO_BUS_OK);
    unlink(manager->name);
    close(manager->fd);
    manager->fd = -1;
    ck_assert_int_eq(notify_send(&notify, "READY=1\n"), STDIO_BUS_ERR);
    ck_assert_int_eq(errno, ENOENT);
    notify_close(&notify);
}

static const struct {
    const char *name;
    int status;
} names[] = {
    {NULL, STDIO_BUS_ENOTFOUND},
    {"", STDIO_BUS_ENOTFOUND},
    {"relative", STDIO_BUS_EINVAL},
    {"vsock:2:1234", STDIO_BUS_EINVAL},
    {"/", STDIO_BUS_EINVAL},
    {"@", STDIO_BUS_EINVAL},
    {"/none/such", STDIO_BUS_ERR},
    {"/a/path/that/is/longer/than/the/name/of/a/socket/may/be/on/any/system/that/we/know/of/and/"
     "therefore/no/socket/at/all",
     STDIO_BUS_EINVAL},
};

TEST_ROWS(names_that_cannot_be_reached, COUNT(names))
{
    struct notify notify;

    ck_assert_int_eq(notify_open(&notify, &(struct notify_variables){.socket = names[row].name}),
                     names[row].status);
    ck_assert_int_eq(notify.to.fd, -1);
}

static const struct {
    const char *usec, *pid;
    int64_t ms;
} watchdogs[] = {
    {NULL, NULL, 0},      {"30000000", NULL, 30000},
    {"30000000", "1", 0}, {"30000000", "self", 30000},
    {"1", NULL, 2},       {"", NULL, 0},
    {"0", NULL, 0},       {"-5", NULL, 0},
    {"5x", NULL, 0},      {"30000000", "", 0},
    {"30000000", "x", 0}, {"99999999999999999999999", NULL, 0},
};

TEST_ROWS(watchdog_is_for_this_process, COUNT(watchdogs))
{
    struct manager *manager = manager_open(false);
    const char *pid = watchdogs[row].pid;
    struct notify notify;
    char self[24];

    snprintf(self, sizeof self, "%ld", (long)getpid());
    if (pid != NULL && strcmp(pid, "self") == 0)
        pid = self;
    ck_assert_int_eq(notify_open(&notify, &(struct notify_variables){manager->name,
                                                                     watchdogs[row].usec, pid}),
                     STDIO_BUS_OK);
    ck_assert_int_eq(notify.watchdog_ms, watchdogs[row].ms);
    notify_close(&notify);
}
