#include "build_config.h"

#include "config/command.h"

#include <sys/stat.h>

#include "config_fixture.h"

static char dir[64];

static void enter_directory(void)
{
    snprintf(dir, sizeof dir, "/tmp/check_command.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_int_eq(setenv("PATH", "/usr/bin:/bin", 1), 0); /* each of them may be read */
}

static void leave_directory(void)
{
    free_config();
    unlink("tool");
    unlink("a b");
    unlink("bin/interpreter");
    rmdir("bin");
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}

static void make_script(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(name, 0700), 0);
}

/* The first lines of scripts, and the interpreter that is reported as missing. */
static const struct {
    const char *script, *missing;
} scripts[] = {
    {"#!/bin/sh\n", NULL},
    {"#! /bin/sh -e\nexit\n", NULL},
    {"#!/usr/bin/env sh\n", NULL},
    {"#!/usr/bin/env -S sh -e\n", NULL},
    {"#!/usr/bin/env A=b sh\n", NULL}, /* left to env */
    {"#!/usr/bin/env -i none\n", NULL},
    {"#!/usr/bin/env\n", NULL},
    {"#!/usr/bin/env interpreter\n", NULL}, /* in PATH of the pool */
    {"#!bin/interpreter\n", NULL},
    {"#!\n", NULL},
    {"#!", NULL},
    {"#", NULL},
    {"", NULL},
    {"\x7f"
     "ELF",
     NULL},
    {"#!/no/such/sh\n", "/no/such/sh"},
    {"#!/no/such/sh", "/no/such/sh"},
    {"#!/no/such/sh -e\n", "/no/such/sh"},
    {"#!/bin/sh\r\n", "/bin/sh\\x0d"}, /* lines of another system */
    {"#!/tmp\n", "/tmp"},
    {"#!/usr/bin/env no-such-program\n", "no-such-program"},
    {"#!\t/usr/bin/env \t no-such-program  -u\n", "no-such-program"},
    {"#!/usr/bin/env -S no-such-program -u\n", "no-such-program"},
};

TEST_ROWS(interpreter_of_a_script, COUNT(scripts))
{
    char expected[512] = "";

    enter_directory();
    ck_assert_int_eq(mkdir("bin", 0700), 0);
    ck_assert_int_eq(symlink("/bin/cat", "bin/interpreter"), 0);
    make_script("tool", scripts[row].script);
    if (scripts[row].missing != NULL)
        snprintf(expected, sizeof expected,
                 "W c.json:1:24: pools[0].command: \"./tool\" is a script for \"%s\", which is not "
                 "there: install it, or set PATH in \"env\"\n",
                 scripts[row].missing);
    expect_command("./tool", "\"env\": {\"PATH\": \"/nowhere:./bin:/bin:/usr/bin\"}", expected);
    leave_directory();
}

/* The script is found in PATH and in the directory of the workers. */
TEST(script_of_a_pool_with_a_directory)
{
    char members[256];

    enter_directory();
    make_script("tool", "#!bin/interpreter\n");
    snprintf(members, sizeof members, "\"cwd\": \"%s\", \"env\": {\"PATH\": \".\"}", dir);
    ck_assert_int_eq(chdir("/"), 0);
    expect_command("tool", members,
                   "W c.json:1:24: pools[0].command: \"tool\" is a script for \"bin/interpreter\", "
                   "which is not there: install it, or set PATH in \"env\"\n");
    ck_assert_int_eq(chdir(dir), 0);
    leave_directory();
}

/* Some users can run what they cannot read. */
TEST(script_that_cannot_be_read)
{
    enter_directory();
    make_script("tool", "#!/bin/sh\n");
    ck_assert_int_eq(chmod("tool", 0100), 0);
    expect_command("./tool", "\"args\": []", "");
    leave_directory();
}

/* What a shell would do is not done, and the error says so. */
TEST(command_for_a_shell)
{
    enter_directory();
    expect_command("npx -y server", "\"args\": []",
                   "E c.json:1:35: pools[0].command: cannot run \"npx -y server\", looked up in "
                   "PATH: No such file or directory; no shell splits it: write the arguments into "
                   "\"args\"\n");
    expect_command("/bin/cat -u", "\"args\": []",
                   "E c.json:1:35: pools[0].command: cannot run \"/bin/cat -u\": No such file or "
                   "directory; no shell splits it: write the arguments into \"args\"\n");
    expect_command("~/bin/tool", "\"args\": []",
                   "E c.json:1:35: pools[0].command: cannot run \"~/bin/tool\": No such file or "
                   "directory; no shell replaces the ~: write the whole path\n");
    make_script("a b", "#!/bin/sh\n");
    expect_command("./a b", "\"args\": []", "");
    leave_directory();
}
