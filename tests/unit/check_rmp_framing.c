/* The framing of the RMP socket: both dialects on one stream, however it is cut. */
#include "build_config.h"

#include "framing/sized_frame.h"
#include "rmp/command.h"
#include "rmp/framing.h"
#include "rmp/msgpack.h"
#include "rmp_fixture.h"
#include "suite.h"

#define MAX_BODY 200

static const struct rmp_schemas schemas;
static const struct rmp_rules rules = {.schemas = &schemas, .max_body = MAX_BODY};

static void start_stream(struct framing_state *state, struct rmp_reader *reader)
{
    memset(state, 0x5A, sizeof *state);
    memset(reader, 0x5A, sizeof *reader);
    state->check_state = reader;
    state->max_body = rmp_framing_max(&rules);
    state->max_long = 0;
    state->wary = false;
    reader->rules = &rules;
    framing_rmp.reset(state);
}

/* --- streams --- */

static void add_golden(struct text *stream, size_t at, const char *bytes, size_t len)
{
    size_t start = stream->len;

    text_add(stream, golden_frame, GOLDEN_LEN);
    if (len > 0)
        memcpy(stream->data + start + at, bytes, len);
}

static void add_payload(struct text *stream, const char *payload)
{
    char prefix[FRAME_PREFIX_MAX];

    text_add(stream, prefix, framing_rmp.prefix(prefix, strlen(payload)));
    text_add(stream, payload, strlen(payload));
}

/* G is the golden frame. So are the others, with another magic (M), version (V), flags (F),
 * body_len (L) or schema (S), or with both lengths over the limit (B), or a frame_len of 63 (T). Z
 * is a frame_len of 0, J a command, j a shorter one, Q a string, X of neither dialect. */
static void add_part(struct text *stream, char part)
{
    switch (part) {
    case 'G':
        add_golden(stream, 0, NULL, 0);
        break;
    case 'M':
        add_golden(stream, 6, "Q", 1);
        break;
    case 'V':
        add_golden(stream, 8, "\0\1", 2);
        break;
    case 'F':
        add_golden(stream, 12, "\1", 1);
        break;
    case 'L':
        add_golden(stream, 20, "\0\0\0\x61", 4);
        break;
    case 'S':
        add_golden(stream, 16, "\xff\xff", 2);
        break;
    case 'B':
        add_golden(stream, 20, "\0\0\1\0", 4);
        wire_put_u32(stream->data + stream->len - GOLDEN_LEN, 64 + 256);
        text_fill(stream, '{', 256 - 96);
        break;
    case 'T':
        add_golden(stream, 0, "\0\0\0\x3f", 4);
        break;
    case 'Z':
        text_add(stream, "\0\0\0\0", 4);
        break;
    case 'J':
        add_payload(stream, "{\"Unsubscribe\":{\"sub_id\":1}}");
        break;
    case 'j':
        add_payload(stream, "{"); /* the framing does not look into it */
        break;
    case 'Q':
        add_payload(stream, "\"HelloAck\"");
        break;
    case 'X':
        add_payload(stream,
                    "x no dialect begins so, and it is as long as a header would be .......");
        break;
    default:
        ck_abort_msg("no such part");
    }
}

static const struct {
    const char *parts, *notes;
} streams[] = {
    {"", ""},
    {"G", "frame;"},
    {"GG", "frame;frame;"},
    {"J", "command;"},
    {"Q", "command;"},
    {"j", "command;"},
    {"GJGQjG", "frame;command;frame;command;command;frame;"},
    {"FG", "?InvalidHeaderFlags;frame;"},
    {"SG", "?UnknownSchema;frame;"},
    {"BG", "?BodyTooLarge;frame;"},
    {"BJ", "?BodyTooLarge;command;"},
    {"GSBFJ", "frame;?UnknownSchema;?BodyTooLarge;?InvalidHeaderFlags;command;"},
    {"GMG", "frame;!InvalidMagic;"},
    {"VG", "!UnsupportedVersion;"},
    {"LG", "!LengthMismatch;"},
    {"TG", "!TruncatedHeader;"},
    {"ZG", "!TruncatedHeader;"},
    {"JXG", "command;!InvalidMagic;"},
};

