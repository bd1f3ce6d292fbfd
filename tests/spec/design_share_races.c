/* stdio_bus(1), --share: users, versions and directories that are in each other's way. */
#include "build_config.h"

#include <sys/un.h>
#include <time.h>

#include "harness.h"
#include "share.h"

#define NAMED(value)                                                                               \
    {                                                                                              \
        "sh", "-c", "exec \"$TEST_WORKER\" --name \"" value "\""                                   \
    }

static long pid_of(struct sharer *sharer)
{
    return client_pid(sharer->client, "1", NULL);
}

/* --- two versions --- */

/* A copy of the program that has another version. */
static const char *other_version(void)
{
    static const char version[] = PACKAGE_VERSION;
    const char *path = test_format("%s/stdio_bus", test_dir());
    const char *original = getenv("STDIO_BUS");
    struct text *program = test_text();
    size_t found = 0;
    int fd;
    ck_assert(read_file(program, original != NULL ? original : "./stdio_bus"));
    for (size_t i = 0; i + sizeof version <= program->len; i++) {
        if (memcmp(program->data + i, version, sizeof version) != 0)
            continue;
        program->data[i + sizeof version - 2] ^= 1;
        found++;
    }
    fd = open(path, O_WRONLY | O_CREAT, 0700);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, program->data, program->len), (ssize_t)program->len);
    close(fd);
    return found > 0 ? path : NULL;
}

/* A daemon serves clients of its own version alone, also where all of them use one name. */
TEST_ROWS(design_share_of_two_versions, 2)
{
    const char *share = row == 0 ? "--share" : "--share=tools", *other = other_version();
    if (other == NULL)
        return; /* a script that runs the program */
    struct sharer *old = SHARE(.share = share);
    long pid = pid_of(old);
    const char *own = getenv("STDIO_BUS");
    own = own != NULL ? test_format("%s", own) : "./stdio_bus";
    setenv("STDIO_BUS", other, 1);
    struct sharer *new = SHARE(.share = share), *next = SHARE(.share = share);
    long new_pid = pid_of(new);
    ck_assert_int_ne(new_pid, pid);
    ck_assert_int_eq(pid_of(next), new_pid);
    setenv("STDIO_BUS", own, 1);
    struct sharer *last = SHARE(.share = share);
    ck_assert_int_eq(pid_of(last), pid);
    share_finish(old);
    share_finish(new);
    share_finish(next);
    share_finish(last);
}

/* --- directories --- */

static void expect_refused(struct sharer *sharer, const char *word)
{
    client_request(sharer->client, "1", NULL, "initialize", NULL);
    client_error(sharer->client, "1", -32000, word);
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 69);
    expect_word(share_errors(sharer), word);
}

TEST(design_share_in_a_directory_that_cannot_be_made)
{
    expect_refused(SHARE(.env = {"XDG_RUNTIME_DIR=/dev/null"}), "cannot make the directory");
}

TEST(design_share_in_a_directory_that_cannot_be_written)
{
    if (geteuid() == 0)
        return; /* the superuser can write anywhere */
    ck_assert_int_eq(mkdir(share_dir(), 0500), 0);
    expect_refused(SHARE(.cwd = NULL), "cannot make the file lock");
    ck_assert_int_eq(chmod(share_dir(), 0700), 0);
}

/* As after `sudo`, which may keep XDG_RUNTIME_DIR: nothing is made in another user's directory, and
 * no socket there is joined. */
TEST(design_share_in_a_directory_of_another_user)
{
    if (geteuid() != 0)
        return; /* only the superuser can be two users */
    ck_assert_int_eq(mkdir(share_dir(), 0755), 0);
    ck_assert_int_eq(chown(share_dir(), 65534, 65534), 0);
    expect_refused(SHARE(.cwd = NULL), "belongs to another user (uid 65534)");
    ck_assert_int_eq(chown(share_dir(), geteuid(), getegid()), 0);
    ck_assert_int_eq(rmdir(share_dir()), 0);
}

TEST(design_share_without_home)
{
    share_dir();
    struct sharer *first = SHARE(.env = {"HOME"}, .command = NAMED("$(pwd)"), .cwd = "/usr");
    struct sharer *any = SHARE(.env = {"HOME"}, .command = NAMED("$(pwd)"), .cwd = "/usr",
                               .arguments = {"--any-cwd"});
    expect_member(client_ask(first->client, "1", NULL, "echo", NULL), "worker", "\"/usr\"");
    expect_member(client_ask(any->client, "1", NULL, "echo", NULL), "worker", "\"/\"");
    share_finish(first);
    share_finish(any);
}

