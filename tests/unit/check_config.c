#include "build_config.h"

#include "config/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "config_fixture.h"

#define MINIMAL_REST "\"pools\": [{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1}]}"
#define MINIMAL "{" MINIMAL_REST
#define LARGEST ((size_t)16 << 20)

static char dir[64]; /* a directory of this test's own, and the working directory */

static void enter_directory(void)
{
    snprintf(dir, sizeof dir, "/tmp/check_config.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
}

static void leave_directory(void)
{
    static const char *const names[] = {"c.json", "file", "fifo", "one/tool", "two/tool"};
    static const char *const dirs[] = {"one/dir", "one", "two"};

    free_config();
    for (size_t i = 0; i < COUNT(names); i++)
        unlink(names[i]);
    for (size_t i = 0; i < COUNT(dirs); i++)
        rmdir(dirs[i]);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}

/* One pool with these members, from line 2 column 3 on; its bracket is 1:12. */
static void expect_pool(const char *members, const char *expected)
{
    char text[4096];

    snprintf(text, sizeof text, "{\"pools\": [{\n  %s}]}", members);
    expect_text(text, expected);
}

/* --- valid configurations --- */

#define SIZE_LIMIT(field, min, max)                                                                \
    {                                                                                              \
#field, min, max, offsetof(struct limits, field), true                                     \
    }
#define COUNT_LIMIT(field, min, max)                                                               \
    {                                                                                              \
#field, min, max, offsetof(struct limits, field), false                                    \
    }
static const struct limit_case {
    const char *key;
    long min, max;
    size_t offset;
    bool is_size;
} limit_cases[] = {
    SIZE_LIMIT(max_input_buffer, 1, 1073741824),
    SIZE_LIMIT(max_output_queue, 1, 1073741824),
    SIZE_LIMIT(max_memory, 1048576, SIZE_MAX > UINT32_MAX ? (long)1099511627776 : 1073741824),
    COUNT_LIMIT(max_restarts, 0, 1000),
    COUNT_LIMIT(restart_window_sec, 1, 86400),
    COUNT_LIMIT(drain_timeout_sec, 0, 86400),
    COUNT_LIMIT(backpressure_timeout_sec, 1, 86400),
    COUNT_LIMIT(frame_timeout_sec, 1, 86400),
    COUNT_LIMIT(half_close_sec, 1, 86400),
    COUNT_LIMIT(slow_client_timeout_sec, 1, 60),
    SIZE_LIMIT(max_connections, 1, 1000000),
    SIZE_LIMIT(max_sessions, 1, 1000000),
    SIZE_LIMIT(max_pending_requests, 1, 1000000),
    COUNT_LIMIT(session_idle_sec, 1, 604800),
    COUNT_LIMIT(max_session_requests, 1, 65536),
    SIZE_LIMIT(max_resume, 0, 1073741824),
    SIZE_LIMIT(max_resume_total, 0, 1073741824),
    COUNT_LIMIT(max_requests_per_connection, 0, 1000000000),
    COUNT_LIMIT(ping_sec, 0, 86400),
    SIZE_LIMIT(max_requests_per_client, 0, 1000000),
    COUNT_LIMIT(max_message_rate, 0, 1000000),
    COUNT_LIMIT(idle_timeout_sec, 0, 86400),
};

static unsigned long limit_value(const struct limits *limits, const struct limit_case *limit)
{
    const char *field = (const char *)limits + limit->offset;

    return limit->is_size ? *(const size_t *)(const void *)field
                          : *(const unsigned *)(const void *)field;
}

static void expect_limits(const struct limits *expected)
{
    for (size_t i = 0; i < COUNT(limit_cases); i++)
        ck_assert_uint_eq(limit_value(&config.limits, &limit_cases[i]),
                          limit_value(expected, &limit_cases[i]));
    ck_assert_uint_eq(config.limits.max_frame_body, expected->max_frame_body);
    ck_assert_uint_eq(config.limits.max_message, expected->max_message);
}

TEST(test_full)
{
    static const struct limits expected = {.max_input_buffer = 2048,
                                           .max_frame_body = 2048,
                                           .max_message = 67108864,
                                           .max_output_queue = 4096,
                                           .max_restarts = 7,
                                           .restart_window_sec = 8,
                                           .drain_timeout_sec = 9,
                                           .backpressure_timeout_sec = 10,
                                           .frame_timeout_sec = 30,
                                           .half_close_sec = 300,
                                           .slow_client_timeout_sec = 10,
                                           .max_memory = 268435456,
                                           .max_connections = 11,
                                           .max_sessions = 12,
                                           .max_pending_requests = 13,
                                           .session_idle_sec = 14,
                                           .max_session_requests = 15,
                                           .max_resume = 16,
                                           .max_resume_total = 19,
                                           .max_requests_per_connection = 17,
                                           .ping_sec = 18};
    static const char *const argv[] = {"/bin/sh", "-c", "", "z\xc3\xbc \"", NULL};

    expect_text("{\"pools\": [{\"id\": \"first\", \"command\": \"/bin/sh\", \"instances\": 3,"
                " \"args\": [\"-c\", \"\", \"z\\u00fc \\\"\"]},"
                "{\"instances\": 1024, \"command\": \"cat\", \"id\": \"z\xc3\xbc\", \"args\": []}],"
                "\"limits\": {\"max_input_buffer\": 2048, \"max_output_queue\": 4096,"
                " \"max_restarts\": 7, \"restart_window_sec\": 8, \"drain_timeout_sec\": 9,"
                " \"backpressure_timeout_sec\": 10, \"max_connections\": 11, \"max_sessions\": 12,"
                " \"max_pending_requests\": 13, \"session_idle_sec\": 14,"
                " \"max_session_requests\": 15, \"max_resume\": 16, \"max_resume_total\": 19,"
                " \"max_requests_per_connection\": 17, \"ping_sec\": 18}, \"strict\": true}",
                "");
    expect_limits(&expected);
    ck_assert_uint_eq(config.pool_count, 2);
    ck_assert_str_eq(config.pools[0].id, "first");
    ck_assert_str_eq(config.pools[0].command, "/bin/sh");
    for (size_t i = 0; argv[i] != NULL; i++)
        ck_assert_str_eq(config.pools[0].argv[i], argv[i]);
    ck_assert_ptr_null(config.pools[0].argv[4]);
    ck_assert_uint_eq(config.pools[0].instances, 3);
    ck_assert_str_eq(config.pools[1].id, "z\xc3\xbc");
    ck_assert_str_eq(config.pools[1].command, "cat");
    ck_assert_str_eq(config.pools[1].argv[0], "cat");
    ck_assert_ptr_null(config.pools[1].argv[1]);
    ck_assert_uint_eq(config.pools[1].instances, 1024);
    ck_assert(config.strict);
}

/* spec 9.3.5, 9.3.6 */
TEST_ROWS(test_defaults, 3)
{
    static const struct {
        const char *text;
        unsigned max_restarts;
    } cases[] = {
        {MINIMAL, 5},
        {"{\"limits\": {}, \"strict\": false, " MINIMAL_REST, 5},
        {"{\"limits\": {\"max_restarts\": 0}, " MINIMAL_REST, 0},
    };
    struct limits expected = {.max_input_buffer = 1048576,
                              .max_frame_body = 10485760,
                              .max_message = 67108864,
                              .max_output_queue = 4194304,
                              .max_restarts = cases[row].max_restarts,
                              .restart_window_sec = 60,
                              .drain_timeout_sec = 30,
                              .backpressure_timeout_sec = 60,
                              .frame_timeout_sec = 30,
                              .half_close_sec = 300,
                              .slow_client_timeout_sec = 10,
                              .max_memory = 268435456,
                              .max_connections = 1024,
                              .max_sessions = 1024,
                              .max_pending_requests = 4096,
                              .session_idle_sec = 60,
                              .max_session_requests = 256,
                              .max_resume = 1048576,
                              .max_resume_total = 67108864,
                              .ping_sec = 30};

    expect_text(cases[row].text, "");
    expect_limits(&expected);
    ck_assert_ptr_null(config.listen.framing);
    ck_assert_ptr_null(config.pools[0].framing);
    ck_assert_ptr_null(config.pools[0].argv[1]);
    ck_assert(!config.strict);
    ck_assert(!config.pools[0].skip_bad_output);
}

TEST(test_integral_numbers)
{
    expect_text("{\"pools\": [{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 2.0}],"
                " \"limits\": {\"max_input_buffer\": 1e6, \"max_restarts\": 0.5e1}}",
                "");
    ck_assert_uint_eq(config.pools[0].instances, 2);
    ck_assert_uint_eq(config.limits.max_input_buffer, 1000000);
    ck_assert_uint_eq(config.limits.max_restarts, 5);
}

/* --- problems --- */

#define REST ", \"command\": \"/bin/cat\", \"instances\": 1"
#define FIRST "\"id\": \"a\", \"instances\": 1,\n"
#define OTHER "\"id\": \"a\", \"command\": \"/bin/cat\",\n"
#define TOO_FEW "E c.json:3:14: pools[0].instances: must be an integer >= 1\n"
#define TOO_MANY "E c.json:3:14: pools[0].instances: must be an integer <= 1024\n"

static const struct {
    const char *text, *reports;
} problems[] = {
    /* syntax: reported alone, though rules are broken too */
    {"{\"pools\": [\n  {\"id\": }]}", "E c.json:2:10: pools[0].id: expected a value, found '}'\n"},
    {"", "E c.json:1:1: expected a value, found the end of the file\n"},
    {MINIMAL "\nx", "E c.json:2:1: expected the end of the file, found 'x'\n"},
    {"{\"pools\": [], \"strict\": 1, \"strict\": 2}",
     "E c.json:1:28: duplicate key \"strict\", first at 1:15\n"},
    /* root */
    {"[]", "E c.json:1:1: must be an object, not an array\n"},
    {"\n null", "E c.json:2:2: must be an object, not null\n"},
    {" {}", "E c.json:1:2: pools: is required\n"},
    /* pools */
    {"{\"pools\": {}}", "E c.json:1:11: pools: must be an array, not an object\n"},
    {"{\"pools\": []}", "E c.json:1:11: pools: must contain at least one pool\n"},
    {"{\"pools\": [\n[], null, 1]}", "E c.json:2:1: pools[0]: must be an object, not an array\n"
                                     "E c.json:2:5: pools[1]: must be an object, not null\n"
                                     "E c.json:2:11: pools[2]: must be an object, not a number\n"},
    /* unique ids: spec 9.3.2 */
    {"{\"pools\": [{\"id\": \"ab\"" REST "},\n"
     "{\"id\": \"b\"" REST "},\n"
     "{\"id\": \"a\\u0062\"" REST "},\n"
     "{\"id\": \"ab\"" REST "}]}",
     "E c.json:3:8: pools[2].id: \"ab\" is the id of pools[0] already, at 1:19\n"
     "E c.json:4:8: pools[3].id: \"ab\" is the id of pools[0] already, at 1:19\n"},
    {"{\"pools\": [{\"id\": \"\"" REST "}, {\"id\": \"\"" REST "}]}",
     "E c.json:1:19: pools[0].id: must not be empty\n"
     "E c.json:1:70: pools[1].id: must not be empty\n"},
    {"{\"pools\": [{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1}],\n"
     "\"limits\": [], \"strict\": \"yes\"}",
     "E c.json:2:11: limits: must be an object, not an array\n"
     "E c.json:2:25: strict: must be true or false, not a string\n"},
    /* spec 9.2 to the letter; otherwise there is a default */
    {"{\"strict\": true, \"pools\": [\n"
     "{\"id\": \"a\", \"command\": \"/bin/cat\", \"clients\": \"exclusive\"}]}",
     "E c.json:2:1: pools[0].instances: is required\n"},
    {"{\"strict\": false, \"pools\": [\n{\"id\": \"a\", \"command\": \"/bin/cat\"}]}", ""},
    /* every broken rule, each once, and the warnings */
    {"{\"pools\": [\n"
     "  {\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 0},\n"
     "  {\"id\": \"a\", \"command\": \"\", \"args\": 1}\n"
     "], \"limits\": {\"max_sessions\": 0, \"max_session\": 1},\n"
     "\"strict\": 0}",
     "E c.json:2:51: pools[0].instances: must be an integer >= 1\n"
     "E c.json:3:10: pools[1].id: \"a\" is the id of pools[0] already, at 2:10\n"
     "E c.json:3:26: pools[1].command: must not be empty\n"
     "E c.json:3:38: pools[1].args: must be an array of strings, not a number\n"
     "E c.json:4:31: limits.max_sessions: must be an integer >= 1\n"
     "W c.json:4:34: limits.max_session: unknown key, did you mean \"max_sessions\"?\n"
     "E c.json:5:11: strict: must be true or false, not a number\n"},
};

TEST_ROWS(problems_are_reported, COUNT(problems))
{
    expect_text(problems[row].text, problems[row].reports);
}

static const struct {
    const char *members, *reports;
} pool_problems[] = {
    {"", "E c.json:1:12: pools[0].id: is required\n"
         "E c.json:1:12: pools[0].command: is required\n"},
    /* command: spec 9.3.3 */
    {FIRST "\"command\": []", "E c.json:3:12: pools[0].command: must be a string, not an array\n"},
    {FIRST "\"command\": \"\"", "E c.json:3:12: pools[0].command: must not be empty\n"},
    {FIRST "\"command\": \"/bin/cat\\u0000\"",
     "E c.json:3:12: pools[0].command: must not contain the character \\u0000\n"},
    {FIRST "\"command\": \"/no/such\\n\"",
     "E c.json:3:12: pools[0].command: cannot run \"/no/such\\x0a\": "
     "No such file or directory\n"},
    {FIRST "\"command\": \"/\"",
     "E c.json:3:12: pools[0].command: cannot run \"/\": Is a directory\n"},
    {FIRST "\"command\": \"/dev/null\"",
     "E c.json:3:12: pools[0].command: cannot run \"/dev/null\": Permission denied\n"},
    {FIRST "\"command\": \"/bin/cat/x\"",
     "E c.json:3:12: pools[0].command: cannot run \"/bin/cat/x\": Not a directory\n"},
    /* args */
    {FIRST "\"command\": \"/bin/cat\", \"args\": \"-u\"",
     "E c.json:3:32: pools[0].args: must be an array of strings, not a string\n"},
    {FIRST "\"command\": \"/bin/cat\", \"args\": null",
     "E c.json:3:32: pools[0].args: must be an array of strings, not null\n"},
    {FIRST "\"command\": \"/bin/cat\", \"args\": [\"-u\", 1, \"\\u0000\", {}]",
     "E c.json:3:39: pools[0].args[1]: must be a string, not a number\n"
     "E c.json:3:42: pools[0].args[2]: must not contain the character \\u0000\n"
     "E c.json:3:52: pools[0].args[3]: must be a string, not an object\n"},
    /* instances: spec 9.3.4 */
    {OTHER "\"instances\": 0", TOO_FEW},
    {OTHER "\"instances\": -1", TOO_FEW},
    {OTHER "\"instances\": 1.5", TOO_FEW},
    {OTHER "\"instances\": -1e999", TOO_FEW},
    {OTHER "\"instances\": \"1\"",
     "E c.json:3:14: pools[0].instances: must be an integer >= 1, not a string\n"},
    {OTHER "\"instances\": 1025", TOO_MANY},
    {OTHER "\"instances\": 1e999", TOO_MANY},
    {OTHER "\"instances\": 1024", ""},
    /* on_bad_output */
    {FIRST "\"command\": \"/bin/cat\", \"on_bad_output\": \"ski\"",
     "E c.json:3:41: pools[0].on_bad_output: must be \"terminate\" or \"skip\"\n"},
    {FIRST "\"command\": \"/bin/cat\", \"on_bad_output\": true",
     "E c.json:3:41: pools[0].on_bad_output: must be a string, not a boolean\n"},
    /* what confines the workers */
    {FIRST "\"command\": \"/bin/cat\", \"no_new_privs\": 1",
     "E c.json:3:40: pools[0].no_new_privs: must be true or false, not a number\n"},
    {FIRST "\"command\": \"/bin/cat\", \"stderr\": \"file\"",
     "E c.json:3:34: pools[0].stderr: must be \"inherit\" or \"log\"\n"},
    {FIRST "\"command\": \"/bin/cat\", \"core\": 0",
     "E c.json:3:32: pools[0].core: must be true or false, not a number\n"},
#ifndef HAVE_NO_NEW_PRIVS
    {FIRST "\"command\": \"/bin/cat\", \"no_new_privs\": true",
     "E c.json:3:40: pools[0].no_new_privs: this system has no prctl(PR_SET_NO_NEW_PRIVS)\n"},
#endif
};

TEST_ROWS(problems_of_a_pool_are_reported, COUNT(pool_problems))
{
    expect_pool(pool_problems[row].members, pool_problems[row].reports);
}

TEST(test_pool_id)
{
    char members[1024], id[300];

    expect_pool("\"id\": 7" REST, "E c.json:2:9: pools[0].id: must be a string, not a number\n");
    expect_pool("\"id\": true" REST,
                "E c.json:2:9: pools[0].id: must be a string, not a boolean\n");
    expect_pool("\"id\": \"\"" REST, "E c.json:2:9: pools[0].id: must not be empty\n");
    expect_pool("\"id\": \"a\\u0000\"" REST,
                "E c.json:2:9: pools[0].id: must not contain the character \\u0000\n");
    memset(id, 'x', sizeof id);
    snprintf(members, sizeof members, "\"id\": \"%.257s\"" REST, id);
    expect_pool(members, "E c.json:2:9: pools[0].id: must be at most 256 bytes long\n");
    snprintf(members, sizeof members, "\"id\": \"%.256s\"" REST, id);
    expect_pool(members, "");
    ck_assert_uint_eq(strlen(config.pools[0].id), 256);
}

static void make_file(const char *name, mode_t mode)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
}

