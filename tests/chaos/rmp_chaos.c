/* rmp_chaos [--seconds N] [--seed S] [--daemon PATH] [--upgrade MILLISECONDS]: the topic bus of a
 * daemon (default: $STDIO_BUS or ./stdio_bus) among peers that misbehave at random, workers that
 * die and, at most so far apart, upgrades in place. All randomness comes from one seed, which is
 * printed. Exits 1 after a violation, and keeps the daemon's log. TEST_TIMEOUT_FACTOR stretches
 * deadlines, TEST_NO_RSS leaves memory unmeasured. */
#include "build_config.h"

#include "rmp_chaos.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "deadline.h"
#include "proc.h"

#define STORM_MS 6000
#define RSS_SLACK_KIB (24L << 10) /* the pool of buffers and what the C library keeps */
#define PAUSE_MS 40               /* at most, between two acts of a peer */
#define SLOW_MS 8                 /* between two reads of a slow one */

const char *const topic_names[TOPICS] = {"a",
                                         "a/b",
                                         "run/1",
                                         "run/2",
                                         "\xC3\xA9t\xC3\xA9",
                                         "x y",
                                         "long/topic/of/some/parts",
                                         "agent/nobody",
                                         "t",
                                         "action/decision"};

/* --- a peer's life --- */

static void begin(struct chaos *chaos, struct peer *peer)
{
    if (!peer_connect(chaos, peer))
        return;
    peer->frames = dice_chance(&chaos->run.dice, 500);
    peer->stalled = dice_chance(&chaos->run.dice, 250);
    if (dice_chance(&chaos->run.dice, 700))
        talk_hello(chaos, peer, peer->frames);
}

static void stall(struct chaos *chaos, struct peer *peer)
{
    bool long_one = dice_chance(&chaos->run.dice, 150);

    peer->manners = dice_chance(&chaos->run.dice, 400) ? READS_SLOWLY : READS_NOTHING;
    peer->until_ms = now_ms() + dice_between(&chaos->run.dice, 100, long_one ? 5000 : 1500);
}

static void leave(struct chaos *chaos, struct peer *peer)
{
    if (dice_chance(&chaos->run.dice, 500) || peer->output.len > 0) {
        peer_close(chaos, peer);
        return;
    }
    shutdown(peer->fd, SHUT_WR);
    peer->half_closed = true;
    peer->next_ms = now_ms() + dice_between(&chaos->run.dice, 100, 1500);
}

static void act(struct chaos *chaos, struct peer *peer)
{
    uint32_t dice = dice_below(&chaos->run.dice, 1000);

    peer->next_ms = now_ms() + dice_below(&chaos->run.dice, PAUSE_MS);
    if (peer->fd < 0)
        begin(chaos, peer);
    else if (peer->half_closed)
        peer_close(chaos, peer);
    else if (peer->doomed || peer->asked_count > ASKED - 8 || peer->output.len > 1 << 20)
        return;
    else if (dice < 4)
        leave(chaos, peer);
    else if (dice < 30)
        talk_subscribe(chaos, peer, dice_below(&chaos->run.dice, TOPICS));
    else if (dice < 45)
        talk_unsubscribe(chaos, peer);
    else if (dice < 60)
        talk_hello(chaos, peer, dice_chance(&chaos->run.dice, 500));
    else if (dice < 75)
        talk_badly(chaos, peer);
    else if (dice < 110 && peer->stalled && peer->manners == READS)
        stall(chaos, peer);
    else
        talk_publish(chaos, peer);
}

/* --- one turn --- */

static bool wants_input(const struct peer *peer)
{
    if (peer->manners == READS_SLOWLY)
        return now_ms() - peer->read_ms >= SLOW_MS;
    return peer->manners == READS;
}

static void serve(struct chaos *chaos, struct peer *peer, short events)
{
    if (peer->fd >= 0 && (events & (POLLIN | POLLHUP | POLLERR)) != 0 && wants_input(peer))
        peer_read(chaos, peer);
    if (peer->manners != READS && (chaos->calm || now_ms() > peer->until_ms)) {
        peer->manners = READS;
        peer->head_ms = peer->read_ms = now_ms();
    }
    peer->output_hold = peer->fd < 0 || now_ms() < peer->next_ms - PAUSE_MS / 2 ? peer->output_hold
                                                                                : 0;
    if (peer->fd >= 0)
        peer_write(chaos, peer);
    peer_check(chaos, peer);
}

static void turn(struct chaos *chaos)
{
    struct pollfd polled[PEERS];

    for (unsigned i = 0; i < PEERS; i++) {
        const struct peer *peer = &chaos->peers[i];
        bool writes = peer->output.len - peer->output_hold > peer->written;

        polled[i] = (struct pollfd){
            .fd = peer->fd,
            .events = (short)((wants_input(peer) ? POLLIN : 0) | (writes ? POLLOUT : 0))};
    }
    poll(polled, PEERS, 1);
    upgrades_step(&chaos->run.upgrades, &chaos->run.dice, chaos->run.pid);
    for (unsigned i = 0; i < PEERS; i++)
        serve(chaos, &chaos->peers[i], polled[i].revents);
    if (!run_alive(&chaos->run)) {
        violation(chaos, "the daemon is gone");
        return;
    }
}

/* --- phases --- */

