/* Specification, chapter 8: full tables, and tables with room again. */
#include "build_config.h"

#include "harness.h"

/* The connection over the limit gets an error line and is closed; when another one closes, the next
 * is accepted. */
TEST(spec_8_2_max_connections)
{
    struct client *clients[3];
    if (!proc_available())
        return;
    struct daemon *daemon = START(.instances = 1, .limits = "'max_connections':3");
    int fds = client_settled_fds(daemon, 1);
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(daemon);
        client_expect_quiet(clients[i]);
    }
    struct client *extra = client_connect(daemon);
    client_error(extra, "null", -32000, "max_connections");
    client_expect_eof(extra);
    client_close(extra);
    daemon_wait_log(daemon, " WARN .*max_connections");
    client_close(clients[1]);
    daemon_wait_fds(daemon, fds + 2);
    clients[1] = client_connect(daemon);
    for (int i = 0; i < 3; i++)
        client_expect_quiet(clients[i]);
}

TEST(spec_8_2_max_connections_strict)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_connections':1",
                                  .members = "'strict':true");
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    struct client *extra = client_connect(daemon);
    client_expect_eof(extra);
    client_expect_quiet(client);
}

TEST(spec_8_2_max_sessions)
{
    if (!proc_available())
        return;
    struct daemon *daemon = START(.instances = 2, .limits = "'max_sessions':3");
    int fds = client_settled_fds(daemon, 2) + 1;
    struct client *second = client_connect(daemon);
    client_pid(second, "1", "b");
    struct client *first = client_connect(daemon);
    client_pid(first, "1", "a");
    client_pid(first, "1", "c");
    client_request(second, "'too many'", "d", "echo", NULL);
    client_error(second, "'too many'", -32000, "max_sessions");
    client_request(second, NULL, "d", "die", NULL);
    daemon_wait_log(daemon, " WARN .*max_sessions");
    client_pid(second, "1", "a");
    client_pid(second, "1", "b");
    client_pid(second, "1", "c");
    client_expect_quiet(second);
    client_close(first);
    daemon_wait_fds(daemon, fds);
    client_pid(second, "1", "d");
    client_pid(second, "1", "e");
    client_request(second, "2", "f", "echo", NULL);
    client_error(second, "2", -32000, "max_sessions");
}

TEST(spec_8_2_max_pending_requests)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_pending_requests':4");
    struct client *first = client_connect(daemon), *second = client_connect(daemon);
    client_ask(first, "'h'", "s", "hold", NULL);
    for (int i = 1; i <= 5; i++)
        client_request(first, test_format("%d", i), "s", "echo", NULL);
    client_error(first, "5", -32000, "max_pending_requests");
    client_request(second, "'share'", "s", "echo", NULL); /* design_shares.c */
    client_request(second, "6", "s", "echo", NULL);
    client_error(second, "6", -32000, "max_pending_requests");
    client_request(second, NULL, "s", "release", NULL);
    client_result(second, "'share'");
    for (int i = 1; i <= 4; i++)
        client_result(first, test_format("%d", i));
    client_ask(second, "6", "s", "echo", NULL);
}

/* In strict mode no error is sent, and no client is closed. */
TEST(spec_8_2_full_tables_strict)
{
    struct client *client =
        client_connect(START(.instances = 1, .members = "'strict':true",
                             .limits = "'max_pending_requests':2,'max_sessions':1"));
    client_ask(client, "'h'", "s", "hold", NULL);
    client_request(client, "1", "s", "echo", NULL);
    client_request(client, "2", "t", "echo", NULL);
    client_request(client, "3", "s", "echo", NULL);
    client_request(client, "4", "s", "echo", NULL);
    client_request(client, NULL, "s", "release", NULL);
    client_result(client, "1");
    client_result(client, "3");
    client_expect_quiet(client);
}

/* The default tables have the sizes of the specification; one entry more is refused. */
TEST(spec_8_2_default_max_sessions)
{
    struct text *lines = test_text();
    struct client *client = client_connect(START(.instances = 1));
    for (int i = 0; i < 1025; i++)
        text_printf(lines, "{\"id\":%d,\"sessionId\":\"s%d\",\"method\":\"plain\"}\n", i, i);
    client_send_bytes(client, lines->data, lines->len);
    int errors = 0;
    for (int i = 0; i < 1025; i++) {
        struct span line = client_line(client);
        if (json_get(line, "error").data != NULL) {
            expect_member(line, "id", "1024");
            errors++;
        }
    }
    ck_assert_int_eq(errors, 1);
}

TEST(spec_8_2_default_max_pending_requests)
{
    struct client *client = client_connect(START(.instances = 1));
    client_ask(client, "'h'", NULL, "hold", NULL);
    client_send_plain(client, NULL, 4097);
    client_error(client, "4096", -32000, "max_pending_requests");
    client_request(client, NULL, NULL, "release", NULL);
    client_expect_plain(client, NULL, 4096);
    client_expect_quiet(client);
}
