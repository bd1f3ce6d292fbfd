/* The framings that announce lengths: a stream gives the same messages and the same complaints
 * however it is cut, and continues after each of them (ADR-010). */
#include "build_config.h"

#include "data/json_texts.h"
#include "framing/content_length.h"
#include "framing/first_frame.h"
#include "framing/foreign.h"
#include "framing/framing.h"
#include "suite.h"
#include "json/message.h"

#define MAX_BODY 1000

static struct scanner scanner;

/* The state of a stream of JSON that nothing has come of. */
static void start_stream(struct framing_state *state, const struct framing *framing)
{
    memset(state, 0x5A, sizeof *state);
    state->check = &json_body_check;
    state->check_state = &scanner;
    state->max_body = MAX_BODY;
    state->max_long = 0;
    state->wary = false;
    state->inner = NULL;
    framing->reset(state);
}

static void append_text(struct text *to, const char *text)
{
    text_add(to, text, strlen(text));
}

static void append_frame(struct text *to, const struct framing *framing, const char *body,
                         size_t len)
{
    char prefix[FRAME_PREFIX_MAX];

    text_add(to, prefix, framing->prefix(prefix, len));
    text_add(to, body, len);
}

/* The stream that `text` describes: what stands between < and > is framed. */
static void append_stream(struct text *to, const struct framing *framing, const char *text)
{
    const char *end;

    for (; *text != '\0'; text = end) {
        end = strchr(text, '<');
        if (end == NULL)
            end = text + strlen(text);
        text_add(to, text, (size_t)(end - text));
        if (*end == '<') {
            text = end + 1;
            end = strchr(text, '>');
            append_frame(to, framing, text, (size_t)(end - text));
            end++;
        }
    }
}

#define PARSE_ERROR "-32700 "
#define INVALID "-32600 "

/* Puts down what `next` says of an exact copy of stream[begin, there), and moves `begin`. */
static enum frame_status note_next(const struct framing *framing, struct framing_state *state,
                                   const struct text *stream, size_t *begin, size_t there,
                                   struct text *notes)
{
    size_t len = there - *begin;
    char *copy = malloc(len + (len == 0));
    struct frame frame = {.consumed = 0};
    enum frame_status status;
    char text[200];

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, stream->data + *begin, len);
    status = framing->next(state, slice_of(copy, len), &frame);
    if (status == FRAME_WHOLE) {
        text_add(notes, copy, frame.consumed);
        append_text(notes, ";");
    } else if (status == FRAME_REFUSED) {
        ck_assert(state->reported || !state->begun);
        snprintf(text, sizeof text, "%s%s;",
                 frame.fault == FRAME_FAULT_SYNTAX ? PARSE_ERROR : INVALID, frame.problem);
        append_text(notes, text);
    }
    ck_assert_uint_le(frame.consumed, len);
    *begin += status == FRAME_WAIT ? 0 : frame.consumed;
    free(copy);
    return status;
}

/* Reads the stream in pieces of `size` bytes. Returns how many are left. */
static size_t read_stream(const struct framing *framing, const struct text *stream, size_t size,
                          struct text *notes, struct framing_state *state)
{
    size_t begin = 0, there = 0;
    enum frame_status status;

    start_stream(state, framing);
    append_text(notes, "");
    do {
        there = stream->len - there < size ? stream->len : there + size;
        do {
            status = note_next(framing, state, stream, &begin, there, notes);
            ck_assert_int_ne(status, FRAME_MORE);
            ck_assert_int_ne(status, FRAME_MALFORMED);
        } while (status != FRAME_WAIT);
    } while (there < stream->len);
    return stream->len - begin;
}

#define SHORT PARSE_ERROR "the body ends inside the JSON object;"
#define STRAY PARSE_ERROR "not a header;"
#define NO_LENGTH PARSE_ERROR "no Content-Length;"
#define BAD_TYPE INVALID "Content-Type is not application/vscode-jsonrpc in UTF-8;"
#define TOO_LONG INVALID "message exceeds max_input_buffer;"

