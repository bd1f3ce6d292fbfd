/* stdio_bus_rmp(1). */
#include "build_config.h"

#include "harness.h"
#include "rmp_program.h"

#define RUNNER "{'id':'runner','command':'@WORKER@','instances':1,'rmp':{'runner':true}}"
#define TRACE "11223344-5566-7788-99aa-bbccddeeff00"

static struct daemon *start(void)
{
    return rmp_program_daemon(RUNNER);
}

/* A file with this text. */
static const char *file_of(const char *text)
{
    const char *path = test_format("%s/run.yaml", test_dir());
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

/* --- submit --- */

TEST(rmp_9_submit_follows_a_run)
{
    struct rmp_program program = RMP_PROGRAM(start(), "submit", file_of("name: a"), "--follow");

    RMP_PROGRAM_EXPECT(&program, "accepted: trace ", "log: one", "status: completed");
    rmp_program_end(&program, 0);
}

TEST(rmp_9_submit_follows_a_run_that_fails)
{
    struct rmp_program program = RMP_PROGRAM(start(), "submit", file_of("fail"), "--follow");

    RMP_PROGRAM_EXPECT(&program, "accepted: trace ", "log: one", "status: failed");
    rmp_program_end(&program, 1);
}

TEST(rmp_9_submit_twice_runs_once)
{
    struct daemon *daemon = start();
    const char *path = file_of("name: a");

    for (int i = 0; i < 2; i++) {
        rmp_program_says(RMP_PROGRAM(daemon, "submit", "--trace", TRACE, path), 0,
                         "accepted: trace " TRACE ", opening run 1 (7)");
    }
}

TEST(rmp_9_submit_is_rejected)
{
    rmp_program_says(RMP_PROGRAM(start(), "submit", file_of("reject"), "--follow"), 1,
                     "stdio_bus_rmp: rejected: as you asked");
}

/* The runner shows the opening that it got. */
TEST(rmp_9_params_are_merged_into_the_opening)
{
    const char *path = file_of("show: it\nparams:\n  to: Ann # one\n  tone: warm\nsteps:\n- a\n");
    struct rmp_program program = RMP_PROGRAM(start(), "submit", "--follow", "--params", "to=Bob",
                                             "--params", "{\"copies\":2,\"who\":[\"a b\"]}",
                                             "--params", "urgent=true", path);

    RMP_PROGRAM_EXPECT(&program, "accepted: trace ",
                       "log: show: it\\x0aparams:\\x0a  'to': 'Bob'\\x0a  tone: warm\\x0a"
                       "  'copies': 2\\x0a  'who': ['a b']\\x0a  'urgent': true\\x0a"
                       "steps:\\x0a- a\\x0a",
                       "status: completed");
    rmp_program_end(&program, 0);
}

static const struct {
    const char *opening, *params, *problem;
} no_params[] = {
    {"name: a", "to", "--params is neither KEY=VALUE nor a JSON object"},
    {"name: a", "{\"to\"", "--params is no JSON"},
    {"- a", "to=1", "the opening is no mapping"},
    {"params: [1]", "to=1", "params of the opening is no mapping"},
    {"{\"a\"}", "to=1", "the opening is in braces and no JSON"},
};

TEST_ROWS(rmp_9_params_that_cannot_be_merged, COUNT(no_params))
{
    rmp_program_says(RMP_PROGRAM(start(), "submit", "--params", no_params[row].params,
                                 file_of(no_params[row].opening)),
                     65, "%s", no_params[row].problem);
}

static void expect_guidance(struct rmp_program *program, int64_t began)
{
    rmp_program_expect(program, "no RunAccepted within 2000 ms");
    ck_assert_int_ge(now_ms() - began, 2000);
    rmp_program_expect(program, "stdio_bus --rmp --config FILE");
    rmp_program_expect(program, "'rmp': {'runner': true}");
    rmp_program_expect(program, "--local --config FILE");
    rmp_program_end(program, 69);
}

/* A socket that is not there, and one that no daemon listens on. */
TEST_ROWS(rmp_12_submit_without_a_daemon_fails_at_once, 2)
{
    const char *path = test_format("%s/none.sock", test_dir());
    int64_t began = now_ms();

    if (row == 1)
        path = file_of("a");
    rmp_program_says(RMP_PROGRAM(NULL, "submit", file_of("a"), "--socket", path), 69,
                     "cannot connect to %s: %s", path,
                     row == 0 ? "No such file" : "Connection refused");
    ck_assert_int_lt(now_ms() - began, 2000);
}

TEST(rmp_9_submit_to_a_silent_runner)
{
    struct daemon *daemon = start();
    int64_t began = now_ms();
    struct rmp_program program = RMP_PROGRAM(daemon, "submit", file_of("silence"));

    expect_guidance(&program, began);
}

/* --- submit without a daemon --- */

static const char *local_config(const char *config)
{
    const char *path = test_format("%s/local.json", test_dir());
    FILE *file = fopen(path, "w");
    struct text text = {0};

    daemon_expand(NULL, &text, config);
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text.data, 1, text.len, file), text.len);
    ck_assert_int_eq(fclose(file), 0);
    text_free(&text);
    return path;
}

