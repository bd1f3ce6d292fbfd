/* WebSocket frames: a stream gives the same messages, control frames and failures however it is
 * cut, and the messages are those of a plain reader. The third byte of an input says whether the
 * peer is a server, how long messages may be, and whether longer ones are cut. */
#include "build_config.h"

#include "http/websocket.h"

#include "frame_run.h"

#define OPTION_BYTES (CUTTER_BYTES + 1)

/* --- a plain reader --- */

static struct plain {
    const unsigned char *at, *end;
    bool is_client;
    char *message; /* of fragments so far */
    size_t len;
} plain;

/* Appends the data of the next frame, unmasked, to the message if they belong to one. False: no
 * whole frame is left. */
static bool next_frame(unsigned *opcode, bool *is_final)
{
    size_t here = (size_t)(plain.end - plain.at), mask_len = plain.is_client ? 0 : 4, extra;
    uint64_t len = 0;

    if (here < 2)
        return false;
    *opcode = plain.at[0] & 15u;
    *is_final = plain.at[0] >> 7;
    extra = (plain.at[1] & 127u) == 126 ? 2 : (plain.at[1] & 127u) == 127 ? 8 : 0;
    if (here < 2 + extra + mask_len)
        return false;
    if (extra == 0)
        len = plain.at[1] & 127u;
    for (size_t i = 0; i < extra; i++)
        len = len << 8 | plain.at[2 + i];
    plain.at += 2 + extra + mask_len;
    if (len > (size_t)(plain.end - plain.at))
        return false;
    if (*opcode == WEBSOCKET_TEXT)
        plain.len = 0;
    for (size_t i = 0; i < len && *opcode < 8; i++)
        plain.message[plain.len++] =
            (char)(plain.at[i] ^ (mask_len > 0 ? *(plain.at - mask_len + i % 4) : 0));
    plain.at += len;
    return true;
}

/* The message is one of those that the plain reader finds from here on. */
static void check_message(struct slice message)
{
    unsigned opcode;
    bool is_final;

    while (next_frame(&opcode, &is_final)) {
        if (opcode < 8 && is_final && slice_equal(slice_of(plain.message, plain.len), message))
            return;
    }
    EXPECT(false, "a message of no frames: %.*s", (int)message.len, message.data);
}

static void whole(struct frame_run *run, struct slice frame, bool cut)
{
    if (!cut)
        check_message(frame);
    frame_run_add(run, "message ");
    frame_run_add_body(run, frame, cut);
}

/* --- the reader --- */

static void noted(struct frame_run *run)
{
    const struct websocket_reader *reader = run->reader;

    EXPECT(websocket_is_control(reader->opcode), "opcode %d", (int)reader->opcode);
    EXPECT(reader->control_len <= WEBSOCKET_CONTROL_MAX, "%u bytes", reader->control_len);
    EXPECT(reader->opcode != WEBSOCKET_CLOSE || reader->code == WEBSOCKET_NO_CODE ||
               websocket_code_valid(reader->code),
           "code %u", reader->code);
    frame_run_add(run, "control %d ", (int)reader->opcode);
    frame_run_add_bytes(run, slice_of(reader->control, reader->control_len));
    frame_run_add(run, "\n");
}

static void bad(struct frame_run *run, const struct frame *frame, bool malformed)
{
    const struct websocket_reader *reader = run->reader;

    EXPECT(websocket_code_valid(reader->fault_code) && reader->fault_code != WEBSOCKET_POLICY,
           "code %u", reader->fault_code);
    frame_run_add(run, "%s %u %s\n", malformed ? "malformed" : "refused", reader->fault_code,
                  frame->problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct websocket_reader reader;
    struct frame_run runs[2];
    struct cutter cutter;
    struct slice stream;
    bool is_client;

    if (size < OPTION_BYTES)
        return 0;
    cutter = cutter_of(data);
    stream = slice_of((const char *)data + OPTION_BYTES, size - OPTION_BYTES);
    is_client = (data[CUTTER_BYTES] & 1) != 0;
    for (size_t i = 0; i < 2; i++) {
        size_t max = 16 + (size_t)data[CUTTER_BYTES] * 4;

        reader = (struct websocket_reader){.is_client = is_client};
        plain = (struct plain){(const unsigned char *)stream.data,
                               (const unsigned char *)stream.data + stream.len, is_client,
                               fuzz_copy(stream.data, stream.len), 0};
        runs[i] = (struct frame_run){.framing = &framing_websocket,
                                     .reader = &reader,
                                     .max_body = max,
                                     .max_long = data[CUTTER_BYTES] & 2 ? max : 0,
                                     .whole = whole,
                                     .noted = noted,
                                     .bad = bad};
        frame_run_read(&runs[i], stream, i == 0 ? NULL : &cutter);
        free(plain.message);
    }
    frame_run_compare(&runs[0], &runs[1]);
    return 0;
}
