/* A client of a chaos run: one of a fixed number of places, each with one connection after the
 * other, every one with manners of its own. */
#ifndef TESTS_CHAOS_CHAOS_CLIENT_H
#define TESTS_CHAOS_CHAOS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "ledger.h"
#include "text.h"
#include "wire.h"

struct chaos;

enum reading {
    READING_FAST,
    READING_SLOWLY,
    READING_NEVER
};

enum replying {
    REPLYING_SOON,
    REPLYING_LATE,
    REPLYING_NEVER /* not before the storm is over */
};

/* How a connection comes to its end. */
enum ending {
    ENDING_NONE,         /* it lasts as long as the storm */
    ENDING_ORDERLY,      /* closes when all is answered */
    ENDING_VANISH,       /* closes, with answers on the way */
    ENDING_RESET,        /* the same, with a reset on TCP */
    ENDING_MIDLINE,      /* closes in the middle of a line */
    ENDING_HALF,         /* shuts down its sending side and waits for the answers */
    ENDING_HALF_MIDLINE, /* the same in the middle of a line, which is dropped */
    ENDING_BAD_LINE,     /* sends what is not acceptable */
    ENDING_OVERSIZE,     /* sends a line that is too long */
    ENDINGS
};

struct profile {
    enum reading reading;
    enum replying replying;
    enum ending ending;
    bool calm;
    bool dribbles;        /* writes a few bytes at a time */
    bool floods;
    bool repeats_ids;     /* uses ids of its own that are in flight */
    bool loose;           /* the daemon may close it: it does not read as it should */
    unsigned small_ids;   /* per thousand */
    unsigned window;      /* requests in flight */
    unsigned own_sessions;
    uint32_t pause_ms;    /* between two messages, at most */
    uint32_t life_ms;
};

#define CLIENT_SESSIONS_NAMED 12 /* by itself */
#define CLIENT_SESSIONS_MAX 80
#define POOLS_MAX 6

struct reply { /* that it owes */
    struct serial question;
    char key[WIRE_KEY_MAX];
    char raw_id[WIRE_KEY_MAX + 16];
    int64_t due_ms;
};

struct client {
    int fd; /* -1: not connected */
    uint64_t conn;
    struct profile profile;
    struct text in, out, frame;
    size_t out_at; /* written so far */
    struct list in_flight, given_up; /* requests; the latter may be answered yet, or not */
    size_t in_flight_count;
    struct session *sessions[CLIENT_SESSIONS_MAX];
    size_t session_count;
    struct reply *replies;
    size_t reply_count, reply_room;
    uint64_t lines; /* received */
    bool asked[POOLS_MAX];     /* it has sent something to this pool */
    uint64_t bound[POOLS_MAX]; /* the worker there that it is bound to; 0: not known */
    int64_t opened_ms, ends_ms, next_say_ms, next_write_ms, next_read_ms;
    bool going;        /* has begun to end: it owns nothing for certain any more */
    bool silent;       /* says nothing new */
    bool shut;         /* has shut down its sending side */
    bool close_after;  /* closes once everything is written */
    bool turned_away;  /* was told that there are too many connections */
    int wanted_code;   /* of the error that its unacceptable line must bring; 0: none */
    const char *wanted_text;
    bool rejected;     /* it came */
    unsigned bad_frames; /* each brings an error, and the connection goes on */
    unsigned odd_frames; /* each may bring one */
};

/* --- chaos_client.c: the connection --- */

void client_init(struct client *client);
void client_free(struct client *client);

/* Connects, with these manners. */
void client_open(struct chaos *chaos, struct client *client, const struct profile *profile);

/* Closes without a word. */
void client_close(struct chaos *chaos, struct client *client, bool reset);

/* From now on nobody can tell when the daemon will give up its sessions. */
void client_begin_going(struct client *client);

/* The client with this connection, or NULL when that is closed. */
const struct client *client_find(const struct chaos *chaos, uint64_t conn);

/* It is there and will get what is for it: nothing has begun that could end it. */
bool client_stays(const struct client *client);

bool client_wants_read(const struct chaos *chaos, const struct client *client);
bool client_wants_write(const struct chaos *chaos, const struct client *client);
void client_read(struct chaos *chaos, struct client *client);
void client_write(struct chaos *chaos, struct client *client);

/* Nothing of it is on its way: all written, all answered. */
bool client_settled(const struct client *client);

static inline bool client_is_open(const struct client *client)
{
    return client->fd >= 0;
}

/* --- client_life.c: what it does when --- */

/* What the next storm is to be like, and one client in it. */
void mood_throw(struct chaos *chaos);
void profile_throw(struct chaos *chaos, struct profile *profile);
void profile_calm(struct chaos *chaos, struct profile *profile);
void client_tick(struct chaos *chaos, struct client *client);

/* The storm is over: it stops what it does, and perhaps goes. */
void client_settle(struct chaos *chaos, struct client *client);

/* --- client_talk.c: what it says --- */

void client_say(struct chaos *chaos, struct client *client);
void client_say_reply(struct chaos *chaos, struct client *client, const struct reply *reply);
/* Requests to where it has asked: once they are answered, nothing that it said is on its way. */
void client_say_last(struct chaos *chaos, struct client *client);

/* An answer has told it of a session. */
void client_learn(struct chaos *chaos, struct client *client, const char *name);

void client_say_half(struct chaos *chaos, struct client *client);

/* A line that the daemon must refuse, and something behind it that it must not look at. */
void client_say_bad(struct chaos *chaos, struct client *client);
void client_say_oversize(struct chaos *chaos, struct client *client);

/* --- check_down.c: what it gets --- */

/* A line has arrived: is it meant for this client, and as it was sent? */
void check_line(struct chaos *chaos, struct client *client, const char *line, size_t len);

/* The daemon has closed the connection: had it a reason to? */
void check_ended(struct chaos *chaos, const struct client *client, int error);

#endif
