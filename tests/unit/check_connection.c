/* Connections: their input, their beginning and their end. */
#include "build_config.h"

#include "connection_fixture.h"
#include "json/message.h"

static const size_t chunks[] = {1, 2, 3, 7, 64, 1000, 4096, 65536, SIZE_MAX};

/* --- messages --- */

/* Lines of all kinds, and in `messages` those that are messages. */
static void add_small_script(struct text *script, struct text *messages)
{
    static const char *const lines[] = {
        "{\"id\":1,\"method\":\"a\"}\n",
        "\n",
        "{}\n",
        " \r\n",
        "{\"id\":\"\\u0061\",\"sessionId\":\"s\",\"params\":[1,2,{\"x\":\"}\\n\"}]}\r\n",
        "\n\n\n",
        "  {\"k\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"}\n",
        "{\"id\":-1.5e3}\n",
    };

    for (size_t i = 0; i < COUNT(lines); i++) {
        text_add(script, lines[i], strlen(lines[i]));
        if (strchr(lines[i], '{') != NULL)
            text_add(messages, lines[i], strlen(lines[i]));
    }
}

static void add_large_script(struct text *script)
{
    static const size_t lengths[] = {100,  65535, 20,    65536,  65537, 30,    300000, 2000,
                                     2016, 2048,  16384, 131072, 50,    49152, 16383,  1048576};

    for (unsigned i = 0; i < COUNT(lengths); i++)
        add_message(script, lengths[i], i);
}

/* Sends the script in chunks and expects the messages, then the end. */
static void run_script(struct owner *owner, const struct text *script, const struct text *messages,
                       size_t chunk)
{
    owner->other.send_chunk = chunk;
    text_add(&owner->other.to_send, script->data, script->len);
    run_until(owner, other_sent_all(&owner->other));
    ck_assert_int_eq(owner->ended_count, 0);
    if (owner->other.fd_in == owner->other.fd_out)
        ck_assert_int_eq(shutdown(owner->other.fd_out, SHUT_WR), 0);
    else
        ck_assert_int_eq(close(owner->other.fd_out), 0);
    run_until(owner, owner->ended_count > 0);
    ck_assert_uint_eq(owner->cut, 0);
    ck_assert_int_eq(owner->malformed_count, 0);
    expect_same_bytes(&owner->taken, messages);
    run_some(owner);
    ck_assert_int_eq(owner->ended_count, 1);
    if (owner->other.fd_in != owner->other.fd_out)
        owner->other.fd_out = -1;
}

/* row: chunk size, held or not, socket or pipes. */
TEST_ROWS(small_messages_in_chunks, 4 * COUNT(chunks))
{
    struct text *script = test_text(), *messages = test_text();
    struct owner owner;

    add_small_script(script, messages);
    open_either(&owner, row % 2);
    owner.hold_mode = row / 2 % 2 == 0 ? HOLD_NEVER : HOLD_ONCE;
    run_script(&owner, script, messages, chunks[row / 4]);
    ck_assert_int_eq(owner.messages, 5);
    ck_assert_int_eq(owner.offers, owner.hold_mode == HOLD_NEVER ? 5 : 10);
    close_owner(&owner);
}

/* Each carriage return of a line but the one before its newline, and the line that is forwarded. */
static const char *const returns[][2] = {
    {"{\"a\":\r{\"id\":2,\"method\":\"m\"}\r}\n", "{\"a\": {\"id\":2,\"method\":\"m\"} }\n"},
    {"{\"id\":1}\r\n", "{\"id\":1}\r\n"},
    {"\r{\"id\":1}\r\r\n", " {\"id\":1} \r\n"},
    {"{\"id\"\r:\r-1.5e3\r,\r\"a\":[\r1\r,\rtrue\r,\"\\r\"\r]}\n",
     "{\"id\" : -1.5e3 , \"a\":[ 1 , true ,\"\\r\" ]}\n"},
    {"{\r}\r \n", "{ }  \n"},
    {" \r \r\n", ""},
    {"{\"a\":[\r]\r,\"b\":{\r},\"c\":null\r}\n", "{\"a\":[ ] ,\"b\":{ },\"c\":null }\n"},
};

/* Sends the lines, and expects what becomes of them. row: chunk size, held or not, socket or
 * pipes. */
