/* Connections whose messages have their length announced: bridging between framings, frames that
 * are refused, cut or late (ADR-010). */
#include "build_config.h"

#include "connection_fixture.h"
#include "turns.h"

static const struct framing *const framings[] = {&framing_ndjson, &framing_content_length,
                                                 &framing_length};

#define PAIRS 9

/* Opens the owner over a socket in this framing. */
static void open_in(struct owner *owner, const struct framing *which)
{
    framing = which;
    open_socket(owner);
}

/* A message as it is on the wire. */
static void add_framed(struct text *to, const struct framing *which, const char *body, size_t len)
{
    char prefix[FRAME_PREFIX_MAX];

    if (which->prefix != NULL)
        text_add(to, prefix, which->prefix(prefix, len));
    text_add(to, body, len);
    if (which->prefix == NULL)
        text_add(to, "\n", 1);
}

static void send_framed_text(struct owner *owner, const char *body)
{
    add_framed(&owner->other.to_send, owner->stream.connection.framing, body, strlen(body));
}

/* A body of `len` bytes; with newlines between its tokens, or spaces in their place. */
static void make_body(struct text *body, size_t len, unsigned number, bool newlines)
{
    size_t end;

    body->len = 0;
    add_message(body, len - 3, number);
    end = body->len - 2; /* of what stands before the brace */
    body->len = end;
    text_add(body, newlines ? "\n}\r\n" : " }  ", 4);
    body->len = end + 4;
    body->data[body->len] = '\0';
    text_add(body, " ", 1);
    ck_assert_uint_eq(body->len, len);
}

static const size_t lengths[] = {60,   16384, 30,    65536, 25,     200000, 40000, 50,   40,
                                 9000, 20000, 65535, 65537, 900000, 100000, 30,    16383};

static const size_t chunks[] = {5000, 65536, SIZE_MAX};

/* row: framings of both sides, held or not, chunk size. */
TEST_ROWS(bridged_byte_for_byte, PAIRS * 2 * 3)
{
    const struct framing *from_framing = framings[row % 3], *to_framing = framings[row / 3 % 3];
    bool lines_in = from_framing == &framing_ndjson, lines_out = to_framing == &framing_ndjson;
    struct text *expected = test_text(), *body = test_text();
    struct owner from, to, *both[2] = {&from, &to};
    unsigned i, count = in_emulator() || harness_fewer() ? COUNT(lengths) : 2 * COUNT(lengths);

    limits.max_frame_body = 1 << 20;
    open_in(&from, from_framing);
    open_in(&to, to_framing);
    from.forward_to = &to.stream.endpoint;
    from.hold_mode = row / PAIRS % 2 == 0 ? HOLD_NEVER : HOLD_ONCE;
    from.other.send_chunk = chunks[row / PAIRS / 2];
    for (i = 0; i < count; i++) {
        make_body(body, lengths[i % COUNT(lengths)], i, !lines_in);
        add_framed(&from.other.to_send, from_framing, body->data, body->len);
        make_body(body, lengths[i % COUNT(lengths)], i, !lines_in && !lines_out);
        add_framed(expected, to_framing, body->data, body->len);
    }
    run_owners_until(both, 2, to.other.received.len >= expected->len);
    expect_same_bytes(&to.other.received, expected);
    ck_assert_int_eq(from.messages, count);
    ck_assert_int_gt(from.handed_over, 0);
    ck_assert_int_lt(from.handed_over, from.messages);
    close_owner(&from);
    close_owner(&to);
}

/* row: framings of both sides, copied or edited. */
TEST_ROWS(copied_and_edited_messages_are_bridged, PAIRS * 2)
{
    const struct framing *from_framing = framings[row % 3], *to_framing = framings[row / 3 % 3];
    bool lines_in = from_framing == &framing_ndjson, lines_out = to_framing == &framing_ndjson;
    struct text *expected = test_text(), *body = test_text(), *edited = test_text();
    struct owner from, to, *both[2] = {&from, &to};

    open_in(&from, from_framing);
    open_in(&to, to_framing);
    from.forward_to = &to.stream.endpoint;
    from.sending = row / PAIRS == 0 ? SENDING_COPY : SENDING_EDITED;
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        make_body(body, lengths[i], i, !lines_in);
        add_framed(&from.other.to_send, from_framing, body->data, body->len);
        make_body(body, lengths[i], i, !lines_in && !lines_out);
        edited->len = 0;
        text_add(edited, body->data, 1);
        if (from.sending == SENDING_EDITED)
            text_add(edited, EDIT EDIT, 2 * (sizeof EDIT - 1));
        text_add(edited, body->data + 1, body->len - 1);
        add_framed(expected, to_framing, edited->data, edited->len);
    }
    run_owners_until(both, 2, to.other.received.len >= expected->len);
    expect_same_bytes(&to.other.received, expected);
    close_owner(&from);
    close_owner(&to);
}

