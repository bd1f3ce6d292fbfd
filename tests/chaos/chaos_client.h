/* A client of a chaos run: a fixed slot, with one connection after the other. Each connection has
 * its own random profile. */
#ifndef TESTS_CHAOS_CHAOS_CLIENT_H
#define TESTS_CHAOS_CHAOS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "handshake.h"
#include "ledger.h"
#include "text.h"
#include "wire.h"

struct chaos;

enum reading { READING_FAST, READING_SLOWLY, READING_NEVER };

enum replying {
    REPLYING_SOON,
    REPLYING_LATE,
    REPLYING_NEVER /* until the storm is over */
};

/* The end of a connection. */
enum ending {
    ENDING_NONE,         /* lasts as long as the storm */
    ENDING_ORDERLY,      /* closes once all requests are answered */
    ENDING_VANISH,       /* closes, with answers in flight */
    ENDING_RESET,        /* the same, with a reset on TCP */
    ENDING_MIDLINE,      /* closes in the middle of a line */
    ENDING_HALF,         /* shuts down its sending side and waits for the answers */
    ENDING_HALF_MIDLINE, /* the same in the middle of a line, which is dropped */
    ENDING_BAD_LINE,     /* sends an unacceptable line */
    ENDING_OVERSIZE      /* sends a line that is too long */
};

struct profile {
    enum reading reading;
    enum replying replying;
    enum ending ending;
    bool calm;
    bool visits;   /* stays for a few requests, and sends no other messages */
    bool dribbles; /* writes a few bytes at a time */
    bool floods;
    bool repeats_ids;   /* reuses its own ids that are in flight */
    bool loose;         /* reads too little: the daemon may close it */
    unsigned small_ids; /* per thousand */
    unsigned window;    /* requests in flight */
    unsigned own_sessions;
    uint32_t pause_ms; /* at most, between two messages */
    uint32_t life_ms;
};

#define CLIENTS_MAX 36
#define CLIENT_SESSIONS_NAMED 12 /* names of its own choice */
#define CLIENT_SESSIONS_MAX 80
#define POOLS_MAX 6

struct reply { /* owed to a worker */
    struct serial question;
    char key[WIRE_KEY_MAX];
    char raw_id[WIRE_KEY_MAX + 16];
    int64_t due_ms;
};

struct client {
    int fd; /* -1: not connected */
    unsigned long long conn;
    struct profile profile;
    struct wire_input in;
    struct text out;
    size_t out_at;                   /* written so far */
    struct list in_flight, given_up; /* requests; those given up may get an answer or not */
    size_t in_flight_count;
    struct session *sessions[CLIENT_SESSIONS_MAX];
    size_t session_count;
    struct reply *replies;
    size_t reply_count, reply_room;
    unsigned long long lines;            /* received */
    bool asked[POOLS_MAX];               /* has sent a message to this pool */
    unsigned long long bound[POOLS_MAX]; /* its worker in this pool; 0: unknown */
    struct greeting greetings[POOLS_MAX];
    unsigned changes; /* notifications/tools/list_changed that it got */
    int64_t opened_ms, ends_ms, next_say_ms, next_write_ms, next_read_ms;
    bool going;       /* has begun to end: its sessions and bindings are uncertain */
    bool silent;      /* sends no new messages */
    bool shut;        /* has shut down its sending side */
    bool close_after; /* closes once all is written */
    bool turned_away; /* got the error for too many connections */
    int wanted_code;  /* of the error for its unacceptable line; 0: none */
    const char *wanted_text;
    bool rejected;       /* got that error */
    bool known;          /* its first frame was good: a bad one does not end the connection */
    unsigned bad_frames; /* each gets an error, and the connection continues */
    unsigned odd_frames; /* each may get one */
};

/* --- chaos_client.c: the connection --- */

void client_init(struct client *client);

/* Connects, with this profile. */
void client_open(struct chaos *chaos, struct client *client, const struct profile *profile);

/* Closes at once. */
void client_close(struct chaos *chaos, struct client *client, bool reset);

/* From now on the daemon may give up its sessions at any time. */
void client_begin_going(struct client *client);

/* The number of open connections. */
unsigned clients_open(const struct chaos *chaos);

/* The client with this connection, or NULL if it is closed. */
struct client *client_find(const struct chaos *chaos, unsigned long long conn);

/* The connection is open, and nothing has begun that could end it. Visitors never stay. */
bool client_stays(const struct chaos *chaos, unsigned long long conn);

bool client_wants_read(const struct chaos *chaos, const struct client *client);
bool client_wants_write(const struct chaos *chaos, const struct client *client);
void client_read(struct chaos *chaos, struct client *client);
void client_write(struct chaos *chaos, struct client *client);

/* All its output is written, and all its requests are answered. */
bool client_settled(const struct client *client);

static inline bool client_is_open(const struct client *client)
{
    return client->fd >= 0;
}

/* --- client_life.c: its acts --- */

/* The character of the next storm, and of one client in it. */
void mood_throw(struct chaos *chaos);
void profile_throw(struct chaos *chaos, struct profile *profile);
void profile_calm(struct chaos *chaos, struct profile *profile);
void client_tick(struct chaos *chaos, struct client *client);

/* The storm is over: the client does no more harm, and may go. */
void client_settle(struct chaos *chaos, struct client *client);

/* --- client_talk.c: its messages --- */

void client_say(struct chaos *chaos, struct client *client);
void client_say_reply(struct chaos *chaos, struct client *client, const struct reply *reply);
/* One request to each pool that it has asked: after their answers nothing of it is in flight. */
void client_say_last(struct chaos *chaos, struct client *client);

/* An answer has named a session to it. */
void client_use_named(struct chaos *chaos, struct client *client, const char *name);

void client_say_half(struct chaos *chaos, struct client *client);

/* A line that the daemon must refuse, and a message after it that it must not read. */
void client_say_bad(struct chaos *chaos, struct client *client);
void client_say_oversize(struct chaos *chaos, struct client *client);

/* --- check_down.c: the messages that it receives --- */

/* Checks that a line is for this client, and as it was sent. */
void check_line(struct chaos *chaos, struct client *client, const char *line, size_t len);

/* Checks that the daemon had a reason to close the connection. */
void check_ended(struct chaos *chaos, const struct client *client, int error);

#endif
