/* A connection to the control socket of a daemon. It blocks, for a bounded time. */
#ifndef STDIO_BUS_CLI_CONTROL_LINK_H
#define STDIO_BUS_CLI_CONTROL_LINK_H

#include <stdbool.h>

#include "base/slice.h"
#include "json/document.h"

#define CONTROL_LINK_REASON_MAX 512
#define EXIT_NO_DAEMON 69 /* it is not there, or did not answer */

/* Zeroed but for fd -1: closed. */
struct control_link {
    int fd;
    char *in;
    size_t start, len, capacity;
    struct document reply; /* the last one */
    int answer_ms;         /* for which an answer is awaited; 0: as usual */
    char reason[CONTROL_LINK_REASON_MAX];
};

/* False with the reason. */
bool control_link_open(struct control_link *link, const char *path);
void control_link_close(struct control_link *link);

/* Sends bytes. False with the reason. */
bool control_link_send(struct control_link *link, struct slice bytes);

/* Reads a line; it lives until the next call. timeout_ms -1: waits for ever. False with the
 * reason; the reason is "" where the daemon has ended the connection. */
bool control_link_read(struct control_link *link, struct slice *line, int timeout_ms);

/* Takes a descriptor over, which may be non-blocking. */
void control_link_adopt(struct control_link *link, int fd);

/* Reads more into link->in, behind the `len` bytes at `start`. False with the reason, which is ""
 * at the end of the connection. until_ms: as of clock_now_ms; -1: waits for ever. */
bool control_link_fill(struct control_link *link, int64_t until_ms);

/* Sends a request, of which `params` is the object or NULL, and reads its answer. Returns the
 * result, which lives until the next call; NULL with the reason. */
const struct json_value *control_link_ask(struct control_link *link, const char *method,
                                          const char *params, struct slice *line);

/* The result in the line of an answer, as it came. */
struct slice control_link_result(struct slice line);

#endif
