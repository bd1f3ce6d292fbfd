#include "build_config.h"

#include "config/environment.h"

#include <fcntl.h>

#include "config_fixture.h"

static void expect_pool(const char *members, const char *expected)
{
    expect_command("/bin/cat", members, expected);
}

static void expect_variable(const char *name, const char *value)
{
    const char *found = environment_get(config.pools[0].envp, name);

    if (value == NULL)
        ck_assert_msg(found == NULL, "%s is %s", name, found);
    else
        ck_assert_msg(found != NULL && strcmp(found, value) == 0, "%s is %s, not %s", name,
                      found != NULL ? found : "not set", value);
}

static size_t count_of(char *const *envp, const char *name)
{
    size_t count = 0, len = strlen(name);

    for (; *envp != NULL; envp++)
        count += strncmp(*envp, name, len) == 0 && (*envp)[len] == '=';
    return count;
}

TEST(environment_is_inherited)
{
    setenv("CHECK_ONE", "1=1", 1);
    setenv("CHECK_EMPTY", "", 1);
    expect_pool("\"args\": []", "");
    expect_variable("CHECK_ONE", "1=1");
    expect_variable("CHECK_EMPTY", "");
    expect_variable("CHECK_ON", NULL);
    expect_variable("CHECK_NONE", NULL);
    ck_assert_ptr_null(config.pools[0].cwd);
    expect_pool("\"clear_env\": false", "");
    expect_variable("CHECK_ONE", "1=1");
}

TEST(env_sets_and_replaces_variables)
{
    setenv("CHECK_ONE", "old", 1);
    setenv("CHECK_ONE_MORE", "kept", 1);
    expect_pool("\"env\": {\"CHECK_ONE\": \"new\", \"CHECK_TWO\": \"\", \"a.b-c\": \"d\"}", "");
    expect_variable("CHECK_ONE", "new");
    expect_variable("CHECK_ONE_MORE", "kept");
    expect_variable("CHECK_TWO", "");
    expect_variable("a.b-c", "d");
    ck_assert_uint_eq(count_of(config.pools[0].envp, "CHECK_ONE"), 1);
    ck_assert_str_eq(getenv("CHECK_ONE"), "old");
}

TEST(clear_env_inherits_nothing)
{
    setenv("CHECK_ONE", "1", 1);
    expect_pool("\"clear_env\": true", "");
    ck_assert_ptr_null(config.pools[0].envp[0]);
    expect_pool("\"clear_env\": true, \"env\": {\"A\": \"${CHECK_ONE}\"}", "");
    ck_assert_str_eq(config.pools[0].envp[0], "A=1");
    ck_assert_ptr_null(config.pools[0].envp[1]);
}

TEST(private_variables_are_not_inherited)
{
    static const char *const names[] = {"NOTIFY_SOCKET",  "LISTEN_FDS",    "LISTEN_PID",
                                        "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID",
                                        "STDIO_BUS_ANY",  "STDIO_BUS_"};
    size_t i, count = COUNT(names);

    for (i = 0; i < count; i++)
        setenv(names[i], "x", 1);
    setenv("STDIO_BUSY", "kept", 1);
    setenv("LISTEN_FDS_TOO", "kept", 1);
    expect_pool("\"args\": []", "");
    for (i = 0; i < count; i++)
        expect_variable(names[i], NULL);
    expect_variable("STDIO_BUSY", "kept");
    expect_variable("LISTEN_FDS_TOO", "kept");
    expect_pool("\"env\": {\"LISTEN_FDS\": \"3\"}", ""); /* set expressly */
    expect_variable("LISTEN_FDS", "3");
}

TEST(names_in_values_are_expanded)
{
    static const struct {
        const char *written, *value;
    } cases[] = {
        {"${CHECK_ONE}", "first"},
        {"<${CHECK_ONE}${_2}>", "<first$x ${y}>"}, /* a value is not expanded again */
        {"${CHECK_EMPTY}", ""},
        {"$CHECK_ONE", "$CHECK_ONE"},
        {"$", "$"},
        {"a$b}{", "a$b}{"},
        {"$$", "$"},
        {"$$$", "$$"},
        {"$${CHECK_ONE}", "${CHECK_ONE}"},
        {"$$${CHECK_ONE}", "$first"},
        {"$(CHECK_ONE)`id`", "$(CHECK_ONE)`id`"},
    };
    char members[256];

    setenv("CHECK_ONE", "first", 1);
    setenv("CHECK_EMPTY", "", 1);
    setenv("_2", "$x ${y}", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(members, sizeof members, "\"env\": {\"A\": \"%s\"}", cases[i].written);
        expect_pool(members, "");
        expect_variable("A", cases[i].value);
    }
}

