/* MCP's handshake in a chaos run: a client sends initialize to a pool before anything else, then
 * notifications/initialized, and now and then logging/setLevel. Each process must see one handshake
 * before all other messages, also one that took the place of another. These messages have no header
 * and no entry in the ledger. */
#ifndef TESTS_CHAOS_HANDSHAKE_H
#define TESTS_CHAOS_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger.h"
#include "wire.h"

struct chaos;
struct client;
struct incarnation;
struct record;

/* The levels of log messages; 0: none was set. */
#define HANDSHAKE_LEVELS 6
static const char *const handshake_levels[HANDSHAKE_LEVELS] = {"",       "debug",   "info",
                                                               "notice", "warning", "error"};

/* Of a client, in a pool. */
struct greeting {
    bool answered;       /* initialize */
    bool confirmed;      /* by notifications/initialized: further messages may follow */
    bool open;           /* its last request has no answer */
    uint8_t level, asks; /* the process has, or gets; 0: none, or that request is initialize */
    unsigned requests, initializes;
    unsigned seen;        /* initialize of this client, by processes of the pool */
    struct entry request; /* the open one */
};

/* Clients and processes of this run have a handshake. */
bool handshake_wanted(const struct chaos *chaos);

/* --- the client --- */

/* Returns whether the client may send other messages to the pool, now. Else sends a message of the
 * handshake, unless an answer has to come first. */
bool handshake_ready(struct chaos *chaos, struct client *client, unsigned pool);

/* Checks an answer of the handshake, or a notification after one was repeated. Returns false if the
 * line is neither. */
bool handshake_take_line(struct chaos *chaos, struct client *client, const char *line, size_t len);

/* The open request of the handshake with this key, or NULL; it got an error. */
struct greeting *handshake_find(struct client *client, const char *key);
void handshake_refused(struct greeting *greeting, bool kept);

/* No answer and no notification is missing. */
bool handshake_settled(const struct chaos *chaos, const struct client *client);

/* --- the process --- */

enum handshake_letter {
    HANDSHAKE_ASKED = 'i',    /* initialize */
    HANDSHAKE_LISTED = 'l',   /* tools/list, of the daemon itself, in a lazy pool */
    HANDSHAKE_CONFIRMED = 'n' /* notifications/initialized; otherwise logging/setLevel */
};

/* In a worker (worker_handshake.c): reads a message of the handshake and answers it. *record: for
 * the journal. Returns false if the line is none. */
bool handshake_answer(struct text *out, struct record *record, const char *line, size_t len);

/* A process has got such a message. */
void handshake_seen(struct chaos *chaos, struct incarnation *worker, const struct record *record);

/* A process has got another message. */
void handshake_check(struct chaos *chaos, struct incarnation *worker, const struct entry *entry);

#endif
