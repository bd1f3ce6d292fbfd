/* DESIGN 2: the daemon as a process, whatever started it. */
#include "build_config.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "network.h"

/* --- signals at the start --- */

/* Starts the daemon with a configuration from a fifo. Returns the writing end once the daemon waits
 * for the configuration, before it catches signals. */
static int start_waiting(struct daemon **daemon, const char *argument)
{
    const char *fifo = test_format("%s/fifo", test_dir());
    int fd;
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    *daemon = START(.config_path = fifo, .no_wait = true, .arguments = {argument});
    WAIT_UNTIL((fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0,
               "the daemon does not read its configuration");
    return fd;
}

static void write_config(const struct daemon *daemon, int fd)
{
    struct text *text = test_text();
    daemon_expand(daemon, text, "{'pools':[" POOL("a", 1, "") "]}");
    ck_assert_int_eq(write(fd, text->data, text->len), (ssize_t)text->len);
    close(fd);
}

TEST(design_sigusr1_is_harmless_from_the_start)
{
    struct daemon *daemon;
    int fd = start_waiting(&daemon, NULL);
    daemon_signal(daemon, SIGUSR1);
    write_config(daemon, fd);
    daemon_wait_log(daemon, "listening on ");
    client_expect_quiet(client_connect(daemon));
}

TEST(design_sigusr1_is_harmless_to_check_config)
{
    struct daemon *daemon;
    int fd = start_waiting(&daemon, "--check-config");
    daemon_signal(daemon, SIGUSR1);
    write_config(daemon, fd);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* --- process 1 --- */

/* From now on the test's next child is process 1 of a name space. False: this machine does not let
 * the test do so. */
static bool enter_pid_namespace(void)
{
#ifdef CLONE_NEWPID
    return unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
#else
    return false;
#endif
}

/* A worker whose start leaves processes behind that lose their parent. */
#define LEAVES_ORPHANS                                                                             \
    "{'id':'a','command':'sh','instances':1,'args':['-c',"                                         \
    "'(true & true & : > @DIR@/test-orphan-$$ &); exec @WORKER@']}"

TEST(design_process_1_reaps_orphans)
{
    if (!proc_available() || !enter_pid_namespace())
        return;
    struct daemon *daemon = START(.pools = LEAVES_ORPHANS);
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    daemon_wait_workers(daemon, 1);
    /* The status of a worker is not reaped with the orphans. */
    client_crash(client, "1", NULL, "{'code':7}");
    daemon_wait_log(daemon, "worker=1 .*exited with status 7");
    client_expect_quiet(client);
    daemon_wait_workers(daemon, 1);
}

/* --- an empty container --- */

TEST_ROWS(design_dev_null_is_not_needed, 2)
{
    if (!harness_can_empty_dev())
        return;
    struct daemon *daemon = START(.without_dev = true, .closed = row == 1);
    client_expect_quiet(client_connect(daemon));
}

/* --- an IPv4 address in IPv6 form --- */

TEST(design_mapped_address_is_the_ipv4_one)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .address = "[::ffff:127.0.0.1]:0");
    ck_assert_str_eq(daemon->host, "127.0.0.1");
    ck_assert(!daemon_logged(daemon, " WARN "));
    client_expect_quiet(client_connect(daemon));
    daemon_wait_log(daemon, "connected: 127\\.0\\.0\\.1:[0-9]+$");
}

int main(void)
{
    return harness_main("design: the daemon as a process");
}
