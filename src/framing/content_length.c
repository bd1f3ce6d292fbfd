#include "build_config.h"

#include "framing/content_length.h"

#include "framing/foreign.h"
#include "framing/sized_frame.h"

#define NAME "content-length:"
#define NAME_LEN (sizeof NAME - 1)

/* The part of a header line that the next byte belongs to. */
enum line_part {
    IN_NAME,
    IN_VALUE,
    AT_LINE_END,      /* after a header's carriage return */
    AT_EMPTY_LINE_END /* after that of the empty line */
};

static void start_search(struct framing_state *state)
{
    sized_frame_end(state);
    state->part = PART_SEARCH;
}

/* Refuses a head, of which `consumed` bytes are done with, and searches for the next one. The rest
 * of a refused body is not refused again. */
static enum frame_status refuse_head(struct framing_state *state, struct frame *frame,
                                     size_t consumed, enum frame_fault fault, const char *problem)
{
    bool leftover = state->leftover && !state->has_length; /* the rest of a body has no length */

    state->left = 0;
    sized_frame_refuse(state, frame, consumed, fault, problem);
    start_search(state);
    state->leftover = false;
    return leftover ? FRAME_SKIP : FRAME_REFUSED;
}

/* --- the words of a header --- */

/* A byte of a header name or of another token. */
static bool is_token_byte(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c > ' ' && c < 0x7F && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct slice trim_blanks(struct slice text)
{
    for (; text.len > 0 && is_blank(text.data[0]); text.len--)
        text.data++;
    while (text.len > 0 && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

static char lower_case(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* Compares the texts without the case of ASCII letters. */
static bool same_but_case(struct slice text, const char *lower)
{
    if (text.len != strlen(lower))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (lower_case(text.data[i]) != lower[i])
            return false;
    }
    return true;
}

/* --- the type of the content --- */

/* Takes the first `len` bytes away from `text` and returns them. */
static struct slice take(struct slice *text, size_t len)
{
    struct slice taken = slice_of(text->data, len);

    text->data += len;
    text->len -= len;
    return taken;
}

static struct slice take_token(struct slice *text)
{
    size_t len = 0;

    while (len < text->len && is_token_byte((unsigned char)text->data[len]))
        len++;
    return take(text, len);
}

static bool take_byte(struct slice *text, char c)
{
    *text = trim_blanks(*text);
    if (text->len == 0 || text->data[0] != c)
        return false;
    take(text, 1);
    *text = trim_blanks(*text);
    return true;
}

/* A quoted string: *value is the text between its quotes. One with a backslash is never a charset
 * that is accepted, but must be skipped. False when the closing quote is missing. */
static bool take_quoted(struct slice *text, struct slice *value)
{
    size_t len = 1;

    while (len < text->len && text->data[len] != '"')
        len += text->data[len] == '\\' ? 2 : 1;
    if (len >= text->len)
        return false;
    *value = take(text, len + 1);
    *value = slice_of(value->data + 1, value->len - 2);
    return true;
}

/* NAME=VALUE. False when it is malformed, or a charset that is not UTF-8. */
static bool take_parameter(struct slice *text)
{
    struct slice name = take_token(text), value;

    if (name.len == 0 || !take_byte(text, '='))
        return false;
    if (text->len > 0 && text->data[0] == '"') {
        if (!take_quoted(text, &value))
            return false;
    } else {
        value = take_token(text);
        if (value.len == 0)
            return false;
    }
    return !same_but_case(name, "charset") || same_but_case(value, "utf-8") ||
           same_but_case(value, "utf8");
}

bool content_type_accepted(struct slice value)
{
    struct slice rest = trim_blanks(value), type, subtype;

    type = take_token(&rest);
    if (!same_but_case(type, "application") || rest.len == 0 || rest.data[0] != '/')
        return false;
    take(&rest, 1);
    subtype = take_token(&rest);
    if (!same_but_case(subtype, "vscode-jsonrpc") && !same_but_case(subtype, "json"))
        return false;
    while (take_byte(&rest, ';')) {
        if (rest.len > 0 && !take_parameter(&rest)) /* a last ; may be followed by nothing */
            return false;
    }
    return rest.len == 0;
}

/* --- one header --- */

/* Digits only; a number that is too large becomes UINT64_MAX. */
static bool read_length(struct slice text, uint64_t *length)
{
    *length = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';

        if (digit > 9)
            return false;
        *length = *length > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *length * 10 + digit;
    }
    return text.len > 0;
}

static enum frame_status end_as_http(struct frame *frame)
{
    frame->fault = FRAME_FAULT_FOREIGN;
    frame->problem = FOREIGN_HTTP_TEXT;
    return FRAME_MALFORMED;
}

static enum frame_status refuse_header(struct frame *frame, const char *problem)
{
    frame->problem = problem;
    return FRAME_REFUSED;
}

/* Reads the header line whose newline is at `looked`. FRAME_SKIP, FRAME_REFUSED with the problem
 * alone, or FRAME_MALFORMED. */
static enum frame_status read_header(struct framing_state *state, struct slice input,
                                     struct frame *frame)
{
    const char *line = input.data + state->line_start;
    struct slice name = slice_of(line, state->name_len), value;

    value = slice_of(line + name.len + 1, state->looked - 1 - state->line_start - name.len - 1);
    if (++state->headers > FRAME_MAX_HEADERS)
        return refuse_header(frame, "too many headers");
    if (same_but_case(name, "content-length")) {
        if (state->has_length)
            return refuse_header(frame, "more than one Content-Length");
        state->has_length = true;
        if (!read_length(trim_blanks(value), &state->left))
            return refuse_header(frame, "Content-Length is not a number");
    } else if (same_but_case(name, "content-type")) {
        state->wrong_type = state->wrong_type || !content_type_accepted(value);
    } else if (state->wary && foreign_header(name)) {
        return end_as_http(frame);
    }
    return FRAME_SKIP;
}

/* --- the head --- */

static enum frame_status end_head(struct framing_state *state, struct frame *frame)
{
    if (!state->has_length) /* a frame may follow stray bytes: searches from the start */
        return refuse_head(state, frame, 0, FRAME_FAULT_SYNTAX, "no Content-Length");
    state->leftover = false;
    if (state->wrong_type)
        return sized_frame_refuse(state, frame, state->looked, FRAME_FAULT_TYPE,
                                  "Content-Type is not application/vscode-jsonrpc in UTF-8");
    return sized_frame_start_body(state, frame, state->looked);
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

/* The byte at `looked` fits into no header. */
static enum frame_status refuse_line(struct framing_state *state, struct slice input,
                                     struct frame *frame)
{
    struct slice line = slice_of(input.data + state->line_start,
                                 state->looked + 1 - state->line_start);

    if (state->wary && foreign_start(line) == FOREIGN_HTTP)
        return end_as_http(frame);
    return refuse_head(state, frame, state->looked, FRAME_FAULT_SYNTAX, "not a header");
}

static enum frame_status head(struct framing_state *state, struct slice input, struct frame *frame)
{
    enum line_part part;
    enum frame_status status;

    for (; state->looked < input.len; state->looked++) {
        part = (enum line_part)state->line;
        if (state->looked == FRAME_MAX_HEADER_BYTES)
            return refuse_head(state, frame, state->looked, FRAME_FAULT_TOO_LONG,
                               "headers are too long");
        if (!byte_fits(state, (unsigned char)input.data[state->looked]))
            return refuse_line(state, input, frame);
        if (part == AT_EMPTY_LINE_END) {
            state->looked++;
            return end_head(state, frame);
        }
        if (part != AT_LINE_END)
            continue;
        status = read_header(state, input, frame);
        if (status == FRAME_REFUSED)
            return refuse_head(state, frame, state->looked + 1, FRAME_FAULT_SYNTAX, frame->problem);
        if (status == FRAME_MALFORMED)
            return status;
        state->line = IN_NAME;
        state->line_start = state->looked + 1;
    }
    state->begun = state->looked > 0;
    return FRAME_WAIT;
}

/* --- the search for a head --- */

/* The number of bytes of `text` that are the beginning of a Content-Length header. */
static size_t matching_bytes(struct slice text)
{
    size_t i;

    for (i = 0; i < text.len && i < NAME_LEN; i++) {
        if (lower_case(text.data[i]) != NAME[i])
            return 0;
    }
    return i;
}

static enum frame_status search(struct framing_state *state, struct slice input,
                                struct frame *frame)
{
    size_t at, matched = 0;

    for (at = 0; at < input.len; at++) {
        matched = matching_bytes(slice_of(input.data + at, input.len - at));
        if (matched > 0)
            break;
    }
    frame->consumed = at;
    if (matched == NAME_LEN)
        sized_frame_end(state);
    else if (at == 0)
        return FRAME_WAIT;
    return FRAME_SKIP;
}

/* --- the table --- */

static enum frame_status body(struct framing_state *state, struct slice input, struct frame *frame)
{
    bool trailing;
    enum frame_status status = sized_frame_body(state, input, frame, &trailing);

    /* A length that is too large takes the next frame for a part of the body. */
    if (trailing && state->part == PART_SKIP && (input.data[frame->consumed] | 0x20) == NAME[0])
        start_search(state);
    return status;
}

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    switch ((enum sized_frame_part)state->part) {
    case PART_HEAD:
        return head(state, input, frame);
    case PART_BODY:
        return body(state, input, frame);
    case PART_SKIP:
        return sized_frame_skip(state, input, frame);
    case PART_SEARCH:
    case PART_GROWING:
        break;
    }
    return search(state, input, frame);
}

static void give_up(struct framing_state *state, size_t dropped)
{
    (void)dropped;
    start_search(state);
    state->leftover = false;
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
    .reset = sized_frame_reset,
    .next = next,
    .give_up = give_up,
    .cut = sized_frame_cut,
    .prefix = prefix,
};
