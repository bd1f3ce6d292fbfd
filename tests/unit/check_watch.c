/* share/watch.h over each backend that is compiled in, and without one. */
#include "build_config.h"

#include "share/watch.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "suite.h"

#define SILENCE_MS 30
#define LOOK_MS 20 /* without a backend */
#define QUIET_MS (SILENCE_MS + 70)
#define LONG_MS 20000

static struct watch watch;
static struct log log_of_test;
static int changes, lines;
static char last_line[1024];
static char *paths[WATCHED_PATHS_MAX];

static void count_change(void *user_data)
{
    ck_assert_ptr_eq(user_data, &watch);
    changes++;
}

static void take_line(void *user_data, enum log_level level, const char *line)
{
    (void)user_data;
    (void)level;
    lines++;
    snprintf(last_line, sizeof last_line, "%s", line);
}

static void set_up_over(const struct watch_backend *backend)
{
    memset(&watch, 0, sizeof watch);
    watch.backend = backend;
    watch.paths = paths;
    watch.changed = count_change;
    watch.user_data = &watch;
    watch.log = &log_of_test;
    watch.silence_ms = SILENCE_MS;
    watch.look_ms = LOOK_MS;
    watch.loop = stdio_bus_event_loop_create();
    ck_assert_ptr_nonnull(watch.loop);
    log_open_calls(&log_of_test, take_line, NULL, LOG_LEVEL_WARN);
    changes = lines = 0;
}

static void tear_down(void)
{
    watch_end(&watch);
    stdio_bus_event_loop_destroy(watch.loop);
    log_close(&log_of_test);
}

#ifdef HAVE_INOTIFY
static void set_up_inotify(void)
{
    set_up_over(&watch_backend_inotify);
}
FIXTURE(set_up_inotify, tear_down)
#endif

#ifdef HAVE_EVFILT_VNODE
static void set_up_kqueue(void)
{
    set_up_over(&watch_backend_kqueue);
}
FIXTURE(set_up_kqueue, tear_down)
#endif

static void set_up_look(void)
{
    set_up_over(NULL);
}
FIXTURE(set_up_look, tear_down)

/* --- steps --- */

static void shell(const char *command)
{
    ck_assert_msg(system(command) == 0, "%s", command); /* NOLINT(cert-env33-c): a test's own */
}

/* The working directory becomes a fresh one, in which the command makes the files. */
static void enter_dir(const char *command)
{
    ck_assert_int_eq(chdir(test_dir()), 0);
    shell(command);
}

static void watch_path(const char *name)
{
    char dir[512];

    ck_assert_ptr_nonnull(getcwd(dir, sizeof dir));
    paths[watch.count] = (char *)(uintptr_t)test_format("%s/%s", dir, name);
    watch.count++;
}

static void run_ms(int64_t length_ms, int until_changes)
{
    int64_t until = clock_now_ms() + length_ms, now;

    while (changes < until_changes && (now = clock_now_ms()) < until)
        ck_assert_int_ge(stdio_bus_event_loop_run_once(watch.loop, (int)(until - now)), 0);
}

static void expect_no_more(void)
{
    int before = changes;

    run_ms(QUIET_MS, before + 1);
    ck_assert_int_eq(changes, before);
}

static void expect_change(const char *command)
{
    int before = changes;

    shell(command);
    run_ms(LONG_MS, before + 1);
    ck_assert_msg(changes > before, "no change: %s", command);
}

/* A command that takes its time may be more than one. */
static void expect_changes(const char *command)
{
    int before;

    expect_change(command);
    do {
        before = changes;
        run_ms(QUIET_MS, before + 1);
    } while (changes > before);
}

static void expect_none(const char *command)
{
    shell(command);
    expect_no_more();
}

/* --- a directory --- */

#define BUILD                                                                                      \
    "mkdir -p build/sub && echo 1 >build/a.js && echo 1 >build/sub/b.js && ln -s a.js build/l"

static const char *const changes_in_directory[] = {
    "echo longer >build/a.js",
    "echo 2 >>build/sub/b.js",
    "touch -t 202001010000 build/a.js",
    "echo 2 >build/new && mv build/new build/a.js",
    "echo 2 >other && mv other build/a.js",
    "echo 2 >build/.tmp && mv build/.tmp build/sub/b.js",
    "rm build/a.js",
    "echo 1 >build/c.js",
    "mkdir -p build/x/y/z && echo 1 >build/x/y/z/d.js",
    "mv build/sub build/sub2",
    "mv build/sub outside",
    "mkdir -p outside/deep && echo 1 >outside/deep/e.js && mv outside build/in",
    "rm -r build && mkdir build && echo 3 >build/a.js",
    "mv build old && mkdir build",
    "ln -sf sub/b.js build/l",
    "rm -r build",
};