static const struct {
    const char *members, *problem;
} faults[] = {
    {"\"env\": [\"A=b\"]", "2:8: pools[0].env: must be an object, not an array"},
    {"\"env\": {\"A\": 1}", "2:14: pools[0].env.A: must be a string, not a number"},
    {"\"env\": {\"A\": \"b\\u0000\"}",
     "2:14: pools[0].env.A: must not contain the character \\u0000"},
    {"\"env\": {\"\": \"b\"}", "2:13: pools[0].env[\"\"]: no variable can have this name"},
    {"\"env\": {\"A=B\": \"b\"}", "2:16: pools[0].env[\"A=B\"]: no variable can have this name"},
    {"\"env\": {\"A\": \"x${CHECK_NONE}\"}",
     "2:14: pools[0].env.A: not set in the environment: \"CHECK_NONE\""},
    {"\"env\": {\"A\": \"${CHECK_NONE\"}",
     "2:14: pools[0].env.A: \"${\" without a \"}\"; \"$$\" stands for a \"$\""},
    {"\"env\": {\"A\": \"${}\"}", "2:14: pools[0].env.A: not the name of a variable: \"\""},
    {"\"env\": {\"A\": \"${B:-c}\", \"D\": null}",
     "2:14: pools[0].env.A: not the name of a variable: \"B:-c\"\n"
     "E c.json:2:30: pools[0].env.D: must be a string, not null"},
    {"\"clear_env\": 1", "2:14: pools[0].clear_env: must be true or false, not a number"},
    {"\"cwd\": 1", "2:8: pools[0].cwd: must be a string, not a number"},
    {"\"cwd\": \"\"", "2:8: pools[0].cwd: must not be empty"},
    {"\"cwd\": \"/no/such\"",
     "2:8: pools[0].cwd: cannot work in \"/no/such\": No such file or directory"},
    {"\"cwd\": \"/dev/null\"", "2:8: pools[0].cwd: cannot work in \"/dev/null\": Not a directory"},
};

TEST_ROWS(faults_are_reported, COUNT(faults))
{
    char expected[512];

    unsetenv("CHECK_NONE");
    snprintf(expected, sizeof expected, "E c.json:%s\n", faults[row].problem);
    expect_pool(faults[row].members, expected);
}

TEST(name_has_a_limit)
{
    char name[300], members[1024];

    memset(name, 'N', sizeof name);
    name[255] = '\0';
    setenv(name, "long", 1);
    snprintf(members, sizeof members, "\"env\": {\"A\": \"${%s}\"}", name);
    expect_pool(members, "");
    expect_variable("A", "long");
    name[255] = 'N';
    name[256] = '\0';
    snprintf(members, sizeof members, "\"env\": {\"A\": \"${%s}\"}", name);
    expect_pool(members, "E c.json:2:14: pools[0].env.A: not the name of a variable: "
                         "\"NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN...\"\n");
}

TEST(working_directory_is_read)
{
    expect_pool("\"cwd\": \"/tmp/..\"", "");
    ck_assert_str_eq(config.pools[0].cwd, "/tmp/..");
}

/* In the PATH and the working directory of the workers. */
TEST(command_is_looked_up_as_for_the_workers)
{
    static const char at[] = "c.json:1:35: pools[0].command";
    static const char path[] = "/usr/bin:/bin";
    char dir[] = "/tmp/check_environment.XXXXXX", tool[64], members[256];

    setenv("PATH", path, 1); /* the test's own may have directories that refuse */
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(tool, sizeof tool, "%s/tool", dir);
    ck_assert_int_eq(symlink("/bin/cat", tool), 0);
    expect_command("tool", "\"args\": []", not_in_path(at, "tool", ENOENT, path));
    setenv("CHECK_ONE", dir, 1);
    expect_command("tool", "\"env\": {\"PATH\": \"/bin:${CHECK_ONE}\"}", "");
    expect_command("cat", "\"env\": {\"PATH\": \"${CHECK_ONE}\"}",
                   not_in_path(at, "cat", ENOENT, dir));
    expect_command("cat", "\"clear_env\": true", ""); /* the system's own PATH */
    snprintf(members, sizeof members, "\"cwd\": \"%s\"", dir);
    expect_command("./tool", members, "");
    expect_command("tool", members, not_in_path(at, "tool", ENOENT, path));
    snprintf(members, sizeof members, "\"cwd\": \"%s\", \"env\": {\"PATH\": \".\"}", dir);
    expect_command("tool", members, "");
    expect_command(
        "./tool", "\"args\": []",
        "E c.json:1:35: pools[0].command: cannot run \"./tool\": No such file or directory\n");
    /* Something that it depends on is wrong: that alone is reported. */
    expect_command("tool", "\"clear_env\": 0",
                   "E c.json:2:14: pools[0].clear_env: must be true or false, not a number\n");
    ck_assert_int_eq(unlink(tool), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}

/* A directory of PATH that refuses does not end the search. */
TEST(refusal_in_path_is_reported_last)
{
    static const char at[] = "c.json:1:35: pools[0].command";
    char dir[] = "/tmp/check_environment.XXXXXX", file[64], path[64];

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(file, sizeof file, "%s/cat", dir);
    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    snprintf(path, sizeof path, "%s:/none", dir);
    setenv("CHECK_ONE", dir, 1);
    expect_command("cat", "\"env\": {\"PATH\": \"${CHECK_ONE}:/none:/bin\"}", "");
    expect_command("cat", "\"env\": {\"PATH\": \"${CHECK_ONE}:/none\"}",
                   not_in_path(at, "cat", EACCES, path));
    snprintf(path, sizeof path, "/none:%s", dir);
    expect_command("cat", "\"env\": {\"PATH\": \"/none:${CHECK_ONE}\"}",
                   not_in_path(at, "cat", EACCES, path));
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}

FIXTURE(NULL, free_config)
