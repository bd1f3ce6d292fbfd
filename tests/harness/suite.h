/* A test program: its suite, its temporary directory, and the objects that a test owns. */
#ifndef TESTS_HARNESS_SUITE_H
#define TESTS_HARNESS_SUITE_H

/* What the tests need of the C library, which they do not include again. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Defines a test and adds it to its program. A body follows. */
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
    static void name##_add_to(TCase *tcase)                                                        \
    {                                                                                              \
        tcase_add_loop_test(tcase, name, 0, (int)(count));                                         \
    }                                                                                              \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        static struct harness_test added = {#name, name##_add_to, NULL};                           \
        harness_add(&added);                                                                       \
    }                                                                                              \
    static void name##_run(size_t row __attribute__((unused)))

/* What each test of this program has before it and after it; NULL: nothing. After several of these
 * all tests run once with each. */
#define FIXTURE(set_up, tear_down)                                                                 \
    __attribute__((constructor)) static void set_up##_##tear_down##_add(void)                      \
    {                                                                                              \
        static struct harness_fixture added = {set_up, tear_down, NULL};                           \
        harness_add_fixture(&added);                                                               \
    }

/* The tests of this program run in its own process: thousands of forks are slow with sanitizers. */
#define WITHOUT_FORK                                                                               \
    __attribute__((constructor)) static void without_fork(void)                                    \
    {                                                                                              \
        harness_without_fork();                                                                    \
    }

struct harness_test {
    const char *name;
    void (*add_to)(TCase *tcase);
    struct harness_test *next;
};

struct harness_fixture {
    void (*set_up)(void), (*tear_down)(void);
    struct harness_fixture *next;
};

/* For these macros. A test whose name is not the environment's TEST_ONLY is left out. */
void harness_add(struct harness_test *test);
void harness_add_fixture(struct harness_fixture *fixture);
void harness_without_fork(void);
void harness_begin(const char *name);

/* Runs the tests of this program in the order of their definitions, each in a process of its own.
 * Afterwards prints the daemon logs of the tests that failed, ends their processes and removes
 * their files (unless TEST_KEEP is set). Returns main's exit status. The main function of a program
 * that defines none is this. */
int harness_main(const char *suite);

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

/* Removes a directory with all that is in it, or a file. */
void harness_remove_dir(const char *path);

/* Makes this process the parent of orphaned descendants, where the system can. */
void harness_adopt_orphans(void);

/* Whether the system lets a test start a process with an empty /dev. */
bool harness_can_empty_dev(void);

/* Empties /dev, for this process and its children. */
bool harness_empty_dev(void);

/* Whether the daemon has prctl: workers die with it, and no_new_privs is there. TEST_NO_PRCTL is
 * set for one that was built without, unlike the tests. */
bool harness_has_prctl(void);

/* True when TEST_FEWER is set, in .ci/run and where all is slow: a test repeats less. */
bool harness_fewer(void);

/* True when TEST_NO_RSS is set: memory is not to be measured. */
bool harness_skips_memory(void);

#endif
