/* doc/security.md: the token of TCP clients, and connections of other machines. */
#include "build_config.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include "harness.h"

#define TOKEN "a \"secret\" \xC3\xA9\\ token"
#define ESCAPED "a \\\"secret\\\" \\u00e9\\\\ token"
#define TOKEN_LINE "{\"token\":\"" ESCAPED "\"}\n"

/* A file with this content and mode. */
static const char *write_file(const char *content, mode_t mode)
{
    static int number;
    const char *path = test_format("%s/token-%d", test_dir(), ++number);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static const char *const framings[] = {"ndjson", "content-length", "length"};

/* A daemon that asks for the token; by the option or by the configuration. */
static struct daemon *start_asking(const char *framing, bool by_option)
{
    const char *path = write_file(TOKEN "\n", 0600);
    const char *wrong = write_file("another", 0600);
    const char *members = test_format("'listen':{'framing':'%s','token_file':'%s'}", framing,
                                      by_option ? wrong : path);
    return START(.mode = SETUP_TCP, .instances = 1, .members = members,
                 .arguments = {"--log-level", "debug", by_option ? "--token-file" : NULL, path});
}

static void expect_secret(struct daemon *daemon)
{
    ck_assert(!daemon_logged(daemon, "secret"));
}

/* --- the token --- */

static const struct {
    const char *bytes, *answer;
} served[] = {
    {"{\"id\":1,\"method\":\"plain\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n"},
    {"Content-Length: 25\r\n\r\n{\"id\":1,\"method\":\"plain\"}",
     "Content-Length: 38\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}"},
    {"\0\0\0\x19{\"id\":1,\"method\":\"plain\"}",
     "\0\0\0\x26{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}"},
};

/* The line in any framing, in pieces of any size, with the first message right after it. */
TEST_ROWS(security_token_lets_a_client_in, 6)
{
    static const size_t chunks[] = {1, 3, 7, 41, 43, 1000};
    size_t framing = row % 3, head = framing == 2 ? 4 : 0;
    struct daemon *daemon = start_asking(framings[framing], row >= 3);
    for (size_t i = 0; i < COUNT(chunks); i++) {
        struct client *client = client_connect(daemon);
        struct text *stream = test_text();
        text_printf(stream, TOKEN_LINE);
        text_add(stream, served[framing].bytes, head + strlen(served[framing].bytes + head));
        size_t len = head + strlen(served[framing].answer + head);
        client_send_chunks(client, stream->data, stream->len, chunks[i]);
        while (client->input.len < len)
            ck_assert(client_read_before(client, deadline_usual()));
        ck_assert_mem_eq(client->input.data, served[framing].answer, len);
        client_close(client);
    }
    expect_secret(daemon);
}

static const char *const wrong[] = {
    "{\"token\":\"a \\\"secret\\\" \\u00e9\\\\ toke\"}\n",
    "{\"token\":\"a \\\"secret\\\" \\u00e9\\\\ tokens\"}\n",
    "{\"token\":\"A \\\"secret\\\" \\u00e9\\\\ token\"}\n",
    "{\"token\":\"\"}\n",
    "{\"token\":1}\n",
    "{\"token\":null}\n",
    "{\"token\":[\"" ESCAPED "\"]}\n",
    "{\"id\":1,\"method\":\"die\"}\n" TOKEN_LINE,
    "{\"id\":1,\"token\":\"" ESCAPED "\"}\n",
    "{\"token\":\"" ESCAPED "\",\"id\":{}}\n",
    "{\"token\":\"\",\"token\":\"" ESCAPED "\"}\n",
    "\"" ESCAPED "\"\n" TOKEN_LINE,
    ESCAPED "\n",
    "Content-Length: 23\r\n\r\n{\"id\":7,\"method\":\"die\"}",
    "{\"token\":\"" ESCAPED "\n",
};

/* Anything else ends the connection, and nothing after it is looked at. */
TEST_ROWS(security_wrong_token_keeps_a_client_out, 2)
{
    struct daemon *daemon = start_asking("ndjson", false);
    struct client *good = client_connect(daemon);
    client_send_bytes(good, TOKEN_LINE, strlen(TOKEN_LINE));
    long pid = client_pid(good, "1", NULL);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct client *client = client_connect(daemon);
        struct text *stream = test_text();
        text_printf(stream, "%s{\"id\":1,\"method\":\"die\"}\n", wrong[i]);
        client_send_chunks(client, stream->data, stream->len, row == 0 ? 1 : 1000);
        client_error(client, "null", -32000, "token");
        client_expect_eof(client);
        ck_assert_int_eq(client_pid(good, "2", NULL), pid);
    }
    daemon_wait_log(daemon, " WARN .*client=.*token.*127\\.0\\.0\\.1:[0-9]+");
    expect_secret(daemon);
}

