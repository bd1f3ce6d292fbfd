/* What the unit tests have for a main: one case with a time limit. */
#ifndef CHECK_RUN_TESTS_H
#define CHECK_RUN_TESTS_H

#include <check.h>

/* Runs the suite and frees it. Returns main's exit status. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

/* Runs the tests that `add_tests` adds to the case. Returns main's exit status. */
static inline int run_tests(const char *name, double timeout_sec, void (*add_tests)(TCase *tcase))
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, timeout_sec);
    suite_add_tcase(suite, tcase);
    add_tests(tcase);
    return run_suite(suite);
}

#endif
