/* What a shared server has answered, in files: share/memory.h, share/cache.h. */
#include "build_config.h"

#include "share/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/archive.h"
#include "base/error.h"
#include "suite.h"

#define NAME "0123456789abcdef-00112233445566778899aabbccddeeff.memory"
#define INITIALIZED                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"v\",\"capabilities\":{}}}\n"
#define TOOLS(name, next) "{\"id\":\"x\",\"result\":{\"tools\":[\"" name "\"]" next "}}\n"
#define FRESH "{\"id\":7,\"result\":{\"ttlMs\":500,\"tools\":[]}}\n"

static void read_message(struct message *message, const char *line)
{
    static struct scanner scanner;
    static struct message_scratch scratch;

    scanner_reset(&scanner);
    ck_assert_int_eq(scanner_run(&scanner, line, strlen(line)), SCAN_MESSAGE);
    ck_assert_int_eq(message_from_scan(message, slice_of_text(line), &scanner.fields, &scratch),
                     MESSAGE_OK);
}

/* A version, and a list of two pages. */
static void fill(struct remembered *remembered)
{
    struct remembering remembering;
    struct message message;
    struct slice cursor;

    remembered_init(remembered);
    read_message(&message, INITIALIZED);
    remembered_set_version(remembered, slice_of_text("v"), &message);
    remembered_set_era(remembered, true);
    remembering_init(&remembering);
    remembering.wanted = 1u << REMEMBERED_TOOLS;
    ck_assert_ptr_nonnull(remembering_next(&remembering, &cursor));
    read_message(&message, TOOLS("one", ",\"nextCursor\":\"2\""));
    remembering_answer(&remembering, remembered, &message);
    ck_assert_ptr_nonnull(remembering_next(&remembering, &cursor));
    read_message(&message, TOOLS("two", ""));
    remembering_answer(&remembering, remembered, &message);
    ck_assert(remembered->lists[REMEMBERED_TOOLS].whole);
}

/* A list of the stateless era, and what a resource says, which is not saved. */
static void fill_fresh(struct fresh *fresh)
{
    struct group pool = {.fresh = fresh};
    struct router router = {.now_ms = 1};
    struct peer worker = {.pool = &pool};
    struct message message;
    struct decision decision = {
        .from = &worker, .pool = &pool, .router = &router, .message = &message};

    fresh_init(fresh);
    read_message(&message, FRESH);
    fresh_answered(&decision, slice_of_text("tools/list\n2026-07-28\n"));
    fresh_answered(&decision, slice_of_text("resources/read\n2026-07-28\nx\n"));
    ck_assert_uint_eq(fresh->count, 2);
}

/* The bytes of a file. */
static struct slice write_bytes(void)
{
    struct remembered remembered;
    struct archive archive;
    struct fresh fresh;
    char *bytes;
    size_t len;

    fill(&remembered);
    fill_fresh(&fresh);
    archive_begin_saving(&archive);
    remembered_archive(&remembered, &archive);
    fresh_archive_stale(&fresh, &archive);
    fresh_clear(&fresh);
    ck_assert(archive_ok(&archive));
    len = MEMORY_HEAD + archive.len;
    bytes = malloc(len);
    ck_assert_ptr_nonnull(bytes);
    harness_at_end(free, bytes);
    memcpy(bytes + MEMORY_HEAD, archive.data, archive.len);
    memory_write_head(bytes, NAME, slice_of(archive.data, archive.len));
    archive_free(&archive);
    remembered_clear(&remembered);
    return slice_of(bytes, len);
}

/* Returns the problem. */
static const char *load(struct slice bytes, bool *is_empty)
{
    struct remembered remembered;
    struct fresh fresh;
    char *copy = malloc(bytes.len + 1); /* the sanitizers see each byte behind it */
    const char *problem;

    ck_assert_ptr_nonnull(copy);
    if (bytes.len > 0)
        memcpy(copy, bytes.data, bytes.len);
    copy = realloc(copy, bytes.len > 0 ? bytes.len : 1);
    remembered_init(&remembered);
    fresh_init(&fresh);
    problem = memory_load(&remembered, &fresh, NAME, slice_of(copy, bytes.len));
    *is_empty = remembered_is_empty(&remembered) && fresh.count == 0;
    ck_assert(!remembered.unfit);
    ck_assert(!*is_empty || !remembered.refuses_stateless);
    remembered_clear(&remembered);
    fresh_clear(&fresh);
    free(copy);
    return problem;
}

TEST(memory_is_loaded)
{
    struct slice bytes = write_bytes();
    struct remembered remembered;
    struct message message;
    struct fresh fresh;

    remembered_init(&remembered);
    fresh_init(&fresh);
    ck_assert_ptr_null(memory_load(&remembered, &fresh, NAME, bytes));
    ck_assert_ptr_nonnull(remembered_version(&remembered, slice_of_text("v")));
    ck_assert(remembered.refuses_stateless);
    read_message(&message, "{\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"2\"}}\n");
    ck_assert(slice_is(remembered_page(&remembered, &message)->line, TOOLS("two", "")));
    remembered_clear(&remembered);
    ck_assert_uint_eq(fresh.count, 1);
    fresh_clear(&fresh);
}

