/* Specification, chapter 9, and the command line: what is refused, with which words, and that
 * nothing was started. */
#include "build_config.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"

static bool matches(const char *text, const char *pattern)
{
    regex_t regex;
    ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE), 0);
    bool found = text != NULL && regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

/* The daemon must end with `status` and say something that matches on stderr, nothing on stdout. */
static void check_run(const struct setup *setup, int status, const char *pattern)
{
    struct text out = {0}, err = {0};
    int ended = daemon_run(setup, &out, &err);
    ck_assert_msg(ended == status, "exit status %d: %s", ended, err.data);
    ck_assert_msg(pattern == NULL || matches(err.data, pattern), "not %s: %s", pattern, err.data);
    ck_assert_msg(out.len == 0, "on stdout: %s", out.data);
    text_free(&out);
    text_free(&err);
}

/* A broken rule: the configuration, and the position, key and words that must be in the message.
 * @POOL@ is a good pool that leaves a file when it is started. */
static const struct {
    const char *rule, *config, *message;
} bad_configs[] = {
    {"9.1 not JSON", "{\n  \"pools\" [\n]}", ":2:11: "},
    {"9.1 empty", "", ":1:1: "},
    {"9.1 cut", "{'pools':[@POOL@]", "config\\.json:1:[0-9]+: "},
    {"9.1 trailing comma", "{'pools':[@POOL@,]}", "config\\.json:1:[0-9]+: "},
    {"9.1 comment", "// my pools\n{'pools':[@POOL@]}", ":1:1: "},
    {"9.1 something behind", "{'pools':[@POOL@]} x", "config\\.json:1:[0-9]+: "},
    {"9.1 not an object", "[]", ":1:1: .*object"},
    {"9.1 duplicate key", "{'pools':[@POOL@],\n'pools':[@POOL@]}", ":2:1: .*pools"},
    {"9.1 invalid UTF-8", "{'pools':[@POOL@],\n'\xff':1}", ":2:[0-9]+: .*UTF-8"},
    {"9.3.1 no pools", "{}", ":1:1: pools: is required"},
    {"9.3.1 empty pools", "{'pools':[]}", ":1:10: pools: .*at least one"},
    {"9.3.1 pools no array", "{'pools':{}}", ":1:10: pools: .*array"},
    {"9.3.1 pool no object", "{'pools':[@POOL@,\n 7]}", ":2:2: pools\\[1\\]: .*object"},
    {"9.3.2 id missing", "{'pools':[\n{'command':'@WORKER@','instances':1}]}",
     ":2:1: pools\\[0\\]\\.id: is required"},
    {"9.3.2 id empty", "{'pools':[{'id':'','command':'@WORKER@','instances':1}]}",
     ":1:17: pools\\[0\\]\\.id: .*empty"},
    {"9.3.2 id no string", "{'pools':[{'id':7,'command':'@WORKER@','instances':1}]}",
     ":1:17: pools\\[0\\]\\.id: .*string"},
    {"9.3.2 id twice", "{'pools':[@POOL@,\n{'id':'good','command':'@WORKER@','instances':1}]}",
     ":2:7: pools\\[1\\]\\.id: .*good"},
    {"9.3.2 id twice, written differently",
     "{'pools':[@POOL@,\n{'id':'g\\u006fod','command':'@WORKER@','instances':1}]}",
     ":2:7: pools\\[1\\]\\.id: .*good"},
    {"9.3.3 command missing", "{'pools':[@POOL@,\n{'id':'a','instances':1}]}",
     ":2:1: pools\\[1\\]\\.command: is required"},
    {"9.3.3 command empty", "{'pools':[@POOL@,\n{'id':'a','command':'','instances':1}]}",
     ":2:21: pools\\[1\\]\\.command: .*empty"},
    {"9.3.3 command no string", "{'pools':[@POOL@,\n{'id':'a','command':[],'instances':1}]}",
     ":2:21: pools\\[1\\]\\.command: .*string"},
    {"9.3.3 command not there",
     "{'pools':[@POOL@,\n{'id':'a','command':'/nowhere/at/all','instances':1}]}",
     "pools\\[1\\]\\.command: .*/nowhere/at/all.*No such file"},
    {"9.3.3 command not in PATH",
     "{'pools':[@POOL@,\n{'id':'a','command':'no-such-program-here','instances':1}]}",
     "pools\\[1\\]\\.command: .*no-such-program-here.*No such file"},
    {"9.3.3 command may not be run",
     "{'pools':[@POOL@,\n{'id':'a','command':'@DIR@/config.json','instances':1}]}",
     "pools\\[1\\]\\.command: .*config\\.json.*Permission denied"},
    {"9.3.3 command is a directory",
     "{'pools':[@POOL@,\n{'id':'a','command':'@DIR@','instances':1}]}",
     "pools\\[1\\]\\.command: "},
    {"9.2 args no array",
     "{'pools':[@POOL@,\n{'id':'a','command':'@WORKER@','args':'x','instances':1}]}",
     ":2:[0-9]+: pools\\[1\\]\\.args: .*array"},
    {"9.2 argument no string",
     "{'pools':[@POOL@,\n{'id':'a','command':'@WORKER@','args':['x',2],'instances':1}]}",
     ":2:[0-9]+: pools\\[1\\]\\.args\\[1\\]: .*string"},
    {"9.2 NUL in an argument",
     "{'pools':[@POOL@,\n{'id':'a','command':'@WORKER@','args':['\\u0000'],'instances':1}]}",
     ":2:[0-9]+: pools\\[1\\]\\.args\\[0\\]: "},
    {"9.3.4 instances missing", "{'pools':[@POOL@,\n{'id':'a','command':'@WORKER@'}]}",
     ":2:1: pools\\[1\\]\\.instances: is required"},
    {"9.3.4 instances 0", "{'pools':[@POOL@,\n{'id':'a','instances':0,'command':'@WORKER@'}]}",
     ":2:23: pools\\[1\\]\\.instances: must be an integer >= 1"},
    {"9.3.4 instances negative",
     "{'pools':[@POOL@,\n{'id':'a','instances':-1,'command':'@WORKER@'}]}",
     ":2:23: pools\\[1\\]\\.instances: must be an integer >= 1"},
    {"9.3.4 instances no integer",
     "{'pools':[@POOL@,\n{'id':'a','instances':1.5,'command':'@WORKER@'}]}",
     ":2:23: pools\\[1\\]\\.instances: must be an integer >= 1"},
    {"9.3.4 instances a string",
     "{'pools':[@POOL@,\n{'id':'a','instances':'1','command':'@WORKER@'}]}",
     ":2:23: pools\\[1\\]\\.instances: must be an integer >= 1"},
    {"9.3.4 instances beyond all bounds",
     "{'pools':[@POOL@,\n{'id':'a','instances':1e9,'command':'@WORKER@'}]}",
     ":2:23: pools\\[1\\]\\.instances: "},
    {"9.2 limits no object", "{'pools':[@POOL@],\n'limits':[]}", ":2:10: limits: .*object"},
    {"9.2 max_input_buffer", "{'pools':[@POOL@],\n'limits':{'max_input_buffer':0}}",
     ":2:30: limits\\.max_input_buffer: must be an integer >= "},
    {"9.2 max_output_queue", "{'pools':[@POOL@],\n'limits':{'max_output_queue':-5}}",
     ":2:30: limits\\.max_output_queue: must be an integer >= "},
    {"9.2 max_restarts", "{'pools':[@POOL@],\n'limits':{'max_restarts':-1}}",
     ":2:26: limits\\.max_restarts: must be an integer >= 0"},
    {"9.2 restart_window_sec", "{'pools':[@POOL@],\n'limits':{'restart_window_sec':0}}",
     ":2:32: limits\\.restart_window_sec: must be an integer >= 1"},
    {"9.2 drain_timeout_sec", "{'pools':[@POOL@],\n'limits':{'drain_timeout_sec':'x'}}",
     ":2:31: limits\\.drain_timeout_sec: must be an integer"},
    {"9.2 backpressure_timeout_sec",
     "{'pools':[@POOL@],\n'limits':{'backpressure_timeout_sec':0.5}}",
     ":2:38: limits\\.backpressure_timeout_sec: must be an integer >= 1"},
    {"9.2 beyond all bounds", "{'pools':[@POOL@],\n'limits':{'drain_timeout_sec':1e12}}",
     ":2:31: limits\\.drain_timeout_sec: must be an integer <= "},
    {"8.2 max_connections", "{'pools':[@POOL@],\n'limits':{'max_connections':0}}",
     ":2:29: limits\\.max_connections: must be an integer >= 1"},
    {"8.2 max_sessions", "{'pools':[@POOL@],\n'limits':{'max_sessions':null}}",
     ":2:26: limits\\.max_sessions: must be an integer >= 1"},
    {"8.2 max_pending_requests", "{'pools':[@POOL@],\n'limits':{'max_pending_requests':true}}",
     ":2:34: limits\\.max_pending_requests: must be an integer >= 1"},
    {"strict no boolean", "{'pools':[@POOL@],\n'strict':1}", ":2:10: strict: .*true or false"},
};