/* Its socket is made here, so that what is left of it would be found. */
static struct rmp_program run_locally(const char *config, const char *opening)
{
    setenv("TMPDIR", test_dir(), 1);
    return RMP_PROGRAM(NULL, "submit", "--local", "--config", local_config(config),
                       file_of(opening));
}

static void expect_nothing_left(void)
{
    const char *command = test_format("test -z \"$(find %s -name 'stdio_bus_rmp.*')\"", test_dir());

    ck_assert_int_eq(system(command), 0);
}

/* A daemon of the same configuration may run: neither its sockets nor its listeners are used. */
static const struct {
    const char *config, *opening, *lines[3];
    int status;
} local_runs[] = {
    {"{'pools':[" RUNNER "]}", "name: a", {"accepted: ", "log: one", "status: completed"}, 0},
    {"{'pools':[" RUNNER "]}", "fail", {"accepted: ", "log: one", "status: failed"}, 1},
    {"{'pools':[" RUNNER "]}", "reject", {"rejected: as you asked"}, 1},
    {"{'rmp':{'socket_path':'/none/such.sock'},'control':'/none/such.control',"
     "'listen':[{'unix':'/none/such/bus.sock'}],"
     "'pools':[" RMP_WRITER(2) "," RUNNER "]}",
     "name: a",
     {"accepted: ", "log: one", "status: completed"},
     0},
    {"{'pools':[" RMP_WRITER(1) "]}", "name: a", {"local.json has no runner"}, 78},
    {"{'pools':[]}", "name: a", {"local.json:1:"}, 78},
};

TEST_ROWS(rmp_9_local_run_needs_no_daemon, COUNT(local_runs))
{
    struct rmp_program program = run_locally(local_runs[row].config, local_runs[row].opening);

    for (size_t i = 0; i < COUNT(local_runs[row].lines) && local_runs[row].lines[i] != NULL; i++)
        rmp_program_expect(&program, "%s", local_runs[row].lines[i]);
    rmp_program_end(&program, local_runs[row].status);
    expect_nothing_left();
}

/* A runner that has to start first may take longer than one that runs. */
TEST(rmp_9_local_run_waits_for_its_runner)
{
    struct rmp_program program = run_locally(
        "{'pools':[{'id':'runner','command':'sh','args':['-c','sleep 3; exec @WORKER@'],"
        "'instances':1,'rmp':{'runner':true}}]}",
        "name: a");

    RMP_PROGRAM_EXPECT(&program, "accepted: ", "log: one", "status: completed");
    rmp_program_end(&program, 0);
}

/* A run that does not end; with the process of the bus, and its runner. False, after its end: they
 * cannot be found on this system. */
static bool run_on(struct rmp_program *program, pid_t *bus, pid_t *runner)
{
    *program = run_locally("{'pools':[" RUNNER "]}", "stay");
    rmp_program_expect(program, "accepted: ");
    if (!proc_available()) {
        rmp_program_stop(program);
        return false;
    }
    ck_assert_uint_eq(proc_children(program->pid, bus, 1), 1);
    ck_assert_uint_eq(proc_children(*bus, runner, 1), 1);
    return true;
}

TEST(rmp_9_local_run_ends_with_its_runner)
{
    struct rmp_program program;
    pid_t bus, runner;

    if (!run_on(&program, &bus, &runner))
        return;
    ck_assert_int_eq(kill(runner, SIGKILL), 0);
    RMP_PROGRAM_EXPECT(&program, "was killed by SIGKILL",
                       "the runner has exited before the end of the run");
    rmp_program_end(&program, 1);
    expect_nothing_left();
}

