/* RMP: what was decoded is encoded to the same again, a stream gives the same frames however it is
 * cut, and plain readers find the same in MsgPack and JSON. */
#include "build_config.h"

#include "framing/sized_frame.h"
#include "rmp/command.h"
#include "rmp/framing.h"
#include "rmp/msgpack.h"
#include "rmp/reply.h"
#include "rmp/run_file.h"
#include "json/reader.h"

#include "common.h"
#include "reference_json.h"

#define MAX_BODY 4096
#define NOW_MS UINT64_C(1731465600124) /* the golden frame has not expired */

static const struct rmp_schemas schemas;
static const struct rmp_rules rules = {.schemas = &schemas, .max_body = MAX_BODY};

/* --- MsgPack, in the plainest way --- */

/* The end of the value at p, nested at most `depth` levels, or NULL. */
static const uint8_t *value_end(const uint8_t *p, const uint8_t *end, unsigned depth);

static uint64_t number_at(const uint8_t *p, unsigned width)
{
    uint64_t number = 0;

    while (width-- > 0)
        number = number << 8 | *p++;
    return number;
}

static const uint8_t *values_end(const uint8_t *p, const uint8_t *end, uint64_t count,
                                 unsigned depth)
{
    if (depth == 0)
        return NULL;
    while (p != NULL && count-- > 0)
        p = value_end(p, end, depth - 1);
    return p;
}

static const uint8_t *value_end(const uint8_t *p, const uint8_t *end, unsigned depth)
{
    static const unsigned char widths[] = {0, 0, 0, 0, 1, 2, 4, 1, 2,  4, 4, 8, 1, 2, 4, 8,
                                           1, 2, 4, 8, 2, 3, 5, 9, 17, 1, 2, 4, 2, 4, 2, 4};
    unsigned byte, width;
    uint64_t number;

    if (p == end)
        return NULL;
    byte = *p++;
    if (byte < 0x80 || byte >= 0xE0)
        return p;
    if (byte < 0x90)
        return values_end(p, end, 2 * (byte & 15u), depth);
    if (byte < 0xA0)
        return values_end(p, end, byte & 15u, depth);
    if (byte < 0xC0)
        return end - p < (int)(byte & 31) ? NULL : p + (byte & 31);
    width = widths[byte - 0xC0];
    if (byte == 0xC1 || end - p < (int)width)
        return NULL;
    number = number_at(p, width);
    p += width;
    if (byte >= 0xDC)
        return values_end(p, end, byte >= 0xDE ? 2 * number : number, depth);
    if (byte >= 0xC7 && byte <= 0xC9)
        number++; /* the type */
    else if (!(byte >= 0xC4 && byte <= 0xC6) && !(byte >= 0xD9 && byte <= 0xDB))
        number = 0;
    return (uint64_t)(end - p) < number ? NULL : p + number;
}

/* --- MsgPack, written again --- */

static void put(struct msgpack_writer *writer, const struct msgpack_value *value)
{
    switch (value->type) {
    case MSGPACK_NIL:
        msgpack_put_nil(writer);
        break;
    case MSGPACK_BOOL:
        msgpack_put_bool(writer, value->as.boolean);
        break;
    case MSGPACK_UINT:
        msgpack_put_uint(writer, value->as.uint);
        break;
    case MSGPACK_INT:
        msgpack_put_int(writer, value->as.sint);
        break;
    case MSGPACK_FLOAT:
        msgpack_put_double(writer, value->as.real);
        break;
    case MSGPACK_STR:
        msgpack_put_str(writer, value->bytes);
        break;
    case MSGPACK_BIN:
        msgpack_put_bin(writer, value->bytes);
        break;
    case MSGPACK_ARRAY:
        msgpack_put_array(writer, value->count);
        break;
    case MSGPACK_MAP:
        msgpack_put_map(writer, value->count);
        break;
    case MSGPACK_EXT:
        msgpack_put_ext(writer, value->ext_type, value->bytes);
        break;
    }
}

/* Writes every value of valid MsgPack in its shortest format. */
static void rewrite(struct msgpack_writer *writer, struct slice values)
{
    struct msgpack_value value;

    while (values.len > 0) {
        EXPECT(msgpack_read(&values, &value), "%zu bytes are left", values.len);
        put(writer, &value);
    }
}

