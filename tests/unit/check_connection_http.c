/* Connections of HTTP and WebSocket: bodies in pieces become one piece, whatever their length, and
 * move on; what is noted between them; what is late; bytes that an owner frames itself. */
#include "build_config.h"

#include "connection_fixture.h"
#include "http/chunked.h"
#include "http/reader.h"
#include "http/websocket.h"
#include "turns.h"

static struct http_reader http[4];
static struct websocket_reader websocket[4];
static size_t opened;
static int heads, notes;

static void on_http_frame(struct connection *connection, struct slice frame)
{
    const struct http_reader *reader = connection->framing_state.reader;

    if (reader->part == HTTP_PART_HEAD)
        heads++;
    else
        stream_read(connection, frame);
}

static void on_noted(struct connection *connection)
{
    (void)connection;
    notes++;
}

static struct stream_handler http_handler, websocket_handler;

static void open_with(struct owner *owner, const struct framing *which)
{
    bool is_http = which == &framing_http;
    struct stream_options options = {.handler = is_http ? &http_handler : &websocket_handler,
                                     .framing = which,
                                     .reader = is_http ? (void *)&http[opened]
                                                       : (void *)&websocket[opened],
                                     .max_long = max_long};
    int ends[2];

    http_handler = websocket_handler = handler;
    http_handler.connection.frame = on_http_frame;
    http_handler.connection.noted = websocket_handler.connection.noted = on_noted;
    opened++;
    memset(owner, 0, sizeof *owner);
    stream_init(&owner->stream);
    owner->other.send_chunk = owner->other.read_chunk = SIZE_MAX;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    options.fd_in = options.fd_out = ends[0];
    owner->other.fd_in = owner->other.fd_out = ends[1];
    ck_assert_int_eq(stream_open(&owner->stream, &transport, &options), STDIO_BUS_OK);
}

/* --- streams of messages --- */

enum coding { SIZED, LARGE_CHUNKS, SMALL_CHUNKS, ONE_FRAME, LARGE_FRAGMENTS, SMALL_FRAGMENTS };

#define CODINGS 6
#define HEAD "POST / HTTP/1.1\r\nHost: a\r\n"

static void add_chunks(struct text *to, const char *body, size_t len, size_t size)
{
    char head[CHUNK_HEAD_MAX];

    for (size_t at = 0; at < len; at += size) {
        size_t count = len - at < size ? len - at : size;

        text_add(to, head, chunk_write_head(head, count));
        text_add(to, body + at, count);
        text_add(to, CHUNK_TAIL, 2);
    }
    text_add(to, CHUNKED_LAST, sizeof CHUNKED_LAST - 1);
}

static void add_frame(struct text *to, unsigned first, const char *data, size_t len)
{
    static const unsigned char mask[] = {0xA5, 0x11, 0x7F, 0xC3};
    char head[WEBSOCKET_HEAD_MAX];

    text_add(to, head, websocket_write_head(head, WEBSOCKET_TEXT, len, mask));
    to->data[to->len - (len < 126 ? 6 : len < 65536 ? 8 : 14)] = (char)first;
    text_add(to, data, len);
    if (len > 0)
        websocket_mask(to->data + to->len - len, len, mask, 0);
}

/* With a ping after each fragment. */
static void add_fragments(struct text *to, const char *body, size_t len, size_t size)
{
    for (size_t at = 0; at < len; at += size) {
        size_t count = len - at < size ? len - at : size;

        add_frame(to, (at == 0 ? 1u : 0u) | (at + count == len ? 0x80u : 0u), body + at, count);
        add_frame(to, 0x89, "ping", 4);
    }
}

static void add_coded(struct text *to, enum coding coding, const char *body, size_t len)
{
    char head[128];

    switch (coding) {
    case SIZED:
        snprintf(head, sizeof head, HEAD "Content-Length: %zu\r\n\r\n", len);
        text_add(to, head, strlen(head));
        text_add(to, body, len);
        break;
    case LARGE_CHUNKS:
    case SMALL_CHUNKS:
        snprintf(head, sizeof head, HEAD "Transfer-Encoding: chunked\r\n\r\n");
        text_add(to, head, strlen(head));
        add_chunks(to, body, len, coding == LARGE_CHUNKS ? 50000 : 7);
        break;
    case ONE_FRAME:
        add_frame(to, 0x81, body, len);
        break;
    default:
        add_fragments(to, body, len, coding == LARGE_FRAGMENTS ? 50000 : 200);
    }
}

