/* Connections: their output, backpressure, forwarding, and the ways to end. */
#include "build_config.h"

#include "connection_fixture.h"

static void send_text(struct owner *owner, const char *text)
{
    ck_assert_int_eq(send_line(owner, slice_of(text, strlen(text))), STDIO_BUS_OK);
}

static void send_bytes(struct owner *owner, const struct text *bytes)
{
    ck_assert_int_eq(send_line(owner, slice_of(bytes->data, bytes->len)), STDIO_BUS_OK);
}

/* --- writing --- */

TEST(one_write_for_a_round)
{
    struct owner owner;
    char buffer[64];
    int ends[2];

    /* Each write is a packet of its own here. */
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    open_owner(&owner, ends[0], ends[0], ends[1], ends[1]);
    send_text(&owner, "{\"a\":1}\n");
    send_text(&owner, "{\"b\":2}\n");
    send_text(&owner, "{\"c\":3}\n");
    ck_assert_int_eq(read(ends[1], buffer, sizeof buffer), -1); /* not yet */
    connection_flush_all(&transport);
    ck_assert_int_eq(read(ends[1], buffer, sizeof buffer), 24);
    ck_assert_mem_eq(buffer, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n", 24);
    connection_flush_all(&transport);
    ck_assert_int_eq(read(ends[1], buffer, sizeof buffer), -1);
    close_owner(&owner);
}

TEST_ROWS(any_length_arrives, 4)
{
    static const size_t lengths[] = {20, 2000, 65536, 300000, 3000000};
    struct text *sent = test_text();
    struct owner owner;

    open_either(&owner, row % 2);
    owner.other.read_chunk = row / 2 == 0 ? SIZE_MAX : 60000;
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        struct text message = {0};

        add_message(&message, lengths[i], i);
        send_bytes(&owner, &message);
        text_add(sent, message.data, message.len);
        text_free(&message);
    }
    run_until(&owner, owner.other.received.len == sent->len);
    expect_same_bytes(&owner.other.received, sent);
    ck_assert_uint_eq(owner.stream.connection.output.bytes, 0);
    close_owner(&owner);
}

TEST(send_without_memory_queues_nothing)
{
    struct owner owner;

    open_socket(&owner);
    out_of_memory = true;
    ck_assert_int_eq(send_line(&owner, slice_of("{}\n", 3)), STDIO_BUS_ERR);
    out_of_memory = false;
    ck_assert_uint_eq(owner.stream.connection.output.bytes, 0);
    send_text(&owner, "{\"a\":1}\n");
    run_until(&owner, owner.other.received.len > 0);
    run_some(&owner);
    ck_assert_uint_eq(owner.other.received.len, 8);
    close_owner(&owner);
}

/* --- backpressure (spec 7.3.1) --- */

TEST_ROWS(full_is_reported_when_the_limit_is_exceeded, 2)
{
    static const char more[] = "{\"more\":\"what was read is never thrown away\"}\n";
    struct owner owner;

    limits.max_output_queue = 10;
    open_either(&owner, row);
    send_text(&owner, "12345678\n");
    ck_assert_int_eq(owner.full_count, 0);
    send_text(&owner, "\n");
    ck_assert_int_eq(owner.full_count, 0); /* ten bytes are not more than ten */
    send_text(&owner, "\n");
    ck_assert_int_eq(owner.full_count, 1);
    ck_assert(timer_started(&owner.stream.connection.stall)); /* the time is noted */
    send_text(&owner, more);
    ck_assert_int_eq(owner.full_count, 1);
    connection_flush_all(&transport);
    ck_assert_int_eq(owner.drained_count, 1);
    ck_assert(!timer_started(&owner.stream.connection.stall));
    send_text(&owner, "123456789abcdef\n");
    ck_assert_int_eq(owner.full_count, 2);
    connection_flush_all(&transport);
    ck_assert_int_eq(owner.drained_count, 2);
    run_until(&owner, owner.other.received.len == 11 + strlen(more) + 16);
    close_owner(&owner);
}

