/* The messages that clients and workers of a chaos run exchange. Each is one line of JSON in one of
 * many spellings, and carries a header:
 *
 *     "chaos":"KIND SERIAL REF KEY SESSION ORDERS SUM"
 *
 * with a serial that no other message has, and a checksum over all bytes of the line. */
#ifndef TESTS_CHAOS_WIRE_H
#define TESTS_CHAOS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dice.h"
#include "text.h"

/* Who made a message (0: the clients' side; else a worker's process) and which of its it is. */
struct serial {
    uint64_t origin, number;
};

enum wire_kind {
    WIRE_REQUEST = 'r',   /* client: a request */
    WIRE_NOTE = 'n',      /* client: a notification */
    WIRE_REPLY = 'p',     /* client: answers the question `ref` */
    WIRE_STRAY = 'y',     /* client: a reply that nobody waits for */
    WIRE_CANCEL = 'k',    /* client: gives up its request `ref` */
    WIRE_ANSWER = 'a',    /* worker: answers the request `ref` */
    WIRE_EVENT = 'e',     /* worker: a notification in a session */
    WIRE_QUESTION = 'q',  /* worker: a request to the session's owner */
    WIRE_PROGRESS = 'o',  /* worker: how far the request `ref` is */
    WIRE_NOWHERE = 'x'    /* worker: what must not reach anybody */
};

/* Set at the start where the daemon rewrites ids and tokens: sums and hashes leave them out. */
extern bool wire_ids_rewritten;

/* Likewise, where sessions are told by params.sessionId. */
extern bool wire_session_in_params;

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
    char raw_id[WIRE_KEY_MAX + 16]; /* no part of the header: the id as it is, or is to be, spelled;
                                     * "": none, or spelled as the dice want */
    char token[WIRE_TOKEN_MAX]; /* no part of it either, as it is spelled: the progress token of a
                                 * request, or that progress is about; the id that is given up;
                                 * "": none */
};

/* How a request is given up: "notifications/cancelled", to which there is no answer, or else
 * "$/cancel_request". Set at the start. */
extern bool wire_cancels_for_good;


/* Appends the line to `out`, about `size` bytes long, spelled as the dice want. `pool`: "" or the
 * pool to ask for. Returns where in `out` the line starts. */
size_t wire_compose(struct text *out, const struct wire_header *header, const char *pool,
                    size_t size, struct dice *dice);

/* Reads the header of a line. False: it has none. */
bool wire_parse(struct wire_header *header, const char *line, size_t len);

/* True when the checksum in the line is that of its bytes. */
bool wire_sum_ok(const char *line, size_t len);

/* Puts the checksum where a composed line has WIRE_NO_SUM. */
#define WIRE_NO_SUM "0000000000000000"
void wire_enter_sum(char *line, size_t len);

/* How messages are marked on our side: of all clients, or of a worker. Set at the start. */
enum wire_framing { WIRE_LINES, WIRE_CONTENT_LENGTH, WIRE_LENGTH };
extern enum wire_framing wire_framing;
extern const char *const wire_framing_words[];

/* Some side is not of lines: then no message has a carriage return, which would become a blank. */
extern bool wire_bridged;

/* The line from `start` to the end becomes a frame, unless lines are wanted. */
void wire_frame(struct text *out, size_t start);
void wire_add_frame(struct text *out, const char *body, size_t len);

/* Takes the first frame, with a newline behind it, as a line. Returns its bytes; 0: it is not whole
 * yet. */
size_t wire_unframe(struct text *line, const char *bytes, size_t len);

uint64_t wire_hash(const void *bytes, size_t len);

/* Of a whole line. *counted: how many of its bytes that are. */
uint64_t wire_line_hash(const char *line, size_t len, size_t *counted);

/* Where the values are that the daemon replaces, in their order: the id, a token. All are empty
 * where there are none, or where ids are not rewritten. */
#define WIRE_HOLES 2
struct wire_hole {
    size_t start, end;
};
void wire_find_holes(struct wire_hole holes[WIRE_HOLES], const char *line, size_t len);

/* The hash of a part of the line without them. */
uint64_t wire_part_hash(const char *line, size_t from, size_t to,
                        const struct wire_hole holes[WIRE_HOLES]);

/* The id of a line as it is spelled; "" where there is none, or where ids are not rewritten. */
void wire_raw_id(char *to, size_t size, const char *line, size_t len);

/* The token of a line as it is spelled (header.token); "" where there is none. */
void wire_token(char to[WIRE_TOKEN_MAX], const char *line, size_t len);
uint64_t wire_key_hash(const char *key);

/* Reads a cancellation of the daemon's: the id, as it is spelled. */
bool wire_parse_cancel(char id[WIRE_TOKEN_MAX], const char *line, size_t len);

/* A line of the daemon's own. */
struct wire_error {
    char key[WIRE_KEY_MAX]; /* as in the header; "": null */
    int code;
    char text[160];
};

/* Reads an error line, which must have exactly the form of doc/protocol.md. */
bool wire_parse_error(struct wire_error *error, const char *line, size_t len);

#endif