TEST(test_command_mode)
{
    make_file("file", 0600);
    expect_pool(FIRST "\"command\": \"./file\"",
                "E c.json:3:12: pools[0].command: cannot run \"./file\": Permission denied\n");
    ck_assert_int_eq(chmod("file", 0700), 0);
    expect_pool(FIRST "\"command\": \"./file\"", "");
    ck_assert_str_eq(config.pools[0].command, "./file");
}

/* The rules of execvp: files that are missing or not executable are passed over; an empty part is
 * the working directory. */
TEST(test_command_in_path)
{
    static const char at[] = "c.json:3:12: pools[0].command";

    ck_assert_int_eq(mkdir("one", 0700), 0);
    ck_assert_int_eq(mkdir("two", 0700), 0);
    ck_assert_int_eq(mkdir("one/dir", 0700), 0);
    make_file("one/tool", 0600);
    setenv("PATH", "none:one:two", 1);
    expect_pool(FIRST "\"command\": \"tool\"", not_in_path(at, "tool", EACCES, "none:one:two"));
    expect_pool(FIRST "\"command\": \"dir\"", not_in_path(at, "dir", EACCES, "none:one:two"));
    setenv("PATH", "none:two:", 1);
    expect_pool(FIRST "\"command\": \"tool\"", not_in_path(at, "tool", ENOENT, "none:two:"));
    make_file("two/tool", 0700);
    setenv("PATH", "none:one:two", 1);
    expect_pool(FIRST "\"command\": \"tool\"", "");
    ck_assert_str_eq(config.pools[0].command, "tool");
    ck_assert_int_eq(chdir("two"), 0);
    setenv("PATH", "/none::/none", 1);
    expect_pool(FIRST "\"command\": \"tool\"", "");
    setenv("PATH", "/none:/none", 1);
    expect_pool(FIRST "\"command\": \"tool\"", not_in_path(at, "tool", ENOENT, "/none:/none"));
    setenv("PATH", "", 1);
    expect_pool(FIRST "\"command\": \"tool\"", "");
    unsetenv("PATH");
    expect_pool(FIRST "\"command\": \"sh\"", "");
    ck_assert_int_eq(chdir(".."), 0);
}