/* Nothing outlives the program, however it ends. */
TEST_ROWS(rmp_9_local_run_ends_with_the_program, 2)
{
    struct rmp_program program;
    pid_t bus, runner;

    if (!run_on(&program, &bus, &runner))
        return;
    ck_assert_int_eq(kill(program.pid, row == 0 ? SIGTERM : SIGKILL), 0);
    ck_assert_int_eq(waitpid(program.pid, NULL, 0), program.pid);
    client_expect_eof(program.client); /* its stderr is the one of the bus, too */
    client_close(program.client);
    WAIT_UNTIL(!proc_alive(bus) && !proc_alive(runner), "the local bus is still there");
    expect_nothing_left();
}

/* --- pub and sub --- */

TEST(rmp_pub_reaches_sub)
{
    struct daemon *daemon = start();
    struct rmp_program one = RMP_PROGRAM(daemon, "sub", "--count", "2", "notes", "other");
    struct rmp_program all = RMP_PROGRAM(daemon, "sub", "--json", "--count", "1", "notes");

    rmp_program_expect(&one, "subscribed");
    rmp_program_expect(&all, "subscribed");
    rmp_program_says(RMP_PROGRAM(daemon, "pub", "notes", "{\"a\":[1,\"\xc3\xa9\"]}", "--trace",
                                 TRACE),
                     0, TRACE);
    rmp_program_expect(&one, "notes observation.generic.v1 {'a':[1,'\xc3\xa9']}");
    rmp_program_expect(&all, "{'topic':'notes','frame_len':");
    rmp_program_end(&all, 0);
    rmp_program_says(RMP_PROGRAM(daemon, "pub", "other", "{}", "--type", "artifact.my.thing.v2"), 0,
                     "-");
    rmp_program_expect(&one, "other artifact.my.thing.v2 {}");
    rmp_program_end(&one, 0);
}

static const struct {
    const char *words[6];
    const char *problem;
    int status;
} refused[] = {
    {{"pub", "a", "{}", "--ttl", "0"}, "InvalidTtl", 1},
    {{"pub", "rlp/sys/x", "{}"}, "Forbidden", 1},
    {{"pub", "action.decision", "{}"}, "Forbidden", 1},
    {{"pub", "a", "[]"}, "must be a JSON object", 65},
    {{"pub", "a", "{"}, "the message is no JSON: 1:2", 65},
    {{"pub", "a", "{}", "--type", "x"}, "--type is no type", 64},
    {{"pub", "a"}, "pub needs TOPIC and JSON", 64},
    {{"pub", "a", "{}", "--ttl", "x"}, "--ttl: its value is no number", 64},
    {{"pub", "a", "{}", "--trace", "x"}, "--trace: its value is no UUID", 64},
    {{"pub", "a", "{}", "--ttl"}, "--ttl: its value is missing", 64},
    {{"publish"}, "publish: no such command", 64},
    {{"sub", "--such"}, "--such: no such option", 64},
    {{"sub", "a", "--local"}, "--local: it is for submit", 64},
    {{"submit", "a", "--local"}, "--local: it excludes --socket", 64},
    {{"trace", "x"}, "TRACE_ID is no UUID", 64},
    {{NULL}, "a command is missing", 64},
};

TEST_ROWS(rmp_cli_refused, COUNT(refused))
{
    struct rmp_program program = rmp_program_start(start(), NULL, 0, refused[row].words);

    rmp_program_expect(&program, "%s", refused[row].problem);
    rmp_program_end(&program, refused[row].status);
}

TEST(rmp_cli_help)
{
    struct rmp_program program = RMP_PROGRAM(NULL, "--help");

    rmp_program_expect(&program, "usage: stdio_bus_rmp pub");
    rmp_program_stop(&program);
    rmp_program_says(RMP_PROGRAM(NULL, "--version"), 0, "stdio_bus_rmp " PACKAGE_VERSION);
}

/* --- trace --- */