static const struct {
    const char *stream, *notes;
    bool begun; /* at the end, part of a frame has come */
} conversations[] = {
    {"", "", false},
    {"<{}>", "{};", false},
    {"<{\"id\":1}><{\"id\":2}>", "{\"id\":1};{\"id\":2};", false},
    {"< {\n\"id\"\r\n:\n[ 1\n,\n2 ] \n} \r\n>", " {\n\"id\"\r\n:\n[ 1\n,\n2 ] \n} \r\n;", false},
    {"<{\"a\":\"\\n\"}>", "{\"a\":\"\\n\"};", false},
    /* headers */
    {"content-LENGTH:2\r\n\r\n{}", "{};", false},
    {"Content-Length: \t 0002 \t \r\n\r\n{}", "{};", false},
    {"X-Other: \xC3\xA9 : {\r\nContent-Length: 2\r\nY:\r\n\r\n{}<{}>", "{};{};", false},
    {"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n<{}>", "{};", false},
    {"Content-Length: 2\r\ncontent-type:application/json\r\n\r\n{}", "{};", false},
    {"Content-Type: text/plain\r\n<{\"id\":1}><{}>", BAD_TYPE "{};", false},
    {"Content-Length: 2\r\nContent-Type: application/json; charset=latin1\r\n\r\n{}<{}>",
     BAD_TYPE "{};", false},
    {"Content-Type: a/b\r\nContent-Type: application/json\r\n<{}><{}>", BAD_TYPE "{};", false},
    {"\r\n{}<{}>", NO_LENGTH "{};", false},
    {"X: y\r\n\r\n{}<{}>", NO_LENGTH "{};", false},
    {"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}<{}>",
     PARSE_ERROR "more than one Content-Length;{};", false},
    {"Content-Length: \r\n\r\n{}<{}>", PARSE_ERROR "Content-Length is not a number;{};", false},
    {"Content-Length: 2x\r\n\r\n{}<{}>", PARSE_ERROR "Content-Length is not a number;{};", false},
    {"Content-Length: -2\r\n\r\n{}<{}>", PARSE_ERROR "Content-Length is not a number;{};", false},
    {"Content-Length: +2\r\n\r\n{}<{}>", PARSE_ERROR "Content-Length is not a number;{};", false},
    {"Content-Length: 2.0\r\n\r\n{}<{}>", PARSE_ERROR "Content-Length is not a number;{};", false},
    {"Content-Length: 1 1\r\n\r\n{}<{}>", PARSE_ERROR "Content-Length is not a number;{};", false},
    {"Content-Length 2\r\n\r\n{}<{}>", STRAY "{};", false},
    {"Content-Length : 2\r\n\r\n{}<{}>", STRAY "{};", false},
    {": 2\r\n\r\n{}<{}>", STRAY "{};", false},
    {"Content-Length: 2\n\n{}<{}>", STRAY "{};", false},
    {"Content-Length: 2\r\r\n{}<{}>", STRAY "{};", false},
    {"Content-Length: 2\x7F\r\n\r\n{}<{}>", STRAY "{};", false},
    {"Content-Length: 2\r\n folded\r\n\r\n{}<{}>", STRAY "{};", false},
    {"{\"id\":1}\n<{}>", STRAY "{};", false},
    {"{\"id\":1}\n{\"id\":2}\n", STRAY "", false},
    /* bodies */
    {"<><{}>", SHORT "{};", false},
    {"< \r\n><{}>", SHORT "{};", false},
    {"<[]><{}>", PARSE_ERROR "not a JSON object;{};", false},
    {"<{\"id\":1,}><{}>", PARSE_ERROR "not valid JSON;{};", false},
    {"<{\"id\":tr\nue}><{}>", PARSE_ERROR "not valid JSON;{};", false},
    {"<{\"id\":1.\n}><{}>", PARSE_ERROR "not valid JSON;{};", false},
    {"<{\"id\":\"a\nb\"}><{}>", PARSE_ERROR "not valid JSON;{};", false},
    {"<{\"id\":\"\xFF\"}><{}>", PARSE_ERROR "invalid UTF-8;{};", false},
    {"<{}{}><{}>", PARSE_ERROR "more text behind the JSON object;{};", false},
    {"<{}\n{}><{}>", PARSE_ERROR "more text behind the JSON object;{};", false},
    {"<{x><{y><{}>", PARSE_ERROR "not valid JSON;" PARSE_ERROR "not valid JSON;{};", false},
    /* lengths that are wrong */
    {"Content-Length: 5\r\n\r\n{\"a\":1}<{}>", SHORT "{};", false},
    {"Content-Length: 1\r\n\r\n{}<{}><[]>", SHORT "{};" PARSE_ERROR "not a JSON object;", false},
    {"Content-Length: 2\r\n\r\n{} <{}>", "{};" STRAY "{};", false},
    {"Content-Length: 2\r\n\r\n{}\n<{}>", "{};" STRAY "{};", false},
    {"Content-Length: 2\r\n\r\n{}\r\n<{}>", "{};" NO_LENGTH "{};", false},
    {"Content-Length: 2\r\n\r\n{}abc<{}>", "{};" NO_LENGTH "{};", false},
    {"Content-Length: 40\r\n\r\n{}<{}><{}>", PARSE_ERROR "more text behind the JSON object;{};{};",
     false},
    {"Content-Length: 40\r\n\r\n{}", "", true},
    {"Content-Length: 40\r\n", "", true},
    {"C", "", true},
    /* lengths that are too large */
    {"Content-Length: 1001\r\n\r\n", TOO_LONG, true},
    {"Content-Length: 18446744073709551616\r\n\r\n{}", TOO_LONG, true},
    {"Content-Length: 99999999999999999999999\r\n\r\n{}", TOO_LONG, true},
    /* what looks like the beginning of a header */
    {"\ncontent-cocontent-lengtcontent-length:2\r\n\r\n{}", STRAY "{};", false},
    {"\nccccccccc<{}>", STRAY "{};", false},
};