/* A directory name too long for any path is passed over, as execvp does. */
TEST(test_command_path_too_long)
{
    char *path = malloc(6001);

    ck_assert_ptr_nonnull(path);
    memset(path, 'p', 6000);
    memcpy(path + 5000, ":/bin", 6);
    setenv("PATH", path, 1);
    expect_pool(FIRST "\"command\": \"cat\"", "");
    path[5000] = '\0';
    setenv("PATH", path, 1);
    memcpy(path + 508, "...", 4); /* as much as is shown */
    expect_pool(FIRST "\"command\": \"cat\"",
                not_in_path("c.json:3:12: pools[0].command", "cat", ENOENT, path));
    free(path);
}

TEST(test_confinement)
{
    expect_pool(FIRST "\"command\": \"/bin/cat\"", "");
    ck_assert(!config.pools[0].no_new_privs && !config.pools[0].no_core);
    expect_pool(FIRST "\"command\": \"/bin/cat\", \"no_new_privs\": false, \"core\": true", "");
    ck_assert(!config.pools[0].no_new_privs && !config.pools[0].no_core);
    expect_pool(FIRST "\"command\": \"/bin/cat\", \"core\": false", "");
    ck_assert(!config.pools[0].no_new_privs && config.pools[0].no_core);
    ck_assert(!config.pools[0].logs_stderr);
    expect_pool(FIRST "\"command\": \"/bin/cat\", \"stderr\": \"log\"", "");
    ck_assert(config.pools[0].logs_stderr);
    expect_pool(FIRST "\"command\": \"/bin/cat\", \"stderr\": \"inherit\"", "");
    ck_assert(!config.pools[0].logs_stderr);
#ifdef HAVE_NO_NEW_PRIVS
    expect_pool(FIRST "\"command\": \"/bin/cat\", \"no_new_privs\": true", "");
    ck_assert(config.pools[0].no_new_privs && !config.pools[0].no_core);
#endif
}

