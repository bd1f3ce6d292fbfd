#include "build_config.h"

#include "event/signals.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/error.h"
#include "suite.h"

#define MANY 70000 /* more than a pipe holds */
#define WAIT_MS 5000

static struct {
    struct stdio_bus_event_loop *loop;
    struct signals signals;
    int counts[128]; /* by signal */
    bool close_in_callback;
} fixture;

static void on_signal(void *user_data, int signo)
{
    ck_assert_ptr_eq(user_data, &fixture);
    fixture.counts[signo]++;
    if (fixture.close_in_callback)
        signals_close(&fixture.signals);
}

static void set_up(void)
{
    memset(&fixture, 0, sizeof fixture);
    fixture.signals.fd = -1;
    fixture.loop = stdio_bus_event_loop_create();
    ck_assert_ptr_nonnull(fixture.loop);
}

static void tear_down(void)
{
    signals_close(&fixture.signals);
    stdio_bus_event_loop_destroy(fixture.loop);
}

static void open_signals(void)
{
    ck_assert_int_eq(signals_open(&fixture.signals, fixture.loop, on_signal, &fixture),
                     STDIO_BUS_OK);
}

/* Rounds until `signo` has come. */
static void wait_for(int signo)
{
    for (int i = 0; i < 1000 && fixture.counts[signo] == 0; i++)
        ck_assert_int_ge(stdio_bus_event_loop_run_once(fixture.loop, WAIT_MS), 0);
    ck_assert_int_gt(fixture.counts[signo], 0);
}

static bool is_ignored(int signo)
{
    struct sigaction action;

    ck_assert_int_eq(sigaction(signo, NULL, &action), 0);
    return action.sa_handler == SIG_IGN;
}

static bool is_default(int signo)
{
    struct sigaction action;

    ck_assert_int_eq(sigaction(signo, NULL, &action), 0);
    return action.sa_handler == SIG_DFL;
}

static void set_disposition(int signo, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    ck_assert_int_eq(sigemptyset(&action.sa_mask), 0);
    ck_assert_int_eq(sigaction(signo, &action, NULL), 0);
}

TEST_ROWS(each_kind_arrives, 6)
{
    static const int kinds[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};

    set_disposition(SIGHUP, SIG_DFL);
    open_signals();
    ck_assert_int_eq(raise(kinds[row]), 0);
    wait_for(kinds[row]);
    for (int signo = 1; signo < 128; signo++)
        ck_assert_int_eq(fixture.counts[signo], signo == kinds[row] ? 1 : 0);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(fixture.loop, 0), 0);
}

TEST(different_kinds_do_not_merge)
{
    open_signals();
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(raise(SIGCHLD), 0);
    ck_assert_int_eq(raise(SIGTERM), 0);
    ck_assert_int_eq(raise(SIGINT), 0);
    wait_for(SIGCHLD);
    wait_for(SIGTERM);
    wait_for(SIGINT);
    ck_assert_int_eq(fixture.counts[SIGTERM], 1);
    ck_assert_int_eq(fixture.counts[SIGINT], 1);
}

