#include "build_config.h"

#include "fleet.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "chaos.h"
#include "proc.h"

#define CHILDREN_MAX 256
#define SUSPICION_MS (BACKPRESSURE_MS + 1500)

static struct incarnation *incarnation_of(struct list_node *node)
{
    return list_entry(node, struct incarnation, link);
}

void fleet_init(struct fleet *fleet)
{
    memset(fleet, 0, sizeof *fleet);
    list_init(&fleet->incarnations);
}

/* What was open there belongs to the ledger, and stays in it. */
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

void fleet_free(struct fleet *fleet)
{
    struct list_node *node, *following;

    list_each(&fleet->incarnations, node, following)
        forget(incarnation_of(node));
}

struct incarnation *fleet_find(const struct fleet *fleet, uint64_t origin)
{
    struct list_node *node, *following;

    list_each(&fleet->incarnations, node, following) {
        if (incarnation_of(node)->origin == origin)
            return incarnation_of(node);
    }
    return NULL;
}

bool fleet_has_pid(const struct fleet *fleet, pid_t pid)
{
    struct list_node *node, *following;

    list_each(&fleet->incarnations, node, following) {
        if (incarnation_of(node)->pid == pid && !incarnation_of(node)->gone)
            return true;
    }
    return false;
}

static unsigned healthy_in_pool(const struct chaos *chaos, uint8_t pool)
{
    struct list_node *node, *following;
    unsigned count = 0;

    list_each(&chaos->fleet.incarnations, node, following) {
        const struct incarnation *incarnation = incarnation_of(node);

        if (incarnation->pool == pool && !fleet_may_be_gone(chaos, incarnation))
            count++;
    }
    return count;
}

