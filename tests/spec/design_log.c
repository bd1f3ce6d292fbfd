/* stdio_bus(1): the formats of the log and its places. */
#include "build_config.h"

#include "harness.h"
#include "manager.h"

#define TWO_POOLS POOL("a b", 1, "") "," POOL("c", 1, "")

/* Every line that names a worker names its pool, before and after its exit. */
TEST(design_log_names_the_pool_of_a_worker)
{
    struct daemon *daemon = START(.pools = TWO_POOLS);
    struct client *client = client_connect(daemon);
    daemon_wait_log(daemon, "\\[worker=1 pid=[0-9]+ pool=\"a b\"\\] started ");
    daemon_wait_log(daemon, "\\[worker=2 pid=[0-9]+ pool=c\\] started ");
    client_send(client, "{'id':1,'pool':'c','method':'die','params':{'code':3}}");
    client_error(client, "1", -32000, DIED);
    daemon_wait_log(daemon, "\\[worker=2 pid=[0-9]+ pool=c\\] .*status 3");
    daemon_stop(daemon);
}

/* A worker that floods its stderr still answers, and the log is bounded. */
TEST(design_flood_of_stderr_is_bounded)
{
    struct daemon *daemon =
        START(.pools = "{'id':'one','command':'sh','args':['-c','yes flood >&2 & exec @WORKER@'],"
                       "'instances':1,'stderr':'log'}");
    struct client *client = client_connect(daemon);
    for (int i = 1; i <= 50; i++)
        client_ask(client, test_format("%d", i), NULL, "echo", NULL);
    daemon_wait_log(daemon, "more lines of its stderr within 10 seconds are left out");
    client_ask(client, "'last'", NULL, "echo", NULL);
    ck_assert_uint_le(daemon_count_log(daemon, "stderr: flood"), 300);
    client_close(client);
}

TEST(design_log_is_json)
{
    struct daemon *daemon = START(.pools = TWO_POOLS, .arguments = {"--log-format", "json"});
    const char *line = daemon_wait_log(daemon, "\"pool\":\"a b\"");
    expect_member(span_of(line), "worker", "1");
    expect_member(span_of(line), "level", "'info'");
    expect_word(line, "\"message\":\"started ");
    daemon_stop(daemon);
}

TEST(design_log_is_logfmt_in_a_file)
{
    struct daemon *daemon =
        START(.pools = TWO_POOLS, .no_wait = true,
              .arguments = {"--log-format", "logfmt", "--log-file", "@DIR@/test-log"});
    WAIT_UNTIL(access(test_format("%s/test-log", daemon->dir), R_OK) == 0, "no log");
    daemon_wait_workers(daemon, 2);
    int fd = open(test_format("%s/test-log", daemon->dir), O_RDONLY);
    char text[2000] = "";
    WAIT_UNTIL(pread(fd, text, sizeof text - 1, 0) > 0 && strstr(text, "pool=c") != NULL, "%s",
               text);
    expect_word(text, " level=info worker=1 pid=");
    expect_word(text, " pool=\"a b\" msg=\"started ");
    close(fd);
    daemon_stop(daemon);
}

/* systemd says which file is the journal; stderr may be another one. */
TEST_ROWS(design_log_for_the_journal_is_chosen, 3)
{
    struct stat status;
    char text[4000];
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fstat(ends[1], &status), 0);
    setenv("JOURNAL_STREAM",
           test_format("%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino + (row == 1)),
           1);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .stderr_fd = ends[1],
                                  .arguments = {row == 2 ? "--log-format" : NULL, "text"});
    client_ask(client_stdio(daemon), "1", NULL, "echo", NULL);
    ck_assert(wait_fd(ends[0], 1, deadline_usual()));
    ssize_t len = read(ends[0], text, sizeof text - 1);
    ck_assert_int_gt(len, 0);
    text[len] = '\0';
    if (row == 0)
        ck_assert_msg(strncmp(text, "<6>[worker=1 pid=", 17) == 0, "%s", text);
    else
        ck_assert_msg(text[4] == '-' && strstr(text, " INFO  [worker=1") != NULL, "%s", text);
    daemon_stop(daemon);
}

TEST(design_log_goes_to_the_system_log)
{
    struct manager *manager = manager_open(false);
    struct daemon *daemon = START(.no_wait = true,
                                  .arguments = {test_format("--log-syslog=%s", manager->name)});
    manager_wait(manager, "^<30>[A-Z][a-z][a-z] [ 0-9][0-9] [0-9:]{8} stdio_bus\\[[0-9]+\\]: "
                          "listening on ");
    manager_wait(manager, "^<30>.*\\]: \\[worker=1 pid=[0-9]+ pool=pool\\] started ");
    daemon_stop(daemon);
    manager_wait(manager, "^<30>.*\\]: stopped$");
}

/* A system log that is not there is an error at the start, and no reason to stop later. */
TEST(design_log_of_a_lost_system_log)
{
    struct manager *manager = manager_open(false);
    struct daemon *daemon = START(.no_wait = true,
                                  .arguments = {test_format("--log-syslog=%s", manager->name)});
    manager_wait(manager, "started ");
    close(manager->fd);
    manager->fd = -1;
    client_ask(client_connect(daemon), "1", NULL, "echo", NULL);
    daemon_stop(daemon);
    expect_word(RUN(78, .mode = SETUP_STDIO, .arguments = {"--log-syslog=/none/such"}),
                "cannot reach the system log at /none/such: ");
}

/* A request is followed by its ids: that of the client, and the daemon's. */
TEST(design_log_shows_the_way_of_a_request)
{
    struct daemon *daemon =
        START(.pools = "{'id':'p','command':'@WORKER@','instances':1,'protocol':'mcp',"
                       "'clients':'sticky'}",
              .arguments = {"--log-level", "debug"});
    struct client *client = client_connect(daemon);
    client_ask(client, "'abc'", NULL, "echo", NULL);
    const char *line = daemon_wait_log(
        daemon, "\\[client=1\\] forwarding a message \\(id abc, sessionId none\\) to worker=1 "
                "pid=[0-9]+ pool=p as id [0-9]+$");
    const char *number = test_format("%s", strrchr(line, ' ') + 1);
    daemon_wait_log(daemon,
                    test_format("\\[worker=1 .*\\] forwarding a message \\(id %s, sessionId "
                                "none\\) to client=1 as id abc$",
                                number));
    daemon_stop(daemon);
}
