/* The messages of a chaos run. Each is one line of JSON in one of many spellings, with a header:
 *
 *     "chaos":"KIND SERIAL REF KEY SESSION ORDERS SUM"
 *
 * SERIAL is unique in the run; SUM is a checksum over all bytes of the line. */
#ifndef TESTS_CHAOS_WIRE_H
#define TESTS_CHAOS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/pool_mode.h"
#include "dice.h"
#include "text.h"

/* Origin 0: the clients; any other is a worker process. The number counts its messages. */
struct serial {
    unsigned long long origin, number;
};

enum wire_kind {
    WIRE_REQUEST = 'r',  /* client: a request */
    WIRE_NOTE = 'n',     /* client: a notification */
    WIRE_REPLY = 'p',    /* client: answers the question `ref` */
    WIRE_STRAY = 'y',    /* client: a reply to no question */
    WIRE_CANCEL = 'k',   /* client: cancels its request `ref` */
    WIRE_ANSWER = 'a',   /* worker: answers the request `ref` */
    WIRE_EVENT = 'e',    /* worker: a notification in a session */
    WIRE_QUESTION = 'q', /* worker: a request to the session's owner */
    WIRE_PROGRESS = 'o', /* worker: progress of the request `ref` */
    WIRE_NOWHERE = 'x',  /* worker: a message that must not reach any client */
    WIRE_HOSTILE = 'h',  /* hostile client: a request */
    WIRE_SPOIL = 'H'     /* worker: answers it */
};

enum wire_framing { WIRE_LINES, WIRE_CONTENT_LENGTH, WIRE_LENGTH };
extern const char *const wire_framing_words[];

/* Set once, at the start of either program. */
extern enum wire_framing wire_framing; /* of all clients, or of this worker */
extern bool wire_bridged;              /* a side is framed: no message has a carriage return, which
                                     * would become a blank */
extern bool wire_ids_rewritten;        /* the daemon rewrites ids and tokens: sums omit them */
extern bool wire_renumbers;            /* it does so with a question whose id is still that of a
                                     * question of the process before: their sums omit it */
extern bool wire_session_in_params;    /* sessions are named by params.sessionId */
extern bool wire_stateless;            /* clients are of MCP's stateless era, and say so */
extern bool wire_cancels_for_good;     /* "notifications/cancelled", which gets no answer; else
                                     * "$/cancel_request" */

#define WIRE_KEY_MAX 144
#define WIRE_NAME_MAX 24
#define WIRE_ORDERS_MAX 96
#define WIRE_TOKEN_MAX 160

struct wire_header {
    char kind;
    struct serial serial, ref;
    char key[WIRE_KEY_MAX];       /* the id: "n5" is the number 5, "s5" the string; "": none */
    char session[WIRE_NAME_MAX];  /* "": none */
    char orders[WIRE_ORDERS_MAX]; /* for the worker; "": none */
    /* Outside the "chaos" header, as spelled in the line: */
    char raw_id[WIRE_KEY_MAX + 16]; /* the id; "": none, or a random spelling of the key */
    char token[WIRE_TOKEN_MAX];     /* progress token, or id of a cancelled request; "": none */
};

/* Appends a line of about `size` bytes in a random spelling to `out`. `pool`: its member "pool", or
 * "". Returns the offset of the line. */
size_t wire_compose(struct text *out, const struct wire_header *header, const char *pool,
                    size_t size, struct dice *dice);

/* Whether a mode's ids pass unchanged, but for questions of processes that replace others. */
static inline bool wire_mode_renumbers(const struct pool_mode *mode)
{
    return mode->on_exit == EXIT_REPLAYS && !mode->rewrite_ids;
}

/* Reads the header of a line. False: the line has none. */
bool wire_parse(struct wire_header *header, const char *line, size_t len);

/* True if the checksum of the line matches its bytes. */
bool wire_sum_ok(const char *line, size_t len);

/* Replaces WIRE_NO_SUM in a composed line by the checksum. */
#define WIRE_NO_SUM "0000000000000000"
void wire_enter_sum(char *line, size_t len);

/* Frames the line from `start` to the end of `out`; no change if wire_framing is WIRE_LINES. */
void wire_frame(struct text *out, size_t start);
void wire_add_frame(struct text *out, const char *body, size_t len);

struct wire_input {
    struct text bytes;      /* received; callers append */
    size_t taken, searched; /* bytes of complete messages, bytes without a newline after those */
    struct text frame;
};

/* Takes the next complete message, as a line with its newline; it lives until the next call.
 * False: there is none, and `bytes` holds the beginning of the next message only. */
bool wire_next(struct wire_input *input, const char **line, size_t *len);

/* Accounts for `len` bytes written from out->data + *at; the memory of written bytes is reused. */
void wire_written(struct text *out, size_t *at, size_t len);

uint64_t wire_hash(const void *bytes, size_t len);

/* The hash of a line without its holes. *counted: the number of bytes hashed. */
uint64_t wire_line_hash(const char *line, size_t len, size_t *counted);

/* The values that the daemon replaces (id, token), in order of position; empty: none. */
#define WIRE_HOLES 2
struct wire_hole {
    size_t start, end;
};
void wire_find_holes(struct wire_hole holes[WIRE_HOLES], const char *line, size_t len);

/* The hash of a part of the line without its holes. */
uint64_t wire_part_hash(const char *line, size_t from, size_t to,
                        const struct wire_hole holes[WIRE_HOLES]);

/* The id of a line as spelled; "": none, or the daemon does not replace it. */
void wire_raw_id(char *to, size_t size, const char *line, size_t len);

/* The token of a line as spelled (header.token); "": none. */
void wire_token(char to[WIRE_TOKEN_MAX], const char *line, size_t len);

uint64_t wire_key_hash(const char *key);

/* Reads a cancellation made by the daemon: the id as spelled. */
bool wire_parse_cancel(char id[WIRE_TOKEN_MAX], const char *line, size_t len);

/* An error response made by the daemon. */
struct wire_error {
    char key[WIRE_KEY_MAX]; /* as in the header; "": null */
    int code;
    char text[160];
};

/* Reads an error response; false if it has not exactly the form of doc/protocol.md. */
bool wire_parse_error(struct wire_error *error, const char *line, size_t len);

#endif
