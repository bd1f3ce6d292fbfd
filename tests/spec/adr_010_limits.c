/* ADR-010: how long a frame, its headers and its coming may be. */
#include "build_config.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"

#define FRAMED .arguments = {"--framing", "content-length"}
#define TEN_MIB ((size_t)10485760)

enum { PARSE_ERROR = -32700, INVALID = -32600 };

/* Sends a frame of exactly `len` bytes that asks for nothing but a short answer. */
static void send_long(struct client *client, int id, size_t len)
{
    struct text body = {0}, frame = {0};
    text_printf(&body, "{\"id\":%d,\"method\":\"length\",\"params\":\"", id);
    text_fill(&body, 'x', len - body.len - 2);
    text_add(&body, "\"}", 2);
    ck_assert_uint_eq(body.len, len);
    frames_add(&frame, body.data, body.len);
    client_send_bytes(client, frame.data, frame.len);
    text_free(&body);
    text_free(&frame);
}

/* Ten MiB pass; a byte more is refused, and not kept. */
START_TEST(adr_010_ten_mib)
{
    struct daemon daemon;
    struct client client;
    char line[80];
    START(&daemon, FRAMED);
    client_connect(&client, &daemon);
    frames_pid(&client, 1);
    daemon_check_memory(&daemon, 8192);
    for (int i = 0; i < 20; i++) {
        send_long(&client, 2, TEN_MIB + 1);
        frames_error(&client, "null", INVALID, "message exceeds");
    }
    frames_pid(&client, 3);
    daemon_check_memory(&daemon, 8192); /* it is the peak that is looked at */
    send_long(&client, 4, TEN_MIB);
    snprintf(line, sizeof line, "%zu", TEN_MIB + 1); /* with the newline */
    ck_assert(span_is(frames_result(&client, "4"), line));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* The same for what a worker says. */
START_TEST(adr_010_ten_mib_from_a_worker)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = "{'id':'pool','command':'@WORKER@','instances':1,"
                            "'framing':'content-length','args':['--framing','content-length']}");
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", NULL);
    client_request(&client, "2", NULL, "big", "{'size':10485800}");
    daemon_wait_log(&daemon, " ERROR .*refused a frame of its output: message exceeds");
    daemon_check_memory(&daemon, 8192);
    ck_assert_int_eq(client_pid(&client, "3", NULL), pid);
    client_request(&client, "4", NULL, "big", "{'size':10485700}");
    ck_assert_uint_eq(client_result(&client, "4").len, 10485702);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* max_input_buffer is the limit where it is configured. */
START_TEST(adr_010_limit_of_the_configuration)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .limits = "'max_input_buffer':20000", FRAMED);
    client_connect(&client, &daemon);
    send_long(&client, 1, 20001);
    frames_error(&client, "null", INVALID, "message exceeds max_input_buffer");
    send_long(&client, 2, 20000);
    frames_result(&client, "2");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* A thousand of them in a row. */
START_TEST(adr_010_oversize_again_and_again)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .limits = "'max_input_buffer':65536", FRAMED);
    client_connect(&client, &daemon);
    frames_pid(&client, 1);
    for (int i = 0; i < 1000; i++)
        send_long(&client, 2, 65537 + (size_t)i * 100);
    for (int i = 0; i < 1000; i++)
        frames_error(&client, "null", INVALID, "message exceeds");
    frames_pid(&client, 3);
    daemon_check_memory(&daemon, 8192);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Memory is taken for what has come, not for what is announced. */
START_TEST(adr_010_announced_lengths_take_no_memory)
{
    struct daemon daemon;
    struct client clients[50], other;
    START(&daemon, FRAMED);
    for (int i = 0; i < 50; i++) {
        client_connect(&clients[i], &daemon);
        frames_pid(&clients[i], 1);
        client_send_bytes(&clients[i], "Content-Length: 10485760\r\n\r\n{\"id\":2,", 36);
    }
    client_connect(&other, &daemon);
    frames_pid(&other, 3);
    client_close(&other);
    daemon_check_memory(&daemon, 8192);
    for (int i = 0; i < 50; i++)
        client_close(&clients[i]);
    daemon_stop(&daemon);
}
END_TEST

static void add_headers(struct text *to, int count, size_t len)
{
    size_t start = to->len;
    for (int i = 2; i < count; i++)
        text_printf(to, "X-%d: y\r\n", i);
    text_printf(to, "Y: ");
    text_fill(to, 'y', len - (to->len - start) - strlen("\r\nContent-Length: 25\r\n\r\n"));
    text_printf(to, "\r\nContent-Length: 25\r\n\r\n{\"id\":1,\"method\":\"plain\"}");
}