TEST(child_death_wakes_the_loop)
{
    pid_t pid;

    open_signals();
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(7);
    wait_for(SIGCHLD);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

TEST(full_pipe_neither_blocks_nor_touches_errno)
{
    open_signals();
    errno = 1234;
    for (int i = 0; i < MANY; i++)
        (void)raise(SIGCHLD);
    ck_assert_int_eq(errno, 1234);
    wait_for(SIGCHLD);
    ck_assert_int_eq(raise(SIGTERM), 0);
    wait_for(SIGTERM);
}

TEST(one_at_a_time)
{
    struct signals second;

    open_signals();
    ck_assert_int_eq(signals_open(&second, fixture.loop, on_signal, &fixture), STDIO_BUS_EINVAL);
    ck_assert_int_eq(raise(SIGTERM), 0);
    wait_for(SIGTERM);
    signals_close(&fixture.signals);
    signals_close(&fixture.signals);
    ck_assert_int_eq(signals_open(&second, fixture.loop, on_signal, &fixture), STDIO_BUS_OK);
    signals_close(&second);
}

TEST(close_restores_everything)
{
    sigset_t mask;

    set_disposition(SIGTERM, SIG_DFL);
    set_disposition(SIGINT, SIG_IGN);
    set_disposition(SIGCHLD, SIG_IGN);
    set_disposition(SIGPIPE, SIG_DFL);
    ck_assert_int_eq(sigemptyset(&mask), 0);
    ck_assert_int_eq(sigaddset(&mask, SIGCHLD), 0);
    ck_assert_int_eq(sigprocmask(SIG_SETMASK, &mask, NULL), 0);
    open_signals();
    ck_assert(is_ignored(SIGPIPE));
    ck_assert(!is_ignored(SIGINT) && !is_default(SIGTERM));
    ck_assert_int_eq(raise(SIGCHLD), 0);
    wait_for(SIGCHLD);
    signals_close(&fixture.signals);
    ck_assert(is_default(SIGTERM) && is_default(SIGPIPE));
    ck_assert(is_ignored(SIGINT) && is_ignored(SIGCHLD));
    ck_assert_int_eq(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    ck_assert_int_eq(sigismember(&mask, SIGCHLD), 1);
    ck_assert_int_eq(sigismember(&mask, SIGTERM), 0);
}

TEST(ignored_hangup_stays_ignored)
{
    set_disposition(SIGHUP, SIG_IGN);
    open_signals();
    ck_assert(is_ignored(SIGHUP));
    signals_close(&fixture.signals);
    ck_assert(is_ignored(SIGHUP));
}

#define FDS 256

static void find_open_fds(bool open[FDS])
{
    for (int fd = 0; fd < FDS; fd++)
        open[fd] = fcntl(fd, F_GETFD) >= 0;
}

TEST(pipe_is_not_inherited)
{
    bool before[FDS], after[FDS];
    int found = 0;

    find_open_fds(before);
    open_signals();
    find_open_fds(after);
    for (int fd = 0; fd < FDS; fd++) {
        if (!after[fd] || before[fd])
            continue;
        found++;
        ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    }
    ck_assert_int_eq(found, 2);
    signals_close(&fixture.signals);
    find_open_fds(after);
    ck_assert_mem_eq(before, after, sizeof before);
}

TEST(open_without_descriptors_changes_nothing)
{
    struct rlimit limit = {0, 0}, old;

    set_disposition(SIGTERM, SIG_DFL);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    limit.rlim_max = old.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    errno = 0;
    ck_assert_int_eq(signals_open(&fixture.signals, fixture.loop, on_signal, &fixture),
                     STDIO_BUS_ERR);
    ck_assert_int_eq(errno, EMFILE);
    ck_assert(is_default(SIGTERM));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    open_signals();
}

TEST(callback_may_close)
{
    open_signals();
    fixture.close_in_callback = true;
    ck_assert_int_eq(raise(SIGINT), 0);
    ck_assert_int_eq(raise(SIGCHLD), 0);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(fixture.loop, WAIT_MS), 1);
    ck_assert_int_eq(fixture.counts[SIGINT] + fixture.counts[SIGCHLD], 1);
}

TEST(blocked_signals_come_afterwards)
{
    sigset_t saved;

    open_signals();
    signals_block_all(&saved);
    ck_assert_int_eq(raise(SIGTERM), 0);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(fixture.loop, 0), 0);
    signals_restore(&saved);
    wait_for(SIGTERM);
}

/* The state that a worker starts with. Returns the child's exit status, 0 for the right one. */
static int child_after_reset(void)
{
    sigset_t mask;

    signals_reset_in_child();
    if (sigprocmask(SIG_SETMASK, NULL, &mask) != 0)
        return 1;
    for (int signo = 1; signo < 32; signo++) {
        struct sigaction action;
        if (sigaction(signo, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
            return 2;
        if (sigismember(&mask, signo) != 0)
            return 3;
    }
    return 0;
}

TEST(child_starts_afresh)
{
    int status = 0;
    pid_t pid;

    set_disposition(SIGUSR1, SIG_IGN);
    set_disposition(SIGHUP, SIG_IGN);
    open_signals();
    pid = signals_fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(child_after_reset());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* A signal that was caught, and not reported yet, would be lost. */
TEST(hold_comes_after_what_has_arrived)
{
    sigset_t mask, pending;

    open_signals();
    raise(SIGTERM);
    ck_assert(!signals_hold(&fixture.signals));
    wait_for(SIGTERM);
    ck_assert(signals_hold(&fixture.signals));
    raise(SIGTERM);
    ck_assert_int_eq(sigpending(&pending), 0);
    ck_assert_int_eq(sigismember(&pending, SIGTERM), 1);
    ck_assert_int_eq(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    ck_assert_int_eq(sigismember(&mask, SIGCHLD), 1);
    signals_let_go();
    fixture.counts[SIGTERM] = 0;
    wait_for(SIGTERM);
}

FIXTURE(set_up, tear_down)