TEST_ROWS(conversations_at_all_chunk_sizes, COUNT(conversations))
{
    struct text *stream = test_text();
    struct framing_state state;

    append_stream(stream, &framing_content_length, conversations[row].stream);
    append_text(stream, "");
    for (size_t size = 1; size <= 70; size++) {
        struct text notes = {0};

        read_stream(&framing_content_length, stream, size, &notes, &state);
        ck_assert_msg(strcmp(notes.data, conversations[row].notes) == 0, "in pieces of %zu: %s",
                      size, notes.data);
        ck_assert_int_eq(state.begun, conversations[row].begun);
        text_free(&notes);
    }
}

static const struct framing *const framings[] = {&framing_content_length, &framing_length};

static void append_complaint(struct text *to, const char *text)
{
    append_text(to, PARSE_ERROR);
    append_text(to, text);
}

/* Every text that NDJSON accepts is accepted here, newline and all; of the others, each costs one
 * complaint. With its newline inside a string or word it is wrong in the same place. */
TEST_ROWS(json_texts_in_frames, 2)
{
    const struct framing *framing = framings[row];
    struct text *stream = test_text(), *expected = test_text();
    struct framing_state state;

    for (size_t i = 0; i < JSON_TEXT_COUNT; i++) {
        const struct json_text *text = &json_texts[i];
        if (text->len > MAX_BODY || text->error == SCAN_ERROR_CUT)
            continue;
        append_frame(stream, framing, text->text, text->len);
        if (text->error == SCAN_ERROR_NONE)
            text_add(expected, text->text, text->len);
        else
            append_complaint(expected, scan_error_text(text->error));
        append_text(expected, ";");
    }
    for (size_t size = 1; size <= 4096; size = size * 3 + 1) {
        struct text notes = {0};

        ck_assert_uint_eq(read_stream(framing, stream, size, &notes, &state), 0);
        ck_assert_uint_eq(notes.len, expected->len);
        ck_assert_mem_eq(notes.data, expected->data, notes.len);
        text_free(&notes);
    }
}

/* A body of this length, in spaces but for the object at its start. */
static void append_body(struct text *to, const struct framing *framing, size_t len)
{
    char *body = malloc(len);

    ck_assert_ptr_nonnull(body);
    memset(body, ' ', len);
    memcpy(body, "{}", 2);
    append_frame(to, framing, body, len);
    free(body);
}