/* --- what daemons leave --- */

enum { DAY = 24 * 60 * 60 };

static void make_old(const char *file, long days)
{
    struct timespec when[2] = {{.tv_sec = time(NULL) - days * DAY}};
    when[1] = when[0];
    ck_assert_int_eq(utimensat(AT_FDCWD, file, when, 0), 0);
}

static const char *file_of(const char *name)
{
    return test_format("%s/%s", share_dir(), name);
}

static void make_log(const char *name, long days)
{
    int fd = open(file_of(name), O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    make_old(file_of(name), days);
}

/* Nobody listens. */
static void make_socket(const char *name, long days)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", file_of(name));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    make_old(file_of(name), days);
}

static bool is_there(const char *name)
{
    struct stat status;
    return lstat(file_of(name), &status) == 0;
}

TEST(design_share_removes_what_daemons_of_long_ago_have_left)
{
    struct sharer *running = SHARE(.share = "--share=runs");
    pid_of(running);
    make_old(file_of("runs@" PACKAGE_VERSION ".sock"), 30);
    make_old(file_of("runs@" PACKAGE_VERSION ".log"), 30);
    make_log("old.log", 8);
    make_socket("old.sock", 8);
    make_log("older.log", 400);
    make_log("recent.log", 6);
    make_socket("recent.sock", 6);
    make_log("other", 8);
    make_log(".log", 8);
    make_old(file_of("lock"), 8);
    struct sharer *next = SHARE(.cwd = NULL);
    pid_of(next);
    ck_assert(!is_there("old.log") && !is_there("old.sock") && !is_there("older.log"));
    ck_assert(is_there("recent.log") && is_there("recent.sock") && is_there("other"));
    ck_assert(is_there(".log") && is_there("lock"));
    ck_assert(is_there("runs@" PACKAGE_VERSION ".sock"));
    ck_assert(is_there("runs@" PACKAGE_VERSION ".log"));
    share_finish(running);
    share_finish(next);
}

/* --- the reason on stderr --- */

/* Where the protocol has no handshake that could be repeated. */
TEST_ROWS(design_share_of_agents_ends_with_the_daemon, 2)
{
    struct sharer *sharer =
        SHARE(.arguments = {"--protocol", row == 0 ? "acp" : "lsp", "--clients", "exclusive",
                            "--framing", "ndjson", "--worker-framing", "ndjson"});
    pid_of(sharer);
    kill(share_daemon(), SIGKILL);
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 69);
    expect_word(share_errors(sharer), "the shared server or its daemon has ended");
}

static const struct {
    const char *arguments[4];
    int status;
} pools[] = {
    {{NULL}, 75},
    {{"--protocol", "acp"}, 75},
    {{"--protocol", "mcp"}, 75},
};

TEST_ROWS(design_connect_to_an_unknown_pool, COUNT(pools))
{
    struct daemon *daemon = START(.instances = 1);
    struct share_setup setup = {
        .share = test_format("--connect=%s", daemon->socket_path),
        .whole = true,
        .arguments = {"--pool", "nowhere", pools[row].arguments[0], pools[row].arguments[1]}};
    struct sharer *sharer = share_with(&setup);
    client_request(sharer->client, "1", NULL, "initialize", NULL);
    client_line(sharer->client);
    WAIT_UNTIL(strstr(share_errors(sharer), "no such pool; there is ") != NULL, "stderr: %s",
               share_errors(sharer));
    client_half_close(sharer->client);
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, pools[row].status);
}

/* A front that is refused does not try again ten times a second. */
TEST(design_connect_that_is_refused_waits_longer_each_time)
{
    int64_t begun = now_ms();
    struct daemon *daemon = START(.instances = 1);
    struct sharer *sharer = SHARE(.share = test_format("--connect=%s", daemon->socket_path),
                                  .whole = true,
                                  .arguments = {"--pool", "nowhere", "--protocol", "mcp"});
    daemon_wait_log(daemon, "\\[client=4\\] connected");
    ck_assert_int_ge(now_ms() - begun, 2000); /* 0.1, 0.4 and 1.6 s */
    client_half_close(sharer->client);
    client_expect_eof(sharer->client);
}
