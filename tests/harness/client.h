/* A client of the daemon: sends lines, reads lines. Every wait has a deadline; a wait that fails,
 * fails the test. Clients are closed at the test's end. In texts and raw values that a test passes
 * ' stands for ". */
#ifndef TESTS_HARNESS_CLIENT_H
#define TESTS_HARNESS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon.h"
#include "json.h"
#include "text.h"

#define DIED "worker exited before answering" /* the daemon's error for a request to that worker */

struct client {
    int in, out; /* the same descriptor for a socket; -1: closed */
    struct text input;
    size_t consumed; /* bytes of input that were given out */
    bool broken;     /* the daemon reads no more; later bytes are thrown away */
    bool eof;        /* the daemon closed its side, or the connection was reset */
    struct client *next;
};

/* Ends the sending side of all clients on sockets, so that a daemon that is told to stop waits for
 * none of them. They can still read. */
void clients_finish(void);

/* Connects to the daemon's socket. */
struct client *client_connect(const struct daemon *daemon);

/* The same with receive and send buffers as small as the system makes them. */
struct client *client_connect_small(const struct daemon *daemon);

/* Tries to connect; NULL with errno set when the connection is refused. */
struct client *client_try_connect(const struct daemon *daemon);

/* Tries to connect to a daemon on TCP from this address of the machine. NULL with errno set when
 * the machine does not have it. */
struct client *client_try_connect_from(const struct daemon *daemon, const char *address);

/* Takes over the pipes of a daemon in stdio mode. */
struct client *client_stdio(struct daemon *daemon);

/* Takes over descriptors that are there already. */
struct client *client_adopt(int in, int out);

/* Sends text (printf) and a newline. */
void client_send(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sends bytes as they are; in pieces of `chunk` bytes. */
void client_send_bytes(struct client *client, const void *bytes, size_t len);
void client_send_chunks(struct client *client, const void *bytes, size_t len, size_t chunk);

/* Sends as much as is taken without waiting. Returns that number of bytes. */
size_t client_offer(struct client *client, const void *bytes, size_t len);

/* Sends {"jsonrpc":"2.0","id":ID,"sessionId":SESSION,"method":METHOD,"params":PARAMS}; id and
 * params are raw JSON, session is a plain word; each but method may be NULL: left out. */
void client_request(struct client *client, const char *id, const char *session, const char *method,
                    const char *params);

/* Sends `count` requests for the method plain, with ids and params from 0; session may be NULL. */
void client_send_plain(struct client *client, const char *session, int count);

/* The next lines must be the answers to these, in their order. */
void client_expect_plain(struct client *client, const char *session, int count);

/* The next line without its newline; it lives until the next call with this client. */
struct span client_line(struct client *client);

/* True when a whole line is there or comes before `deadline`; false at the end or deadline. */
bool client_line_before(struct client *client, int64_t deadline, struct span *line);

/* Takes in more bytes after those in `input`; false at the end or deadline. */
bool client_read_before(struct client *client, int64_t deadline);

/* The next line must be an answer with this raw id and a result. Returns the result. */
struct span client_result(struct client *client, const char *id);

/* The next line must be the daemon's own error line for this raw id. `word` must be in its
 * message. */
void client_error(struct client *client, const char *id, int code, const char *word);

/* client_request and client_result. */
struct span client_ask(struct client *client, const char *id, const char *session,
                       const char *method, const char *params);

/* Asks for an echo. Returns the process that answered. */
long client_pid(struct client *client, const char *id, const char *session);

/* A request for the method die, which must get the error of a worker's exit. */
void client_crash(struct client *client, const char *id, const char *session, const char *params);

/* Asks until `count` workers have answered and puts their processes into `pids`: from then on all
 * of them are known to run. */
void client_meet_workers(struct client *client, size_t count, long *pids);

/* Waits until that many workers run and no client is connected. Returns the number of descriptors
 * that the daemon has then. */
int client_settled_fds(const struct daemon *daemon, size_t workers);

/* The next line must be this text (printf). */
void client_expect(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The next line must be the test worker's notification number `n` to the session, without pad. */
void client_expect_note(struct client *client, const char *session, int n);

/* Nothing more may come but the end; then the client sends nothing more either. */
void client_expect_eof(struct client *client);

/* Fails the test unless no other line came up to now: asks for an echo with an id of its own; the
 * answer must be the very next line. */
void client_expect_quiet(struct client *client);

/* The value at a path of `value` must be this raw JSON. */
void expect_member(struct span value, const char *path, const char *raw);

/* Shuts down the sending side. */
void client_half_close(struct client *client);

/* Closes with a reset (TCP) or at once. */
void client_abort(struct client *client);

void client_close(struct client *client);

/* Ends the only client of a daemon in stdio mode: the end of input must be answered by the end of
 * output, and the daemon must exit with 0. */
void client_finish(struct client *client, struct daemon *daemon);

/* Expectations of a message, shared by clients of lines and clients of frames. */
void message_expect(struct span message, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
struct span message_result(struct span message, const char *id);
void message_error(struct span message, const char *id, int code, const char *word);

#endif
