/* doc/security.md: who connects, and what other users of the machine can do. */
#include "build_config.h"

#include <signal.h>
#include <unistd.h>

#include "harness.h"
#include "transport/origin.h"

TEST(security_connections_are_logged)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "echo", NULL);
    daemon_wait_log(daemon, ORIGIN_HAS_CREDENTIALS ? " INFO  \\[client=1\\] connected: uid [0-9]+"
                                                   : " INFO  \\[client=1\\] connected: ");
    client_send(client, "{'id':2,'method':'plain'}");
    client_result(client, "2");
    client_close(client);
    daemon_wait_log(daemon, " INFO  \\[client=1\\] disconnected: .*; 2 messages in \\([0-9]+ bytes"
                            "\\), 2 out \\([0-9]+ bytes\\)$");
}

TEST(security_connections_are_logged_by_uid_and_pid)
{
    if (!ORIGIN_HAS_CREDENTIALS)
        return;
    struct daemon *daemon = START(.instances = 1);
    client_expect_quiet(client_connect(daemon));
    daemon_wait_log(daemon,
                    test_format("connected: uid %ld, gid %ld", (long)geteuid(), (long)getegid()));
}

TEST(security_connections_are_logged_by_address)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1);
    client_expect_quiet(client_connect(daemon));
    daemon_wait_log(daemon, " INFO  \\[client=1\\] connected: 127\\.0\\.0\\.1:[0-9]+$");
}

/* A client that comes and goes does not flood the log. */
TEST(security_reconnecting_client_does_not_flood_the_log)
{
    struct daemon *daemon = START(.instances = 1);
    for (int i = 0; i < 300; i++) {
        struct client *client = client_connect(daemon);
        client_expect_quiet(client);
        client_close(client);
    }
    daemon_signal(daemon, SIGTERM);
    daemon_wait_log(daemon, "more lines left out like \"connected: ");
    daemon_wait_log(daemon, "more lines left out like \"disconnected: ");
    ck_assert_uint_lt(daemon_count_log(daemon, "connected: "), 200);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

int main(void)
{
    return harness_main("security: access");
}