static size_t random_below(uint64_t *state, size_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (size_t)(*state % below);
}

/* The checks are in on_full and check_between_rounds. */
TEST_ROWS(full_and_drained_by_turns, 4)
{
    uint64_t random = UINT64_C(0x9e3779b97f4a7c15) + (unsigned)row;
    struct text *sent = test_text();
    struct owner owner, *only = &owner;

    limits.max_output_queue = 30000;
    round_ms = 0;
    open_either(&owner, row % 2);
    for (unsigned round = 0; round < 600; round++) {
        owner.other.read_chunk = round / 50 % 2 == 0 ? 0 : random_below(&random, 40000);
        if (!owner.stream.connection.full) {
            struct text message = {0};

            add_message(&message, 20 + random_below(&random, 20000), round);
            send_bytes(&owner, &message);
            text_add(sent, message.data, message.len);
            text_free(&message);
        }
        run_round(&only, 1);
    }
    owner.other.read_chunk = SIZE_MAX;
    run_until(&owner, owner.other.received.len == sent->len);
    expect_same_bytes(&owner.other.received, sent);
    ck_assert_int_ge(owner.full_count, 3);
    ck_assert_int_eq(owner.full_count, owner.drained_count);
    close_owner(&owner);
}

#ifdef __linux__
/* Half of the limit is not below half of it. A full pipe takes a page for each that is read. */
TEST(half_full_is_not_drained)
{
    static char page[4096];
    struct owner owner;
    struct text *message = test_text();
    size_t filled = 0;
    ssize_t written;

    if (sysconf(_SC_PAGESIZE) != 4096)
        return;
    limits.max_output_queue = 16384;
    open_pipes(&owner);
    owner.other.read_chunk = 0;
    while ((written = write(owner.stream.connection.fd_out, page, sizeof page)) > 0)
        filled += (size_t)written;
    add_message(message, 20480, 1);
    send_bytes(&owner, message);
    run_some(&owner);
    ck_assert_uint_eq(owner.stream.connection.output.bytes, 20480);
    owner.other.read_chunk = 4096;
    run_until(&owner, owner.stream.connection.output.bytes == 8192);
    ck_assert_int_eq(owner.drained_count, 0);
    run_until(&owner, owner.stream.connection.output.bytes == 4096);
    ck_assert_int_eq(owner.drained_count, 1);
    owner.other.read_chunk = SIZE_MAX;
    run_until(&owner, owner.other.received.len == filled + 20480);
    ck_assert_int_eq(owner.drained_count, 1);
    close_owner(&owner);
}
#endif

/* More than the kernel takes, and a limit that it exceeds. */
static void fill(struct owner *owner)
{
    struct text message = {0};

    limits.max_output_queue = 1000;
    owner->other.read_chunk = 0;
    add_message(&message, 1000000, 1);
    send_bytes(owner, &message);
    text_free(&message);
    run_some(owner);
    ck_assert_int_eq(owner->full_count, 1);
    ck_assert_int_eq(owner->drained_count, 0);
}

/* As if it were so much later: runs the timers that are due then. */
static void pass_ms(int64_t ms)
{
    timers_run(stdio_bus_event_loop_timers(loop), stdio_bus_event_loop_now_ms(loop) + ms);
}

TEST_ROWS(full_for_too_long_is_stalled, 2)
{
    struct owner owner;

    open_either(&owner, row);
    fill(&owner);
    pass_ms(30000);
    check_open(&owner);
    pass_ms(60000);
    ck_assert_int_eq(owner.failed_count, 1);
    ck_assert_int_eq(owner.failure, CONNECTION_STALLED);
    ck_assert_int_eq(owner.error, 0);
    close_owner(&owner);
}

TEST_ROWS(drained_in_time_is_not_stalled, 2)
{
    struct owner owner;

    open_either(&owner, row);
    fill(&owner);
    owner.other.read_chunk = SIZE_MAX;
    run_until(&owner, owner.drained_count == 1);
    pass_ms(100000);
    check_open(&owner);
    close_owner(&owner);
}

