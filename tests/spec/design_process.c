/* DESIGN 2: the daemon as a process, whatever started it. */
#include "build_config.h"

#include <sched.h>

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
    steps_without_reloads("the configuration came from a fifo");
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

/* Starts a daemon that is process 1 of a name space. NULL: this machine does not allow that. */
static struct daemon *start_process_1(const struct setup *setup)
{
#ifdef CLONE_NEWPID
    int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (own < 0 || (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0))
        return NULL;
    struct daemon *daemon = daemon_start(setup);
    (void)setns(own, CLONE_NEWPID); /* a sanitizer needs it at the end of the test */
    close(own);
    return daemon;
#else
    (void)setup;
    return NULL;
#endif
}

/* A worker whose start leaves processes behind that lose their parent. */
#define LEAVES_ORPHANS                                                                             \
    "{'id':'a','command':'sh','instances':1,'args':['-c',"                                         \
    "'(true & true & : > @DIR@/test-orphan-$$ &); exec @WORKER@']}"

TEST(design_process_1_reaps_orphans)
{
    const char *options = getenv("ASAN_OPTIONS");
    /* The leak sanitizer looks for process 1 in /proc, where it is another process. */
    options = test_format("%s:detect_leaks=0", options != NULL ? options : "");
    ck_assert_int_eq(setenv("ASAN_OPTIONS", options, 1), 0);
    struct daemon *daemon = start_process_1(&(struct setup){.pools = LEAVES_ORPHANS});
    if (daemon == NULL)
        return;
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
