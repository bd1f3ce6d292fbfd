/* Requests of HTTP: a stream gives the same heads, bodies and refusals however it is cut. A head
 * that is accepted has nothing in it that another reader could take for the end of a line, and one
 * length or coding at most. The third byte of an input says how long bodies may be, whether longer
 * ones are cut, and whether arrays are taken. A path with an s is one whose body is not wanted. */
#include "build_config.h"

#include "http/reader.h"

#include "frame_run.h"

#define OPTION_BYTES (CUTTER_BYTES + 1)

static bool takes_batches;

/* --- heads --- */

/* Each control byte is a tab or of a line's end, and each line's end is whole. */
static void check_lines(struct slice head)
{
    for (size_t i = 0; i < head.len; i++) {
        unsigned char c = (unsigned char)head.data[i];

        EXPECT((c >= ' ' && c != 0x7F) || c == '\t' || c == '\r' || c == '\n', "byte %u", c);
        EXPECT((c == '\r') == (i + 1 < head.len && head.data[i + 1] == '\n'), "a bare %u", c);
        EXPECT(c != '\n' || i + 1 == head.len ||
                   (head.data[i + 1] != ' ' && head.data[i + 1] != '\t'),
               "a folded line");
    }
}

/* How many fields of this name a plain reader finds, and whether the last one has this value. */
static size_t count_fields(struct slice head, const char *name)
{
    size_t count = 0, len = strlen(name);

    for (size_t i = 0; i + len + 2 < head.len; i++) {
        if (head.data[i] == '\n' && head.data[i + 1 + len] == ':' &&
            http_word_is(slice_of(head.data + i + 1, len), name))
            count++;
    }
    return count;
}

static void check_head(const struct http_reader *reader, struct slice bytes)
{
    const struct http_head *head = &reader->head;
    size_t lengths = count_fields(bytes, "content-length");
    size_t codings = count_fields(bytes, "transfer-encoding");

    check_lines(bytes);
    EXPECT(lengths + codings <= 1, "%zu lengths, %zu codings", lengths, codings);
    EXPECT((head->body == HTTP_BODY_CHUNKED) == (codings == 1), "codings");
    EXPECT(head->body != HTTP_BODY_SIZED || lengths == 1, "lengths");
    EXPECT(count_fields(bytes, "host") <= 1, "hosts");
    EXPECT(head->minor == 0 || count_fields(bytes, "host") == 1, "no host");
}

static void whole(struct frame_run *run, struct slice frame, bool cut)
{
    struct http_reader *reader = run->reader;
    const struct http_head *head = &reader->head;
    struct slice path = http_span_of(head->path, frame), member;
    size_t at = 0;

    if (reader->part == HTTP_PART_BODY) {
        frame_run_add(run, "%s ", reader->in_batch ? "member" : "body");
        frame_run_add_body(run, frame, cut);
        return;
    }
    EXPECT(reader->part == HTTP_PART_HEAD, "part %d", (int)reader->part);
    check_head(reader, frame);
    if (memchr(path.data, 's', path.len) != NULL)
        http_reader_skip_body(reader);
    else if (takes_batches)
        http_reader_take_batch(reader);
    frame_run_add(run, "head %d %d %zu %d ", (int)head->method, (int)head->body,
                  (size_t)head->length, reader->closes);
    frame_run_add_bytes(run, frame);
    while (http_head_next_member(head, frame, HTTP_ACCEPT, &at, &member))
        EXPECT(member.len > 0, "an empty member");
    frame_run_add(run, "%d\n", (http_head_accepts(head, frame) & HTTP_ACCEPTS_JSON) != 0);
}

static void noted(struct frame_run *run)
{
    const struct http_reader *reader = run->reader;

    EXPECT(reader->part == HTTP_PART_END && takes_batches, "part %d", (int)reader->part);
    frame_run_add(run, "end of batch\n");
}

static void bad(struct frame_run *run, const struct frame *frame, bool malformed)
{
    const struct http_reader *reader = run->reader;

    EXPECT(reader->status >= 400 && reader->status <= 505 && reader->status != 408, "status %d",
           reader->status);
    EXPECT(reader->closes || !malformed, "it goes on");
    frame_run_add(run, "%s %d %d %s\n", malformed ? "malformed" : "refused", reader->status,
                  reader->closes, frame->problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_reader reader;
    struct frame_run runs[2];
    struct cutter cutter;
    struct slice stream;

    if (size < OPTION_BYTES)
        return 0;
    cutter = cutter_of(data);
    stream = slice_of((const char *)data + OPTION_BYTES, size - OPTION_BYTES);
    takes_batches = (data[CUTTER_BYTES] & 1) != 0;
    for (size_t i = 0; i < 2; i++) {
        size_t max = 64 + (size_t)data[CUTTER_BYTES] * 4;

        runs[i] = (struct frame_run){.framing = &framing_http,
                                     .reader = &reader,
                                     .max_body = max,
                                     .max_long = data[CUTTER_BYTES] & 2 ? max : 0,
                                     .whole = whole,
                                     .noted = noted,
                                     .bad = bad};
        frame_run_read(&runs[i], stream, i == 0 ? NULL : &cutter);
    }
    frame_run_compare(&runs[0], &runs[1]);
    return 0;
}
