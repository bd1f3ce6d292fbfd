/* WebSocket frames, however the stream is cut (RFC 6455). */
#include "build_config.h"

#include "http/websocket.h"
#include "http_stream.h"

#define MAX_BODY 1000

static struct websocket_reader reader;
static struct http_stream stream;

static void note_whole(struct http_stream *at, struct slice frame)
{
    text_printf(&at->notes, "%.*s%s;", (int)frame.len, frame.data,
                at->scanner.fields.oddities & SCAN_CUT ? " cut" : "");
}

static void note_noted(struct http_stream *at)
{
    static const char *const names[] = {
        [WEBSOCKET_CLOSE] = "close", [WEBSOCKET_PING] = "ping", [WEBSOCKET_PONG] = "pong"};
    size_t start = reader.opcode == WEBSOCKET_CLOSE && reader.control_len > 0 ? 2 : 0;

    text_printf(&at->notes, "%s ", names[reader.opcode]);
    if (reader.opcode == WEBSOCKET_CLOSE)
        text_printf(&at->notes, "%u ", reader.code);
    text_printf(&at->notes, "%.*s;", (int)(reader.control_len - start), reader.control + start);
}

static void note_bad(struct http_stream *at, const struct frame *frame, bool malformed)
{
    (void)frame;
    text_printf(&at->notes, "%c%u;", malformed ? '!' : '?', reader.fault_code);
}

/* --- streams --- */

static void add_frame(struct text *text, unsigned first, const char *data, size_t len, bool masked)
{
    static const unsigned char mask[] = {0x12, 0xF3, 0, 0x80};
    char head[WEBSOCKET_HEAD_MAX];
    size_t head_len = websocket_write_head(head, WEBSOCKET_TEXT, len, masked ? mask : NULL);

    head[0] = (char)first;
    text_add(text, head, head_len);
    text_add(text, data, len);
    if (masked)
        websocket_mask(text->data + text->len - len, len, mask, 0);
}

/* A stream as text: frames between blanks, each with the first byte in hexadecimal, a colon, and
 * its data, in which \XX is a byte. A first byte of 000 begins bytes that are sent as they are. */
static struct text *stream_of_text(const char *frames, bool masked)
{
    struct text *text = test_text();

    while (*frames != '\0') {
        char data[400], *end;
        unsigned first = (unsigned)strtoul(frames, &end, 16);
        bool is_raw = strncmp(frames, "000:", 4) == 0;
        size_t len = 0;

        ck_assert_int_eq(*end, ':');
        for (frames = end + 1; *frames != '\0' && *frames != ' '; frames++) {
            char hex[3] = {0};

            if (*frames == '\\') {
                memcpy(hex, frames + 1, 2);
                data[len++] = (char)strtoul(hex, NULL, 16);
                frames += 2;
            } else {
                data[len++] = *frames;
            }
        }
        if (is_raw)
            text_add(text, data, len);
        else
            add_frame(text, first, data, len, masked);
        frames += *frames == ' ';
    }
    text_add(text, "", 0);
    return text;
}

static const char *read_in_pieces(const struct text *text, size_t size, size_t max_long)
{
    stream.whole = note_whole;
    stream.noted = note_noted;
    stream.bad = note_bad;
    http_stream_start(&stream, &framing_websocket, &reader, MAX_BODY, max_long);
    if (text->len > 0)
        http_stream_read(&stream, slice_of(text->data, text->len), size);
    if (!stream.ended && (stream.len > 0 || stream.state.begun))
        text_printf(&stream.notes, "more");
    http_stream_end(&stream);
    return stream.notes.data;
}

static void expect_notes(const struct text *text, const char *notes)
{
    for (size_t size = 1; size <= text->len + 1; size++) {
        const char *is = read_in_pieces(text, size, 0);

        ck_assert_msg(strcmp(is, notes) == 0, "in pieces of %zu: %s", size, is);
    }
}

