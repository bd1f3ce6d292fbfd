/* DESIGN, "A server that cannot start", with --share: what its clients, the log and --list say, and
 * how often it is started. */
#include "build_config.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "harness.h"
#include "share.h"

#define FAILS "echo 'starting' >&2; echo 'Error: API_KEY is not set' >&2; exit 3"

static const char *const list[] = {"--list", NULL}, *const list_json[] = {"--list", "--json", NULL};

TEST(design_share_says_why_a_server_does_not_start)
{
    struct sharer *sharer = SHARE(.command = {"sh", "-c", FAILS});
    client_request(sharer->client, "1", NULL, "initialize", NULL);
    client_error(sharer->client, "1", -32000,
                 test_format("server exited with status 3 before answering: "
                             "Error: API_KEY is not set (log: %s/",
                             share_dir()));
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 69);
    expect_word(share_errors(sharer), "server exited with status 3 before answering");
    expect_word(share_errors(sharer), "stderr: starting\n");
    expect_word(share_errors(sharer), "stderr: Error: API_KEY is not set\n");
    ck_assert_uint_ge(share_logged("pool=sh\\] stderr: Error: API_KEY is not set"), 1);
    ck_assert_uint_ge(share_logged("it exited with status 3 before it has answered anything: "
                                   "Error: API_KEY is not set"),
                      1);
    expect_word(share_run(list, 0), " does not start: server exited with status 3");
    expect_word(share_run(list_json, 0), "\"failure\":\"server exited with status 3");
}

/* The interpreter of a script is gone. The daemon stays, so that each client gets the reason. */
TEST(design_share_says_why_a_server_cannot_be_executed)
{
    const char *script = test_format("%s/script", test_dir());
    FILE *file;

    if (getenv("STDIO_BUS_WRAPPER") != NULL)
        return; /* under valgrind exec does not fail, but valgrind does */
    file = fopen(script, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("#!/not/there\n", file), 0);
    ck_assert_int_eq(fchmod(fileno(file), 0700), 0);
    ck_assert_int_eq(fclose(file), 0);
    for (int i = 0; i < 2; i++) {
        struct sharer *sharer = SHARE(.command = {script});

        client_request(sharer->client, "1", NULL, "initialize", NULL);
        client_error(sharer->client, "1", -32000,
                     "server cannot be executed: No such file or directory (it, or what its first "
                     "line names) (log: ");
        share_expect_exit(sharer, 69);
        expect_word(share_errors(sharer), "server cannot be executed: No such file or directory");
    }
    ck_assert_uint_eq(share_logged("listening on"), 1);
    expect_word(share_run(list, 0), " does not start: server cannot be executed");
}

/* The log ends there, and the daemon goes on. */
TEST(design_share_goes_on_at_the_file_size_limit)
{
    struct rlimit limit, low;
    struct sharer *sharer;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    low = limit;
    low.rlim_cur = 2048;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &low), 0);
    sharer = SHARE(.command = {"sh", "-c",
                               "for i in 0 1 2 3 4 5 6 7; do echo \"$i $0 $0 $0 $0\" >&2; done; "
                               "exec \"$TEST_WORKER\"",
                               test_fill('x', 100)});
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    client_ask(sharer->client, "1", NULL, "echo", NULL);
    ck_assert_uint_eq(share_logged("listening on"), 1);
    ck_assert_uint_eq(share_logged("stderr: 7"), 0);
    share_finish(sharer);
}

/* It waits for the server to begin, and is not read meanwhile. */
TEST(design_share_sees_a_client_that_is_killed_while_it_waits)
{
    struct sharer *sharer = SHARE(.command = {"sleep", "1000"}, .idle_exit = "1");
    pid_t daemon;

    client_request(sharer->client, "1", NULL, "initialize", NULL);
    WAIT_UNTIL(share_logged("client=1\\] connected") == 1, "not connected");
    daemon = share_daemon();
    kill(sharer->pid, SIGKILL);
    share_wait_gone(daemon);
}

/* Without a client it is not started again: no restart is even planned. */
TEST(design_share_starts_a_broken_server_for_clients_alone)
{
    for (size_t n = 1; n <= 3; n++) {
        struct sharer *sharer =
            SHARE(.command = {"sh", "-c", FAILS},
                  .arguments = {"--clients", n % 2 == 0 ? "exclusive" : "sticky"});
        client_request(sharer->client, "1", NULL, "initialize", NULL);
        client_error(sharer->client, "1", -32000, "API_KEY is not set");
        share_expect_exit(sharer, 69);
    }
    size_t started = share_logged("started sh");
    ck_assert_uint_le(started, 9);
    /* Two looks at the daemons are rounds of theirs. */
    share_run(list, 0);
    share_run(list, 0);
    ck_assert_uint_eq(share_logged("started sh"), started);
}

TEST(design_share_goes_on_when_the_server_starts_again)
{
    const char *flag = test_format("FLAG=%s/flag", test_dir());
    struct share_setup setup = {
        .command = {"sh", "-c", "test -e \"$FLAG\" || exit 3; exec \"$TEST_WORKER\""},
        .env = {flag}};
    struct sharer *sharer = share_with(&setup);
    client_request(sharer->client, "1", NULL, "echo", NULL);
    client_error(sharer->client, "1", -32000, "server exited with status 3 before answering (log:");
    share_expect_exit(sharer, 69);
    FILE *file = fopen(flag + strlen("FLAG="), "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    sharer = share_with(&setup);
    client_ask(sharer->client, "1", NULL, "echo", NULL);
    ck_assert_ptr_null(strstr(share_run(list, 0), "does not start"));
    share_finish(sharer);
}