/* A body without a spare byte after it in its buffer is copied. */
TEST(body_that_ends_with_its_buffer)
{
    struct text *expected = test_text(), *body = test_text();
    struct owner from, to, *both[2] = {&from, &to};
    char prefix[FRAME_PREFIX_MAX];

    for (size_t len = BUFFER_LARGE - 40; len < BUFFER_LARGE + 2; len++) {
        open_in(&from, &framing_content_length);
        open_in(&to, &framing_ndjson);
        from.forward_to = &to.stream.endpoint;
        make_body(body, len - framing_content_length.prefix(prefix, len), 1, true);
        add_framed(&from.other.to_send, &framing_content_length, body->data, body->len);
        make_body(body, body->len, 1, false);
        expected->len = 0;
        add_framed(expected, &framing_ndjson, body->data, body->len);
        run_owners_until(both, 2, to.other.received.len >= expected->len);
        expect_same_bytes(&to.other.received, expected);
        close_owner(&from);
        close_owner(&to);
    }
}

/* row: framings of both sides, moved or copied, which allocation fails. */
TEST_ROWS(bridging_without_memory_loses_nothing, PAIRS * 2)
{
    const struct framing *from_framing = framings[row % 3], *to_framing = framings[row / 3 % 3];
    struct text *expected = test_text(), *body = test_text();
    struct owner from, to, *both[2] = {&from, &to};
    int failures;

    open_in(&from, from_framing);
    open_in(&to, to_framing);
    from.forward_to = &to.stream.endpoint;
    from.hold_mode = HOLD_ALWAYS;
    make_body(body, row / PAIRS == 0 ? 40000 : 4000, 1, false);
    add_framed(&from.other.to_send, from_framing, body->data, body->len);
    add_framed(expected, to_framing, body->data, body->len);
    add_framed(&from.other.to_send, from_framing, "{}", 2);
    add_framed(expected, to_framing, "{}", 2);
    run_owners_until(both, 2, from.offers == 1 && other_sent_all(&from.other));
    from.hold_mode = HOLD_NEVER;
    buffer_pool_free(&transport.pool);
    if (row / PAIRS == 2) /* the prefix finds its place, the rest does not */
        buffer_give(&transport.pool, buffer_take(&transport.pool, 1));
    out_of_memory = true;
    connection_resume(&from.stream.connection);
    failures = from.forward_failures;
    out_of_memory = false;
    ck_assert_int_eq(failures, 1);
    ck_assert_uint_eq(to.stream.connection.output.bytes, 0);
    ck_assert_ptr_null(to.stream.connection.output.first);
    run_owners_until(both, 2, to.other.received.len >= expected->len);
    expect_same_bytes(&to.other.received, expected);
    close_owner(&from);
    close_owner(&to);
}

TEST_ROWS(sent_lines_are_framed, 3)
{
    struct text *expected = test_text();
    struct owner owner;

    open_in(&owner, framings[row]);
    ck_assert_int_eq(send_line(&owner, slice_of("{\"a\":1}\n", 8)), STDIO_BUS_OK);
    ck_assert_int_eq(send_line(&owner, slice_of("{}\n", 3)), STDIO_BUS_OK);
    add_framed(expected, framings[row], "{\"a\":1}", 7);
    add_framed(expected, framings[row], "{}", 2);
    run_until(&owner, owner.other.received.len >= expected->len);
    expect_same_bytes(&owner.other.received, expected);
    buffer_pool_free(&transport.pool);
    out_of_memory = true;
    ck_assert_int_eq(send_line(&owner, slice_of("{}\n", 3)), STDIO_BUS_ERR);
    out_of_memory = false;
    ck_assert_uint_eq(owner.stream.connection.output.bytes, 0);
    close_owner(&owner);
}

/* The limit of the side without announced lengths is not this side's. */
TEST(limits_are_of_the_framing)
{
    struct text *body = test_text();
    struct owner owner;

    limits.max_input_buffer = 1000;
    limits.max_frame_body = 100000;
    make_body(body, 100000, 1, false);
    open_in(&owner, &framing_content_length);
    add_framed(&owner.other.to_send, framing, body->data, body->len);
    text_add(body, " ", 1);
    add_framed(&owner.other.to_send, framing, body->data, body->len);
    add_framed(&owner.other.to_send, framing, "{}", 2);
    run_until(&owner, owner.messages == 2);
    ck_assert_int_eq(owner.refused_count, 1);
    ck_assert_int_eq(owner.refused_code, JSONRPC_INVALID_REQUEST);
    ck_assert_int_eq(owner.malformed_count, 0);
    close_owner(&owner);
}

/* --- refused --- */

