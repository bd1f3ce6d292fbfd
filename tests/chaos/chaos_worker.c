#include "build_config.h"

#include "chaos_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "deadline.h"

static volatile sig_atomic_t term_arrived;

static void note_term(int signo)
{
    (void)signo;
    term_arrived = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "chaos_worker: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void set_signals(void)
{
    struct sigaction action = {.sa_handler = note_term};
    struct rlimit no_core = {0, 0};

    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    setrlimit(RLIMIT_CORE, &no_core);
}

static void set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        die("fcntl");
}

/* Unique unless two processes with one pid start within one microsecond. */
static unsigned long long make_origin(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000)
               << 22 |
           ((unsigned long long)getpid() & 0x3fffff);
}

/* A reload of the daemon's configuration changes it (subject.h). */
static uint32_t program_number(void)
{
    const char *text = getenv("CHAOS_PROGRAM");

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static void set_up(struct worker *worker, char *const argv[])
{
    int fd = open(argv[2], O_RDONLY | O_CLOEXEC);

    worker->journal = open(argv[1], O_WRONLY | O_CLOEXEC);
    if (fd < 0 || worker->journal < 0)
        die("open");
    worker->board = mmap(NULL, sizeof *worker->board, PROT_READ, MAP_SHARED, fd, 0);
    if (worker->board == MAP_FAILED)
        die("mmap");
    wire_ids_rewritten = worker->board->mode.rewrite_ids;
    wire_framing = (enum wire_framing)worker->board->framing;
    wire_bridged = worker->board->bridged;
    wire_stateless = worker->board->stateless;
    wire_renumbers = wire_mode_renumbers(&worker->board->mode);
    wire_session_in_params = worker->board->mode.session_in_params;
    wire_cancels_for_good = worker->board->mode.protocol == PROTOCOL_MCP;
    close(fd);
    worker->origin = make_origin();
    worker->pool = (uint8_t)strtoul(argv[4], NULL, 10);
    dice_seed(&worker->dice, strtoull(argv[3], NULL, 10) ^ worker->origin);
    worker->out_max = dice_chance(&worker->dice, 500) ? 65536 : 4 << 20;
    set_nonblocking(STDIN_FILENO);
    set_nonblocking(STDOUT_FILENO);
    worker_note(worker, (struct record){.type = RECORD_HELLO, .len = program_number()});
    worker_write_journal(worker);
}

void worker_begin_dying(struct worker *worker)
{
    if (!worker->ignores_term && worker->dying_at_ms == 0)
        worker->dying_at_ms = worker->now_ms + worker->slow_ms + 1;
}

static void heed_term(struct worker *worker)
{
    if (!term_arrived || worker->term_seen)
        return;
    worker->term_seen = true;
    worker_note(worker, (struct record){.type = RECORD_TERM});
    worker_begin_dying(worker);
}

static bool all_written(const struct worker *worker)
{
    return worker->out_at == worker->out.len;
}

static void leave_in_time(struct worker *worker)
{
    if (worker->dying_at_ms != 0 && worker->now_ms >= worker->dying_at_ms)
        worker_leave(worker, 0);
    if (!worker->leaving || (!all_written(worker) && worker->now_ms < worker->leave_by_ms))
        return;
    worker_note(worker, (struct record){.type = RECORD_EXIT,
                                        .detail = all_written(worker) && !worker->out_closed});
    worker_write_journal(worker);
    _exit(worker->exit_status);
}

static bool wants_input(const struct worker *worker)
{
    return !worker->in_closed && !worker->leaving && worker->now_ms >= worker->stalled_until_ms &&
           worker->out.len - worker->out_at <= worker->out_max;
}

static void wait_for_work(struct worker *worker)
{
    bool writes = !all_written(worker) && !worker->out_closed;
    struct pollfd fds[2] = {{wants_input(worker) ? STDIN_FILENO : -1, POLLIN, 0},
                            {writes ? STDOUT_FILENO : -1, POLLOUT, 0}};
    int64_t left = worker_next_due(worker) - worker->now_ms;
    int timeout = worker_behaves(worker) ? 40 : 15;

    if (left < timeout)
        timeout = left > 0 ? (int)left : 0;
    if (poll(fds, 2, timeout) <= 0)
        return;
    worker->now_ms = now_ms();
    heed_term(worker);
    if (fds[0].fd >= 0 && fds[0].revents != 0)
        worker_read(worker);
}

/* The storm is over. */
static void behave(struct worker *worker)
{
    worker->stalled_until_ms = 0;
    if (worker->in_closed && worker->dying_at_ms == 0) /* else a message in a calm phase shows it */
        worker->dying_at_ms = worker->now_ms + 1;
}

int main(int argc, char *argv[])
{
    static struct worker worker; /* zeroed, and too large for a stack */

    if (argc != 5) {
        fprintf(stderr, "usage: chaos_worker JOURNAL BOARD SEED POOL\n");
        return 64;
    }
    set_signals();
    set_up(&worker, argv);
    for (;;) {
        worker.now_ms = now_ms();
        if (worker_behaves(&worker))
            behave(&worker);
        heed_term(&worker);
        worker_answer_due(&worker);
        worker_throw_dice(&worker);
        worker_write_journal(&worker);
        worker_write(&worker);
        leave_in_time(&worker);
        wait_for_work(&worker);
    }
}
