/* stdio_bus.conf(5), max_message: long messages of pools with a protocol. */
#include "build_config.h"

#include "harness.h"

#define TWENTY_MB ((size_t)20000000)
#define TOO_LONG_ANSWER "the answer is longer than max_message (2000000 bytes)"
#define TOO_LONG "the message is longer than max_message (2000000 bytes)"
#define TWO_MB "'max_message':2000000"

static const char *const framings[] = {"ndjson", "content-length", "length"};

#define FRAMINGS COUNT(framings)

static const char *pool_of(const char *framing, const char *protocol, const char *keys)
{
    const char *args = strcmp(framing, "ndjson") == 0 ? ""
                                                      : test_format("'--framing','%s'", framing);
    return test_format("{'id':'p','command':'@WORKER@','framing':'%s','args':[%s],"
                       "'protocol':'%s'%s}",
                       framing, args, protocol, keys);
}

/* --- bodies in any framing --- */

static void send_body(struct client *client, int framing, const struct text *body)
{
    struct text *bytes = test_text();
    if (framing == 1) {
        frames_add(bytes, body->data, body->len);
    } else {
        for (int shift = 24; framing == 2 && shift >= 0; shift -= 8)
            text_add(bytes, (char[]){(char)(body->len >> shift & 0xFF)}, 1);
        text_add(bytes, body->data, body->len);
        text_add(bytes, "\n", framing == 0);
    }
    client_send_bytes(client, bytes->data, bytes->len);
}

static const unsigned char *wait_bytes(struct client *client, size_t len)
{
    int64_t deadline = deadline_usual();
    while (client->input.len - client->consumed < len)
        ck_assert(client_read_before(client, deadline));
    return (const unsigned char *)client->input.data + client->consumed;
}

static struct span next_body(struct client *client, int framing)
{
    if (framing == 0)
        return client_line(client);
    if (framing == 1)
        return frames_next(client);
    const unsigned char *head = wait_bytes(client, 4);
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    head = wait_bytes(client, 4 + len);
    client->consumed += 4 + len;
    return (struct span){(const char *)head + 4, len};
}

/* {BEFORE"xxx"AFTER}, of this number of bytes. */
static struct text *body_of(const char *before, size_t len, const char *after)
{
    struct text *body = test_text();
    text_printf(body, "{%s'", before);
    size_t filled = len - body->len - strlen(after) - 2;
    text_fill(body, 'x', filled);
    text_printf(body, "'%s}", after);
    text_quote(body, 0);
    return body;
}

static void ask_in(struct client *client, int framing, const char *body)
{
    struct text *text = test_text();
    text_add(text, body, strlen(body));
    text_quote(text, 0);
    send_body(client, framing, text);
}

static long pid_in(struct client *client, int framing)
{
    ask_in(client, framing, "{'id':'pid','method':'echo'}");
    return json_number(message_result(next_body(client, framing), "'pid'"), "pid");
}

/* --- messages up to max_message --- */

/* The memory of the daemon sinks to the limit again. */
static void wait_memory(const struct daemon *daemon, long max_kib)
{
    int64_t deadline = deadline_usual();
    while (!harness_skips_memory() && proc_available() &&
           proc_status(daemon->pid, "VmRSS") > max_kib) {
        ck_assert_msg(!deadline_over(deadline), "%ld KiB", proc_status(daemon->pid, "VmRSS"));
        nap();
    }
}

TEST_ROWS(design_twenty_megabytes_both_ways, FRAMINGS *FRAMINGS)
{
    int framing = (int)(row / FRAMINGS);
    const char *pool = pool_of(framings[row % FRAMINGS], "mcp", ",'instances':1");
    struct daemon *daemon = START(.pools = pool, .arguments = {"--framing", framings[framing]});
    struct client *client = client_connect(daemon);
    size_t len = harness_fewer() ? TWENTY_MB / 4 : TWENTY_MB;
    struct text *body = body_of("'id':1,'method':'plain','params':", len, "");
    long pid = pid_in(client, framing);
    for (int i = 0; i < 2; i++) {
        send_body(client, framing, body);
        struct span result = message_result(next_body(client, framing), "1");
        ck_assert_uint_eq(result.len, len - strlen("{'id':1,'method':'plain','params':}"));
        ck_assert_int_eq(result.data[result.len - 2], 'x');
    }
    ck_assert_int_eq(pid_in(client, framing), pid);
    wait_memory(daemon, 12288);
}

