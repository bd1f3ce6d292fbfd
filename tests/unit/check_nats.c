/* The protocol of NATS: frames of a server, however they are cut, and what a client sends. */
#include "build_config.h"

#include <string.h>

#include "base/error.h"
#include "config/nats_keys.h"
#include "nats/framing.h"
#include "nats/protocol.h"
#include "suite.h"

#define MAX_PAYLOAD 64

/* --- streams --- */

static void start_stream(struct framing_state *state)
{
    memset(state, 0x5A, sizeof *state);
    state->max_body = MAX_PAYLOAD;
    framing_nats.reset(state);
}

static void note_slice(struct text *notes, const char *name, struct slice slice)
{
    if (slice.data != NULL)
        text_printf(notes, " %s=%.*s", name, (int)slice.len, slice.data);
}

static void note_frame(struct text *notes, struct slice bytes)
{
    static const char *const names[] = {"INFO", "MSG", "HMSG", "PING", "PONG", "OK", "ERR"};
    struct nats_frame frame;

    nats_frame_read(&frame, bytes);
    text_printf(notes, "%s", names[frame.line.kind]);
    if (frame.line.kind == NATS_MSG || frame.line.kind == NATS_HMSG) {
        text_printf(notes, " %llu", (unsigned long long)frame.line.sid);
        note_slice(notes, "subject", frame.line.subject);
        note_slice(notes, "reply", frame.line.reply);
        if (frame.line.kind == NATS_HMSG)
            note_slice(notes, "headers", frame.headers);
        note_slice(notes, "payload", frame.payload);
    } else if (frame.line.text.len > 0) {
        note_slice(notes, "text", frame.line.text);
    }
    text_printf(notes, ";");
}

/* Finds the frames of what has come, and returns how many bytes these are. */
static size_t read_frames(struct framing_state *state, struct slice input, struct text *notes,
                          bool *is_over)
{
    size_t begin = 0;

    while (begin < input.len) {
        struct frame frame = {.consumed = 0};
        size_t len = input.len - begin;
        char *copy = malloc(len);
        enum frame_status status;

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, input.data + begin, len);
        status = framing_nats.next(state, slice_of(copy, len), &frame);
        if (status == FRAME_WHOLE)
            note_frame(notes, slice_of(copy, frame.consumed));
        free(copy);
        if (status == FRAME_MALFORMED)
            text_printf(notes, "!%s", frame.problem);
        *is_over = status == FRAME_MALFORMED;
        if (status != FRAME_WHOLE)
            break;
        begin += frame.consumed;
    }
    return begin;
}

static void expect_notes(const char *bytes, size_t len, const char *expected)
{
    for (size_t piece = 1; piece <= len; piece++) {
        struct text *notes = test_text();
        struct framing_state state;
        size_t begin = 0;
        bool is_over = false;

        start_stream(&state);
        for (size_t end = 0; end < len && !is_over;) {
            end = end + piece < len ? end + piece : len;
            begin += read_frames(&state, slice_of(bytes + begin, end - begin), notes, &is_over);
        }
        ck_assert_msg(strcmp(notes->data != NULL ? notes->data : "", expected) == 0,
                      "in pieces of %zu: %s", piece, notes->data);
    }
}

static const struct {
    const char *bytes, *notes;
} streams[] = {
    {"PING\r\n", "PING;"},
    {"ping\r\nPong\n+OK\r\n", "PING;PONG;OK;"},
    {"INFO {\"a\":1}\r\n", "INFO text= {\"a\":1};"},
    {"-ERR 'Slow Consumer'\r\nPING\r\n", "ERR text=Slow Consumer;PING;"},
    {"MSG a.b 7 5\r\nhello\r\nPING\r\n", "MSG 7 subject=a.b payload=hello;PING;"},
    {"MSG\ta.b  7\tr.1 2 \r\n\r\n\r\n", "MSG 7 subject=a.b reply=r.1 payload=\r\n;"},
    {"MSG a 1 0\r\n\r\n", "MSG 1 subject=a payload=;"},
    {"HMSG a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
     "HMSG 1 subject=a headers=NATS/1.0 503\r\n\r\n payload=;"},
    {"HMSG a 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
     "HMSG 1 subject=a reply=r headers=NATS/1.0\r\n\r\n payload=hi;"},
    {"MSG a 1 64\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n",
     "MSG 1 subject=a payload=0123456789012345678901234567890123456789012345678901234567890123;"},
    {"PING\r\nMSG a 1 65\r\n", "PING;!a payload is too long"},
    {"MSG a 1 2\r\nhello\r\n", "!no line end after a payload"},
    {"MSG a 1 2\r\nhi\n\r\n", "!no line end after a payload"},
    {"MSG a 1\r\n", "!a message that cannot be read"},
    {"MSG a 1 r 2 3 4\r\n", "!a message that cannot be read"},
    {"MSG a x 2\r\n", "!a message that cannot be read"},
    {"MSG a 1 -2\r\n", "!a message that cannot be read"},
    {"MSG a 1 1234567890123456\r\n", "!a message that cannot be read"},
    {"HMSG a 1 3 2\r\n", "!a message that cannot be read"},
    {"HMSG a 1 3\r\n", "!a message that cannot be read"},
    {"HTTP/1.1 400 Bad Request\r\n", "!not a line of a NATS server"},
    {"\r\n", "!not a line of a NATS server"},
};

