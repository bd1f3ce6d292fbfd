/* stdio_bus(1), --stop, --restart, --forget and --log: what a user does with a shared server. */
#include "build_config.h"

#include "harness.h"
#include "share.h"

#define INITIALIZE "{'protocolVersion':'2025-11-25','capabilities':{},'result':" ANSWER "}"
#define ANSWER "{'protocolVersion':'2025-11-25','capabilities':{'tools':{'listChanged':true}}}"

static void initialize(const struct sharer *sharer)
{
    client_request(sharer->client, "'i'", NULL, "initialize", INITIALIZE);
    client_result(sharer->client, "\"i\"");
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
}

/* Of a process that has got the handshake of the client. */
static long pid_of(const struct sharer *sharer)
{
    struct span line;
    client_request(sharer->client, "'p'", NULL, "echo", NULL);
    do
        line = client_line(sharer->client); /* after "list_changed", perhaps */
    while (json_get(line, "id").data == NULL);
    return (long)json_number(json_get(line, "result"), "pid");
}

static struct sharer *share_tools(void)
{
    struct sharer *sharer = SHARE(.share = "--share=tools");
    initialize(sharer);
    return sharer;
}

static const char *care(const char *option, const char *name)
{
    const char *const words[] = {option, name, NULL};
    return share_run(words, 0);
}

/* What it says of a failure. */
static const char *care_fails(const char *option, const char *name, int status)
{
    struct sharer *sharer = SHARE(.share = option, .arguments = {name}, .whole = true);
    share_expect_exit(sharer, status);
    return share_errors(sharer);
}

static void expect_state(const char *state, const char *processes)
{
    static const char *const words[] = {"--list", "--json", NULL};
    const char *shown = share_run(words, 0);
    struct span shared = json_get((struct span){shown, strlen(shown)}, "shared.0");
    ck_assert_msg(span_is(json_text(json_get(shared, "state")), state), "not %s: %s", state, shown);
    ck_assert_msg(span_is(json_get(shared, "processes"), processes), "%s", shown);
}

/* --- restart --- */

TEST(design_restart_keeps_clients)
{
    struct sharer *first = share_tools(), *second = share_tools();
    long pid = pid_of(first);
    ck_assert_int_eq(pid_of(second), pid);
    pid_t daemon = share_daemon();
    const char *said = care("--restart", "tools");
    expect_word(said, "tools@");
    expect_word(said, test_format("in place of %ld; 2 clients stay connected\n", pid));
    expect_state("awake", "1");
    long next = pid_of(first);
    ck_assert_int_ne(next, pid);
    expect_word(said, test_format("process %ld in place", next));
    ck_assert_int_eq(pid_of(second), next);
    ck_assert_int_eq(share_daemon(), daemon);
    ck_assert_uint_eq(share_logged(" WARN "), 0);
    share_finish(first);
    share_finish(second);
}

/* The server is named by the process ID of its daemon. */
TEST(design_restart_without_clients)
{
    struct sharer *sharer = share_tools();
    long pid = pid_of(sharer);
    share_finish(sharer);
    const char *said = care("--restart", test_format("%ld", (long)share_daemon()));
    expect_word(said, test_format("in place of %ld\n", pid));
}

/* A request in flight is answered by the process that has it. The next one waits. */
TEST(design_restart_waits_for_requests)
{
    static const char *const restart[] = {"--restart", "tools", NULL};
    struct sharer *first = share_tools(), *second = share_tools();
    long pid = pid_of(first);
    client_request(first->client, "1", NULL, "ask", "{'id':'q','method':'roots/list'}");
    struct span question = client_line(first->client);
    const char *id = test_format("%.*s", SHOWN(json_get(question, "id")));
    pid_t restarting = share_start(restart);
    struct span line;
    int64_t until = now_ms() + 300;
    client_request(second->client, "'p'", NULL, "echo", NULL);
    while (client_line_before(second->client, until, &line))
        client_request(second->client, "'p'", NULL, "echo", NULL); /* the restart comes later */
    client_send(first->client, "{'jsonrpc':'2.0','id':%s,'result':{}}", id);
    client_result(first->client, "1");
    share_wait_gone(restarting);
    ck_assert_uint_eq(share_logged("is not waited for any longer"), 0);
    client_line(second->client);
    ck_assert_int_ne(pid_of(first), pid);
}

