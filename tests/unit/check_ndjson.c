/* The NDJSON framing: a stream of lines, however it is cut, gives the same frames. */
#include "build_config.h"

#include "data/json_texts.h"
#include "framing/framing.h"
#include "suite.h"
#include "json/message.h"

static struct scanner scanner;

/* The state of a stream of JSON that nothing has come of. */
static void start_stream(struct framing_state *state)
{
    memset(state, 0x5A, sizeof *state);
    state->check = &json_body_check;
    state->check_state = &scanner;
    framing_ndjson.reset(state);
}

/* Looks for a frame in an exact copy of stream[begin, there). */
static enum frame_status next_frame(struct framing_state *state, const struct text *stream,
                                    size_t begin, size_t there, struct frame *frame)
{
    size_t len = there - begin;
    char *copy = malloc(len + (len == 0));
    enum frame_status status;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, stream->data + begin, len);
    status = framing_ndjson.next(state, slice_of(copy, len), frame);
    if (status == FRAME_WHOLE) {
        ck_assert_int_eq(copy[frame->consumed - 1], '\n');
    }
    free(copy);
    return status;
}

static const char *const lines[] = {
    "{\"id\":0,\"method\":\"ping\"}\n",
    "\n",
    "{}\r\n",
    " \t\r\n",
    "{\"id\":1,\"result\":[1,2,3]}\n",
    " {\"id\":2} \n",
    "{\"id\":3,\"x\":\"a rather long string that is cut into many pieces: \\u00e9 \xC3\xA9\"}\n",
    "\r\n",
    "{\"id\":4,\"error\":null}\n",
};

TEST_ROWS(frames_are_the_same_at_all_chunk_sizes, 39)
{
    struct text *stream = test_text();
    struct framing_state state;
    struct frame frame;
    size_t begin = 0, there = 0, line = 0, size = row + 1;

    for (size_t i = 0; i < COUNT(lines); i++)
        text_add(stream, lines[i], strlen(lines[i]));
    start_stream(&state);
    while (there < stream->len) {
        enum frame_status status;
        there = stream->len - there < size ? stream->len : there + size;
        while ((status = next_frame(&state, stream, begin, there, &frame)) != FRAME_MORE) {
            bool blank = strchr(lines[line], '{') == NULL;
            ck_assert_int_eq(status, blank ? FRAME_SKIP : FRAME_WHOLE);
            ck_assert_uint_eq(frame.consumed, strlen(lines[line]));
            if (!blank)
                ck_assert_mem_eq(stream->data + begin, lines[line], frame.consumed);
            begin += frame.consumed;
            line++;
        }
    }
    ck_assert_uint_eq(line, COUNT(lines));
    ck_assert_uint_eq(begin, stream->len);
}

TEST(fields_are_those_of_the_message)
{
    struct framing_state state;
    struct frame frame;
    struct message message;
    struct message_scratch scratch;
    struct slice input;
    int ids = 0;

    start_stream(&state);
    for (size_t i = 0; i < COUNT(lines); i++) {
        input = slice_of(lines[i], strlen(lines[i]));
        if (framing_ndjson.next(&state, input, &frame) != FRAME_WHOLE)
            continue;
        ck_assert_int_eq(message_from_scan(&message, input, &scanner.fields, &scratch), MESSAGE_OK);
        if (message.id.type == ID_NONE)
            continue;
        ck_assert_uint_eq(message.id.text.len, 1);
        ck_assert_int_eq(message.id.text.data[0], '0' + ids);
        ck_assert_int_eq(message_is_response(&message), ids == 1 || ids == 4);
        ids++;
    }
    ck_assert_int_eq(ids, 5);
}

TEST_ROWS(a_stream_of_all_accepted_texts_gives_all_of_them, 17)
{
    struct text *stream = test_text();
    struct framing_state state;
    struct frame frame;
    size_t begin = 0, there = 0, text = 0;

    for (size_t i = 0; i < JSON_TEXT_COUNT; i++) {
        if (json_texts[i].error == SCAN_ERROR_NONE)
            text_add(stream, json_texts[i].text, json_texts[i].len);
    }
    start_stream(&state);
    while (there < stream->len) {
        there = stream->len - there < row + 1 ? stream->len : there + row + 1;
        while (next_frame(&state, stream, begin, there, &frame) == FRAME_WHOLE) {
            while (json_texts[text].error != SCAN_ERROR_NONE)
                text++;
            ck_assert_uint_eq(frame.consumed, json_texts[text].len);
            ck_assert_mem_eq(stream->data + begin, json_texts[text].text, frame.consumed);
            begin += frame.consumed;
            text++;
        }
    }
    ck_assert_uint_eq(begin, stream->len);
}

TEST_ROWS(a_wrong_text_ends_the_stream_with_its_reason, JSON_TEXT_COUNT)
{
    const struct json_text *text = &json_texts[row];
    struct text *stream = test_text();
    struct framing_state state;
    struct frame frame;
    size_t begin;

    text_add(stream, "\n{\"id\":1}\n", 10);
    text_add(stream, text->text, text->len);
    text_add(stream, "{}\n", 3);
    for (size_t size = 1; size <= 64; size *= 2) {
        enum frame_status status = FRAME_MORE;
        start_stream(&state);
        begin = 0;
        for (size_t there = 0; status != FRAME_MALFORMED && there < stream->len;) {
            there = stream->len - there < size ? stream->len : there + size;
            do {
                status = next_frame(&state, stream, begin, there, &frame);
                if (status == FRAME_WHOLE || status == FRAME_SKIP)
                    begin += frame.consumed;
            } while (status == FRAME_WHOLE || status == FRAME_SKIP);
        }
        if (text->error == SCAN_ERROR_NONE) {
            ck_assert_int_eq(status, FRAME_MORE);
            ck_assert_uint_eq(begin, stream->len);
            continue;
        }
        ck_assert_int_eq(status, FRAME_MALFORMED);
        ck_assert_str_eq(frame.problem, scan_error_text(text->error));
        ck_assert_uint_eq(begin, 10);
        ck_assert_uint_eq(scanner.position, text->at);
    }
}

TEST(a_reset_forgets_what_was_begun)
{
    struct framing_state state;
    struct frame frame;

    start_stream(&state);
    ck_assert_int_eq(framing_ndjson.next(&state, slice_of("{\"id\":[", 7), &frame), FRAME_MORE);
    start_stream(&state);
    ck_assert_int_eq(framing_ndjson.next(&state, slice_of("{}\n", 3), &frame), FRAME_WHOLE);
    ck_assert_uint_eq(frame.consumed, 3);
    ck_assert_int_eq(framing_ndjson.next(&state, slice_of(NULL, 0), &frame), FRAME_MORE);
    ck_assert_int_eq(framing_ndjson.next(&state, slice_of("[", 1), &frame), FRAME_MALFORMED);
    start_stream(&state);
    ck_assert_int_eq(framing_ndjson.next(&state, slice_of("\n", 1), &frame), FRAME_SKIP);
    ck_assert_uint_eq(frame.consumed, 1);
}

WITHOUT_FORK
