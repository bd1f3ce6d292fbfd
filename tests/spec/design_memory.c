/* doc/security.md: all buffers together are bounded by max_memory. */
#include "build_config.h"

#include "harness.h"

#define CLIENTS 20
#define TWO_MIB ((size_t)2 << 20)

static const char *const framings[] = {"ndjson", "content-length"};

/* A request for the method length of exactly `len` bytes, framed. */
static struct text *request_of(bool framed, int id, size_t len)
{
    struct text *body = test_text(), *frame = test_text();
    text_printf(body, "{\"id\":%d,\"method\":\"length\",\"params\":\"", id);
    text_fill(body, 'x', len - body->len - 2);
    text_add(body, "\"}", 2);
    if (framed) {
        frames_add(frame, body->data, body->len);
        return frame;
    }
    text_add(body, "\n", 1);
    return body;
}

static void expect_length(bool framed, struct client *client, int id)
{
    const char *number = test_format("%d", id);
    if (framed)
        frames_result(client, number);
    else
        client_result(client, number);
}

/* Twenty clients send two MiB each at once, and four MiB of memory are allowed: all are served. */
TEST_ROWS(design_long_messages_share_the_memory, COUNT(framings))
{
    struct client *clients[CLIENTS];
    struct text *requests[CLIENTS];
    size_t sent[CLIENTS] = {0};
    struct daemon *daemon = START(.arguments = {"--framing", framings[row]}, .instances = 2,
                                  .limits = "'max_memory':4194304,'max_input_buffer':2097152");
    int64_t deadline = deadline_usual();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_connect(daemon);
        requests[i] = request_of(row == 1, i, TWO_MIB - 100);
    }
    for (int left = CLIENTS; left > 0; nap()) {
        ck_assert_msg(!deadline_over(deadline), "%d requests were not taken", left);
        left = 0;
        for (int i = 0; i < CLIENTS; i++) {
            sent[i] += client_offer(clients[i], requests[i]->data + sent[i],
                                    requests[i]->len - sent[i]);
            left += sent[i] < requests[i]->len;
        }
    }
    for (int i = 0; i < CLIENTS; i++)
        expect_length(row == 1, clients[i], i);
    daemon_check_memory(daemon, 16384);
}

/* The same for answers. Clients that do not read keep the memory no longer than they may keep
 * workers. The one that reads is of another address: those of their own get little time to read. */
TEST(design_long_answers_share_the_memory)
{
    struct client *clients[CLIENTS];
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 4,
                                  .limits = "'max_memory':4194304,'slow_client_timeout_sec':1");
    struct client *reader = client_try_connect_from(daemon, "127.0.0.2");
    ck_assert_msg(reader != NULL || errno == EADDRNOTAVAIL, "127.0.0.2: %s", strerror(errno));
    if (reader == NULL)
        return;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_connect(daemon);
        for (int j = 0; j < 8; j++) /* more than the kernel takes */
            client_request(clients[i], test_format("'%d-%d'", i, j), NULL, "big",
                           "{'size':1000000}");
    }
    client_request(reader, "'r'", NULL, "big", "{'size':1000000}");
    ck_assert_uint_eq(client_result(reader, "'r'").len, 1000002);
    daemon_wait_log(daemon, " WARN .*slow_client_timeout_sec");
    daemon_check_memory(daemon, 16384);
}

/* A client stops in the middle of a long message. It may for as long as it likes, until another
 * client waits for that memory; then for frame_timeout_sec. The other client, whose frame has begun
 * at the same time, is served. */
TEST_ROWS(design_unfinished_long_message_blocks_nobody, COUNT(framings))
{
    bool framed = row == 1;
    struct daemon *daemon =
        START(.arguments = {"--framing", framings[row], "--log-level", "debug"},
              .limits = "'max_memory':1048576,'max_input_buffer':1048576,'frame_timeout_sec':1");
    struct client *stopped = client_connect(daemon), *other = client_connect(daemon);
    struct text *first = request_of(framed, 1, 500000), *second = request_of(framed, 2, 400000);
    client_send_bytes(stopped, first->data, 300000);
    for (int64_t until = now_ms() + 1500; !framed && now_ms() < until;)
        nap();
    size_t sent = client_offer(other, second->data, second->len);
    daemon_wait_log(daemon, "client=2.*waits for the memory");
    client_send_bytes(other, second->data + sent, second->len - sent);
    expect_length(framed, other, 2);
    if (!framed) {
        client_error(stopped, "null", -32600, "frame_timeout_sec");
        client_expect_eof(stopped);
    }
}