TEST_ROWS(bodies_at_the_limit, 2)
{
    const struct framing *framing = framings[row];
    struct text *stream = test_text(), *notes = test_text();
    struct framing_state state;

    append_body(stream, framing, MAX_BODY);
    append_body(stream, framing, MAX_BODY + 1);
    append_body(stream, framing, 3);
    for (size_t size = 1; size <= 3000; size = size * 3 + 1) {
        notes->len = 0;
        ck_assert_uint_eq(read_stream(framing, stream, size, notes, &state), 0);
        ck_assert_uint_eq(notes->len, MAX_BODY + 1 + strlen(TOO_LONG) + 4);
        ck_assert_str_eq(notes->data + MAX_BODY, ";" TOO_LONG "{} ;");
    }
}

/* What is too long is not kept: each piece of it is done with as it comes. */
TEST_ROWS(skipped_bytes_are_not_kept, 2)
{
    const struct framing *framing = framings[row];
    struct framing_state state;
    struct frame frame;
    char prefix[FRAME_PREFIX_MAX], bytes[1000] = "";
    size_t len = framing->prefix(prefix, 100000), left;

    start_stream(&state, framing);
    ck_assert_int_eq(framing->next(&state, slice_of(prefix, len), &frame), FRAME_REFUSED);
    ck_assert_uint_eq(frame.consumed, len);
    ck_assert(state.begun && state.reported);
    for (left = 100000; left > 0; left -= 1000) {
        ck_assert(state.begun);
        ck_assert_int_eq(framing->next(&state, slice_of(bytes, sizeof bytes), &frame), FRAME_SKIP);
        ck_assert_uint_eq(frame.consumed, 1000);
    }
    ck_assert(!state.begun);
}

/* `count` headers, `len` bytes together, with the Content-Length and the empty line. */
static void append_headers(struct text *to, unsigned count, size_t len)
{
    static const char last[] = "Content-Length: 2\r\n\r\n";
    size_t end = to->len + len - strlen(last);

    for (; count > 2; count--)
        append_text(to, "X: y\r\n");
    if (count == 2) {
        append_text(to, "Y: ");
        while (to->len < end - 2)
            append_text(to, "y");
        append_text(to, "\r\n");
    }
    append_text(to, last);
}

TEST_ROWS(headers_at_their_limits, 15)
{
    static const struct {
        unsigned count;
        size_t len;
        const char *notes;
    } heads[] = {
        {FRAME_MAX_HEADERS, 2000, "{};{};"},
        {FRAME_MAX_HEADERS + 1, 2000, PARSE_ERROR "too many headers;{};"},
        {2, FRAME_MAX_HEADER_BYTES, "{};{};"},
        {2, FRAME_MAX_HEADER_BYTES + 1, INVALID "headers are too long;{};"},
        {2, 3 * FRAME_MAX_HEADER_BYTES, INVALID "headers are too long;{};{};"},
    };
    struct text *stream = test_text(), *notes = test_text();
    struct framing_state state;

    append_headers(stream, heads[row / 3].count, heads[row / 3].len);
    append_text(stream, "{}");
    append_stream(stream, &framing_content_length, "<{}>");
    read_stream(&framing_content_length, stream,
                row % 3 == 0   ? 1
                : row % 3 == 1 ? 1000
                               : SIZE_MAX,
                notes, &state);
    ck_assert_str_eq(notes->data, heads[row / 3].notes);
}

TEST(length_framing_stays_in_step)
{
    struct text *stream = test_text();
    struct framing_state state;

    append_stream(stream, &framing_length, "<{\"id\":1}><><{\n}><{\"id\":><x><[]{}><{\"id\":2}>");
    text_add(stream, "\xFF\xFF\xFF\xFF{}", 6);
    for (size_t size = 1; size <= stream->len; size++) {
        struct text notes = {0};

        read_stream(&framing_length, stream, size, &notes, &state);
        ck_assert_str_eq(notes.data,
                         "{\"id\":1};" SHORT "{\n};" SHORT PARSE_ERROR
                         "not a JSON object;" PARSE_ERROR "not a JSON object;{\"id\":2};" TOO_LONG);
        ck_assert(state.begun && state.reported);
        ck_assert_uint_eq(state.left, 0xFFFFFFFF - 2);
        text_free(&notes);
    }
}

