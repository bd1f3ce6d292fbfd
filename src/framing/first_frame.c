#include "build_config.h"

#include "framing/first_frame.h"

#include "framing/foreign.h"

static size_t skip_blanks(struct slice line, size_t at)
{
    while (at < line.len && strchr(" \t\r\n", line.data[at]) != NULL && line.data[at] != '\0')
        at++;
    return at;
}

/* Moves *at past the word and the white space around it. */
static bool take_word(struct slice line, size_t *at, const char *word)
{
    size_t len = strlen(word), start = skip_blanks(line, *at);

    if (line.len - start < len || memcmp(line.data + start, word, len) != 0)
        return false;
    *at = skip_blanks(line, start + len);
    return true;
}

/* The text between the quotes of the string that begins at *at; moves *at past it. */
static bool take_string(struct slice line, size_t *at, struct slice *raw)
{
    size_t start = *at + 1, end = start;

    if (*at >= line.len || line.data[*at] != '"')
        return false;
    while (end < line.len && line.data[end] != '"')
        end += line.data[end] == '\\' ? 2 : 1;
    if (end >= line.len)
        return false;
    *raw = slice_of(line.data + start, end - start);
    *at = end + 1;
    return true;
}

static bool take_member(struct slice line, size_t *at, struct opening *opening)
{
    struct slice *value = NULL;

    if (take_word(line, at, "\"token\""))
        value = &opening->token;
    else if (take_word(line, at, "\"pool\""))
        value = &opening->pool;
    return value != NULL && value->data == NULL && take_word(line, at, ":") &&
           take_string(line, at, value);
}

bool opening_read(struct opening *opening, struct slice line)
{
    size_t at = 0;

    *opening = (struct opening){.token = {NULL, 0}};
    if (line.len > OPENING_MAX || !take_word(line, &at, "{"))
        return false;
    do {
        if (!take_member(line, &at, opening))
            return false;
    } while (take_word(line, &at, ","));
    return take_word(line, &at, "}") && at == line.len;
}

static void reset(struct framing_state *state)
{
    state->inner->reset(state);
    state->looked_at_start = state->may_open = false;
}

static enum frame_status malformed(struct frame *frame, enum frame_fault fault, const char *problem)
{
    frame->fault = fault;
    frame->problem = problem;
    return FRAME_MALFORMED;
}

/* The opening line is judged as the body of a frame is. */
static enum frame_status take_opening(struct framing_state *state, struct slice line,
                                      struct frame *frame)
{
    enum body_status status;

    state->check->reset(state->check_state, true);
    status = state->check->run(state->check_state, line, frame);
    if (status == BODY_MORE)
        status = state->check->end(state->check_state, frame);
    if (status != BODY_WHOLE)
        return malformed(frame, FRAME_FAULT_SYNTAX, frame->problem);
    reset(state);
    frame->consumed = line.len;
    return FRAME_WHOLE;
}

/* FRAME_SKIP: the first frame begins here. */
static enum frame_status look_for_opening(struct framing_state *state, struct slice input,
                                          struct frame *frame)
{
    size_t max = input.len < OPENING_MAX ? input.len : OPENING_MAX;
    const char *newline = input.data[0] == '{' ? memchr(input.data, '\n', max) : NULL;
    struct slice line = slice_of(input.data,
                                 newline != NULL ? (size_t)(newline + 1 - input.data) : 0);
    struct opening opening;

    if (newline != NULL && opening_read(&opening, line))
        return take_opening(state, line, frame);
    state->begun = input.data[0] == '{' && newline == NULL && max < OPENING_MAX;
    state->may_open = state->begun;
    return state->begun ? FRAME_WAIT : FRAME_SKIP;
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
    if (state->may_open) {
        status = look_for_opening(state, input, frame);
        if (status != FRAME_SKIP)
            return status;
    }
    status = state->inner->next(state, input, frame);
    return status == FRAME_REFUSED ? FRAME_MALFORMED : status;
}

const struct framing framing_first_frame = {
    .name = "first frame",
    .reset = reset,
    .next = next,
};
