/* stdio_bus.conf(5), "Pools": what is not in the specification. */
#include "build_config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

/* A worker whose name is what the shell makes of `word`. */
#define SHELL_POOL(word, members)                                                                  \
    "{'pools':[{'id':'p','command':'sh','instances':1," members                                    \
    ",'args':['-c','exec @WORKER@ --name \\\"" word "\\\"']}]}"

static void expect_name(const char *config, const char *name)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .config = config);
    client_connect(&client, &daemon);
    struct span result = client_ask(&client, "1", NULL, "echo", NULL);
    struct span worker = json_get(result, "worker");
    ck_assert_msg(span_is(worker, name), "%.*s", (int)worker.len, worker.data);
    client_close(&client);
    daemon_stop(&daemon);
}

START_TEST(design_env_is_the_pools_own)
{
    ck_assert_int_eq(setenv("POOLS_ONE", "ours", 1), 0);
    ck_assert_int_eq(setenv("POOLS_TWO", "two", 1), 0);
    expect_name(SHELL_POOL("$POOLS_ONE $POOLS_TWO", "'env':{'POOLS_ONE':'<${POOLS_ONE}>'}"),
                "\"<ours> two\"");
    expect_name(SHELL_POOL("$POOLS_ONE $POOLS_TWO", "'env':{'POOLS_ONE':'1'},'clear_env':true"),
                "\"1 \"");
}
END_TEST

START_TEST(design_env_without_what_is_ours)
{
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", "/nowhere", 1), 0);
    ck_assert_int_eq(setenv("LISTEN_FDS", "1", 1), 0);
    ck_assert_int_eq(setenv("POOLS_ONE", "1", 1), 0);
    expect_name(SHELL_POOL("$NOTIFY_SOCKET$LISTEN_FDS$POOLS_ONE", "'env':{}"), "\"1\"");
}
END_TEST

/* Two pools know nothing of each other's variables. */
START_TEST(design_env_of_another_pool)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .config =
          "{'pools':[{'id':'a','command':'sh','instances':1,'env':{'SECRET':'hush'},"
          "'args':['-c','exec @WORKER@ --name a$SECRET']},"
          "{'id':'b','command':'sh','instances':1,"
          "'args':['-c','exec @WORKER@ --name b$SECRET']}]}");
    client_connect(&client, &daemon);
    client_send(&client, "{'id':1,'pool':'a'}");
    ck_assert(span_is(json_get(client_result(&client, "1"), "worker"), "\"ahush\""));
    client_send(&client, "{'id':2,'pool':'b'}");
    ck_assert(span_is(json_get(client_result(&client, "2"), "worker"), "\"b\""));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_cwd_of_the_workers)
{
    struct daemon daemon;
    struct client client;
    struct text expected = {0};
    char dir[160];
    harness_make_dir(dir, sizeof dir);
    START(&daemon, .pools = "{'id':'p','command':'@WORKER@','instances':1,'cwd':'@DIR@'}");
    text_printf(&expected, "\"%s\"", daemon.dir);
    client_connect(&client, &daemon);
    for (int i = 0; i < 2; i++) { /* after a restart too */
        struct span result = client_ask(&client, "1", NULL, "environment", NULL);
        struct span cwd = json_get(result, "cwd");
        ck_assert_msg(span_is(cwd, expected.data), "%.*s", (int)cwd.len, cwd.data);
        client_request(&client, NULL, NULL, "die", "{'code':1}");
        daemon_wait_log(&daemon, "exited with status 1");
        daemon_mark_log(&daemon);
    }
    client_close(&client);
    daemon_stop(&daemon);
    text_free(&expected);
    harness_remove_dir(dir);
}
END_TEST

/* Known only when it is entered: told like a command that cannot be executed. */
START_TEST(design_cwd_that_is_gone)
{
    struct daemon daemon;
    struct client client;
    struct text pools = {0};
    char dir[160];
    harness_make_dir(dir, sizeof dir);
    text_printf(&pools, "{'id':'p','command':'@WORKER@','instances':1,'cwd':'%s'}", dir);
    START(&daemon, .pools = pools.data, .limits = "'max_restarts':1");
    client_connect(&client, &daemon);
    client_ask(&client, "1", NULL, "echo", NULL);
    harness_remove_dir(dir);
    client_request(&client, NULL, NULL, "die", "{'code':1}");
    daemon_wait_log(&daemon, "cannot execute .* in /.*: No such file or directory");
    ck_assert_int_eq(daemon_wait(&daemon), 69);
    client_close(&client);
    text_free(&pools);
}
END_TEST

