/* stdio_bus(1), a command after "--": a pool without a configuration. */
#include "build_config.h"

#include <sys/wait.h>

#include "harness.h"
#include "share.h"

#define COMMAND(...) .no_config = true, .arguments = {__VA_ARGS__}

TEST(design_command_is_the_server_on_stdin)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .default_mode = true,
                                  COMMAND("--", "@WORKER@", "--name", "a b"));
    struct client *client = client_stdio(daemon);
    expect_member(client_ask(client, "1", NULL, "echo", NULL), "worker", "'a b'");
    client_send(client, "{'method':'say_only','params':{'message':{'method':'n'}}}");
    client_expect(client, "{'method':'n'}"); /* what no session names reaches the client too */
    client_finish(client, daemon);
}

TEST(design_command_is_started_again)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, COMMAND("--", "@WORKER@"));
    struct client *client = client_stdio(daemon);
    long pid = client_pid(client, "1", NULL);
    client_crash(client, "2", NULL, NULL);
    ck_assert_int_ne(client_pid(client, "3", NULL), pid);
    client_finish(client, daemon);
}

TEST(design_command_on_a_socket)
{
    struct daemon *daemon = START(COMMAND("--instances", "3", "--", "@WORKER@"));
    long pids[3];
    daemon_wait_workers(daemon, 3);
    client_meet_workers(client_connect(daemon), 3, pids);
    daemon_stop(daemon);
}

TEST(design_command_with_a_protocol)
{
    struct daemon *daemon = START(.mode = SETUP_TCP,
                                  COMMAND("--protocol", "mcp", "--", "@WORKER@"));
    struct client *one = client_connect(daemon), *other = client_connect(daemon);
    ck_assert_int_ne(client_pid(one, "1", NULL), client_pid(other, "1", NULL));
    daemon_wait_workers(daemon, 3); /* one is kept for the next client */
}

TEST(design_command_with_clients)
{
    struct daemon *daemon = START(COMMAND("--protocol=mcp", "--clients=sticky", "--", "@WORKER@"));
    struct client *one = client_connect(daemon), *other = client_connect(daemon);
    ck_assert_int_eq(client_pid(one, "1", NULL), client_pid(other, "1", NULL));
    daemon_wait_workers(daemon, 1);
}

/* The pool has the name of the program. */
TEST(design_command_names_the_pool)
{
    struct daemon *daemon = START(COMMAND("--", "@WORKER@"));
    struct client *client = client_connect(daemon);
    client_send(client, "{'id':1,'pool':'test_worker','method':'echo'}");
    client_result(client, "1");
    client_send(client, "{'id':2,'pool':'other','method':'echo'}");
    client_error(client, "2", -32602, "no such pool");
}

/* No process waits for a second client that cannot come. */
TEST(design_command_has_no_spare_process_on_stdin)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO,
                                  COMMAND("--protocol", "mcp", "--", "@WORKER@"));
    struct client *client = client_stdio(daemon);
    client_pid(client, "1", NULL);
    daemon_wait_workers(daemon, 1);
    client_finish(client, daemon);
}

TEST(design_command_that_does_not_exist)
{
    const char *err;
    setenv("PATH", "/bin:/no/such/place", 1);
    err = RUN(78, .mode = SETUP_STDIO, COMMAND("--", "no-such-program", "a"));
    expect_word(err, "command line: command: cannot run \"no-such-program\"");
    expect_word(err, "\"command -v no-such-program\" in a terminal");
    expect_word(err, "PATH is \"/bin:/no/such/place\"");
}

TEST(design_command_and_configuration_exclude_each_other)
{
    expect_word(RUN(64, .mode = SETUP_STDIO, .arguments = {"--", "@WORKER@"}),
                "--config and a command after -- exclude each other");
    expect_word(RUN(64, .mode = SETUP_STDIO, .arguments = {"--instances", "2"}),
                "--instances is for a command after --");
}

TEST(design_command_is_checked)
{
    const char *err = RUN(0, .mode = SETUP_STDIO, COMMAND("--check-config", "--", "@WORKER@"));
    expect_word(err, "the configuration is valid: 1 pool");
    err = RUN(78, .mode = SETUP_STDIO,
              COMMAND("--check-config", "--strict", "--clients=shared", "--protocol=mcp",
                      "--instances=2", "--", "@WORKER@"));
    expect_word(err, "command line: clients: ");
}

/* Of a valid configuration, on one line of stdout; the reasons are in the log alone. */
TEST(design_check_config_json_has_the_pools)
{
    const char *path = test_format("%s/pools.json", test_dir());
    const char *const words[] = {"--config", path, "--check-config", "--json", NULL};
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("{\"pools\":[{\"id\":\"a \\\"b\",\"command\":\"cat\",\"instances\":2},"
          "{\"id\":\"m\",\"command\":\"cat\",\"instances\":3,\"protocol\":\"mcp\"}]}",
          file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_str_eq(
        share_run(words, 0),
        "{\"pools\":["
        "{\"pool\":\"a \\\"b\",\"protocol\":null,\"sharing\":\"shared\",\"instances\":2},"
        "{\"pool\":\"m\",\"protocol\":\"mcp\",\"sharing\":\"exclusive\","
        "\"instances\":3}],\"total\":2}\n");
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("{\"pools\":[]}", file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_str_eq(share_run(words, 78), "");
}

/* What is written to a stdout that the parent has closed is not lost without a word. */
TEST_ROWS(design_closed_stdout_is_an_error, 4)
{
    const struct {
        const char *words;
        int status;
    } runs[] = {{"--version", 71}, {"--help", 71}, {"--schema", 71}, {"--connect", 74}};
    const char *program = getenv("STDIO_BUS");
    const char *command = test_format("echo '{\"id\":1,\"method\":\"echo\"}' | '%s' %s",
                                      program != NULL ? program : "./stdio_bus", runs[row].words);
    int status;
    if (runs[row].status == 74)
        command = test_format("%s '%s'", command, START(.instances = 1)->socket_path);
    status = system(test_format("%s >&- 2>'%s/err'", command, test_dir()));
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), runs[row].status);
}
