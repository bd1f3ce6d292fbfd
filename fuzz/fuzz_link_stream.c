/* Both ends of a link (nats/link_stream.h), with a server in between that loses, repeats, reorders
 * and cuts messages: bytes arrive once and in order. No message of an honest end is impossible to
 * the other one, and a cut one is known by its mark. At the end of the input the server does all
 * right: then each end gets all bytes of the other one, and the end. */
#include "build_config.h"

#include "nats/link_stream.h"

#include "common.h"

#define ENDS 2
#define ON_WAY_MAX 24
#define BYTES_MAX (LINK_WINDOW + 50000) /* of one direction */
#define MARK 12345
#define ROUNDS_MAX 64

struct posted {
    char *bytes;
    size_t len;
};

struct end {
    struct link_stream stream;
    uint64_t added;                   /* bytes; the position of the next one */
    struct posted on_way[ON_WAY_MAX]; /* to this end */
    size_t on_way_count;
    unsigned number;
};

struct run {
    struct end ends[ENDS];
    struct tape tape;
};

static struct end *other_end(struct run *run, const struct end *end)
{
    return &run->ends[1 - end->number];
}

/* What the byte is that the end sends at the position. */
static char byte_at(const struct end *from, uint64_t position)
{
    return (char)(unsigned char)((position * 131 + (position >> 8) + from->number * 77) & 0xff);
}

/* --- the server --- */

static void forget(struct end *to, size_t which)
{
    free(to->on_way[which].bytes);
    to->on_way_count--;
    memmove(&to->on_way[which], &to->on_way[which + 1],
            (to->on_way_count - which) * sizeof to->on_way[0]);
}

static void post(struct end *to, const struct link_message *message)
{
    struct posted *posted = &to->on_way[to->on_way_count];
    struct link_message whole = *message;

    if (to->on_way_count == ON_WAY_MAX)
        return; /* it is lost */
    whole.mark = MARK;
    posted->len = LINK_HEAD_LEN + message->payload.len;
    posted->bytes = malloc(posted->len);
    EXPECT(posted->bytes != NULL, "out of memory");
    link_message_write(posted->bytes, &whole);
    if (message->payload.len > 0)
        memcpy(posted->bytes + LINK_HEAD_LEN, message->payload.data, message->payload.len);
    to->on_way_count++;
}

static void post_positions(struct run *run, struct end *from, enum link_kind kind)
{
    const struct link_message message = link_stream_positions(&from->stream, kind);

    post(other_end(run, from), &message);
}

static void post_next(struct run *run, struct end *from, size_t max)
{
    struct link_message message;

    if (link_stream_next(&from->stream, max, &message))
        post(other_end(run, from), &message);
}

/* --- the ends --- */

static void add(struct end *end, size_t len)
{
    char *to;

    if (end->stream.ends || end->added + len > BYTES_MAX)
        return;
    to = link_stream_reserve(&end->stream, &len);
    if (to == NULL)
        return;
    for (size_t i = 0; i < len; i++)
        to[i] = byte_at(end, end->added + i);
    link_stream_add(&end->stream, len);
    end->added += len;
}

static void take_pending(struct run *run, struct end *end, size_t max)
{
    struct slice pending = link_stream_pending(&end->stream);
    size_t len = pending.len < max ? pending.len : max;

    for (size_t i = 0; i < len; i++)
        EXPECT(pending.data[i] == byte_at(other_end(run, end), end->stream.taken + i),
               "byte %zu of those after %llu", i, (unsigned long long)end->stream.taken);
    link_stream_taken(&end->stream, len);
    EXPECT(end->stream.taken <= other_end(run, end)->added, "more bytes than were sent");
}

static void take_message(struct run *run, struct end *end, const struct link_message *message)
{
    enum link_verdict verdict = link_stream_take(&end->stream, message);

    EXPECT(verdict == LINK_FINE || verdict == LINK_MISSING, "verdict %d of %c", (int)verdict,
           (char)message->kind);
    if (verdict == LINK_MISSING)
        post_positions(run, end, LINK_RESUME);
    if (message->kind == LINK_RESUME)
        link_stream_send_again(&end->stream);
    EXPECT(!end->stream.has_ended || (other_end(run, end)->stream.ends &&
                                      end->stream.received == other_end(run, end)->added),
           "an end after %llu bytes", (unsigned long long)end->stream.received);
}

