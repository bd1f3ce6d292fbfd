#include "build_config.h"

#include "framing/frame.h"

enum { PART_LINE, PART_SKIPPED_LINE };

static void reset(struct framing_state *state)
{
    state->begun = state->cut = false;
    state->part = PART_LINE;
    state->check->reset(state->check_state, false);
}

static enum frame_status skip_line(struct framing_state *state, struct slice input,
                                   struct frame *frame)
{
    const char *newline = input.len > 0 ? memchr(input.data, '\n', input.len) : NULL;

    frame->consumed = newline != NULL ? (size_t)(newline - input.data) + 1 : input.len;
    if (newline != NULL)
        state->part = PART_LINE;
    return input.len > 0 ? FRAME_SKIP : FRAME_MORE;
}

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    if (state->part == PART_SKIPPED_LINE)
        return skip_line(state, input, frame);
    switch (state->check->run(state->check_state, input, frame)) {
    case BODY_MORE:
        return FRAME_MORE;
    case BODY_WHOLE:
        if (state->cut)
            state->check->mark(state->check_state, true);
        state->cut = false;
        return FRAME_WHOLE;
    case BODY_BLANK:
        state->cut = false;
        return FRAME_SKIP;
    default:
        frame->fault = FRAME_FAULT_SYNTAX;
        return FRAME_MALFORMED;
    }
}

static void give_up(struct framing_state *state, size_t dropped)
{
    (void)dropped;
    reset(state);
    state->part = PART_SKIPPED_LINE;
}

static size_t cut(struct framing_state *state, char *input, size_t len)
{
    state->cut = true;
    return state->check->cut(state->check_state, input, len);
}

const struct framing framing_ndjson = {
    .name = "ndjson",
    .reset = reset,
    .next = next,
    .give_up = give_up,
    .cut = cut,
};