static void run_lines(size_t row, const char *const lines[][2], size_t count, unsigned skipped)
{
    struct text script = {0}, messages = {0};
    struct owner owner;

    for (size_t i = 0; i < count; i++) {
        text_add(&script, lines[i][0], strlen(lines[i][0]));
        text_add(&messages, lines[i][1], strlen(lines[i][1]));
    }
    open_either(&owner, row % 2);
    owner.stream.connection.skips_bad_lines = owner.stream.scanner.splits_arrays = skipped > 0;
    framing_ndjson.reset(&owner.stream.connection.framing_state);
    owner.hold_mode = row / 2 % 2 == 0 ? HOLD_NEVER : HOLD_ONCE;
    run_script(&owner, &script, &messages, chunks[row / 4]);
    ck_assert_uint_eq(owner.stream.skipped, skipped);
    close_owner(&owner);
    text_free(&script);
    text_free(&messages);
}

/* A carriage return within a line could begin a line of its own for its reader. */
TEST_ROWS(carriage_returns_in_a_line_become_spaces, 4 * COUNT(chunks))
{
    run_lines(row, returns, COUNT(returns), 0);
}

/* Lines that are arrays, and what becomes of them. */
static const char *const arrays[][2] = {
    {"[{\"id\":1},{\"id\":2}]\n", " {\"id\":1}\n{\"id\":2}\n"},
    {" [ {\"a\":[{}]} ,\t{\"b\":\"],[\"}\r]\r\n", "   {\"a\":[{}]} \n\t{\"b\":\"],[\"}\r\n"},
    {"[{\"id\":3}] \n{\"id\":4}\n", " {\"id\":3}\n{\"id\":4}\n"},
    {"[]\n", ""},
    {"[1,{\"id\":5}]\n", ""},
    {"[{\"id\":6},]\n{}\n", " {\"id\":6}\n{}\n"},
    {"[{\"id\":7}\n{}\n", "{}\n"},
    {"[{\"id\":8},\n{}\n", " {\"id\":8}\n{}\n"},
    {"[{\"id\":9},[{\"id\":10}]]\n", " {\"id\":9}\n"},
    {"[{\"id\":11}] {\"id\":12}\n[{}],{}\n[{}][{}]\n", " {\"id\":11}\n {}\n {}\n"},
    {"{\"id\":13},{\"id\":14}\n{\"id\":15}]\n", ""},
    {"[{\"id\":16}{\"id\":17}]\n", ""},
};

TEST_ROWS(arrays_are_split_into_messages, 4 * COUNT(chunks))
{
    run_lines(row, arrays, COUNT(arrays), 12);
}

/* An array needs no more memory than its longest message. */
TEST_ROWS(array_longer_than_the_limit_of_a_message, 2)
{
    struct text *messages = test_text();
    struct owner owner;

    limits.max_input_buffer = 2000;
    open_either(&owner, row);
    owner.stream.scanner.splits_arrays = true;
    framing_ndjson.reset(&owner.stream.connection.framing_state);
    text_add(messages, "[", 1);
    for (size_t i = 0; i < 1000; i++)
        add_message(messages, 2000 - (i == 0), (unsigned)i);
    text_add(&owner.other.to_send, messages->data, messages->len);
    for (size_t i = 0; i < messages->len; i++) {
        if (messages->data[i] == '\n')
            owner.other.to_send.data[i] = i + 1 < messages->len ? ',' : ']';
    }
    messages->data[0] = ' ';
    owner.other.send_chunk = 1000;
    run_until(&owner, owner.taken.len == messages->len);
    expect_same_bytes(&owner.taken, messages);
    ck_assert_int_eq(owner.malformed_count, 0);
    close_owner(&owner);
}

/* row: copied, moved or edited. */
TEST_ROWS(carriage_returns_are_kept_in_no_way_of_sending, 6)
{
    static const size_t lengths[] = {10, 200000};
    struct text *script = test_text();
    struct owner from, to, *both[2];

    text_add(script, "{\r\"a\":\"", 7);
    while (script->len < lengths[row / 3])
        text_add(script, "xxxxxxxxxx", 10);
    text_add(script, "\"\r}\n", 4);
    open_socket(&from);
    open_socket(&to);
    both[0] = &from;
    both[1] = &to;
    from.sending = (enum sending)(row % 3);
    from.forward_to = &to.stream.endpoint;
    text_add(&from.other.to_send, script->data, script->len);
    run_owners_until(both, 2, to.other.received.len >= script->len);
    ck_assert_ptr_null(memchr(to.other.received.data, '\r', to.other.received.len));
    close_owner(&from);
    close_owner(&to);
}

TEST_ROWS(large_messages_in_chunks, 16)
{
    static const size_t large_chunks[] = {1000, 30000, 65536, SIZE_MAX};
    struct text *script = test_text();
    struct owner owner;

    add_large_script(script);
    open_either(&owner, row % 2);
    owner.hold_mode = row / 2 % 2 == 0 ? HOLD_NEVER : HOLD_ONCE;
    run_script(&owner, script, script, large_chunks[row / 4]);
    ck_assert_int_eq(owner.messages, 16);
    close_owner(&owner);
}