/* A line without an end takes little memory. */
TEST(security_token_line_has_a_limit)
{
    struct daemon *daemon = start_asking("length", false);
    struct client *client = client_connect(daemon);
    client_send_bytes(client, "{\"token\":\"", 10);
    client_send_bytes(client, test_fill('x', 10000), 10000);
    while (client_read_before(client, deadline_usual()))
        continue;
    ck_assert(client->eof && client->input.len > 4); /* in the framing of the client */
    ck_assert_int_eq(client->input.data[0] | client->input.data[1] | client->input.data[2], 0);
    struct span body = {client->input.data + 4, client->input.len - 4};
    message_error(body, "null", -32000, "token");
}

/* HTTP gets no reply here either; an end without a token does. */
TEST(security_token_is_asked_of_all)
{
    struct daemon *daemon = start_asking("content-length", true);
    struct client *page = client_connect(daemon), *short_one = client_connect(daemon);
    client_send(page, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
    client_expect_eof(page);
    client_half_close(short_one);
    frames_error(short_one, "null", -32000, "the first line must be");
    client_expect_eof(short_one);
    daemon_wait_log(daemon, " WARN .*HTTP in place of messages");
}

TEST(security_token_has_ten_seconds)
{
    struct daemon *daemon = start_asking("ndjson", false);
    struct client *client = client_connect(daemon), *slow = client_connect(daemon);
    client_send_bytes(slow, "{\"token\":", 9);
    client_error(client, "null", -32000, "10 seconds");
    client_expect_eof(client);
    client_error(slow, "null", -32000, "10 seconds");
    client_expect_eof(slow);
    daemon_wait_log(daemon, " WARN .*no token came within 10 seconds");
}

/* Connections that show no token make way for others. */
TEST_ROWS(security_silent_connections_keep_nobody_out, 2)
{
    struct client *silent[70];
    const char *path = write_file("token", 0600);
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1,
                                  .limits = row == 0 ? NULL : "'max_connections':3",
                                  .arguments = {"--token-file", path});
    struct client *first = client_connect(daemon), *client;
    client_send(first, "{'token':'token'}");
    client_expect_quiet(first);
    for (int i = 0; i < 70; i++)
        silent[i] = client_connect(daemon);
    client = client_connect(daemon);
    client_send(client, "{'token':'token'}");
    client_expect_quiet(client);
    client_expect_eof(silent[0]);
    client_expect_eof(silent[6]);
    client_expect_quiet(first);
}

/* Nor do they lessen the shares of clients: each of two may have two of eight requests. */
TEST(security_silent_connections_have_no_shares)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1,
                                  .limits = "'max_pending_requests':8",
                                  .arguments = {"--token-file", write_file("token", 0600)});
    struct client *other = client_connect(daemon), *client;
    client_send(other, "{'token':'token'}");
    for (int i = 0; i < 9; i++)
        client_request(other, test_format("%d", i), NULL, "no_answer", NULL);
    client_error(other, "8", -32000, "max_pending_requests");
    for (int i = 0; i < 20; i++)
        client_connect(daemon);
    client = client_connect(daemon);
    client_send(client, "{'token':'token'}");
    for (int i = 0; i < 3; i++)
        client_request(client, test_format("'%d'", i), NULL, "no_answer", NULL);
    client_error(client, "'2'", -32000, "max_pending_requests");
}

/* The socket's mode guards it. */
TEST(security_unix_socket_needs_no_token)
{
    const char *members = test_format("'listen':{'token_file':'%s'}", write_file("x", 0600));
    client_expect_quiet(client_connect(START(.members = members)));
}

static const struct {
    const char *content;
    mode_t mode;
    const char *word;
} bad_files[] = {
    {"", 0600, "empty"},
    {"\n", 0600, "empty"},
    {"a\nb\n", 0600, "line 1 is not NAME:TOKEN"},
    {"a\r\n", 0600, "one line"},
    {"\xFF", 0600, "one line"},
    {"token", 0604, "0600"},
    {"token", 0640, "0600"},
    {"token", 0602, "0600"},
};

TEST_ROWS(security_token_file_is_refused, COUNT(bad_files))
{
    const char *path = write_file(bad_files[row].content, bad_files[row].mode);
    const char *members = test_format("'listen':{'token_file':'%s'}", path);
    expect_word(RUN(78, .mode = SETUP_TCP, .members = members), bad_files[row].word);
    expect_word(RUN(78, .mode = SETUP_TCP, .arguments = {"--token-file", path}),
                bad_files[row].word);
    expect_word(RUN(78, .mode = SETUP_TCP, .arguments = {"--token-file", test_dir()}), "regular");
    expect_word(RUN(78, .mode = SETUP_TCP, .arguments = {"--token-file", "/no/such"}), "No such");
    expect_word(RUN(64, .arguments = {"--token-file", path}), "TCP");
}

