/* stdio_bus(1), --connect: the client side of a running daemon. */
#include "build_config.h"

#include <sys/ioctl.h>

#include "harness.h"
#include "joined.h"
#include "network.h"
#include "setup.h"

static const char *address_of(const struct daemon *daemon)
{
    if (daemon->socket_path[0] != '\0')
        return daemon->socket_path;
    return test_format(strchr(daemon->host, ':') != NULL ? "[%s]:%u" : "%s:%u", daemon->host,
                       daemon->port);
}

static struct joined join_daemon(const struct daemon *daemon)
{
    return JOINED(address_of(daemon), NULL);
}

static void expect_status(const struct joined *joined, int expected)
{
    joined_expect_status(joined, expected);
    client_close(joined->client);
}

static const struct setup setups[] = {
    {.mode = SETUP_UNIX},
    {.mode = SETUP_TCP},
    {.mode = SETUP_TCP, .address = "[::1]:0"},
};

TEST_ROWS(design_connect_is_a_client, COUNT(setups))
{
    if (row == 2 && !have_ipv6())
        return;
    struct daemon *daemon = daemon_start(&setups[row]);
    struct joined joined = join_daemon(daemon), other = join_daemon(daemon);
    client_ask(joined.client, "1", "s", "echo", "{'who':'joined'}");
    client_ask(other.client, "1", NULL, "echo", NULL);
    client_ask(joined.client, "2", NULL, "big", "{'size':900000}");
    client_request(joined.client, "3", "s", "notify", "{'n':2}");
    client_line(joined.client);
    client_line(joined.client);
    client_result(joined.client, "3");
    client_expect_quiet(other.client);
    /* A request before the end of input is answered after it. */
    client_request(joined.client, "4", NULL, "echo", NULL);
    client_half_close(joined.client);
    client_result(joined.client, "4");
    client_expect_eof(joined.client);
    expect_status(&joined, 0);
    client_half_close(other.client);
    expect_status(&other, 0);
}

