/* The framings that announce lengths: a stream gives the same messages and the same problems
 * however it is cut; every body becomes one line with the same fields; and whatever came before,
 * the next good frame is found. The third byte of an input says which framing, how long a body may
 * be, and whether the sender is unknown: then the first problem is the end, and nothing of HTTP or
 * TLS is a message. It also says whether longer bodies are cut in place of being refused. */
#include "build_config.h"

#include "framing/first_frame.h"
#include "framing/foreign.h"
#include "framing/framing.h"
#include "json/message.h"

#include "common.h"
#include "reference_json.h"

#define OPTION_BYTES (CUTTER_BYTES + 1)

static struct scanner scanner;

/* What a stream came to, in order: equal for equal streams. */
struct verdicts {
    uint64_t digest;
    size_t messages, refused;
    bool ended;                   /* by what is malformed */
    const struct framing *reader; /* and the state: at the end */
    struct framing_state state;
};

struct stream {
    const struct framing *framing;
    bool wary;
    size_t max_body, max_long;
    const uint8_t *data;
    size_t size;
};

static void add_bytes(uint64_t *digest, const void *data, size_t len)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < len; i++)
        *digest = (*digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    *digest = (*digest ^ len) * UINT64_C(0x100000001b3);
}

static bool same_field(const struct scan_field *a, const struct scan_field *b)
{
    return a->type == b->type &&
           (a->type == SCAN_ABSENT || (a->offset == b->offset && a->len == b->len));
}

/* To a reader of lines, the body with spaces for its newlines is one line with the same fields. */
static void check_line(struct slice body, const struct scan_fields *fields)
{
    char *line = malloc(body.len + 1);
    struct reference_result is;

    for (size_t i = 0; i < body.len; i++)
        line[i] = body.data[i] == '\n' || body.data[i] == '\r' ? ' ' : body.data[i];
    line[body.len] = '\n';
    reference_line(&is, line, body.len + 1);
    EXPECT(is.status == SCAN_MESSAGE && is.position == body.len + 1, "not one line: %.*s",
           (int)body.len, line);
    EXPECT(same_field(&is.fields.id, &fields->id) &&
               same_field(&is.fields.session_id, &fields->session_id) &&
               same_field(&is.fields.method, &fields->method) &&
               same_field(&is.fields.pool, &fields->pool),
           "other fields: %.*s", (int)body.len, line);
    EXPECT(is.fields.has_result == fields->has_result && is.fields.has_error == fields->has_error,
           "result and error: %.*s", (int)body.len, line);
    free(line);
}

/* Its id, from what is left of it. */
static void add_cut(struct verdicts *verdicts, struct slice bytes)
{
    struct message_scratch scratch;
    struct message_id id;
    unsigned char facts[] = {
        (unsigned char)message_read_id(&id, bytes, &scanner.fields.id, &scratch),
        (unsigned char)id.type, scanner.fields.has_result, scanner.fields.has_error,
        scanner.fields.method.type == SCAN_STRING};

    EXPECT(scanner.fields.oddities & SCAN_CUT, "not marked");
    add_bytes(&verdicts->digest, facts, sizeof facts);
    add_bytes(&verdicts->digest, id.text.data, id.text.len);
}

/* The frame continues. */
static void cut_frame(const struct framing *framing, struct framing_state *state, char *buffer,
                      size_t start, size_t *end)
{
    size_t kept;

    if (!state->cut)
        return;
    kept = framing->cut(state, buffer + start, *end - start);
    EXPECT(kept <= *end - start && kept <= SCANNER_KEPT_MAX, "%zu bytes", kept);
    *end = start + kept;
}

/* One frame after the other until more is wanted. */
static void read_frames(const struct framing *framing, struct verdicts *verdicts, char *buffer,
                        size_t *start, size_t *end)
{
    struct framing_state *state = &verdicts->state;
    bool first = verdicts->reader != framing;
    size_t idle = 0;

    for (;;) {
        struct frame frame = {.consumed = 0};
        struct slice input = slice_of(buffer + *start, *end - *start);
        bool cut = state->cut;

        switch (verdicts->reader->next(state, input, &frame)) {
        case FRAME_WAIT:
            cut_frame(framing, state, buffer, *start, end);
            return;
        case FRAME_WHOLE:
            EXPECT(cut || frame.consumed <= state->max_body, "%zu bytes", frame.consumed);
            EXPECT(!state->begun, "a frame goes on after its end");
            if (cut) {
                add_cut(verdicts, slice_of(input.data, frame.consumed));
            } else {
                check_line(slice_of(input.data, frame.consumed), &scanner.fields);
                add_bytes(&verdicts->digest, input.data, frame.consumed);
            }
            verdicts->messages++;
            verdicts->reader = framing;
            first = false;
            break;
        case FRAME_MALFORMED:
            EXPECT(first || (state->wary && frame.fault == FRAME_FAULT_FOREIGN), "an end: %s",
                   frame.problem);
            add_bytes(&verdicts->digest, frame.problem, strlen(frame.problem));
            verdicts->ended = true;
            return;
        case FRAME_REFUSED:
            EXPECT(!first, "a first frame is refused");
            EXPECT(frame.problem != NULL && frame.problem[0] != '\0', "no words for it");
            EXPECT(frame.fault <= FRAME_FAULT_TYPE, "fault %d", (int)frame.fault);
            EXPECT(!state->begun || state->reported, "it will be reported again");
            add_bytes(&verdicts->digest, frame.problem, strlen(frame.problem));
            verdicts->refused++;
            break;
        case FRAME_SKIP:
            break;
        default:
            EXPECT(false, "a verdict of another framing");
        }
        EXPECT(frame.consumed <= input.len, "consumed %zu", frame.consumed);
        idle = frame.consumed > 0 ? 0 : idle + 1;
        EXPECT(idle < 10, "no progress");
        *start += frame.consumed;
    }
}