TEST(test_on_bad_output)
{
    expect_pool(FIRST "\"command\": \"/bin/cat\", \"on_bad_output\": \"terminate\"", "");
    ck_assert(!config.pools[0].skip_bad_output);
    expect_pool(FIRST "\"command\": \"/bin/cat\", \"on_bad_output\": \"skip\"", "");
    ck_assert(config.pools[0].skip_bad_output);
    expect_pool(FIRST "\"command\": \"/bin/cat\", \"protocol\": \"mcp\"", "");
    ck_assert(config.pools[0].skip_bad_output);
    expect_pool(FIRST "\"command\": \"/bin/cat\", \"protocol\": \"mcp\", "
                      "\"on_bad_output\": \"terminate\"",
                "");
    ck_assert(!config.pools[0].skip_bad_output);
}

TEST(test_all_instances)
{
    char text[1024] = "{\"pools\": [";
    size_t used, i;

    for (i = 0; i < 5; i++) {
        used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 "%s\n{\"id\": \"%zu\", \"command\": \"/bin/cat\", \"instances\": %d}",
                 i > 0 ? "," : "", i, i < 4 ? 1023 : 4);
    }
    used = strlen(text);
    snprintf(text + used, sizeof text - used, "]}");
    expect_text(text, "");
    ck_assert_uint_eq(config.pool_count, 5);
    snprintf(text + used - 2, sizeof text - used, "5}]}");
    expect_text(text, "E c.json:1:11: pools: the instances of all pools must be <= 4096, "
                      "not 4097\n");
}

