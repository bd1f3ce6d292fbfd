/* doc/security.md: a client cannot flood the log, nor hide the lines of others in it. */
#include "build_config.h"

#include "harness.h"

#define SOME 100
#define STORM 40 /* a few times as many lines as are written in a row */

/* Lines are left out of each five seconds; a slow machine takes several times as long. */
static void expect_few(struct daemon *daemon, const char *pattern, int64_t start)
{
    ck_assert_uint_le(daemon_count_log(daemon, pattern),
                      STORM * (size_t)(1 + (now_ms() - start) / 5000));
}

#define POOL_OF(keys) "{'id':'p','command':'@WORKER@'," keys "}"

/* Two clients take a session from each other. The summary needs no further line. */
TEST(security_moved_sessions_do_not_flood_the_log)
{
    steps_without("they take longer than a few lines may");
    struct daemon *daemon = START(.pools = POOL_OF("'instances':1,'protocol':'acp'"));
    struct client *clients[] = {client_connect(daemon), client_connect(daemon)};
    client_request(clients[0], "0", NULL, "plain", "{'result':{'sessionId':'s'}}");
    client_result(clients[0], "0");
    int64_t start = now_ms();
    for (int i = 0; i < SOME; i++) {
        client_request(clients[i % 2], "1", NULL, "plain", "{'result':{}}");
        client_result(clients[i % 2], "1");
        client_request(clients[i % 2], "2", NULL, "session/load", "{'sessionId':'s','n':1}");
        client_line(clients[i % 2]);
        client_result(clients[i % 2], "2");
    }
    expect_few(daemon, "INFO .* lost the session s: ", start);
    daemon_wait_log(daemon, "INFO  [0-9]+ more lines left out within [0-9] s, the first: "
                            "\\[client=[12]\\] lost the session s: ");
}

/* With a small limit a message that is too long costs little. The first are errors each, with the
 * client; the summary has their number (spec 7.3.2). */
TEST(security_too_long_messages_do_not_flood_the_log)
{
    steps_without("they take longer than a few lines may");
    struct daemon *daemon = START(.instances = 1, .limits = "'max_input_buffer':1024");
    struct text *line = test_text();
    text_printf(line, "{\"id\":1,\"method\":\"");
    text_fill(line, 'x', 2000);
    int64_t start = now_ms();
    for (int i = 0; i < SOME; i++) {
        struct client *client = client_connect(daemon);
        client_send_bytes(client, line->data, line->len);
        client_line(client);
        client_close(client);
    }
    expect_few(daemon, "ERROR .*client=[0-9]+\\] unacceptable", start);
    daemon_wait_log(daemon, "ERROR .* more lines of .* left out within .* unacceptable");
}

/* A client that comes and goes has a process each time. */
TEST(security_processes_of_clients_do_not_flood_the_log)
{
    steps_without("they take longer than a few lines may");
    struct daemon *daemon = START(.pools = POOL_OF("'instances':1,'clients':'exclusive'"));
    int64_t start = now_ms();
    for (int i = 0; i < SOME; i++) {
        struct client *client = client_connect(daemon);
        client_pid(client, "1", NULL);
        client_close(client);
    }
    expect_few(daemon, "\\] started .* for pool", start);
    expect_few(daemon, "\\] exited with status 0$", start);
    daemon_wait_log(daemon, "INFO  [0-9]+ more lines? left out within .* started .* for pool p$");
    daemon_wait_log(daemon, "INFO  [0-9]+ more lines? left out within .* exited with status 0$");
}

/* Each crash is logged, also of many workers at once. */
TEST(design_no_crash_is_left_out_of_the_log)
{
    long pids[3 * STORM];
    struct daemon *daemon = START(.instances = COUNT(pids), .args = "'--stay'");
    struct client *client = client_connect(daemon);
    client_meet_workers(client, COUNT(pids), pids);
    for (size_t i = 0; i < COUNT(pids); i++)
        kill((pid_t)pids[i], SIGKILL);
    WAIT_UNTIL(daemon_count_log(daemon, " WARN .*worker=.* was killed by SIGKILL$") == COUNT(pids),
               "a crash is not logged");
}
