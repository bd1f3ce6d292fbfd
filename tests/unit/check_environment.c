#include "build_config.h"

#include "config/environment.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define POOL "{\"pools\": [{\"id\": \"a\", \"command\": \"%s\", \"instances\": 1,\n%s}]}"

static struct config config;
static char told[4096];

static void note(void *user_data, bool is_error, const char *text)
{
    size_t used = strlen(told);

    (void)user_data;
    (void)is_error;
    snprintf(told + used, sizeof told - used, "%s\n", text);
}

/* A pool with this command and these further members, from 2:1 on. */
static void expect_command(const char *command, const char *members, const char *expected)
{
    char text[4096];
    int code;

    snprintf(text, sizeof text, POOL, command, members);
    told[0] = '\0';
    config_free(&config);
    code = config_read_text(&config, text, strlen(text), "c", note, NULL);
    ck_assert_str_eq(told, expected);
    ck_assert_int_eq(code, expected[0] == '\0' ? STDIO_BUS_OK : STDIO_BUS_EINVAL);
}

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

static void free_config(void)
{
    config_free(&config);
}

START_TEST(ours_is_inherited)
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
END_TEST

START_TEST(variables_are_set_and_replaced)
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
END_TEST

START_TEST(nothing_else_with_clear_env)
{
    setenv("CHECK_ONE", "1", 1);
    expect_pool("\"clear_env\": true", "");
    ck_assert_ptr_null(config.pools[0].envp[0]);
    expect_pool("\"clear_env\": true, \"env\": {\"A\": \"${CHECK_ONE}\"}", "");
    ck_assert_str_eq(config.pools[0].envp[0], "A=1");
    ck_assert_ptr_null(config.pools[0].envp[1]);
}
END_TEST

START_TEST(our_own_are_not_passed_on)
{
    static const char *const names[] = {"NOTIFY_SOCKET",  "LISTEN_FDS",    "LISTEN_PID",
                                        "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID",
                                        "STDIO_BUS_ANY",  "STDIO_BUS_"};
    size_t i, count = sizeof names / sizeof names[0];

    for (i = 0; i < count; i++)
        setenv(names[i], "x", 1);
    setenv("STDIO_BUSY", "kept", 1);
    setenv("LISTEN_FDS_TOO", "kept", 1);
    expect_pool("\"args\": []", "");
    for (i = 0; i < count; i++)
        expect_variable(names[i], NULL);
    expect_variable("STDIO_BUSY", "kept");
    expect_variable("LISTEN_FDS_TOO", "kept");
    expect_pool("\"env\": {\"LISTEN_FDS\": \"3\"}", ""); /* said expressly */
    expect_variable("LISTEN_FDS", "3");
}
END_TEST

START_TEST(names_in_values)
{
    static const struct {
        const char *written, *value;
    } cases[] = {
        {"${CHECK_ONE}", "first"},
        {"<${CHECK_ONE}${_2}>", "<first$x ${y}>"}, /* what comes in is not looked at again */
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
    size_t i;

    setenv("CHECK_ONE", "first", 1);
    setenv("CHECK_EMPTY", "", 1);
    setenv("_2", "$x ${y}", 1);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(members, sizeof members, "\"env\": {\"A\": \"%s\"}", cases[i].written);
        expect_pool(members, "");
        expect_variable("A", cases[i].value);
    }
}
END_TEST