static const size_t lengths[] = {60,   16384, 30,    65536, 25,     200000, 40000, 50,   40,
                                 9000, 20000, 65535, 65537, 900000, 100000, 30,    16383};

static const size_t chunks[] = {5000, 65536, SIZE_MAX};

/* row: coding, held or not, chunk size of the socket. */
TEST_ROWS(forwarded_byte_for_byte, CODINGS * 2 * 3)
{
    enum coding coding = (enum coding)(row % CODINGS);
    bool is_http = coding <= SMALL_CHUNKS;
    struct text *expected = test_text(), *message = test_text();
    struct owner from, to, *both[2] = {&from, &to};

    limits.max_frame_body = 1 << 20;
    open_with(&from, is_http ? &framing_http : &framing_websocket);
    open_socket(&to);
    from.forward_to = &to.stream.endpoint;
    from.hold_mode = row / CODINGS % 2 == 0 ? HOLD_NEVER : HOLD_ONCE;
    from.other.send_chunk = chunks[row / CODINGS / 2];
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        message->len = 0;
        add_message(message, lengths[i], i);
        add_coded(&from.other.to_send, coding, message->data, message->len - 1);
        text_add(expected, message->data, message->len);
    }
    run_owners_until(both, 2, to.other.received.len >= expected->len);
    expect_same_bytes(&to.other.received, expected);
    ck_assert_int_eq(from.messages, (int)COUNT(lengths));
    ck_assert_int_gt(from.handed_over, 0);
    ck_assert_int_eq(heads, is_http ? (int)COUNT(lengths) : 0);
    ck_assert((notes > 0) == (coding > ONE_FRAME));
    ck_assert_int_eq(from.refused_count + from.malformed_count, 0);
    close_owner(&from);
    close_owner(&to);
}

/* Bodies that are together longer than memory allows wait for each other, and all arrive. */
TEST_ROWS(bodies_share_memory, CODINGS)
{
    struct owner owners[4], to, *all[5];
    struct text *message = test_text();

    max_long = limits.max_message = 1 << 20;
    limits.max_frame_body = 1 << 20;
    limits.max_memory = 4 << 20;
    add_message(message, 900000, 1);
    open_socket(&to);
    all[4] = &to;
    for (int i = 0; i < 4; i++) {
        all[i] = &owners[i];
        open_with(&owners[i], row <= SMALL_CHUNKS ? &framing_http : &framing_websocket);
        owners[i].forward_to = &to.stream.endpoint;
        owners[i].other.send_chunk = 100000;
        add_coded(&owners[i].other.to_send, (enum coding)row, message->data, message->len - 1);
    }
    run_owners_until(all, 5, to.other.received.len >= 4 * message->len);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(owners[i].messages, 1);
        close_owner(&owners[i]);
    }
    ck_assert_uint_eq(transport.shares[0].reserved, 0);
    close_owner(&to);
}

/* --- what is late --- */

static void pass_ms(int64_t ms)
{
    timers_run(stdio_bus_event_loop_timers(loop), stdio_bus_event_loop_now_ms(loop) + ms);
}

/* row: in a head, or in a body. */
TEST_ROWS(late_requests_are_malformed, 2)
{
    struct owner owner;

    open_with(&owner, &framing_http);
    other_send(&owner.other, row == 0 ? "GET / HTTP/1.1\r\n" : HEAD "Content-Length: 2\r\n\r\n{");
    run_until(&owner, other_sent_all(&owner.other) && owner.stream.connection.framing_state.begun &&
                          timer_started(&owner.stream.connection.frame_time) && heads == (int)row);
    pass_ms(row == 0 ? HTTP_HEAD_MS - 1000 : 29000);
    ck_assert_int_eq(owner.malformed_count, 0);
    pass_ms(row == 0 ? HTTP_HEAD_MS + 10 : 30010);
    ck_assert_int_eq(owner.malformed_count, 1);
    ck_assert_int_eq(http[0].status, 408);
    close_owner(&owner);
}

