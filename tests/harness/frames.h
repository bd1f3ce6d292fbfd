/* A client whose messages are framed by Content-Length (ADR-010). Waits fail the test as those of
 * client.h do. */
#ifndef TESTS_HARNESS_FRAMES_H
#define TESTS_HARNESS_FRAMES_H

#include "client.h"

/* Appends a frame with this body. */
void frames_add(struct text *to, const void *body, size_t len);

/* Sends a frame whose body is the text (printf, ' for "). */
void frames_send(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The body of the next frame, which must have the only head that the daemon writes; it lives until
 * the next call with this client. */
struct span frames_next(struct client *client);

/* The next frame must be this text (printf, ' for "). */
void frames_expect(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The next frame must be an answer with this raw id (' for ") and a result. Returns the result. */
struct span frames_result(struct client *client, const char *id);

/* The next frame must answer this raw id (' for ") with a result. Returns the result. */
void frames_error(struct client *client, const char *id, int code, const char *word);

/* Asks for an echo with this id and expects the answer. Returns the process that answered. */
long frames_pid(struct client *client, int id);

#endif