/* row: held after each or not, chunk size. */
TEST_ROWS(refused_frames_are_reported_in_turn, 4)
{
    struct owner owner;

    open_in(&owner, &framing_content_length);
    owner.hold_refused = row % 2 == 1;
    owner.other.send_chunk = row / 2 == 0 ? 1 : SIZE_MAX;
    for (int i = 0; i < 5; i++) {
        send_framed_text(&owner, "{");
        send_framed_text(&owner, "{\"id\":1}");
        other_send(&owner.other, "Content-Length: x\r\n\r\n");
    }
    send_framed_text(&owner, "{\"id\":2}");
    run_until(&owner, owner.messages == 6);
    ck_assert_int_eq(owner.refused_count, 10);
    ck_assert_int_eq(owner.refused_code, JSONRPC_PARSE_ERROR);
    ck_assert_str_eq(owner.malformed_text, "Content-Length is not a number");
    ck_assert_str_eq(owner.id, "2");
    ck_assert_ptr_null(owner.stream.connection.input);
    close_owner(&owner);
}

TEST(closed_when_refused)
{
    struct owner owner;

    open_in(&owner, &framing_content_length);
    owner.closing_at = CLOSE_AT_REFUSED;
    send_framed_text(&owner, "{}");
    other_send(&owner.other, "{}\n");
    send_framed_text(&owner, "{}");
    run_until(&owner, owner.refused_count > 0);
    ck_assert_int_eq(owner.messages, 1);
    ck_assert(!connection_is_open(&owner.stream.connection));
    close_owner(&owner);
}

/* --- cut --- */

static void end_input(struct owner *owner)
{
    run_until(owner, other_sent_all(&owner->other));
    ck_assert_int_eq(shutdown(owner->other.fd_out, SHUT_WR), 0);
    run_until(owner, owner->ended_count > 0 || !connection_is_open(&owner->stream.connection));
}

static const struct {
    const char *stream;
    int refused, code;
    size_t cut;
} ends[] = {
    {"", 0, 0, 0},
    {"Content-Length: 2\r\n\r\n{}", 0, 0, 0},
    {"Con", 1, JSONRPC_PARSE_ERROR, 0},
    {"Content-Length: 2\r\n\r\n", 1, JSONRPC_PARSE_ERROR, 0},
    {"Content-Length: 2\r\n\r\n{", 1, JSONRPC_PARSE_ERROR, 0},
    {"Content-Length: 20000000\r\n\r\n{}", 1, JSONRPC_INVALID_REQUEST, 0},
    {"Content-Length: 200\r\n\r\n{} {}", 1, JSONRPC_PARSE_ERROR, 0},
    {"\nsomething content", 1, JSONRPC_PARSE_ERROR, 7},
};

TEST_ROWS(input_ends_inside_a_frame, COUNT(ends))
{
    struct owner owner;

    open_in(&owner, &framing_content_length);
    other_send(&owner.other, ends[row].stream);
    end_input(&owner);
    ck_assert_int_eq(owner.ended_count, 1);
    ck_assert_int_eq(owner.refused_count, ends[row].refused);
    ck_assert_int_eq(owner.refused_code, ends[row].code);
    ck_assert_uint_eq(owner.cut, ends[row].cut);
    close_owner(&owner);
}

TEST(closed_when_the_end_is_refused)
{
    struct owner owner;

    open_in(&owner, &framing_length);
    owner.closing_at = CLOSE_AT_REFUSED;
    text_add(&owner.other.to_send, "\0", 1);
    end_input(&owner);
    ck_assert_int_eq(owner.refused_count, 1);
    ck_assert_int_eq(owner.ended_count, 0);
    close_owner(&owner);
}

/* --- late --- */

/* Time passes for the timers alone. */
static void pass_ms(int64_t ms)
{
    timers_run(stdio_bus_event_loop_timers(loop), stdio_bus_event_loop_now_ms(loop) + ms);
}

/* Sends a part of a frame and waits until it is there. */
static void send_part(struct owner *owner, const char *part)
{
    other_send(&owner->other, part);
    run_until(owner, other_sent_all(&owner->other) && owner->stream.connection.framing_state.begun);
}

static bool is_timed(const struct owner *owner)
{
    return timer_started(&owner->stream.connection.frame_time);
}

