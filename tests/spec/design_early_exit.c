/* DESIGN, "A server that cannot start", in the pools of a configuration: what clients and the log
 * say, and how often it is started. The pool key "stderr" of stdio_bus.conf(5). */
#include "build_config.h"

#include "harness.h"

#define EARLY "before it has answered anything"
#define BROKEN(keys) "{'id':'p','command':'sh','args':['-c','" SCRIPT "']," keys "}"
#define SCRIPT "echo broken as ever >&2; exit 3"

/* The status is for all clients, the stderr for the log alone. */
TEST(design_client_is_told_the_status_of_a_process_that_does_not_start)
{
    struct daemon *daemon =
        START(.pools = BROKEN(
                  "'instances':4,'protocol':'mcp','clients':'exclusive','spare':2,'stderr':'log'"));
    daemon_wait_log(daemon, "pool=p\\] stderr: broken as ever");
    daemon_wait_log(daemon, "before it has answered anything: broken as ever");
    for (int i = 0; i < 3; i++) {
        struct client *client = client_connect(daemon);
        client_request(client, "1", NULL, "initialize", NULL);
        client_error(client, "1", -32000,
                     "worker exited before answering: it exited with status 3");
        client_close(client);
    }
    ck_assert_uint_le(daemon_count_log(daemon, "started sh"), 12);
    ck_assert_uint_eq(daemon_count_log(daemon, "giving up"), 0);
}

/* One of two processes exits before its first answer while the other one serves, or before any
 * client is there: a crash as any, once the other one serves. */
TEST_ROWS(design_shared_pool_is_complete_again_after_an_early_exit, 3)
{
    struct daemon *daemon =
        START(.pools = test_format("{'id':'p','command':'@WORKER@','instances':2,'protocol':'mcp',"
                                   "'clients':'sticky','ids':'%s'}",
                                   row == 2 ? "preserve" : "rewrite"));
    struct client *client = client_connect(daemon);
    pid_t workers[2], serves = 0;

    if (row == 0) {
        client_ask(client, "1", NULL, "initialize", "{'protocolVersion':'2025-11-25'}");
        serves = (pid_t)client_pid(client, "2", NULL);
    }
    daemon_wait_workers(daemon, 2);
    ck_assert_uint_eq(daemon_workers(daemon, workers, 2), 2);
    kill(workers[0] == serves ? workers[1] : workers[0], SIGKILL);
    daemon_wait_log(daemon, EARLY);
    if (row != 0)
        client_ask(client, "1", NULL, "initialize", "{'protocolVersion':'2025-11-25'}");
    daemon_wait_workers(daemon, 2);
    if (row == 0)
        ck_assert_int_eq(client_pid(client, "3", NULL), serves);
    daemon_stop(daemon);
}

/* A process serves the clients without a handshake, and the other one, which has ended early, would
 * be restarted after 6 seconds, and then after 25: for a client with a handshake it is sooner. */
TEST(design_client_waits_for_no_restart_of_a_shared_process)
{
    const char *flag = test_format("%s/flag", test_dir());
    struct daemon *daemon;
    struct client *stateless, *client;
    pid_t workers[2], serves;

    fclose(fopen(flag, "w"));
    daemon = START(.pools = test_format("{'id':'p','command':'sh','args':['-c',"
                                        "'test -e %s || exit 3; exec @WORKER@'],'instances':2,"
                                        "'protocol':'mcp','clients':'sticky'}",
                                        flag));
    stateless = client_connect(daemon);
    client_send(stateless, "{'id':1,'method':'echo','params':{'_meta':{"
                           "'io.modelcontextprotocol/protocolVersion':'2026-07-28'}}}");
    serves = (pid_t)json_number(client_result(stateless, "1"), "pid");
    daemon_wait_workers(daemon, 2);
    ck_assert_uint_eq(daemon_workers(daemon, workers, 2), 2);
    ck_assert_int_eq(unlink(flag), 0);
    kill(workers[0] == serves ? workers[1] : workers[0], SIGKILL);
    WAIT_UNTIL(daemon_count_log(daemon, EARLY) == 4, "it has not ended four times");
    client = client_connect(daemon);
    client_request(client, "1", NULL, "initialize", "{'protocolVersion':'2025-11-25'}");
    client_error(client, "1", -32000, "worker exited before answering: it exited with status 3");
    daemon_stop(daemon);
}

/* Its stdin breaks first, then its stdout ends, and then comes the exit. */
TEST(design_client_is_told_the_status_after_stdin_has_broken)
{
    struct daemon *daemon =
        START(.pools = "{'id':'p','command':'sh','args':['-c',"
                       "'trap : TERM; exec <&-; echo closed >&2; sleep 1; exec >&-; sleep 0.3; "
                       "exit 3'],'instances':1,'stderr':'log'}");
    struct client *client = client_connect(daemon);
    daemon_wait_log(daemon, "stderr: closed");
    client_request(client, "1", NULL, "echo", NULL);
    client_error(client, "1", -32000, "worker exited before answering: it exited with status 3");
    ck_assert(daemon_logged(daemon, "its stdin is closed"));
}

TEST(design_stderr_of_a_worker_is_attributed_to_it)
{
    struct daemon *daemon =
        START(.pools = "{'id':'one','command':'sh','args':['-c','echo hello >&2; exec @WORKER@'],"
                       "'instances':1,'stderr':'log'}");
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "echo", NULL);
    daemon_wait_log(daemon, "pool=one\\] stderr: hello");
    client_close(client);
}
