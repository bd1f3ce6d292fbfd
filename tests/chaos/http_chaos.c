/* http_chaos [--seconds N] [--seed S] [--daemon PATH] [--upgrade MILLISECONDS]: the HTTP listeners
 * of a daemon (default: $STDIO_BUS or ./stdio_bus) among clients that leave, stall and resume,
 * workers that die and, at most so far apart, upgrades in place. All randomness comes from one
 * seed, which is printed. Exits 1 after a violation, and keeps the daemon's log. The worker is
 * http_worker beside this program. TEST_TIMEOUT_FACTOR stretches deadlines, TEST_NO_RSS leaves
 * memory unmeasured. */
#include "build_config.h"

#include "http_chaos.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deadline.h"
#include "proc.h"

#define STORM_MS 12000
#define RSS_SLACK_KIB (24L << 10) /* the pool of buffers and what the C library keeps */

/* --- one turn --- */

static void poll_links(struct chaos *chaos)
{
    static struct pollfd polled[ACTORS * LINKS];

    for (unsigned i = 0; i < ACTORS * LINKS; i++) {
        const struct link *link = &chaos->actors[i / LINKS].links[i % LINKS];
        bool reads = chaos->calm || now_ms() >= link->until_ms;

        polled[i] = (struct pollfd){
            .fd = reads || link->output.len > 0 ? link->fd : -1,
            .events = (short)((reads ? POLLIN : 0) | (link->output.len > 0 ? POLLOUT : 0))};
    }
    poll(polled, ACTORS * LINKS, 1);
    for (unsigned i = 0; i < ACTORS * LINKS; i++) {
        struct link *link = &chaos->actors[i / LINKS].links[i % LINKS];

        if (polled[i].fd >= 0 && (polled[i].revents & POLLOUT) != 0)
            link_write(chaos, link);
        if (polled[i].fd >= 0 && (polled[i].revents & ~POLLOUT) != 0)
            link_read(chaos, link);
    }
}

static void turn(struct chaos *chaos)
{
    poll_links(chaos);
    upgrades_step(&chaos->run.upgrades, &chaos->run.dice, chaos->run.pid);
    for (unsigned i = 0; i < ACTORS; i++) {
        if (now_ms() >= chaos->actors[i].next_ms)
            talk_act(chaos, &chaos->actors[i]);
    }
    if (!run_alive(&chaos->run))
        violation(chaos, "the daemon is gone");
}

/* --- phases --- */

static void storm(struct chaos *chaos, int64_t until_ms)
{
    chaos->calm = false;
    while (now_ms() < until_ms && chaos->run.pid != 0 && chaos->run.violations < 100) {
        if (now_ms() >= chaos->run.next_kill_ms) {
            chaos->run.next_kill_ms = now_ms() + dice_between(&chaos->run.dice, 100, 1500);
            subject_harm(chaos);
        }
        turn(chaos);
    }
}

static const struct actor *busy_one(const struct chaos *chaos)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        if (talk_busy(&chaos->actors[i]))
            return &chaos->actors[i];
    }
    return NULL;
}

/* No more harm: all that has to come, comes. */
static void settle(struct chaos *chaos)
{
    int64_t deadline = deadline_in(45); /* after crashes, clients wait for a process: up to 30 s */
    const struct actor *busy;

    chaos->calm = true;
    subject_spare(chaos);
    for (unsigned i = 0; i < ACTORS * LINKS; i++)
        chaos->actors[i / LINKS].links[i % LINKS].cut_after = -1;
    while ((busy = busy_one(chaos)) != NULL && !deadline_over(deadline) && chaos->run.pid != 0)
        turn(chaos);
    for (unsigned i = 0; busy != NULL && i < CALLS; i++) {
        if (busy->calls[i].kind != CALL_NONE && busy->calls[i].kind != CALL_GET)
            violation(chaos, "actor %u, phase %d: no answer to %s, kind %d%s", busy->index,
                      (int)busy->phase, busy->calls[i].mark, (int)busy->calls[i].kind,
                      busy->calls[i].link == NULL ? ", cut" : "");
    }
    if (busy != NULL)
        violation(chaos, "actor %u is not at rest, phase %d", busy->index, (int)busy->phase);
}