/* What is in its shortest format stays as it is. */
static void check_rewriting(struct slice values)
{
    struct msgpack_writer counter = {.to = NULL}, first, second;

    rewrite(&counter, values);
    first = (struct msgpack_writer){.to = malloc(counter.len + 1), .size = counter.len};
    second = (struct msgpack_writer){.to = malloc(counter.len + 1), .size = counter.len};
    if (first.to == NULL || second.to == NULL)
        abort();
    rewrite(&first, values);
    EXPECT(msgpack_fits(&first) && first.len == counter.len, "%zu and %zu", first.len, counter.len);
    rewrite(&second, slice_of(first.to, first.len));
    EXPECT(slice_equal(slice_of(first.to, first.len), slice_of(second.to, second.len)),
           "written again, it differs");
    free(first.to);
    free(second.to);
}

static void run_msgpack(const uint8_t *data, size_t size)
{
    const uint8_t *end = value_end(data, data + size, MSGPACK_MAX_DEPTH);
    struct slice input = {(const char *)data, size};
    bool good = msgpack_skip(&input, MSGPACK_MAX_DEPTH);

    EXPECT(good == (end != NULL), "skipped %d, of %zu bytes", good, size);
    if (!good)
        return;
    EXPECT((const uint8_t *)input.data == end, "%zu bytes are left", input.len);
    check_rewriting(slice_of((const char *)data, size - input.len));
}

/* --- frames --- */

/* The frame has the same header, type, payload and meta. */
static void check_frame(const struct rmp_frame *frame)
{
    size_t len = rmp_frame_write(NULL, 0, &frame->header, &frame->envelope);
    char *written = malloc(len), head[RMP_BODY_OFFSET];
    struct rmp_frame again;

    if (written == NULL)
        abort();
    rmp_header_write_prefixed(head, &frame->header);
    EXPECT(memcmp(head, frame->wire.data, sizeof head) == 0, "the head differs");
    rmp_frame_write(written, len, &frame->header, &frame->envelope);
    EXPECT(rmp_frame_read(&again, slice_of(written, len), &rules, NOW_MS) == RMP_OK, "not read");
    EXPECT(slice_equal(again.envelope.type, frame->envelope.type) &&
               slice_equal(again.envelope.payload, frame->envelope.payload) &&
               slice_equal(again.envelope.meta, frame->envelope.meta),
           "the envelope differs");
    free(written);
}

/* A frame whose lengths, magic and so on are made good by the bits of `mended`. */
static void mend(char *wire, size_t len, unsigned mended)
{
    struct rmp_header header = {.schema_id = RMP_SCHEMA_ERROR_REPORT,
                                .body_len = (uint32_t)(len - RMP_BODY_OFFSET),
                                .created_at_ms = NOW_MS,
                                .ttl_ms = 1};

    if (mended & 1)
        wire_put_u32(wire, (uint32_t)(len - RMP_PREFIX_LEN));
    if (mended & 2)
        rmp_header_write(wire + RMP_PREFIX_LEN, &header);
}

static void run_frame(const uint8_t *data, size_t size)
{
    struct rmp_frame frame;
    enum rmp_error error;
    char *wire;

    if (size == 0)
        return;
    wire = fuzz_copy(data + 1, size - 1);
    if (size - 1 >= RMP_BODY_OFFSET)
        mend(wire, size - 1, *data);
    memset(&frame, 0xA5, sizeof frame);
    error = rmp_frame_read(&frame, slice_of(wire, size - 1), &rules, NOW_MS);
    EXPECT(error < RMP_ERROR_COUNT && error != RMP_DUPLICATE, "error %d", (int)error);
    if (error == RMP_OK)
        check_frame(&frame);
    if (error == RMP_OK || (error > RMP_UNKNOWN_SCHEMA && error != RMP_BODY_DECODE_ERROR))
        EXPECT(!frame.has_envelope || value_end((const uint8_t *)frame.body.data,
                                                (const uint8_t *)frame.body.data + frame.body.len,
                                                MSGPACK_MAX_DEPTH) ==
                                          (const uint8_t *)frame.body.data + frame.body.len,
               "a body that is not one value");
    free(wire);
}

/* --- streams --- */

/* What a stream came to: equal for equal streams. */
struct verdicts {
    uint64_t digest;
    size_t frames, refused, consumed;
    bool malformed;
};

