/* Specification, chapter 9, and the command line: errors, their messages, and that no worker is
 * started. */
#include "build_config.h"

#include "harness.h"

/* The daemon must exit with `status` and write a match to stderr, nothing to stdout. */
static void check_run(const struct setup *setup, int status, const char *pattern)
{
    const char *err = daemon_run(setup, status, NULL);
    ck_assert_msg(text_matches(err, pattern), "not %s: %s", pattern, err);
}

/* A broken rule: the configuration, and the position, key and words that must be in the message.
 * @POOL@ is a good pool, which makes a file when it is started. */
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
     "{'pools':[@POOL@,\n{'id':'a','command':'no-such-program-here',"
     "'instances':1,'env':{'PATH':'/bin'}}]}",
     "pools\\[1\\]\\.command: .*no-such-program-here.*No such file"},
    {"9.3.3 command may not be run",
     "{'pools':[@POOL@,\n{'id':'a','command':'@DIR@/config.json','instances':1}]}",
     "pools\\[1\\]\\.command: .*config\\.json.*Permission denied"},
    {"9.3.3 command is a directory",
     "{'pools':[@POOL@,\n{'id':'a','command':'@DIR@','instances':1}]}", "pools\\[1\\]\\.command: "},
    {"9.2 args no array",
     "{'pools':[@POOL@,\n{'id':'a','command':'@WORKER@','args':'x','instances':1}]}",
     ":2:[0-9]+: pools\\[1\\]\\.args: .*array"},
    {"9.2 argument no string",
     "{'pools':[@POOL@,\n{'id':'a','command':'@WORKER@','args':['x',2],'instances':1}]}",
     ":2:[0-9]+: pools\\[1\\]\\.args\\[1\\]: .*string"},
    {"9.2 NUL in an argument",
     "{'pools':[@POOL@,\n{'id':'a','command':'@WORKER@','args':['\\u0000'],'instances':1}]}",
     ":2:[0-9]+: pools\\[1\\]\\.args\\[0\\]: "},
    {"9.2 instances missing", "{'strict':true,'pools':[@POOL@,\n{'id':'a','command':'@WORKER@'}]}",
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
static const char *config_of(const char *text, const char *record)
{
    struct text *config = test_text();
    text_printf(config, "%s", text);
    text_replace(config, "@POOL@",
                 test_format("{'id':'good','command':'@WORKER@','instances':1,"
                             "'args':['--record','%s']}",
                             record));
    return config->data;
}

TEST_ROWS(spec_9_3_broken_rule_is_refused, COUNT(bad_configs))
{
    const char *record = test_format("%s/started", test_dir());
    struct setup setup = {.mode = SETUP_STDIO,
                          .config = config_of(bad_configs[row].config, record)};
    check_run(&setup, 78, bad_configs[row].message);
    ck_assert_msg(access(record, F_OK) != 0, "%s: a worker was started", bad_configs[row].rule);
    setup.arguments[0] = "--check-config";
    check_run(&setup, 78, bad_configs[row].message);
}

/* Every broken rule is reported, not only the first. */
TEST(spec_9_3_all_broken_rules_are_reported)
{
    const char *err = RUN(78, .mode = SETUP_STDIO,
                          .config = "{'pools':[{'id':'','command':'@WORKER@','instances':0}],"
                                    "'limits':{'max_restarts':-1}}");
    expect_word(err, "pools[0].id: ");
    expect_word(err, "pools[0].instances: ");
    expect_word(err, "limits.max_restarts: ");
}

static const struct {
    const char *path, *message;
} bad_files[] = {
    {"/nowhere/c.json", "/nowhere/c\\.json: .*No such file"},
    {"/", "/: .*directory"},
    {"/dev/null", "/dev/null:1:1: "},
};

TEST_ROWS(spec_9_1_file_that_cannot_be_read, COUNT(bad_files))
{
    check_run(&(struct setup){.mode = SETUP_STDIO, .config_path = bad_files[row].path}, 78,
              bad_files[row].message);
}

TEST(spec_9_1_config_from_a_descriptor)
{
    struct client *client;
    struct span born;
    steps_without_upgrades("a configuration from a descriptor is read once");
    client = client_connect(START(.config_by_fd = true, .args = "'--name','by-fd'"));
    born = client_ask(client, "1", NULL, "environment", NULL);
    expect_member(born, "args.2", "'by-fd'");
    ck_assert_msg(json_get(born, "fds.3").data == NULL, "the worker has it too");
}

TEST(spec_9_1_broken_config_from_a_descriptor)
{
    expect_word(RUN(78, .mode = SETUP_STDIO, .config_by_fd = true, .config = "{'pools':[]}"),
                ":1:10: pools: ");
}

/* Every key, in any order, with white space. */
TEST(spec_9_2_every_field)
{
    const char *config =
        " {\n\t'strict' : false ,\r\n 'limits' : { 'max_input_buffer':65536,"
        "'max_output_queue':65536,'max_restarts':5,'restart_window_sec':6e1,"
        "'drain_timeout_sec':30.0,'backpressure_timeout_sec':60,'max_connections':10,"
        "'max_sessions':10,'max_pending_requests':10},'pools':[{'instances':2,"
        "'args':['--name','\\u00e9 \\\\\\/'],'command':'@WORKER@','id':'one \\u20ac'},"
        "{'id':'two','command':'@WORKER@','args':[],'instances':1}]}\n\n";
    struct daemon *daemon = START(.config = config);
    struct client *client = client_connect(daemon);
    client_send(client, "{'id':1,'pool':'one \\u20ac','method':'environment'}");
    expect_member(client_result(client, "1"), "args.2", "'\xc3\xa9 \\/'");
    ck_assert(!daemon_logged(daemon, " WARN ")); /* none of them is unknown */
}

/* Without `instances` a pool has one process, or up to 16 where each client has its own. */
TEST(spec_9_2_instances_have_a_default)
{
    struct daemon *daemon = START(.pools = "{'id':'one','command':'@WORKER@'},"
                                           "{'id':'own','command':'@WORKER@','protocol':'mcp'}");

    daemon_wait_workers(daemon, 2);
    for (int i = 0; i < 2; i++) { /* and a spare one */
        struct client *client = client_connect(daemon);
        client_send(client, "{'id':1,'pool':'own','method':'environment'}");
        client_result(client, "1");
    }
    daemon_wait_workers(daemon, 4);
}

TEST(spec_9_2_check_config)
{
    const char *record = test_format("%s/started", test_dir());
    RUN(0, .mode = SETUP_STDIO, .config = config_of("{'pools':[@POOL@]}", record),
        .arguments = {"--check-config"});
    ck_assert_int_ne(access(record, F_OK), 0);
}

/* The warning names a similar key; an unknown key has no effect. */
TEST(spec_9_2_unknown_keys_log_a_warning)
{
    struct daemon *daemon = START(.limits = "'max_restart':3", .members = "'colour':'red'");
    daemon_wait_log(daemon, " WARN .*config\\.json:1:[0-9]+: limits\\.max_restart: .*"
                            "\"max_restarts\"");
    daemon_wait_log(daemon, " WARN .*config\\.json:1:[0-9]+: colour: unknown key");
    client_expect_quiet(client_connect(daemon));
}

/* A configuration that is valid, and that makes the daemon wonder. */
#define DOUBTFUL "{'pools':[{'id':'a','command':'@WORKER@','instances':1,'spare':1}]}"

TEST(design_strict_check_refuses_warnings)
{
    static const char warning[] = "config\\.json:1:[0-9]+: pools\\[0\\]\\.spare: has no effect";
    struct setup setup = {.mode = SETUP_STDIO, .config = DOUBTFUL, .arguments = {"--check-config"}};
    check_run(&setup, 0, warning);
    setup.arguments[1] = "--strict";
    check_run(&setup, 78, warning);
    check_run(&setup, 78, " ERROR .*--strict");
    setup.config = "{'pools':[{'id':'a','command':'@WORKER@','instances':1}]}";
    check_run(&setup, 0, "is valid: 1 pool");
}

/* Limits that the specification allows: everything is delivered, one message after the other. */
TEST(spec_9_2_limits_of_a_few_bytes)
{
    struct daemon *daemon = START(.limits = "'max_input_buffer':200,'max_output_queue':1");
    struct client *client = client_connect(daemon);
    client_send_plain(client, NULL, 500);
    client_expect_plain(client, NULL, 500);
    client_send(client, "{'id':1,'x':'%0200d'}", 0);
    client_error(client, "null", -32600, "max_input_buffer");
    client_expect_eof(client);
}

/* What configurations of the reference implementation say of the clients' side. */
static const struct {
    const char *transport, *option, *message;
} transports[] = {
    {"{'framing':'content-length'}", NULL, "transport\\.framing: must be \"ndjson\" or"},
    {"{'protocol':'rmp'}", NULL, "transport\\.protocol: must be \"json\""},
    {"{'mode':'http'}", NULL, "transport\\.mode: must be \"stdio\", \"unix\" or"},
    {"{'port':80}", NULL, "transport\\.port: unknown key"},
    {"{'mode':'tcp'}", NULL, "transport\\.mode is \"tcp\", .*--tcp HOST:PORT"},
    {"{'mode':'unix'}", NULL, "transport\\.mode is \"unix\", .*--unix PATH"},
};

TEST_ROWS(design_transport_is_refused, COUNT(transports))
{
    struct setup setup = {
        .mode = SETUP_STDIO,
        .default_mode = true,
        .config = test_format("{'pools':[{'id':'a','command':'@WORKER@','instances':1}],"
                              "'transport':%s}",
                              transports[row].transport)};
    check_run(&setup, 78, transports[row].message);
}

/* The command line wins: a Unix socket, lines. */
TEST(design_transport_is_overridden)
{
    client_expect_quiet(client_connect(
        START(.members = "'transport':{'framing':'length','protocol':'json','mode':'tcp'}",
              .arguments = {"--framing", "ndjson"})));
}

TEST(design_transport_has_the_framing)
{
    static const char frame[] = "\0\0\0\x08{\"id\":1}";
    struct client *client =
        client_connect(START(.members = "'transport':{'framing':'length','mode':'unix'}"));
    client_send_bytes(client, frame, sizeof frame - 1);
    while (client->input.len < 4)
        ck_assert(client_read_before(client, deadline_usual()));
    ck_assert_mem_eq(client->input.data, "\0\0\0", 3);
}

TEST(design_debug_stdio)
{
    static const char *const values[] = {"1", "0", ""};
    for (size_t i = 0; i < COUNT(values); i++) {
        struct text out = {0};
        ck_assert_int_eq(setenv("DEBUG_STDIO", values[i], 1), 0);
        const char *err = daemon_run(&(struct setup){.mode = SETUP_STDIO}, 0, &out);
        ck_assert_msg(text_matches(err, " DEBUG ") == (i == 0), "%s: %s", values[i], err);
        text_free(&out);
    }
    ck_assert_int_eq(setenv("DEBUG_STDIO", "1", 1), 0);
    const char *err = RUN(0, .mode = SETUP_STDIO, .arguments = {"--log-level", "info"});
    ck_assert_msg(!text_matches(err, " DEBUG "), "%s", err);
}

static const char *const some_limits[] = {NULL, "'drain_timeout_sec':7"};

/* Missing limits have their defaults: a million bytes pass, and a crash leads to a restart. */
TEST_ROWS(spec_9_3_defaults_of_missing_limits, COUNT(some_limits))
{
    struct client *client = client_connect(START(.instances = 1, .limits = some_limits[row]));
    ck_assert_uint_eq(client_ask(client, "1", NULL, "big", "{'size':1000000}").len, 1000002);
    client_crash(client, "2", NULL, NULL);
    client_expect_quiet(client);
}

/* Wrong command lines: the words, and a word of the message. */
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
    {{"--strict", NULL, NULL}, "--check-config"},
};

TEST_ROWS(design_wrong_command_line, COUNT(bad_words))
{
    struct setup setup = {.mode = SETUP_STDIO};
    for (int i = 0; i < 3; i++)
        setup.arguments[i] = bad_words[row].words[i];
    check_run(&setup, 64, bad_words[row].message);
}

static const struct {
    const char *option, *output;
} information[] = {
    {"--help", "--config PATH"},
    {"--version", "^stdio_bus [0-9]+\\.[0-9]+\\.[0-9]+\n(with|without): [a-z ]+\n"},
};

TEST_ROWS(design_help_and_version, COUNT(information))
{
    struct text *out = test_text();
    struct setup setup = {
        .mode = SETUP_STDIO, .config = "{}", .arguments = {information[row].option}};
    ck_assert_str_eq(daemon_run(&setup, 0, out), "");
    ck_assert_msg(text_matches(out->data, information[row].output), "%s", out->data);
}