static const struct {
    const char *frames, *notes;
} streams[] = {
    {"", ""},
    {"81:{}", "{};"},
    {"81:{} 81:{\"a\":1}", "{};{\"a\":1};"},
    {"01:{\"a\": 00:[1,2 80:]}", "{\"a\":[1,2]};"},
    {"01: 00: 80:{}", "{};"},
    {"01:{} 80:", "{};"},
    {"01:{ 00: 00: 80:} 81:{}", "{};{};"},
    {"89:", "ping ;"},
    {"89:abc 8a:def", "ping abc;pong def;"},
    {"01:{ 89:x 00:\"a\" 89:y 8a:z 80::1}", "ping x;ping y;pong z;{\"a\":1};"},
    {"01: 89: 80:{} 89:", "ping ;{};ping ;"},
    {"81:{} 88:", "{};close 1005 ;"},
    {"88:\\03\\e8", "close 1000 ;"},
    {"88:\\03\\e9bye 81:{} 000:\\ff\\ff", "close 1001 bye;"},
    {"88:\\0b\\b8", "close 3000 ;"},
    {"88:\\13\\87", "close 4999 ;"},
    {"01:{ 88:\\03\\e8", "close 1000 ;"},
    /* no JSON */
    {"81: 81:{}", "?1007;{};"},
    {"81:x 81:{}", "?1007;{};"},
    {"81:[{}] 81:{}", "?1007;{};"},
    {"81:{} 81:{\"a 81:{}", "{};?1007;{};"},
    {"81:x\\c3\\a9 81:}}", "?1007;?1007;"},
    {"81:x c1:{}", "?1007;!1002;"},
    {"81:x 82:{}", "?1007;!1003;"},
    {"01:{x 00:yyy 89:p 80:zz 81:{}", "?1007;ping p;{};"},
    {"01:x 80:y\\c3\\a9 81:{}", "?1007;{};"},
    {"01:x\\c3 00: 80:\\a9 81:{}", "?1007;{};"},
    {"81:{\"\\c3\\a9\":1}", "{\"\xc3\xa9\":1};"},
    /* no UTF-8 */
    {"81:\\ff 81:{}", "?1007;!1007;"},
    {"81:{\"\\c3\\28\"} 81:{}", "?1007;!1007;"},
    {"81:{\"\\ed\\a0\\80\"} 81:{}", "?1007;!1007;"},
    {"81:x\\c3 81:{}", "?1007;!1007;"},
    {"01:x\\c3 80:x 81:{}", "?1007;!1007;"},
    {"01:x\\f4 00:\\90 81:{}", "?1007;!1007;"},
    {"01:x\\f0\\9f 89: 00:\\98\\80 80:", "?1007;ping ;"},
    /* breaches */
    {"c1:{}", "!1002;"},
    {"a1:{}", "!1002;"},
    {"91:{}", "!1002;"},
    {"81:{} c1:{}", "{};!1002;"},
    {"83:{}", "!1002;"},
    {"87:{}", "!1002;"},
    {"8b:{}", "!1002;"},
    {"8f:{}", "!1002;"},
    {"80:{}", "!1002;"},
    {"00:{}", "!1002;"},
    {"81:{} 80:{}", "{};!1002;"},
    {"01:{ 81:}", "!1002;"},
    {"01:{ 01:}", "!1002;"},
    {"09:abc", "!1002;"},
    {"08:", "!1002;"},
    {"01:{ 0a: 80:}", "!1002;"},
    {"82:{}", "!1003;"},
    {"02:{}", "!1003;"},
    {"88:x", "!1002;"},
    {"88:\\03\\e7", "!1002;"},
    {"88:\\03\\ec", "!1002;"},
    {"88:\\03\\ed", "!1002;"},
    {"88:\\03\\ee", "!1002;"},
    {"88:\\03\\f7", "!1002;"},
    {"88:\\04\\4c", "!1002;"},
    {"88:\\07\\d0", "!1002;"},
    {"88:\\0b\\b7", "!1002;"},
    {"88:\\13\\88", "!1002;"},
    {"88:\\03\\e8\\ff", "!1007;"},
    {"88:\\03\\e8\\c3", "!1007;"},
    {"000:\\81\\02{}", "!1002;"},
    {"000:\\81\\fe\\00\\7d", "!1002;"},
    {"000:\\81\\ff\\00\\00\\00\\00\\00\\00\\ff\\ff", "!1002;"},
    {"000:\\81\\ff\\80\\00\\00\\00\\00\\00\\ff\\ff", "!1002;"},
    {"000:\\89\\fe\\00\\7e", "!1002;"},
    {"000:\\81\\fe\\03\\e9\\00\\00\\00\\00", "!1009;"},
    {"000:\\81\\ff\\7f\\ff\\ff\\ff\\ff\\ff\\ff\\ff\\00\\00\\00\\00", "!1009;"},
    /* what is not whole */
    {"01:{", "more"},
    {"000:\\81", "more"},
    {"000:\\81\\82\\00\\00\\00", "more"},
    {"81:{} 000:\\89\\85\\00\\00\\00\\00abcd", "{};more"},
};