TEST(memory_cut_at_each_byte)
{
    struct slice bytes = write_bytes();
    bool is_empty;

    for (size_t len = 0; len < bytes.len; len++) {
        ck_assert_ptr_nonnull(load(slice_of(bytes.data, len), &is_empty));
        ck_assert(is_empty);
    }
}

TEST(memory_with_another_byte)
{
    struct slice bytes = write_bytes();
    char *changed = (char *)bytes.data;
    bool is_empty;

    for (size_t i = 0; i < bytes.len; i++) {
        changed[i] ^= 1;
        ck_assert_ptr_nonnull(load(bytes, &is_empty));
        ck_assert(is_empty);
        changed[i] ^= 1;
    }
    ck_assert_ptr_null(load(bytes, &is_empty));
}

TEST(memory_of_another_name)
{
    struct slice bytes = write_bytes();
    struct remembered remembered;
    struct fresh fresh;

    remembered_init(&remembered);
    fresh_init(&fresh);
    ck_assert_ptr_nonnull(memory_load(&remembered, &fresh, "other.memory", bytes));
    ck_assert(remembered_is_empty(&remembered));
}

/* Whoever changes the bytes can write the sum, too: what is loaded is what a server could say. */
TEST(memory_with_another_byte_and_the_right_sum)
{
    struct slice bytes = write_bytes(),
                 rest = slice_of(bytes.data + MEMORY_HEAD, bytes.len - MEMORY_HEAD);
    char *changed = (char *)bytes.data;
    size_t loaded = 0;
    bool is_empty;

    for (size_t i = MEMORY_HEAD; i < bytes.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            changed[i] ^= (char)(1 << bit);
            memory_write_head(changed, NAME, rest);
            if (load(bytes, &is_empty) == NULL)
                loaded++;
            else
                ck_assert(is_empty);
            changed[i] ^= (char)(1 << bit);
        }
    }
    ck_assert_uint_gt(loaded, 0);
}

/* --- the key --- */

static const char *key_of(const char *identity, char **argv, char *at)
{
    const struct pool_config config = {.argv = argv, .cwd = at};
    char *key = malloc(CACHE_KEY_LEN + 1);

    ck_assert_ptr_nonnull(key);
    harness_at_end(free, key);
    memory_key(key, identity, &config);
    ck_assert_uint_eq(strlen(key), CACHE_KEY_LEN);
    return key;
}

static void make_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

TEST(memory_key_has_the_files)
{
    char sh[] = "sh", script[] = "script.js", option[] = "--x",
         *argv[] = {sh, script, option, NULL};
    char dir[256];
    const char *file, *without, *with;

    snprintf(dir, sizeof dir, "%s", test_dir());
    file = test_format("%s/script.js", dir);

    without = key_of("a", argv, dir);
    ck_assert_str_eq(key_of("a", argv, dir), without);
    ck_assert_str_ne(key_of("b", argv, dir), without);
    make_file(file, "one");
    with = key_of("a", argv, dir);
    ck_assert_str_ne(with, without);
    ck_assert_str_ne(key_of("a", argv, NULL), with);
    make_file(file, "three");
    ck_assert_str_ne(key_of("a", argv, dir), with);
    unlink(file);
    ck_assert_str_eq(key_of("a", argv, dir), without);
}

/* --- the directory --- */

static int directory = -1;
static const char *path;

static void open_directory(void)
{
    char reason[DIRECTORY_REASON_MAX];

    path = test_format("%s/cache", test_dir());
    ck_assert_int_eq(directory_open(&directory, path, true, reason), STDIO_BUS_OK);
}

static void close_directory(void)
{
    ck_assert_int_ge(cache_forget(directory, "a"), 0);
    close(directory);
    ck_assert_int_eq(rmdir(path), 0); /* nothing is left */
}

FIXTURE(open_directory, close_directory)

static const char *name_of(const char *base, int number)
{
    char name[CACHE_NAME_MAX];

    cache_name(name, base, test_format("%032d", number));
    return test_format("%s", name);
}

static int put(const char *name, const char *text)
{
    return cache_write(directory, name, slice_of_text("head"), slice_of_text(text));
}

static bool has(const char *name, const char *text)
{
    size_t len;
    char *bytes = cache_read(directory, name, &len);
    bool is_same = bytes != NULL && slice_is(slice_of(bytes, len), text);

    free(bytes);
    return is_same;
}