static bool was_killed_as_newborn(const struct fleet *fleet, pid_t pid)
{
    size_t i;

    for (i = 0; i < FLEET_NEWBORNS; i++) {
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
    incarnation->origin = hello->origin;
    incarnation->pid = (pid_t)hello->pid;
    incarnation->pool = hello->pool;
    incarnation->slot = incarnation->origin;
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
    chaos->fleet.last_doom_ms = chaos->now_ms;
}

void fleet_replaced(struct chaos *chaos, struct incarnation *before, struct incarnation *after)
{
    uint64_t slot = before->slot;
    struct list_node *node, *following;

    if (after->slot == slot)
        return;
    list_each(&chaos->fleet.incarnations, node, following) {
        struct incarnation *incarnation = incarnation_of(node);

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

bool fleet_client_left(const struct chaos *chaos, const struct incarnation *incarnation)
{
    if (!chaos_exclusive(chaos))
        return false;
    if (incarnation->client == 0) /* perhaps it left before anything came through */
        return chaos->phase != PHASE_CALM && chaos->phase != PHASE_QUIET;
    return !client_stays(client_find(chaos, incarnation->client));
}

bool fleet_may_be_gone(const struct chaos *chaos, const struct incarnation *incarnation)
{
    return incarnation->doomed != 0 || incarnation->left || incarnation->gone ||
           chaos->now_ms < incarnation->suspect_until_ms ||
           (incarnation->client != 0 && fleet_client_left(chaos, incarnation));
}

bool fleet_words_lost(const struct chaos *chaos, uint64_t origin)
{
    const struct incarnation *incarnation = fleet_find(&chaos->fleet, origin);

    return incarnation == NULL || incarnation->unclean ||
           (incarnation->gone && !incarnation->left);
}

/* --- torment --- */

/* True when the process is a child of the daemon's now: numbers are used again. */
static bool is_child(const struct chaos *chaos, pid_t pid)
{
    pid_t children[CHILDREN_MAX];
    size_t count = proc_children(chaos->subject.pid, children, CHILDREN_MAX), i;

    for (i = 0; i < count && i < CHILDREN_MAX; i++) {
        if (children[i] == pid)
            return true;
    }
    return false;
}

static struct incarnation *choose_victim(struct chaos *chaos)
{
    struct list_node *node, *following;
    struct incarnation *chosen = NULL;
    uint32_t count = 0;

    list_each(&chaos->fleet.incarnations, node, following) {
        struct incarnation *incarnation = incarnation_of(node);

        if (incarnation->gone || incarnation->left || incarnation->stopped_until_ms != 0)
            continue;
        if (dice_below(&chaos->dice, ++count) == 0)
            chosen = incarnation;
    }
    return chosen;
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
        fleet_doom(chaos, incarnation, 'K', true);
        chaos->stats.kills++;
        kill(incarnation->pid, SIGKILL);
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
        fleet_doom(chaos, incarnation, 'K', true);
        chaos->stats.kills++;
        kill(incarnation->pid, SIGKILL);
    }
}

/* One that has not said a word yet. */
static void kill_newborn(struct chaos *chaos)
{
    pid_t children[CHILDREN_MAX];
    size_t count = proc_children(chaos->subject.pid, children, CHILDREN_MAX), i;
    struct list_node *node, *following;

    for (i = 0; i < count && i < CHILDREN_MAX; i++) {
        bool known = false;

        list_each(&chaos->fleet.incarnations, node, following)
            known = known || incarnation_of(node)->pid == children[i];
        if (known)
            continue;
        note_event(chaos, "newborn %ld: SIGKILL", (long)children[i]);
        chaos->fleet.newborns_killed[chaos->fleet.newborns_killed_count++ % FLEET_NEWBORNS] =
            children[i];
        chaos->fleet.last_doom_ms = chaos->now_ms;
        chaos->fleet.dooms++;
        chaos->stats.kills++;
        kill(children[i], SIGKILL);
        return;
    }
}

static void continue_due(struct chaos *chaos, bool all)
{
    struct list_node *node, *following;

    list_each(&chaos->fleet.incarnations, node, following) {
        struct incarnation *incarnation = incarnation_of(node);

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

/* --- whether all is well --- */

static bool contains(const pid_t *pids, size_t count, pid_t pid)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (pids[i] == pid)
            return true;
    }
    return false;
}

size_t fleet_size(const struct chaos *chaos)
{
    pid_t children[CHILDREN_MAX];

    return proc_children(chaos->subject.pid, children, CHILDREN_MAX);
}

/* An exclusive pool has one worker for each client that has come to it, and the spare ones. What a
 * client has asked may have been refused before a worker got it. */
static bool right_number(const struct chaos *chaos, unsigned pool, unsigned count)
{
    unsigned least = LIMIT_SPARE, most = LIMIT_SPARE, all = chaos->options.workers;
    size_t i;

    if (!chaos_exclusive(chaos))
        return count == all;
    for (i = 0; i < CLIENTS_MAX; i++) {
        least += client_is_open(&chaos->clients[i]) && chaos->clients[i].bound[pool] != 0;
        most += client_is_open(&chaos->clients[i]) && chaos->clients[i].asked[pool];
    }
    return count >= (least < all ? least : all) && count <= (most < all ? most : all);
}

bool fleet_complete(struct chaos *chaos, bool nothing_open)
{
    pid_t children[CHILDREN_MAX];
    size_t count = proc_children(chaos->subject.pid, children, CHILDREN_MAX), well = 0;
    unsigned in_pool[POOLS_MAX] = {0}, i;
    struct list_node *node, *following;
    bool complete = true;

    list_each(&chaos->fleet.incarnations, node, following) {
        struct incarnation *incarnation = incarnation_of(node);

        if (!incarnation->gone && count < CHILDREN_MAX &&
            !contains(children, count, incarnation->pid)) {
            incarnation->gone = true;
            if (!fleet_may_be_gone(chaos, incarnation))
                violation(chaos, "worker %ld is gone without a reason", (long)incarnation->pid);
        }
        if (incarnation->gone)
            continue;
        well++;
        in_pool[incarnation->pool]++;
        if (nothing_open &&
            (!list_empty(&incarnation->open) || !list_empty(&incarnation->questions)))
            complete = false;
    }
    for (i = 0; i < chaos->options.pools; i++)
        complete = complete && right_number(chaos, i, in_pool[i]);
    return complete && well == count;
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
    struct list_node *node, *following;

    list_each(&chaos->fleet.incarnations, node, following) {
        const struct incarnation *incarnation = incarnation_of(node);

        if (!incarnation->gone)
            note_event(chaos, "worker %ld: state %c, doom '%c', %u open requests, %u questions",
                       (long)incarnation->pid, proc_state(incarnation->pid),
                       incarnation->doomed != 0 ? incarnation->doomed : '-',
                       count(&incarnation->open), count(&incarnation->questions));
    }
}

void fleet_purge(struct chaos *chaos)
{
    struct list_node *node, *following;

    list_each(&chaos->fleet.incarnations, node, following) {
        if (incarnation_of(node)->gone)
            forget(incarnation_of(node));
    }
}