static enum frame_status note_next(struct framing_state *state, struct slice input, size_t *begin,
                                   struct text *notes)
{
    const struct rmp_reader *reader = state->check_state;
    struct frame frame = {.consumed = 0};
    char *copy = malloc(input.len + (input.len == 0));
    enum frame_status status;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, input.data, input.len);
    status = framing_rmp.next(state, slice_of(copy, input.len), &frame);
    ck_assert_uint_le(frame.consumed, input.len);
    if (status == FRAME_WHOLE) {
        ck_assert_uint_eq(frame.consumed, RMP_PREFIX_LEN + wire_get_u32(copy));
        ck_assert(reader->is_command || rmp_id_equal(reader->header.trace_id,
                                                     rmp_id_read((const char *)golden_frame + 40)));
        text_printf(notes, "%s;", reader->is_command ? "command" : "frame");
    } else if (status == FRAME_REFUSED || status == FRAME_MALFORMED) {
        ck_assert_str_eq(frame.problem, rmp_error_name(reader->error));
        ck_assert(reader->has_header == (reader->error != RMP_TRUNCATED_HEADER &&
                                         (reader->error != RMP_INVALID_MAGIC || copy[4] == 'R')));
        text_printf(notes, "%c%s;", status == FRAME_REFUSED ? '?' : '!', frame.problem);
    }
    *begin += status == FRAME_WAIT ? 0 : frame.consumed;
    free(copy);
    return status;
}

/* Returns how many bytes are kept at most while more are awaited. */
static size_t read_stream(const struct text *stream, size_t size, struct text *notes,
                          struct framing_state *state)
{
    size_t begin = 0, there = 0, kept = 0;
    enum frame_status status;
    struct rmp_reader reader;

    start_stream(state, &reader);
    do {
        there = stream->len - there < size ? stream->len : there + size;
        do {
            status = note_next(state, slice_of(stream->data + begin, there - begin), &begin, notes);
            if (status == FRAME_MALFORMED)
                return kept;
            ck_assert_int_ne(status, FRAME_MORE);
        } while (status != FRAME_WAIT);
        if (there - begin > kept)
            kept = there - begin;
    } while (there < stream->len);
    ck_assert_uint_eq(begin, stream->len);
    ck_assert(!state->begun);
    return kept;
}

TEST_ROWS(streams_at_all_chunk_sizes, COUNT(streams))
{
    struct text stream = {NULL, 0, 0}, notes = {NULL, 0, 0};
    struct framing_state state;

    for (const char *part = streams[row].parts; *part != '\0'; part++)
        add_part(&stream, *part);
    text_add(&stream, "", 0);
    for (size_t size = 1; size <= stream.len + 1; size++) {
        notes.len = 0;
        text_add(&notes, "", 0);
        ck_assert_uint_le(read_stream(&stream, size, &notes, &state), GOLDEN_LEN + size);
        ck_assert_msg(strcmp(notes.data, streams[row].notes) == 0, "in pieces of %zu: %s", size,
                      notes.data);
    }
    text_free(&stream);
    text_free(&notes);
}

/* A frame that is too large is refused when its head is here, and no more of it is kept. */
TEST(refused_frames_are_not_kept)
{
    struct text stream = {NULL, 0, 0}, notes = {NULL, 0, 0};
    struct framing_state state;

    add_part(&stream, 'B');
    ck_assert_uint_lt(read_stream(&stream, 1, &notes, &state), RMP_BODY_OFFSET);
    ck_assert_str_eq(notes.data, "?BodyTooLarge;");
    text_free(&stream);
    text_free(&notes);
}

/* --- heads --- */

static enum frame_status read_head(const char *bytes, size_t len, struct framing_state *state,
                                   struct rmp_reader *reader)
{
    struct frame frame;

    start_stream(state, reader);
    return framing_rmp.next(state, slice_of(bytes, len), &frame);
}

/* Whatever cannot become a frame is refused with the first byte of its payload. */
TEST(first_byte_of_the_payload_decides)
{
    struct framing_state state;
    struct rmp_reader reader;
    char bytes[5];

    wire_put_u32(bytes, 100);
    for (unsigned first = 0; first < 256; first++) {
        bytes[4] = (char)first;
        ck_assert_int_eq(read_head(bytes, 5, &state, &reader),
                         first == 'R' || first == '{' || first == '"' ? FRAME_WAIT
                                                                      : FRAME_MALFORMED);
        ck_assert(reader.is_command == (first == '{' || first == '"'));
    }
}

