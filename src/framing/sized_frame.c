#include "build_config.h"

#include "framing/sized_frame.h"

#include "base/assert.h"

void sized_frame_reset(struct framing_state *state)
{
    *state = (struct framing_state){
        .check = state->check,
        .check_state = state->check_state,
        .max_body = state->max_body,
        .max_long = state->max_long,
        .wary = state->wary,
        .inner = state->inner,
        .reader = state->reader,
    };
}

void sized_frame_end(struct framing_state *state)
{
    bool leftover = state->leftover;

    sized_frame_reset(state);
    state->leftover = leftover;
}

static void skip_rest(struct framing_state *state)
{
    if (state->left == 0)
        sized_frame_end(state);
    else
        state->part = PART_SKIP;
}

enum frame_status sized_frame_refuse(struct framing_state *state, struct frame *frame,
                                     size_t consumed, enum frame_fault fault, const char *problem)
{
    frame->consumed = consumed;
    frame->fault = fault;
    frame->problem = problem;
    state->begun = state->reported = true;
    state->cut = false;
    skip_rest(state);
    return FRAME_REFUSED;
}

enum frame_status sized_frame_start_body(struct framing_state *state, struct frame *frame,
                                         size_t consumed)
{
    ASSERT(state->part == PART_HEAD);
    state->cut = state->max_long > 0 && state->left > state->max_long;
    if (state->max_long == 0 && state->left > state->max_body)
        return sized_frame_refuse(state, frame, consumed, FRAME_FAULT_TOO_LONG,
                                  "message exceeds max_input_buffer");
    frame->consumed = consumed;
    state->begun = true;
    state->part = PART_BODY;
    state->check->reset(state->check_state, true);
    return FRAME_SKIP;
}

size_t sized_frame_cut(struct framing_state *state, char *input, size_t len)
{
    size_t kept = state->check->cut(state->check_state, input, len);

    ASSERT(state->part == PART_BODY && len < state->left);
    state->left -= len - kept;
    state->cut = true;
    return kept;
}

enum frame_status sized_frame_skip(struct framing_state *state, struct slice input,
                                   struct frame *frame)
{
    size_t len = input.len < state->left ? input.len : (size_t)state->left;

    if (input.len == 0 && state->left > 0)
        return FRAME_WAIT;
    frame->consumed = len;
    state->left -= len;
    skip_rest(state);
    return FRAME_SKIP;
}

enum frame_status sized_frame_body(struct framing_state *state, struct slice input,
                                   struct frame *frame, bool *trailing)
{
    size_t len = input.len < state->left ? input.len : (size_t)state->left;
    enum body_status status = state->check->run(state->check_state, slice_of(input.data, len),
                                                frame);

    *trailing = status == BODY_TRAILING;
    if (status == BODY_MORE) {
        if (len < state->left)
            return FRAME_WAIT;
        status = state->check->end(state->check_state, frame);
    }
    if (status != BODY_WHOLE) {
        /* A length that is too small cuts the body; its rest comes where a head should. */
        state->leftover = frame->consumed == state->left;
        state->left -= frame->consumed;
        return sized_frame_refuse(state, frame, frame->consumed, FRAME_FAULT_SYNTAX,
                                  frame->problem);
    }
    if (state->cut)
        state->check->mark(state->check_state, true);
    frame->consumed = len;
    sized_frame_end(state);
    state->leftover = false;
    return FRAME_WHOLE;
}