/* Gives up a frame of which the first row bytes are there, then sends the rest and another one. */
static void check_give_up(const struct framing *framing, const char *stream_text, size_t cut,
                          const char *expected)
{
    struct text stream = {0}, notes = {0};
    struct framing_state state;
    size_t begin = 0;

    append_stream(&stream, framing, stream_text);
    start_stream(&state, framing);
    append_text(&notes, "");
    while (note_next(framing, &state, &stream, &begin, cut, &notes) != FRAME_WAIT)
        continue;
    ck_assert(state.begun);
    state.timed = true;
    framing->give_up(&state, cut - begin);
    ck_assert(!state.begun);
    ck_assert(!state.timed);
    begin = cut;
    while (note_next(framing, &state, &stream, &begin, stream.len, &notes) != FRAME_WAIT)
        continue;
    ck_assert_msg(strcmp(notes.data, expected) == 0, "cut at %zu: %s", cut, notes.data);
    ck_assert(!state.begun);
    text_free(&stream);
    text_free(&notes);
}

TEST(frames_are_given_up)
{
    for (size_t cut = 1; cut < strlen("Content-Length: 8\r\n\r\n{\"id\":1}"); cut++)
        check_give_up(&framing_content_length, "<{\"id\":1}><{}>", cut, "{};");
    for (size_t cut = 1; cut < 12; cut++)
        check_give_up(&framing_length, "<{\"id\":1}><{}>", cut, "{};");
    for (size_t cut = 1; cut < 4; cut++)
        check_give_up(&framing_length, "<><{}>", cut, "{};");
    check_give_up(&framing_content_length, "Content-Length: 2000\r\n\r\n{}{}<{}>", 25,
                  TOO_LONG "{};");
}

TEST(prefixes)
{
    static const struct {
        size_t len;
        const char *text, bytes[4];
    } known[] = {
        {0, "Content-Length: 0\r\n\r\n", {0, 0, 0, 0}},
        {9, "Content-Length: 9\r\n\r\n", {0, 0, 0, 9}},
        {10485760, "Content-Length: 10485760\r\n\r\n", {0, '\xA0', 0, 0}},
        {1073741824, "Content-Length: 1073741824\r\n\r\n", {'\x40', 0, 0, 0}},
        {4294967295u, "Content-Length: 4294967295\r\n\r\n", {'\xFF', '\xFF', '\xFF', '\xFF'}},
    };
    char to[FRAME_PREFIX_MAX];

    for (size_t i = 0; i < COUNT(known); i++) {
        ck_assert_uint_eq(framing_content_length.prefix(to, known[i].len), strlen(known[i].text));
        ck_assert_mem_eq(to, known[i].text, strlen(known[i].text));
        ck_assert_uint_eq(framing_length.prefix(to, known[i].len), 4);
        ck_assert_mem_eq(to, known[i].bytes, 4);
    }
    ck_assert_uint_le(framing_content_length.prefix(to, SIZE_MAX), FRAME_PREFIX_MAX);
}

TEST(names)
{
    ck_assert_ptr_eq(framing_named("ndjson"), &framing_ndjson);
    ck_assert_ptr_eq(framing_named("content-length"), &framing_content_length);
    ck_assert_ptr_eq(framing_named("length"), &framing_length);
    ck_assert_ptr_null(framing_named("Content-Length"));
    ck_assert_ptr_null(framing_named(""));
}

/* --- an unknown sender --- */

#define HTTP "!" FOREIGN_HTTP_TEXT
#define TLS "!" FOREIGN_TLS_TEXT

/* Reads the stream of an unknown sender in pieces of `size` bytes, as a connection does, until it
 * is malformed. Puts down each problem, after ? if the stream continues and after ! if it is of
 * another protocol. */
