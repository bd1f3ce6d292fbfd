#include "build_config.h"

#include "siege.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos.h"
#include "deadline.h"
#include "proc.h"

#define REGULARS 4
#define VISITORS 3
#define EXCLUSIVE_REGULARS 2

/* A client that waits this long is stalled; less is the noise of a busy machine. */
#define STALL_MS 250
#define STEP_MS 20 /* of a longer step this program itself was held up */
#define MARGIN_MS 1500
#define WORK_SHARE 10 /* of a siege the workers' own work for hostile clients may delay others */
#define ROUNDS_OF_POISON 5 /* a request waits for an id that is poisoned again and again */

/* The memory of the daemon beyond max_memory: the C library's, and what is not counted as a buffer
 * (tables, connections). */
#define MEMORY_SLACK_KIB (12L << 10)

static bool besieged(const struct chaos *chaos)
{
    return chaos->phase == PHASE_SIEGE;
}

/* Its ids are its own: it never waits for an id of another client. */
static bool has_own_ids(const struct client *client)
{
    return client->profile.small_ids == 0;
}

/* New connections of an origin that was cut for not reading begin to be served slowly. */
static bool is_of_hostile_origin(const struct chaos *chaos, const struct client *client)
{
    return client->profile.visits && !chaos->origins;
}

static int64_t stretched(int64_t ms)
{
    return (int64_t)((double)ms * timeout_factor());
}

/* --- the clients --- */

void siege_visitor(struct chaos *chaos, struct profile *profile)
{
    *profile = (struct profile){.calm = true, .visits = true, .ending = ENDING_ORDERLY};
    profile->window = dice_between(&chaos->dice, 1, 3);
    profile->own_sessions = 2;
    profile->pause_ms = dice_between(&chaos->dice, 2, 30);
    profile->life_ms = dice_between(&chaos->dice, 50, 1000);
}

static void regular(struct chaos *chaos, struct profile *profile, unsigned number)
{
    profile_calm(chaos, profile);
    if (number % 2 == 0)
        profile->small_ids = 0;
}

static void invite(struct chaos *chaos)
{
    unsigned regulars = chaos_exclusive(chaos) ? EXCLUSIVE_REGULARS : REGULARS;
    unsigned number = 0;
    struct profile profile;

    each_client(client, chaos) {
        client->profile.visits = false;
        if (number < regulars)
            regular(chaos, &profile, number);
        else
            siege_visitor(chaos, &profile);
        if (number++ < regulars + VISITORS)
            client_open(chaos, client, &profile);
    }
}

/* The first siege has all wanted kinds, each later one about half of them. */
static unsigned throw_kinds(struct chaos *chaos)
{
    unsigned wanted = chaos->options.hostile, kinds = 0;

    if (chaos->stats.rounds == 0)
        return wanted;
    while (kinds == 0)
        kinds = wanted & dice_below(&chaos->dice, 1u << HOSTILE_KINDS);
    return kinds;
}

void siege_begin(struct chaos *chaos)
{
    struct patience *patience = &chaos->patience;
    unsigned kinds = throw_kinds(chaos);

    for (unsigned kind = 0; kind < HOSTILE_KINDS; kind++) {
        if ((kinds >> kind & 1) != 0)
            note_event(chaos, "hostile: %s", hostile_words[kind]);
    }
    memset(patience->stalled_ms, 0, sizeof patience->stalled_ms);
    patience->begun_ms = patience->last_ms = chaos->now_ms;
    patience->visits = true;
    invite(chaos);
    horde_gather(chaos, kinds);
}

void siege_fade(struct chaos *chaos)
{
    chaos->patience.visits = false;
    each_client(client, chaos)
        client->silent = true;
}

/* --- waiting --- */

static void count_wait(struct patience *patience, int64_t waited_ms)
{
    size_t index = waited_ms < SIEGE_WAITS ? (size_t)waited_ms : SIEGE_WAITS - 1;

    patience->waits[index]++;
    patience->count++;
}

/* How long an id is taken after its client has closed; over TCP that is not noticed at once. */
static int64_t poisoned_ms(const struct chaos *chaos)
{
    return (SIEGE_ABANDONED_SEC + (chaos->options.tcp ? SIEGE_HALF_CLOSE_SEC : 0)) * 1000;
}