TEST(design_connect_reports_the_end_of_the_daemon)
{
    struct daemon *daemon = START(.instances = 1);
    struct joined joined = join_daemon(daemon);
    client_ask(joined.client, "1", NULL, "echo", NULL);
    daemon_signal(daemon, SIGTERM);
    client_expect_eof(joined.client);
    expect_status(&joined, 75);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The daemon's error arrives. */
TEST_ROWS(design_connect_with_malformed_input, 2)
{
    struct joined joined = join_daemon(daemon_start(&setups[row]));
    client_send(joined.client, "nonsense");
    client_error(joined.client, "null", -32700, "");
    client_expect_eof(joined.client);
    expect_status(&joined, 75);
}

TEST_ROWS(design_connect_refused, 3)
{
    /* No name server is asked for a name with a label of 64 bytes. */
    const char *addresses[] = {"/nowhere/socket", "127.0.0.1:1",
                               test_format("%s.invalid:1", test_fill('x', 64))};
    struct joined joined = JOINED(addresses[row], NULL);
    client_expect_eof(joined.client);
    expect_status(&joined, 69);
}

/* Waits until the process has read its input. */
static void wait_taken(const struct joined *joined)
{
    int64_t deadline = deadline_usual();
    int left = 1;
    while (left > 0) {
        ck_assert_int_eq(ioctl(joined->client->out, FIONREAD, &left), 0);
        ck_assert(!deadline_over(deadline));
    }
}

enum { EXCHANGES = 100, DELAYED_MS = 40 };

/* The second of two messages in one direction does not wait for an acknowledgement of the first,
 * which would take 40 ms nearly each time. A busy machine delays some of them, too. */
TEST(design_tcp_has_no_delays_to_the_daemon)
{
    struct joined joined = join_daemon(START(.mode = SETUP_TCP));
    client_ask(joined.client, "0", NULL, "echo", NULL);
    int delayed = 0;
    for (int i = 1; i <= EXCHANGES; i++) {
        int64_t start = now_ms();
        client_request(joined.client, NULL, NULL, "no_answer", NULL);
        wait_taken(&joined);
        client_ask(joined.client, "1", NULL, "echo", NULL);
        delayed += now_ms() - start >= DELAYED_MS;
    }
    ck_assert_int_lt(delayed, EXCHANGES / 2);
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    expect_status(&joined, 0);
}

TEST(design_tcp_has_no_delays_to_the_client)
{
    struct daemon *daemon = START(.mode = SETUP_TCP);
    struct client *owner = client_connect(daemon), *other = client_connect(daemon);
    int delayed = 0;
    for (int i = 1; i <= EXCHANGES; i++) {
        client_ask(owner, "1", "s", "echo", NULL);
        int64_t start = now_ms();
        for (int n = 0; n < 2; n++) {
            client_ask(other, "1", NULL, "say", "{'message':{'method':'hello','sessionId':'s'}}");
            client_expect(owner, "{'method':'hello','sessionId':'s'}");
        }
        delayed += now_ms() - start >= DELAYED_MS;
    }
    ck_assert_int_lt(delayed, EXCHANGES / 2);
}

/* Also in the client side, which has no log to reopen. */
TEST(design_connect_survives_sigusr1)
{
    struct joined joined = join_daemon(START(.instances = 1));
    client_expect_quiet(joined.client);
    ck_assert_int_eq(kill(joined.pid, SIGUSR1), 0);
    client_expect_quiet(joined.client);
    client_half_close(joined.client);
    expect_status(&joined, 0);
}

static const char *token_file(const char *name, const char *token)
{
    const char *path = test_format("%s/%s", test_dir(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, token, strlen(token)), (ssize_t)strlen(token));
    close(fd);
    return path;
}

/* The client behind --connect needs to know nothing of the token. */
TEST_ROWS(design_connect_shows_the_token, 2)
{
    const char *path = token_file("token", "the \"token\"\n"), *other = token_file("other", "x");
    struct daemon *daemon = START(.mode = SETUP_TCP,
                                  .arguments = {"--token-file", path, "--framing",
                                                row == 0 ? "ndjson" : "content-length"});
    const char *address = address_of(daemon);
    struct joined joined = JOINED(address, "--token-file", path),
                  stranger = JOINED(address, "--token-file", other);
    if (row == 0) {
        client_expect_quiet(joined.client);
        client_error(stranger.client, "null", -32000, "the token is wrong");
    } else {
        frames_pid(joined.client, 1);
        frames_error(stranger.client, "null", -32000, "the token is wrong");
    }
    client_half_close(joined.client);
    expect_status(&joined, 0);
    client_expect_eof(stranger.client);
    expect_status(&stranger, 75);
    joined = JOINED(address, NULL);
    client_half_close(joined.client);
    client_read_before(joined.client, deadline_usual());
    ck_assert_uint_gt(joined.client->input.len, 0);
    expect_status(&joined, 75); /* it was refused, whatever it has asked */
}

TEST(design_connect_with_a_bad_token_file)
{
    struct joined joined = JOINED("127.0.0.1:1", "--token-file", "/no/such/file");
    client_expect_eof(joined.client);
    expect_status(&joined, 78);
    joined = JOINED("/no/such/socket", "--token-file", "/no/such/file");
    client_expect_eof(joined.client);
    expect_status(&joined, 64);
}

/* --- pools --- */

#define TWO_POOLS                                                                                  \
    "{'id':'a','command':'@WORKER@','args':['--name','a'],'instances':2,'protocol':'mcp'},"        \
    "{'id':'b \\u00e9','command':'@WORKER@','args':['--name','b'],'instances':2,'protocol':'mcp'}"

static void expect_worker(struct client *client, const char *name)
{
    expect_member(client_ask(client, "1", NULL, "echo", NULL), "worker", name);
}

/* Several pools of one protocol in one daemon, whose messages name none. */
TEST_ROWS(design_connect_names_a_pool, 4)
{
    const char *token = test_format("%s/token", test_dir());
    FILE *file = fopen(token, "w");
    ck_assert_ptr_nonnull(file);
    fputs("a \"token\"", file);
    fclose(file);
    ck_assert_int_eq(chmod(token, 0600), 0);
    bool tcp = row > 0, asks = row > 1;
    const char *members = test_format("'listen':{'framing':'%s'}",
                                      row == 3 ? "content-length" : "ndjson");
    struct daemon *daemon = START(.mode = tcp ? SETUP_TCP : SETUP_UNIX, .pools = TWO_POOLS,
                                  .members = members,
                                  .arguments = {asks ? "--token-file" : NULL, token});
    const char *address = address_of(daemon);
    struct joined one = JOINED(address, "--pool", "a", asks ? "--token-file" : NULL, token);
    struct joined other = JOINED(address, "--pool=b \xC3\xA9", asks ? "--token-file" : NULL, token);
    struct joined none = JOINED(address, asks ? "--token-file" : NULL, token);
    struct joined wrong = JOINED(address, "--pool", "c", asks ? "--token-file" : NULL, token);
    if (row == 3) { /* the line comes before the first frame */
        frames_send(other.client, "{'id':1,'method':'echo'}");
        expect_member(frames_result(other.client, "1"), "worker", "'b'");
        frames_error(wrong.client, "null", -32602, "no such pool");
        return;
    }
    expect_worker(one.client, "'a'");
    expect_worker(other.client, "'b'");
    expect_worker(none.client, "'a'"); /* the first one */
    client_error(wrong.client, "null", -32602, "no such pool; there are a, b \xC3\xA9");
    client_expect_eof(wrong.client);
    expect_status(&wrong, 75);
    daemon_wait_log(daemon, "unacceptable input: no such pool");
    /* A client that asks nothing, as with < /dev/null, fails as well. */
    struct joined brief = JOINED(address, "--pool", "c", asks ? "--token-file" : NULL, token);
    client_half_close(brief.client);
    client_error(brief.client, "null", -32602, "no such pool; there are a, b \xC3\xA9");
    client_expect_eof(brief.client);
    expect_status(&brief, 75);
}

/* The line comes before the first message, in any framing, in pieces of any size. */
static const struct {
    const char *framing, *bytes, *answer;
} openings[] = {
    {"ndjson", "{\"pool\":\"b\"}\n{\"id\":1}\n", "\"worker\":\"b\""},
    {"ndjson", " { \"pool\" : \"\\u0062\" }\r\n{\"id\":1}\n", "\"worker\":\"b\""},
    {"ndjson", "{\"pool\":\"b\",\"token\":\"unasked\"}\n{\"id\":1}\n", "\"worker\":\"b\""},
    {"ndjson", "{\"pool\":\"b\"}\n{\"id\":1,\"pool\":\"a\"}\n", "\"worker\":\"a\""},
    {"content-length", "{\"pool\":\"b\"}\nContent-Length: 8\r\n\r\n{\"id\":1}", "\"worker\":\"b\""},
    {"length", "{\"pool\":\"b\"}\n\0\0\0\x08{\"id\":1}", "\"worker\":\"b\""},
    /* A second one is no opening line; nor is a message that names its pool. */
    {"content-length", "{\"pool\":\"b\"}\n{\"pool\":\"b\"}\n", "not a header"},
    {"content-length", "{\"pool\":\"b\",\"id\":1}\n", "not a header"},
    {"content-length", "{\"pool\":\"b\xFF\"}\n", "invalid UTF-8"},
    {"length", "{\"pool\":\"b\"}\n{\"pool\":\"b\"}\n", "exceeds"},
    {"ndjson", "{\"pool\":\"b\",\"id\":1}\n", "\"worker\":\"b\""},
    {"ndjson", "{\"pool\":\"c\"}\n", "no such pool; there are a, b"},
    {"content-length", "{\"pool\":\"c\"}\n", "no such pool; there are a, b"},
    {"ndjson", "{\"pool\":7}\n", "pool must be a string"},
};

/* The length of a text with NULs before its first brace of a frame. */
static size_t stream_len(const char *bytes)
{
    size_t len = strlen(bytes);
    return bytes[len + 1] == '\0' && bytes[len + 2] == '\0' ? len + 4 + strlen(bytes + len + 4)
                                                            : len;
}

TEST_ROWS(design_opening_line, COUNT(openings))
{
    bool framed = strcmp(openings[row].framing, "length") == 0;
    size_t len = framed && row == 5 ? stream_len(openings[row].bytes) : strlen(openings[row].bytes);
    struct daemon *daemon =
        START(.pools = POOL("a", 1, "'--name','a'") "," POOL("b", 1, "'--name','b'"),
              .arguments = {"--framing", openings[row].framing});
    for (size_t chunk = 1; chunk <= len; chunk += chunk < 16 ? 1 : len - chunk + (chunk == len)) {
        struct client *client = client_connect(daemon);
        bool found = false;
        client_send_chunks(client, openings[row].bytes, len, chunk);
        while (!found) {
            ck_assert_msg(client_read_before(client, deadline_usual()), "no answer");
            for (size_t i = 0; i < client->input.len && !found; i++)
                found = client->input.len - i >= strlen(openings[row].answer) &&
                        memcmp(client->input.data + i, openings[row].answer,
                               strlen(openings[row].answer)) == 0;
        }
        client_close(client);
    }
}

/* A line in braces that does not end is a late first frame. */
TEST(design_opening_line_must_end)
{
    struct daemon *daemon = START(.limits = "'frame_timeout_sec':1",
                                  .arguments = {"--framing", "content-length"});
    struct client *client = client_connect(daemon);
    client_send_bytes(client, "{\"pool\":", 8);
    daemon_wait_log(daemon, "the first frame was not complete");
    client = client_connect(daemon);
    client_send_bytes(client, "{", 1);
    client_send_bytes(client, test_fill(' ', 9000), 9000);
    daemon_wait_log(daemon, "not a header");
}

/* --- what a shell would have done --- */

TEST(design_connect_replaces_variables)
{
    struct daemon *daemon = START(.instances = 1);
    ck_assert_int_eq(setenv("HOME", daemon->dir, 1), 0);
    ck_assert_int_eq(setenv("CONNECT_SOCKET", "socket", 1), 0);
    unsetenv("CONNECT_NONE");
    static const char *const paths[] = {"~/socket", "$HOME/socket", "${HOME}/$CONNECT_SOCKET"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct joined joined = JOINED(paths[i], NULL);
        client_expect_quiet(joined.client);
        client_half_close(joined.client);
        expect_status(&joined, 0);
    }
    struct joined joined = JOINED("$CONNECT_NONE/socket", NULL);
    client_expect_eof(joined.client);
    expect_status(&joined, 64);
}

/* A daemon that is started later. */
TEST(design_connect_waits_for_the_daemon)
{
    const char *path = test_format("%s/socket", test_dir());
    struct joined joined = JOINED(path, "--wait", "60");
    struct daemon *daemon = START(.mode = SETUP_STDIO, .no_config = true, .default_mode = true,
                                  .arguments = {"--unix", path, "--", "@WORKER@"});
    client_expect_quiet(joined.client);
    client_half_close(joined.client);
    expect_status(&joined, 0);
    daemon_stop(daemon);
    joined = JOINED(path, "--wait=1");
    client_expect_eof(joined.client);
    expect_status(&joined, 69);
    joined = JOINED("/dev/null/socket", "--wait", "86400"); /* no daemon can come there */
    client_expect_eof(joined.client);
    expect_status(&joined, 69);
}