TEST_ROWS(streams_at_all_chunk_sizes, COUNT(streams))
{
    reader.is_client = false;
    expect_notes(stream_of_text(streams[row].frames, true), streams[row].notes);
}

/* What a server sends is not masked. */
TEST(streams_of_a_server)
{
    reader.is_client = true;
    expect_notes(stream_of_text("81:{} 01:{ 89:x 80:} 88:\\03\\e8", false),
                 "{};ping x;{};close 1000 ;");
    expect_notes(stream_of_text("81:{}", true), "!1002;");
}

/* --- lengths --- */

static const char *body_of(size_t len)
{
    return test_format("{\"id\":7,\"a\":\"%s\"}", test_fill('x', len - 15));
}

TEST(lengths_of_frames)
{
    static const size_t lengths[] = {20, 125, 126, 127, 999, 1000};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        const char *body = body_of(lengths[i]);
        struct text *text = test_text();

        add_frame(text, 0x81, body, lengths[i], true);
        add_frame(text, 0x81, body, lengths[i], true);
        expect_notes(text, test_format("%s;%s;", body, body));
    }
}

TEST(longest_message_in_fragments)
{
    const char *body = body_of(MAX_BODY);

    for (size_t size = 1; size <= 1000; size += 111) {
        struct text *fits = test_text(), *over = test_text();

        for (size_t at = 0; at < MAX_BODY; at += size) {
            size_t len = MAX_BODY - at < size ? MAX_BODY - at : size;

            add_frame(fits, at == 0 ? 0x01 : 0x00, body + at, len, true);
        }
        text_add(over, fits->data, fits->len);
        add_frame(fits, 0x80, "", 0, true);
        add_frame(over, 0x80, " ", 1, true);
        for (size_t piece = 1; piece < 3000; piece += 97) {
            ck_assert_str_eq(read_in_pieces(fits, piece, 0), test_format("%s;", body));
            ck_assert_str_eq(read_in_pieces(over, piece, 0), "!1009;");
        }
    }
}

/* Longer messages are cut where they may be long, and the next one is found. */
TEST(longer_messages_are_cut)
{
    const char *body = body_of(5000);
    struct text *whole = test_text(), *parts = test_text();

    add_frame(whole, 0x81, body, 5000, true);
    for (size_t at = 0; at < 5000; at += 100) {
        add_frame(parts, (at == 0 ? 1u : 0) | (at == 4900 ? 0x80 : 0), body + at, 100, true);
        add_frame(parts, 0x89, "p", 1, true);
    }
    add_frame(whole, 0x81, "{}", 2, true);
    add_frame(parts, 0x81, "{}", 2, true);
    for (size_t size = 1; size < 1200; size += 7) {
        const char *notes = read_in_pieces(whole, size, 2000);

        ck_assert_msg(strstr(notes, " cut;{};") != NULL, "in pieces of %zu: %s", size, notes);
        notes = read_in_pieces(parts, size, 2000);
        ck_assert_msg(strstr(notes, " cut;ping p;{};") != NULL, "in pieces of %zu: %s", size,
                      notes);
    }
}

