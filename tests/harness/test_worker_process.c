#include "build_config.h"

#include "test_worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

/* Written by handlers, read by the waits for signals. */
static volatile sig_atomic_t term_arrived, usr1_arrived;

static void note_term(int signo)
{
    (void)signo;
    term_arrived = 1;
}

static void note_usr1(int signo)
{
    (void)signo;
    usr1_arrived = 1;
}

static void add_descriptors(struct text *to)
{
    const char *separator = "";
    text_printf(to, ",\"fds\":[");
    for (int fd = 0; fd < 1024; fd++) {
        struct stat st;
        if (fstat(fd, &st) != 0)
            continue;
        const char *kind = S_ISFIFO(st.st_mode)   ? "pipe"
                           : S_ISSOCK(st.st_mode) ? "socket"
                           : S_ISREG(st.st_mode)  ? "file"
                                                  : "other";
        text_printf(to, "%s{\"fd\":%d,\"kind\":\"%s\"}", separator, fd, kind);
        separator = ",";
    }
    text_printf(to, "]");
}

static void add_signals(struct text *to)
{
    sigset_t mask;
    struct text ignored = {0}, blocked = {0};
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int signo = 1; signo < 32; signo++) {
        struct sigaction action;
        if (sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            text_printf(&ignored, "%s%d", ignored.len > 0 ? "," : "", signo);
        if (sigismember(&mask, signo) == 1)
            text_printf(&blocked, "%s%d", blocked.len > 0 ? "," : "", signo);
    }
    text_printf(to, ",\"ignored\":[%s],\"blocked\":[%s]", ignored.len > 0 ? ignored.data : "",
                blocked.len > 0 ? blocked.data : "");
    text_free(&ignored);
    text_free(&blocked);
}

void worker_birth(struct text *to, int argc, char *const argv[])
{
    char cwd[4096];
    if (getcwd(cwd, sizeof cwd) == NULL)
        cwd[0] = '\0';
    text_printf(to, "{\"pid\":%ld,\"ppid\":%ld,\"pgid\":%ld,\"sid\":%ld,\"cwd\":\"%s\"",
                (long)getpid(), (long)getppid(), (long)getpgid(0), (long)getsid(0), cwd);
    add_descriptors(to);
    add_signals(to);
    text_printf(to, ",\"args\":[");
    for (int i = 0; i < argc; i++)
        text_printf(to, "%s\"%s\"", i > 0 ? "," : "", argv[i]);
    text_printf(to, "]}");
}

/* From now on `signo` is delivered only during the waits for it. */
static void catch_while_waiting(int signo, void (*handler)(int))
{
    struct sigaction action;
    sigset_t mask;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigemptyset(&mask);
    sigaddset(&mask, signo);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    sigaction(signo, &action, NULL);
}

void worker_on_sigterm(struct worker *worker, struct span mode, int code)
{
    worker->term_code = code;
    worker->release_on_term = span_is(mode, "release");
    worker->exit_on_term = span_is(mode, "exit");
    if (span_is(mode, "ignore")) {
        signal(SIGTERM, SIG_IGN);
    } else if (worker->release_on_term || worker->exit_on_term) {
        catch_while_waiting(SIGTERM, note_term);
        worker->wait_with_signals = true;
    } else {
        signal(SIGTERM, SIG_DFL);
    }
}

static void act_on_term(struct worker *worker)
{
    if (worker->release_on_term)
        worker_release(worker, false);
    worker_flush(worker);
    _exit(worker->term_code);
}

/* The mask of a wait: no signal is blocked. */
static sigset_t open_mask(void)
{
    sigset_t mask;
    sigemptyset(&mask);
    return mask;
}

void worker_wait_signal(struct worker *worker)
{
    sigset_t mask = open_mask();
    sigsuspend(&mask);
    if (term_arrived)
        act_on_term(worker);
}

void worker_wait_usr1(struct worker *worker)
{
    catch_while_waiting(SIGUSR1, note_usr1);
    worker_flush(worker);
    while (!usr1_arrived)
        worker_wait_signal(worker);
    usr1_arrived = 0;
}

void worker_wait_input(struct worker *worker)
{
    sigset_t mask = open_mask();
    int ready = 0;
    while (ready == 0) {
        fd_set readable;
        FD_ZERO(&readable);
        FD_SET(STDIN_FILENO, &readable);
        ready = pselect(STDIN_FILENO + 1, &readable, NULL, NULL, NULL, &mask);
        if (term_arrived)
            act_on_term(worker);
        if (ready < 0 && errno == EINTR)
            ready = 0;
    }
}
