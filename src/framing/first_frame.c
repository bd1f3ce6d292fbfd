#include "build_config.h"

#include "framing/first_frame.h"

#include "framing/foreign.h"

static void reset(struct framing_state *state)
{
    state->inner->reset(state);
    state->looked_at_start = false;
}

static enum frame_status malformed(struct frame *frame, enum frame_fault fault, const char *problem)
{
    frame->fault = fault;
    frame->problem = problem;
    return FRAME_MALFORMED;
}

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    enum frame_status status;

    if (!state->looked_at_start) {
        switch (foreign_start(input)) {
        case FOREIGN_HTTP:
            return malformed(frame, FRAME_FAULT_FOREIGN, FOREIGN_HTTP_TEXT);
        case FOREIGN_TLS:
            return malformed(frame, FRAME_FAULT_FOREIGN, FOREIGN_TLS_TEXT);
        case FOREIGN_MAYBE:
            state->begun = input.len > 0 && state->inner->prefix != NULL;
            return FRAME_WAIT;
        case FOREIGN_NO:
            state->looked_at_start = true;
        }
    }
    status = state->inner->next(state, input, frame);
    return status == FRAME_REFUSED ? FRAME_MALFORMED : status;
}

const struct framing framing_first_frame = {
    .name = "first frame",
    .reset = reset,
    .next = next,
};