static void storm(struct chaos *chaos, int64_t until_ms)
{
    chaos->calm = false;
    while (now_ms() < until_ms && chaos->run.pid != 0 && chaos->run.violations < 100) {
        for (unsigned i = 1; i < PEERS; i++) {
            if (now_ms() >= chaos->peers[i].next_ms)
                act(chaos, &chaos->peers[i]);
        }
        if (now_ms() >= chaos->peers[0].next_ms) {
            chaos->peers[0].next_ms = now_ms() + dice_below(&chaos->run.dice, 50);
            asker_ask(chaos);
        }
        if (now_ms() >= chaos->run.next_kill_ms) {
            chaos->run.next_kill_ms = now_ms() + dice_between(&chaos->run.dice, 300, 3000);
            subject_kill_worker(chaos);
        }
        turn(chaos);
        asker_check(chaos, false);
    }
}

static bool busy(struct chaos *chaos, uint64_t *lacking)
{
    *lacking = 0;
    for (unsigned i = 0; i < PEERS; i++) {
        const struct peer *peer = &chaos->peers[i];

        if (peer->fd >= 0 && (ledger_lacks(chaos, peer, lacking) || peer->output.len > 0 ||
                              (peer->asked_count > 0 && !peer->asked[peer->first_asked].optional)))
            return true;
    }
    return false;
}

/* No more harm: all that has to come, comes. */
static void settle(struct chaos *chaos)
{
    int64_t deadline = deadline_in(20);
    uint64_t lacking;

    chaos->calm = true;
    for (unsigned i = 1; i < PEERS; i++) {
        struct peer *peer = &chaos->peers[i];

        peer->next_ms = now_ms();
        if (peer->half_closed)
            peer_close(chaos, peer);
        if (peer->fd >= 0 && !peer->doomed && peer->asked_count < ASKED)
            talk_hello(chaos, peer, dice_chance(&chaos->run.dice, 500));
    }
    while (busy(chaos, &lacking) && !deadline_over(deadline) && chaos->run.pid != 0)
        turn(chaos);
    if (busy(chaos, &lacking))
        violation(chaos, "not at rest; message %" PRIu64 " has not come", lacking);
}

/* All but the first are gone, and the daemon's memory is back. */
static void rest(struct chaos *chaos, long baseline_kib)
{
    int64_t deadline = deadline_in(6);
    long kib;

    for (unsigned i = 1; i < PEERS; i++)
        peer_close(chaos, &chaos->peers[i]);
    while (!deadline_over(deadline))
        turn(chaos);
    while (now_ms() < chaos->requests[chaos->request_count % REQUESTS].until_ms &&
           chaos->run.pid != 0)
        turn(chaos);
    asker_check(chaos, true);
    kib = proc_status(chaos->run.pid, "VmRSS");
    printf("memory: %ld KiB, %ld at the start\n", kib, baseline_kib);
    if (getenv("TEST_NO_RSS") == NULL && kib > baseline_kib + RSS_SLACK_KIB)
        violation(chaos, "memory at rest is %ld KiB, %ld at the start", kib, baseline_kib);
}

static void run(struct chaos *chaos)
{
    int64_t end_ms = now_ms() + (int64_t)chaos->run.seconds * 1000, until_ms;
    long baseline_kib = proc_status(chaos->run.pid, "VmRSS");

    for (unsigned i = 0; i < PEERS; i++) {
        chaos->peers[i].fd = -1;
        chaos->peers[i].index = i;
    }
    if (!peer_connect(chaos, &chaos->peers[0]))
        return;
    asker_begin(chaos);
    while (now_ms() < end_ms && chaos->run.pid != 0 && chaos->run.violations < 100) {
        until_ms = now_ms() + STORM_MS;
        storm(chaos, until_ms < end_ms ? until_ms : end_ms);
        settle(chaos);
    }
    if (chaos->run.pid != 0)
        rest(chaos, baseline_kib);
}

static void print_summary(const struct chaos *chaos)
{
    printf("connections %llu (%llu closed for not reading), publications %llu, deliveries %llu\n",
           chaos->connections, chaos->closed_slow, chaos->published, chaos->delivered);
    printf("answers: %llu Ok, %llu errors as expected, %llu BackpressureTimeout; the slowest "
           "after %" PRId64 " ms\n",
           chaos->told_ok, chaos->told_errors, chaos->told_timeouts, chaos->slowest_ms);
    printf("drops seen (counted): expired %" PRIu64 " (%" PRIu64 "), duplicates %" PRIu64
           " (%" PRIu64 "), backpressure %" PRIu64 " (%" PRIu64 ")\n",
           chaos->seen.ttl, chaos->known.ttl, chaos->seen.duplicate, chaos->known.duplicate,
           chaos->seen.backpressure, chaos->known.backpressure);
    printf("requests to agents and the runner %" PRIu64 ", answers %llu, workers killed %llu; "
           "snapshots %" PRIu64 "\nupgrades %llu\nviolations %llu\n",
           chaos->request_count, chaos->agent_answers, chaos->run.kills, chaos->snapshots,
           chaos->run.upgrades.count, chaos->run.violations);
}

int main(int argc, char *argv[])
{
    static struct chaos chaos = {.run.name = "rmp_chaos"};
    const char *worker = getenv("TEST_WORKER");

    run_begin(&chaos.run, argc, argv,
              worker != NULL && worker[0] != '\0' ? worker : "tests/harness/test_worker");
    chaos.ledger = calloc(KEPT, sizeof *chaos.ledger);
    chaos.peers = calloc(PEERS, sizeof *chaos.peers);
    chaos.requests = calloc(REQUESTS, sizeof *chaos.requests);
    if (chaos.ledger == NULL || chaos.peers == NULL || chaos.requests == NULL)
        return 71;
    printf("rmp_chaos: seed %llu, %u s, %s\n", chaos.run.seed, chaos.run.seconds, chaos.run.daemon);
    fflush(stdout);
    if (!subject_start(&chaos))
        return 71;
    run(&chaos);
    subject_stop(&chaos);
    print_summary(&chaos);
    return chaos.run.violations > 0;
}