START_TEST(adr_010_headers_have_limits)
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
    struct daemon daemon;
    struct client client;
    START(&daemon, FRAMED);
    client_connect(&client, &daemon);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct text stream = {0};
        add_headers(&stream, heads[i].count, heads[i].len);
        client_send_chunks(&client, stream.data, stream.len, 777);
        if (heads[i].code != 0)
            frames_error(&client, "null", heads[i].code, heads[i].word);
        else
            frames_result(&client, "1");
        frames_pid(&client, 2);
        text_free(&stream);
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* --- time --- */

#define LATE " WARN .*client=1.* a frame was not complete after frame_timeout_sec"

/* A frame that does not get ready is dropped, however often, and the connection goes on. */
START_TEST(adr_010_late_frames_are_dropped)
{
    static const char *const parts[] = {"Content-Le", "Content-Length: 25\r\n\r\n",
                                        "Content-Length: 50\r\n\r\n{\"id\":1,\"x\":\"plain\"}"};
    struct daemon daemon;
    struct client client;
    START(&daemon, .limits = "'frame_timeout_sec':1", FRAMED);
    client_connect(&client, &daemon);
    for (int i = 0; i < 3; i++) {
        daemon_mark_log(&daemon);
        client_send_bytes(&client, parts[i], strlen(parts[i]));
        daemon_wait_log(&daemon, LATE);
        frames_pid(&client, 2); /* no error came for the late one */
    }
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* What comes of it later is skipped up to the next frame. */
START_TEST(adr_010_late_rest_is_skipped)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .limits = "'frame_timeout_sec':1", FRAMED);
    client_connect(&client, &daemon);
    client_send_bytes(&client, "Content-Length: 25\r\n\r\n{\"id\":1,\"met", 34);
    daemon_wait_log(&daemon, LATE);
    client_send_bytes(&client, "hod\":\"plain\"}", 13);
    frames_pid(&client, 2);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* The time is a frame's, not a read's: bytes that drip do not renew it. */
START_TEST(adr_010_dripping_does_not_help)
{
    struct daemon daemon;
    struct client client;
    int64_t deadline = deadline_usual();
    START(&daemon, .limits = "'frame_timeout_sec':1", FRAMED);
    client_connect(&client, &daemon);
    client_send_bytes(&client, "Content-Length: 10000000\r\n\r\n{\"a\":\"", 34);
    while (!daemon_logged(&daemon, LATE)) {
        client_send_bytes(&client, "x", 1);
        nap();
        ck_assert(!deadline_over(deadline));
    }
    frames_pid(&client, 2);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Neither does a worker's late frame end the worker. */
START_TEST(adr_010_late_frame_of_a_worker)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .limits = "'frame_timeout_sec':1",
          .pools = "{'id':'pool','command':'@WORKER@','instances':1,"
                   "'framing':'content-length','args':['--framing','content-length']}");
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", NULL);
    client_send(&client, "{'method':'garbage','params':{'hex':'436f6e74'}}");
    daemon_wait_log(&daemon, " WARN .*worker=1.* a frame was not complete");
    ck_assert_int_eq(client_pid(&client, "2", NULL), pid);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* An idle connection is not late, and makes no wakeups. */
START_TEST(adr_010_idle_connection_is_not_late)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .limits = "'frame_timeout_sec':1", FRAMED);
    client_connect(&client, &daemon);
    client_send_chunks(&client, "Content-Length: 25\r\n\r\n{\"id\":1,\"method\":\"plain\"}", 47, 5);
    frames_result(&client, "1");
    daemon_check_asleep(&daemon);
    ck_assert(!daemon_logged(&daemon, LATE));
    frames_pid(&client, 2);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ADR-010: limits");
    TCase *size = harness_case(suite, "size"), *late = harness_case(suite, "time");
    tcase_add_test(size, adr_010_ten_mib);
    tcase_add_test(size, adr_010_ten_mib_from_a_worker);
    tcase_add_test(size, adr_010_limit_of_the_configuration);
    tcase_add_test(size, adr_010_oversize_again_and_again);
    tcase_add_test(size, adr_010_announced_lengths_take_no_memory);
    tcase_add_test(size, adr_010_headers_have_limits);
    tcase_add_test(late, adr_010_late_frames_are_dropped);
    tcase_add_test(late, adr_010_late_rest_is_skipped);
    tcase_add_test(late, adr_010_dripping_does_not_help);
    tcase_add_test(late, adr_010_late_frame_of_a_worker);
    tcase_add_test(late, adr_010_idle_connection_is_not_late);
    return harness_run(suite);
}
