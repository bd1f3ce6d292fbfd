/* Many clients with many requests in flight. Every answer is checked: it reaches the client that
 * asked, once, in order within its session, and with the right bytes. All clients use the ids 0, 1,
 * 2 and so on. */
#ifndef TESTS_HARNESS_LOAD_H
#define TESTS_HARNESS_LOAD_H

#include "client.h"

#define LOAD_SESSIONS 4 /* of each client; every other request belongs to one of them */

struct load_client {
    struct client *client;
    const struct load *load;
    unsigned number; /* of the client */
    unsigned asked, answered;
    unsigned next_in_session[LOAD_SESSIONS]; /* id whose answer must come next */
    unsigned char *seen;                     /* by id */
    struct text output;                      /* requests not yet written */
    size_t written;
    struct text expected;
};

struct load {
    unsigned clients, in_flight; /* in_flight: of each client */
    unsigned requests;           /* of each client */
    size_t size;                 /* of the text in a request; it varies with small ones */
    bool in_sessions;            /* false: no request has a session */
    const char *pool;            /* NULL: any */
    struct load_client *members;
};

/* Connects the clients, runs the load and closes them. */
void load_run(struct load *load, const struct daemon *daemon);

/* The same in steps. load_begin connects the clients. */
void load_begin(struct load *load, const struct daemon *daemon);

/* Sends requests and takes answers until every request is answered. */
void load_finish(struct load *load);

/* Writes requests as far as they are taken, and reads nothing, until none was taken for a while.
 * The length of that time does not matter to later checks. */
void load_push(struct load *load);

/* Closes the clients and frees everything. */
void load_end(struct load *load);

#endif
