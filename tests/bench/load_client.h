/* One client of the program under test: makes requests, checks each answer byte for byte. */
#ifndef TESTS_BENCH_LOAD_CLIENT_H
#define TESTS_BENCH_LOAD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"

struct client_options {
    unsigned window;  /* requests in flight, at most */
    size_t payload;   /* bytes of text in each */
    bool plain;       /* no escapes in the text */
    bool framed;      /* by Content-Length, instead of lines */
    bool session;     /* a session of its own */
    bool push;        /* its requests ask for notifications */
    size_t dribble;   /* bytes of one write, each when the one before was read; 0: all there is */
};

struct client {
    unsigned number;
    struct client_options options;
    int fd_in, fd_out; /* answers and requests; one number for a socket */
    bool wants_write;  /* there is more to write than fd_out takes now */
    uint64_t next_id;
    unsigned in_flight;
    uint64_t *sent_ns; /* by id & slot_mask; 0: not in flight */
    size_t slot_mask;
    char *request_end, *answer_end; /* what follows the id */
    size_t request_end_len, answer_end_len;
    char *note_start; /* a notification up to its number */
    size_t note_start_len;
    char *out, *in;
    size_t out_start, out_end, out_capacity;
    size_t in_start, in_end, in_capacity;
    uint64_t notes; /* notifications so far */
    struct histogram *latencies; /* NULL: nothing is measured now */
};

/* Monotonic, in nanoseconds. */
uint64_t clock_ns(void);

/* Both descriptors become non-blocking. Ends the program when memory is out, as all do here when
 * anything goes wrong: a message on stderr, status 1. */
void client_open(struct client *client, unsigned number, const struct client_options *options,
                 int fd_in, int fd_out);

/* Makes a request if the window has room for one, as if it had been sent at `now_ns`. Returns
 * false when not. client_write sends it. */
bool client_request(struct client *client, uint64_t now_ns);

/* Writes what was made and sets wants_write. With `dribble` at most one piece. */
void client_write(struct client *client);

/* One read of at most `max` bytes. Returns the number of answers that came with it. */
unsigned client_read(struct client *client, size_t max);

#define CLIENT_READ_SIZE ((size_t)65536)

#endif