static void add_verdict(struct verdicts *verdicts, enum frame_status status,
                        const struct rmp_reader *reader, struct slice bytes)
{
    verdicts->digest = verdicts->digest * 31 + (unsigned)status * 64u +
                       (unsigned)reader->error * 2u + reader->is_command;
    for (size_t i = 0; i < bytes.len; i++)
        verdicts->digest = (verdicts->digest ^ (unsigned char)bytes.data[i]) *
                           UINT64_C(0x100000001b3);
    verdicts->frames += status == FRAME_WHOLE;
    verdicts->refused += status == FRAME_REFUSED;
    verdicts->malformed = status == FRAME_MALFORMED;
}

static struct verdicts read_stream(const uint8_t *data, size_t size, struct cutter *cutter)
{
    struct verdicts verdicts = {0};
    struct rmp_reader reader = {.rules = &rules};
    struct framing_state state = {.check_state = &reader, .max_body = rmp_framing_max(&rules)};
    enum frame_status status;
    size_t there = 0;

    framing_rmp.reset(&state);
    do {
        there += there < size ? cutter_next(cutter, size - there) : 0;
        do {
            size_t len = there - verdicts.consumed;
            char *input = fuzz_copy(data + verdicts.consumed, len);
            struct frame frame = {.consumed = 0};

            status = framing_rmp.next(&state, slice_of(input, len), &frame);
            EXPECT(frame.consumed <= len, "%zu of %zu", frame.consumed, len);
            if (status == FRAME_WHOLE)
                EXPECT(frame.consumed == RMP_PREFIX_LEN + wire_get_u32(input), "another length");
            if (status != FRAME_WAIT && status != FRAME_SKIP)
                add_verdict(&verdicts, status, &reader,
                            slice_of(input, status == FRAME_WHOLE ? frame.consumed : 0));
            verdicts.consumed += status == FRAME_WAIT ? 0 : frame.consumed;
            free(input);
        } while (status != FRAME_WAIT && status != FRAME_MALFORMED);
    } while (there < size && status != FRAME_MALFORMED);
    return verdicts;
}

static void run_stream(const uint8_t *data, size_t size)
{
    struct cutter whole = {.size = SIZE_MAX}, pieces;
    struct verdicts one, other;

    if (size < CUTTER_BYTES)
        return;
    pieces = cutter_of(data);
    data += CUTTER_BYTES;
    size -= CUTTER_BYTES;
    one = read_stream(data, size, &whole);
    other = read_stream(data, size, &pieces);
    EXPECT(one.frames == other.frames && one.refused == other.refused &&
               one.malformed == other.malformed && one.digest == other.digest,
           "whole: %zu frames, in pieces: %zu", one.frames, other.frames);
}

/* --- commands --- */

/* A Message of the same header and body, as far as it is like a Publish, is read as the same. */
static void check_message(const struct rmp_command *command)
{
    static const char start[] = "{\"Publish\":{\"id\":7,\"topic\":\"t\"";
    size_t start_len = sizeof start - 1, len;
    char *json = malloc(start_len + RMP_MESSAGE_REST_MAX(command->body.len)), *work;
    struct rmp_command again;

    if (json == NULL)
        abort();
    memcpy(json, start, start_len);
    len = start_len + rmp_message_rest(json + start_len, &command->header, command->body);
    EXPECT(reference_document(json, len, 16), "%.*s", (int)len, json);
    work = malloc(RMP_COMMAND_WORK(len));
    if (work == NULL)
        abort();
    EXPECT(rmp_command_read(&again, slice_of(json, len), work), "%.*s", (int)len, json);
    EXPECT(again.type == RMP_PUBLISH && again.id == 7 && slice_equal(again.body, command->body),
           "the body differs");
    EXPECT(again.header.schema_id == command->header.schema_id &&
               again.header.body_len == command->body.len &&
               again.header.created_at_ms == command->header.created_at_ms &&
               again.header.ttl_ms == command->header.ttl_ms &&
               rmp_id_equal(again.header.trace_id, command->header.trace_id) &&
               again.header.msg_id == command->header.msg_id,
           "the header differs");
    free(json);
    free(work);
}