/* At most five seconds. */
TEST(design_restart_ends_requests_that_take_long)
{
    struct sharer *sharer = share_tools();
    long pid = pid_of(sharer);
    client_request(sharer->client, "1", NULL, "no_answer", NULL);
    client_expect_quiet(sharer->client);
    int64_t start = now_ms();
    care("--restart", "tools");
    ck_assert_int_ge(now_ms() - start, 4900);
    client_error(sharer->client, "1", -32000, "worker exited before answering");
    ck_assert_int_ne(pid_of(sharer), pid);
    ck_assert_uint_eq(share_logged("restart, asked for by the user; what is in flight"), 1);
}

TEST(design_restart_of_processes_of_one_client_each)
{
    struct sharer *sharers[2];
    long pids[2];
    for (int i = 0; i < 2; i++) {
        sharers[i] = SHARE(.share = "--share=tools", .arguments = {"--clients", "exclusive"});
        initialize(sharers[i]);
        pids[i] = pid_of(sharers[i]);
    }
    care("--restart", "tools");
    for (int i = 0; i < 2; i++)
        ck_assert_int_ne(pid_of(sharers[i]), pids[i]);
}

TEST(design_restart_of_a_server_that_does_not_start)
{
    struct sharer *sharer = SHARE(.share = "--share=tools", .idle_exit = "20",
                                  .command = {"sh", "-c", "echo why >&2; exit 3"});
    client_request(sharer->client, "1", NULL, "echo", NULL);
    share_expect_exit(sharer, 69);
    const char *said = care_fails("--restart", "tools", 69);
    expect_word(said, "does not start");
    expect_word(said, "exited with status 3");
}

/* --- stop --- */

TEST(design_stop_keeps_clients)
{
    struct sharer *first = share_tools(), *second = share_tools();
    long pid = pid_of(first);
    expect_word(care("--stop", "tools"), "stopped; 2 clients stay connected");
    expect_state("asleep", "0");
    share_wait_gone((pid_t)pid);
    expect_word(care("--restart", "tools"), "no process runs; the next message starts one\n");
    long next = pid_of(first);
    ck_assert_int_ne(next, pid);
    ck_assert_int_eq(pid_of(second), next);
    expect_state("awake", "1");
    share_finish(first);
    share_finish(second);
}

/* Whoever comes next finds the server as it always does. */
TEST(design_stopped_server_starts_for_the_next_client)
{
    struct sharer *first = share_tools();
    long pid = pid_of(first);
    care("--stop", "tools");
    struct sharer *next = share_tools();
    ck_assert_int_ne(pid_of(next), pid);
    ck_assert_int_eq(pid_of(first), pid_of(next));
}

TEST(design_stop_without_clients)
{
    static const char *const list[] = {"--list", NULL};
    struct sharer *sharer = share_tools();
    long pid = pid_of(sharer);
    share_finish(sharer);
    expect_word(care("--stop", "tools"), "stopped, and its daemon with it\n");
    ck_assert_str_eq(share_run(list, 0), "nothing is shared\n");
    share_wait_gone((pid_t)pid);
}

/* The state of an agent cannot be made again. Nothing starts it for a client that ends. */
TEST(design_stop_ends_clients_of_other_protocols)
{
    static const char *const list[] = {"--list", NULL};
    struct sharer *sharer = SHARE(.share = "--share=tools", .arguments = {"--protocol", "acp"});
    client_pid(sharer->client, "1", NULL);
    expect_word(care("--stop", "tools"), "1 client cannot outlive it\n");
    client_expect_eof(sharer->client);
    share_wait_gone(sharer->pid);
    ck_assert_str_eq(share_run(list, 0), "nothing is shared\n");
}