/* The time at which it became full counts, not that of the last byte that was taken. */
TEST_ROWS(reading_a_little_is_stalled_all_the_same, 2)
{
    struct owner owner;
    int64_t start;
    size_t queued;

    open_either(&owner, row);
    fill(&owner);
    start = stdio_bus_event_loop_now_ms(loop);
    queued = owner.stream.connection.output.bytes;
    run_until(&owner, stdio_bus_event_loop_now_ms(loop) >= start + 50);
    owner.other.read_chunk = 4096;
    run_until(&owner, owner.stream.connection.output.bytes < queued);
    ck_assert_int_eq(owner.drained_count, 0);
    timers_run(stdio_bus_event_loop_timers(loop), start + 60020);
    ck_assert_int_eq(owner.failed_count, 1);
    ck_assert_int_eq(owner.failure, CONNECTION_STALLED);
    close_owner(&owner);
}

/* Linux reports room in a Unix socket only when three quarters of it are free. */
TEST(room_that_was_not_reported_is_used_in_the_end)
{
    static char bytes[40000];
    struct owner owner;

    open_socket(&owner);
    fill(&owner);
    limits.max_output_queue = 2 * (owner.stream.connection.output.bytes - 1000);
    ck_assert_int_gt(read(owner.other.fd_in, bytes, sizeof bytes), 0);
    pass_ms(100000);
    check_open(&owner);
    ck_assert_int_eq(owner.drained_count, 1);
    close_owner(&owner);
}

TEST(time_of_a_full_queue_can_start_over)
{
    struct owner owner;
    int64_t start;

    open_socket(&owner);
    connection_renew_stall(&owner.stream.connection); /* it is not full: nothing */
    ck_assert(!timer_started(&owner.stream.connection.stall));
    fill(&owner);
    start = stdio_bus_event_loop_now_ms(loop);
    run_until(&owner, stdio_bus_event_loop_now_ms(loop) >= start + 50);
    connection_renew_stall(&owner.stream.connection);
    timers_run(stdio_bus_event_loop_timers(loop), start + 60020);
    check_open(&owner);
    pass_ms(60000);
    ck_assert_int_eq(owner.failed_count, 1);
    ck_assert_int_eq(owner.failure, CONNECTION_STALLED);
    close_owner(&owner);
}

/* --- forwarding --- */

static void add_mixed_script(struct text *script)
{
    static const size_t lengths[] = {16383, 16384, 16385, 30,    65536,  25, 200000, 40000, 50, 20,
                                     9000,  20000, 65535, 65537, 900000, 21, 16384,  16384};

    for (unsigned i = 0; i < 2 * COUNT(lengths); i++)
        add_message(script, lengths[i % (COUNT(lengths))], i);
}

static const size_t forward_chunks[] = {5000, 16384, 65536, SIZE_MAX};

/* row: chunk size, held or not, sockets or pipes. */
TEST_ROWS(forwarded_byte_for_byte, 16)
{
    struct owner from, to, *both[2];
    struct text *script = test_text();

    add_mixed_script(script);
    open_either(&from, row % 2);
    open_either(&to, (row + 1) % 2);
    both[0] = &from;
    both[1] = &to;
    from.hold_mode = row / 2 % 2 == 0 ? HOLD_NEVER : HOLD_ONCE;
    from.forward_to = &to.stream.endpoint;
    from.other.send_chunk = forward_chunks[row / 4];
    text_add(&from.other.to_send, script->data, script->len);
    run_owners_until(both, 2, to.other.received.len == script->len);
    expect_same_bytes(&to.other.received, script);
    expect_same_bytes(&from.taken, script);
    ck_assert_int_gt(from.handed_over, 0);
    ck_assert_int_lt(from.handed_over, from.messages); /* short ones are copied */
    close_owner(&from);
    close_owner(&to);
}

