/* doc/protocol.md, Sessions and connections: the end of a client's input. */
#include "build_config.h"

#include "harness.h"

/* A TCP client closes while its request is unanswered, which nobody can tell from a half-close. Its
 * connection, session and pending request are gone after half_close_sec. */
TEST(design_closed_tcp_client_is_noticed)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1,
                                  .arguments = {"--log-level", "debug"},
                                  .limits = "'half_close_sec':1,'max_pending_requests':1,"
                                            "'max_sessions':1,'max_connections':2");
    struct client *helper = client_connect(daemon), *closing = client_connect(daemon);
    client_pid(helper, "1", NULL);
    int fds = proc_fd_count(daemon->pid);
    client_request(closing, "1", "s", "no_answer", NULL);
    daemon_wait_log(daemon, "forwarding a message \\(id 1, sessionId s\\)");
    client_close(closing);
    daemon_wait_log(daemon, "client=2.*disconnected.*half_close_sec");
    daemon_wait_fds(daemon, fds - 1);
    client_ask(helper, "2", "t", "plain", NULL);
    client_expect_quiet(client_connect(daemon));
}

/* A request that takes less than half_close_sec is answered, and so is one that takes longer on a
 * Unix socket. */
TEST_ROWS(design_half_closing_client_gets_its_answers, 2)
{
    struct daemon *daemon = START(.mode = row == 0 ? SETUP_TCP : SETUP_UNIX, .instances = 1,
                                  .limits = row == 0 ? "'half_close_sec':3600"
                                                     : "'half_close_sec':1");
    struct client *helper = client_connect(daemon), *half = client_connect(daemon);
    client_ask(helper, "1", NULL, "hold", NULL);
    client_request(half, "1", NULL, "plain", "'one'");
    client_request(half, "2", "s", "plain", "'two'");
    client_half_close(half);
    for (int64_t until = now_ms() + 1200; row == 1 && now_ms() < until;)
        nap();
    client_request(helper, "3", NULL, "release", NULL);
    client_expect(half, "{'jsonrpc':'2.0','id':1,'result':'one'}");
    client_expect(half, "{'jsonrpc':'2.0','id':2,'sessionId':'s','result':'two'}");
    client_expect_eof(half);
}

/* A client that first shuts down its sending side and closes later is gone at once: a Unix socket
 * reports a close, and the reset after a write to a TCP socket does. */
TEST_ROWS(design_close_after_a_half_close_is_noticed, 2)
{
    struct daemon *daemon = START(.mode = row == 0 ? SETUP_UNIX : SETUP_TCP, .instances = 1,
                                  .arguments = {"--log-level", "debug"},
                                  .limits = "'max_pending_requests':1");
    struct client *helper = client_connect(daemon), *half = client_connect(daemon);
    client_pid(helper, "1", NULL);
    client_request(half, "1", "s", "no_answer", NULL);
    client_half_close(half);
    daemon_wait_log(daemon, "forwarding a message \\(id 1, sessionId s\\)");
    client_close(half);
    if (row == 1) {
        client_send(helper, "{'method':'notify','sessionId':'s','params':{'n':2}}");
        daemon_wait_log(daemon, "forwarding a message .*worker");
    }
    daemon_wait_log(daemon, "client=2.*disconnected");
    client_ask(helper, "2", "t", "plain", NULL);
}
