/* stdio_bus.conf(5), "Pools": the keys beyond the specification. */
#include "build_config.h"

#include "harness.h"

/* A worker whose name is `word`, expanded by a shell. */
#define SHELL_POOL(word, members)                                                                  \
    "{'pools':[{'id':'p','command':'sh','instances':1," members                                    \
    ",'args':['-c','exec @WORKER@ --name \\\"" word "\\\"']}]}"

/* Variables of the daemon's environment, and the worker's name, which they make. */
static const struct {
    const char *variables[3][2];
    const char *config, *name;
} environments[] = {
    {{{"POOLS_ONE", "ours"}, {"POOLS_TWO", "two"}},
     SHELL_POOL("$POOLS_ONE $POOLS_TWO", "'env':{'POOLS_ONE':'<${POOLS_ONE}>'}"),
     "'<ours> two'"},
    {{{"POOLS_ONE", "ours"}, {"POOLS_TWO", "two"}},
     SHELL_POOL("$POOLS_ONE $POOLS_TWO", "'env':{'POOLS_ONE':'1'},'clear_env':true"),
     "'1 '"},
    /* Variables for the daemon itself are not passed on. */
    {{{"NOTIFY_SOCKET", "/nowhere"}, {"LISTEN_FDS", "1"}, {"POOLS_ONE", "1"}},
     SHELL_POOL("$NOTIFY_SOCKET$LISTEN_FDS$POOLS_ONE", "'env':{}"),
     "'1'"},
};

TEST_ROWS(design_env_is_the_pools_own, COUNT(environments))
{
    for (int i = 0; i < 3 && environments[row].variables[i][0] != NULL; i++)
        ck_assert_int_eq(setenv(environments[row].variables[i][0],
                                environments[row].variables[i][1], 1),
                         0);
    struct client *client = client_connect(START(.config = environments[row].config));
    expect_member(client_ask(client, "1", NULL, "echo", NULL), "worker", environments[row].name);
}

/* The variables of one pool are not those of another. */
TEST(design_env_of_another_pool)
{
    const char *pools = "{'id':'a','command':'sh','instances':1,'env':{'SECRET':'hush'},"
                        "'args':['-c','exec @WORKER@ --name a$SECRET']},"
                        "{'id':'b','command':'sh','instances':1,"
                        "'args':['-c','exec @WORKER@ --name b$SECRET']}";
    struct client *client = client_connect(START(.pools = pools));
    client_send(client, "{'id':1,'pool':'a'}");
    expect_member(client_result(client, "1"), "worker", "'ahush'");
    client_send(client, "{'id':2,'pool':'b'}");
    expect_member(client_result(client, "2"), "worker", "'b'");
}

TEST(design_cwd_of_the_workers)
{
    struct daemon *daemon =
        START(.pools = "{'id':'p','command':'@WORKER@','instances':1,'cwd':'@DIR@'}");
    const char *expected = test_format("'%s'", daemon->dir);
    struct client *client = client_connect(daemon);
    for (int i = 0; i < 2; i++) { /* after a restart too */
        expect_member(client_ask(client, "1", NULL, "environment", NULL), "cwd", expected);
        client_request(client, NULL, NULL, "die", "{'code':1}");
        daemon_wait_log(daemon, "exited with status 1");
        daemon_mark_log(daemon);
    }
}

/* The restart fails as with a command that cannot be executed. */
TEST(design_cwd_that_is_gone)
{
    const char *dir = test_dir();
    struct daemon *daemon =
        START(.pools = test_format("{'id':'p','command':'@WORKER@','instances':1,'cwd':'%s'}", dir),
              .limits = "'max_restarts':1");
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "echo", NULL);
    steps_without_reloads("the configuration names a directory that is gone");
    harness_remove_dir(dir);
    client_request(client, NULL, NULL, "die", "{'code':1}");
    daemon_wait_log(daemon, "cannot execute .* in /.*: No such file or directory");
    ck_assert_int_eq(daemon_wait(daemon), 69);
}

TEST(design_cwd_that_is_not_there)
{
    const char *pools = "{'id':'p','command':'@WORKER@','instances':1,'cwd':'@DIR@/none'}";
    expect_word(RUN(78, .pools = pools), "pools[0].cwd: cannot work in ");
}

TEST(design_env_that_is_not_set)
{
    expect_word(RUN(78, .config = SHELL_POOL("", "'env':{'A':'${POOLS_NONE}'}")),
                "pools[0].env.A: not set in the environment: \"POOLS_NONE\"");
}

/* "Hello!\n" before any message, as of many programs. */
#define BANNER "'--say','48656c6c6f210a'"
#define SKIPPING(args)                                                                             \
    "{'id':'p','command':'@WORKER@','args':[" args "],'instances':1,'on_bad_output':'skip'}"
#define SKIPPING_STICKY                                                                            \
    "{'id':'p','command':'@WORKER@','instances':1,'on_bad_output':'skip','clients':'sticky'}"

