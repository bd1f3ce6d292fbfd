/* ADR-010: the limits of a frame's length, of its headers and of its time. */
#include "build_config.h"

#include "harness.h"

#define TEN_MIB ((size_t)10485760)

/* Sends a request with a short answer in a frame of exactly `len` bytes. */
static void send_long(struct client *client, int id, size_t len)
{
    struct text *body = test_text(), *frame = test_text();
    text_printf(body, "{\"id\":%d,\"method\":\"length\",\"params\":\"", id);
    text_fill(body, 'x', len - body->len - 2);
    text_add(body, "\"}", 2);
    ck_assert_uint_eq(body->len, len);
    frames_add(frame, body->data, body->len);
    client_send_bytes(client, frame->data, frame->len);
}

/* Ten MiB pass; a frame of a byte more is refused, and not kept. */
TEST(adr_010_ten_mib)
{
    struct daemon *daemon = START(FRAMED);
    struct client *client = client_connect(daemon);
    frames_pid(client, 1);
    daemon_check_memory(daemon, 8192);
    for (int i = 0; i < 20; i++) {
        send_long(client, 2, TEN_MIB + 1);
        frames_error(client, "null", INVALID, "message exceeds");
    }
    frames_pid(client, 3);
    daemon_check_memory(daemon, 8192); /* the peak up to now */
    send_long(client, 4, TEN_MIB);
    ck_assert_int_eq(json_long(frames_result(client, "4"), -1), (long)TEN_MIB + 1); /* newline */
}

/* The same for the output of a worker. */
TEST(adr_010_ten_mib_from_a_worker)
{
    struct daemon *daemon = START(.pools = FRAMED_POOL(""));
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);
    client_request(client, "2", NULL, "big", "{'size':10485800}");
    daemon_wait_log(daemon, " WARN .*refused a frame of its output: message exceeds");
    daemon_check_memory(daemon, 8192);
    ck_assert_int_eq(client_pid(client, "3", NULL), pid);
    client_request(client, "4", NULL, "big", "{'size':10485700}");
    ck_assert_uint_eq(client_result(client, "4").len, 10485702);
}

/* max_input_buffer sets the limit. */
TEST(adr_010_limit_of_the_configuration)
{
    struct client *client = frames_connect(START(.limits = "'max_input_buffer':20000", FRAMED));
    send_long(client, 1, 20001);
    frames_error(client, "null", INVALID, "message exceeds max_input_buffer");
    send_long(client, 2, 20000);
    frames_result(client, "2");
}

/* A thousand frames that are too long, in a row. */
TEST(adr_010_oversize_again_and_again)
{
    struct daemon *daemon = START(.limits = "'max_input_buffer':65536", FRAMED);
    struct client *client = client_connect(daemon);
    frames_pid(client, 1);
    for (int i = 0; i < 1000; i++)
        send_long(client, 2, 65537 + (size_t)i * 100);
    for (int i = 0; i < 1000; i++)
        frames_error(client, "null", INVALID, "message exceeds");
    frames_pid(client, 3);
    daemon_check_memory(daemon, 8192);
}

/* Memory is taken for bytes received, not for a length announced. */
TEST(adr_010_announced_lengths_take_no_memory)
{
    struct client *clients[50];
    struct daemon *daemon = START(FRAMED);
    for (int i = 0; i < 50; i++) {
        clients[i] = client_connect(daemon);
        frames_pid(clients[i], 1);
        client_send_bytes(clients[i], "Content-Length: 10485760\r\n\r\n{\"id\":2,", 36);
    }
    frames_pid(client_connect(daemon), 3);
    daemon_check_memory(daemon, 8192);
}

static void add_headers(struct text *to, int count, size_t len)
{
    size_t start = to->len;
    for (int i = 2; i < count; i++)
        text_printf(to, "X-%d: y\r\n", i);
    text_printf(to, "Y: ");
    text_fill(to, 'y', len - (to->len - start) - strlen("\r\nContent-Length: 25\r\n\r\n"));
    text_printf(to, "\r\nContent-Length: 25\r\n\r\n{\"id\":1,\"method\":\"plain\"}");
}