TEST(rmp_3_ladder_of_a_trace)
{
    struct daemon *daemon = start();
    struct rmp_program ladder = RMP_PROGRAM(daemon, "trace", "--count", "4", TRACE), program;

    rmp_program_expect(&ladder, "subscribed");
    program = RMP_PROGRAM(daemon, "pub", "rlp/ctrl", "{}"); /* another trace */
    rmp_program_expect(&program, "-");
    rmp_program_end(&program, 0);
    rmp_program_says(RMP_PROGRAM(daemon, "submit", "--trace", TRACE, file_of("name: a")), 0,
                     "accepted");
    for (int i = 1; i <= 4; i++)
        rmp_program_expect(&ladder, "frame_len=");
    rmp_program_end(&ladder, 0);
}

/* --- decode --- */

static const char golden[] = "0000: 00 00 00 a0 52 4d 50 30 00 00 00 40 00 00 00 00\n"
                             "0010: 00 0a 00 00 00 00 00 60 00 00 01 93 23 64 5c 7b\n"
                             "0020: 00 00 00 00 00 00 ea 60 11 22 33 44 55 66 77 88\n"
                             "0030: 99 aa bb cc dd ee ff 00 00 00 00 00 00 00 00 2a\n"
                             "0040: 00 00 00 00 83 a4 74 79 70 65 af 65 72 72 6f 72\n"
                             "0050: 2e 72 65 70 6f 72 74 2e 76 31 a7 70 61 79 6c 6f\n"
                             "0060: 61 64 82 a4 63 6f 64 65 b0 74 6f 6f 6c 2e 75 6e\n"
                             "0070: 61 76 61 69 6c 61 62 6c 65 a7 6d 65 73 73 61 67\n"
                             "0080: 65 ae 6d 61 69 6c 65 72 20 6f 66 66 6c 69 6e 65\n"
                             "0090: a4 6d 65 74 61 81 aa 6f 70 65 6e 69 6e 67 5f 69\n"
                             "00a0: 64 cd 04 d2\n";

static struct rmp_program decode(const void *input, size_t len, const char *option)
{
    return rmp_program_start(NULL, input, len, (const char *const[]){"decode", option, NULL});
}

TEST(rmp_8_golden_frame_is_decoded)
{
    struct rmp_program program = decode(golden, strlen(golden), NULL);

    RMP_PROGRAM_EXPECT(&program, "frame_len      160", "schema_id      10 (error.report.v1)",
                       "body_len       96",
                       "created_at_ms  1731465600123 (2024-11-13T02:40:00.123Z)",
                       "ttl_ms         60000", "trace_id       " TRACE, "msg_id         42",
                       "type           error.report.v1",
                       "payload        {'code':'tool.unavailable','message':'mailer "
                       "offline'}",
                       "meta           {'opening_id':1234}", "error          Expired");
    rmp_program_end(&program, 0);
}

TEST(rmp_8_golden_frame_in_binary_as_json)
{
    char frame[164];
    size_t len = 0;

    for (const char *at = golden; *at != '\0'; at++) {
        unsigned byte;

        if (at == golden || at[-1] == '\n')
            at += 5;
        if (*at == ' ' && sscanf(at, " %2x", &byte) == 1) {
            frame[len++] = (char)byte;
            at += 2;
        }
    }
    ck_assert_uint_eq(len, sizeof frame);
    rmp_program_says(decode(frame, len, "--json"), 0,
                     "'body':{'type':'error.report.v1','payload':{'code':'tool."
                     "unavailable','message':'mailer offline'},'meta':{'opening_id':"
                     "1234}}");
}

static const struct {
    const char *hex, *problem;
} malformed[] = {
    {"00", "TruncatedHeader"},
    {"00 00 00 3f 52", "TruncatedHeader"},
    {"00 00 00 a0 52 4d 50 30", "TruncatedHeader"},
};

TEST_ROWS(rmp_7_malformed_frame_is_named, COUNT(malformed))
{
    rmp_program_says(decode(malformed[row].hex, strlen(malformed[row].hex), NULL), 65,
                     "stdio_bus_rmp: %s", malformed[row].problem);
}

TEST(rmp_7_cut_frame_is_named)
{
    struct rmp_program program = decode(golden, strlen(golden) - 4, "--json");

    RMP_PROGRAM_EXPECT(&program, "'error':'LengthMismatch'", "stdio_bus_rmp: LengthMismatch");
    rmp_program_end(&program, 65);
}