/* The configuration with @POOL@ replaced by a pool that records its start in `record`. */
static void add_config(struct text *config, const char *text, const char *record)
{
    struct text pool = {0};
    text_printf(&pool, "{'id':'good','command':'@WORKER@','instances':1,'args':['--record','%s']}",
                record);
    text_printf(config, "%s", text);
    text_replace(config, "@POOL@", pool.data);
    text_free(&pool);
}

START_TEST(spec_9_3_broken_rule_is_refused)
{
    char dir[160], record[200];
    struct stat st;
    struct text config = {0};
    harness_make_dir(dir, sizeof dir);
    snprintf(record, sizeof record, "%s/test-started", dir);
    add_config(&config, bad_configs[_i].config, record);
    struct setup setup = {.mode = SETUP_STDIO, .config = config.data};
    check_run(&setup, 78, bad_configs[_i].message);
    ck_assert_msg(stat(record, &st) != 0, "%s: a worker was started", bad_configs[_i].rule);
    setup.arguments[0] = "--check-config";
    check_run(&setup, 78, bad_configs[_i].message);
    harness_remove_dir(dir);
    text_free(&config);
}
END_TEST

/* Every broken rule is told of, not only the first. */
START_TEST(spec_9_3_all_broken_rules_are_told)
{
    struct setup setup = {.mode = SETUP_STDIO,
                          .config = "{'pools':[{'id':'','command':'@WORKER@','instances':0}],"
                                    "'limits':{'max_restarts':-1}}"};
    check_run(&setup, 78, "pools\\[0\\]\\.id: ");
    check_run(&setup, 78, "pools\\[0\\]\\.instances: ");
    check_run(&setup, 78, "limits\\.max_restarts: ");
}
END_TEST

