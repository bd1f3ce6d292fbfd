/* Hostile clients: each tries to starve the honest ones in one way. Their messages are unknown to
 * the ledger, and no honest client may get an answer to them. */
#ifndef TESTS_CHAOS_HOSTILE_H
#define TESTS_CHAOS_HOSTILE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

struct chaos;

enum hostile_kind {
    HOSTILE_CLOSE,     /* closes its connection, with requests that are never answered */
    HOSTILE_STALL,     /* asks for large answers and reads none; when cut, connects again */
    HOSTILE_HOARD,     /* takes all connections, requests, sessions and processes that it can get */
    HOSTILE_POISON,    /* leaves requests with the small ids of all clients, never answered */
    HOSTILE_ODD_ID,    /* uses numbers as ids that workers cannot give back as they were */
    HOSTILE_BIG,       /* sends the largest messages, and stops in the middle of most */
    HOSTILE_SUBSCRIBE, /* subscribes to as many resources as it can, and leaves them behind */
    HOSTILE_FLOOD,     /* many connections with ordinary requests for the workers of one pool */
    HOSTILE_UNFETCHED, /* sessions of HTTP whose answers are kept and never fetched */
    HOSTILE_KINDS
};

/* The words of the option --hostile, in this order. */
extern const char *const hostile_words[];

#define HOSTILE_MAX 280
#define HOSTILE_SESSION_MAX 64

struct hostile { /* a slot: one connection after the other */
    int fd;      /* -1: not connected */
    enum hostile_kind kind;
    struct text out;
    size_t out_at;          /* written so far */
    unsigned asked;         /* requests of this connection */
    bool leaves;            /* closes once all is written */
    int64_t next_ms;        /* of its next act, or connection */
    int64_t ends_ms;        /* of this connection */
    unsigned long long got; /* bytes */
    /* HOSTILE_UNFETCHED: */
    struct text in;                    /* the head of the answer to initialize */
    char session[HOSTILE_SESSION_MAX]; /* its id; "": none */
    unsigned uses;                     /* requests in the session */
};

struct horde {
    struct hostile members[HOSTILE_MAX];
    size_t count;
    unsigned long long connections, requests;
};

/* Fills the slots with members of these kinds; bit k: kind k. None is connected yet. */
void horde_gather(struct chaos *chaos, unsigned kinds);

/* Closes all connections; no member comes back. */
void horde_leave(struct chaos *chaos);

/* Fills a member's element each; returns their number. */
size_t horde_poll(const struct chaos *chaos, struct pollfd fds[HOSTILE_MAX]);

/* Handles the events, and lets each member act. */
void horde_step(struct chaos *chaos, const struct pollfd fds[HOSTILE_MAX]);

/* --- hostile_acts.c --- */

/* Has just connected. */
void hostile_arrive(struct chaos *chaos, struct hostile *hostile);

/* A member of HOSTILE_UNFETCHED has read more of its `in`. False: there will be no session. */
bool hostile_read(struct hostile *hostile);

/* Its next act is due. */
void hostile_act(struct chaos *chaos, struct hostile *hostile);

/* The number of members of this kind. */
size_t hostile_number(const struct chaos *chaos, enum hostile_kind kind);

/* Milliseconds until a member connects again. */
int64_t hostile_pause_ms(struct chaos *chaos, enum hostile_kind kind);

#endif
