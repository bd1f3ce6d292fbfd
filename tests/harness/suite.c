#include "build_config.h"

#include "suite.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_PRCTL
#include <sys/prctl.h>
#endif
#ifdef __linux__
#include <sys/mount.h>
#endif
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"
#include "proc.h"
#include "steps.h"

#define CASE_SECONDS 120
#define PARENT_MAX 60 /* bytes */

struct cleanup {
    void (*fn)(void *object);
    void *object;
    struct cleanup *next;
};

static struct cleanup *cleanups; /* the latest first */
static const char *running;      /* the test */

void harness_begin(const char *name)
{
    running = name;
}

void harness_at_end(void (*fn)(void *object), void *object)
{
    struct cleanup *cleanup = malloc(sizeof *cleanup);
    ck_assert_ptr_nonnull(cleanup);
    *cleanup = (struct cleanup){fn, object, cleanups};
    cleanups = cleanup;
}

static void end_test(void)
{
    while (cleanups != NULL) {
        struct cleanup *first = cleanups;
        cleanups = first->next;
        first->fn(first->object);
        free(first);
    }
    steps_end(running);
}

/* --- objects of a test --- */

static void end_text(void *object)
{
    text_free(object);
    free(object);
}

struct text *test_text(void)
{
    struct text *text = calloc(1, sizeof *text);
    ck_assert_ptr_nonnull(text);
    harness_at_end(end_text, text);
    return text;
}

const char *test_format(const char *format, ...)
{
    struct text *text = test_text();
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(text, format, arguments);
    va_end(arguments);
    return text->data;
}

const char *test_fill(char byte, size_t count)
{
    struct text *text = test_text();
    text_fill(text, byte, count);
    return text->data;
}

static void end_dir(void *object)
{
    harness_remove_dir(object);
    free(object);
}

const char *test_dir(void)
{
    char *path = malloc(160);
    ck_assert_ptr_nonnull(path);
    harness_make_dir(path, 160);
    harness_at_end(end_dir, path);
    return path;
}

void expect_word(const char *text, const char *word)
{
    ck_assert_msg(strstr(text, word) != NULL, "no \"%s\" in: %s", word, text);
}

/* --- the program --- */

static struct harness_test *tests, **tests_end = &tests;
static struct harness_fixture no_fixture, *fixtures;
static enum fork_status fork_status = CK_FORK_GETENV;

void harness_add(struct harness_test *test)
{
    const char *only = getenv("TEST_ONLY");
    if (only != NULL && strcmp(only, test->name) != 0)
        return;
    *tests_end = test;
    tests_end = &test->next;
}

void harness_add_fixture(struct harness_fixture *fixture)
{
    fixture->next = fixtures;
    fixtures = fixture;
}

void harness_without_fork(void)
{
    fork_status = CK_NOFORK;
}

/* A case with all tests, whose time limit suits the deadlines. */
static TCase *new_case(const struct harness_fixture *fixture)
{
    TCase *tcase = tcase_create("tests");
    tcase_set_timeout(tcase, CASE_SECONDS * timeout_factor());
    tcase_add_checked_fixture(tcase, NULL, end_test);
    tcase_add_checked_fixture(tcase, fixture->set_up, fixture->tear_down);
    for (const struct harness_test *test = tests; test != NULL; test = test->next)
        test->add_to(tcase);
    return tcase;
}

void harness_adopt_orphans(void)
{
#if defined(HAVE_PRCTL) && defined(PR_SET_CHILD_SUBREAPER)
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
}

bool harness_empty_dev(void)
{
#ifdef __linux__
    return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/dev", "tmpfs", 0, NULL) == 0;
#else
    return false;
#endif
}

bool harness_can_empty_dev(void)
{
    int status = 1;
    pid_t pid = getenv("STDIO_BUS_WRAPPER") == NULL ? fork() : -1; /* a wrapper needs /dev */
    if (pid == 0)
        _exit(harness_empty_dev() ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool harness_fewer(void)
{
    return getenv("TEST_FEWER") != NULL;
}

bool harness_skips_memory(void)
{
    return getenv("TEST_NO_RSS") != NULL;
}

bool harness_has_prctl(void)
{
#ifdef HAVE_PRCTL
    return getenv("TEST_NO_PRCTL") == NULL;
#else
    return false;
#endif
}

void harness_make_dir(char *path, size_t size)
{
    const char *parent = getenv("TEST_DIR");
    if (parent == NULL)
        parent = "/tmp";
    snprintf(path, size, "%s/XXXXXX", parent);
    ck_assert_msg(mkdtemp(path) != NULL, "mkdtemp %s: %s", path, strerror(errno));
}

/* Calls `fn` with the path of each entry. */
static void each_entry(const char *path, void (*fn)(const char *path))
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char name[4096];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        fn(name);
    }
    if (dir != NULL)
        closedir(dir);
}

void harness_remove_dir(const char *path)
{
    if (unlink(path) == 0)
        return;
    each_entry(path, harness_remove_dir)
        ;
    rmdir(path);
}

/* Prints the log of a failed test, and removes its files. */
static void show_remains(const char *path)
{
    char name[4200];
    struct text log = {0};
    snprintf(name, sizeof name, "%s/log", path);
    if (read_file(&log, name) && log.len > 0) {
        const char *tail = log.len > 4000 ? log.data + (log.len - 4000) : log.data;
        fprintf(stderr, "---- the daemon's log in %s, its end:\n%s----\n", path, tail);
    }
    text_free(&log);
    if (getenv("TEST_KEEP") == NULL)
        harness_remove_dir(path);
}

/* Ends the processes that failed tests left; they are children of this one by now. */
static void end_orphans(void)
{
    pid_t children[64];
    for (;;) {
        size_t count = proc_children(getpid(), children, 64);
        for (size_t i = 0; i < count && i < 64; i++)
            kill(children[i], SIGKILL);
        if (count == 0 || waitpid(-1, NULL, 0) < 0)
            break;
    }
}

/* TMPDIR, unless the sockets below it would have longer paths than there can be. */
static const char *short_parent(void)
{
    const char *parent = getenv("TMPDIR");
    return parent != NULL && strlen(parent) <= PARENT_MAX ? parent : "/tmp";
}

/* Below nohup SIGHUP is ignored, and in the background of a script SIGINT and SIGQUIT. Programs
 * that the tests end by a signal would inherit that. */
static void end_inherited_ignoring(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
}

int harness_main(const char *name)
{
    Suite *suite = suite_create(name);
    char path[256];
    snprintf(path, sizeof path, "%s/sbt-XXXXXX", short_parent());
    if (mkdtemp(path) == NULL || setenv("TEST_DIR", path, 1) != 0 ||
        setenv("XDG_CACHE_HOME", path, 1) != 0) {
        perror(path);
        return 99;
    }
    end_inherited_ignoring();
    signal(SIGPIPE, SIG_IGN);
    harness_adopt_orphans();
    if (fixtures == NULL)
        fixtures = &no_fixture;
    for (const struct harness_fixture *each = fixtures; each != NULL; each = each->next)
        suite_add_tcase(suite, new_case(each));
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, fork_status);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    end_orphans();
    each_entry(path, show_remains)
        ;
    rmdir(path);
    return failed == 0 ? 0 : 1;
}