TEST(many_messages_in_one_read)
{
    struct text *script = test_text();
    struct owner owner;

    limits.max_input_buffer = 100; /* of one message, not of a read */
    for (unsigned i = 0; i < 5000; i++)
        add_message(script, 25 + i % 76, i);
    open_socket(&owner);
    run_script(&owner, script, script, SIZE_MAX);
    ck_assert_int_eq(owner.messages, 5000);
    close_owner(&owner);
}

TEST(fields_are_there_when_offered_again)
{
    struct owner owner;

    open_socket(&owner);
    owner.hold_mode = HOLD_ALWAYS;
    other_send(&owner.other, "{\"id\":\"\\u0061b\",\"method\":\"m\"}\n{\"id\":2}\n{\"id\":");
    run_until(&owner, owner.offers == 1);
    ck_assert_str_eq(owner.id, "ab");
    owner.id[0] = '\0';
    connection_resume(&owner.stream.connection); /* still no */
    ck_assert_int_eq(owner.offers, 2);
    ck_assert_str_eq(owner.id, "ab");
    run_some(&owner);
    ck_assert_int_eq(owner.offers, 2);
    owner.id[0] = '\0';
    owner.hold_mode = HOLD_NEVER;
    connection_resume(&owner.stream.connection);
    ck_assert_int_eq(owner.messages, 2);
    ck_assert_str_eq(owner.id, "2");
    other_send(&owner.other, "3}\n");
    run_until(&owner, owner.messages == 3);
    ck_assert_str_eq(owner.id, "3");
    close_owner(&owner);
}

TEST(problem_of_a_field_comes_with_the_message)
{
    struct owner owner;

    open_socket(&owner);
    other_send(&owner.other, "{\"id\":true}\n");
    run_until(&owner, owner.messages == 1);
    ck_assert_int_eq(owner.problem, MESSAGE_ID_TYPE);
    other_send(&owner.other, "{\"id\":1}\n");
    run_until(&owner, owner.messages == 2);
    ck_assert_int_eq(owner.problem, MESSAGE_OK);
    ck_assert_int_eq(owner.malformed_count, 0); /* it is the owner's to decide */
    close_owner(&owner);
}

TEST_ROWS(held_connection_reads_nothing_more, 2)
{
    struct owner owner;
    size_t sent;

    open_either(&owner, row);
    owner.hold_mode = HOLD_ALWAYS;
    for (int i = 0; i < 40000; i++)
        other_send(&owner.other, "{\"id\":1,\"padding\":\"xxxxxxxxxxxxxxxxxxxxxxx\"}\n");
    run_until(&owner, owner.offers == 1);
    for (int i = 0; i < 20; i++)
        run_some(&owner);
    sent = owner.other.sent;
    ck_assert_uint_lt(sent, owner.other.to_send.len);
    run_some(&owner);
    ck_assert_uint_eq(owner.other.sent, sent); /* the peer cannot continue */
    ck_assert_int_eq(owner.offers, 1);
    ck_assert_uint_le(buffer_len(owner.stream.connection.input), BUFFER_LARGE);
    ck_assert_int_eq(send_line(&owner, slice_of("{}\n", 3)), STDIO_BUS_OK);
    run_until(&owner, owner.other.received.len == 3); /* but it is sent to */
    owner.hold_mode = HOLD_NEVER;
    connection_resume(&owner.stream.connection);
    run_until(&owner, owner.messages == 40000);
    expect_same_bytes(&owner.taken, &owner.other.to_send);
    close_owner(&owner);
}

static size_t bytes_read(const struct owner *owner)
{
    const struct buffer *input = owner->stream.connection.input;

    return owner->taken.len + (input != NULL ? buffer_len(input) : 0);
}

/* Beside a flood of the shortest messages and one of long ones a third connection gets its turn in
 * every round, and the others no more than one read each: what it waits is bounded. */