/* Whatever came before, a frame that follows is found. */
static void check_next(const struct framing *framing, struct verdicts *verdicts, struct slice rest)
{
    static const char body[] = "{\"id\":\"the next\"}";
    size_t messages = verdicts->messages, start = 0, len;
    char prefix[FRAME_PREFIX_MAX], *stream;

    if (framing == &framing_length && verdicts->state.begun)
        return; /* it follows the rest of the frame that has begun */
    if (verdicts->ended || (verdicts->reader != framing && verdicts->state.begun))
        return;
    if (verdicts->state.begun) {
        framing->give_up(&verdicts->state, rest.len);
        rest.len = 0;
    }
    verdicts->state.max_body = 100;
    verdicts->state.max_long = 0;
    len = framing->prefix(prefix, sizeof body - 1);
    stream = malloc(rest.len + len + sizeof body - 1);
    memcpy(stream, rest.data, rest.len);
    memcpy(stream + rest.len, prefix, len);
    memcpy(stream + rest.len + len, body, sizeof body - 1);
    len += rest.len + sizeof body - 1;
    read_frames(framing, verdicts, stream, &start, &len);
    EXPECT(verdicts->messages == messages + 1 && start == len, "%zu messages, %zu bytes left",
           verdicts->messages - messages, len - start);
    free(stream);
}

/* As in a connection: bytes that are not consumed wait for more, elsewhere in memory. */
static void read_stream(const struct stream *stream, struct cutter *cutter,
                        struct verdicts *verdicts)
{
    char *buffer = fuzz_copy("", 0);
    size_t start = 0, have = 0, read = 0;

    memset(verdicts, 0, sizeof *verdicts);
    memset(&verdicts->state, 0x5A, sizeof verdicts->state);
    verdicts->state.check = &json_body_check;
    verdicts->state.check_state = &scanner;
    verdicts->state.max_body = stream->max_body;
    verdicts->state.max_long = stream->max_long;
    verdicts->state.wary = stream->wary;
    verdicts->state.inner = stream->framing;
    verdicts->reader = stream->wary ? &framing_first_frame : stream->framing;
    verdicts->reader->reset(&verdicts->state);
    while (read < stream->size && !verdicts->ended) {
        size_t left = stream->size - read;
        size_t piece = cutter != NULL ? cutter_next(cutter, left) : left;
        char *next = malloc(have - start + piece);

        memcpy(next, buffer + start, have - start);
        memcpy(next + have - start, stream->data + read, piece);
        free(buffer);
        buffer = next;
        have += piece - start;
        start = 0;
        read += piece;
        read_frames(stream->framing, verdicts, buffer, &start, &have);
    }
    EXPECT(verdicts->ended || have - start <= FRAME_MAX_HEADER_BYTES + stream->max_body,
           "%zu bytes are kept", have - start); /* of a frame that is cut, less */
    if (!verdicts->ended) {
        add_bytes(&verdicts->digest, &verdicts->state.begun, 1);
        add_bytes(&verdicts->digest, &verdicts->state.reported, 1);
    }
    check_next(stream->framing, verdicts, slice_of(buffer + start, have - start));
    free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cutter cutter;
    struct verdicts whole, cut;
    struct stream stream;

    if (size < OPTION_BYTES)
        return 0;
    cutter = cutter_of(data);
    stream.framing = data[CUTTER_BYTES] & 1 ? &framing_length : &framing_content_length;
    stream.wary = (data[CUTTER_BYTES] & 2) != 0;
    stream.max_body = (size_t)data[CUTTER_BYTES] * 4;
    stream.max_long = data[CUTTER_BYTES] & 4 ? stream.max_body : 0;
    stream.data = data + OPTION_BYTES;
    stream.size = size - OPTION_BYTES;
    read_stream(&stream, NULL, &whole);
    read_stream(&stream, &cutter, &cut);
    EXPECT(whole.messages == cut.messages, "%zu and %zu messages", whole.messages, cut.messages);
    EXPECT(whole.refused == cut.refused, "%zu and %zu complaints", whole.refused, cut.refused);
    EXPECT(whole.digest == cut.digest, "other messages or complaints");
    EXPECT(whole.ended == cut.ended, "one has ended");
    EXPECT(!stream.wary || whole.messages == 0 ||
               foreign_start(slice_of((const char *)stream.data, stream.size)) < FOREIGN_HTTP,
           "a message of another protocol");
    return 0;
}