/* --- limits --- */

static void expect_limit(const char *key, const char *value, const char *expected)
{
    char text[512];

    snprintf(text, sizeof text,
             "{\"pools\": [{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1}],\n"
             "\"limits\": {\n\"%s\":\n%s}}",
             key, value);
    expect_text(text, expected);
}

TEST_ROWS(test_limit, COUNT(limit_cases))
{
    const struct limit_case *limit = &limit_cases[row];
    char value[32], expected[256];

    snprintf(value, sizeof value, "%ld", limit->min);
    expect_limit(limit->key, value, "");
    ck_assert_uint_eq(limit_value(&config.limits, limit), (unsigned long)limit->min);
    snprintf(value, sizeof value, "%ld", limit->max);
    expect_limit(limit->key, value, "");
    ck_assert_uint_eq(limit_value(&config.limits, limit), (unsigned long)limit->max);

    snprintf(value, sizeof value, "%ld", limit->max + 1);
    snprintf(expected, sizeof expected, "E c.json:4:1: limits.%s: must be an integer <= %ld\n",
             limit->key, limit->max);
    expect_limit(limit->key, value, expected);
    expect_limit(limit->key, "18446744073709551617", expected);
    snprintf(value, sizeof value, "%ld", limit->min - 1);
    snprintf(expected, sizeof expected, "E c.json:4:1: limits.%s: must be an integer >= %ld\n",
             limit->key, limit->min);
    expect_limit(limit->key, value, expected);
    expect_limit(limit->key, "2000.5", expected);
    snprintf(expected, sizeof expected,
             "E c.json:4:1: limits.%s: must be an integer >= %ld, not null\n", limit->key,
             limit->min);
    expect_limit(limit->key, "null", expected);
}