TEST(no_connection_takes_more_than_a_turn)
{
    enum { SHORT, LONG, POLITE, COUNT };
    struct owner owners[COUNT], *all[COUNT] = {&owners[SHORT], &owners[LONG], &owners[POLITE]};
    size_t before[2];
    unsigned i;
    int round;

    for (i = 0; i < COUNT; i++)
        open_socket(&owners[i]);
    for (i = 0; i < 500000; i++)
        other_send(&owners[SHORT].other, "{}\n");
    for (i = 0; i < 6; i++)
        add_message(&owners[LONG].other.to_send, 256 * 1024, i);
    for (round = 1; round <= 10; round++) {
        for (i = 0; i < POLITE; i++)
            before[i] = bytes_read(&owners[i]);
        add_message(&owners[POLITE].other.to_send, 100, i);
        run_round(all, COUNT);
        ck_assert_int_eq(owners[POLITE].messages, round);
        for (i = 0; i < POLITE; i++) {
            ck_assert_uint_gt(bytes_read(&owners[i]), before[i]);
            ck_assert_uint_le(bytes_read(&owners[i]), before[i] + BUFFER_LARGE);
        }
    }
    run_owners_until(all, COUNT, owners[SHORT].messages == 500000 && owners[LONG].messages == 6);
    for (i = 0; i < COUNT; i++) {
        expect_same_bytes(&owners[i].taken, &owners[i].other.to_send);
        close_owner(&owners[i]);
    }
}

TEST(idle_connection_holds_no_buffer)
{
    struct owner owner;

    open_socket(&owner);
    ck_assert_ptr_null(owner.stream.connection.input);
    other_send(&owner.other, "{}\n");
    run_until(&owner, owner.messages == 1);
    ck_assert_ptr_null(owner.stream.connection.input);
    other_send(&owner.other, "{\"id\":");
    run_until(&owner, other_sent_all(&owner.other) && owner.stream.connection.input != NULL);
    ck_assert_uint_eq(owner.stream.connection.input->capacity, BUFFER_SMALL);
    other_send(&owner.other, "1}\n");
    run_until(&owner, owner.messages == 2);
    ck_assert_ptr_null(owner.stream.connection.input);
    ck_assert_ptr_null(owner.stream.connection.output.first);
    close_owner(&owner);
}

/* --- input that cannot continue --- */

TEST_ROWS(malformed_input_ends_it, COUNT(chunks))
{
    struct owner owner;

    open_socket(&owner);
    owner.other.send_chunk = chunks[row];
    other_send(&owner.other, "{\"id\":1}\n{\"id\":2]\n{\"id\":3}\n");
    run_until(&owner, owner.malformed_count == 1 && other_sent_all(&owner.other));
    ck_assert_int_eq(owner.malformed_code, JSONRPC_PARSE_ERROR);
    ck_assert_uint_gt(strlen(owner.malformed_text), 0);
    other_send(&owner.other, "{\"id\":4}\nmore\n");
    run_some(&owner);
    ck_assert_int_eq(owner.messages, 1); /* nothing after it is read */
    ck_assert_int_eq(owner.malformed_count, 1);
    ck_assert_ptr_null(owner.stream.connection.input);
    ck_assert_int_eq(send_line(&owner, slice_of("{}\n", 3)), STDIO_BUS_OK);
    run_until(&owner, owner.other.received.len == 3);
    connection_resume(&owner.stream.connection); /* changes nothing */
    run_some(&owner);
    ck_assert_int_eq(owner.messages, 1);
    close_owner(&owner);
}

static const size_t edge_chunks[] = {1, 10, 99, 100, 101, SIZE_MAX};

TEST_ROWS(longest_message_is_accepted, COUNT(edge_chunks))
{
    struct owner owner;

    limits.max_input_buffer = 100;
    open_socket(&owner);
    owner.other.send_chunk = edge_chunks[row];
    add_message(&owner.other.to_send, 100, 1);
    add_message(&owner.other.to_send, 99, 2);
    add_message(&owner.other.to_send, 100, 3);
    run_until(&owner, owner.messages == 3);
    expect_same_bytes(&owner.taken, &owner.other.to_send);
    close_owner(&owner);
}

TEST_ROWS(longer_message_is_not_accepted, COUNT(edge_chunks))
{
    struct owner owner;

    limits.max_input_buffer = 100;
    open_socket(&owner);
    owner.other.send_chunk = edge_chunks[row];
    add_message(&owner.other.to_send, 100, 1);
    add_message(&owner.other.to_send, 101, 2);
    add_message(&owner.other.to_send, 100, 3);
    run_until(&owner, owner.malformed_count == 1 && other_sent_all(&owner.other));
    ck_assert_int_eq(owner.malformed_code, JSONRPC_INVALID_REQUEST);
    ck_assert_ptr_nonnull(strstr(owner.malformed_text, "max_input_buffer"));
    run_some(&owner);
    ck_assert_int_eq(owner.messages, 1);
    close_owner(&owner);
}