TEST(long_queue_of_forwarded_messages)
{
    struct owner from, to, *both[2];

    open_socket(&from);
    open_socket(&to);
    both[0] = &from;
    both[1] = &to;
    from.forward_to = &to.stream.endpoint;
    from.other.send_chunk = 20000; /* each in a buffer of its own */
    to.other.read_chunk = 0;
    for (unsigned i = 0; i < 190; i++)
        add_message(&from.other.to_send, 20000, i);
    run_owners_until(both, 2, from.messages == 190);
    ck_assert_uint_gt(to.stream.connection.output.bytes, 64 * 20000);
    to.other.read_chunk = 100000;
    run_owners_until(both, 2, to.other.received.len == from.other.to_send.len);
    expect_same_bytes(&to.other.received, &from.other.to_send);
    close_owner(&from);
    close_owner(&to);
}

/* The lines in `all` whose id has this parity, in order. */
static void pick_lines(const struct text *all, unsigned parity, struct text *picked)
{
    size_t at = 0;

    while (at < all->len) {
        const char *end = memchr(all->data + at, '\n', all->len - at);
        size_t len = end != NULL ? (size_t)(end - (all->data + at)) + 1 : all->len - at;

        ck_assert_uint_gt(len, 7);
        if (strtoul(all->data + at + 6, NULL, 10) % 2 == parity)
            text_add(picked, all->data + at, len);
        at += len;
    }
}

TEST(two_sources_do_not_mix)
{
    static const size_t lengths[] = {30, 17000, 2000, 40000, 100, 20000};
    struct owner even, odd, to, *all[3];
    struct text *picked = test_text();

    open_socket(&even);
    open_pipes(&odd);
    open_socket(&to);
    all[0] = &even;
    all[1] = &odd;
    all[2] = &to;
    even.forward_to = odd.forward_to = &to.stream.endpoint;
    even.other.send_chunk = 7000;
    odd.other.send_chunk = 11000;
    to.other.read_chunk = 13000;
    for (unsigned i = 0; i < 60; i++)
        add_message(i % 2 == 0 ? &even.other.to_send : &odd.other.to_send, lengths[i % 6], i);
    run_owners_until(all, 3,
                     to.other.received.len == even.other.to_send.len + odd.other.to_send.len);
    pick_lines(&to.other.received, 0, picked);
    expect_same_bytes(picked, &even.other.to_send);
    picked->len = 0;
    pick_lines(&to.other.received, 1, picked);
    expect_same_bytes(picked, &odd.other.to_send);
    for (unsigned i = 0; i < 3; i++)
        close_owner(all[i]);
}

TEST_ROWS(forward_without_memory_loses_nothing, 2)
{
    struct owner from, to, *both[2];
    int failures;

    open_socket(&from);
    open_socket(&to);
    both[0] = &from;
    both[1] = &to;
    from.forward_to = &to.stream.endpoint;
    from.hold_mode = HOLD_ALWAYS;
    add_message(&from.other.to_send, row == 0 ? 40000 : 4000, 1); /* moved, or copied */
    add_message(&from.other.to_send, 100, 2);
    run_owners_until(both, 2, from.offers == 1 && other_sent_all(&from.other));
    from.hold_mode = HOLD_NEVER;
    buffer_pool_free(&transport.pool);
    out_of_memory = true;
    connection_resume(&from.stream.connection);
    failures = from.forward_failures;
    out_of_memory = false;
    ck_assert_int_eq(failures, 1);
    ck_assert_uint_eq(to.stream.connection.output.bytes, 0);
    run_owners_until(both, 2, from.messages == 2);
    run_owners_until(both, 2, to.other.received.len == from.other.to_send.len);
    expect_same_bytes(&to.other.received, &from.other.to_send);
    close_owner(&from);
    close_owner(&to);
}

TEST_ROWS(forward_to_a_closed_output_is_dropped, 2)
{
    struct owner from, to, *both[2];

    open_socket(&from);
    open_pipes(&to);
    both[0] = &from;
    both[1] = &to;
    from.forward_to = &to.stream.endpoint;
    if (row == 0)
        connection_close_output(&to.stream.connection);
    else
        connection_close(&to.stream.connection);
    add_message(&from.other.to_send, 50000, 1);
    add_message(&from.other.to_send, 100, 2);
    run_owners_until(both, 2, from.messages == 2);
    ck_assert_uint_eq(to.stream.connection.output.bytes, 0);
    expect_same_bytes(&from.taken, &from.other.to_send);
    close_owner(&from);
    close_owner(&to);
}

