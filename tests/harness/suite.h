/* A test program: its suite, its temporary directory, and the objects that a test owns. */
#ifndef TESTS_HARNESS_SUITE_H
#define TESTS_HARNESS_SUITE_H

#include <check.h>
#include <stdbool.h>

#include "text.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Defines a test and adds it to the suite that harness_main runs. A body follows. */
#define TEST(name) TEST_ROWS(name, 1)

/* The same, run once for each row of a table, each time in a process of its own; the body reads the
 * number of the row from `row`, and reports of libcheck show it. */
#define TEST_ROWS(name, count)                                                                     \
    static void name##_run(size_t row);                                                            \
    START_TEST(name)                                                                               \
    {                                                                                              \
        harness_begin(#name);                                                                      \
        name##_run((size_t)_i);                                                                    \
    }                                                                                              \
    END_TEST                                                                                       \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        if (harness_chosen(#name))                                                                 \
            tcase_add_loop_test(harness_tests(), name, 0, (int)(count));                           \
    }                                                                                              \
    static void name##_run(size_t row __attribute__((unused)))

/* Whether the test is to run: the environment's TEST_ONLY is its name, or unset. */
bool harness_chosen(const char *name);

/* A test begins, in a process of its own. */
void harness_begin(const char *name);

/* The case of this program's tests. */
TCase *harness_tests(void);

/* Runs the tests of this program, in the order of their definitions. Returns main's exit status. */
int harness_main(const char *suite);

/* A case whose time limit suits the deadlines. */
TCase *harness_case(Suite *suite, const char *name);

/* Runs the suite, each test in a process of its own, and frees it. Afterwards prints the daemon
 * logs of the tests that failed, ends their processes and removes their files (unless TEST_KEEP is
 * set). Returns main's exit status. */
int harness_run(Suite *suite);

/* Calls fn(object) at the end of a test that passes, in reverse order of the calls: clients are
 * closed before their daemon is stopped. Of tests in these cases only. */
void harness_at_end(void (*fn)(void *object), void *object);

/* Objects that live until the test ends: an empty text, a formatted one, `count` equal bytes, and
 * the path of a fresh directory, which is removed. */
struct text *test_text(void);
const char *test_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *test_fill(char byte, size_t count);
const char *test_dir(void);

/* Fails the test unless the word is in the text. */
void expect_word(const char *text, const char *word);

/* Makes a fresh directory; the path fits into a Unix socket address with 20 bytes to spare. */
void harness_make_dir(char *path, size_t size);

/* Removes a directory with the plain files, sockets and fifos in it. */
void harness_remove_dir(const char *path);

/* Makes this process the parent of orphaned descendants, where the system can. */
void harness_adopt_orphans(void);

/* Whether the system lets a test start a process with an empty /dev. */
bool harness_can_empty_dev(void);

/* Empties /dev, for this process and its children. */
bool harness_empty_dev(void);

/* True when TEST_NO_RSS is set: memory is not to be measured. */
bool harness_skips_memory(void);

#endif