/* It holds any other message, and two of it fit into the memory; that is the default, too. */
static const struct {
    const char *limits;
    size_t max_message;
    const char *report;
} max_messages[] = {
    {"\"max_message\": 5000000", 5000000, ""},
    {"\"max_message\": 1048576", 1048576, ""},
    {"\"max_message\": 134217728", 134217728, ""},
    {"\"max_message\": 2000, \"max_input_buffer\": 2000", 2000, ""},
    {"\"max_memory\": 8388608", 2097152, ""},
    {"\"max_memory\": 1048576", 1048576, ""},
    {"\"max_input_buffer\": 100000000", 100000000, ""},
    {"\"max_message\": 0", 0, "limits.max_message: must be an integer >= 1"},
    {"\"max_message\": 1073741825", 0, "limits.max_message: must be an integer <= 1073741824"},
    {"\"max_message\": 1048575", 0,
     "limits.max_message: must be at least max_input_buffer (1048576)"},
    {"\"max_message\": 134217729", 0,
     "limits.max_message: must be at most half of max_memory (134217728)"},
};

TEST_ROWS(test_max_message, COUNT(max_messages))
{
    char text[256], expected[200] = "";

    snprintf(text, sizeof text, "{\"limits\": {%s}, " MINIMAL_REST, max_messages[row].limits);
    if (max_messages[row].report[0] != '\0')
        snprintf(expected, sizeof expected, "E c.json:1:%d: %s\n",
                 (int)(strchr(strstr(text, "max_message"), ':') - text) + 3,
                 max_messages[row].report);
    expect_text(text, expected);
    ck_assert_uint_eq(config.limits.max_message, max_messages[row].max_message);
}