TEST_ROWS(line_without_end_is_not_accepted, 2)
{
    struct owner owner;
    struct text *line = test_text();

    limits.max_input_buffer = 100000;
    add_message(line, 100001, 1);
    open_socket(&owner);
    owner.other.send_chunk = row == 0 ? 9999 : SIZE_MAX;
    text_add(&owner.other.to_send, line->data, 99999);
    run_until(&owner, other_sent_all(&owner.other));
    run_some(&owner);
    ck_assert_int_eq(owner.malformed_count, 0); /* the newline may come still */
    text_add(&owner.other.to_send, line->data + 99999, 1);
    run_until(&owner, owner.malformed_count == 1);
    ck_assert_int_eq(owner.malformed_code, JSONRPC_INVALID_REQUEST);
    ck_assert_int_eq(owner.messages, 0);
    close_owner(&owner);
}

/* --- input that continues all the same --- */

static void add_bad_line(struct text *script, const char *line)
{
    text_add(script, line, strlen(line));
    text_add(script, "\n", 1);
}

/* row: chunk size, held or not, socket or pipes. */
TEST_ROWS(bad_lines_are_skipped, 4 * COUNT(chunks))
{
    static const char *const bad[] = {
        "Starting: {\"id\":9}", "[]", "}",  "{\"id\":1",     "{\"id\":2}}", "\x01\xff\xfe",
        "{\"k\":\"\xc3\"}",     "7",  "\"", "{\"id\":3,}\r",
    };
    struct text *script = test_text(), *messages = test_text();
    struct owner owner;
    unsigned i, count = COUNT(bad);

    limits.max_input_buffer = 2000;
    for (i = 0; i < count; i++) {
        add_bad_line(script, bad[i]);
        add_message(script, 20 + i * 200, i);
        add_message(messages, 20 + i * 200, i);
        if (i % 3 == 0)
            add_message(script, 2001 + i * 1000, i); /* too long */
        text_add(script, "\n", i % 2);               /* blank lines are none */
    }
    open_either(&owner, row % 2);
    owner.stream.connection.skips_bad_lines = true;
    owner.hold_mode = row / 2 % 2 == 0 ? HOLD_NEVER : HOLD_ONCE;
    run_script(&owner, script, messages, chunks[row / 4]);
    ck_assert_uint_eq(owner.stream.skipped, count + 4);
    close_owner(&owner);
}

/* However it comes. */
TEST_ROWS(skipped_line_is_shown, COUNT(chunks))
{
    char shown[1000] = "";
    FILE *file = tmpfile();
    struct owner owner;
    struct log log;

    ck_assert_ptr_nonnull(file);
    log_open(&log, fileno(file), LOG_LEVEL_WARN);
    transport.log = &log;
    open_socket(&owner);
    owner.stream.connection.skips_bad_lines = true;
    owner.other.send_chunk = chunks[row];
    other_send(&owner.other, "Hello, world\r\n");
    (void)text_room(&owner.other.to_send, 3000);
    memset(owner.other.to_send.data + owner.other.to_send.len, 'x', 3000);
    owner.other.to_send.len += 3000;
    run_until(&owner, owner.stream.skipped == 2);
    rewind(file);
    ck_assert_uint_gt(fread(shown, 1, sizeof shown - 1, file), 0);
    ck_assert_msg(strstr(shown, "\"Hello, world\"\n") != NULL, "%s", shown);
    ck_assert_msg(strstr(shown, ": \"xxxxxxxx") != NULL, "%s", shown);
    ck_assert_msg(strstr(shown, "xxxxxxxx...\"\n") != NULL, "%s", shown);
    close_owner(&owner);
    log_close(&log);
    transport.log = &test_log;
}

/* However long it is, no more than its beginning is kept. */
TEST_ROWS(long_line_is_skipped_as_it_comes, 2)
{
    struct owner owner;
    struct text *line = test_text();

    limits.max_input_buffer = 100000;
    add_message(line, 3000000, 1);
    open_socket(&owner);
    owner.stream.connection.skips_bad_lines = true;
    owner.other.send_chunk = row == 0 ? 9999 : SIZE_MAX;
    text_add(&owner.other.to_send, line->data, line->len - 1);
    while (!other_sent_all(&owner.other)) {
        run_some(&owner);
        ck_assert(owner.stream.connection.input == NULL ||
                  owner.stream.connection.input->capacity <= 4 * limits.max_input_buffer);
    }
    run_some(&owner);
    ck_assert_ptr_null(owner.stream.connection.input);
    ck_assert_uint_eq(owner.stream.skipped, 1);
    other_send(&owner.other, "\n{\"id\":1}\n");
    run_until(&owner, owner.messages == 1);
    ck_assert_uint_eq(owner.stream.skipped, 1);
    close_owner(&owner);
}

