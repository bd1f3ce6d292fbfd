#include "build_config.h"

#include "format/framed.h"

#define LENGTH_BYTES 4

/* Each byte is done with at once, so that a length is never cut by whatever drops the input. */
static enum frame_status head(struct framing_state *state, struct slice input, struct frame *frame)
{
    size_t len = 0;

    if (input.len == 0)
        return FRAME_WAIT;
    for (; len < input.len && state->looked < LENGTH_BYTES; len++, state->looked++)
        state->left = state->left << 8 | (unsigned char)input.data[len];
    state->begun = true;
    frame->consumed = len;
    if (state->looked < LENGTH_BYTES)
        return FRAME_SKIP;
    if (!state->excused)
        return framed_head_over(state, frame, len);
    state->excused = state->begun = false;
    state->part = PART_SKIP;
    return FRAME_SKIP;
}

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    enum frame_status status;

    switch (state->part) {
    case PART_HEAD:
        return head(state, input, frame);
    case PART_BODY:
        status = framed_body(state, input, frame);
        state->excused = false; /* the length is all there is to go by */
        return status;
    default:
        return framed_skip(state, input, frame);
    }
}

/* What is still to come cannot be told from a new frame but by its length. */
static void give_up(struct framing_state *state, size_t dropped)
{
    state->begun = state->timed = false;
    if (state->part == PART_HEAD) {
        state->excused = true;
    } else {
        state->left -= dropped;
        state->part = PART_SKIP;
    }
}

static size_t prefix(char to[FRAME_PREFIX_MAX], size_t body_len)
{
    size_t i;

    for (i = 0; i < LENGTH_BYTES; i++)
        to[i] = (char)(body_len >> 8 * (LENGTH_BYTES - 1 - i) & 0xFF);
    return LENGTH_BYTES;
}

const struct framing framing_length = {
    .name = "length",
    .reset = framed_reset,
    .next = next,
    .give_up = give_up,
    .prefix = prefix,
};