START_TEST(spec_9_1_file_that_cannot_be_read)
{
    check_run(&(struct setup){.mode = SETUP_STDIO, .config_path = "/nowhere/c.json"}, 78,
              "/nowhere/c\\.json: .*No such file");
    check_run(&(struct setup){.mode = SETUP_STDIO, .config_path = "/"}, 78, "/: .*directory");
    check_run(&(struct setup){.mode = SETUP_STDIO, .config_path = "/dev/null"}, 78,
              "/dev/null:1:1: ");
}
END_TEST

START_TEST(spec_9_1_config_from_a_descriptor)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .config_by_fd = true, .args = "'--name','by-fd'");
    client_connect(&client, &daemon);
    struct span born = client_ask(&client, "1", NULL, "environment", NULL);
    ck_assert(span_is(json_get(born, "args.2"), "\"by-fd\""));
    ck_assert_msg(json_get(born, "fds.3").data == NULL, "the worker has it too");
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_9_1_broken_config_from_a_descriptor)
{
    struct setup setup = {.mode = SETUP_STDIO, .config_by_fd = true, .config = "{'pools':[]}"};
    check_run(&setup, 78, ":1:10: pools: ");
}
END_TEST

/* Everything given, in any order, with white space. */
START_TEST(spec_9_2_every_field)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .config =
        " {\n\t'strict' : false ,\r\n 'limits' : { 'max_input_buffer':65536,"
        "'max_output_queue':65536,'max_restarts':5,'restart_window_sec':6e1,"
        "'drain_timeout_sec':30.0,'backpressure_timeout_sec':60,'max_connections':10,"
        "'max_sessions':10,'max_pending_requests':10},'pools':[{'instances':2,"
        "'args':['--name','\\u00e9 \\\\\\/'],'command':'@WORKER@','id':'one \\u20ac'},"
        "{'id':'two','command':'@WORKER@','args':[],'instances':1}]}\n\n");
    client_connect(&client, &daemon);
    client_send(&client, "{'id':1,'pool':'one \\u20ac','method':'environment'}");
    struct span born = client_result(&client, "1");
    ck_assert(span_is(json_get(born, "args.2"), "\"\xc3\xa9 \\/\""));
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_9_2_check_config)
{
    char dir[160], record[200];
    struct stat st;
    struct text config = {0};
    harness_make_dir(dir, sizeof dir);
    snprintf(record, sizeof record, "%s/test-started", dir);
    add_config(&config, "{'pools':[@POOL@]}", record);
    check_run(&(struct setup){.mode = SETUP_STDIO, .config = config.data,
                              .arguments = {"--check-config"}}, 0, NULL);
    ck_assert_int_ne(stat(record, &st), 0);
    harness_remove_dir(dir);
    text_free(&config);
}
END_TEST

