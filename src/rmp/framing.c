#include "build_config.h"

#include "rmp/framing.h"

#include "framing/foreign.h"
#include "framing/sized_frame.h"
#include "rmp/command.h"
#include "rmp/msgpack.h"

static struct rmp_reader *reader_of(const struct framing_state *state)
{
    return state->check_state;
}

static enum frame_status malformed(struct framing_state *state, struct frame *frame,
                                   enum rmp_error error, const char *problem)
{
    reader_of(state)->error = error;
    state->reported = true;
    frame->consumed = 0;
    frame->fault = FRAME_FAULT_SYNTAX;
    frame->problem = problem;
    return FRAME_MALFORMED;
}

/* HTTP and TLS are no frames of a client that could read an error. */
static enum frame_status not_magic(struct framing_state *state, struct slice input,
                                   struct frame *frame)
{
    enum frame_status status = malformed(state, frame, RMP_INVALID_MAGIC,
                                         rmp_error_name(RMP_INVALID_MAGIC));
    enum foreign foreign = foreign_start(input);

    if (foreign == FOREIGN_HTTP || foreign == FOREIGN_TLS) {
        frame->fault = FRAME_FAULT_FOREIGN;
        frame->problem = foreign == FOREIGN_HTTP ? FOREIGN_HTTP_TEXT : FOREIGN_TLS_TEXT;
    }
    return status;
}

/* The frame, of state->left bytes, is kept until it is whole. */
static enum frame_status wait_for_body(struct framing_state *state, struct slice input,
                                       struct frame *frame)
{
    if (input.len < state->left)
        return FRAME_WAIT;
    frame->consumed = (size_t)state->left;
    sized_frame_reset(state);
    return FRAME_WHOLE;
}

static enum frame_status command_head(struct framing_state *state, struct slice input,
                                      uint32_t payload, struct frame *frame)
{
    reader_of(state)->is_command = true;
    if (payload > RMP_COMMAND_MAX)
        return malformed(state, frame, RMP_OK, "the command is too long");
    state->part = PART_BODY;
    return wait_for_body(state, input, frame);
}

/* The head of an RMP frame, as far as it has come. */
static enum frame_status frame_head(struct framing_state *state, struct slice input,
                                    uint32_t payload, struct frame *frame)
{
    struct rmp_reader *reader = reader_of(state);
    enum rmp_error error;

    if (payload >= RMP_HEADER_LEN && input.len < RMP_BODY_OFFSET)
        return FRAME_WAIT;
    error = rmp_frame_judge_head(&reader->header, input, reader->rules);
    reader->has_header = error != RMP_TRUNCATED_HEADER;
    if (error == RMP_OK) {
        state->part = PART_BODY;
        return wait_for_body(state, input, frame);
    }
    if (error == RMP_INVALID_MAGIC)
        return not_magic(state, input, frame);
    if (!rmp_frame_goes_on(error, payload, &reader->header))
        return malformed(state, frame, error, rmp_error_name(error));
    reader->error = error;
    state->left -= RMP_BODY_OFFSET;
    return sized_frame_refuse(state, frame, RMP_BODY_OFFSET, FRAME_FAULT_TYPE,
                              rmp_error_name(error));
}

/* Fewer bytes than the prefix has. They are noted for a frame that is given up. */
static enum frame_status wait_for_prefix(struct framing_state *state, struct slice input)
{
    state->left = 0;
    for (size_t i = 0; i < input.len; i++)
        state->left = state->left << 8 | (unsigned char)input.data[i];
    return FRAME_WAIT;
}

/* The rest of the prefix of a frame that was given up. */
static enum frame_status skip_prefix(struct framing_state *state, struct slice input,
                                     struct frame *frame)
{
    size_t len = 0;

    for (; len < input.len && state->looked < RMP_PREFIX_LEN; len++, state->looked++)
        state->left = state->left << 8 | (unsigned char)input.data[len];
    frame->consumed = len;
    if (state->looked == RMP_PREFIX_LEN) {
        state->leftover = false;
        state->part = PART_SKIP;
    }
    return len > 0 ? FRAME_SKIP : FRAME_WAIT;
}