/* Everybody is gone: sessions end, and what they took is back. */
static void rest(struct chaos *chaos, int base_fds, long base_kib)
{
    int max_fds = base_fds + 4; /* a process more in the pool of processes */
    int64_t deadline = deadline_in(30);
    long kib;
    int fds;

    for (unsigned i = 0; i < ACTORS; i++)
        talk_end_life(chaos, &chaos->actors[i]);
    while ((fds = proc_fd_count(chaos->run.pid)) > max_fds && !deadline_over(deadline))
        nap();
    kib = proc_status(chaos->run.pid, "VmRSS");
    printf("memory: %ld KiB, %ld at the start; descriptors: %d, %d at the start\n", kib, base_kib,
           fds, base_fds);
    if (fds > max_fds)
        violation(chaos, "%d descriptors at rest, %d at the start", fds, base_fds);
    if (getenv("TEST_NO_RSS") == NULL && kib > base_kib + RSS_SLACK_KIB)
        violation(chaos, "memory at rest is %ld KiB, %ld at the start", kib, base_kib);
}

static void begin(struct chaos *chaos)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        struct actor *actor = &chaos->actors[i];

        actor->index = i;
        actor->kind = i < 22 ? SESSION : i < 32 ? CALLER : i < 40 ? WEB : VANDAL;
        actor->pool = i % 4 == 0 ? "all" : i % 4 == 2 && actor->kind == WEB ? "plain" : "own";
        for (unsigned k = 0; k < LINKS; k++) {
            actor->links[k].fd = -1;
            actor->links[k].actor = actor;
        }
        talk_end_life(chaos, actor);
    }
}

/* Descriptors of the daemon when all workers have started. */
static int count_descriptors(const struct chaos *chaos)
{
    int64_t since_ms = now_ms();
    int count = proc_fd_count(chaos->run.pid);

    while (now_ms() - since_ms < 300) {
        int now = proc_fd_count(chaos->run.pid);

        if (now != count)
            since_ms = now_ms();
        count = now;
        nap();
    }
    return count;
}

static void run(struct chaos *chaos)
{
    int64_t end_ms = now_ms() + (int64_t)chaos->run.seconds * 1000, until_ms;
    long base_kib = proc_status(chaos->run.pid, "VmRSS");
    int base_fds = count_descriptors(chaos);

    begin(chaos);
    while (now_ms() < end_ms && chaos->run.pid != 0 && chaos->run.violations < 100) {
        until_ms = now_ms() + STORM_MS;
        storm(chaos, until_ms < end_ms ? until_ms : end_ms);
        settle(chaos);
    }
    if (chaos->run.pid != 0)
        rest(chaos, base_fds, base_kib);
}

static void print_summary(const struct chaos *chaos)
{
    printf("connections %llu (%llu cut), requests %llu: %llu answers, %llu errors, %llu lost with "
           "their connection; the slowest after %" PRId64 " ms\n",
           chaos->connections, chaos->cuts, chaos->requests, chaos->answers, chaos->errors,
           chaos->lost, chaos->slowest_ms);
    printf("sessions %llu (%llu ended idle, %llu with their process), streams resumed %llu, "
           "notes and questions %llu\n",
           chaos->sessions, chaos->ended_idle, chaos->ended_killed, chaos->resumed, chaos->events);
    printf("cancelled %llu, timed out %llu, no process free %llu, arrays %llu, over WebSocket "
           "%llu, bad requests refused %llu, workers killed %llu\nupgrades %llu\nviolations %llu\n",
           chaos->cancels, chaos->timeouts, chaos->busy, chaos->batches, chaos->web_messages,
           chaos->refusals, chaos->run.kills, chaos->run.upgrades.count, chaos->run.violations);
}

int main(int argc, char *argv[])
{
    static struct chaos chaos = {.run.name = "http_chaos"};
    const char *slash = strrchr(argv[0], '/');
    struct text worker = {0};

    text_printf(&worker, "%.*shttp_worker", slash != NULL ? (int)(slash - argv[0]) + 1 : 0,
                argv[0]);
    run_begin(&chaos.run, argc, argv, worker.data);
    text_free(&worker);
    chaos.forgetful = dice_chance(&chaos.run.dice, 250);
    chaos.last_kill_ms = now_ms() - 1000000;
    chaos.actors = calloc(ACTORS, sizeof *chaos.actors);
    if (chaos.actors == NULL)
        return 71;
    printf("http_chaos: seed %llu, %u s, %s%s\n", chaos.run.seed, chaos.run.seconds,
           chaos.run.daemon, chaos.forgetful ? ", little is kept for resuming" : "");
    fflush(stdout);
    if (!subject_start(&chaos))
        return 71;
    run(&chaos);
    subject_stop(&chaos);
    print_summary(&chaos);
    return chaos.run.violations > 0;
}