/* --- the end of input --- */

static void end_of_input(struct owner *owner)
{
    if (owner->other.fd_in == owner->other.fd_out) {
        ck_assert_int_eq(shutdown(owner->other.fd_out, SHUT_WR), 0);
    } else {
        ck_assert_int_eq(close(owner->other.fd_out), 0);
        owner->other.fd_out = -1;
    }
}

TEST_ROWS(unterminated_last_line_is_cut, 2 * COUNT(chunks))
{
    static const char rest[] = "{\"id\":2,\"method\":\"m\"}";
    struct owner owner;

    open_either(&owner, row % 2);
    owner.other.send_chunk = chunks[row / 2];
    other_send(&owner.other, "{\"id\":1}\n");
    other_send(&owner.other, rest);
    run_until(&owner, other_sent_all(&owner.other));
    end_of_input(&owner);
    run_until(&owner, owner.ended_count == 1);
    ck_assert_uint_eq(owner.cut, strlen(rest));
    ck_assert_int_eq(owner.messages, 1); /* even though it is whole but for its newline */
    ck_assert_ptr_null(owner.stream.connection.input);
    close_owner(&owner);
}

TEST_ROWS(end_comes_after_the_last_message, 2)
{
    struct owner owner;

    open_either(&owner, row);
    owner.hold_mode = HOLD_ALWAYS;
    other_send(&owner.other, "{\"id\":1}\n{\"id\":2}\n{\"id\":3");
    run_until(&owner, owner.offers == 1);
    end_of_input(&owner);
    run_some(&owner);
    ck_assert_int_eq(owner.ended_count, 0);
    connection_resume(&owner.stream.connection);
    run_some(&owner);
    ck_assert_int_eq(owner.ended_count, 0);
    owner.hold_mode = HOLD_NEVER;
    connection_resume(&owner.stream.connection);
    run_until(&owner, owner.ended_count == 1);
    ck_assert_int_eq(owner.messages, 2);
    ck_assert_uint_eq(owner.cut, 7);
    close_owner(&owner);
}

TEST_ROWS(end_of_an_empty_input, 2)
{
    struct owner owner;

    open_either(&owner, row);
    end_of_input(&owner);
    run_until(&owner, owner.ended_count == 1);
    ck_assert_uint_eq(owner.cut, 0);
    ck_assert_int_eq(owner.failed_count, 0);
    close_owner(&owner);
}

/* Its answers still go out, and then the loop is at rest: no spinning on the end of input. */
TEST_ROWS(half_closed_connection_is_sent_to, 2)
{
    struct owner owner;
    int i, calls = 0;

    open_either(&owner, row);
    end_of_input(&owner);
    run_until(&owner, owner.ended_count == 1);
    ck_assert_int_eq(send_line(&owner, slice_of("{\"a\":1}\n", 8)), STDIO_BUS_OK);
    run_until(&owner, owner.other.received.len == 8);
    for (i = 0; i < 5; i++)
        calls += stdio_bus_event_loop_run_once(loop, 5);
    ck_assert_int_eq(calls, 0);
    check_open(&owner);
    close_owner(&owner);
}

TEST(half_closed_socket_that_goes_is_broken)
{
    struct owner owner;

    open_socket(&owner);
    end_of_input(&owner);
    run_until(&owner, owner.ended_count == 1);
    check_open(&owner);
    other_close(&owner.other);
    run_until(&owner, owner.failed_count == 1);
    ck_assert_int_eq(owner.failure, CONNECTION_BROKEN);
    close_owner(&owner);
}

TEST_ROWS(what_was_sent_before_a_close_is_read, 4)
{
    struct text *script = test_text();
    struct owner owner;

    add_message(script, 150000, 1);
    add_message(script, 30, 2);
    open_either(&owner, row % 2);
    owner.hold_mode = row / 2 == 0 ? HOLD_NEVER : HOLD_ONCE;
    text_add(&owner.other.to_send, script->data, script->len);
    run_until(&owner, other_sent_all(&owner.other));
    other_close(&owner.other); /* altogether, while it is in the kernel's buffers */
    run_until(&owner, owner.ended_count == 1 || owner.failed_count == 1);
    expect_same_bytes(&owner.taken, script);
    ck_assert_int_eq(owner.ended_count, 1);
    close_owner(&owner);
}

