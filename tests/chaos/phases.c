#include "build_config.h"

#include "phases.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "check_up.h"
#include "deadline.h"
#include "proc.h"

#define CALM_CLIENTS 10
#define SURVIVORS 3 /* connections kept from a storm to the calm phase, at most */
#define SETTLE_SEC 40
#define CALL_MS 1000 /* between clients that call a worker which does not come back */

const char *phase_name(enum phase phase)
{
    static const char *const names[] = {"start", "calm",   "quiet", "storm",
                                        "siege", "settle", "end"};

    return names[phase];
}

/* --- one round --- */

static void wait_for_clients(struct chaos *chaos, struct pollfd *fds, int timeout_ms)
{
    nfds_t count = horde_poll(chaos, fds);

    fds[count++] = (struct pollfd){chaos->journal, POLLIN, 0};
    each_client(client, chaos) {
        short events = 0;

        if (client_is_open(client) && client_wants_read(chaos, client))
            events |= POLLIN;
        if (client_is_open(client) && client_wants_write(chaos, client))
            events |= POLLOUT;
        fds[count++] = (struct pollfd){events != 0 ? client->fd : -1, events, 0};
    }
    poll(fds, count, timeout_ms);
}

void chaos_step(struct chaos *chaos, int timeout_ms)
{
    struct pollfd fds[HOSTILE_MAX + 1 + CLIENTS_MAX];
    const struct pollfd *ready = fds + chaos->horde.count;

    wait_for_clients(chaos, fds, timeout_ms);
    chaos->now_ms = now_ms();
    check_up_drain(chaos);
    each_client(client, chaos) {
        ready++;
        if (ready->fd >= 0 && (ready->revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
            client_wants_read(chaos, client))
            client_read(chaos, client);
        if (client_is_open(client) && (ready->revents & POLLOUT) != 0 &&
            client_wants_write(chaos, client))
            client_write(chaos, client);
        client_tick(chaos, client);
    }
    horde_step(chaos, fds);
    siege_step(chaos);
    if (chaos->phase == PHASE_STORM) {
        fleet_torment(chaos);
        subject_reload(chaos);
        if (upgrades_step(&chaos->upgrades, &chaos->dice, chaos->subject.pid))
            note_event(chaos, "SIGUSR2 to the daemon");
    }
    if (chaos->now_ms >= chaos->next_look_ms) {
        chaos->next_look_ms = chaos->now_ms + 200;
        subject_reap(chaos);
        subject_read_log(chaos);
    }
}

static bool alive(const struct chaos *chaos)
{
    return chaos->subject.pid != 0;
}

static void enter(struct chaos *chaos, enum phase phase)
{
    chaos->phase = phase;
    chaos->board->calm = phase != PHASE_STORM;
    note_event(chaos, "begins");
}

static void begin_storm(struct chaos *chaos)
{
    enter(chaos, PHASE_STORM);
    mood_throw(chaos);
    chaos->next_torment_ms = chaos->next_harm_ms = chaos->now_ms;
}

static void steps_for(struct chaos *chaos, int64_t ms)
{
    int64_t end = now_ms() + ms;

    while (now_ms() < end && alive(chaos))
        chaos_step(chaos, 2);
}

/* --- settling --- */

static bool done_pair(void *user_data, const struct pair *pair)
{
    const struct chaos *chaos = user_data;
    const struct client *client = client_find(chaos, pair->conn);

    return fleet_words_lost(chaos, pair->worker) || client == NULL || client->going;
}

static bool all_greeted(const struct chaos *chaos)
{
    each_client(client, chaos) {
        if (client_is_open(client) && !handshake_settled(chaos, client))
            return false;
    }
    return true;
}

static bool all_settled(struct chaos *chaos)
{
    bool settled = true;

    each_client(client, chaos)
        settled = settled && client_settled(client) &&
                  !(client_is_open(client) && fleet_must_end_client(chaos, client));
    return settled && all_greeted(chaos) && fleet_complete(chaos) &&
           ledger_any_expected(&chaos->ledger, done_pair, chaos) == NULL;
}

static void report_unsettled_client(struct chaos *chaos, const struct client *client)
{
    const struct entry *request = NULL;
    const char *place = "";

    if (!list_empty(&client->in_flight)) {
        request = list_entry(client->in_flight.head.next, struct entry, in_flight);
        place = request->answer != 0 ? "answered" : request->got ? "at a worker" : "at no worker";
    }
    client_violation(chaos, client,
                     "did not end: %zu requests in flight (first %llu %s), %zu bytes unsent, "
                     "ending %d%s",
                     client->in_flight_count, request != NULL ? request->serial.number : 0, place,
                     client->out.len - client->out_at, (int)client->profile.ending,
                     client->going ? ", going" : "");
}

static void report_unsettled(struct chaos *chaos)
{
    const struct entry *lost = ledger_any_expected(&chaos->ledger, done_pair, chaos);

    fleet_note_all(chaos);
    each_client(client, chaos) {
        if (!client_settled(client))
            report_unsettled_client(chaos, client);
        else if (client_is_open(client) && fleet_must_end_client(chaos, client))
            client_violation(chaos, client, "was not disconnected after the end of its process");
    }
    if (lost != NULL)
        violation(chaos, "lost: '%c' %llu of a worker never reached client %llu", lost->kind,
                  lost->serial.number, lost->conn);
    if (!all_greeted(chaos))
        violation(chaos, "a handshake got no answer, or its replay no notification");
    if (!fleet_complete(chaos))
        violation(chaos, "the workers did not come back, or have open requests");
}

/* Closes all but `left` connections. */
static void thin_out(struct chaos *chaos, unsigned left)
{
    each_client(client, chaos) {
        if (!client_is_open(client))
            continue;
        if (left == 0 || client->going || client->profile.loose) {
            client_close(chaos, client, false);
            continue;
        }
        client->profile.ending = ENDING_NONE;
        left--;
    }
}

/* Where all processes of a shared pool have exited before they answered, the next one is started
 * for a client alone. */
static void call_worker(struct chaos *chaos)
{
    struct profile profile;

    if (!handshake_wanted(chaos) || chaos_exclusive(chaos) || fleet_complete(chaos))
        return;
    each_client(client, chaos) {
        if (client_is_open(client))
            continue;
        profile_calm(chaos, &profile);
        profile.ending = ENDING_ORDERLY;
        client_open(chaos, client, &profile);
        if (client_is_open(client))
            client_say(chaos, client);
        return;
    }
}

/* No more harm is done; all that has begun must end. */
static void settle(struct chaos *chaos)
{
    int64_t deadline = deadline_in(SETTLE_SEC);
    int64_t next_look_ms = 0, next_call_ms = now_ms() + CALL_MS;
    bool settled = false;

    enter(chaos, PHASE_SETTLE);
    fleet_continue_all(chaos);
    subject_reload_last(chaos);
    each_client(client, chaos)
        client_settle(chaos, client);
    while (!settled && !deadline_over(deadline) && alive(chaos)) {
        chaos_step(chaos, 5);
        if (chaos->now_ms < next_look_ms)
            continue;
        next_look_ms = chaos->now_ms + 50;
        settled = all_settled(chaos);
        if (!settled && chaos->now_ms >= next_call_ms) {
            next_call_ms = chaos->now_ms + CALL_MS;
            call_worker(chaos);
        }
    }
    if (!settled && alive(chaos))
        report_unsettled(chaos);
    /* With reloads: a client with a session would keep a worker of before. */
    thin_out(chaos, chaos->options.reload > 0 ? 0 : dice_below(&chaos->dice, SURVIVORS + 1));
}

/* The processes of idle clients are killed: the next ones get their handshake, and the clients
 * notice nothing in the calm phase. */
static void kill_idle(struct chaos *chaos)
{
    int64_t deadline = deadline_in(SETTLE_SEC);
    bool settled;

    if (!handshake_wanted(chaos) || !alive(chaos))
        return;
    fleet_kill_bound(chaos);
    do {
        chaos_step(chaos, 5);
        settled = all_settled(chaos);
    } while (!settled && !deadline_over(deadline) && alive(chaos));
    if (!settled && alive(chaos))
        report_unsettled(chaos);
}

/* --- calm and quiet --- */

/* Waits until the daemon has seen the end of closed connections, to have room for new ones. */
static void wait_until_seen(struct chaos *chaos)
{
    subject_check_baseline(chaos, clients_open(chaos));
    check_up_drain(chaos); /* the last records of workers that are gone */
    fleet_purge(chaos);
    ledger_purge(&chaos->ledger, done_pair, chaos);
}

static void report_lost(struct chaos *chaos)
{
    const struct entry *lost = ledger_any_calm(&chaos->ledger);
    unsigned long long left = chaos->ledger.calm_open;

    if (lost == NULL)
        return;
    violation(chaos, "%llu messages of a calm phase got lost, one is '%c' %llu of %s, %s%s%s", left,
              lost->kind, lost->serial.number, lost->serial.origin == 0 ? "a client" : "a worker",
              lost->got ? "arrived" : "not arrived", lost->answer != 0 ? ", answered" : "",
              lost->session != NULL ? ", in a session" : "");
}

/* All clients and workers behave: no message may be lost, refused or late. */
static void calm(struct chaos *chaos, int64_t ms)
{
    int64_t deadline = deadline_in(20);
    struct profile profile;
    size_t open = clients_open(chaos);

    chaos->calm_number++;
    enter(chaos, PHASE_CALM);
    each_client(client, chaos) {
        profile_calm(chaos, &profile);
        if (client_is_open(client))
            client->profile = profile;
        else if (open++ < CALM_CLIENTS)
            client_open(chaos, client, &profile);
    }
    steps_for(chaos, ms);
    each_client(client, chaos)
        client->silent = true;
    while ((chaos->ledger.calm_open > 0 || !all_greeted(chaos)) && !deadline_over(deadline) &&
           alive(chaos))
        chaos_step(chaos, 5);
    report_lost(chaos);
    each_client(client, chaos)
        client->silent = false;
}

/* Hostile clients beside honest ones: the honest may not notice, but for bounded waiting. */
static void siege(struct chaos *chaos, int64_t ms)
{
    int64_t deadline;

    chaos->calm_number++;
    enter(chaos, PHASE_SIEGE);
    siege_begin(chaos);
    steps_for(chaos, ms);
    siege_fade(chaos);
    deadline = deadline_in(20);
    while (chaos->ledger.calm_open > 0 && !deadline_over(deadline) && alive(chaos))
        chaos_step(chaos, 5);
    report_lost(chaos);
    siege_end(chaos);
    enter(chaos, PHASE_SETTLE);
    thin_out(chaos, 0);
    /* A wakeup ends each closed connection, and another one frees its ids. */
    steps_for(chaos, (SIEGE_HALF_CLOSE_SEC + SIEGE_ABANDONED_SEC) * 1000);
    wait_until_seen(chaos);
}

static void quiet(struct chaos *chaos, unsigned connections)
{
    enter(chaos, PHASE_QUIET);
    thin_out(chaos, connections);
    wait_until_seen(chaos);
    if (!alive(chaos))
        return;
    if (chaos->baseline_fds == 0)
        subject_take_baseline(chaos);
    subject_check_idle(chaos);
}

/* --- the whole --- */

static void wait_for_fleet(struct chaos *chaos)
{
    int64_t deadline = deadline_usual();

    while (!fleet_complete(chaos) && !deadline_over(deadline) && alive(chaos))
        chaos_step(chaos, 5);
}

/* Until a while changes nothing: the daemon has seen the ends of all clients, and what it does then
 * is done. */
static void wait_for_rest(struct chaos *chaos)
{
    int64_t deadline = deadline_usual();
    int fds;

    do {
        wait_for_fleet(chaos);
        fds = proc_fd_count(chaos->subject.pid);
        steps_for(chaos, 200);
    } while ((!fleet_complete(chaos) || proc_fd_count(chaos->subject.pid) != fds) &&
             !deadline_over(deadline) && alive(chaos));
}

/* The first calm phase fills pools and tables of the daemon: the baseline of later phases. */
static void warm_up(struct chaos *chaos)
{
    wait_for_fleet(chaos);
    calm(chaos, 700);
    thin_out(chaos, 0);
    wait_for_rest(chaos);
    subject_take_baseline(chaos);
    quiet(chaos, 0);
}

static void finish(struct chaos *chaos)
{
    if (chaos->options.hostile == 0 && dice_chance(&chaos->dice, 700) && alive(chaos)) {
        begin_storm(chaos);
        steps_for(chaos, dice_between(&chaos->dice, 200, 1200));
    }
    enter(chaos, PHASE_END);
    subject_stop(chaos);
}

void phases_run(struct chaos *chaos)
{
    int64_t end = now_ms() + (int64_t)chaos->options.seconds * 1000;

    warm_up(chaos);
    while (now_ms() < end - 4000 && alive(chaos)) {
        int64_t left = end - now_ms();

        if (chaos->options.hostile != 0) {
            siege(chaos, left > 16000 ? dice_between(&chaos->dice, 5000, 12000) : left - 4000);
            quiet(chaos, 0);
            chaos->stats.rounds++;
            continue;
        }
        begin_storm(chaos);
        steps_for(chaos, left > 12000 ? dice_between(&chaos->dice, 3000, 7000) : 2000);
        settle(chaos);
        if (!alive(chaos))
            break;
        wait_until_seen(chaos);
        kill_idle(chaos);
        calm(chaos, dice_between(&chaos->dice, 800, 2000));
        quiet(chaos, dice_below(&chaos->dice, 3));
        chaos->stats.rounds++;
    }
    finish(chaos);
}
