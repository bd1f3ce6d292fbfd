#include "build_config.h"

#include "fleet.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "chaos.h"
#include "proc.h"

#define CHILDREN_MAX 256
#define SUSPICION_MS (BACKPRESSURE_MS + 1500)

void fleet_init(struct fleet *fleet)
{
    memset(fleet, 0, sizeof *fleet);
    list_init(&fleet->incarnations);
}

/* Its open requests and questions belong to the ledger. */
static void forget(struct incarnation *incarnation)
{
    struct list_node *node;

    while (list_take_first(&incarnation->open) != NULL)
        continue;
    while (list_take_first(&incarnation->questions) != NULL)
        continue;
    while ((node = list_take_first(&incarnation->sessions)) != NULL)
        free(list_entry(node, struct session, link));
    list_remove(&incarnation->link);
    free(incarnation);
}

struct incarnation *fleet_find(const struct fleet *fleet, unsigned long long origin)
{
    each_entry(struct incarnation, incarnation, &fleet->incarnations, link) {
        if (incarnation->origin == origin)
            return incarnation;
    }
    return NULL;
}

bool fleet_has_pid(const struct fleet *fleet, pid_t pid)
{
    each_entry(struct incarnation, incarnation, &fleet->incarnations, link) {
        if (incarnation->pid == pid && !incarnation->gone)
            return true;
    }
    return false;
}

static unsigned healthy_in_pool(const struct chaos *chaos, uint8_t pool)
{
    unsigned count = 0;

    each_entry(const struct incarnation, incarnation, &chaos->fleet.incarnations, link) {
        if (incarnation->pool == pool && !fleet_may_be_gone(chaos, incarnation))
            count++;
    }
    return count;
}

static bool was_killed_as_newborn(const struct fleet *fleet, pid_t pid)
{
    for (size_t i = 0; i < FLEET_NEWBORNS; i++) {
        if (fleet->newborns_killed[i] == pid)
            return true;
    }
    return false;
}

struct incarnation *fleet_add(struct chaos *chaos, const struct record *hello)
{
    struct incarnation *incarnation = calloc(1, sizeof *incarnation);

    if (incarnation == NULL)
        abort();
    *incarnation = (struct incarnation){.origin = hello->origin,
                                        .pid = (pid_t)hello->pid,
                                        .pool = hello->pool,
                                        .program = hello->len,
                                        .slot = hello->origin};
    list_init(&incarnation->sessions);
    list_init(&incarnation->open);
    list_init(&incarnation->questions);
    list_append(&chaos->fleet.incarnations, &incarnation->link);
    chaos->stats.processes++;
    note_event(chaos, "worker %ld of pool %u started", (long)hello->pid, hello->pool);
    if (was_killed_as_newborn(&chaos->fleet, incarnation->pid))
        fleet_doom(chaos, incarnation, 'N', true);
    if (healthy_in_pool(chaos, hello->pool) > chaos->options.workers)
        violation(chaos, "worker %ld was started although all others of pool %u are well",
                  (long)hello->pid, hello->pool);
    return incarnation;
}

void fleet_doom(struct chaos *chaos, struct incarnation *incarnation, char reason, bool unclean)
{
    note_event(chaos, "worker %ld: doom '%c'%s", (long)incarnation->pid, reason,
               unclean ? ", unclean" : "");
    if (incarnation->doomed == 0)
        incarnation->doomed = reason;
    incarnation->unclean |= unclean;
    chaos->fleet.dooms++;
}

void fleet_replaced(struct chaos *chaos, struct incarnation *before, struct incarnation *after)
{
    unsigned long long slot = before->slot;

    if (after->slot == slot || wire_stateless) /* a stateless client takes any other process */
        return;
    each_entry(struct incarnation, incarnation, &chaos->fleet.incarnations, link) {
        if (incarnation->slot != slot)
            continue;
        if (!fleet_may_be_gone(chaos, incarnation))
            violation(chaos, "clients of worker %ld were bound to %ld, and now to %ld",
                      (long)before->pid, (long)incarnation->pid, (long)after->pid);
        incarnation->slot = after->slot;
    }
}

