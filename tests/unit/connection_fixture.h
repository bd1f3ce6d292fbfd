/* For the tests of connections: an event loop, connections that note what they tell, and peers at
 * the other end of the descriptors that write and read as much per round as the test says. Buffers
 * are compiled into the test with an allocator that fails on demand: they take the place of the
 * library's. Changes of an interest fail on demand, too. Every test runs over every event
 * backend. */
#ifndef CHECK_CONNECTION_FIXTURE_H
#define CHECK_CONNECTION_FIXTURE_H

#include <fcntl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "endpoint/stream.h"
#include "over_backends.h"
#include "quick_assert.h"
#include "text.h"

static bool out_of_memory;
static bool out_of_watches; /* the event loop cannot change an interest */

static inline void *failing_malloc(size_t size)
{
    return out_of_memory ? NULL : malloc(size);
}

#define malloc failing_malloc
#include "base/buffer.c"
#undef malloc

#define DEADLINE_MS 20000 /* longer than anything that is waited for */
#define ROUND_MS 1        /* a round without events */

static struct stdio_bus_event_loop *loop;
static struct limits limits;
static struct log test_log;
static struct transport transport;
static const struct framing *framing; /* of the connections that are opened from now on */
static size_t max_long;               /* of the streams */
static int round_ms; /* how long a round may wait; 0 where the test itself makes all that happens */

static const struct event_backend *working_backend;

static inline int failing_change(void *state, int fd, unsigned before, unsigned events)
{
    if (!out_of_watches || events == 0)
        return working_backend->change(state, fd, before, events);
    errno = ENOMEM;
    return STDIO_BUS_ERR;
}

static inline void set_up_over(const struct event_backend *backend)
{
    const struct limits defaults = LIMITS_DEFAULT;
    static struct event_backend failing_backend;

    signal(SIGPIPE, SIG_IGN);
    limits = defaults;
    framing = NULL;
    max_long = 0;
    round_ms = ROUND_MS;
    working_backend = backend;
    failing_backend = *backend;
    failing_backend.change = failing_change;
    loop = event_loop_create_with(&failing_backend);
    ck_assert_ptr_nonnull(loop);
    log_open(&test_log, STDERR_FILENO, LOG_LEVEL_ERROR);
    transport_init(&transport, loop, &test_log, &limits);
}

static inline void tear_down(void)
{
    out_of_memory = out_of_watches = false;
    transport_free(&transport);
    log_close(&test_log);
    stdio_bus_event_loop_destroy(loop);
}

OVER_EACH_BACKEND

