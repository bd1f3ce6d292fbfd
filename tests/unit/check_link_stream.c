/* The bytes of a link: both ends have what was sent, in order and once, however messages are cut,
 * lost, repeated and reordered. */
#include "build_config.h"

#include <string.h>

#include "nats/link_stream.h"
#include "suite.h"

#define LENGTH ((size_t)700000) /* bytes of each direction: more than two windows */
#define FLIGHT_MAX 64

/* --- a network of messages --- */

struct flight {
    char *bytes;
    size_t len;
};

struct end {
    struct link_stream stream;
    size_t given, got;            /* bytes of its owner */
    struct flight in[FLIGHT_MAX]; /* on their way to it */
    size_t count;
    bool was_missing;
};

static uint64_t seed;

static unsigned roll(unsigned sides)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % sides;
}

static char byte_at(size_t position, bool of_first)
{
    return (char)(unsigned char)(position * 31 + position / 251 + (of_first ? 7 : 0));
}

static void post(struct end *to, const struct link_message *message)
{
    struct flight *flight;

    if (to->count == FLIGHT_MAX)
        return; /* lost */
    flight = &to->in[to->count++];
    flight->len = LINK_HEAD_LEN + message->payload.len;
    flight->bytes = malloc(flight->len);
    ck_assert_ptr_nonnull(flight->bytes);
    link_message_write(flight->bytes, message);
    if (message->payload.len > 0)
        memcpy(flight->bytes + LINK_HEAD_LEN, message->payload.data, message->payload.len);
}

static void post_positions(struct end *from, struct end *to, enum link_kind kind)
{
    struct link_message message = link_stream_positions(&from->stream, kind);

    post(to, &message);
}

static void receive(struct end *at, struct end *from, const struct flight *flight)
{
    struct link_message message;
    enum link_verdict verdict;

    ck_assert(link_message_read(&message, slice_of(flight->bytes, flight->len)));
    verdict = link_stream_take(&at->stream, &message);
    ck_assert(verdict == LINK_FINE || verdict == LINK_MISSING);
    if (verdict == LINK_MISSING) {
        at->was_missing = true;
        post_positions(at, from, LINK_RESUME);
    }
    if (message.kind == LINK_RESUME)
        link_stream_send_again(&at->stream);
}

/* Takes out one message: the first one, or any where they are reordered. */
static void arrive(struct end *at, struct end *from, unsigned faults)
{
    size_t which = faults > 0 && roll(8) == 0 ? roll((unsigned)at->count) : 0;
    struct flight flight = at->in[which];

    if (faults > 0 && roll(faults) == 0) {
        receive(at, from, &flight); /* and again */
        receive(at, from, &flight);
    } else if (faults == 0 || roll(faults) != 0) {
        receive(at, from, &flight);
    }
    free(flight.bytes);
    at->count--;
    memmove(&at->in[which], &at->in[which + 1], (at->count - which) * sizeof at->in[0]);
}

static void give(struct end *end, bool is_first)
{
    size_t len = 1 + roll(50000);
    char *to;

    if (len > LENGTH - end->given)
        len = LENGTH - end->given;
    to = link_stream_reserve(&end->stream, &len);
    for (size_t i = 0; i < len; i++)
        to[i] = byte_at(end->given + i, is_first);
    if (len > 0)
        link_stream_add(&end->stream, len);
    end->given += len;
    if (end->given == LENGTH)
        link_stream_end(&end->stream);
}

static void get(struct end *end, bool is_first)
{
    struct slice pending = link_stream_pending(&end->stream);
    size_t len = pending.len > 0 ? 1 + roll((unsigned)pending.len) : 0;

    for (size_t i = 0; i < len; i++)
        ck_assert_int_eq(pending.data[i], byte_at(end->got + i, !is_first));
    end->got += len;
    link_stream_taken(&end->stream, len);
    ck_assert_uint_le(end->stream.kept.len, LINK_WINDOW);
    ck_assert_uint_le(end->stream.pending.len, LINK_WINDOW);
}

static void act(struct end *end, struct end *other, bool is_first, size_t piece)
{
    struct link_message message;

    switch (roll(4)) {
    case 0:
        give(end, is_first);
        break;
    case 1:
        get(end, is_first);
        break;
    case 2:
        if (other->count < FLIGHT_MAX / 2 && link_stream_next(&end->stream, piece, &message))
            post(other, &message);
        break;
    default:
        if (link_stream_owes(&end->stream, true) || roll(20) == 0)
            post_positions(end, other, roll(4) == 0 ? LINK_RESUME : LINK_ACK);
    }
}

static const struct {
    size_t piece;
    unsigned faults; /* one of so many messages is lost, and one is repeated; 0: none */
} runs[] = {{1000, 0}, {4096, 0}, {65536, 0}, {999, 10}, {4096, 5}, {65536, 3}, {65536, 50}};

