/* A client of the daemon: sends lines, reads lines. Every wait has a deadline; a wait that fails,
 * fails the test. */
#ifndef TESTS_HARNESS_CLIENT_H
#define TESTS_HARNESS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon.h"
#include "json.h"
#include "text.h"

struct client {
    int in, out;      /* the same descriptor for a socket; -1: closed */
    struct text input;
    size_t consumed;  /* bytes of input that were given out */
    bool broken;      /* what we write does not arrive any more; it is thrown away */
    bool eof;         /* the daemon closed its side, or the connection was reset */
};

/* Connects to the daemon's socket. */
void client_connect(struct client *client, const struct daemon *daemon);

/* The same with receive and send buffers as small as the system makes them. */
void client_connect_small(struct client *client, const struct daemon *daemon);

/* Tries to connect; false with errno set when it is refused. */
bool client_try_connect(struct client *client, const struct daemon *daemon);

/* Takes over the pipes of a daemon in stdio mode. */
void client_stdio(struct client *client, struct daemon *daemon);

/* Takes over descriptors that are there already. */
void client_adopt(struct client *client, int in, int out);

/* Sends text (printf) and a newline; every ' in it becomes ". */
void client_send(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sends bytes as they are; in pieces of `chunk` bytes. */
void client_send_bytes(struct client *client, const void *bytes, size_t len);
void client_send_chunks(struct client *client, const void *bytes, size_t len, size_t chunk);

/* Sends as much as is taken without waiting. Returns how much that is. */
size_t client_offer(struct client *client, const void *bytes, size_t len);

/* Sends {"jsonrpc":"2.0","id":ID,"sessionId":SESSION,"method":METHOD,"params":PARAMS}; id and
 * params are raw JSON (' for "), session is a plain word; each but method may be NULL: left out. */
void client_request(struct client *client, const char *id, const char *session,
                    const char *method, const char *params);

/* The next line without its newline; it lives until the next call with this client. */
struct span client_line(struct client *client);

/* True when a whole line is there or comes before `deadline`; false at the end or deadline. */
bool client_line_before(struct client *client, int64_t deadline, struct span *line);

/* Takes in more bytes behind those in `input`; false at the end or deadline. */
bool client_read_before(struct client *client, int64_t deadline);

/* The next line must be an answer with this raw id (' for ") and a result. Returns the result. */
struct span client_result(struct client *client, const char *id);

/* The next line must be the daemon's own error line for this raw id. `word` must be in its
 * message. */
void client_error(struct client *client, const char *id, int code, const char *word);

/* client_request and client_result. */
struct span client_ask(struct client *client, const char *id, const char *session,
                       const char *method, const char *params);

/* Asks for an echo; returns the process that answered. */
long client_pid(struct client *client, const char *id, const char *session);

/* Asks until `count` workers have answered and puts their processes into `pids`: from then on all
 * of them are known to run. */
void client_meet_workers(struct client *client, size_t count, long *pids);

/* Waits until so many workers run and no client is connected. Returns how many descriptors the
 * daemon has then. */
int client_settled_fds(const struct daemon *daemon, size_t workers);

/* The next line must be this text (printf, ' for "). */
void client_expect(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Nothing more may come but the end. */
void client_expect_eof(struct client *client);

/* Everything that was sent to us before this moment is here when this returns: asks for an echo
 * with an id of its own; its answer must be the very next line. */
void client_expect_quiet(struct client *client);

/* Shuts down the sending side. */
void client_half_close(struct client *client);

/* Closes with a reset (TCP) or at once. */
void client_abort(struct client *client);

void client_close(struct client *client);

#endif