/* --- broken peers --- */

TEST_ROWS(peer_that_goes_breaks_it, 2)
{
    struct owner owner;

    open_either(&owner, row);
    fill(&owner);
    other_close(&owner.other);
    run_until(&owner, owner.failed_count + owner.ended_count > 0);
    /* The input may come to its end first; writing fails all the same. */
    run_until(&owner, owner.failed_count == 1);
    ck_assert_int_eq(owner.failure, CONNECTION_BROKEN);
    run_some(&owner);
    close_owner(&owner);
}

TEST(write_to_a_peer_that_is_gone)
{
    struct owner owner;

    open_pipes(&owner);
    close(owner.other.fd_in);
    owner.other.fd_in = -1;
    send_text(&owner, "{}\n");
    run_until(&owner, owner.failed_count == 1);
    ck_assert_int_eq(owner.failure, CONNECTION_BROKEN);
    ck_assert_int_eq(owner.error, EPIPE);
    close(owner.other.fd_out);
    owner.other.fd_out = -1;
    close_owner(&owner);
}

TEST(closed_output_is_the_end_for_the_peer)
{
    struct owner owner;

    open_pipes(&owner);
    fill(&owner);
    connection_close_output(&owner.stream.connection);
    ck_assert_uint_eq(owner.stream.connection.output.bytes, 0);
    ck_assert(!timer_started(&owner.stream.connection.stall));
    connection_close_output(&owner.stream.connection); /* once more does nothing */
    send_text(&owner, "{\"lost\":1}\n");
    ck_assert_uint_eq(owner.stream.connection.output.bytes, 0);
    owner.other.read_chunk = SIZE_MAX;
    other_send(&owner.other, "{\"id\":1}\n{\"id\":2}\n");
    while (!owner.other.eof || owner.messages < 2) { /* its output still is read */
        other_send_some(&owner.other);
        other_read_some(&owner.other);
        ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, 1), 0);
    }
    check_open(&owner);
    close_owner(&owner);
}

/* --- the orderly end --- */

TEST_ROWS(lingering_writes_the_rest, 4)
{
    struct text *message = test_text();
    struct owner owner;

    open_either(&owner, row % 2);
    owner.other.read_chunk = row / 2 == 0 ? SIZE_MAX : 50000;
    add_message(message, 700000, 1);
    send_bytes(&owner, message);
    connection_linger(&owner.stream.connection);
    connection_linger(&owner.stream.connection);
    run_until(&owner, owner.other.received.len == message->len);
    expect_same_bytes(&owner.other.received, message);
    run_until(&owner, owner.other.eof); /* the output was shut down */
    other_close(&owner.other);
    run_until(&owner, owner.failed_count == 1);
    ck_assert_int_eq(owner.failure, CONNECTION_LINGERED);
    close_owner(&owner);
}

/* The output alone ends, once the queue is written; the input continues. */
TEST_ROWS(output_ends_after_the_queue, 2)
{
    size_t lengths[] = {0, 700000};
    struct text *message = test_text();
    struct owner owner;

    open_pipes(&owner);
    owner.other.read_chunk = 50000;
    if (lengths[row] > 0) {
        add_message(message, lengths[row], 1);
        send_bytes(&owner, message);
    }
    connection_end_output(&owner.stream.connection);
    run_until(&owner, owner.other.eof);
    expect_same_bytes(&owner.other.received, message);
    ck_assert_int_eq(owner.stream.connection.output_state, OUTPUT_CLOSED);
    other_send(&owner.other, "{\"id\":1}\n");
    run_until(&owner, owner.messages == 1);
    close_owner(&owner);
}

