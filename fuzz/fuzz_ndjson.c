/* NDJSON framing and messages: a stream gives the same messages and verdicts however it is cut; the
 * routing fields are those that a plain reader finds; an error line written for an id is read back
 * as that id. Where long lines are cut, their ids are those of the whole lines. */
#include "build_config.h"

#include "framing/framing.h"
#include "json/message.h"

#include "common.h"
#include "reference_json.h"

#define REPEAT 0x01 /* in a stream that is cut: the byte before it, so often: */
#define REPEATS 700

static struct scanner body_scanner;

/* What a stream came to, in order: equal for equal streams. */
struct verdicts {
    uint64_t digest;
    size_t messages, consumed;
    size_t dropped;      /* of a line that is not at its end yet */
    const char *problem; /* the stream ended with this */
    size_t max_long;     /* longer lines are cut; 0: none */
};

static void add_bytes(uint64_t *digest, const void *data, size_t len)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < len; i++)
        *digest = (*digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    *digest = (*digest ^ len) * UINT64_C(0x100000001b3);
}

static void add_message(struct verdicts *verdicts, const struct message *message,
                        enum message_problem problem)
{
    unsigned char facts[] = {(unsigned char)problem,        (unsigned char)message->id.type,
                             message->has_result,           message->has_error,
                             message->session_id.data != 0, message->method.data != 0,
                             message->pool.data != 0};

    add_bytes(&verdicts->digest, facts, sizeof facts);
    add_bytes(&verdicts->digest, message->bytes.data, message->bytes.len);
    add_bytes(&verdicts->digest, message->id.text.data, message->id.text.len);
    add_bytes(&verdicts->digest, message->session_id.data, message->session_id.len);
    add_bytes(&verdicts->digest, message->method.data, message->method.len);
    add_bytes(&verdicts->digest, message->pool.data, message->pool.len);
    verdicts->messages++;
}

/* Of a line that was cut. */
static void add_cut(struct verdicts *verdicts, struct slice bytes, const struct scan_fields *fields)
{
    struct message_scratch scratch;
    struct message_id id;
    unsigned char facts[] = {(unsigned char)message_read_id(&id, bytes, &fields->id, &scratch),
                             (unsigned char)id.type, fields->has_result, fields->has_error,
                             fields->method.type == SCAN_STRING};

    add_bytes(&verdicts->digest, facts, sizeof facts);
    add_bytes(&verdicts->digest, id.text.data, id.text.len);
    verdicts->messages++;
}

/* Scans one whole line on its own. */
static enum message_problem scan_line(struct message *message, struct message_scratch *scratch,
                                      struct slice line)
{
    struct scanner scanner;

    scanner_reset(&scanner);
    EXPECT(scanner_run(&scanner, line.data, line.len) == SCAN_MESSAGE &&
               scanner.position == line.len,
           "a line that is not one message: %.*s", (int)line.len, line.data);
    return message_from_scan(message, line, &scanner.fields, scratch);
}

/* The id that a message with this text in the id's place has. */
static struct message_id id_written(const char *before, struct slice text, const char *after,
                                    struct message_scratch *scratch)
{
    char line[MESSAGE_ERROR_MAX];
    struct message message;
    int len = snprintf(line, sizeof line, "{\"id\":%s%.*s%s}\n", before, (int)text.len, text.data,
                       after);

    if (scan_line(&message, scratch, slice_of(line, (size_t)len)) != MESSAGE_OK)
        message.id.type = ID_NONE;
    return message.id;
}

/* The same number, written in other ways, is the same id, as far as doubles tell integers apart. */
static void check_number(struct message_id id, struct slice raw)
{
    static const char *const afters[] = {".0", "e0", "0e-1", ".000E+0", "00e-02"};
    struct message_scratch scratch;

    if (raw.len > 15 || memchr(raw.data, '.', raw.len) || memchr(raw.data, 'e', raw.len) ||
        memchr(raw.data, 'E', raw.len))
        return;
    for (size_t i = 0; i < sizeof afters / sizeof *afters; i++) {
        struct message_id other;

        if (afters[i][0] == '0' && raw.data[raw.len - 1] == '0' && raw.len <= 2)
            continue; /* "00" is no number */
        other = id_written("", raw, afters[i], &scratch);
        EXPECT(message_id_equal(id, other), "%.*s and with %s after", (int)raw.len, raw.data,
               afters[i]);
    }
}