TEST_ROWS(streams_at_all_chunk_sizes, COUNT(streams))
{
    expect_notes(streams[row].bytes, strlen(streams[row].bytes), streams[row].notes);
}

TEST(line_has_a_limit)
{
    static char line[NATS_LINE_MAX + 2];
    struct framing_state state;
    struct frame frame;

    memset(line, 'x', sizeof line);
    start_stream(&state);
    ck_assert_int_eq(framing_nats.next(&state, slice_of(line, NATS_LINE_MAX), &frame), FRAME_WAIT);
    ck_assert_int_eq(framing_nats.next(&state, slice_of(line, NATS_LINE_MAX + 1), &frame),
                     FRAME_MALFORMED);
    ck_assert_int_eq(frame.fault, FRAME_FAULT_TOO_LONG);
    ck_assert_int_eq(framing_nats.next(&state, slice_of(line, 0), &frame), FRAME_WAIT);
}

/* --- INFO, headers, subjects --- */

static int read_info(struct nats_info *info, const char *json)
{
    return nats_info_read(info, slice_of_text(json));
}

TEST(info_is_read)
{
    struct nats_info info;

    ck_assert_int_eq(read_info(&info, "{\"max_payload\":1048576,\"headers\":true,"
                                      "\"tls_required\":true,\"nonce\":\"abcdefghijk\","
                                      "\"connect_urls\":[\"127.0.0.1:1\",5,\"\",\"[::1]:2\"],"
                                      "\"ldm\":true}"),
                     STDIO_BUS_OK);
    ck_assert_uint_eq(info.max_payload, 1048576);
    ck_assert(info.headers && info.tls_required && info.lame_duck);
    ck_assert(!info.auth_required && !info.tls_available);
    ck_assert_str_eq(info.nonce, "abcdefg");
    ck_assert_uint_eq(info.url_count, 2);
    ck_assert_str_eq(info.urls[0], "127.0.0.1:1");
    ck_assert_str_eq(info.urls[1], "[::1]:2");
    ck_assert_int_eq(read_info(&info, "{\"max_payload\":-1}"), STDIO_BUS_OK);
    ck_assert_uint_eq(info.max_payload, 0);
    ck_assert_int_eq(read_info(&info, "[]"), STDIO_BUS_EINVAL);
    ck_assert_int_eq(read_info(&info, "{"), STDIO_BUS_EINVAL);
}

TEST(no_responders_is_known)
{
    ck_assert(nats_no_responders(slice_of_text("NATS/1.0 503\r\n\r\n")));
    ck_assert(!nats_no_responders(slice_of_text("NATS/1.0\r\nA: 503\r\n\r\n")));
    ck_assert(!nats_no_responders(slice_of_text("NATS/1.0")));
}

static const struct {
    const char *subject;
    bool is_right;
} subjects[] = {
    {"a", true},    {"a.b-c.d_e", true}, {"", false},      {".a", false},
    {"a.", false},  {"a..b", false},     {"a b", false},   {"a.*", false},
    {"a.>", false}, {"a\tb", false},     {"a\x7f", false},
};

TEST_ROWS(subjects_are_judged, COUNT(subjects))
{
    ck_assert_int_eq(nats_name_is_right(slice_of_text(subjects[row].subject)),
                     subjects[row].is_right);
}

/* --- what a client sends --- */

static const struct {
    const char *name, *subject;
} names[] = {
    {"", ""},
    {"a", "a"},
    {"a/b/c-1:2_x", "a.b.c-1:2_x"},
    {"/a", "%2Fa"},
    {"a/", "a%2F"},
    {"a//b", "a.%2Fb"},
    {"//", "%2F%2F"},
    {"a.b", "a%2Eb"},
    {"a b*>%", "a%20b%2A%3E%25"},
    {"\x01\x7f\xc3\xa9", "%01%7F\xc3\xa9"},
};