/* The clients of one address besiege the memory with unfinished messages. The client of another
 * address waits for none of them. */
TEST_ROWS(design_origin_gets_its_share_of_the_memory, COUNT(framings))
{
    bool framed = row == 1;
    struct client *hogs[CLIENTS];
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1,
                                  .arguments = {"--framing", framings[row], "--log-level", "debug"},
                                  .limits = "'max_memory':4194304,'max_input_buffer':400000");
    struct client *honest = client_try_connect_from(daemon, "127.0.0.2");
    ck_assert_msg(honest != NULL || errno == EADDRNOTAVAIL, "127.0.0.2: %s", strerror(errno));
    if (honest == NULL)
        return;
    struct text *request = request_of(framed, 1, 390000);
    for (int i = 0; i < CLIENTS; i++) {
        hogs[i] = client_connect(daemon);
        (void)client_offer(hogs[i], request->data, 200000);
    }
    daemon_wait_log(daemon, "waits for the memory");
    int64_t start = now_ms();
    for (int i = 0; i < 10; i++) {
        client_send_bytes(honest, request->data, request->len);
        expect_length(framed, honest, 1);
    }
    ck_assert_int_lt(now_ms() - start, (int64_t)(10000 * timeout_factor()));
}

/* The client of an origin that has no memory is served before those of one that has some. */
TEST(design_origin_with_least_memory_is_served_first)
{
    struct client *hogs[4];
    struct daemon *daemon =
        START(.mode = SETUP_TCP, .instances = 1, .arguments = {"--log-level", "debug"},
              .limits = "'max_memory':1048576,'max_input_buffer':524288,'frame_timeout_sec':1");
    struct client *honest = client_try_connect_from(daemon, "127.0.0.2");
    ck_assert_msg(honest != NULL || errno == EADDRNOTAVAIL, "127.0.0.2: %s", strerror(errno));
    if (honest == NULL)
        return;
    struct text *request = request_of(false, 1, 500000);
    for (int i = 0; i < 4; i++) {
        hogs[i] = client_connect(daemon);
        (void)client_offer(hogs[i], request->data, 200000);
        daemon_wait_log(daemon, i == 0 ? "client=2.* connected"
                                       : test_format("client=%d.*waits for the memory", i + 2));
    }
    client_send_bytes(honest, request->data, request->len);
    client_result(honest, "1");
    ck_assert_uint_le(daemon_count_log(daemon, "frame_timeout_sec.*closing"), 1);
}

/* Clients of several addresses stop in the middle of long messages that fill the memory, one after
 * the other. Together they have frame_timeout_sec, and each a second: a client of another address
 * does not wait for the whole time of each. */
TEST_ROWS(design_unfinished_messages_of_many_share_their_time, COUNT(framings))
{
    bool framed = row == 1;
    struct daemon *daemon =
        START(.mode = SETUP_TCP, .instances = 1,
              .arguments = {"--framing", framings[row], "--log-level", "debug"},
              .limits = "'max_memory':1048576,'max_input_buffer':524288,'frame_timeout_sec':2");
    struct client *honest = client_try_connect_from(daemon, "127.0.0.2");
    ck_assert_msg(honest != NULL || errno == EADDRNOTAVAIL, "127.0.0.2: %s", strerror(errno));
    if (honest == NULL)
        return;
    struct text *request = request_of(framed, 1, 500000);
    for (int i = 0; i < 4; i++) {
        struct client *hog = client_try_connect_from(daemon, test_format("127.0.0.%d", i + 3));
        (void)client_offer(hog, request->data, 200000);
        daemon_wait_log(daemon, i == 0 ? "client=2.* connected"
                                       : test_format("client=%d.*waits for the memory", i + 2));
    }
    int64_t start = now_ms();
    client_send_bytes(honest, request->data, request->len);
    expect_length(framed, honest, 1);
    ck_assert_int_lt(now_ms() - start, (int64_t)(7000 * timeout_factor()));
}

/* A message that is longer than all the memory is served when it is alone. */
TEST_ROWS(design_message_longer_than_the_memory, COUNT(framings))
{
    struct daemon *daemon = START(.arguments = {"--framing", framings[row]},
                                  .limits = "'max_memory':1048576,'max_input_buffer':4194304");
    struct client *client = client_connect(daemon);
    for (int i = 0; i < 5; i++) {
        struct text *request = request_of(row == 1, i, 4000000);
        client_send_bytes(client, request->data, request->len);
        expect_length(row == 1, client, i);
    }
}