void fleet_stall(struct chaos *chaos, struct incarnation *incarnation, int64_t ms)
{
    int64_t until = chaos->now_ms + ms + SUSPICION_MS;

    chaos->fleet.stalls++;
    if (incarnation->suspect_until_ms < until)
        incarnation->suspect_until_ms = until;
}

/* Of the stateless processes that clients share, the daemon ends those that all have left. */
static bool all_left(const struct chaos *chaos, const struct incarnation *incarnation)
{
    each_client(client, chaos) {
        if (client->bound[incarnation->pool] == incarnation->origin &&
            client_stays(chaos, client->conn))
            return false;
    }
    return true;
}

bool fleet_client_left(const struct chaos *chaos, const struct incarnation *incarnation)
{
    if (wire_stateless)
        return all_left(chaos, incarnation);
    if (!chaos_exclusive(chaos))
        return false;
    if (incarnation->client == 0) /* it may have left before its first message arrived */
        return chaos->phase != PHASE_CALM && chaos->phase != PHASE_QUIET;
    return !client_stays(chaos, incarnation->client);
}

/* It has a reason of its own to end, or the daemon may end it as it does not read. */
static bool ends_itself(const struct chaos *chaos, const struct incarnation *incarnation)
{
    return incarnation->doomed != 0 ||
           (!incarnation->renewed && (incarnation->left || incarnation->gone)) ||
           chaos->now_ms < incarnation->suspect_until_ms;
}

/* Another process takes its place when it is free, after a reload. */
static bool is_old(const struct chaos *chaos, const struct incarnation *incarnation)
{
    return incarnation->program < chaos->subject.programs;
}

/* The process that took the place of another may have ended during the replay. */
static bool may_fail_replay(const struct chaos *chaos, unsigned pool)
{
    if (chaos->fleet.newborns_killed_count > 0)
        return true;
    each_entry(const struct incarnation, worker, &chaos->fleet.incarnations, link) {
        if (worker->pool == pool && !worker->served && ends_itself(chaos, worker))
            return true;
    }
    return false;
}

/* Its clients may have no process now: it has failed, or another is to take its place. */
static bool may_leave_clients(const struct chaos *chaos, const struct incarnation *worker)
{
    return ends_itself(chaos, worker) ||
           (chaos->options.mode.on_exit == EXIT_REPLAYS && is_old(chaos, worker));
}

bool fleet_may_end_client(const struct chaos *chaos, const struct client *client)
{
    for (unsigned i = 0; i < chaos->options.pools; i++) {
        const struct incarnation *worker = fleet_find(&chaos->fleet, client->bound[i]);

        if (chaos->options.mode.on_exit == EXIT_REPLACES ||
            (chaos->options.mode.on_exit == EXIT_REPLAYS && !may_fail_replay(chaos, i)))
            continue;
        if (worker != NULL ? may_leave_clients(chaos, worker)
                           : client->bound[i] != 0 || (client->asked[i] && !chaos_calm(chaos)))
            return true;
    }
    return false;
}

bool fleet_must_end_client(const struct chaos *chaos, const struct client *client)
{
    for (unsigned i = 0; i < chaos->options.pools && chaos_ends_clients(chaos); i++) {
        const struct incarnation *worker = fleet_find(&chaos->fleet, client->bound[i]);

        if (client->bound[i] != 0 && (worker == NULL || worker->gone))
            return true;
    }
    return false;
}

bool fleet_may_fail(const struct chaos *chaos, const struct incarnation *incarnation)
{
    return ends_itself(chaos, incarnation) ||
           ((incarnation->client != 0 || wire_stateless) && fleet_client_left(chaos, incarnation));
}

bool fleet_may_be_gone(const struct chaos *chaos, const struct incarnation *incarnation)
{
    return fleet_may_fail(chaos, incarnation) || is_old(chaos, incarnation) || incarnation->slept;
}

bool fleet_words_lost(const struct chaos *chaos, unsigned long long origin)
{
    const struct incarnation *incarnation = fleet_find(&chaos->fleet, origin);

    return incarnation == NULL || incarnation->unclean || (incarnation->gone && !incarnation->left);
}

/* --- torment --- */

/* The children of the daemon. */
struct children {
    pid_t pids[CHILDREN_MAX];
    size_t count;
};

static struct children children_of(const struct chaos *chaos)
{
    struct children children;