TEST_ROWS(name_is_written_as_subject, COUNT(names))
{
    char to[64];
    struct slice name = slice_of_text(names[row].name);
    struct slice subject = {to, nats_write_name(to, name)};

    ck_assert(slice_is(subject, names[row].subject));
    ck_assert_uint_le(subject.len, NATS_NAME_SIZE(name.len));
    ck_assert(name.len == 0 || nats_name_is_right(subject));
}

/* Reads a name back; so no two names have one subject. */
TEST(name_can_be_read_from_its_subject)
{
    static const char bytes[] = "/.%2Fa *";

    for (unsigned number = 0; number < 8U * 8 * 8 * 8 * 8; number++) {
        char name[5], to[NATS_NAME_SIZE(sizeof name)], back[sizeof name];
        size_t len = sizeof name, end, back_len = 0;

        for (size_t i = 0; i < len; i++)
            name[i] = bytes[number >> (3 * i) & 7];
        end = nats_write_name(to, slice_of(name, len));
        ck_assert(nats_name_is_right(slice_of(to, end)));
        for (size_t i = 0; i < end; i++) {
            unsigned value = 0;

            ck_assert_uint_lt(back_len, len);
            if (to[i] == '%') {
                ck_assert_int_eq(sscanf((char[]){to[i + 1], to[i + 2], '\0'}, "%X", &value), 1);
                back[back_len++] = (char)value;
                i += 2;
            } else {
                back[back_len++] = (char)(to[i] == '.' ? '/' : to[i]);
            }
        }
        ck_assert(slice_equal(slice_of(name, len), slice_of(back, back_len)));
    }
}

static const struct {
    const char *headers, *value; /* NULL: none */
} headers[] = {
    {"", NULL},
    {"NATS/1.0\r\n\r\n", NULL},
    {"NATS/1.0\r\nNode: x y \t\r\n\r\n", "x y"},
    {"NATS/1.0\r\nNodes: x\r\nNode:1\r\nNode: 2\r\n\r\n", "1"},
    {"NATS/1.0\nNode: 1\n\n", "1"},
    {"Node:", ""},
    {"NATS/1.0\r\nnode: 1\r\nNod", NULL},
};

TEST_ROWS(header_is_found, COUNT(headers))
{
    struct slice value = nats_header(slice_of_text(headers[row].headers), "Node");

    if (headers[row].value == NULL)
        ck_assert_ptr_null(value.data);
    else
        ck_assert(value.data != NULL && slice_is(value, headers[row].value));
}

TEST(client_sends)
{
    const struct nats_login login = {"n", "1", {"u", 1}, {"p\"", 2}, {NULL, 0}};
    const struct nats_login token = {"n", "1", {NULL, 0}, {NULL, 0}, {"t", 1}};
    struct nats_head head = {.subject = slice_of_text("a")};
    struct json_text text = {.len = 0};

    nats_put_connect(&text, &login);
    nats_put_connect(&text, &token);
    nats_put_sub(&text, "a.b", NULL, 1);
    nats_put_sub(&text, "a.b", "q", 2);
    nats_put_unsub(&text, 2);
    nats_put_pub(&text, &head, 5);
    head.reply = slice_of_text("r");
    nats_put_pub(&text, &head, 0);
    head.headers = slice_of_text("NATS/1.0\r\n\r\n");
    nats_put_pub(&text, &head, 3);
    head.reply = slice_of(NULL, 0);
    nats_put_pub(&text, &head, 0);
    json_text_add(&text, slice_of("", 1));
    ck_assert(!text.failed);
#define CONNECT                                                                                    \
    "CONNECT {\"verbose\":false,\"pedantic\":false,\"tls_required\":false,\"headers\":true,"       \
    "\"no_responders\":true,\"echo\":false,\"protocol\":1,\"lang\":\"c\",\"name\":\"n\","          \
    "\"version\":\"1\","
    ck_assert_str_eq(text.data, CONNECT "\"user\":\"u\",\"pass\":\"p\\\"\"}\r\n" CONNECT
                                        "\"auth_token\":\"t\"}\r\n"
                                        "SUB a.b 1\r\nSUB a.b q 2\r\nUNSUB 2\r\n"
                                        "PUB a 5\r\nPUB a r 0\r\n"
                                        "HPUB a r 12 15\r\nNATS/1.0\r\n\r\n"
                                        "HPUB a 12 12\r\nNATS/1.0\r\n\r\n");
    json_text_free(&text);
}