/* The daemon's own error line carries the id to where it is understood as the same. */
static void check_error_line(struct message_id id)
{
    char line[MESSAGE_ERROR_MAX];
    char *exact;
    size_t len = message_write_error(line, sizeof line, id, -32000, "no \"way\"\n\x01\xff");
    struct message_scratch scratch;
    struct message message;
    enum message_problem problem;

    EXPECT(len > 0, "no room for an error line");
    exact = fuzz_copy(line, len);
    problem = scan_line(&message, &scratch, slice_of(exact, len));
    EXPECT(message.has_error && !message.has_result, "not an error reply");
    /* A negative number's digits may be one more than may be sent back. */
    if (id.type == ID_NUMBER && id.text.len > STDIO_BUS_MAX_REQUEST_ID_LEN)
        EXPECT(problem == MESSAGE_ID_LENGTH, "problem %d", (int)problem);
    else
        EXPECT(problem == MESSAGE_OK && message_id_equal(id, message.id), "%.*s became %.*s",
               (int)id.text.len, id.text.data, (int)message.id.text.len, message.id.text.data);
    EXPECT(message_write_error(line, len - 1, id, -32000, "no \"way\"\n\x01\xff") == 0,
           "written into less room than it needs");
    free(exact);
}

/* Compares a string field; `found` has data when the message has it. Returns false when the field
 * is one that cannot be extracted. */
static bool check_string(const char *line, const struct scan_field *field, struct slice found,
                         size_t max)
{
    char *decoded = malloc(field->len + 1);
    size_t len = 0;

    if (field->type == SCAN_STRING)
        len = reference_decode(decoded, line + field->offset, field->len);
    if (field->type == SCAN_STRING && len <= max)
        EXPECT(found.data != NULL && slice_equal(found, slice_of(decoded, len)), "other text");
    else
        EXPECT(found.data == NULL, "a field from nowhere");
    free(decoded);
    return field->type <= SCAN_NULL || (field->type == SCAN_STRING && len <= max);
}

static bool has_id(enum message_problem problem)
{
    return problem != MESSAGE_ID_TYPE && problem != MESSAGE_ID_LENGTH &&
           problem != MESSAGE_ID_RANGE;
}

static void check_fields(struct slice line, const struct message *message,
                         enum message_problem problem)
{
    struct reference_result is;
    struct slice id = message->id.text, raw;

    reference_line(&is, line.data, line.len);
    EXPECT(is.status == SCAN_MESSAGE && is.position == line.len, "no message to a plain reader");
    EXPECT(message->has_result == is.fields.has_result && message->has_error == is.fields.has_error,
           "result and error");
    raw = slice_of(line.data + is.fields.id.offset, is.fields.id.len);
    if (is.fields.id.type == SCAN_NUMBER) {
        EXPECT((raw.len > STDIO_BUS_MAX_REQUEST_ID_LEN) == (problem == MESSAGE_ID_LENGTH) &&
                   (message->id.type == ID_NUMBER) == has_id(problem),
               "a number");
        if (has_id(problem))
            check_number(message->id, raw);
    } else {
        bool good = check_string(line.data, &is.fields.id, id, STDIO_BUS_MAX_REQUEST_ID_LEN);

        EXPECT(good == has_id(problem), "id");
    }
    if (!has_id(problem)) {
        EXPECT(message->id.type == ID_NONE, "an id that is none");
        return;
    }
    check_error_line(message->id);
    if (problem == MESSAGE_OK) {
        check_string(line.data, &is.fields.session_id, message->session_id,
                     STDIO_BUS_MAX_SESSION_ID_LEN);
        check_string(line.data, &is.fields.pool, message->pool, STDIO_BUS_MAX_SESSION_ID_LEN);
        EXPECT((message->method.data != NULL) == (is.fields.method.type == SCAN_STRING), "method");
    }
}

/* The line continues. */
static void cut_line(struct framing_state *state, char *buffer, size_t start, size_t *end,
                     struct verdicts *verdicts)
{
    size_t len = *end - start, kept;

    if (verdicts->max_long == 0 || (len < verdicts->max_long && !state->cut))
        return;
    kept = framing_ndjson.cut(state, buffer + start, len);
    EXPECT(kept <= len && kept <= SCANNER_KEPT_MAX && state->cut, "%zu bytes of %zu", kept, len);
    verdicts->dropped += len - kept;
    *end = start + kept;
}