/* What still comes is read, so that no reset destroys our last words, and is not looked at. */
TEST_ROWS(lingering_takes_no_messages, 2)
{
    struct text *flood = test_text();
    struct owner owner;

    add_message(flood, 600000, 1);
    open_socket(&owner);
    owner.hold_mode = row == 0 ? HOLD_NEVER : HOLD_ALWAYS;
    other_send(&owner.other, "{\"id\":1}\n");
    run_until(&owner, owner.offers == 1);
    owner.other.read_chunk = 0;
    send_text(&owner, "{\"last\":\"words\"}\n");
    connection_linger(&owner.stream.connection);
    text_add(&owner.other.to_send, flood->data, flood->len);
    other_send(&owner.other, "]not even JSON\n");
    run_until(&owner, other_sent_all(&owner.other)); /* more than the kernel's buffers hold */
    send_text(&owner, "");
    owner.other.read_chunk = SIZE_MAX;
    run_until(&owner, owner.other.eof || owner.failed_count == 1);
    ck_assert_int_eq(owner.offers, 1);
    ck_assert_int_eq(owner.malformed_count, 0);
    ck_assert_uint_eq(owner.other.received.len, 17);
    ck_assert_int_eq(owner.other.error, 0);
    other_close(&owner.other);
    run_until(&owner, owner.failed_count == 1);
    ck_assert_int_eq(owner.failure, CONNECTION_LINGERED);
    close_owner(&owner);
}

TEST(lingering_has_an_end)
{
    struct owner owner;

    open_socket(&owner);
    send_text(&owner, "{}\n");
    connection_linger(&owner.stream.connection);
    run_until(&owner, owner.other.eof);
    check_open(&owner);
    pass_ms(CONNECTION_LINGER_MS); /* the peer never closes */
    ck_assert_int_eq(owner.failed_count, 1);
    ck_assert_int_eq(owner.failure, CONNECTION_LINGERED);
    close_owner(&owner);
}

TEST_ROWS(lingering_peer_that_does_not_read, 4)
{
    struct owner owner;

    open_either(&owner, row % 2);
    if (row / 2 == 0) {
        fill(&owner); /* its time runs already */
    } else {
        struct text message = {0};

        owner.other.read_chunk = 0;
        add_message(&message, 1000000, 1); /* the queue is not full */
        send_bytes(&owner, &message);
        text_free(&message);
    }
    connection_linger(&owner.stream.connection);
    run_some(&owner);
    pass_ms(30000);
    check_open(&owner);
    pass_ms(60000);
    ck_assert_int_eq(owner.failed_count, 1);
    ck_assert_int_eq(owner.failure, CONNECTION_STALLED);
    close_owner(&owner);
}

/* The time of a queue that is not full is that since a byte was taken. */
TEST_ROWS(lingering_peer_that_reads_a_little_is_waited_for, 2)
{
    struct text *message = test_text();
    struct owner owner;
    int64_t start;
    size_t queued;

    open_either(&owner, row);
    owner.other.read_chunk = 0;
    add_message(message, 1000000, 1);
    send_bytes(&owner, message);
    connection_linger(&owner.stream.connection);
    run_some(&owner);
    start = stdio_bus_event_loop_now_ms(loop);
    queued = owner.stream.connection.output.bytes;
    run_until(&owner, stdio_bus_event_loop_now_ms(loop) >= start + 50);
    owner.other.read_chunk = 4096;
    run_until(&owner, owner.stream.connection.output.bytes < queued);
    timers_run(stdio_bus_event_loop_timers(loop), start + 60020);
    check_open(&owner);
    owner.other.read_chunk = 0;
    run_some(&owner);
    pass_ms(61000);
    ck_assert_int_eq(owner.failed_count, 1);
    ck_assert_int_eq(owner.failure, CONNECTION_STALLED);
    close_owner(&owner);
}

/* The same where the room is not reported. */
TEST(lingering_peer_whose_room_is_not_reported_is_waited_for)
{
    static char bytes[40000];
    struct text *message = test_text();
    struct owner owner;

    open_socket(&owner);
    owner.other.read_chunk = 0;
    add_message(message, 1000000, 1);
    send_bytes(&owner, message);
    connection_linger(&owner.stream.connection);
    run_some(&owner);
    ck_assert_int_gt(read(owner.other.fd_in, bytes, sizeof bytes), 0);
    pass_ms(61000);
    check_open(&owner);
    pass_ms(61000);
    ck_assert_int_eq(owner.failed_count, 1);
    ck_assert_int_eq(owner.failure, CONNECTION_STALLED);
    close_owner(&owner);
}