TEST(security_longest_token)
{
    const char *path = write_file(test_fill('x', 1025), 0600);
    RUN(78, .mode = SETUP_TCP, .arguments = {"--token-file", path});
    path = write_file(test_format("%s\n", test_fill('x', 1024)), 0600);
    struct client *client = client_connect(START(.mode = SETUP_TCP, .instances = 1,
                                                 .arguments = {"--token-file", path}));
    struct text *line = test_text();
    text_printf(line, "{\"token\":\"");
    for (int i = 0; i < 1024; i++)
        text_printf(line, "\\u0078");
    text_printf(line, "\"}\n");
    client_send_bytes(client, line->data, line->len);
    client_expect_quiet(client);
}

/* --- other machines --- */

/* An address of this machine that is not loopback; 0 if there is none. */
static in_addr_t other_address(void)
{
    struct ifaddrs *all = NULL;
    in_addr_t found = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (struct ifaddrs *each = all; each != NULL; each = each->ifa_next) {
        if (each->ifa_addr != NULL && each->ifa_addr->sa_family == AF_INET &&
            (each->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP)
            found = ((struct sockaddr_in *)(void *)each->ifa_addr)->sin_addr.s_addr;
    }
    freeifaddrs(all);
    return found;
}

/* A connection from that address, which is not the one that it is to. */
static struct client *connect_from_afar(const struct daemon *daemon, in_addr_t from, in_addr_t to)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = from;
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    address.sin_addr.s_addr = to;
    address.sin_port = htons((uint16_t)daemon->port);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return client_adopt(fd, fd);
}

static void expect_refusal(struct client *client)
{
    client_send(client, "{'id':1,'method':'die'}");
    client_error(client, "null", -32000, "listen.token_file");
    client_expect_eof(client);
}

#define ANYWHERE .mode = SETUP_TCP, .instances = 1, .address = "0.0.0.0:0"

TEST(security_other_machines_are_refused)
{
    in_addr_t from = other_address();
    if (from == 0)
        return;
    struct daemon *daemon = START(ANYWHERE);
    struct client *near = client_connect(daemon);
    long pid = client_pid(near, "1", NULL);
    for (int i = 0; i < 100; i++) /* more than may be told the reason at a time */
        client_close(connect_from_afar(daemon, from, htonl(INADDR_LOOPBACK)));
    client_expect_quiet(connect_from_afar(daemon, from, from)); /* to its own address */
    client_expect_quiet(client_connect(daemon));
    struct client *far = connect_from_afar(daemon, from, htonl(INADDR_LOOPBACK));
    daemon_wait_log(daemon, " WARN .*refused .*:[0-9]+: other machines.*token_file.*open");
    client_close(far);
    ck_assert_int_eq(client_pid(near, "2", NULL), pid);
}

TEST(security_other_machines_are_told_why)
{
    in_addr_t from = other_address();
    if (from == 0)
        return;
    struct daemon *daemon = START(ANYWHERE);
    struct client *far = connect_from_afar(daemon, from, htonl(INADDR_LOOPBACK));
    expect_refusal(far);
    client_expect_quiet(client_connect(daemon));
}

/* 0: by the configuration; 1: by the option. */
TEST_ROWS(security_open_listener_serves_other_machines, 2)
{
    in_addr_t from = other_address();
    if (from == 0)
        return;
    const char *members = row == 0 ? "'listen':{'open':true}" : NULL;
    const char *option = row == 0 ? NULL : "--open";
    struct daemon *daemon = START(ANYWHERE, .members = members, .arguments = {option});
    client_expect_quiet(connect_from_afar(daemon, from, htonl(INADDR_LOOPBACK)));
    daemon_stop(daemon);
    const char *path = write_file("token", 0600);
    daemon = START(ANYWHERE, .members = members, .arguments = {"--token-file", path, option});
    struct client *far = connect_from_afar(daemon, from, htonl(INADDR_LOOPBACK));
    client_send(far, "{'token':'token'}");
    client_expect_quiet(far);
    far = connect_from_afar(daemon, from, htonl(INADDR_LOOPBACK));
    client_send(far, "{'id':1,'method':'plain'}");
    client_error(far, "null", -32000, "token");
    ck_assert(!daemon_logged(daemon, "other machines"));
}

TEST(security_open_excludes_a_token_file)
{
    const char *members = test_format("'listen':{'open':true,'token_file':'%s'}",
                                      write_file("token", 0600));
    expect_word(RUN(78, .mode = SETUP_TCP, .members = members), "excludes token_file");
}