TEST(commands_have_a_limit)
{
    struct framing_state state;
    struct rmp_reader reader;
    char bytes[5] = {0, 0, 0, 0, '{'};

    wire_put_u32(bytes, RMP_COMMAND_MAX);
    ck_assert_int_eq(read_head(bytes, 5, &state, &reader), FRAME_WAIT);
    ck_assert_int_eq(state.part, PART_BODY);
    ck_assert_uint_eq(state.left, RMP_PREFIX_LEN + RMP_COMMAND_MAX);
    wire_put_u32(bytes, RMP_COMMAND_MAX + 1);
    ck_assert_int_eq(read_head(bytes, 5, &state, &reader), FRAME_MALFORMED);
    ck_assert(reader.is_command && reader.error == RMP_OK);
    wire_put_u32(bytes, UINT32_MAX);
    ck_assert_int_eq(read_head(bytes, 5, &state, &reader), FRAME_MALFORMED);
}

TEST(longest_frame_that_is_kept)
{
    struct rmp_rules large = {.schemas = &schemas, .max_body = RMP_MAX_BODY * 2};

    ck_assert_uint_eq(rmp_framing_max(&rules), 4 + 8388676);
    large.max_body = RMP_MAX_BODY;
    ck_assert_uint_eq(rmp_framing_max(&large), 4 + 8388676);
    large.max_body = RMP_MAX_BODY * 2;
    ck_assert_uint_eq(rmp_framing_max(&large), 4 + 64 + 16777216);
}

/* A frame of four gigabytes, whose lengths agree, is skipped by its length. */
TEST(largest_frame_is_refused)
{
    struct framing_state state;
    struct rmp_reader reader;
    char bytes[RMP_BODY_OFFSET];

    memcpy(bytes, golden_frame, sizeof bytes);
    wire_put_u32(bytes, UINT32_MAX);
    wire_put_u32(bytes + 20, UINT32_MAX - 64);
    ck_assert_int_eq(read_head(bytes, sizeof bytes, &state, &reader), FRAME_REFUSED);
    ck_assert_int_eq(reader.error, RMP_BODY_TOO_LARGE);
    ck_assert_uint_eq(state.left, UINT32_MAX - 64);
}

/* A frame that contradicts itself in more than its length ends the stream as well. */
TEST(flags_with_another_length_end_the_stream)
{
    struct framing_state state;
    struct rmp_reader reader;
    char bytes[GOLDEN_LEN];

    memcpy(bytes, golden_frame, sizeof bytes);
    bytes[12] = 1;
    bytes[23]++;
    ck_assert_int_eq(read_head(bytes, sizeof bytes, &state, &reader), FRAME_MALFORMED);
    ck_assert_int_eq(reader.error, RMP_INVALID_HEADER_FLAGS);
}

/* --- frames that are late --- */

/* After `here` bytes the frame is given up; the rest comes in pieces, and then a good frame. */
static void give_up_after(const struct text *late, size_t here, size_t size)
{
    struct text rest = {NULL, 0, 0}, notes = {NULL, 0, 0};
    struct framing_state state;
    struct rmp_reader reader;
    struct frame frame;
    size_t begin = 0, there = 0;

    start_stream(&state, &reader);
    ck_assert_int_eq(framing_rmp.next(&state, slice_of(late->data, here), &frame), FRAME_WAIT);
    ck_assert(state.begun == (here > 0));
    framing_rmp.give_up(&state, here);
    ck_assert(!state.begun);
    text_add(&rest, late->data + here, late->len - here);
    add_golden(&rest, 0, NULL, 0);
    while (there < rest.len) {
        there = rest.len - there < size ? rest.len : there + size;
        while (note_next(&state, slice_of(rest.data + begin, there - begin), &begin, &notes) !=
               FRAME_WAIT)
            ;
    }
    ck_assert_str_eq(notes.data, "frame;");
    ck_assert_uint_eq(begin, rest.len);
    text_free(&rest);
    text_free(&notes);
}

TEST(late_frames_are_given_up)
{
    struct text late = {NULL, 0, 0};
    size_t sizes[] = {1, 2, 3, 5, 1000};

    add_part(&late, 'G');
    for (size_t here = 1; here < late.len; here++) {
        for (size_t i = 0; i < COUNT(sizes); i++)
            give_up_after(&late, here, sizes[i]);
    }
    late.len = 0;
    add_part(&late, 'J');
    for (size_t here = 1; here < late.len; here++)
        give_up_after(&late, here, 1);
    text_free(&late);
}
