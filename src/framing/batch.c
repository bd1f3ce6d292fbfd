#include "build_config.h"

#include "framing/batch.h"

#include "base/assert.h"

enum part { AT_ARRAY, AT_MEMBER, IN_MEMBER, AFTER_ARRAY };

static size_t blanks(struct slice text, size_t at)
{
    while (at < text.len && (text.data[at] == ' ' || text.data[at] == '\t' ||
                             text.data[at] == '\n' || text.data[at] == '\r'))
        at++;
    return at;
}

bool batch_begins(struct slice body, bool *decided)
{
    size_t at = blanks(body, 0);

    *decided = at < body.len;
    return *decided && body.data[at] == '[';
}

static enum batch_status refuse_array(struct frame *frame, size_t wrong, const char *problem)
{
    frame->consumed = wrong;
    frame->problem = problem;
    return BATCH_BAD;
}

/* Where the next token is expected: the array, a member, or the end of the body. */
static enum batch_status at_token(struct batch_reader *reader, const struct framing_state *state,
                                  struct slice body, struct frame *frame)
{
    char token = body.data[reader->checked];

    switch ((enum part)reader->part) {
    case AT_ARRAY:
        reader->part = AT_MEMBER;
        reader->checked++;
        return token == '[' ? BATCH_MORE : refuse_array(frame, reader->checked - 1, "not an array");
    case AT_MEMBER:
        reader->part = IN_MEMBER;
        state->check->reset(state->check_state, true);
        return token == '{'
                   ? BATCH_MORE
                   : refuse_array(frame, reader->checked, "a member of the array is no object");
    default:
        return refuse_array(frame, reader->checked, "more text after the array");
    }
}

/* BATCH_WHOLE: the member has ended. */
static enum batch_status in_member(struct batch_reader *reader, const struct framing_state *state,
                                   struct slice body, struct frame *frame)
{
    size_t start = reader->checked;
    struct slice member = slice_of(body.data + start, body.len - start);
    char end;

    switch (state->check->run(state->check_state, member, frame)) {
    case BODY_MORE:
        return BATCH_MORE;
    case BODY_TRAILING:
        end = member.data[frame->consumed];
        reader->part = end == ',' ? AT_MEMBER : AFTER_ARRAY;
        reader->checked += frame->consumed + 1;
        if (end == ',' || end == ']')
            return BATCH_WHOLE;
        break;
    default:
        break;
    }
    return refuse_array(frame, start + frame->consumed, frame->problem);
}

enum batch_status batch_check(struct batch_reader *reader, const struct framing_state *state,
                              struct slice body, bool is_over, struct frame *frame)
{
    enum batch_status status = BATCH_MORE;

    while (status != BATCH_BAD) {
        if (reader->part == IN_MEMBER) {
            status = in_member(reader, state, body, frame);
            if (status == BATCH_MORE)
                break;
            continue;
        }
        reader->checked = blanks(body, reader->checked);
        if (reader->checked == body.len)
            break;
        status = at_token(reader, state, body, frame);
    }
    if (status == BATCH_BAD || !is_over)
        return status == BATCH_BAD ? BATCH_BAD : BATCH_MORE;
    if (reader->part == AFTER_ARRAY)
        return BATCH_WHOLE;
    return refuse_array(frame, body.len, "the body ends inside the array");
}

size_t batch_gap(struct slice body)
{
    const char *member = body.len > 0 ? memchr(body.data, '{', body.len) : NULL;

    return member != NULL ? (size_t)(member - body.data) : body.len;
}

size_t batch_member(const struct framing_state *state, struct slice body)
{
    struct frame frame = {.consumed = 0};
    enum body_status status;

    state->check->reset(state->check_state, true);
    status = state->check->run(state->check_state, body, &frame);
    ASSERT(status == BODY_TRAILING);
    body.len = frame.consumed;
    state->check->reset(state->check_state, true);
    status = state->check->run(state->check_state, body, &frame);
    ASSERT(status == BODY_MORE);
    status = state->check->end(state->check_state, &frame);
    ASSERT(status == BODY_WHOLE);
    (void)status;
    return body.len;
}
