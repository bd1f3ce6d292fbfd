/* A body that is an array of messages (JSON-RPC 2.0, 6): judged as a whole before the first member
 * is given. */
#ifndef STDIO_BUS_FRAMING_BATCH_H
#define STDIO_BUS_FRAMING_BATCH_H

#include "framing/frame.h"

/* Zeroed: before the first byte. */
struct batch_reader {
    size_t checked;     /* bytes of the body before the current member */
    unsigned char part; /* what comes next */
};

enum batch_status { BATCH_MORE, BATCH_WHOLE, BATCH_BAD };

/* Whether the body is an array. `decided`: false while it is white space. */
bool batch_begins(struct slice body, bool *decided);

/* Continues with a body that is an array, of which `body` is here; `is_over`: all of it. BATCH_BAD
 * with frame->problem, and frame->consumed as the wrong byte: not an array of at least one object,
 * each of which `state->check` accepts. */
enum batch_status batch_check(struct batch_reader *reader, const struct framing_state *state,
                              struct slice body, bool is_over, struct frame *frame);

/* How many bytes precede the next member of a whole batch; all of them: there is none. */
size_t batch_gap(struct slice body);

/* The length of the member at the start of `body`. state->check has read it then. */
size_t batch_member(const struct framing_state *state, struct slice body);

#endif