TEST_ROWS(late_frame_is_given_up, 3)
{
    static const char *const parts[] = {"Content-L", "Content-Length: 8\r\n\r\n{\"id\"",
                                        "Content-Length: 2000000000\r\n\r\n{\"id\""};
    struct owner owner;
    int64_t deadline;

    log_close(&test_log); /* its warnings would only confuse */
    open_in(&owner, &framing_content_length);
    for (int i = 0; i < 3; i++) {
        send_part(&owner, parts[row]);
        run_some(&owner);
        ck_assert(is_timed(&owner));
        deadline = timer_deadline_ms(&owner.stream.connection.frame_time);
        ck_assert_int_le(deadline, stdio_bus_event_loop_now_ms(loop) + 30000);
        timers_run(stdio_bus_event_loop_timers(loop), deadline - 1);
        ck_assert(owner.stream.connection.framing_state.begun);
        timers_run(stdio_bus_event_loop_timers(loop), deadline);
        ck_assert(!owner.stream.connection.framing_state.begun);
        ck_assert(!is_timed(&owner));
        ck_assert_ptr_null(owner.stream.connection.input);
        other_send(&owner.other, ":2}ength: 7\r\n\r\n");
        send_framed_text(&owner, "{}");
        run_until(&owner, owner.messages == i + 1);
    }
    ck_assert_int_eq(owner.refused_count, row == 2 ? 3 : 0);
    log_open(&test_log, STDERR_FILENO, LOG_LEVEL_ERROR);
    close_owner(&owner);
}

TEST_ROWS(whole_frames_start_no_timer, 2)
{
    struct owner owner, *only = &owner;

    open_in(&owner, framings[1 + row]);
    for (int i = 0; i < 100; i++)
        send_framed_text(&owner, "{\"id\":1}");
    for (int i = 0; i < 1000 && owner.messages < 100; i++) {
        run_round(&only, 1);
        ck_assert(!is_timed(&owner) || owner.stream.connection.framing_state.begun);
    }
    ck_assert_int_eq(owner.messages, 100);
    ck_assert(!is_timed(&owner));
    close_owner(&owner);
}

TEST(each_frame_has_its_own_time)
{
    struct owner owner;
    int64_t deadline;

    open_in(&owner, &framing_content_length);
    send_part(&owner, "Content-Length: 2\r\n\r\n");
    ck_assert(is_timed(&owner));
    deadline = timer_deadline_ms(&owner.stream.connection.frame_time);
    run_until(&owner, stdio_bus_event_loop_now_ms(loop) > deadline - 30000 + 20);
    send_part(&owner, "{}Content-Length");
    run_until(&owner, owner.messages == 1);
    ck_assert(is_timed(&owner));
    ck_assert_int_gt(timer_deadline_ms(&owner.stream.connection.frame_time), deadline);
    other_send(&owner.other, ": 2\r\n\r\n{}");
    run_until(&owner, owner.messages == 2);
    ck_assert(!is_timed(&owner));
    close_owner(&owner);
}

/* A frame that waits after a held message is not late. */
TEST(held_frames_are_not_late)
{
    struct owner owner;

    open_in(&owner, &framing_content_length);
    owner.hold_mode = HOLD_ALWAYS;
    send_part(&owner, "Content-Length: 2\r\n\r\n{");
    other_send(&owner.other, "}Content-Length: 2\r\n\r\n{");
    run_until(&owner, owner.offers == 1);
    run_some(&owner);
    pass_ms(60000);
    owner.hold_mode = HOLD_NEVER;
    connection_resume(&owner.stream.connection);
    ck_assert_int_eq(owner.messages, 1);
    ck_assert(is_timed(&owner));
    other_send(&owner.other, "}");
    run_until(&owner, owner.messages == 2);
    ck_assert_int_eq(owner.refused_count, 0);
    close_owner(&owner);
}

/* Nor is the rest of a refused frame while the input is paused. */
TEST(held_rest_is_not_late)
{
    struct owner owner;

    open_in(&owner, &framing_content_length);
    owner.hold_refused = true;
    send_part(&owner, "Content-Length: 20000000\r\n");
    ck_assert(is_timed(&owner));
    other_send(&owner.other, "\r\n");
    run_until(&owner, owner.refused_count == 1);
    ck_assert(owner.stream.connection.input_state == INPUT_PAUSED);
    pass_ms(60000);
    ck_assert(owner.stream.connection.framing_state.begun);
    ck_assert(is_timed(&owner));
    run_until(&owner, owner.stream.connection.input_state != INPUT_PAUSED);
    timers_run(stdio_bus_event_loop_timers(loop),
               timer_deadline_ms(&owner.stream.connection.frame_time));
    ck_assert(!owner.stream.connection.framing_state.begun);
    send_framed_text(&owner, "{}");
    run_until(&owner, owner.messages == 1);
    close_owner(&owner);
}

TEST_ROWS(stopped_input_is_not_late, 2)
{
    struct owner owner;

    open_in(&owner, &framing_content_length);
    send_part(&owner, "Content-Length: 2\r\n\r\n{");
    if (row == 0)
        connection_stop_input(&owner.stream.connection);
    else
        connection_linger(&owner.stream.connection);
    pass_ms(60000);
    ck_assert_int_eq(owner.refused_count, 0);
    close_owner(&owner);
}
