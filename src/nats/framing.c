#include "build_config.h"

#include "nats/framing.h"

#include <string.h>

#include "nats/protocol.h"

enum { PART_LINE, PART_PAYLOAD };

static void reset(struct framing_state *state)
{
    state->begun = state->reported = state->cut = state->timed = false;
    state->part = PART_LINE;
    state->looked = 0;
    state->left = 0;
}

static enum frame_status malformed(struct framing_state *state, struct frame *frame,
                                   enum frame_fault fault, const char *problem)
{
    state->reported = true;
    *frame = (struct frame){.fault = fault, .problem = problem};
    return FRAME_MALFORMED;
}

/* The frame has state->left bytes, its last line end included. */
static enum frame_status payload(struct framing_state *state, struct slice input,
                                 struct frame *frame)
{
    size_t len = (size_t)state->left;

    if (input.len < len)
        return FRAME_WAIT;
    if (input.data[len - 1] != '\n' || (state->part == PART_PAYLOAD && input.data[len - 2] != '\r'))
        return malformed(state, frame, FRAME_FAULT_SYNTAX, "no line end after a payload");
    reset(state);
    frame->consumed = len;
    return FRAME_WHOLE;
}

static enum frame_status control_line(struct framing_state *state, struct slice input,
                                      struct frame *frame)
{
    const char *end = memchr(input.data + state->looked, '\n', input.len - state->looked);
    size_t len = end != NULL ? (size_t)(end - input.data) : input.len;
    struct nats_line line;
    const char *problem;

    state->begun = true;
    if (len > NATS_LINE_MAX)
        return malformed(state, frame, FRAME_FAULT_TOO_LONG, "a control line is too long");
    if (end == NULL) {
        state->looked = (uint32_t)len;
        return FRAME_WAIT;
    }
    state->left = len + 1;
    problem = nats_line_read(&line, slice_of(input.data, len - (len > 0 && end[-1] == '\r')));
    if (problem != NULL)
        return malformed(state, frame, FRAME_FAULT_SYNTAX, problem);
    if (line.kind == NATS_MSG || line.kind == NATS_HMSG) {
        if (line.len > state->max_body)
            return malformed(state, frame, FRAME_FAULT_TOO_LONG, "a payload is too long");
        state->left += line.len + 2;
        state->part = PART_PAYLOAD;
    }
    return payload(state, input, frame);
}

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    if (input.len == 0)
        return FRAME_WAIT;
    return state->part == PART_LINE ? control_line(state, input, frame)
                                    : payload(state, input, frame);
}

/* The owner frames what it sends. */
static size_t prefix(char to[FRAME_PREFIX_MAX], size_t body_len)
{
    (void)to;
    (void)body_len;
    return 0;
}

const struct framing framing_nats = {
    .name = "nats",
    .reset = reset,
    .next = next,
    .prefix = prefix,
};
