#include "build_config.h"

#include "format/framing.h"

static void ndjson_reset(struct framing_state *state)
{
    scanner_reset(&state->scanner);
}

static enum frame_status ndjson_next(struct framing_state *state, struct slice input,
                                     struct frame *frame)
{
    struct scanner *scanner = &state->scanner;
    enum scan_status status = scanner_run(scanner, input.data, input.len);

    if (status == SCAN_MORE)
        return FRAME_MORE;
    if (status == SCAN_INVALID) {
        frame->problem = scan_error_text(scanner->error);
        return FRAME_MALFORMED;
    }
    frame->consumed = scanner->position;
    frame->body = slice_of(input.data, frame->consumed);
    scanner_reset(scanner);
    return status == SCAN_MESSAGE ? FRAME_MESSAGE : FRAME_SKIP;
}

const struct framing framing_ndjson = {
    .name = "ndjson",
    .reset = ndjson_reset,
    .next = ndjson_next,
};

static enum frame_status rest_next(struct framing_state *state, struct slice input,
                                   struct frame *frame)
{
    const char *newline = input.len > 0 ? memchr(input.data, '\n', input.len) : NULL;

    (void)state;
    frame->consumed = newline != NULL ? (size_t)(newline - input.data) + 1 : input.len;
    return input.len > 0 ? FRAME_SKIP : FRAME_MORE;
}

const struct framing framing_rest_of_line = {
    .name = "rest of a line",
    .reset = ndjson_reset,
    .next = rest_next,
};