static void read_wary(const struct framing *framing, const struct text *stream, size_t size,
                      struct text *notes)
{
    const struct framing *reader = &framing_first_frame;
    struct framing_state state;
    struct frame frame;
    size_t begin = 0, there = 0;
    enum frame_status status;

    memset(&state, 0x5A, sizeof state);
    state.check = &json_body_check;
    state.check_state = &scanner;
    state.max_body = MAX_BODY;
    state.max_long = 0;
    state.wary = true;
    state.inner = framing;
    reader->reset(&state);
    append_text(notes, "");
    do {
        there = stream->len - there < size ? stream->len : there + size;
        do {
            char *copy = malloc(there - begin + 1);

            ck_assert_ptr_nonnull(copy);
            memcpy(copy, stream->data + begin, there - begin);
            status = reader->next(&state, slice_of(copy, there - begin), &frame);
            if (status == FRAME_WHOLE) {
                text_add(notes, copy, frame.consumed);
                append_text(notes, ";");
                reader = framing;
            }
            free(copy);
            if (status == FRAME_REFUSED)
                append_text(notes, "?");
            else if (status == FRAME_MALFORMED && frame.fault == FRAME_FAULT_FOREIGN)
                append_text(notes, "!");
            if (status == FRAME_MALFORMED || status == FRAME_REFUSED)
                append_text(notes, frame.problem);
            if (status == FRAME_MALFORMED)
                return;
            ck_assert(status != FRAME_REFUSED || reader == framing);
            if (status != FRAME_WAIT && status != FRAME_MORE)
                begin += frame.consumed;
        } while (status != FRAME_WAIT && status != FRAME_MORE);
    } while (there < stream->len);
}

static const struct {
    const struct framing *framing;
    const char *stream, *notes; /* ? is before what is refused, ! before another protocol */
} strangers[] = {
    {&framing_content_length, "<{}>POS", "{};"},
    {&framing_content_length, "GET / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", HTTP},
    {&framing_content_length, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP},
    {&framing_content_length, "M-SEARCH * HTTP/1.1\r\n", HTTP},
    {&framing_content_length, "\x16\x03\x01<{}>", TLS},
    {&framing_content_length, "\x16\x04\x01<{}>", "not a header"},
    {&framing_content_length, "{}<{}>", "not a header"},
    {&framing_content_length, "\n<{}>", "not a header"},
    {&framing_content_length, "X: y\r\n\r\n<{}>", "no Content-Length"},
    {&framing_content_length, "Content-Length: 1001\r\n\r\n", "message exceeds max_input_buffer"},
    {&framing_content_length, "Content-Length: 40\r\n\r\n{}<{}>",
     "more text behind the JSON object"},
    {&framing_content_length, "<[]><{}>", "not a JSON object"},
    {&framing_content_length, "HOST: x\r\n<{}>", HTTP},
    {&framing_content_length, "CONTENT-LENGTH: 2\r\n\r\n{}", "{};"},
    {&framing_content_length, "ABCDEFGHIJKLMNOPQRSTUVWXYZ / HTTP", "not a header"},
    {&framing_content_length, "<{}>POST / HTTP/1.1\r\n<{}>", "{};" HTTP},
    {&framing_content_length, "<{}>{}\n<{}>", "{};?not a header{};"},
    {&framing_content_length, "<{}>X: y\r\nPOST / HTTP/1.1\r\n<{}>", "{};" HTTP},
    {&framing_content_length, "<{}>ORIGIN: x\r\n<{}>", "{};" HTTP},
    {&framing_content_length, "<{}>Content-Length: 2\r\nSec-Fetch-Mode: x\r\n\r\n{}", "{};" HTTP},
    {&framing_content_length, "<{}>Origins: x\r\nSec: x\r\nAccepted: x\r\n<{}>", "{};{};"},
    {&framing_length, "<{}><{}>", "{};{};"},
    {&framing_length, "<{}><[]><{}>", "{};?not a JSON object{};"},
    {&framing_length, "<[]><{}>", "not a JSON object"},
    {&framing_length, "POST / HTTP/1.1\r\n", HTTP},
    {&framing_length, "POST{", "message exceeds max_input_buffer"},
    {&framing_length, "\x16\x03\x01\x02", TLS},
    {&framing_length, "\x7F\xFF\xFF\xFF", "message exceeds max_input_buffer"},
    {&framing_ndjson, "{}\n{\"id\":1}\n", "{}\n;{\"id\":1}\n;"},
    {&framing_ndjson, " \r\n\n{}\n", "{}\n;"},
    {&framing_ndjson, "POST / HTTP/1.1\r\n", HTTP},
    {&framing_ndjson, "\x16\x03\x01\x02", TLS},
    {&framing_ndjson, "POST\n", "not a JSON object"},
    {&framing_ndjson, "post / HTTP/1.1\n", "not a JSON object"},
    {&framing_ndjson, "{}\nPOST / HTTP/1.1\n", "{}\n;not a JSON object"},
};

