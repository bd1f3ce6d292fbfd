#include "build_config.h"

#include "format/framed.h"

#include <string.h>

void framed_reset(struct framing_state *state)
{
    size_t max_body = state->max_body;

    memset(state, 0, sizeof *state);
    state->max_body = max_body;
}

void framed_over(struct framing_state *state)
{
    state->begun = state->told = state->timed = false;
    state->part = PART_HEAD;
    state->line = 0;
    state->has_length = state->wrong_type = false;
    state->headers = 0;
    state->left = 0;
    state->looked = state->line_start = 0;
}

static void skip_rest(struct framing_state *state)
{
    if (state->left == 0)
        framed_over(state);
    else
        state->part = PART_SKIP;
}

enum frame_status framed_refuse(struct framing_state *state, struct frame *frame, size_t consumed,
                                int code, const char *problem)
{
    frame->consumed = consumed;
    frame->code = code;
    frame->problem = problem;
    state->begun = state->told = true;
    skip_rest(state);
    return FRAME_REFUSED;
}

enum frame_status framed_head_over(struct framing_state *state, struct frame *frame,
                                   size_t consumed)
{
    if (state->left > state->max_body)
        return framed_refuse(state, frame, consumed, JSONRPC_INVALID_REQUEST,
                             "message exceeds max_input_buffer");
    frame->consumed = consumed;
    state->begun = true;
    state->part = PART_BODY;
    scanner_reset(&state->scanner);
    state->scanner.multiline = true;
    return FRAME_SKIP;
}

enum frame_status framed_skip(struct framing_state *state, struct slice input, struct frame *frame)
{
    size_t len = input.len < state->left ? input.len : (size_t)state->left;

    if (input.len == 0 && state->left > 0)
        return FRAME_WAIT;
    frame->consumed = len;
    state->left -= len;
    skip_rest(state);
    return FRAME_SKIP;
}

/* After so many good bytes comes a wrong one, or the end of the body too early. */
static enum frame_status refuse_body(struct framing_state *state, struct frame *frame, size_t good)
{
    enum scan_error error = state->scanner.error;
    const char *problem = scan_error_text(error);

    /* A length that is too small cuts the text; the rest of it comes where a head should. */
    state->excused = good == state->left;
    if (state->excused)
        problem = "the body ends inside the JSON object";
    else if (error == SCAN_ERROR_CUT) /* a newline in the middle of something */
        problem = scan_error_text(SCAN_ERROR_SYNTAX);
    state->left -= good;
    return framed_refuse(state, frame, good, JSONRPC_PARSE_ERROR, problem);
}

enum frame_status framed_body(struct framing_state *state, struct slice input, struct frame *frame)
{
    struct scanner *scanner = &state->scanner;
    size_t len = input.len < state->left ? input.len : (size_t)state->left;
    enum scan_status status = scanner_run(scanner, input.data, len);

    if (status == SCAN_MORE) {
        if (len < state->left)
            return FRAME_WAIT;
        status = scanner_end(scanner);
    }
    if (status == SCAN_INVALID)
        return refuse_body(state, frame, scanner->position);
    frame->body = slice_of(input.data, len);
    frame->consumed = len;
    state->excused = false;
    framed_over(state);
    return FRAME_MESSAGE;
}