/* A key that nobody knows is told of, with what it may have been meant to be; it does no harm. */
START_TEST(spec_9_2_unknown_keys_are_warned_of)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .limits = "'max_restart':3", .members = "'colour':'red'");
    daemon_wait_log(&daemon, " WARN .*config\\.json:1:[0-9]+: limits\\.max_restart: .*"
                             "\"max_restarts\"");
    daemon_wait_log(&daemon, " WARN .*config\\.json:1:[0-9]+: colour: unknown key");
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Without limits, and with some of them, the others are the defaults: five thousand bytes pass
 * while one thousand is the most that the queue may hold. */
START_TEST(spec_9_3_5_defaults_without_limits)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1);
    client_connect(&client, &daemon);
    ck_assert_uint_eq(client_ask(&client, "1", NULL, "big", "{'size':1000000}").len, 1000002);
    client_request(&client, "2", NULL, "die", NULL);
    client_error(&client, "2", -32000, "");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

START_TEST(spec_9_3_6_defaults_of_single_limits)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .instances = 1, .limits = "'drain_timeout_sec':7");
    client_connect(&client, &daemon);
    ck_assert_uint_eq(client_ask(&client, "1", NULL, "big", "{'size':1000000}").len, 1000002);
    client_request(&client, "2", NULL, "die", NULL);
    client_error(&client, "2", -32000, "");
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* Command lines that are wrong: the words, and what must be in the message. */
static const struct {
    const char *words[3];
    const char *message;
} bad_words[] = {
    {{"--nonsense", NULL, NULL}, "nonsense"},
    {{"nonsense", NULL, NULL}, "nonsense"},
    {{"--stdio", NULL, NULL}, "stdio"},
    {{"--unix", "/tmp/x", NULL}, "unix"},
    {{"--tcp", NULL, NULL}, "tcp"},
    {{"--config", "other.json", NULL}, "config"},
    {{"--log-level", "loud", NULL}, "log-level"},
    {{"--config-fd", "3", NULL}, "config"},
    {{"--unix=", NULL, NULL}, "unix"},
};

START_TEST(design_wrong_command_line)
{
    struct setup setup = {.mode = SETUP_STDIO};
    for (int i = 0; i < 3; i++)
        setup.arguments[i] = bad_words[_i].words[i];
    check_run(&setup, 64, bad_words[_i].message);
}
END_TEST

static void check_told(const char *word, const char *pattern)
{
    struct text out = {0}, err = {0};
    struct setup setup = {.mode = SETUP_STDIO, .config = "{}", .arguments = {word}};
    ck_assert_int_eq(daemon_run(&setup, &out, &err), 0);
    ck_assert_msg(matches(out.data, pattern), "%s", out.data);
    ck_assert_uint_eq(err.len, 0);
    text_free(&out);
    text_free(&err);
}

START_TEST(design_help_and_version)
{
    check_told("--help", "--config PATH");
    check_told("--version", "^stdio_bus [0-9]+\\.[0-9]+\\.[0-9]+$");
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

int main(void)
{
    Suite *suite = suite_create("spec 9: configuration");
    TCase *rules = harness_case(suite, "9.3 rules");
    tcase_add_loop_test(rules, spec_9_3_broken_rule_is_refused, 0, COUNT(bad_configs));
    tcase_add_test(rules, spec_9_3_all_broken_rules_are_told);
    tcase_add_test(rules, spec_9_3_5_defaults_without_limits);
    tcase_add_test(rules, spec_9_3_6_defaults_of_single_limits);
    TCase *file = harness_case(suite, "9.1 and 9.2 file");
    tcase_add_test(file, spec_9_1_file_that_cannot_be_read);
    tcase_add_test(file, spec_9_1_config_from_a_descriptor);
    tcase_add_test(file, spec_9_1_broken_config_from_a_descriptor);
    tcase_add_test(file, spec_9_2_every_field);
    tcase_add_test(file, spec_9_2_check_config);
    tcase_add_test(file, spec_9_2_unknown_keys_are_warned_of);
    TCase *words = harness_case(suite, "command line");
    tcase_add_loop_test(words, design_wrong_command_line, 0, COUNT(bad_words));
    tcase_add_test(words, design_help_and_version);
    return harness_run(suite);
}