START_TEST(design_cwd_that_is_not_there)
{
    struct text err = {0};
    struct setup setup = {
        .pools = "{'id':'p','command':'@WORKER@','instances':1,'cwd':'@DIR@/none'}"};
    ck_assert_int_eq(daemon_run(&setup, NULL, &err), 78);
    ck_assert_msg(strstr(err.data, "pools[0].cwd: cannot work in ") != NULL, "%s", err.data);
    text_free(&err);
}
END_TEST

START_TEST(design_env_that_is_not_set)
{
    struct text err = {0};
    struct setup setup = {.config = SHELL_POOL("", "'env':{'A':'${POOLS_NONE}'}")};
    ck_assert_int_eq(daemon_run(&setup, NULL, &err), 78);
    ck_assert_msg(strstr(err.data, "pools[0].env.A: not set in the environment: \"POOLS_NONE\"") !=
                      NULL,
                  "%s", err.data);
    text_free(&err);
}
END_TEST

/* "Hello!\n" before anything else, as many programs do. */
#define BANNER "'--say','48656c6c6f210a'"
#define SKIPPING(args)                                                                             \
    "{'id':'p','command':'@WORKER@','args':[" args "],'instances':1,'on_bad_output':'skip'}"
#define SKIPPING_STICKY                                                                            \
    "{'id':'p','command':'@WORKER@','instances':1,'on_bad_output':'skip','clients':'sticky'}"

START_TEST(design_banner_is_skipped)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = SKIPPING(BANNER));
    daemon_wait_log(&daemon, "WARN .*worker=1 .*skipped output that is no message "
                             "\\(1 so far\\): .*\"H[elo!]*\"$"); /* what has come of it */
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", NULL);
    client_request(&client, NULL, NULL, "die", "{'code':1}");
    daemon_wait_log(&daemon, "exited with status 1");
    ck_assert_int_ne(client_pid(&client, "2", NULL), pid); /* and that of the next process too */
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_banner_is_fatal_by_default)
{
    struct daemon daemon;
    START(&daemon, .no_wait = true, .limits = "'max_restarts':0",
          .pools = "{'id':'p','command':'@WORKER@','args':[" BANNER "],'instances':1,"
                   "'on_bad_output':'terminate'}");
    daemon_wait_log(&daemon, "ERROR .*malformed output: .*; terminating it");
    ck_assert_int_eq(daemon_wait(&daemon), 69);
}
END_TEST

/* Between, before and behind messages; and nobody but the log hears of it. */
START_TEST(design_bad_output_is_skipped)
{
    static const char *const bad[] = {
        "{'hex':'7b226964223a5b5d7d0a'}", /* {"id":[]}: JSON, but no id */
        "{'hex':'7b7d7d0a5b5d0a0aff0a','times':100}",
        "{'hex':'7b2278223a22','times':1}", /* {"x":", and behind it comes the answer */
    };
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = _i == 0 ? SKIPPING("") : SKIPPING_STICKY,
          .limits = "'max_input_buffer':1024");
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        client_request(&client, NULL, NULL, "garbage", bad[i]);
        client_request(&client, NULL, NULL, "echo", NULL);
        /* A sticky pool would send {} to all its clients. */
        client_request(&client, NULL, NULL, "say_only",
                       _i == 0 ? "{'message':{}}" : "{'message':'x'}");
        ck_assert_int_eq(client_pid(&client, "2", NULL), pid);
    }
    client_request(&client, NULL, NULL, "say_only", "{'message':'line feed'}");
    client_request(&client, NULL, NULL, "big", "{'size':100000}");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(design_long_output_is_skipped)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .pools = SKIPPING(""), .limits = "'max_input_buffer':1024");
    client_connect(&client, &daemon);
    long pid = client_pid(&client, "1", NULL);
    client_request(&client, "2", NULL, "big", "{'size':5000000}"); /* its answer is lost */
    ck_assert_int_eq(client_pid(&client, "3", NULL), pid);
    daemon_wait_log(&daemon, "skipped .*: message exceeds max_input_buffer: ");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("design_pools");
    TCase *surroundings = harness_case(suite, "env, clear_env, cwd");
    tcase_add_test(surroundings, design_env_is_the_pools_own);
    tcase_add_test(surroundings, design_env_without_what_is_ours);
    tcase_add_test(surroundings, design_env_of_another_pool);
    tcase_add_test(surroundings, design_env_that_is_not_set);
    tcase_add_test(surroundings, design_cwd_of_the_workers);
    tcase_add_test(surroundings, design_cwd_that_is_gone);
    tcase_add_test(surroundings, design_cwd_that_is_not_there);
    TCase *output = harness_case(suite, "on_bad_output");
    tcase_add_test(output, design_banner_is_skipped);
    tcase_add_test(output, design_banner_is_fatal_by_default);
    tcase_add_loop_test(output, design_bad_output_is_skipped, 0, 2);
    tcase_add_test(output, design_long_output_is_skipped);
    return harness_run(suite);
}