TEST(closed_within_a_message_that_is_cut)
{
    struct text *text = test_text();

    add_frame(text, 0x01, body_of(5000), 4000, true);
    add_frame(text, 0x88, "", 0, true);
    add_frame(text, 0x80, "x", 1, true);
    for (size_t size = 1; size < 5000; size += 77)
        ck_assert_str_eq(read_in_pieces(text, size, 2000), "close 1005 ;");
}

/* --- writing --- */

TEST(heads_of_frames)
{
    static const unsigned char mask[] = {1, 2, 3, 4};
    static const struct {
        uint64_t len;
        bool masked;
        const char *hex;
    } heads[] = {
        {0, false, "8100"},
        {125, false, "817d"},
        {126, false, "817e007e"},
        {65535, false, "817effff"},
        {65536, false, "817f0000000000010000"},
        {5, true, "818501020304"},
        {300, true, "81fe012c01020304"},
    };

    for (size_t i = 0; i < COUNT(heads); i++) {
        struct text *hex = test_text();
        char to[WEBSOCKET_HEAD_MAX];
        size_t len = websocket_write_head(to, WEBSOCKET_TEXT, heads[i].len,
                                          heads[i].masked ? mask : NULL);

        text_hex(hex, to, len);
        ck_assert_str_eq(hex->data, heads[i].hex);
    }
}

TEST(masks_at_any_place)
{
    static const unsigned char mask[] = {0x37, 0xFA, 0x21, 0x3D};
    char data[64], once[64];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    for (size_t at = 0; at < 9; at++) {
        for (size_t len = 0; len <= sizeof data; len++) {
            memcpy(once, data, sizeof data);
            websocket_mask(once, len, mask, at);
            for (size_t i = 0; i < sizeof data; i++)
                ck_assert_int_eq((unsigned char)once[i],
                                 (unsigned char)data[i] ^ (i < len ? mask[(at + i) % 4] : 0));
        }
    }
}

TEST(control_frames)
{
    char to[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX];
    struct text *hex = test_text();

    text_hex(hex, to, websocket_write_control(to, WEBSOCKET_PONG, slice_of("ab", 2)));
    text_hex(hex, to, websocket_write_close(to, WEBSOCKET_NORMAL, "c"));
    text_hex(hex, to, websocket_write_close(to, WEBSOCKET_NO_CODE, ""));
    ck_assert_str_eq(hex->data, "8a026162"
                                "880303e863"
                                "8800");
    ck_assert_uint_eq(websocket_write_close(to, WEBSOCKET_POLICY, test_fill('x', 500)), 2 + 125);
}

/* --- the handshake --- */

TEST(keys)
{
    char accept[WEBSOCKET_ACCEPT_LEN];

    /* of RFC 6455, 1.3 */
    websocket_accept(accept, slice_of("dGhlIHNhbXBsZSBub25jZQ==", 24));
    ck_assert_int_eq(memcmp(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", sizeof accept), 0);
    ck_assert(websocket_key_valid(slice_of("dGhlIHNhbXBsZSBub25jZQ==", 24)));
    ck_assert(!websocket_key_valid(slice_of("dGhlIHNhbXBsZSBub25jZR==", 24)));
    ck_assert(!websocket_key_valid(slice_of("dGhlIHNhbXBsZSBub25jZQ=", 23)));
    ck_assert(!websocket_key_valid(slice_of("dGhlIHNhbXBsZSBub25jZQAA", 24)));
    ck_assert(!websocket_key_valid(slice_of("dGhlIHNhbXBsZSBub25j", 20)));
    ck_assert(!websocket_key_valid(slice_of("", 0)));
}