/* --- framing --- */

TEST(test_framing)
{
    expect_text("{\"listen\": {\"framing\": \"content-length\"}, \"pools\": ["
                "{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1,"
                " \"framing\": \"length\"},"
                "{\"id\": \"b\", \"command\": \"/bin/cat\", \"instances\": 1,"
                " \"framing\": \"ndjson\"}], \"limits\": {\"max_input_buffer\": 5000}}",
                "");
    ck_assert_ptr_eq(config.listen.framing, &framing_content_length);
    ck_assert_ptr_eq(config.pools[0].framing, &framing_length);
    ck_assert_ptr_eq(config.pools[1].framing, &framing_ndjson);
    ck_assert_uint_eq(config.limits.max_frame_body, 5000); /* one limit for all framings */

    expect_text("{\"listen\": {\"framing\": \"lsp\", \"port\": 1}, \"pools\": [\n"
                "{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1,\n"
                "\"framing\": 5}]}",
                "E c.json:3:12: pools[0].framing: must be a string, not a number\n"
                "E c.json:1:24: listen.framing: must be ndjson, content-length or length\n"
                "W c.json:1:31: listen.port: unknown key\n");
    expect_text("{\"listen\": \"lsp\", \"pools\": [\n"
                "{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1}]}",
                "E c.json:1:12: listen: must be an object, not a string\n");
}

/* Keys for other readers, wherever they stand. */
TEST(test_comments)
{
    expect_text("{\"$schema\": \"x\", \"_\": 1,\n"
                "\"pools\": [{\"_comment\": \"c\", \"id\": \"a\", \"command\": \"/bin/cat\","
                " \"instances\": 1}], \"limits\": {\"_max_restarts\": 1}, \"listen\": {\"$\": {}}}",
                "");
    ck_assert_uint_eq(config.limits.max_restarts, 5);
}

TEST(test_unknown_keys)
{
    expect_text("{\"pool\": 1, \"Strict\": true, \"$schema\": \"x\",\n"
                "\"pools\": [{\"ID\": \"b\", \"id\": \"a\", \"command\": \"/bin/cat\","
                " \"arg\": [],\n"
                "\"instnaces\": 2, \"instances\": 1, \"x\": {\"y\": 1}, \"\": 0}],\n"
                "\"limits\": {\"maxRestarts\": 1, \"max restarts\": 2, \"max\": 3}}",
                "W c.json:2:12: pools[0].ID: unknown key, did you mean \"id\"?\n"
                "W c.json:2:57: pools[0].arg: unknown key, did you mean \"args\"?\n"
                "W c.json:3:1: pools[0].instnaces: unknown key, did you mean \"instances\"?\n"
                "W c.json:3:33: pools[0].x: unknown key\n"
                "W c.json:3:48: pools[0][\"\"]: unknown key\n"
                "W c.json:4:12: limits.maxRestarts: unknown key, did you mean \"max_restarts\"?\n"
                "W c.json:4:30: limits[\"max restarts\"]: unknown key, did you mean "
                "\"max_restarts\"?\n"
                "W c.json:4:49: limits.max: unknown key\n"
                "W c.json:1:2: pool: unknown key, did you mean \"pools\"?\n"
                "W c.json:1:13: Strict: unknown key, did you mean \"strict\"?\n");
    ck_assert_uint_eq(config.pool_count, 1);
    ck_assert_uint_eq(config.limits.max_restarts, 5);
    ck_assert(!config.strict);
}

