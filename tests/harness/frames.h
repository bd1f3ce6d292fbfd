/* A client whose messages are framed by Content-Length (ADR-010); rules as in client.h. */
#ifndef TESTS_HARNESS_FRAMES_H
#define TESTS_HARNESS_FRAMES_H

#include "client.h"

/* A daemon whose clients, and a pool whose workers, are framed so. */
#define FRAMED .arguments = {"--framing", "content-length"}
#define FRAMED_POOL(keys)                                                                          \
    "{'id':'pool','command':'@WORKER@','instances':1,'framing':'content-length',"                  \
    "'args':['--framing','content-length']" keys "}"

enum { PARSE_ERROR = -32700, INVALID = -32600 };

/* Connects, and shows a good frame: after that, wrong ones do not end the connection. */
struct client *frames_connect(const struct daemon *daemon);

/* Appends a frame with this body. */
void frames_add(struct text *to, const void *body, size_t len);

/* Sends a frame whose body is the text (printf). */
void frames_send(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The body of the next frame, whose head must have the one form that the daemon writes. It lives
 * until the next call with this client. */
struct span frames_next(struct client *client);

/* The next frame must be this text (printf). */
void frames_expect(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* As client_result and client_error. */
struct span frames_result(struct client *client, const char *id);
void frames_error(struct client *client, const char *id, int code, const char *word);

/* Asks for an echo. Returns the process that answered. */
long frames_pid(struct client *client, int id);

#endif
