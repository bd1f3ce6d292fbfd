/* Messages that are too long to be kept: in every framing, however the stream is cut into pieces,
 * their ids are found, and what is kept of them is short. */
#include "build_config.h"

#include "connection_fixture.h"
#include "json/message.h"

#define MAX_BODY 3000
#define MAX_LONG 6000

static const struct framing *const framings[] = {&framing_ndjson, &framing_content_length,
                                                 &framing_length};
static const size_t pieces[] = {1, 7, 64, 1000, 1024, 4096, 5999, 65536, SIZE_MAX};

/* @ stands for a long text, # for a long one of escapes. */
static const char *const texts[] = {
    "{\"id\":1,\"result\":\"@\"}",
    "{\"result\":\"@\",\"id\":\"the end\"}",
    "{\"id\":3,\"x\":\"@\",\"id\":4,\"y\":\"@\",\"method\":\"m\"}",
    "{\"x\":\"@\",\"\\u0069d\":\"\\u0061\\n\",\"error\":{\"id\":9,\"x\":\"@\"}}",
    "{\"id\":12.50,\"x\":[[[{\"id\":1}],\"@\"],\"#\"],\"sessionId\":\"s\",\"pool\":7}",
    "{\"@\":1,\"id\":5,\"#\":{\"result\":\"#\"}}",
    "{\"id\":\"@\"}",
    "{\"id\":\"#\",\"method\":\"@\"}",
    "{\"method\":\"#\",\"id\":[\"@\"]}",
    "{\"id\":1111111111,\"x\":\"@\",\"id\":null}",
    "   {  \"x\" : \"@\"  ,  \"id\"  :  -7  }   ",
    "{\"x\":\"@\xC3\xA9\xF0\x9F\x98\x80@\",\"id\":\"\xC3\xA9\"}",
};

static void add_body(struct text *to, const char *text, size_t len)
{
    for (; *text != '\0'; text++) {
        for (size_t i = 0; (*text == '@' || *text == '#') && i < len; i++)
            text_add(to,
                     *text == '@' ? "x"
                     : i % 7 == 3 ? "\\u0061\\\""
                                  : "\\\\",
                     *text == '@' ? 1
                     : i % 7 == 3 ? 8
                                  : 2);
        if (*text != '@' && *text != '#')
            text_add(to, text, 1);
    }
}

static void add_frame(struct text *to, const struct framing *used, const struct text *body)
{
    char prefix[FRAME_PREFIX_MAX];

    if (used->prefix != NULL)
        text_add(to, prefix, used->prefix(prefix, body->len));
    text_add(to, body->data, body->len);
    if (used->prefix == NULL)
        text_add(to, "\n", 1);
}

/* What is known of a message. */
struct facts {
    enum message_problem problem;
    struct message_id id;
    char id_text[MESSAGE_ID_TEXT_MAX];
    bool has_result, has_error, has_method, is_cut;
};

static void note_facts(struct facts *facts, struct slice bytes, const struct scan_fields *fields)
{
    struct message_scratch scratch;

    memset(facts, 0, sizeof *facts);
    facts->problem = message_read_id(&facts->id, bytes, &fields->id, &scratch);
    memcpy(facts->id_text, facts->id.text.len > 0 ? facts->id.text.data : "", facts->id.text.len);
    facts->id.text.data = facts->id_text;
    facts->has_result = fields->has_result;
    facts->has_error = fields->has_error;
    facts->has_method = fields->method.type == SCAN_STRING;
    facts->is_cut = (fields->oddities & SCAN_CUT) != 0;
}

static void expect_facts(const struct text *body, const struct facts *found, bool is_cut)
{
    struct scanner whole;
    struct facts expected;

    scanner_reset(&whole);
    whole.form = SCAN_SIZED;
    ck_assert_int_eq(scanner_run(&whole, body->data, body->len), SCAN_MORE);
    ck_assert_int_eq(scanner_end(&whole), SCAN_MESSAGE);
    note_facts(&expected, slice_of(body->data, body->len), &whole.fields);
    ck_assert_int_eq(found->problem, expected.problem);
    ck_assert(message_id_equal(found->id, expected.id));
    ck_assert_int_eq(found->has_result, expected.has_result);
    ck_assert_int_eq(found->has_error, expected.has_error);
    ck_assert_int_eq(found->has_method, expected.has_method);
    ck_assert_int_eq(found->is_cut, is_cut);
}

/* An exact copy of bytes, so that a sanitizer sees what is read beyond them. */
static char *copy_of(const char *bytes, size_t len)
{
    char *copy = malloc(len + (len == 0));

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, len);
    return copy;
}