/* That it has read half of it does not give it for ever. */
TEST_ROWS(lingering_peer_that_stops_reading, 2)
{
    struct text *message = test_text();
    struct owner owner;

    limits.max_output_queue = 1600000;
    open_either(&owner, row);
    owner.other.read_chunk = 50000;
    add_message(message, 2000000, 1);
    send_bytes(&owner, message);
    connection_linger(&owner.stream.connection);
    run_until(&owner, owner.drained_count == 1);
    owner.other.read_chunk = 0;
    run_some(&owner);
    ck_assert_uint_gt(owner.stream.connection.output.bytes, 0);
    pass_ms(61000);
    ck_assert_int_eq(owner.failed_count, 1);
    ck_assert_int_eq(owner.failure, CONNECTION_STALLED);
    close_owner(&owner);
}

TEST_ROWS(lingering_with_nothing_to_say, 4)
{
    struct owner owner;

    open_either(&owner, row % 2);
    if (row / 2 == 1) { /* a peer that has sent everything: nothing is left to wait for */
        if (row % 2 == 0)
            ck_assert_int_eq(shutdown(owner.other.fd_out, SHUT_WR), 0);
        else
            close(owner.other.fd_out);
        if (row % 2 == 1)
            owner.other.fd_out = -1;
        run_until(&owner, owner.ended_count == 1);
    }
    connection_linger(&owner.stream.connection);
    ck_assert_int_eq(owner.failed_count, 0); /* not from inside the call */
    if (row == 0) {
        run_until(&owner, owner.other.eof);
        other_close(&owner.other);
    }
    run_until(&owner, owner.failed_count == 1);
    ck_assert_int_eq(owner.failure, CONNECTION_LINGERED);
    close_owner(&owner);
}

TEST(sent_while_lingering_is_sent_still)
{
    static const struct splice_edit longer = {5, 1, {"33", 2}};
    struct owner owner;

    open_socket(&owner);
    send_text(&owner, "{\"a\":1}\n");
    connection_linger(&owner.stream.connection);
    send_text(&owner, "{\"b\":2}\n");
    ck_assert_int_eq(connection_send_edited(&owner.stream.connection, NULL,
                                            slice_of_text("{\"c\":3}\n"), &longer, 1),
                     STDIO_BUS_OK);
    run_until(&owner, owner.other.eof);
    ck_assert_uint_eq(owner.other.received.len, 25);
    send_text(&owner, "{\"too\":\"late\"}\n"); /* as if lost on the way */
    ck_assert_uint_eq(owner.stream.connection.output.bytes, 0);
    other_close(&owner.other);
    run_until(&owner, owner.failed_count == 1);
    ck_assert_int_eq(owner.failure, CONNECTION_LINGERED);
    close_owner(&owner);
}

/* The event loop may refuse to watch the descriptor again; the owner then closes the connection in
 * the middle of connection_linger. close_owner finds what is left. */
TEST(lingering_that_fails_at_once_leaves_nothing)
{
    struct owner owner;

    open_socket(&owner);
    owner.hold_mode = HOLD_ALWAYS;
    other_send(&owner.other, "{\"id\":1}\n{\"id\":2}\n");
    run_until(&owner, owner.offers == 1);
    other_send(&owner.other, "{\"id\":3}\n");
    run_until(&owner, !(owner.stream.connection.interest & STDIO_BUS_EVENT_READ));
    ck_assert_int_eq(close(owner.stream.connection.fd_in), 0); /* without its knowledge */
    connection_linger(&owner.stream.connection);
    if (owner.failed_count == 0) { /* poll finds out later */
        connection_close(&owner.stream.connection);
        other_close(&owner.other);
    }
    close_owner(&owner);
}