START_TEST(faults_are_told)
{
    unsetenv("CHECK_NONE");
    expect_pool("\"env\": [\"A=b\"]", "c:2:8: pools[0].env: must be an object, not an array\n");
    expect_pool("\"env\": {\"A\": 1}", "c:2:14: pools[0].env.A: must be a string, not a number\n");
    expect_pool("\"env\": {\"A\": \"b\\u0000\"}",
                "c:2:14: pools[0].env.A: must not contain the character \\u0000\n");
    expect_pool("\"env\": {\"\": \"b\"}",
                "c:2:13: pools[0].env[\"\"]: no variable can have this name\n");
    expect_pool("\"env\": {\"A=B\": \"b\"}",
                "c:2:16: pools[0].env[\"A=B\"]: no variable can have this name\n");
    expect_pool("\"env\": {\"A\": \"x${CHECK_NONE}\"}",
                "c:2:14: pools[0].env.A: not set in the environment: \"CHECK_NONE\"\n");
    expect_pool("\"env\": {\"A\": \"${CHECK_NONE\"}",
                "c:2:14: pools[0].env.A: \"${\" without a \"}\"; \"$$\" stands for a \"$\"\n");
    expect_pool("\"env\": {\"A\": \"${}\"}",
                "c:2:14: pools[0].env.A: not the name of a variable: \"\"\n");
    expect_pool("\"env\": {\"A\": \"${B:-c}\", \"D\": null}",
                "c:2:14: pools[0].env.A: not the name of a variable: \"B:-c\"\n"
                "c:2:30: pools[0].env.D: must be a string, not null\n");
    expect_pool("\"clear_env\": 1",
                "c:2:14: pools[0].clear_env: must be true or false, not a number\n");
}
END_TEST

START_TEST(name_that_is_too_long)
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
    expect_pool(members, "c:2:14: pools[0].env.A: not the name of a variable: "
                         "\"NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN...\"\n");
}
END_TEST

START_TEST(working_directory)
{
    expect_pool("\"cwd\": \"/tmp/..\"", "");
    ck_assert_str_eq(config.pools[0].cwd, "/tmp/..");
    expect_pool("\"cwd\": 1", "c:2:8: pools[0].cwd: must be a string, not a number\n");
    expect_pool("\"cwd\": \"\"", "c:2:8: pools[0].cwd: must not be empty\n");
    expect_pool("\"cwd\": \"/no/such\"",
                "c:2:8: pools[0].cwd: cannot work in \"/no/such\": No such file or directory\n");
    expect_pool("\"cwd\": \"/dev/null\"",
                "c:2:8: pools[0].cwd: cannot work in \"/dev/null\": Not a directory\n");
}
END_TEST

/* In the PATH that the workers get, and in the directory they work in. */
START_TEST(command_is_looked_up_as_it_will_be)
{
    static const char missing[] = "c:1:35: pools[0].command: cannot run \"tool\", looked up in "
                                  "PATH: No such file or directory\n";
    char dir[] = "/tmp/check_environment.XXXXXX", tool[64], members[256];

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(tool, sizeof tool, "%s/tool", dir);
    ck_assert_int_eq(symlink("/bin/cat", tool), 0);
    expect_command("tool", "\"args\": []", missing);
    setenv("CHECK_ONE", dir, 1);
    expect_command("tool", "\"env\": {\"PATH\": \"/bin:${CHECK_ONE}\"}", "");
    expect_command("cat", "\"env\": {\"PATH\": \"${CHECK_ONE}\"}",
                   "c:1:35: pools[0].command: cannot run \"cat\", looked up in PATH: "
                   "No such file or directory\n");
    expect_command("cat", "\"clear_env\": true", ""); /* the system's own PATH */
    snprintf(members, sizeof members, "\"cwd\": \"%s\"", dir);
    expect_command("./tool", members, "");
    expect_command("tool", members, missing);
    snprintf(members, sizeof members, "\"cwd\": \"%s\", \"env\": {\"PATH\": \".\"}", dir);
    expect_command("tool", members, "");
    expect_command("./tool", "\"args\": []",
                   "c:1:35: pools[0].command: cannot run \"./tool\": No such file or directory\n");
    /* What it depends on is wrong: that alone is told. */
    expect_command("tool", "\"clear_env\": 0",
                   "c:2:14: pools[0].clear_env: must be true or false, not a number\n");
    ck_assert_int_eq(unlink(tool), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("environment");
    TCase *tcase = tcase_create("environment");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, NULL, free_config);
    tcase_add_test(tcase, ours_is_inherited);
    tcase_add_test(tcase, variables_are_set_and_replaced);
    tcase_add_test(tcase, nothing_else_with_clear_env);
    tcase_add_test(tcase, our_own_are_not_passed_on);
    tcase_add_test(tcase, names_in_values);
    tcase_add_test(tcase, faults_are_told);
    tcase_add_test(tcase, name_that_is_too_long);
    tcase_add_test(tcase, working_directory);
    tcase_add_test(tcase, command_is_looked_up_as_it_will_be);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