TEST_ROWS(unknown_senders, COUNT(strangers))
{
    struct text *stream = test_text();

    append_stream(stream, strangers[row].framing, strangers[row].stream);
    for (size_t size = 1; size <= stream->len; size++) {
        struct text notes = {0};

        read_wary(strangers[row].framing, stream, size, &notes);
        ck_assert_msg(strcmp(notes.data, strangers[row].notes) == 0, "in pieces of %zu: %s", size,
                      notes.data);
        text_free(&notes);
    }
}

TEST(content_types)
{
    static const char *const accepted[] = {
        "application/vscode-jsonrpc; charset=utf-8",
        "application/vscode-jsonrpc;charset=utf8",
        "Application/VSCode-JsonRPC; CHARSET=UTF-8",
        "application/json",
        "application/json; charset=\"Utf-8\"",
        "application/vscode-jsonrpc; a=b; charset=utf-8; c=\"d;\\\"e\"",
        "application/vscode-jsonrpc ; charset = utf-8 ; x=y",
        "\t application/vscode-jsonrpc;",
    };
    static const char *const refused[] = {
        "",
        "application",
        "application/",
        "text/vscode-jsonrpc",
        "application/vscode-jsonrpcs",
        "application /json",
        "application/json charset=utf-8",
        "application/json; charset=utf-16",
        "application/json; charset=latin1; charset=utf-8",
        "application/json; charset=",
        "application/json; charset",
        "application/json; charset=\"utf-8",
        "application/json; charset=\"utf-8\"x",
        "application/json; =utf-8",
        "application/json; x=\"\\",
        "application/json, application/json",
        "application/json; charset=utf-8, x",
    };

    for (size_t i = 0; i < COUNT(accepted); i++)
        ck_assert_msg(content_type_accepted(slice_of(accepted[i], strlen(accepted[i]))), "%s",
                      accepted[i]);
    for (size_t i = 0; i < COUNT(refused); i++)
        ck_assert_msg(!content_type_accepted(slice_of(refused[i], strlen(refused[i]))), "%s",
                      refused[i]);
}

TEST(fields_are_those_of_the_message)
{
    struct framing_state state;
    struct text *stream = test_text();
    struct frame frame;
    struct message message;
    struct message_scratch scratch;
    struct slice input;

    append_stream(stream, &framing_content_length,
                  "<\n{\"method\":\"m\",\n\"id\":\n\"x\",\r\n\"sessionId\":\"s\"\n}>");
    start_stream(&state, &framing_content_length);
    input = slice_of(stream->data, stream->len);
    ck_assert_int_eq(framing_content_length.next(&state, input, &frame), FRAME_SKIP);
    input = slice_of(input.data + frame.consumed, input.len - frame.consumed);
    ck_assert_int_eq(framing_content_length.next(&state, input, &frame), FRAME_WHOLE);
    ck_assert_int_eq(message_from_scan(&message, slice_of(input.data, frame.consumed),
                                       &scanner.fields, &scratch),
                     MESSAGE_OK);
    ck_assert(message.id.type == ID_STRING && slice_equal(message.id.text, slice_of("x", 1)));
    ck_assert(slice_equal(message.session_id, slice_of("s", 1)));
    ck_assert(slice_equal(message.method, slice_of("m", 1)));
}

WITHOUT_FORK