TEST_ROWS(watches_a_directory, COUNT(changes_in_directory))
{
    enter_dir(BUILD);
    watch_path("build");
    watch_begin(&watch);
    expect_change(changes_in_directory[row]);
    ck_assert_int_eq(lines, 0);
}

static const char *const no_changes_in_directory[] = {
    "mkdir build/empty",
    "mkdir build/node_modules && echo 1 >build/node_modules/x.js",
    "mkdir build/.git && echo 1 >build/.git/index",
    "mkdir build/__pycache__ && echo 1 >build/__pycache__/a.pyc",
    "echo 1 >build/.a.js.swp",
    "echo 1 >build/a.js~ && echo 1 >'build/#a.js#' && ln -s nobody build/.#a.js",
    "echo 1 >beside && mkdir aside && echo 1 >aside/a.js",
    "chmod 600 build/a.js",
    "cat build/a.js build/sub/b.js >/dev/null && ls -lR build >/dev/null",
    "mkfifo build/fifo",
};

TEST(ignores_what_is_no_change)
{
    enter_dir(BUILD);
    watch_path("build");
    watch_begin(&watch);
    expect_no_more();
    for (size_t i = 0; i < COUNT(no_changes_in_directory); i++)
        shell(no_changes_in_directory[i]);
    expect_no_more();
    expect_change("echo longer >build/a.js");
    ck_assert_int_eq(lines, 0);
}

/* What came later is watched as well. */
TEST(follows_a_directory)
{
    enter_dir(BUILD);
    watch_path("build/");
    watch_begin(&watch);
    expect_changes("mkdir -p build/x/y && echo 1 >build/x/y/d.js");
    expect_changes("echo 22 >build/x/y/d.js");
    expect_changes("rm -r build");
    expect_changes("mkdir build && echo 1 >build/a.js");
    expect_changes("echo 22 >build/a.js");
    ck_assert_int_eq(lines, 0);
}

/* --- a file --- */

static const char *const changes_of_file[] = {
    "echo longer >server.js",
    "echo 2 >x && mv x server.js",
    "rm server.js",
    "rm server.js && echo 22 >server.js",
    "mv server.js server.old && echo 22 >server.js",
    "touch -t 202001010000 server.js",
};

TEST_ROWS(watches_a_file, COUNT(changes_of_file))
{
    enter_dir("echo 1 >server.js");
    watch_path("server.js");
    watch_begin(&watch);
    expect_changes(changes_of_file[row]);
    expect_change("echo 333 >server.js");
}

TEST(ignores_what_is_no_change_of_a_file)
{
    enter_dir("echo 1 >server.js");
    watch_path("server.js");
    watch_begin(&watch);
    shell("echo 2 >beside.js && rm beside.js");
    expect_none("chmod 600 server.js && cat server.js >/dev/null");
}

TEST(watches_what_a_link_leads_to)
{
    enter_dir("mkdir v1 v2 && echo 1 >v1/s && echo 22 >v2/s && ln -s v1/s s && ln -s v1 dir");
    watch_path("s");
    watch_path("dir");
    watch_begin(&watch);
    expect_changes("echo 333 >v1/s");
    expect_changes("echo 4444 >new && mv new v1/s");
    expect_changes("ln -sfn v2/s s");
    expect_changes("echo 55555 >v2/s");
    expect_changes("rm dir && ln -s v2 dir");
    expect_changes("echo 1 >v2/t");
}

/* A directory that is watched for a name, and for all others. */
TEST(watches_a_file_and_its_directory)
{
    enter_dir(BUILD);
    watch_path("build/a.js");
    watch_path("build/.env");
    watch_path("build");
    watch_path("build");
    watch_begin(&watch);
    expect_changes("echo longer >build/sub/b.js");
    expect_changes("echo longer >build/c.js");
    expect_changes("echo longer >build/a.js");
    expect_changes("echo 1 >build/.env");
    expect_none("echo 1 >build/.other");
}

/* --- what is not there --- */

TEST(watches_what_comes_later)
{
    enter_dir("true");
    watch_path("x/y/z.js");
    watch_begin(&watch);
    expect_none("echo 1 >beside");
    expect_none("mkdir x");
    expect_none("mkdir x/y && echo 1 >x/y/other");
    expect_changes("echo 1 >x/y/z.js");
    expect_changes("echo 22 >x/y/z.js");
    expect_changes("rm -r x");
    expect_changes("mkdir -p x/y && echo 1 >x/y/z.js");
}