/* Without its last `cut` bytes. */
static void deliver(struct run *run, struct end *to, size_t which, size_t cut)
{
    const struct posted *posted = &to->on_way[which];
    size_t len = posted->len > cut ? posted->len - cut : 0;
    char *copy = fuzz_copy(posted->bytes, len);
    struct link_message message;
    bool is_right = link_message_read(&message, slice_of(copy, len)) && message.mark == MARK;

    EXPECT(is_right == (cut == 0), "%zu of %zu bytes", len, posted->len);
    if (is_right)
        take_message(run, to, &message);
    free(copy);
}

/* --- a run --- */

enum step {
    STEP_ADD,
    STEP_NEXT,
    STEP_ACK,
    STEP_DELIVER,
    STEP_REPEAT,
    STEP_LOSE,
    STEP_CUT,
    STEP_TAKE,
    STEP_RESUME,
    STEP_END,
    STEPS
};

/* Mostly few bytes, sometimes as many as a piece has at most. */
static size_t read_len(struct tape *tape)
{
    size_t len = tape_byte(tape);

    return len < 224 ? len + 1 : (len - 223) * 2048;
}

static void act_on_way(struct run *run, struct end *end, enum step step)
{
    size_t which;

    if (end->on_way_count == 0)
        return;
    which = tape_below(&run->tape, (unsigned)end->on_way_count);
    if (step == STEP_CUT)
        deliver(run, end, which, tape_byte(&run->tape) + 1u);
    else if (step != STEP_LOSE)
        deliver(run, end, which, 0);
    if (step != STEP_REPEAT)
        forget(end, which);
}

static void act(struct run *run)
{
    unsigned byte = tape_byte(&run->tape);
    struct end *end = &run->ends[byte & 1];
    enum step step = (enum step)(byte / 2 % STEPS);

    if (step == STEP_ADD)
        add(end, read_len(&run->tape));
    else if (step == STEP_NEXT)
        post_next(run, end, read_len(&run->tape));
    else if (step == STEP_ACK)
        post_positions(run, end, LINK_ACK);
    else if (step == STEP_TAKE)
        take_pending(run, end, read_len(&run->tape));
    else if (step == STEP_END)
        link_stream_end(&end->stream);
    else if (step == STEP_RESUME) {
        link_stream_send_again(&end->stream);
        post_positions(run, end, LINK_RESUME);
    } else {
        act_on_way(run, end, step);
    }
}

static void deliver_all(struct run *run)
{
    for (size_t i = 0; i < ENDS; i++) {
        struct end *end = &run->ends[i];

        while (end->on_way_count > 0) {
            deliver(run, end, 0, 0);
            forget(end, 0);
        }
        take_pending(run, end, SIZE_MAX);
    }
}

static bool is_done(const struct run *run)
{
    return link_stream_is_over(&run->ends[0].stream) && link_stream_is_over(&run->ends[1].stream);
}

/* As after another connection to the server: both ends say how far they are. */
static void finish(struct run *run)
{
    deliver_all(run);
    for (size_t i = 0; i < ENDS; i++) {
        link_stream_end(&run->ends[i].stream);
        link_stream_send_again(&run->ends[i].stream);
        post_positions(run, &run->ends[i], LINK_RESUME);
    }
    for (int round = 0; round < ROUNDS_MAX && !is_done(run); round++) {
        deliver_all(run);
        for (size_t i = 0; i < ENDS; i++) {
            for (int j = 0; j < ON_WAY_MAX / 2; j++)
                post_next(run, &run->ends[i], LINK_PIECE_MAX);
            post_positions(run, &run->ends[i], LINK_ACK);
        }
    }
    EXPECT(is_done(run), "bytes are missing: %llu of %llu, %llu of %llu",
           (unsigned long long)run->ends[0].stream.taken, (unsigned long long)run->ends[1].added,
           (unsigned long long)run->ends[1].stream.taken, (unsigned long long)run->ends[0].added);
    for (size_t i = 0; i < ENDS; i++)
        EXPECT(run->ends[i].stream.taken == run->ends[1 - i].added, "bytes of end %zu", 1 - i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run run = {.tape = {data, data + size}};

    for (unsigned i = 0; i < ENDS; i++) {
        run.ends[i].number = i;
        run.ends[i].stream.limit = run.ends[i].stream.said_limit = LINK_WINDOW;
    }
    while (!tape_over(&run.tape))
        act(&run);
    finish(&run);
    for (size_t i = 0; i < ENDS; i++) {
        while (run.ends[i].on_way_count > 0)
            forget(&run.ends[i], 0);
        link_stream_free(&run.ends[i].stream);
    }
    return 0;
}
