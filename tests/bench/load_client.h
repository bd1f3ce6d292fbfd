/* One client of the program under test: makes requests, checks each answer byte for byte. */
#ifndef TESTS_BENCH_LOAD_CLIENT_H
#define TESTS_BENCH_LOAD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"

struct client_options {
    unsigned window; /* requests in flight, at most */
    size_t payload;  /* bytes of text in each */
    bool plain;      /* no escapes in the text */
    bool framed;     /* by Content-Length, instead of lines */
    bool websocket;  /* or in frames of WebSocket, over a connection that was upgraded */
    bool session;    /* a session of its own */
    bool push;       /* its requests ask for notifications */
    size_t dribble;  /* bytes of one write, once the last were read; 0: no limit */
};

struct client {
    unsigned number;
    struct client_options options;
    int fd_in, fd_out; /* answers and requests; one number for a socket */
    bool wants_write;  /* fd_out does not take all output now */
    uint64_t next_id;
    unsigned in_flight;
    uint64_t *sent_ns; /* by id & slot_mask; 0: not in flight */
    size_t slot_mask;
    char *request_end, *answer_end; /* the text after the id */
    size_t request_end_len, answer_end_len;
    char *note_start; /* a notification up to its number */
    size_t note_start_len;
    char *out, *in;
    size_t out_start, out_end, out_capacity;
    size_t in_start, in_end, in_capacity;
    uint64_t notes;              /* notifications so far */
    struct histogram *latencies; /* NULL: not measured */
};

/* Monotonic, in nanoseconds. */
uint64_t clock_ns(void);

/* Makes both descriptors non-blocking. On any failure all functions here end the program with a
 * message on stderr and status 1. */
void client_open(struct client *client, unsigned number, const struct client_options *options,
                 int fd_in, int fd_out);

/* Makes a request, as if sent at `now_ns`; client_write sends it. False: the window is full. */
bool client_request(struct client *client, uint64_t now_ns);

/* Writes the requests made and sets wants_write. With `dribble` at most one piece. */
void client_write(struct client *client);

/* One read of at most `max` bytes. Returns the number of answers in it. */
unsigned client_read(struct client *client, size_t max);

#define CLIENT_READ_SIZE ((size_t)65536)

#endif