static inline void expect_same_bytes(const struct text *a, const struct text *b)
{
    ck_assert_uint_eq(a->len, b->len);
    ck_assert(a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* A message of exactly `len` bytes, newline included (at least 20), that differs from number to
 * number. */
static inline void add_message(struct text *to, size_t len, unsigned number)
{
    char head[32];
    unsigned letter = number % 26;
    size_t head_len;

    snprintf(head, sizeof head, "{\"id\":%u,\"p\":\"", number);
    head_len = strlen(head);
    ck_assert_uint_ge(len, head_len + 3);
    text_add(to, head, head_len);
    (void)text_room(to, len - head_len);
    for (size_t i = head_len; i < len - 3; i++) {
        to->data[to->len++] = (char)('a' + letter);
        letter = letter < 19 ? letter + 7 : letter - 19;
    }
    text_add(to, "\"}\n", 3);
}

/* --- the other end --- */

struct other_end {
    int fd_in, fd_out; /* -1: closed */
    struct text to_send, received;
    size_t sent;
    size_t send_chunk, read_chunk; /* bytes per round at most; 0: it does not */
    bool eof;
    int error; /* errno's value of a failed read or write */
};

static inline void other_send_some(struct other_end *other)
{
    size_t len = other->to_send.len - other->sent;
    ssize_t written;

    if (len > other->send_chunk)
        len = other->send_chunk;
    if (other->fd_out < 0 || len == 0)
        return;
    written = write(other->fd_out, other->to_send.data + other->sent, len);
    if (written >= 0)
        other->sent += (size_t)written;
    else if (errno != EAGAIN)
        other->error = errno;
}

static inline void other_read_some(struct other_end *other)
{
    static char buffer[1 << 20];
    size_t room = other->read_chunk < sizeof buffer ? other->read_chunk : sizeof buffer;
    ssize_t got;

    if (other->fd_in < 0 || room == 0 || other->eof)
        return;
    got = read(other->fd_in, buffer, room);
    if (got > 0)
        text_add(&other->received, buffer, (size_t)got);
    else if (got == 0)
        other->eof = true;
    else if (errno != EAGAIN)
        other->error = errno;
}

static inline bool other_sent_all(const struct other_end *other)
{
    return other->sent == other->to_send.len;
}

static inline void other_close(struct other_end *other)
{
    if (other->fd_in >= 0)
        close(other->fd_in);
    if (other->fd_out >= 0 && other->fd_out != other->fd_in)
        close(other->fd_out);
    other->fd_in = other->fd_out = -1;
}

static inline void other_send(struct other_end *other, const char *text)
{
    text_add(&other->to_send, text, strlen(text));
}

/* --- the connection's owner --- */

/* How messages go to `forward_to`. */
enum sending {
    SENDING_FORWARD,
    SENDING_COPY,
    SENDING_EDITED /* with EDIT after their first byte, twice */
};

#define EDIT "\"e\":[],"

enum hold_mode {
    HOLD_NEVER,
    HOLD_ONCE,  /* each message is held when it comes, and taken when it is offered again */
    HOLD_ALWAYS /* until hold_mode is changed */
};

/* The report at which the owner closes the connection. */
enum closing_at {
    CLOSE_NEVER,
    CLOSE_AT_MESSAGE,
    CLOSE_AT_MALFORMED,
    CLOSE_AT_REFUSED,
    CLOSE_AT_ENDED,
    CLOSE_AT_FULL,
    CLOSE_AT_DRAINED
};

struct owner {
    struct stream stream;
    struct other_end other;
    enum hold_mode hold_mode;
    enum closing_at closing_at;
    enum sending sending;
    struct endpoint *forward_to; /* messages go there; NULL: they are taken */
    bool was_held;               /* the message that is offered next */
    int resume_in;               /* rounds until connection_resume; 0: none is due */
    struct text taken;           /* messages */
    int messages, offers, handed_over, forward_failures;
    int long_count;
    bool is_cut;                  /* the last one */
    enum message_problem problem; /* the last one's */
    char id[64];                  /* the last one's */
    int malformed_count, malformed_code;
    char malformed_text[128]; /* of what was refused too */
    int refused_count, refused_code;
    bool hold_refused; /* frames: each holds the connection for some rounds */
    int ended_count;
    size_t cut;
    int full_count, drained_count;
    int failed_count, failure, error;
    int starved_count;
};

static inline struct owner *owner_of(struct connection *connection)
{
    return list_entry(connection, struct owner, stream.connection);
}

static inline int send_line(struct owner *owner, struct slice line)
{
    const struct delivery delivery = {.bytes = line};

    return owner->stream.endpoint.ops->deliver(&owner->stream.endpoint, &delivery);
}

/* After this no report may come any more. */
static inline void close_at(struct owner *owner, enum closing_at event)
{
    if (owner->closing_at == event)
        connection_close(&owner->stream.connection);
}

static inline void check_open(const struct owner *owner)
{
    QUICK_ASSERT(connection_is_open(&owner->stream.connection));
    QUICK_ASSERT(owner->failed_count == 0);
}

static inline bool hold_this(struct owner *owner)
{
    if (owner->hold_mode == HOLD_NEVER || (owner->hold_mode == HOLD_ONCE && owner->was_held))
        return false;
    owner->was_held = true;
    owner->resume_in = owner->hold_mode == HOLD_ONCE ? 1 + owner->messages % 3 : 0;
    return true;
}

static inline int send_on(struct owner *owner, struct slice bytes)
{
    static const struct splice_edit edits[] = {{1, 0, {EDIT, sizeof EDIT - 1}},
                                               {1, 0, {EDIT, sizeof EDIT - 1}}};
    struct endpoint *to = owner->forward_to;
    const struct delivery delivery = {.from = &owner->stream.endpoint,
                                      .bytes = bytes,
                                      .edits = edits,
                                      .edit_count = owner->sending == SENDING_EDITED ? 2 : 0,
                                      .keep = owner->sending == SENDING_COPY};

    return to->ops->deliver(to, &delivery);
}

static inline void take_message(struct stream *stream, const struct message *message,
                                enum message_problem problem)
{
    struct owner *owner = owner_of(&stream->connection);

    check_open(owner);
    QUICK_ASSERT(owner->malformed_count == 0);
    QUICK_ASSERT(owner->ended_count == 0);
    owner->offers++;
    owner->problem = problem;
    if (message->id.text.len < sizeof owner->id) {
        memset(owner->id, 0, sizeof owner->id);
        memcpy(owner->id, message->id.text.len > 0 ? message->id.text.data : "",
               message->id.text.len);
    }
    if (hold_this(owner)) {
        stream->endpoint.ops->pause(&stream->endpoint);
        return;
    }
    text_add(&owner->taken, message->bytes.data, message->bytes.len);
    if (owner->forward_to != NULL) {
        if (send_on(owner, message->bytes) != STDIO_BUS_OK) {
            owner->forward_failures++;
            owner->taken.len -= message->bytes.len;
            owner->resume_in = 3;
            stream->endpoint.ops->pause(&stream->endpoint);
            return;
        }
        owner->handed_over += stream->connection.at_hand == 0;
    }
    owner->was_held = false;
    owner->messages++;
    close_at(owner, CLOSE_AT_MESSAGE);
}

static inline void on_message(struct endpoint *from, const struct message *message)
{
    owner_of(&stream_of(from)->connection)->is_cut = false;
    take_message(stream_of(from), message, MESSAGE_OK);
}

static inline void on_long_message(struct endpoint *from, const struct message *message)
{
    struct owner *owner = owner_of(&stream_of(from)->connection);

    owner->is_cut = message_is_cut(message);
    take_message(stream_of(from), message, MESSAGE_OK);
    owner->long_count += !owner->was_held;
}

static inline void on_malformed(struct connection *connection, enum frame_fault fault,
                                const char *problem)
{
    struct owner *owner = owner_of(connection);

    check_open(owner);
    owner->malformed_count++;
    owner->malformed_code = stream_error_code(fault);
    snprintf(owner->malformed_text, sizeof owner->malformed_text, "%s", problem);
    close_at(owner, CLOSE_AT_MALFORMED);
}

static inline void on_refused(struct connection *connection, enum frame_fault fault,
                              const char *problem)
{
    struct owner *owner = owner_of(connection);

    check_open(owner);
    owner->refused_count++;
    owner->refused_code = stream_error_code(fault);
    snprintf(owner->malformed_text, sizeof owner->malformed_text, "%s", problem);
    if (owner->hold_refused) {
        owner->resume_in = 2;
        connection_pause(connection);
    }
    close_at(owner, CLOSE_AT_REFUSED);
}

static inline void on_ended(struct connection *connection, size_t cut)
{
    struct owner *owner = owner_of(connection);

    check_open(owner);
    owner->ended_count++;
    owner->cut = cut;
    close_at(owner, CLOSE_AT_ENDED);
}

static inline void on_full(struct connection *connection, bool full)
{
    struct owner *owner = owner_of(connection);
    size_t bytes = connection->output.bytes;

    check_open(owner);
    if (full) {
        ck_assert_int_eq(owner->full_count, owner->drained_count);
        ck_assert_uint_gt(bytes, limits.max_output_queue);
        owner->full_count++;
        close_at(owner, CLOSE_AT_FULL);
    } else {
        ck_assert_int_eq(owner->full_count, owner->drained_count + 1);
        ck_assert_uint_lt(2 * bytes, limits.max_output_queue);
        owner->drained_count++;
        close_at(owner, CLOSE_AT_DRAINED);
    }
}

static inline void on_failed(struct connection *connection, enum connection_failure failure,
                             int error)
{
    struct owner *owner = owner_of(connection);

    check_open(owner);
    owner->failed_count++;
    owner->failure = (int)failure;
    owner->error = error;
    connection_close(connection);
}

static inline void on_starved(struct connection *connection)
{
    struct owner *owner = owner_of(connection);

    check_open(owner);
    owner->starved_count++;
    owner->resume_in = 3;
}

static const struct stream_handler handler = {
    .message = on_message,
    .long_message = on_long_message,
    .unacceptable = take_message,
    .connection = {.frame = stream_read,
                   .malformed = on_malformed,
                   .skipped = stream_skipped,
                   .refused = on_refused,
                   .ended = on_ended,
                   .full = on_full,
                   .failed = on_failed,
                   .starved = on_starved},
};

static inline void open_owner(struct owner *owner, int fd_in, int fd_out, int other_in,
                              int other_out)
{
    const struct stream_options options = {.handler = &handler,
                                           .framing = framing,
                                           .max_long = max_long,
                                           .fd_in = fd_in,
                                           .fd_out = fd_out};

    memset(owner, 0, sizeof *owner);
    stream_init(&owner->stream);
    owner->other.fd_in = other_in;
    owner->other.fd_out = other_out;
    owner->other.send_chunk = owner->other.read_chunk = SIZE_MAX;
    ck_assert_int_eq(fcntl(other_in, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(fcntl(other_out, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(stream_open(&owner->stream, &transport, &options), STDIO_BUS_OK);
}

static inline void open_socket(struct owner *owner)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    open_owner(owner, ends[0], ends[0], ends[1], ends[1]);
}

static inline void open_pipes(struct owner *owner)
{
    int in[2], out[2];

    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    open_owner(owner, in[0], out[1], out[0], in[1]);
}

/* Over one or the other; 0 and 1. */
static inline void open_either(struct owner *owner, size_t which)
{
    if (which == 0)
        open_socket(owner);
    else
        open_pipes(owner);
}

static inline void close_owner(struct owner *owner)
{
    connection_close(&owner->stream.connection);
    other_close(&owner->other);
    ck_assert_ptr_null(owner->stream.connection.input);
    ck_assert_ptr_null(owner->stream.connection.output.first);
    ck_assert(!timer_started(&owner->stream.connection.stall));
    ck_assert(!timer_started(&owner->stream.connection.frame_time));
    ck_assert(!list_linked(&owner->stream.connection.dirty));
    text_free(&owner->taken);
    text_free(&owner->other.to_send);
    text_free(&owner->other.received);
}

/* What holds between two rounds. */
static inline void check_between_rounds(const struct owner *owner)
{
    const struct connection *connection = &owner->stream.connection;

    if (!connection_is_open(connection))
        return;
    QUICK_ASSERT(connection->full == (owner->full_count > owner->drained_count));
    if (connection->full)
        QUICK_ASSERT(2 * connection->output.bytes >= limits.max_output_queue);
    else
        QUICK_ASSERT(connection->output.bytes <= limits.max_output_queue);
    /* One message, and what came in the same read. */
    if (connection->input != NULL)
        QUICK_ASSERT(buffer_len(connection->input) <
                     (connection->max_long > 0 ? connection->max_long
                      : !connection->has_lines ? limits.max_frame_body
                                               : limits.max_input_buffer) +
                         BUFFER_LARGE);
}

/* One round of the event loop, and of everybody around it. */
static inline void run_round(struct owner **owners, int count)
{
    for (int i = 0; i < count; i++) {
        struct owner *owner = owners[i];

        other_send_some(&owner->other);
        other_read_some(&owner->other);
        if (owner->resume_in > 0 && --owner->resume_in == 0)
            connection_resume(&owner->stream.connection);
    }
    connection_flush_all(&transport);
    QUICK_ASSERT(stdio_bus_event_loop_run_once(loop, list_empty(&transport.dirty) ? round_ms : 0) >=
                 0);
    connection_flush_all(&transport);
    for (int i = 0; i < count; i++)
        check_between_rounds(owners[i]);
}

/* Runs rounds until the condition holds. */
#define run_owners_until(owners_, count_, condition_)                                              \
    do {                                                                                           \
        int64_t deadline_ = clock_now_ms() + DEADLINE_MS;                                          \
        while (!(condition_)) {                                                                    \
            if (clock_now_ms() > deadline_)                                                        \
                ck_abort_msg("waited in vain for " #condition_);                                   \
            run_round((owners_), (count_));                                                        \
        }                                                                                          \
    } while (0)

#define run_until(owner_, condition_)                                                              \
    do {                                                                                           \
        struct owner *only_ = (owner_);                                                            \
        run_owners_until(&only_, 1, condition_);                                                   \
    } while (0)

/* Some rounds in which something must not happen. */
static inline void run_some(struct owner *owner)
{
    for (int i = 0; i < 5; i++)
        run_round(&owner, 1);
}

#endif