    children.count = proc_children(chaos->subject.pid, children.pids, CHILDREN_MAX);
    return children;
}

static bool contains(const struct children *children, pid_t pid)
{
    for (size_t i = 0; i < children->count && i < CHILDREN_MAX; i++) {
        if (children->pids[i] == pid)
            return true;
    }
    return false;
}

/* Numbers of processes are reused: a signal goes to children of the daemon only. */
static bool is_child(const struct chaos *chaos, pid_t pid)
{
    struct children children = children_of(chaos);

    return contains(&children, pid);
}

static struct incarnation *choose_victim(struct chaos *chaos)
{
    struct incarnation *chosen = NULL;
    uint32_t count = 0;

    each_entry(struct incarnation, incarnation, &chaos->fleet.incarnations, link) {
        if (incarnation->gone || incarnation->left || incarnation->stopped_until_ms != 0)
            continue;
        if (dice_below(&chaos->dice, ++count) == 0)
            chosen = incarnation;
    }
    return chosen;
}

static void kill_worker(struct chaos *chaos, struct incarnation *incarnation)
{
    fleet_doom(chaos, incarnation, 'K', true);
    chaos->stats.kills++;
    kill(incarnation->pid, SIGKILL);
}

static void stop(struct chaos *chaos, struct incarnation *incarnation)
{
    uint32_t ms = dice_chance(&chaos->dice, 150)
                      ? dice_between(&chaos->dice, BACKPRESSURE_MS, BACKPRESSURE_MS + 2500)
                      : dice_between(&chaos->dice, 5, 700);

    note_event(chaos, "worker %ld: SIGSTOP for %u ms", (long)incarnation->pid, ms);
    incarnation->stopped_until_ms = chaos->now_ms + ms;
    fleet_stall(chaos, incarnation, ms + 500);
    chaos->stats.stops++;
    kill(incarnation->pid, SIGSTOP);
}

static void go_on(struct chaos *chaos, struct incarnation *incarnation)
{
    incarnation->stopped_until_ms = 0;
    fleet_stall(chaos, incarnation, 0);
    if (!is_child(chaos, incarnation->pid)) {
        incarnation->gone = true;
        return;
    }
    if (dice_chance(&chaos->dice, 150) && chaos->phase == PHASE_STORM) {
        kill_worker(chaos, incarnation);
        return;
    }
    note_event(chaos, "worker %ld: SIGCONT", (long)incarnation->pid);
    kill(incarnation->pid, SIGCONT);
}

static void do_harm(struct chaos *chaos, struct incarnation *incarnation)
{
    if (!is_child(chaos, incarnation->pid))
        return;
    if (dice_chance(&chaos->dice, 600)) {
        stop(chaos, incarnation);
    } else if (dice_chance(&chaos->dice, 300)) {
        incarnation->termed = true;
        fleet_doom(chaos, incarnation, 'T', false);
        kill(incarnation->pid, SIGTERM);
    } else {
        kill_worker(chaos, incarnation);
    }
}

/* Kills a worker that is not in the journal yet. */
static void kill_newborn(struct chaos *chaos)
{
    struct children children = children_of(chaos);
    struct fleet *fleet = &chaos->fleet;

    for (size_t i = 0; i < children.count && i < CHILDREN_MAX; i++) {
        pid_t pid = children.pids[i];
        bool known = false;

        each_entry(struct incarnation, incarnation, &fleet->incarnations, link)
            known = known || incarnation->pid == pid;
        if (known)
            continue;
        note_event(chaos, "newborn %ld: SIGKILL", (long)pid);
        fleet->newborns_killed[fleet->newborns_killed_count++ % FLEET_NEWBORNS] = pid;
        fleet->dooms++;
        chaos->stats.kills++;
        kill(pid, SIGKILL);
        return;
    }
}

static void continue_due(struct chaos *chaos, bool all)
{
    each_entry(struct incarnation, incarnation, &chaos->fleet.incarnations, link) {
        if (incarnation->stopped_until_ms != 0 &&
            (all || chaos->now_ms >= incarnation->stopped_until_ms))
            go_on(chaos, incarnation);
    }
}

void fleet_continue_all(struct chaos *chaos)
{
    continue_due(chaos, true);
}