TEST(design_banner_is_skipped)
{
    struct daemon *daemon = START(.pools = SKIPPING(BANNER));
    daemon_wait_log(daemon, "WARN .*worker=1 .*skipped output that is no message "
                            "\\(1 so far\\): .*\"H[elo!]*\"$"); /* the part read so far */
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);
    client_request(client, NULL, NULL, "die", "{'code':1}");
    daemon_wait_log(daemon, "exited with status 1");
    ck_assert_int_ne(client_pid(client, "2", NULL), pid); /* skips the next banner too */
}

TEST(design_banner_is_fatal_by_default)
{
    struct daemon *daemon = START(.no_wait = true, .limits = "'max_restarts':0",
                                  .pools = "{'id':'p','command':'@WORKER@','args':[" BANNER
                                           "],'instances':1,"
                                           "'on_bad_output':'terminate'}");
    daemon_wait_log(daemon, "ERROR .*malformed output: .*; terminating it");
    ck_assert_int_eq(daemon_wait(daemon), 69);
}

/* Before, between and after messages; no client gets any of it. */
TEST_ROWS(design_bad_output_is_skipped, 2)
{
    static const char *const bad[] = {
        "{'hex':'7b226964223a5b5d7d0a'}", /* {"id":[]}: JSON, but no id */
        "{'hex':'7b7d7d0a5b5d0a0aff0a','times':100}",
        "{'hex':'7b2278223a22','times':1}", /* {"x":", and then the answer */
    };
    struct client *client = client_connect(START(.pools = row == 0 ? SKIPPING("") : SKIPPING_STICKY,
                                                 .limits = "'max_input_buffer':1024"));
    long pid = client_pid(client, "1", NULL);
    for (size_t i = 0; i < COUNT(bad); i++) {
        client_request(client, NULL, NULL, "garbage", bad[i]);
        client_request(client, NULL, NULL, "echo", NULL);
        /* A sticky pool would send {} to all its clients. */
        client_request(client, NULL, NULL, "say_only",
                       row == 0 ? "{'message':{}}" : "{'message':'x'}");
        ck_assert_int_eq(client_pid(client, "2", NULL), pid);
    }
    client_request(client, NULL, NULL, "say_only", "{'message':'line feed'}");
    client_request(client, NULL, NULL, "big", "{'size':100000}");
    client_expect_quiet(client);
}

TEST(design_long_output_is_skipped)
{
    struct daemon *daemon = START(.pools = SKIPPING(""), .limits = "'max_input_buffer':1024");
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);
    client_request(client, "2", NULL, "big", "{'size':5000000}");
    client_error(client, "2", -32000, "message exceeds max_input_buffer");
    ck_assert_int_eq(client_pid(client, "3", NULL), pid);
    daemon_wait_log(daemon, "skipped .*: message exceeds max_input_buffer: ");
}

/* The first answers of workers in a pool without a protocol, and the protocol that they show. */
static const struct {
    const char *pool, *result, *protocol;
} first_answers[] = {
    {"", "{'protocolVersion':'2025-06-18','capabilities':{}}", "mcp"},
    {"", "{'x':[{}],'protocolVersion':1}", "acp"},
    {"", "{'capabilities':{'protocolVersion':'2025-06-18'}}", NULL},
    {"", "['protocolVersion']", NULL},
    {"", "{'protocolVersion':null}", NULL},
    {"'protocol':'mcp','clients':'shared',", "{'protocolVersion':'2025-06-18'}", NULL},
    {"'clients':'exclusive',", "{'protocolVersion':'2025-06-18'}", NULL},
};

TEST_ROWS(design_first_answer_shows_the_protocol, COUNT(first_answers))
{
    struct daemon *daemon =
        START(.pools = test_format("{'id':'p',%s'command':'@WORKER@','instances':2}",
                                   first_answers[row].pool));
    const char *warning =
        test_format(" WARN  \\[worker=[12] .*\"initialize\".*\"%s\"",
                    first_answers[row].protocol != NULL ? first_answers[row].protocol : "");
    struct client *client = client_connect(daemon);
    for (int i = 0; i < 4; i++) { /* one warning for both workers */
        client_request(client, "1", NULL, "plain", first_answers[row].result);
        client_result(client, "1");
    }
    if (first_answers[row].protocol != NULL)
        daemon_wait_log(daemon, warning);
    client_crash(client, "2", NULL, NULL);
    client_request(client, "3", NULL, "plain", first_answers[row].result);
    client_result(client, "3");
    ck_assert_uint_eq(daemon_count_log(daemon, "has answered"),
                      first_answers[row].protocol != NULL);
}

/* Answers after the first one are not looked at. */
TEST(design_later_answers_show_nothing)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    client_request(client, "1", NULL, "plain", "{'protocolVersion':'2025-06-18'}");
    client_result(client, "1");
    ck_assert(!daemon_logged(daemon, "has answered"));
}
