#include "build_config.h"

#include <string.h>
#include <sys/socket.h>

#include "chaos.h"
#include "chaos_client.h"

#define OUT_CROWDED ((size_t)256 << 10)
#define OUT_FLOODED ((size_t)2 << 20)
#define MESSAGES_PER_TICK 8

/* --- profiles --- */

static enum ending throw_ending(struct dice *dice)
{
    static const enum ending endings[] = {
        ENDING_NONE,    ENDING_NONE,     ENDING_NONE,     ENDING_ORDERLY,  ENDING_ORDERLY,
        ENDING_VANISH,  ENDING_VANISH,   ENDING_HALF,     ENDING_HALF,     ENDING_RESET,
        ENDING_MIDLINE, ENDING_BAD_LINE, ENDING_BAD_LINE, ENDING_OVERSIZE, ENDING_HALF_MIDLINE,
    };

    enum ending ending = endings[dice_below(dice, sizeof endings / sizeof endings[0])];

    if (wire_framing != WIRE_LINES && (ending == ENDING_BAD_LINE || ending == ENDING_OVERSIZE))
        return ENDING_HALF; /* a bad frame ends nothing */
    return ending;
}

static enum reading throw_reading(struct chaos *chaos)
{
    if (!dice_chance(&chaos->dice, chaos->mood.loose))
        return READING_FAST;
    return dice_chance(&chaos->dice, 600) ? READING_SLOWLY : READING_NEVER;
}

void mood_throw(struct chaos *chaos)
{
    static const unsigned loose[] = {0, 0, 20, 60, 200};
    static const unsigned small_ids[] = {0, 0, 300, 700, 1000};
    static const uint32_t times_ms[] = {100, 300, 600, 600, 1500, 20000};
    static const uint32_t pauses_ms[] = {3, 10, 10, 50};
    struct dice *dice = &chaos->dice;

    chaos->mood.loose = loose[dice_below(dice, 5)];
    chaos->mood.small_ids = small_ids[dice_below(dice, 5)];
    chaos->mood.torment_ms = times_ms[dice_below(dice, 6)];
    chaos->mood.harm_ms = times_ms[dice_below(dice, 6)];
    chaos->mood.pause_ms = pauses_ms[dice_below(dice, 4)];
    note_event(chaos, "mood: loose %u, small ids %u, pause %u, torment %u, harm %u",
               chaos->mood.loose, chaos->mood.small_ids, chaos->mood.pause_ms,
               chaos->mood.torment_ms, chaos->mood.harm_ms);
}

void profile_throw(struct chaos *chaos, struct profile *profile)
{
    static const enum replying replying[] = {REPLYING_SOON, REPLYING_SOON, REPLYING_LATE,
                                             REPLYING_NEVER};
    struct dice *dice = &chaos->dice;

    *profile = (struct profile){.reading = throw_reading(chaos)};
    profile->loose = profile->reading != READING_FAST;
    profile->replying = replying[dice_below(dice, 4)];
    profile->ending = profile->loose ? ENDING_NONE : throw_ending(dice);
    profile->dribbles = dice_chance(dice, 80);
    profile->floods = !profile->dribbles && dice_chance(dice, 60);
    profile->repeats_ids = dice_chance(dice, 80);
    profile->small_ids = dice_chance(dice, 300) ? 0 : chaos->mood.small_ids;
    profile->window = profile->floods ? 150 : dice_between(dice, 1, 30);
    profile->own_sessions = dice_below(dice, 4);
    profile->pause_ms = profile->floods ? 0 : dice_below(dice, chaos->mood.pause_ms);
    profile->life_ms = dice_between(dice, 20, 3000);
    if (profile->loose)
        profile->life_ms += 3000;
}

void profile_calm(struct chaos *chaos, struct profile *profile)
{
    *profile = (struct profile){.calm = true, .small_ids = 700};
    profile->window = dice_between(&chaos->dice, 1, 8);
    profile->own_sessions = dice_below(&chaos->dice, 3);
    profile->pause_ms = dice_between(&chaos->dice, 2, 30);
}

/* --- the end of a connection --- */

static void end_connection(struct chaos *chaos, struct client *client)
{
    if (client->profile.ending == ENDING_NONE && !client->profile.loose)
        return;
    client->silent = true;
    switch (client->profile.ending) {
    case ENDING_ORDERLY:
        if (client->in_flight_count == 0 && client->reply_count == 0 && client->out.len == 0)
            client_close(chaos, client, false);
        return;
    case ENDING_NONE:
    case ENDING_VANISH:
    case ENDING_RESET:
        client_close(chaos, client, client->profile.ending == ENDING_RESET);
        return;
    case ENDING_MIDLINE:
    case ENDING_HALF_MIDLINE:
        client_say_half(chaos, client);
        client->close_after = client->profile.ending == ENDING_MIDLINE;
        break;
    case ENDING_BAD_LINE:
        client_say_bad(chaos, client);
        break;
    case ENDING_OVERSIZE:
        client_say_oversize(chaos, client);
        break;
    case ENDING_HALF:
        break;
    }
    client_begin_going(client);
}