void fleet_torment(struct chaos *chaos)
{
    struct incarnation *victim;

    continue_due(chaos, false);
    if (chaos->now_ms < chaos->next_torment_ms)
        return;
    chaos->next_torment_ms = chaos->now_ms + dice_between(&chaos->dice, 20, chaos->mood.torment_ms);
    if (dice_chance(&chaos->dice, 100))
        kill_newborn(chaos);
    victim = choose_victim(chaos);
    if (victim != NULL)
        do_harm(chaos, victim);
}

void fleet_kill_bound(struct chaos *chaos)
{
    each_client(client, chaos) {
        for (unsigned i = 0; i < chaos->options.pools && client_is_open(client); i++) {
            struct incarnation *worker = fleet_find(&chaos->fleet, client->bound[i]);

            if (worker != NULL && is_child(chaos, worker->pid))
                kill_worker(chaos, worker);
        }
    }
}

/* --- completeness --- */

size_t fleet_size(const struct chaos *chaos)
{
    return children_of(chaos).count;
}

/* Workers that clients have shared. */
static unsigned count_shared(const struct chaos *chaos, unsigned pool)
{
    unsigned shared = 0;

    each_entry(const struct incarnation, incarnation, &chaos->fleet.incarnations, link)
        shared += incarnation->pool == pool && !incarnation->gone && incarnation->client != 0;
    return shared;
}

/* An exclusive pool has one worker for each of its clients, and the spare ones. The requests of a
 * client may have been refused before it got a worker. */
static bool right_number(const struct chaos *chaos, unsigned pool, unsigned count)
{
    unsigned least = LIMIT_SPARE, most = LIMIT_SPARE, all = chaos->options.workers;

    if (wire_stateless) {
        least += count_shared(chaos, pool);
        return count >= (least < all ? least : all) && count <= all;
    }
    if (chaos->options.lazy)
        return count <= all;
    if (!chaos_exclusive(chaos))
        return count == all;
    each_client(client, chaos) {
        least += client_is_open(client) && client->bound[pool] != 0;
        most += client_is_open(client) && client->asked[pool];
    }
    return count >= (least < all ? least : all) && count <= (most < all ? most : all);
}

bool fleet_complete(struct chaos *chaos)
{
    struct children children = children_of(chaos);
    size_t well = 0;
    unsigned in_pool[POOLS_MAX] = {0}, i;
    bool complete = true;

    each_entry(struct incarnation, incarnation, &chaos->fleet.incarnations, link) {
        if (!incarnation->gone && children.count < CHILDREN_MAX &&
            !contains(&children, incarnation->pid)) {
            incarnation->gone = true;
            if (!fleet_may_be_gone(chaos, incarnation))
                worker_violation(chaos, incarnation, "is gone without a reason");
        }
        if (incarnation->gone)
            continue;
        well++;
        /* In a shared pool an old one continues beside the new ones, for its sessions. */
        if (!is_old(chaos, incarnation) || chaos_binds(chaos))
            in_pool[incarnation->pool]++;
        complete = complete && (!is_old(chaos, incarnation) || clients_open(chaos) > 0);
        complete = complete && list_empty(&incarnation->open) &&
                   list_empty(&incarnation->questions);
    }
    for (i = 0; i < chaos->options.pools; i++)
        complete = complete && right_number(chaos, i, in_pool[i]);
    return complete && well == children.count;
}

static unsigned count(const struct list *list)
{
    struct list_node *node, *following;
    unsigned number = 0;

    list_each(list, node, following)
        number++;
    return number;
}

void fleet_note_all(struct chaos *chaos)
{
    each_entry(const struct incarnation, incarnation, &chaos->fleet.incarnations, link) {
        if (!incarnation->gone)
            note_event(chaos, "worker %ld: state %c, doom '%c', %u open requests, %u questions",
                       (long)incarnation->pid, proc_state(incarnation->pid),
                       incarnation->doomed != 0 ? incarnation->doomed : '-',
                       count(&incarnation->open), count(&incarnation->questions));
    }
}

void fleet_purge(struct chaos *chaos)
{
    each_entry(struct incarnation, incarnation, &chaos->fleet.incarnations, link) {
        if (incarnation->gone)
            forget(incarnation);
    }
}
