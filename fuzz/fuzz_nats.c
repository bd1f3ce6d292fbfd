/* What a NATS server sends: a stream gives the same frames and failures however it is cut; the
 * parts of a frame lie within it, and those of INFO are whole. The third byte of an input says how
 * long payloads may be. */
#include "build_config.h"

#include <stdlib.h>

#include "base/error.h"
#include "config/nats_keys.h"
#include "nats/framing.h"
#include "nats/protocol.h"

#include "frame_run.h"

#define OPTION_BYTES (CUTTER_BYTES + 1)
#define NAME_MAX_BYTES 512
#define INPUT_MAX 16000 /* frame_run_read takes no longer frame */

static void add_part(struct frame_run *run, struct slice frame, struct slice part)
{
    EXPECT(part.data == NULL ||
               (part.data >= frame.data && part.data + part.len <= frame.data + frame.len),
           "a part of %zu bytes", part.len);
    frame_run_add(run, " %zu:", part.len);
    frame_run_add_bytes(run, part);
}

static void read_info(struct frame_run *run, struct slice json)
{
    struct nats_info info;

    if (nats_info_read(&info, json) != STDIO_BUS_OK)
        return;
    EXPECT(info.url_count <= NATS_URLS_MAX, "%zu urls", info.url_count);
    for (size_t i = 0; i < info.url_count; i++)
        EXPECT(strlen(info.urls[i]) < NATS_URL_MAX, "url %zu", i);
    frame_run_add(run, " info %zu", info.url_count);
}

/* Any payload could be a name: its subject is one, and it can be read from it. */
static void write_name(struct slice name)
{
    char subject[NATS_NAME_SIZE(NAME_MAX_BYTES)];
    size_t at = 0, len;

    if (name.len == 0 || name.len > NAME_MAX_BYTES)
        return;
    len = nats_write_name(subject, name);
    EXPECT(len <= NATS_NAME_SIZE(name.len), "%zu bytes", len);
    EXPECT(nats_name_is_right(slice_of(subject, len)), "%.*s", (int)len, subject);
    for (size_t i = 0; i < name.len; i++) {
        bool is_escaped = at + 2 < len && subject[at] == '%';
        char byte = subject[at];

        if (is_escaped)
            byte = (char)strtoul((char[]){subject[at + 1], subject[at + 2], '\0'}, NULL, 16);
        else if (byte == '.')
            byte = '/';
        EXPECT(at < len && byte == name.data[i], "byte %zu of a name", i);
        at += is_escaped ? 3 : 1;
    }
    EXPECT(at == len, "%zu bytes more", len - at);
}

static void whole(struct frame_run *run, struct slice bytes, bool cut)
{
    struct nats_frame frame;

    EXPECT(!cut, "no frame is cut");
    nats_frame_read(&frame, bytes);
    frame_run_add(run, "%d %llu %d", (int)frame.line.kind, (unsigned long long)frame.line.sid,
                  nats_no_responders(frame.headers));
    add_part(run, bytes, frame.line.text);
    add_part(run, bytes, frame.line.subject);
    add_part(run, bytes, frame.line.reply);
    add_part(run, bytes, frame.headers);
    add_part(run, bytes, frame.payload);
    add_part(run, bytes, nats_header(frame.headers, "Stdio-Bus-Node"));
    write_name(frame.payload);
    EXPECT(frame.payload.len + frame.headers.len <= run->max_body, "a payload that is too long");
    if (frame.line.kind == NATS_INFO)
        read_info(run, frame.line.text);
    frame_run_add(run, "\n");
}

static void bad(struct frame_run *run, const struct frame *frame, bool malformed)
{
    EXPECT(malformed, "the stream would continue");
    frame_run_add(run, "malformed %s\n", frame->problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_run runs[2];
    struct cutter cutter;
    struct slice stream;

    if (size < OPTION_BYTES || size > INPUT_MAX)
        return 0;
    cutter = cutter_of(data);
    stream = slice_of((const char *)data + OPTION_BYTES, size - OPTION_BYTES);
    for (size_t i = 0; i < 2; i++) {
        runs[i] = (struct frame_run){.framing = &framing_nats,
                                     .max_body = 16 + (size_t)data[CUTTER_BYTES] * 4,
                                     .whole = whole,
                                     .bad = bad};
        frame_run_read(&runs[i], stream, i == 0 ? NULL : &cutter);
    }
    frame_run_compare(&runs[0], &runs[1]);
    return 0;
}