TEST_ROWS(link_stream_delivers_once_and_in_order, COUNT(runs))
{
    struct end *ends = calloc(2, sizeof *ends);

    ck_assert_ptr_nonnull(ends);
    seed = row + 1;
    post_positions(&ends[0], &ends[1], LINK_ACK);
    post_positions(&ends[1], &ends[0], LINK_ACK);
    while (ends[0].got < LENGTH || ends[1].got < LENGTH || !link_stream_is_over(&ends[0].stream) ||
           !link_stream_is_over(&ends[1].stream)) {
        for (size_t i = 0; i < 2; i++) {
            struct end *end = &ends[i], *other = &ends[1 - i];

            act(end, other, i == 0, runs[row].piece);
            if (end->count > 0 && roll(2) == 0)
                arrive(end, other, runs[row].faults);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        ck_assert_ptr_null(ends[i].stream.kept.data); /* an idle link has no memory */
        ck_assert_ptr_null(ends[i].stream.pending.data);
        ck_assert(!link_stream_is_unacked(&ends[i].stream));
        ck_assert(runs[row].faults > 0 || !ends[i].was_missing);
        while (ends[i].count > 0)
            free(ends[i].in[--ends[i].count].bytes);
        link_stream_free(&ends[i].stream);
    }
    free(ends);
}

/* --- what cannot be --- */

static const struct {
    enum link_kind kind;
    uint64_t position, received, limit;
    const char *payload;
    enum link_verdict verdict;
} messages[] = {
    {LINK_DATA, 0, 0, 10, "abc", LINK_FINE},
    {LINK_DATA, 4, 0, 10, "e", LINK_MISSING},
    {LINK_DATA, LINK_WINDOW - 1, 0, 10, "abc", LINK_IMPOSSIBLE},
    {LINK_DATA, UINT64_MAX, 0, 10, "abc", LINK_IMPOSSIBLE},
    {LINK_END, 0, 0, 10, "", LINK_FINE},
    {LINK_END, 1, 0, 10, "", LINK_MISSING},
    {LINK_ACK, 0, 1, 10, "", LINK_IMPOSSIBLE},
    {LINK_ACK, 0, UINT64_MAX, 10, "", LINK_IMPOSSIBLE},
};

TEST_ROWS(link_stream_judges_messages, COUNT(messages))
{
    struct link_stream stream = {.limit = 0};
    const struct link_message message = {.kind = messages[row].kind,
                                         .position = messages[row].position,
                                         .received = messages[row].received,
                                         .limit = messages[row].limit,
                                         .payload = slice_of_text(messages[row].payload)};

    ck_assert_int_eq(link_stream_take(&stream, &message), messages[row].verdict);
    link_stream_free(&stream);
}

TEST(link_stream_refuses_bytes_after_the_end)
{
    struct link_stream stream = {.limit = 0};
    struct link_message end = {.kind = LINK_END}, more = {.kind = LINK_DATA, .payload = {"a", 1}};

    ck_assert_int_eq(link_stream_take(&stream, &end), LINK_FINE);
    ck_assert_int_eq(link_stream_take(&stream, &end), LINK_FINE);
    ck_assert_int_eq(link_stream_take(&stream, &more), LINK_IMPOSSIBLE);
    end.position = 1;
    ck_assert_int_eq(link_stream_take(&stream, &end), LINK_IMPOSSIBLE);
}

/* Bytes that are to be sent, and were not: nothing has got them. */
TEST(link_stream_refuses_what_was_never_sent)
{
    struct link_stream stream = {.limit = 100};
    struct link_message sent, ack = {.kind = LINK_ACK, .received = 6};
    size_t len = 10;

    ck_assert_ptr_nonnull(link_stream_reserve(&stream, &len));
    memset(stream.kept.data, 'x', len);
    link_stream_add(&stream, len);
    ck_assert(link_stream_next(&stream, 5, &sent));
    ck_assert_int_eq(link_stream_take(&stream, &ack), LINK_IMPOSSIBLE);
    link_stream_send_again(&stream); /* what was sent once may have come */
    ack.received = 5;
    ck_assert_int_eq(link_stream_take(&stream, &ack), LINK_FINE);
    ck_assert(link_stream_next(&stream, 5, &sent) && sent.position == 5);
    link_stream_end(&stream);
    ack.received = 11; /* the end, which was not sent */
    ck_assert_int_eq(link_stream_take(&stream, &ack), LINK_IMPOSSIBLE);
    ack.received = 10;
    ck_assert_int_eq(link_stream_take(&stream, &ack), LINK_FINE);
    link_stream_free(&stream);
}

/* A length that a server has changed changes the mark; what has no positions has no mark. */
TEST(link_message_knows_its_length)
{
    const struct link_message ack = {.kind = LINK_ACK, .mark = 5}, life = {.kind = LINK_LIFE};
    char bytes[LINK_HEAD_LEN + 1] = "";
    struct link_message read;

    link_message_write(bytes, &ack);
    ck_assert(link_message_read(&read, slice_of(bytes, sizeof bytes)) && read.mark == 4);
    link_message_write(bytes, &life);
    ck_assert(link_message_read(&read, slice_of(bytes, sizeof bytes - 1)));
    ck_assert(!link_message_read(&read, slice_of(bytes, sizeof bytes)));
}

TEST(link_message_is_read_as_written)
{
    struct link_message message = {.kind = LINK_DATA,
                                   .mark = link_mark("0123456789abcdef", 7),
                                   .position = 1,
                                   .received = UINT64_C(0x0123456789abcdef),
                                   .limit = UINT64_MAX};
    struct link_message read;
    char bytes[LINK_HEAD_LEN];

    link_message_write(bytes, &message);
    ck_assert(link_message_read(&read, slice_of(bytes, sizeof bytes)));
    ck_assert(read.kind == LINK_DATA && read.position == 1 && read.limit == UINT64_MAX &&
              read.received == message.received && read.mark == message.mark &&
              read.payload.len == 0);
    ck_assert(!link_message_read(&read, slice_of(bytes, sizeof bytes - 1)));
    bytes[0] = 'Z';
    ck_assert(!link_message_read(&read, slice_of(bytes, sizeof bytes)));
}
