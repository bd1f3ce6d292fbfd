#include "build_config.h"

#include "share/usage.h"

#include <sys/wait.h>

#include "suite.h"

TEST(test_usage_of_a_group_is_that_of_all_its_processes)
{
    struct usage_process processes[] = {{1, 5, 10}, {2, 6, 20}, {3, 5, 40}, {4, 5, 80}};
    const struct usage usage = {.at = processes, .count = 4, .capacity = 4};
    size_t count = 0;

    ck_assert_int_eq(usage_of_group(&usage, 5, &count), 130);
    ck_assert_uint_eq(count, 3);
    ck_assert_int_eq(usage_of_group(&usage, 6, &count), 20);
    ck_assert_uint_eq(count, 4); /* is added to */
    ck_assert_int_eq(usage_of_group(&usage, 1, &count), 0);
    ck_assert_uint_eq(count, 4);
}

TEST(test_usage_of_a_process)
{
    struct usage_process processes[] = {{1, 5, 10}, {2, 6, 20}};
    const struct usage usage = {.at = processes, .count = 2, .capacity = 2};

    ck_assert_int_eq(usage_of_process(&usage, 1), 10);
    ck_assert_int_eq(usage_of_process(&usage, 2), 20);
    ck_assert_int_eq(usage_of_process(&usage, 5), 0);
}

TEST(test_usage_of_a_child_in_a_group_of_its_own)
{
    struct usage usage;
    size_t count = 0;
    long kib;
    int ends[2];
    char byte;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) { /* until the test ends */
        close(ends[1]);
        _exit((int)read(ends[0], &byte, 1));
    }
    ck_assert_int_eq(setpgid(child, child), 0);
    ck_assert_int_eq(usage_read(&usage), 0);
    kib = usage_of_process(&usage, child);
    ck_assert_int_gt(kib, 0);
    ck_assert_int_eq(usage_of_group(&usage, child, &count), kib);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_gt(usage_of_process(&usage, getpid()), 0);
    usage_free(&usage);
    close(ends[0]);
    close(ends[1]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