/* Lines of any length, many at once, in little memory. */
TEST_ROWS(design_growing_lines_wait_for_each_other, 2)
{
    enum { CLIENTS = 20 };
    struct client *clients[CLIENTS];
    size_t sent[CLIENTS] = {0};
    bool answered[CLIENTS] = {false};
    struct span line;
    struct daemon *daemon = START(.pools = pool_of("ndjson", "acp", ",'instances':2"),
                                  .limits = "'max_memory':16777216");
    struct text *request = body_of("'id':1,'method':'length','params':", 3000000, "");
    int64_t deadline = deadline_usual();
    text_add(request, "\n", 1);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = client_connect(daemon);
    for (int left = CLIENTS; row == 0 && left > 0; nap()) {
        ck_assert_msg(!deadline_over(deadline), "%d requests were not taken", left);
        left = 0;
        for (int i = 0; i < CLIENTS; i++) {
            sent[i] += client_offer(clients[i], request->data + sent[i], request->len - sent[i]);
            left += sent[i] < request->len;
        }
    }
    for (int i = 0; row == 1 && i < CLIENTS; i++)
        client_request(clients[i], "1", NULL, "big", "{'size':3000000}");
    for (int left = CLIENTS; left > 0;) {
        ck_assert_msg(!deadline_over(deadline), "%d answers are missing", left);
        left = 0;
        for (int i = 0; i < CLIENTS; i++) {
            answered[i] = answered[i] || client_line_before(clients[i], now_ms() + 1, &line);
            left += !answered[i];
        }
    }
    daemon_check_memory(daemon, 40960);
}

/* --- longer ones, of a worker --- */

TEST_ROWS(design_too_long_answer_is_an_error, FRAMINGS * 2)
{
    static const char *const protocols[] = {"mcp", "acp"};
    const char *pool = pool_of(framings[row % FRAMINGS], protocols[row / FRAMINGS],
                               ",'instances':1");
    struct daemon *daemon = START(.pools = pool, .limits = TWO_MB ",'max_restarts':0");
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);
    for (int i = 0; i < 10; i++) {
        client_request(client, "7", NULL, "big", "{'size':30000000}");
        client_error(client, "7", -32000, TOO_LONG_ANSWER);
    }
    client_request(client, "8", NULL, "big", "{'size':1990000}");
    ck_assert_uint_eq(client_result(client, "8").len, 1990002);
    client_expect_quiet(client);
    ck_assert_int_eq(client_pid(client, "9", NULL), pid);
    ck_assert(!daemon_logged(daemon, " ERROR \\["));
    daemon_check_memory(daemon, 12288);
}

/* Makes the worker write {BEFORE"xxx"AFTER} of three million bytes and more. */
static void say_long(struct client *client, const char *before, const char *after)
{
    struct text *head = test_text(), *tail = test_text(), *hex = test_text();
    text_printf(head, "{%s'", before);
    text_quote(head, 0);
    text_hex(hex, head->data, head->len);
    client_request(client, NULL, NULL, "garbage", test_format("{'hex':'%s'}", hex->data));
    client_request(client, NULL, NULL, "garbage", "{'hex':'78','times':3000000}");
    hex->len = 0;
    text_printf(tail, "'%s}\n", after);
    text_quote(tail, 0);
    text_hex(hex, tail->data, tail->len);
    client_request(client, NULL, NULL, "garbage", test_format("{'hex':'%s'}", hex->data));
}

/* Whatever comes before the id. */
TEST(design_id_at_the_end_of_a_too_long_answer)
{
    struct daemon *daemon = START(.pools = pool_of("ndjson", "mcp", ",'instances':1"),
                                  .limits = TWO_MB);
    struct client *client = client_connect(daemon);
    client_request(client, "'an id'", NULL, "no_answer", NULL);
    say_long(client, "'id':'another','result':", ",'\\u0069d':'an\\u0020id'");
    client_error(client, "'an id'", -32000, TOO_LONG_ANSWER);
    client_expect_quiet(client);
}

/* The worker gets an error for a request. A notification is only logged, and so is an answer to
 * nothing. */
TEST(design_other_too_long_messages_of_a_worker)
{
    struct daemon *daemon =
        START(.pools = pool_of("ndjson", "mcp", ",'instances':1,'on_bad_output':'skip'"),
              .limits = TWO_MB);
    struct client *client = client_connect(daemon);
    say_long(client, "'id':5,'method':'roots/list','params':", "");
    daemon_wait_log(daemon, " WARN .*worker=.*id 5, .*the message is longer than max_message");
    struct span reply = client_ask(client, "1", NULL, "reply_text", NULL);
    expect_member(reply, "id", "5");
    expect_member(reply, "error.code", "-32600");
    daemon_mark_log(daemon);
    say_long(client, "'method':'x','params':", "");
    daemon_wait_log(daemon, " WARN .*worker=.*the message is longer than max_message");
    say_long(client, "'id':99,'result':", "");
    daemon_wait_log(daemon, " WARN .*worker=.*no pending request");
    say_long(client, "'id':[],'result':", ""); /* no id */
    client_expect_quiet(client);
}