/* Continues an end that has begun. */
static void finish_ending(struct chaos *chaos, struct client *client)
{
    enum ending ending = client->profile.ending;

    if (client->out.len > 0)
        return;
    if (client->close_after) {
        client_close(chaos, client, false);
    } else if ((ending == ENDING_HALF || ending == ENDING_HALF_MIDLINE) && !client->shut) {
        client->shut = true;
        shutdown(client->fd, SHUT_WR);
    }
}

/* Each of its messages may wait until a worker of an exclusive pool is free. */
static bool may_be_held(const struct chaos *chaos, const struct client *client)
{
    for (unsigned i = 0; i < chaos->options.pools && chaos_exclusive(chaos); i++) {
        if (client->asked[i] && client->bound[i] == 0)
            return true;
    }
    return false;
}

void client_settle(struct chaos *chaos, struct client *client)
{
    static const enum ending endings[] = {ENDING_ORDERLY, ENDING_HALF, ENDING_VANISH, ENDING_NONE,
                                          ENDING_NONE};

    /* Its messages may wait; or its worker closed stdin, which only a further message shows. */
    if (chaos_exclusive(chaos) && client_is_open(client) && client->going)
        client_close(chaos, client, false);
    if (!client_is_open(client) || client->going)
        return;
    if (client->profile.loose) {
        if (dice_chance(&chaos->dice, 500))
            client_close(chaos, client, false);
        else
            client->profile.ending = ENDING_VANISH;
        client->ends_ms = chaos->now_ms + dice_between(&chaos->dice, 0, 1500);
        return;
    }
    client->profile.ending = may_be_held(chaos, client) ? ENDING_VANISH
                                                        : endings[dice_below(&chaos->dice, 5)];
    client_say_last(chaos, client);
    client->ends_ms = chaos->now_ms + dice_between(&chaos->dice, 0, 300);
}

/* --- a connection's life --- */

static bool may_say(const struct chaos *chaos, const struct client *client)
{
    size_t pending = client->out.len - client->out_at;

    return !client->silent && !client->going && chaos->now_ms >= client->next_say_ms &&
           pending < (client->profile.floods ? OUT_FLOODED : OUT_CROWDED);
}

static void reply_due(struct chaos *chaos, struct client *client)
{
    size_t i = 0;

    while (i < client->reply_count) {
        if (client->replies[i].due_ms <= chaos->now_ms ||
            (chaos->phase != PHASE_STORM && client->replies[i].due_ms > chaos->now_ms + 100)) {
            client_say_reply(chaos, client, &client->replies[i]);
            client->replies[i] = client->replies[--client->reply_count];
        } else {
            i++;
        }
    }
}

static void talk(struct chaos *chaos, struct client *client)
{
    int count = client->profile.floods ? MESSAGES_PER_TICK : 1;

    while (count-- > 0 && may_say(chaos, client)) {
        client_say(chaos, client);
        if (client->profile.pause_ms > 0)
            client->next_say_ms = chaos->now_ms +
                                  dice_between(&chaos->dice, 0, client->profile.pause_ms);
    }
}

/* A free slot: a new client may connect. */
static void tick_closed(struct chaos *chaos, struct client *client)
{
    struct profile profile;

    if (chaos->now_ms < client->next_say_ms)
        return;
    if (chaos->phase == PHASE_STORM)
        profile_throw(chaos, &profile);
    else if (client->profile.visits && chaos->patience.visits)
        siege_visitor(chaos, &profile);
    else
        return;
    client_open(chaos, client, &profile);
}

void client_tick(struct chaos *chaos, struct client *client)
{
    bool ends = chaos->phase == PHASE_STORM || chaos->phase == PHASE_SETTLE ||
                chaos->phase == PHASE_SIEGE;

    if (!client_is_open(client)) {
        tick_closed(chaos, client);
        return;
    }
    if (!client->going)
        reply_due(chaos, client);
    else
        client->reply_count = 0;
    if (chaos->phase == PHASE_STORM || chaos_calm(chaos))
        talk(chaos, client);
    if (ends && !client->going && chaos->now_ms >= client->ends_ms)
        end_connection(chaos, client);
    if (client_is_open(client) && client->going)
        finish_ending(chaos, client);
}