TEST(design_stop_answers_requests_of_other_protocols)
{
    static const char *const stop[] = {"--stop", "tools", NULL};
    struct sharer *sharer = SHARE(.share = "--share=tools", .arguments = {"--protocol", "acp"});
    client_request(sharer->client, "1", NULL, "ask", "{'id':'q','method':'fs/read_text_file'}");
    struct span question = client_line(sharer->client);
    const char *id = test_format("%.*s", SHOWN(json_get(question, "id")));
    pid_t stopping = share_start(stop);
    WAIT_UNTIL(share_logged("stop, asked for by the user") > 0, "the stop does not come");
    client_send(sharer->client, "{'jsonrpc':'2.0','id':%s,'result':{}}", id);
    client_result(sharer->client, "1");
    client_expect_eof(sharer->client);
    share_wait_gone(stopping);
    ck_assert_uint_eq(share_logged("is not waited for any longer"), 0);
}

/* A connection that has asked for the status, and stays open, is no client. */
TEST(design_stop_counts_no_connection_that_has_looked)
{
    struct sharer *sharer = share_tools();
    pid_of(sharer);
    share_finish(sharer);
    struct client *looker = share_connect("tools");
    client_send(looker, "{'stdio_bus':'status'}");
    client_line(looker);
    expect_word(care("--stop", "tools"), "stopped, and its daemon with it\n");
}

/* --- what is shown --- */

TEST(design_log_of_a_shared_server)
{
    struct sharer *sharer = share_tools();
    client_ask(sharer->client, "1", NULL, "write_stderr", "{'text':'said \\u001b[31m\\n'}");
    pid_of(sharer);
    WAIT_UNTIL(share_logged("stderr: said") == 1, "the log has it");
    const char *log = care("--log", "tools");
    expect_word(log, " INFO  ");
    expect_word(log, "stderr: said ");
    ck_assert_ptr_null(strchr(log, '\x1b'));
    share_finish(sharer);
    care("--stop", "tools");
    expect_word(care("--log", "tools"), "stop, asked for by the user\n");
}

/* More than what is shown, which is its end. */
TEST(design_log_that_is_long)
{
    struct sharer *sharer = share_tools();
    pid_of(sharer);
    share_finish(sharer);
    care("--stop", "tools");
    FILE *file = fopen(test_format("%s/tools@%s.log", share_dir(), PACKAGE_VERSION), "a");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 20000; i++)
        fprintf(file, "%-79d\n", i);
    ck_assert_int_eq(fclose(file), 0);
    const char *log = care("--log", "tools");
    size_t len = strlen(log);
    ck_assert_uint_le(len, 1 << 20);
    ck_assert_uint_gt(len, (1 << 20) - 100);
    ck_assert_uint_eq(strcspn(log, "\n"), 79);
    expect_word(log, "19999 ");
}

TEST(design_care_of_a_server_that_there_is_not)
{
    static const char *const options[] = {"--stop", "--restart", "--forget", "--log"};
    expect_word(care_fails("--stop", "tools", 69), "tools: nothing is shared\n");
    struct sharer *sharer = share_tools();
    pid_of(sharer);
    for (size_t i = 0; i < COUNT(options); i++)
        expect_word(care_fails(options[i], "other", 69),
                    test_format("other: no such server; there is tools@%s\n", PACKAGE_VERSION));
    expect_word(care_fails("--log", "../tools", 69), "no such server");
    share_finish(sharer);
}

static const char *const misuses[][6] = {
    {"--stop", NULL},
    {"--log", "", NULL},
    {"--stop", "a", "--restart", "a", NULL},
    {"--log", "a", "--list", NULL},
    {"--restart", "a", "--", "x", NULL},
    {"--restart", "a", "--config", "x", NULL},
    {"--stop", "a", "--control", "x", NULL},
    {"--stop", "a", "--json", NULL},
};

TEST_ROWS(design_care_misused, COUNT(misuses))
{
    share_run(misuses[row], 64);
}