TEST(idle_connection_is_not_late)
{
    struct owner owner;

    open_with(&owner, &framing_http);
    other_send(&owner.other, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    run_until(&owner, heads == 1);
    run_some(&owner);
    ck_assert(!timer_started(&owner.stream.connection.frame_time));
    pass_ms(100000);
    ck_assert_int_eq(owner.malformed_count, 0);
    close_owner(&owner);
}

TEST(input_ends_inside_a_body)
{
    struct owner owner;

    open_with(&owner, &framing_http);
    other_send(&owner.other, HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\n{");
    run_until(&owner, heads == 1);
    shutdown(owner.other.fd_out, SHUT_WR);
    run_until(&owner, owner.ended_count == 1);
    ck_assert_int_eq(owner.refused_count, 1);
    ck_assert_int_eq(http[0].status, 408);
    close_owner(&owner);
}

/* --- bytes that the owner frames --- */

static const struct connection_parts parts = {
    .before = {"<before>", 8}, .after = {"<after the body>", 16}, .one_line = true};
static struct connection *parts_to;
static bool parts_edited;

static int send_in_parts(struct endpoint *to, const struct delivery *delivery)
{
    size_t len = delivery->bytes.len - 1; /* without the newline */
    const struct splice_edit edits[] = {{1, 0, {"\"a\":0,", 6}}, {len - 1, 0, {",\"z\":9", 6}}};
    const struct splice_edit *edit = parts_edited ? edits : NULL;

    (void)to;
    return connection_send_parts(parts_to, &stream_of(delivery->from)->connection, &parts,
                                 slice_of(delivery->bytes.data, len), edit, parts_edited ? 1 : 0);
}

/* row: edited or not, without memory in between or not. */
TEST_ROWS(parts_around_a_body, 4)
{
    static const struct endpoint_ops ops = {.deliver = send_in_parts};
    struct endpoint sink = {.ops = &ops};
    struct text *expected = test_text(), *message = test_text();
    struct owner from, to, *both[2] = {&from, &to};

    limits.max_input_buffer = 1 << 20;
    open_socket(&from);
    open_socket(&to);
    parts_to = &to.stream.connection;
    parts_edited = row % 2 == 1;
    from.forward_to = &sink;
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        message->len = 0;
        add_message(message, lengths[i], i);
        text_add(&from.other.to_send, message->data, message->len);
        text_add(expected, "<before>{", 9);
        text_add(expected, "\"a\":0,", parts_edited ? 6 : 0);
        text_add(expected, message->data + 1, message->len - 2);
        text_add(expected, "<after the body>", 16);
    }
    for (int i = 0; i < 2000 && to.other.received.len < expected->len; i++) {
        out_of_memory = row >= 2 && i % 7 == 3;
        run_round(both, 2);
    }
    out_of_memory = false;
    run_owners_until(both, 2, to.other.received.len >= expected->len);
    expect_same_bytes(&to.other.received, expected);
    ck_assert_int_gt(from.handed_over, 0);
    close_owner(&from);
    close_owner(&to);
}

/* The end of a body is edited: what is before it moves. */
TEST(last_byte_is_edited)
{
    static const struct splice_edit edits[] = {{99997, 0, {",\"z\":9", 6}}};
    struct text *message = test_text();
    struct owner to;
    struct owner from;

    open_socket(&from);
    open_socket(&to);
    from.hold_mode = HOLD_ALWAYS;
    add_message(message, 99999, 1);
    message->data[99999 - 1] = '\n';
    text_add(&from.other.to_send, message->data, message->len);
    run_until(&from, from.offers == 1);
    ck_assert_int_eq(connection_send_parts(&to.stream.connection, &from.stream.connection, &parts,
                                           slice_of(from.stream.connection.input->data +
                                                        from.stream.connection.input->start,
                                                    99998),
                                           edits, 1),
                     STDIO_BUS_OK);
    ck_assert_ptr_null(from.stream.connection.input);
    run_until(&to, to.other.received.len == 8 + 99998 + 6 + 16);
    ck_assert_int_eq(memcmp(to.other.received.data + 8 + 99990, message->data + 99990, 7), 0);
    ck_assert_int_eq(memcmp(to.other.received.data + 8 + 99997, ",\"z\":9}<after the body>", 23),
                     0);
    close_owner(&from);
    close_owner(&to);
}

TEST(plain_bytes)
{
    struct owner owner;

    open_socket(&owner);
    out_of_memory = true;
    ck_assert_int_eq(connection_send_bytes(&owner.stream.connection, slice_of("abc", 3)),
                     STDIO_BUS_ERR);
    out_of_memory = false;
    ck_assert_int_eq(connection_send_bytes(&owner.stream.connection, slice_of("def", 3)),
                     STDIO_BUS_OK);
    run_until(&owner, owner.other.received.len == 3);
    ck_assert_int_eq(memcmp(owner.other.received.data, "def", 3), 0);
    close_owner(&owner);
}