/* One frame after the other until there is none; returns false at the end of the stream. */
static bool read_frames(struct framing_state *state, char *buffer, size_t *start, size_t *end,
                        struct verdicts *verdicts, bool check)
{
    for (;;) {
        struct frame frame = {.consumed = 0};
        struct slice input = slice_of(buffer + *start, *end - *start);
        bool was_cut = state->cut;
        struct message_scratch scratch;
        struct message message;
        enum message_problem problem;

        switch (framing_ndjson.next(state, input, &frame)) {
        case FRAME_MORE:
            cut_line(state, buffer, *start, end, verdicts);
            return true;
        case FRAME_MALFORMED:
            verdicts->problem = frame.problem;
            EXPECT(frame.problem != NULL && frame.problem[0] != '\0', "no words for it");
            return false;
        case FRAME_WHOLE:
            EXPECT(frame.consumed <= input.len, "consumed %zu", frame.consumed);
            input.len = frame.consumed;
            EXPECT(was_cut == ((body_scanner.fields.oddities & SCAN_CUT) != 0), "not marked");
            if (was_cut || (verdicts->max_long > 0 && frame.consumed > verdicts->max_long)) {
                add_cut(verdicts, input, &body_scanner.fields);
                break;
            }
            problem = message_from_scan(&message, input, &body_scanner.fields, &scratch);
            EXPECT(message_problem_text(problem)[0] != '\0', "no words for it");
            add_message(verdicts, &message, problem);
            if (check)
                check_fields(input, &message, problem);
            break;
        case FRAME_SKIP:
            break;
        default:
            EXPECT(false, "a verdict of another framing");
        }
        EXPECT(frame.consumed > 0 && frame.consumed <= input.len, "consumed %zu", frame.consumed);
        *start += frame.consumed;
        verdicts->consumed += verdicts->dropped + frame.consumed;
        verdicts->dropped = 0;
    }
}

/* As in a connection: bytes that are not consumed wait for more, elsewhere in memory. */
static struct verdicts read_stream(const uint8_t *data, size_t size, size_t max_long,
                                   struct cutter *cutter)
{
    struct verdicts verdicts = {.max_long = max_long};
    struct framing_state state;
    char *buffer = fuzz_copy("", 0);
    size_t start = 0, have = 0, read = 0;
    bool more = true;

    memset(&state, 0x5A, sizeof state);
    state.check = &json_body_check;
    state.check_state = &body_scanner;
    framing_ndjson.reset(&state);
    while (more && read < size) {
        size_t piece = cutter != NULL ? cutter_next(cutter, size - read) : size;
        char *next = malloc(have - start + piece);

        memcpy(next, buffer + start, have - start);
        memcpy(next + have - start, data + read, piece);
        free(buffer);
        buffer = next;
        have += piece - start;
        start = 0;
        read += piece;
        more = read_frames(&state, buffer, &start, &have, &verdicts,
                           cutter == NULL && max_long == 0);
    }
    free(buffer);
    return verdicts;
}

static void expect_same(const struct verdicts *whole, const struct verdicts *cut)
{
    EXPECT(whole->messages == cut->messages, "%zu and %zu messages", whole->messages,
           cut->messages);
    EXPECT(whole->consumed == cut->consumed, "%zu and %zu bytes", whole->consumed, cut->consumed);
    EXPECT(whole->problem == cut->problem, "malformed or not");
    EXPECT(whole->digest == cut->digest, "other messages");
}

/* The stream with its repetitions written out. */
static uint8_t *spread(const uint8_t *data, size_t size, size_t *len)
{
    uint8_t *to = malloc(size * REPEATS + 1);

    EXPECT(to != NULL, "memory");
    *len = 0;
    for (size_t i = 0; i < size; i++) {
        bool repeats = data[i] == REPEAT && i > 0;

        memset(to + *len, data[repeats ? i - 1 : i], repeats ? REPEATS : 1);
        *len += repeats ? REPEATS : 1;
    }
    return to;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cutter cutter;
    struct verdicts whole, cut;
    uint8_t *stream;
    size_t len;

    if (size < CUTTER_BYTES)
        return 0;
    cutter = cutter_of(data);
    whole = read_stream(data + CUTTER_BYTES, size - CUTTER_BYTES, 0, NULL);
    cut = read_stream(data + CUTTER_BYTES, size - CUTTER_BYTES, 0, &cutter);
    expect_same(&whole, &cut);
    cutter = cutter_of(data);
    stream = spread(data + CUTTER_BYTES, size - CUTTER_BYTES, &len);
    whole = read_stream(stream, len, 1 + data[0] * 8u, NULL);
    cut = read_stream(stream, len, 1 + data[0] * 8u, &cutter);
    expect_same(&whole, &cut);
    free(stream);
    return 0;
}