void siege_answered(struct chaos *chaos, const struct client *client, const struct entry *request)
{
    int64_t waited_ms = chaos->now_ms - request->sent_ms;
    int64_t limit_ms = SIEGE_SLOW_SEC * 1000 + MARGIN_MS;

    if (!besieged(chaos))
        return;
    count_wait(&chaos->patience, waited_ms);
    if (!has_own_ids(client))
        limit_ms += ROUNDS_OF_POISON * poisoned_ms(chaos);
    if (waited_ms > stretched(limit_ms))
        client_violation(chaos, client, "waited %" PRId64 " ms for the answer to request %llu%s",
                         waited_ms, request->serial.number,
                         has_own_ids(client) ? "" : ", whose id others use");
}

static bool is_stalled(const struct chaos *chaos, const struct client *client)
{
    const struct list_node *oldest = client->in_flight.head.next;

    return client_is_open(client) && !list_empty(&client->in_flight) &&
           chaos->now_ms - list_entry(oldest, struct entry, in_flight)->sent_ms >
               stretched(STALL_MS);
}

void siege_step(struct chaos *chaos)
{
    struct patience *patience = &chaos->patience;
    int64_t step_ms = chaos->now_ms - patience->last_ms;
    long kib;

    if (!besieged(chaos))
        return;
    patience->last_ms = chaos->now_ms;
    each_client(client, chaos) {
        if (has_own_ids(client) && !is_of_hostile_origin(chaos, client) &&
            is_stalled(chaos, client))
            patience->stalled_ms[client - chaos->clients] += step_ms < STEP_MS ? step_ms : STEP_MS;
    }
    if (chaos->now_ms < chaos->next_look_ms)
        return;
    kib = subject_read_rss(chaos);
    if (kib > patience->peak_kib)
        patience->peak_kib = kib;
}

static void check_stalls(struct chaos *chaos)
{
    struct patience *patience = &chaos->patience;
    int64_t siege_ms = chaos->now_ms - patience->begun_ms, most_ms = 0;
    int64_t limit_ms = SIEGE_SLOW_SEC * 1000 + MARGIN_MS + siege_ms / WORK_SHARE;

    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (patience->stalled_ms[i] > most_ms)
            most_ms = patience->stalled_ms[i];
    }
    note_event(chaos, "stalled for %" PRId64 " ms at most", most_ms);
    if (most_ms > patience->most_stalled_ms)
        patience->most_stalled_ms = most_ms;
    if (most_ms > stretched(limit_ms))
        violation(chaos, "an honest client was stalled for %" PRId64 " ms of a siege of %" PRId64,
                  most_ms, siege_ms);
}

static void check_memory(struct chaos *chaos)
{
    long limit_kib = chaos->baseline_rss + (SIEGE_MEMORY >> 10) + MEMORY_SLACK_KIB;

    note_event(chaos, "memory: %ld KiB at most", chaos->patience.peak_kib);
    if (chaos->patience.peak_kib > limit_kib)
        violation(chaos, "the daemon's memory is %ld KiB in a siege, %ld are allowed",
                  chaos->patience.peak_kib, limit_kib);
}

void siege_end(struct chaos *chaos)
{
    check_stalls(chaos);
    check_memory(chaos);
    horde_leave(chaos);
}

/* --- the summary --- */

/* The waiting that this many of a thousand answers did not exceed. */
static unsigned percentile(const struct patience *patience, unsigned per_thousand)
{
    unsigned long long left = patience->count * per_thousand / 1000;
    unsigned ms = 0;

    while (ms < SIEGE_WAITS - 1 && left > patience->waits[ms])
        left -= patience->waits[ms++];
    return ms;
}

void siege_print(const struct chaos *chaos)
{
    const struct patience *patience = &chaos->patience;

    printf("hostile: %llu connections, %llu requests; the daemon had %ld KiB at most\n"
           "honest: %llu answers, waited %u ms in the middle, 99 %% up to %u ms, all up to %u ms; "
           "one was stalled for %" PRId64 " ms of a siege\n",
           chaos->horde.connections, chaos->horde.requests, patience->peak_kib, patience->count,
           percentile(patience, 500), percentile(patience, 990), percentile(patience, 1000),
           patience->most_stalled_ms);
}