/* --- longer ones, of a client --- */

TEST_ROWS(design_too_long_request_is_an_error, FRAMINGS)
{
    int framing = (int)row;
    struct daemon *daemon = START(.pools = pool_of("ndjson", "mcp", ",'instances':1"),
                                  .limits = TWO_MB, .arguments = {"--framing", framings[row]});
    struct client *client = client_connect(daemon);
    long pid = pid_in(client, framing);
    for (int i = 0; i < 5; i++) {
        send_body(client, framing, body_of("'id':7,'method':'echo','params':", TWENTY_MB, ""));
        message_error(next_body(client, framing), "7", -32600, TOO_LONG);
        send_body(client, framing, body_of("'method':'echo','params':", TWENTY_MB, ",'id':'z'"));
        message_error(next_body(client, framing), "'z'", -32600, TOO_LONG);
        send_body(client, framing, body_of("'method':'note','params':", 2000001, ""));
        message_error(next_body(client, framing), "null", -32600, TOO_LONG);
    }
    ck_assert_int_eq(pid_in(client, framing), pid);
    daemon_check_memory(daemon, 12288);
}

/* The worker that has asked gets the error; the client may have a request with that id. */
TEST(design_too_long_reply_of_a_client)
{
    struct daemon *daemon = START(.pools = pool_of("ndjson", "mcp", ",'instances':1"),
                                  .limits = TWO_MB);
    struct client *client = client_connect(daemon);
    client_request(client, "1", NULL, "ask", "{'id':1}");
    client_line(client);
    send_body(client, 0, body_of("'id':1,'result':", 3000000, ""));
    struct span reply = client_result(client, "1");
    expect_member(reply, "error.code", "-32000");
    send_body(client, 0, body_of("'id':2,'result':", 3000000, "")); /* to nothing */
    client_expect_quiet(client);
}

/* --- beside plain pools --- */

TEST_ROWS(design_long_message_for_a_plain_pool, FRAMINGS)
{
    int framing = (int)row;
    const char *pools = test_format("%s,{'id':'plain','command':'@WORKER@','instances':1}",
                                    pool_of("ndjson", "mcp", ",'instances':1"));
    struct daemon *daemon = START(.pools = pools, .limits = "'max_input_buffer':1000000",
                                  .arguments = {"--framing", framings[row]});
    struct client *client = client_connect(daemon);
    send_body(client, framing,
              body_of("'id':1,'pool':'p','method':'length','params':", 5000000, ""));
    message_result(next_body(client, framing), "1");
    send_body(client, framing, body_of("'id':2,'method':'length','params':", 999000, ""));
    message_result(next_body(client, framing), "2");
    send_body(client, framing, body_of("'id':3,'method':'length','params':", 1000100, ""));
    message_error(next_body(client, framing), "null", -32600, "message exceeds max_input_buffer");
    if (row == 0) {
        daemon_wait_log(daemon, " ERROR .*client.*message exceeds max_input_buffer; closing it");
        client_expect_eof(client);
    } else {
        pid_in(client, framing);
    }
}

/* A worker of the plain pool is ended as ever. */
TEST(design_long_answer_of_a_plain_pool)
{
    const char *pools = test_format("%s,{'id':'plain','command':'@WORKER@','instances':1}",
                                    pool_of("ndjson", "mcp", ",'instances':1"));
    struct daemon *daemon = START(.pools = pools);
    struct client *client = client_connect(daemon);
    client_request(client, "1", NULL, "big", "{'size':2000000}");
    client_error(client, "1", -32000, DIED);
    daemon_wait_log(daemon, " ERROR .*message exceeds max_input_buffer");
}

/* --- time --- */

/* A half-sent frame is given up, whether it would have been delivered or cut. */
TEST_ROWS(design_half_of_a_long_frame, 2)
{
    struct daemon *daemon = START(.pools = pool_of("ndjson", "mcp", ",'instances':1"),
                                  .limits = "'frame_timeout_sec':1,'max_message':10000000",
                                  .arguments = {"--framing", "content-length"});
    struct client *client = frames_connect(daemon);
    struct text *body = body_of("'id':1,'method':'echo','params':", TWENTY_MB, "");
    struct text *frame = test_text();
    text_printf(frame, "Content-Length: %d\r\n\r\n", row == 0 ? 9000000 : 20000000);
    text_add(frame, body->data, 5000000);
    client_send_bytes(client, frame->data, frame->len);
    daemon_wait_log(daemon, " WARN .*client=1.* a frame was not complete after frame_timeout_sec");
    frames_pid(client, 2);
}