TEST_ROWS(stopped_input_is_thrown_away, 4)
{
    struct owner owner;

    open_either(&owner, row % 2);
    owner.hold_mode = row / 2 == 0 ? HOLD_ALWAYS : HOLD_NEVER;
    other_send(&owner.other, "{\"id\":1}\n{\"id\":");
    run_until(&owner, owner.offers == 1);
    connection_stop_input(&owner.stream.connection);
    ck_assert_ptr_null(owner.stream.connection.input);
    owner.hold_mode = HOLD_NEVER;
    connection_resume(&owner.stream.connection);
    other_send(&owner.other, "2}\n{\"id\":3}\n");
    run_some(&owner);
    end_of_input(&owner);
    run_some(&owner);
    ck_assert_int_eq(owner.offers, 1);
    ck_assert_int_eq(owner.ended_count, 0);
    ck_assert_int_eq(owner.malformed_count, 0);
    ck_assert_int_eq(send_line(&owner, slice_of("{}\n", 3)), STDIO_BUS_OK);
    run_until(&owner, owner.other.received.len == 3);
    close_owner(&owner);
}

/* --- out of memory --- */

TEST(starved_connection_goes_on)
{
    struct text *script = test_text();
    struct owner owner;

    add_large_script(script);
    open_socket(&owner);
    owner.other.send_chunk = 40000;
    text_add(&owner.other.to_send, script->data, script->len);
    while (owner.taken.len < script->len) {
        int starved = owner.starved_count;
        size_t sent = owner.other.sent + 200000;

        run_until(&owner, owner.other.sent >= sent || owner.taken.len == script->len);
        if (owner.taken.len == script->len)
            break;
        buffer_pool_free(&transport.pool); /* or it would do with what it has */
        out_of_memory = true;
        run_until(&owner, owner.starved_count > starved || other_sent_all(&owner.other));
        out_of_memory = false;
        if (other_sent_all(&owner.other))
            run_until(&owner, owner.taken.len == script->len);
    }
    ck_assert_int_gt(owner.starved_count, 0);
    expect_same_bytes(&owner.taken, script);
    close_owner(&owner);
}

/* Two failures in one callback: the second one closes the connection, and is the last report. */
TEST(starved_connection_may_break)
{
    struct owner owner;
    const struct connection *connection = &owner.stream.connection;

    open_socket(&owner);
    owner.other.read_chunk = 0;
    while (!(connection->interest & STDIO_BUS_EVENT_WRITE)) {
        ck_assert_int_eq(send_line(&owner, slice_of("{}\n", 3)), STDIO_BUS_OK);
        run_round(&(struct owner *){&owner}, 1);
    }
    buffer_pool_free(&transport.pool);
    out_of_memory = out_of_watches = true;
    other_send(&owner.other, "{}\n");
    run_until(&owner, owner.failed_count > 0);
    ck_assert_int_eq(owner.error, ENOMEM);
    ck_assert_int_eq(owner.starved_count, 0);
    close_owner(&owner);
}

/* --- opening and closing --- */

TEST_ROWS(closed_in_its_own_callback, 10)
{
    static const enum closing_at points[] = {CLOSE_AT_MESSAGE, CLOSE_AT_MALFORMED, CLOSE_AT_ENDED,
                                             CLOSE_AT_FULL, CLOSE_AT_DRAINED};
    struct owner owner;

    limits.max_output_queue = 10;
    open_either(&owner, row % 2);
    owner.closing_at = points[row / 2];
    other_send(&owner.other, "{\"id\":1}\n");
    if (owner.closing_at == CLOSE_AT_ENDED) {
        run_until(&owner, owner.messages == 1);
        end_of_input(&owner);
    } else if (owner.closing_at == CLOSE_AT_MALFORMED) {
        other_send(&owner.other, "]\n");
    } else if (owner.closing_at != CLOSE_AT_MESSAGE) {
        for (int i = 0; i < 5 && connection_is_open(&owner.stream.connection); i++)
            ck_assert_int_eq(send_line(&owner, slice_of("{}    \n", 7)), STDIO_BUS_OK);
    }
    other_send(&owner.other, "{\"id\":2}\n");
    run_until(&owner, !connection_is_open(&owner.stream.connection));
    run_some(&owner); /* the callbacks check that they are not called any more */
    ck_assert_int_eq(send_line(&owner, slice_of("{}\n", 3)), STDIO_BUS_OK);
    connection_resume(&owner.stream.connection);
    connection_stop_input(&owner.stream.connection);
    connection_close(&owner.stream.connection);
    close_owner(&owner);
}

