#include "build_config.h"

#include "format/framed.h"

#include "format/content_type.h"

#define NAME "content-length:"
#define NAME_LEN (sizeof NAME - 1)

/* What the next byte of a head is. */
enum line_part {
    IN_NAME,
    IN_VALUE,
    AT_LINE_END,      /* behind a header's carriage return */
    AT_EMPTY_LINE_END /* behind that of the empty line */
};

static void start_search(struct framing_state *state)
{
    framed_over(state);
    state->part = PART_SEARCH;
}

/* A head that cannot be understood, of which `consumed` bytes are done with. What comes is looked
 * at for another one. */
static enum frame_status refuse_head(struct framing_state *state, struct frame *frame,
                                     size_t consumed, int code, const char *problem)
{
    bool excused = state->excused && !state->has_length; /* a rest of a body has none */

    state->left = 0;
    framed_refuse(state, frame, consumed, code, problem);
    start_search(state);
    state->excused = false;
    return excused ? FRAME_SKIP : FRAME_REFUSED;
}

/* --- one header --- */

/* Digits alone; what no number can hold is UINT64_MAX. */
static bool read_length(struct slice text, uint64_t *length)
{
    size_t i;

    *length = 0;
    for (i = 0; i < text.len; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';

        if (digit > 9)
            return false;
        *length = *length > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *length * 10 + digit;
    }
    return text.len > 0;
}

/* Returns what is wrong with the header that ends in the carriage return at `looked`, or NULL. */
static const char *note_header(struct framing_state *state, struct slice input)
{
    const char *line = input.data + state->line_start;
    struct slice name = slice_of(line, state->name_len), value;

    value = slice_of(line + name.len + 1, state->looked - 1 - state->line_start - name.len - 1);
    if (++state->headers > FRAME_MAX_HEADERS)
        return "too many headers";
    if (same_but_case(name, "content-length")) {
        if (state->has_length)
            return "more than one Content-Length";
        state->has_length = true;
        if (!read_length(trim_blanks(value), &state->left))
            return "Content-Length is not a number";
    } else if (same_but_case(name, "content-type")) {
        state->wrong_type = state->wrong_type || !content_type_accepted(value);
    }
    return NULL;
}

/* --- the head --- */

static enum frame_status head_over(struct framing_state *state, struct frame *frame)
{
    if (!state->has_length) /* a frame may follow on stray bytes: looks for it from the start */
        return refuse_head(state, frame, 0, JSONRPC_PARSE_ERROR, "no Content-Length");
    state->excused = false;
    if (state->wrong_type)
        return framed_refuse(state, frame, state->looked, JSONRPC_INVALID_REQUEST,
                             "Content-Type is not application/vscode-jsonrpc in UTF-8");
    return framed_head_over(state, frame, state->looked);
}

static bool byte_fits(struct framing_state *state, unsigned char c)
{
    switch ((enum line_part)state->line) {
    case IN_NAME:
        if (c == ':' && state->looked > state->line_start) {
            state->name_len = state->looked - state->line_start;
            state->line = IN_VALUE;
            return true;
        }
        if (c == '\r' && state->looked == state->line_start) {
            state->line = AT_EMPTY_LINE_END;
            return true;
        }
        return is_token_byte(c);
    case IN_VALUE:
        if (c == '\r')
            state->line = AT_LINE_END;
        return c >= ' ' ? c != 0x7F : c == '\r' || c == '\t';
    case AT_LINE_END:
    case AT_EMPTY_LINE_END:
        break;
    }
    return c == '\n';
}

static enum frame_status head(struct framing_state *state, struct slice input, struct frame *frame)
{
    enum line_part part;
    const char *problem;

    for (; state->looked < input.len; state->looked++) {
        part = (enum line_part)state->line;
        if (state->looked == FRAME_MAX_HEADER_BYTES)
            return refuse_head(state, frame, state->looked, JSONRPC_INVALID_REQUEST,
                               "headers are too long");
        if (!byte_fits(state, (unsigned char)input.data[state->looked]))
            return refuse_head(state, frame, state->looked, JSONRPC_PARSE_ERROR,
                               "not a header");
        if (part == AT_EMPTY_LINE_END) {
            state->looked++;
            return head_over(state, frame);
        }
        if (part != AT_LINE_END)
            continue;
        problem = note_header(state, input);
        if (problem != NULL)
            return refuse_head(state, frame, state->looked + 1, JSONRPC_PARSE_ERROR, problem);
        state->line = IN_NAME;
        state->line_start = state->looked + 1;
    }
    state->begun = state->looked > 0;
    return FRAME_WAIT;
}

/* --- what is no frame --- */

/* How many bytes of `text` are the beginning of a Content-Length header; 0 when they are not. */
static size_t matches(struct slice text)
{
    size_t i;

    for (i = 0; i < text.len && i < NAME_LEN; i++) {
        char c = text.data[i];

        if (c != NAME[i] && (c < 'A' || c > 'Z' || (c | 0x20) != NAME[i]))
            return 0;
    }
    return i;
}

static enum frame_status search(struct framing_state *state, struct slice input,
                                struct frame *frame)
{
    size_t at, matched = 0;

    for (at = 0; at < input.len; at++) {
        matched = matches(slice_of(input.data + at, input.len - at));
        if (matched > 0)
            break;
    }
    frame->consumed = at;
    if (matched == NAME_LEN)
        framed_over(state);
    else if (at == 0)
        return FRAME_WAIT;
    return FRAME_SKIP;
}

/* --- the table --- */

static enum frame_status body(struct framing_state *state, struct slice input, struct frame *frame)
{
    enum frame_status status = framed_body(state, input, frame);

    /* A length that is too large takes the next frame for a part of the body. */
    if (status == FRAME_REFUSED && state->scanner.error == SCAN_ERROR_TRAILING &&
        state->part == PART_SKIP && (input.data[frame->consumed] | 0x20) == NAME[0])
        start_search(state);
    return status;
}

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    switch ((enum framed_part)state->part) {
    case PART_HEAD:
        return head(state, input, frame);
    case PART_BODY:
        return body(state, input, frame);
    case PART_SKIP:
        return framed_skip(state, input, frame);
    case PART_SEARCH:
        break;
    }
    return search(state, input, frame);
}

static void give_up(struct framing_state *state, size_t dropped)
{
    (void)dropped;
    start_search(state);
    state->excused = false;
}

static size_t prefix(char to[FRAME_PREFIX_MAX], size_t body_len)
{
    static const char name[] = "Content-Length: ", end[] = "\r\n\r\n";
    char digits[24];
    size_t at = sizeof digits, len = sizeof name - 1;

    do {
        digits[--at] = (char)('0' + body_len % 10);
        body_len /= 10;
    } while (body_len > 0);
    memcpy(to, name, len);
    memcpy(to + len, digits + at, sizeof digits - at);
    len += sizeof digits - at;
    memcpy(to + len, end, sizeof end - 1);
    return len + sizeof end - 1;
}

const struct framing framing_content_length = {
    .name = "content-length",
    .reset = framed_reset,
    .next = next,
    .give_up = give_up,
    .prefix = prefix,
};
