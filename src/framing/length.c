#include "build_config.h"

#include "framing/sized_frame.h"

#define LENGTH_BYTES 4

/* Consumes each byte at once: input that is dropped never contains a part of a length. */
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
    if (!state->leftover)
        return sized_frame_start_body(state, frame, len);
    state->leftover = state->begun = false;
    state->part = PART_SKIP;
    return FRAME_SKIP;
}

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    enum frame_status status;
    bool trailing;

    switch (state->part) {
    case PART_HEAD:
        return head(state, input, frame);
    case PART_BODY:
        status = sized_frame_body(state, input, frame, &trailing);
        state->leftover = false; /* a head is taken at its word: nothing marks the next one */
        return status;
    default:
        return sized_frame_skip(state, input, frame);
    }
}

/* The rest of the frame differs from a new frame by its length only. */
static void give_up(struct framing_state *state, size_t dropped)
{
    state->begun = state->timed = state->cut = false;
    if (state->part == PART_HEAD) {
        state->leftover = true;
    } else {
        state->left -= dropped;
        state->part = PART_SKIP;
    }
}

static size_t prefix(char to[FRAME_PREFIX_MAX], size_t body_len)
{
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        to[i] = (char)(body_len >> 8 * (LENGTH_BYTES - 1 - i) & 0xFF);
    return LENGTH_BYTES;
}

const struct framing framing_length = {
    .name = "length",
    .reset = sized_frame_reset,
    .next = next,
    .give_up = give_up,
    .cut = sized_frame_cut,
    .prefix = prefix,
};