TEST(watches_nothing)
{
    watch_begin(&watch);
    ck_assert(event_loop_due_ms(watch.loop) == EVENT_LOOP_NEVER);
}

/* --- silence --- */

static void write_number(const char *path, long number)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "%ld\n", number), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* False: the machine was too busy to write often enough. */
static bool write_for(int64_t length_ms)
{
    int64_t start = clock_now_ms(), last = start, longest = 0, now;

    do {
        write_number("build/a.js", (long)last);
        run_ms(20, 1);
        now = clock_now_ms();
        longest = now - last > longest ? now - last : longest;
        last = now;
    } while (now < start + length_ms);
    return longest < watch.silence_ms / 2;
}

TEST(waits_for_silence)
{
    enter_dir(BUILD);
    watch_path("build");
    watch.silence_ms = WATCH_SILENCE_MS;
    watch_begin(&watch);
    while (!write_for(700))
        changes = 0;
    ck_assert_int_eq(changes, 0);
    run_ms(LONG_MS, 1);
    ck_assert_int_eq(changes, 1);
}

TEST(sleeps_while_nothing_happens)
{
    uint64_t rounds;

    enter_dir(BUILD);
    watch_path("build");
    watch_begin(&watch);
    if (watch.backend == NULL)
        return;
    expect_changes("echo longer >build/a.js");
    rounds = event_loop_usage(watch.loop).rounds;
    ck_assert(event_loop_due_ms(watch.loop) == EVENT_LOOP_NEVER);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(watch.loop, 300), 0);
    ck_assert_uint_eq(event_loop_usage(watch.loop).rounds, rounds + 1);
}

/* --- limits --- */

/* More events than a queue of Linux holds: of a name that is skipped, and at last of one that
 * counts. */
TEST(sees_a_change_whose_event_is_lost)
{
    static const char *const names[] = {"build/.0", "build/.1"};

    enter_dir(BUILD);
    write_number(names[0], 0);
    watch_path("build");
    watch_begin(&watch);
    for (int i = 0; i < 14000; i++)
        ck_assert_int_eq(rename(names[i % 2], names[1 - i % 2]), 0);
    expect_changes("echo longer >build/a.js");
}

static int fake_adds;

static void *fake_create(int *fd)
{
    static int state;

    errno = EMFILE;
    *fd = fake_adds < 0 ? -1 : dup(STDIN_FILENO);
    return *fd >= 0 ? &state : NULL;
}

static void fake_destroy(void *state)
{
    (void)state;
    close(watch.fd);
}

static int fake_add(void *state, enum watched_place place, const char *path, struct slice name)
{
    (void)state;
    (void)place;
    (void)path;
    (void)name;
    errno = ENOSPC;
    return fake_adds-- > 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

static bool fake_read(void *state)
{
    (void)state;
    return false;
}

static const struct watch_backend fake = {
    .name = "fake",
    .create = fake_create,
    .destroy = fake_destroy,
    .add = fake_add,
    .read = fake_read,
};

static const struct {
    int adds; /* that succeed; -1: not even `create` does */
    const char *said;
} limits[] = {
    {-1, "--watch: fake: Too many open files: looking at the files every second"},
    {0, "--watch: fake: No space left on device: looking at the files every second"},
    {2, "--watch: fake: No space left on device: looking at the files every second"},
};

TEST_ROWS(looks_where_a_limit_is_met, COUNT(limits))
{
    if (watch.backend != NULL)
        return; /* it has its turn without one */
    enter_dir(BUILD);
    watch_path("build");
    watch.backend = &fake;
    fake_adds = limits[row].adds;
    watch_begin(&watch);
    ck_assert_ptr_null(watch.backend);
    expect_changes("echo longer >build/a.js");
    expect_changes("echo 333 >build/sub/b.js");
    ck_assert_int_eq(lines, 1);
    expect_word(last_line, limits[row].said);
}

/* The first files that a look finds are seen. */
TEST(stops_at_too_many_files)
{
    char path[64];

    if (watch.backend != NULL)
        return;
    enter_dir("mkdir build");
    write_number("build/0", 0);
    for (int i = 1; i < WATCHED_FILES_MAX + 5; i++) {
        snprintf(path, sizeof path, "build/%d", i);
        ck_assert_int_eq(link("build/0", path), 0);
    }
    watch_path("build");
    watch_begin(&watch);
    ck_assert_uint_eq(watch.files.count, WATCHED_FILES_MAX);
    ck_assert_int_eq(lines, 1);
    expect_word(last_line, "there are more than 20000 files");
    run_ms(2 * LOOK_MS, 1);
    ck_assert_int_eq(lines, 1);
}