static void check_reply(const struct rmp_command *command)
{
    struct rmp_result result = {.outcome = (enum rmp_outcome)(command->id % RMP_RESULT_COUNT),
                                .schema_id = command->header.schema_id,
                                .ttl_ms = command->header.ttl_ms,
                                .created_at_ms = command->header.created_at_ms,
                                .expected = command->header.msg_id,
                                .actual = command->sub_id,
                                .text = command->topic};
    char reply[RMP_REPLY_MAX];
    size_t len = rmp_reply_publish(reply, command->id, &result);

    EXPECT(len <= sizeof reply && wire_get_u32(reply) == len - RMP_PREFIX_LEN, "%zu", len);
    EXPECT(reference_document(reply + RMP_PREFIX_LEN, len - RMP_PREFIX_LEN, 16), "%.*s",
           (int)len - RMP_PREFIX_LEN, reply + RMP_PREFIX_LEN);
}

static void run_command(const uint8_t *data, size_t size)
{
    char *work = malloc(RMP_COMMAND_WORK(size)), *json = fuzz_copy(data, size);
    struct json_reader reader = {json, json + size};
    bool is_json = reference_document(json, size, JSON_READER_MAX_DEPTH);
    struct rmp_command command;

    if (work == NULL)
        abort();
    EXPECT((json_skip_value(&reader) && json_peek(&reader) == '\0' && reader.p == reader.end) ==
               is_json,
           "the reference says %d", is_json);
    if (rmp_command_read(&command, slice_of(json, size), work)) {
        /* The field of a command that is ignored may be as deep, three levels further down. */
        EXPECT(reference_document(json, size, JSON_READER_MAX_DEPTH + 4), "a command, not JSON");
        EXPECT(command.body.len <= size / 2, "a body of %zu bytes", command.body.len);
        check_reply(&command);
        if (command.type == RMP_PUBLISH)
            check_message(&command);
    }
    free(work);
    free(json);
}

/* --- the file of a run --- */

/* An event that was read is written as a frame that says the same. */
static void write_again(struct rmp_id run, const struct run_file_record *record)
{
    struct rmp_kept_event *event = malloc(sizeof *event + record->payload.len);
    struct run_file_record again;
    char *frame;
    size_t len;

    EXPECT(event != NULL, "no memory");
    *event = (struct rmp_kept_event){
        .msg_id = record->msg_id, .at_ms = record->at_ms, .len = record->payload.len};
    memcpy(event->payload, record->payload.data, record->payload.len);
    frame = run_file_event(run, event, &len);
    EXPECT(frame != NULL, "no memory");
    /* Its expiry may be beyond all numbers, and its meta longer. */
    if (record->at_ms < NOW_MS && len < MAX_BODY)
        EXPECT(run_file_read(&again, run, slice_of(frame, len), MAX_BODY) == RUN_FILE_EVENT &&
                   slice_equal(again.payload, record->payload) && again.len == len &&
                   again.msg_id == record->msg_id && again.at_ms == record->at_ms,
               "another event");
    free(frame);
    free(event);
}

static void run_file(const uint8_t *data, size_t size)
{
    char *copy = fuzz_copy(data, size);
    struct slice rest = {copy, size};
    struct run_file_record record;
    struct rmp_header header = {.msg_id = 0};
    enum run_file_found found;

    if (size > RMP_PREFIX_LEN)
        (void)rmp_header_read(&header, slice_of(copy + RMP_PREFIX_LEN, size - RMP_PREFIX_LEN));
    for (;;) {
        found = run_file_read(&record, header.trace_id, rest, MAX_BODY);
        if (found == RUN_FILE_CUT || found == RUN_FILE_DAMAGED)
            break;
        EXPECT(record.len <= rest.len && record.payload.data >= rest.data &&
                   record.payload.data + record.payload.len <= rest.data + record.len,
               "a record beyond its frame");
        EXPECT(run_file_read(&record, header.trace_id, slice_of(rest.data, record.len - 1),
                             MAX_BODY) == RUN_FILE_CUT,
               "a frame without its end is whole");
        (void)run_file_read(&record, header.trace_id, rest, MAX_BODY);
        if (found == RUN_FILE_EVENT)
            write_again(header.trace_id, &record);
        rest = slice_of(rest.data + record.len, rest.len - record.len);
    }
    free(copy);
}

#define FILE_BYTE 250 /* an input that begins so, or with more, is the file of a run */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const runs[])(const uint8_t *data, size_t size) = {run_frame, run_stream,
                                                                     run_command, run_msgpack};

    if (size > 0 && *data >= FILE_BYTE)
        run_file(data + 1, size - 1);
    else if (size > 0)
        runs[*data % 4](data + 1, size - 1);
    return 0;
}