/* Reads one frame as a connection does, in pieces of this size. */
static void read_frame(const struct framing *used, struct framing_state *state, struct slice stream,
                       size_t piece, struct facts *facts)
{
    struct scanner *scanner = state->check_state;
    char *input = copy_of("", 0);
    size_t len = 0, read = 0;
    struct frame frame;

    for (;;) {
        enum frame_status status = used->next(state, slice_of(input, len), &frame);
        size_t more = stream.len - read < piece ? stream.len - read : piece;
        char *grown;

        if (status == FRAME_WHOLE)
            break;
        ck_assert(status == FRAME_MORE || status == FRAME_WAIT || status == FRAME_SKIP);
        if (status == FRAME_SKIP) {
            memmove(input, input + frame.consumed, len -= frame.consumed);
            continue;
        }
        if (state->cut || (used->prefix == NULL && len >= MAX_LONG)) {
            len = used->cut(state, input, len);
            ck_assert_uint_le(len, SCANNER_KEPT_MAX);
        }
        ck_assert_uint_gt(more, 0);
        grown = malloc(len + more);
        ck_assert_ptr_nonnull(grown);
        memcpy(grown, input, len);
        memcpy(grown + len, stream.data + read, more);
        free(input);
        input = grown;
        len += more;
        read += more;
    }
    ck_assert_uint_eq(frame.consumed, len);
    ck_assert_uint_eq(read, stream.len);
    ck_assert(!state->cut);
    if (frame.consumed > MAX_LONG)
        state->check->mark(scanner, true);
    note_facts(facts, slice_of(input, frame.consumed), &scanner->fields);
    free(input);
}

/* One state for messages that are long, and others that are not. */
TEST_ROWS(ids_are_found_in_pieces_of_any_size, COUNT(framings) * COUNT(pieces))
{
    static const size_t lengths[] = {20000, 3, 2900, 7000, 1100, 0, 50000};
    const struct framing *used = framings[row / COUNT(pieces)];
    struct scanner scanner;
    struct framing_state state;
    size_t few = harness_fewer() ? 20 : 5;

    memset(&scanner, 0, sizeof scanner);
    state = (struct framing_state){.check = &json_body_check,
                                   .check_state = &scanner,
                                   .max_body = MAX_BODY,
                                   .max_long = MAX_LONG};
    used->reset(&state);
    for (size_t i = 0; i < COUNT(texts) * COUNT(lengths); i++) {
        struct text body = {0}, frame = {0};
        struct facts facts;

        if (pieces[row % COUNT(pieces)] < 64 && (i % few > 0 || lengths[i / COUNT(texts)] > 7000))
            continue; /* it takes its time */
        add_body(&body, texts[i % COUNT(texts)], lengths[i / COUNT(texts)]);
        add_frame(&frame, used, &body);
        read_frame(used, &state, slice_of(frame.data, frame.len), pieces[row % COUNT(pieces)],
                   &facts);
        expect_facts(&body, &facts, body.len + (used->prefix == NULL) > MAX_LONG);
        text_free(&body);
        text_free(&frame);
    }
}

/* --- in a connection --- */

/* row: framing, held or not. A message that is cut comes once, and little of it is kept. */
TEST_ROWS(long_message_is_cut_as_it_comes, COUNT(framings) * 2)
{
    struct text *body = test_text();
    struct owner owner;

    framing = framings[row / 2];
    limits.max_input_buffer = limits.max_frame_body = 100000;
    max_long = 400000;
    open_socket(&owner);
    owner.hold_mode = row % 2 == 0 ? HOLD_NEVER : HOLD_ONCE;
    owner.other.send_chunk = 9999;
    for (int i = 0; i < 4; i++) {
        int messages = owner.messages;
        bool begun = false;

        body->len = 0;
        add_body(body, texts[1], i == 0 ? 3000000 : i == 1 ? 50 : i == 2 ? 390000 : 400001);
        add_frame(&owner.other.to_send, framing, body);
        while (owner.messages == messages) {
            const struct buffer *input = owner.stream.connection.input;

            run_some(&owner);
            begun |= owner.stream.connection.framing_state.cut;
            if (begun && input != NULL)
                ck_assert_uint_le(owner.stream.connection.input != NULL
                                      ? owner.stream.connection.input->capacity
                                      : 0,
                                  BUFFER_LARGE);
        }
        ck_assert_str_eq(owner.id, "the end");
        ck_assert_int_eq(owner.is_cut, i != 2 && i != 1);
    }
    ck_assert_int_eq(owner.messages, 4);
    ck_assert_int_eq(owner.long_count, 3);
    ck_assert_uint_eq(owner.stream.connection.reserved, 0);
    ck_assert_uint_eq(transport.shares[0].reserved, 0);
    ck_assert_uint_eq(transport.shares[0].growing, 0);
    close_owner(&owner);
}

/* What is wrong in the part that is not kept is malformed as ever. */
TEST_ROWS(long_malformed_line, 2)
{
    struct owner owner;
    struct text *body = test_text();

    limits.max_input_buffer = 100000;
    max_long = 400000;
    open_socket(&owner);
    owner.stream.connection.skips_bad_lines = row == 1;
    add_body(body, "{\"id\":1,\"x\":\"@\",}", 1000000);
    add_frame(&owner.other.to_send, &framing_ndjson, body);
    other_send(&owner.other, "{\"id\":2}\n");
    run_until(&owner, row == 1 ? owner.messages == 1 : owner.malformed_count == 1);
    ck_assert_uint_eq(owner.stream.skipped, (unsigned)row);
    ck_assert_int_eq(owner.long_count, 0);
    close_owner(&owner);
}