TEST(close_is_idempotent)
{
    struct connection zeroed;
    struct owner owner;
    int fd;

    memset(&zeroed, 0, sizeof zeroed);
    connection_close(&zeroed);
    open_socket(&owner);
    fd = owner.stream.connection.fd_in;
    other_send(&owner.other, "{\"id\":");
    run_until(&owner, owner.stream.connection.input != NULL);
    ck_assert_int_eq(send_line(&owner, slice_of("{}\n", 3)), STDIO_BUS_OK);
    connection_close(&owner.stream.connection);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, fd), STDIO_BUS_ENOTFOUND);
    connection_close(&owner.stream.connection);
    run_some(&owner);
    close_owner(&owner);
}

static int open_over(struct connection *connection, int fd_in, int fd_out, bool borrowed)
{
    static struct scanner scanner;
    static const struct connection_handler nothing_is_reported;
    const struct connection_options options = {.handler = &nothing_is_reported,
                                               .check = &json_body_check,
                                               .check_state = &scanner,
                                               .context = "",
                                               .fd_in = fd_in,
                                               .fd_out = fd_out,
                                               .borrowed = borrowed};

    return connection_open(connection, &transport, &options);
}

static int flags_of(int fd)
{
    return fcntl(fd, F_GETFL);
}

/* The descriptors are lent: in and out the same, of one description, or of two. */
TEST_ROWS(borrowed_descriptors_get_their_flags_back, 6)
{
    struct connection connection;
    bool nonblocking = row >= 3;
    int ends[2], in, out, flags_in, flags_out;

    memset(&connection, 0, sizeof connection);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    in = ends[0];
    out = row % 3 == 0 ? in : row % 3 == 1 ? dup(in) : ends[1];
    ck_assert_int_ge(out, 0);
    if (nonblocking)
        ck_assert_int_eq(fcntl(in, F_SETFL, flags_of(in) | O_NONBLOCK), 0);
    flags_in = flags_of(in);
    flags_out = flags_of(out);
    ck_assert_int_eq(open_over(&connection, in, out, true), STDIO_BUS_OK);
    ck_assert_int_ne(flags_of(in) & O_NONBLOCK, 0);
    ck_assert_int_ne(flags_of(out) & O_NONBLOCK, 0);
    connection_close(&connection);
    ck_assert_int_eq(flags_of(in), flags_in); /* and it is open */
    ck_assert_int_eq(flags_of(out), flags_out);
}

TEST_ROWS(failed_open_leaves_nothing, 2)
{
    struct connection connection;
    int ends[2], flags, closed;

    memset(&connection, 0, sizeof connection);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    flags = flags_of(ends[0]);
    closed = dup(ends[0]);
    ck_assert_int_eq(close(closed), 0);
    errno = 0;
    ck_assert_int_eq(open_over(&connection, row == 0 ? ends[0] : closed,
                               row == 0 ? closed : ends[0], row == 0),
                     STDIO_BUS_ERR);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(flags_of(ends[0]), flags); /* open, and as it was */
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, ends[0]), STDIO_BUS_ENOTFOUND);
    connection_close(&connection);
    ck_assert_int_eq(flags_of(ends[0]), flags);
}

static int next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    return fd;
}

/* Of a pipe that is lent it opens a descriptor of its own. */
TEST(failed_open_closes_its_own)
{
    struct connection connection;
    int ends[2], next;

    memset(&connection, 0, sizeof connection);
    ck_assert_int_eq(pipe(ends), 0);
    next = next_descriptor();
    ck_assert_int_eq(open_over(&connection, ends[0], next + 10, true), STDIO_BUS_ERR);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(next_descriptor(), next);
    ck_assert_int_eq(open_over(&connection, ends[0], ends[1], true), STDIO_BUS_OK);
    connection_close(&connection);
    ck_assert_int_eq(next_descriptor(), next);
    ck_assert_int_ge(flags_of(ends[0]), 0);
    ck_assert_int_ge(flags_of(ends[1]), 0);
}

/* A file, which epoll refuses, as standard input has it in: stdio_bus < requests. */
TEST(input_from_a_file)
{
    struct text *script = test_text();
    struct owner owner;
    FILE *file = tmpfile();
    int out[2];

    ck_assert_ptr_nonnull(file);
    add_large_script(script);
    ck_assert_uint_eq(fwrite(script->data, 1, script->len, file), script->len);
    ck_assert_int_eq(fflush(file), 0);
    ck_assert_int_eq(lseek(fileno(file), 0, SEEK_SET), 0);
    ck_assert_int_eq(pipe(out), 0);
    open_owner(&owner, dup(fileno(file)), out[1], out[0], dup(out[0]));
    run_until(&owner, owner.ended_count == 1);
    expect_same_bytes(&owner.taken, script);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 0), 0); /* it is at rest */
    close_owner(&owner);
}