TEST(cache_keeps_files)
{
    const char *name = name_of("a", 1);

    ck_assert(!has(name, ""));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(put(name, "one"), STDIO_BUS_OK);
    ck_assert(has(name, "headone"));
    ck_assert_int_eq(put(name, "two"), STDIO_BUS_OK);
    ck_assert(has(name, "headtwo"));
    cache_remove(directory, name);
    ck_assert(!has(name, "headtwo"));
}

/* And one that others may write or read. */
TEST(cache_of_another_user)
{
    const char *name = name_of("a", 1);

    ck_assert_int_eq(put(name, "one"), STDIO_BUS_OK);
    ck_assert_int_eq(fchmodat(directory, name, 0620, 0), 0);
    ck_assert(!has(name, ""));
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(put(name, "two"), STDIO_BUS_OK);
    ck_assert(has(name, "headtwo"));
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(fchownat(directory, name, 65534, 65534, 0), 0);
    ck_assert(!has(name, ""));
    ck_assert(errno == EPERM || errno == EACCES); /* root without its rights does not open it */
    ck_assert_int_eq(put(name, "three"), STDIO_BUS_OK);
    ck_assert(has(name, "headthree"));
}

TEST(cache_forgets_those_of_one)
{
    ck_assert_int_eq(put(name_of("a", 1), "1"), STDIO_BUS_OK);
    ck_assert_int_eq(put(name_of("a", 2), "2"), STDIO_BUS_OK);
    ck_assert_int_eq(put(name_of("a-1", 1), "3"), STDIO_BUS_OK);
    ck_assert_int_eq(cache_forget(directory, "a"), 2);
    ck_assert_int_eq(cache_forget(directory, "a"), 0);
    ck_assert(has(name_of("a-1", 1), "head3"));
    ck_assert_int_eq(cache_forget(directory, "a-1"), 1);
}

static void age(const char *name, time_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

    ck_assert_int_eq(utimensat(directory, name, times, 0), 0);
}

/* Files with holes count as if they had none. The one that was read last is new. */
TEST(cache_has_bounds)
{
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(put(name_of("a", i), "x"), STDIO_BUS_OK);
        ck_assert_int_eq(truncate(test_format("%s/%s", path, name_of("a", i)), 20 << 20), 0);
        age(name_of("a", i), 1000 + i);
    }
    free(cache_read(directory, name_of("a", 0), &(size_t){0}));
    ck_assert_int_eq(put(name_of("a", 9), "y"), STDIO_BUS_OK);
    ck_assert_int_eq(faccessat(directory, name_of("a", 0), F_OK, 0), 0);
    ck_assert_int_ne(faccessat(directory, name_of("a", 1), F_OK, 0), 0);
    ck_assert_int_eq(faccessat(directory, name_of("a", 2), F_OK, 0), 0);
    ck_assert(has(name_of("a", 9), "heady"));
}

/* Those of a process that was killed. */
TEST(cache_removes_parts)
{
    const char *part = test_format("%s.part.1", name_of("a", 1));

    make_file(test_format("%s/%s", path, part), "x");
    ck_assert_int_eq(put(name_of("a", 2), "y"), STDIO_BUS_OK);
    ck_assert_int_eq(faccessat(directory, part, F_OK, 0), 0);
    age(part, 1000);
    ck_assert_int_eq(put(name_of("a", 2), "y"), STDIO_BUS_OK);
    ck_assert_int_ne(faccessat(directory, part, F_OK, 0), 0);
}

/* What is remembered then is not what the server says. */
TEST(cache_on_a_full_disk)
{
    struct rlimit before, less;
    const char *name = name_of("a", 1);

    ck_assert_int_eq(put(name, "one"), STDIO_BUS_OK);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    less = before;
    less.rlim_cur = 6;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &less), 0);
    ck_assert_int_eq(put(name, "three"), STDIO_BUS_ERR);
    ck_assert_int_eq(errno, EFBIG);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert(!has(name, "headone"));
}

static const struct {
    const char *cache, *home, *wanted;
} places[] = {
    {"/c", "/h", "/c/stdio_bus"},
#ifdef __APPLE__
    {"relative", "/h", "/h/Library/Caches/stdio_bus"},
#else
    {"relative", "/h", "/h/.cache/stdio_bus"},
#endif
};

TEST_ROWS(cache_is_found, COUNT(places))
{
    char found[DIRECTORY_MAX], reason[DIRECTORY_REASON_MAX];

    setenv("XDG_CACHE_HOME", places[row].cache, 1);
    setenv("HOME", places[row].home, 1);
    ck_assert_int_eq(cache_find(found, reason), STDIO_BUS_OK);
    ck_assert_str_eq(found, places[row].wanted);
    setenv("XDG_CACHE_HOME", test_format("/%s", test_fill('x', DIRECTORY_MAX)), 1);
    ck_assert_int_eq(cache_find(found, reason), STDIO_BUS_EINVAL);
    expect_word(reason, "too long");
    ck_assert_str_eq(found, "");
}