/* What does not begin like a frame is refused before all of its header is here. */
static enum frame_status head(struct framing_state *state, struct slice input, struct frame *frame)
{
    struct rmp_reader *reader = reader_of(state);
    uint32_t payload;

    *reader = (struct rmp_reader){.rules = reader->rules};
    if (state->leftover)
        return skip_prefix(state, input, frame);
    state->begun = input.len > 0;
    if (input.len < RMP_PREFIX_LEN)
        return wait_for_prefix(state, input);
    payload = wire_get_u32(input.data);
    state->left = (uint64_t)RMP_PREFIX_LEN + payload;
    if (input.len == RMP_PREFIX_LEN && payload > 0)
        return FRAME_WAIT;
    switch (payload > 0 ? input.data[RMP_PREFIX_LEN] : 'R') {
    case '{':
    case '"':
        return command_head(state, input, payload, frame);
    case 'R':
        return frame_head(state, input, payload, frame);
    default:
        if (payload < RMP_HEADER_LEN)
            return malformed(state, frame, RMP_TRUNCATED_HEADER,
                             rmp_error_name(RMP_TRUNCATED_HEADER));
        if (foreign_start(input) == FOREIGN_MAYBE)
            return FRAME_WAIT;
        return not_magic(state, input, frame);
    }
}

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    switch (state->part) {
    case PART_HEAD:
        return head(state, input, frame);
    case PART_BODY:
        return wait_for_body(state, input, frame);
    default:
        return sized_frame_skip(state, input, frame);
    }
}

static void give_up(struct framing_state *state, size_t dropped)
{
    state->begun = state->timed = false;
    if (state->part == PART_HEAD && dropped < RMP_PREFIX_LEN) {
        state->leftover = true;
        state->looked = (uint32_t)dropped;
    } else {
        state->left -= dropped;
        state->part = PART_SKIP;
    }
}

static size_t prefix(char to[FRAME_PREFIX_MAX], size_t body_len)
{
    wire_put_u32(to, (uint32_t)body_len);
    return RMP_PREFIX_LEN;
}

const struct framing framing_rmp = {
    .name = "rmp",
    .reset = sized_frame_reset,
    .next = next,
    .give_up = give_up,
    .prefix = prefix,
};

size_t rmp_framing_max(const struct rmp_rules *rules)
{
    size_t frame = RMP_BODY_OFFSET + (size_t)rules->max_body;

    return frame > RMP_PREFIX_LEN + RMP_COMMAND_MAX ? frame : RMP_PREFIX_LEN + RMP_COMMAND_MAX;
}

/* --- the archive --- */

/* Whether a frame of `len` bytes can be the one that the reader has judged. */
static bool is_of(const struct rmp_reader *reader, uint64_t len)
{
    if (reader->is_command)
        return len > RMP_PREFIX_LEN && len <= RMP_PREFIX_LEN + RMP_COMMAND_MAX;
    return reader->has_header && len == (uint64_t)RMP_BODY_OFFSET + reader->header.body_len &&
           rmp_schemas_find(reader->rules->schemas, reader->header.schema_id) != NULL;
}

void rmp_reader_archive(struct archive *archive, struct rmp_reader *reader,
                        const struct framing_state *state, size_t at_hand)
{
    archive_mark(archive, "rmpread");
    archive_flag(archive, &reader->is_command);
    archive_flag(archive, &reader->has_header);
    ARCHIVE_ENUM(archive, reader->error, RMP_ERROR_COUNT - 1);
    rmp_header_archive(archive, &reader->header);
    archive_expect(archive, state->part <= PART_SKIP, "a frame of the topic bus has other parts");
    archive_expect(archive, state->part != PART_BODY || is_of(reader, state->left),
                   "a frame of the topic bus has another length");
    archive_expect(archive, at_hand == 0 || is_of(reader, at_hand),
                   "a frame of the topic bus has another length");
}