TEST(test_long_unknown_key)
{
    char key[101], text[512], expected[512];

    memset(key, 'k', 100);
    key[100] = '\0';
    snprintf(text, sizeof text, "{\"%s\": 1, %s", key, MINIMAL_REST);
    snprintf(expected, sizeof expected, "W c.json:1:2: %.60s...: unknown key\n", key);
    expect_text(text, expected);
}

/* --- files and descriptors --- */

static void write_bytes(int fd, const char *bytes, size_t len, size_t piece)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len < piece ? len : piece);
        if (n < 0 && errno != EINTR)
            _exit(1);
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
}

/* MINIMAL and blanks after it, `size` bytes in all. */
static char *padded(size_t size)
{
    char *text = malloc(size + 1);

    ck_assert_ptr_nonnull(text);
    memset(text, ' ', size);
    memcpy(text, MINIMAL, strlen(MINIMAL));
    text[size] = '\0';
    return text;
}

static void make_config(const char *text, size_t len)
{
    int fd = open("c.json", O_WRONLY | O_CREAT | O_TRUNC, 0600);

    ck_assert_int_ge(fd, 0);
    write_bytes(fd, text, len, len);
    close(fd);
}

static void expect_file(const char *path, const char *expected)
{
    free_config();
    expect(config_read_file(&config, path, note_report, reports), expected);
}

TEST(test_file)
{
    make_config(MINIMAL "\n", strlen(MINIMAL) + 1);
    expect_file("c.json", "");
    ck_assert_str_eq(config.pools[0].command, "/bin/cat");
    expect_file("missing.json", "E missing.json: cannot open: No such file or directory\n");
    expect_file("bad\nname", "E bad?name: cannot open: No such file or directory\n");
    expect_file("/", "E /: cannot read: Is a directory\n");
    make_config("{", 1);
    expect_file("./c.json", "E ./c.json:1:2: expected a key in double quotes or '}', "
                            "found the end of the file\n");
}

TEST(test_file_size)
{
    char *text = padded(LARGEST + 1);

    make_config(text, LARGEST);
    expect_file("c.json", "");
    ck_assert_uint_eq(config.pool_count, 1);
    make_config(text, LARGEST + 1);
    expect_file("c.json", "E c.json: larger than 16 MiB\n");
    free(text);
}

/* A child that writes `len` bytes, `piece` at a time; returns the descriptor to read. */
static int start_writer(const char *text, size_t len, size_t piece, pid_t *child)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    *child = fork();
    ck_assert_int_ge(*child, 0);
    if (*child == 0) {
        close(ends[0]);
        write_bytes(ends[1], text, len, piece);
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

static const size_t pieces[] = {1, 2, 7, 4096, 1000000};

TEST_ROWS(test_pipe, COUNT(pieces))
{
    const size_t size = 50000; /* more than the first reads hold */
    char *text = padded(size);
    int fd, flags, status, nonblocking;
    pid_t child;

    for (nonblocking = 0; nonblocking < 2; nonblocking++) {
        fd = start_writer(text, size, pieces[row], &child);
        flags = fcntl(fd, F_GETFL);
        ck_assert_int_eq(fcntl(fd, F_SETFL, nonblocking ? flags | O_NONBLOCK : flags), 0);
        config_free(&config);
        expect(config_read_fd(&config, fd, "fd 5", note_report, reports), "");
        ck_assert_str_eq(config.pools[0].id, "a");
        ck_assert_int_eq(close(fd), 0); /* still open: it was not ours to close */
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
    free(text);
}

TEST(test_pipe_errors)
{
    int fd, status;
    pid_t child;

    fd = start_writer("[\n1,]", 5, 1, &child);
    expect(config_read_fd(&config, fd, "fd 5", note_report, reports),
           "E fd 5:2:3: [1]: expected a value, found ']'\n");
    close(fd);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    reports[0] = '\0';
    expect(config_read_fd(&config, fd, "fd 5", note_report, reports),
           "E fd 5: cannot read: Bad file descriptor\n");
}

TEST(test_fifo)
{
    int status, fd;
    pid_t child;

    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        fd = open("fifo", O_WRONLY);
        write_bytes(fd, MINIMAL, strlen(MINIMAL), 5);
        _exit(0);
    }
    expect_file("fifo", "");
    ck_assert_str_eq(config.pools[0].id, "a");
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

TEST(test_free_twice)
{
    expect_text(MINIMAL, "");
    config_free(&config);
    expect_nothing();
    config_free(&config);
    expect_nothing();
}

/* --- suite --- */

FIXTURE(enter_directory, leave_directory)
