#include "build_config.h"

#include "config/environment.h"

#include "suite.h"

/* Paths, and what becomes of them, or the problem. */
static const struct {
    const char *path, *result, *problem;
} paths[] = {
    {"/run/bus.sock", "/run/bus.sock", NULL},
    {"", "", NULL},
    {"~/bus", "/home/a b/bus", NULL},
    {"~", "~", NULL},
    {"~other/bus", "~other/bus", NULL},
    {"/x/~/y", "/x/~/y", NULL},
    {"$HOME/bus", "/home/a b/bus", NULL},
    {"${HOME}/bus", "/home/a b/bus", NULL},
    {"/$CHECK_1/${CHECK_1}x$CHECK_1", "/one$HOME/one$HOMExone$HOME", NULL}, /* once */
    {"$CHECK_EMPTY/a", "/a", NULL},
    {"a$", "a$", NULL},
    {"a$$1/$-$", "a$$1/$-$", NULL},
    {"$CHECK_NONE/a", NULL, "CHECK_NONE is not set in the environment"},
    {"/${CHECK_NONE}", NULL, "CHECK_NONE is not set in the environment"},
    {"$CHECK_1x", NULL, "CHECK_1x is not set in the environment"},
    {"a${HOME", NULL, "\"${\" without a \"}\""},
    {"${}", NULL, "\"\" is not the name of a variable"},
    {"${a b}", NULL, "\"a b\" is not the name of a variable"},
};

TEST_ROWS(paths_are_expanded, COUNT(paths))
{
    char to[100], problem[VARIABLE_PROBLEM_MAX] = "";
    int len;

    setenv("HOME", "/home/a b", 1);
    setenv("CHECK_1", "one$HOME", 1);
    setenv("CHECK_EMPTY", "", 1);
    unsetenv("CHECK_NONE");
    unsetenv("CHECK_1x");
    len = variable_expand_path(to, sizeof to, paths[row].path, problem);
    if (paths[row].result == NULL) {
        ck_assert_int_eq(len, -1);
        ck_assert_str_eq(problem, paths[row].problem);
        return;
    }
    ck_assert_int_eq(len, (int)strlen(paths[row].result));
    ck_assert_str_eq(to, paths[row].result);
}

TEST(home_may_be_unset)
{
    char to[8], problem[VARIABLE_PROBLEM_MAX] = "";

    unsetenv("HOME");
    ck_assert_int_eq(variable_expand_path(to, sizeof to, "~/a", problem), -1);
    ck_assert_str_eq(problem, "HOME is not set in the environment");
    ck_assert_int_eq(variable_expand_path(to, sizeof to, "~a", problem), 2);
}

/* Of a long result nothing is written beyond the room, and its length is returned. */
TEST(room_is_limited)
{
    char to[9] = "........", problem[VARIABLE_PROBLEM_MAX] = "";

    setenv("CHECK_1", "12345678", 1);
    ck_assert_int_eq(variable_expand_path(to, 8, "$CHECK_1$CHECK_1/", problem), 17);
    ck_assert_int_eq(to[8], '\0');
    ck_assert_int_eq(variable_expand_path(to, 9, "$CHECK_1", problem), 8);
    ck_assert_str_eq(to, "12345678");
    ck_assert_int_eq(variable_expand_path(to, 8, "1234567", problem), 7);
    ck_assert_str_eq(to, "1234567");
}
