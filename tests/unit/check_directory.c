#include "build_config.h"

#include "share/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/error.h"
#include "suite.h"

static char path[DIRECTORY_MAX], reason[DIRECTORY_REASON_MAX];

static void set(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static const struct {
    const char *runtime, *cache, *home, *wanted;
} places[] = {
    {"/run/me", "/c", "/h", "/run/me/stdio_bus"},
    {"", "/c", "/h", "/c/stdio_bus"},
    {"relative", NULL, "/h", "/h/.cache/stdio_bus"},
    {"", "relative", "/h", "/h/.cache/stdio_bus"},
};

/* Some hosts do not pass the variable. */
TEST(directory_of_logind_is_found_without_the_variable)
{
    const char *of_logind = test_format("/run/user/%ld", (long)geteuid());
    struct stat status;
    bool is_there = lstat(of_logind, &status) == 0 && S_ISDIR(status.st_mode) &&
                    status.st_uid == geteuid();

    set("XDG_RUNTIME_DIR", NULL);
    set("XDG_CACHE_HOME", NULL);
    set("HOME", "/h");
    ck_assert_int_eq(directory_find(path, reason), STDIO_BUS_OK);
    ck_assert_str_eq(path,
                     is_there ? test_format("%s/stdio_bus", of_logind) : "/h/.cache/stdio_bus");
}

TEST_ROWS(directory_is_found, COUNT(places))
{
    set("XDG_RUNTIME_DIR", places[row].runtime);
    set("XDG_CACHE_HOME", places[row].cache);
    set("HOME", places[row].home);
    ck_assert_int_eq(directory_find(path, reason), STDIO_BUS_OK);
    ck_assert_str_eq(path, places[row].wanted);
}

/* HOME unset: the one that the system knows. */
TEST(directory_of_a_user_without_home)
{
    set("XDG_RUNTIME_DIR", "");
    set("XDG_CACHE_HOME", NULL);
    set("HOME", NULL);
    if (directory_find(path, reason) == STDIO_BUS_OK)
        ck_assert_int_eq(path[0], '/');
    else
        expect_word(reason, "HOME");
}

TEST(directory_with_a_long_path)
{
    set("XDG_RUNTIME_DIR", test_format("/%s", test_fill('x', DIRECTORY_MAX)));
    ck_assert_int_eq(directory_find(path, reason), STDIO_BUS_EINVAL);
    expect_word(reason, "longer");
}

TEST(directory_is_made_and_entered)
{
    const char *base = test_dir(), *cache = test_format("%s/.cache", base);
    const char *own = test_format("%s/stdio_bus", cache);
    struct stat status, here;
    ck_assert_int_eq(directory_enter(own, false, reason), STDIO_BUS_ENOTFOUND);
    ck_assert_int_eq(directory_enter(own, true, reason), STDIO_BUS_OK);
    ck_assert_int_eq(directory_enter(own, true, reason), STDIO_BUS_OK);
    ck_assert_int_eq(stat(own, &status), 0);
    ck_assert_int_eq(stat(".", &here), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0700);
    ck_assert(status.st_ino == here.st_ino);
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(own);
    rmdir(cache);
}

TEST(directory_of_others)
{
    const char *own = test_format("%s/open", test_dir());
    ck_assert_int_eq(mkdir(own, 0700), 0);
    ck_assert_int_eq(chmod(own, 0710), 0);
    ck_assert_int_eq(directory_enter(own, true, reason), STDIO_BUS_EINVAL);
    expect_word(reason, "other users");
    if (geteuid() != 0) {
        ck_assert_int_eq(directory_enter("/", true, reason), STDIO_BUS_EINVAL);
        expect_word(reason, "belongs to another user");
        ck_assert_int_eq(directory_enter("/nobody/here", true, reason), STDIO_BUS_EINVAL);
        expect_word(reason, "cannot make");
        return;
    }
    ck_assert_int_eq(chmod(own, 0755), 0);
    ck_assert_int_eq(chown(own, 65534, 65534), 0);
    ck_assert_int_eq(directory_enter(own, true, reason), STDIO_BUS_EINVAL);
    expect_word(reason, "belongs to another user (uid 65534)");
}

/* The lock ends with its process, however that ends. */
TEST(directory_lock_is_released_by_a_crash)
{
    const char *own = test_format("%s/locked", test_dir());
    int ends[2], lock;
    char byte;
    pid_t pid;
    ck_assert_int_eq(directory_enter(own, true, reason), STDIO_BUS_OK);
    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        lock = directory_lock(reason);
        if (lock < 0 || write(ends[1], "x", 1) != 1)
            _exit(1);
        pause(); /* until it is killed */
    }
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    lock = directory_lock(reason);
    ck_assert_int_ge(lock, 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(lock);
    close(ends[0]);
    close(ends[1]);
    unlink("lock");
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(own);
}
