/* stdio_bus(1), ENVIRONMENT: reports to a service manager, in the protocol of sd_notify(3). */
#include "build_config.h"

#include "harness.h"
#include "manager.h"

static struct manager *set_manager(bool is_abstract)
{
    struct manager *manager = manager_open(is_abstract);
    setenv("NOTIFY_SOCKET", manager->name, 1);
    return manager;
}

TEST_ROWS(design_manager_is_told_of_start_clients_and_stop, 2)
{
#ifndef __linux__
    if (row == 1)
        return; /* no other system has abstract names */
#endif
    struct manager *manager = set_manager(row == 1);
    struct daemon *daemon = START(.instances = 3);
    ck_assert_str_eq(manager_next(manager), "STATUS=starting: 0 clients, 0 workers running\n");
    expect_word(manager_wait(manager, "^READY=1\nSTATUS=serving: 0 clients, 3 workers"), "READY=1");
    struct client *client = client_connect(daemon), *other = client_connect(daemon);
    manager_wait(manager, "^STATUS=serving: 2 clients, 3 workers running\n$");
    client_close(other);
    manager_wait(manager, "^STATUS=serving: 1 client, 3 workers running\n$");
    client_ask(client, "1", NULL, "echo", NULL);
    daemon_stop(daemon);
    manager_wait(manager, "^STOPPING=1\nEXTEND_TIMEOUT_USEC=[0-9]+\nSTATUS=stopping: ");
}

/* No client is kept waiting once READY=1 was sent. */
TEST(design_manager_is_told_of_readiness_in_stdio_mode)
{
    struct manager *manager = set_manager(false);
    struct daemon *daemon = START(.mode = SETUP_STDIO);
    manager_wait(manager, "^READY=1\nSTATUS=serving: 1 client, 1 worker running\n$");
    client_finish(client_stdio(daemon), daemon);
}

/* Without an executable worker the service is not ready. */
TEST(design_manager_is_not_told_of_readiness_that_is_not)
{
    struct manager *manager = set_manager(false);
    RUN(78, .no_config = true, .mode = SETUP_STDIO, .arguments = {"--", "/none/such"});
    ck_assert(!wait_fd(manager->fd, 1, now_ms()) || strstr(manager_next(manager), "READY") == NULL);
}

TEST(design_watchdog_is_answered_while_the_daemon_runs)
{
    struct manager *manager = set_manager(false);
    setenv("WATCHDOG_USEC", "100000", 1);
    struct daemon *daemon = START(.instances = 1);
    for (int i = 0; i < 5; i++)
        manager_wait(manager, "^WATCHDOG=1\n$");
    daemon_stop(daemon);
}

TEST(design_watchdog_of_another_process_is_not_answered)
{
    struct manager *manager = set_manager(false);
    setenv("WATCHDOG_USEC", "2000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    do
        ck_assert_ptr_null(strstr(manager_next(manager), "WATCHDOG"));
    while (strstr(manager->text, "1 client") == NULL);
    client_ask(client, "1", NULL, "echo", NULL);
    daemon_stop(daemon);
}

/* The time to stop is asked for as long as the daemon needs it. */
TEST(design_manager_waits_while_workers_end)
{
    struct manager *manager = set_manager(false);
    struct daemon *daemon = START(.args = "'--stay','--on-sigterm','ignore'",
                                  .limits = "'drain_timeout_sec':6");
    client_ask(client_connect(daemon), "1", NULL, "echo", NULL); /* the worker ignores it now */
    daemon_signal(daemon, SIGTERM);
    manager_wait(manager, "^STOPPING=1");
    manager_wait(manager, "^EXTEND_TIMEOUT_USEC=[0-9]+\n$");
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

TEST(design_lost_manager_does_not_disturb)
{
    setenv("NOTIFY_SOCKET", "/none/such", 1);
    struct daemon *daemon = START(.instances = 1);
    daemon_wait_log(daemon, " WARN .*cannot reach the service manager at NOTIFY_SOCKET");
    client_ask(client_connect(daemon), "1", NULL, "echo", NULL);
    daemon_stop(daemon);
}