TEST(adr_010_headers_have_limits)
{
    static const struct {
        int count;
        size_t len;
        int code;
        const char *word;
    } heads[] = {
        {64, 4000, 0, ""},
        {65, 4000, PARSE_ERROR, "too many headers"},
        {2, 8192, 0, ""},
        {2, 8193, INVALID, "headers are too long"},
    };
    struct client *client = frames_connect(START(FRAMED));
    for (size_t i = 0; i < COUNT(heads); i++) {
        struct text *stream = test_text();
        add_headers(stream, heads[i].count, heads[i].len);
        client_send_chunks(client, stream->data, stream->len, 777);
        if (heads[i].code != 0)
            frames_error(client, "null", heads[i].code, heads[i].word);
        else
            frames_result(client, "1");
        frames_pid(client, 2);
    }
}

/* --- time --- */

#define LATE " WARN .*client=1.* a frame was not complete after frame_timeout_sec"

/* An incomplete frame is dropped, each time, and the connection continues. */
TEST(adr_010_late_frames_are_dropped)
{
    static const char *const parts[] = {"Content-Le", "Content-Length: 25\r\n\r\n",
                                        "Content-Length: 50\r\n\r\n{\"id\":1,\"x\":\"plain\"}"};
    struct daemon *daemon = START(.limits = "'frame_timeout_sec':1", FRAMED);
    struct client *client = frames_connect(daemon);
    for (int i = 0; i < 3; i++) {
        daemon_mark_log(daemon);
        client_send_bytes(client, parts[i], strlen(parts[i]));
        daemon_wait_log(daemon, LATE);
        frames_pid(client, 2); /* the late frame got no error */
    }
}

/* The late rest of a frame is skipped up to the next frame. */
TEST(adr_010_late_rest_is_skipped)
{
    struct daemon *daemon = START(.limits = "'frame_timeout_sec':1", FRAMED);
    struct client *client = frames_connect(daemon);
    client_send_bytes(client, "Content-Length: 25\r\n\r\n{\"id\":1,\"met", 34);
    daemon_wait_log(daemon, LATE);
    client_send_bytes(client, "hod\":\"plain\"}", 13);
    frames_pid(client, 2);
}

/* The time counts from the beginning of the frame, not from the last byte. */
TEST(adr_010_dripping_does_not_help)
{
    int64_t deadline = deadline_usual();
    struct daemon *daemon = START(.limits = "'frame_timeout_sec':1", FRAMED);
    struct client *client = frames_connect(daemon);
    client_send_bytes(client, "Content-Length: 10000000\r\n\r\n{\"a\":\"", 34);
    while (!daemon_logged(daemon, LATE)) {
        client_send_bytes(client, "x", 1);
        nap();
        ck_assert(!deadline_over(deadline));
    }
    frames_pid(client, 2);
}

/* A worker survives its late frame. */
TEST(adr_010_late_frame_of_a_worker)
{
    struct daemon *daemon = START(.limits = "'frame_timeout_sec':1", .pools = FRAMED_POOL(""));
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);
    client_send(client, "{'method':'garbage','params':{'hex':'436f6e74'}}");
    daemon_wait_log(daemon, " WARN .*worker=1.* a frame was not complete");
    ck_assert_int_eq(client_pid(client, "2", NULL), pid);
}

/* An idle connection is not late, and makes no wakeups. */
TEST(adr_010_idle_connection_is_not_late)
{
    struct daemon *daemon = START(.limits = "'frame_timeout_sec':1", FRAMED);
    struct client *client = client_connect(daemon);
    client_send_chunks(client, "Content-Length: 25\r\n\r\n{\"id\":1,\"method\":\"plain\"}", 47, 5);
    frames_result(client, "1");
    daemon_check_asleep(daemon);
    ck_assert(!daemon_logged(daemon, LATE));
    frames_pid(client, 2);
}
