/* stdio_bus(1), --share: what a server has answered is remembered on disk, for daemons that are
 * started later (protocol.md, "What is remembered"). */
#include "build_config.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "proc.h"
#include "share.h"

#define OF(v) "'protocolVersion':'" v "'"
#define RESULT(v) "{" OF(v) ",'capabilities':{'tools':{'listChanged':true}}}"
#define INITIALIZE                                                                                 \
    "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{" OF(                                 \
        "2025-11-25") ",'capabilities':{},'result':" RESULT("2025-11-25") "}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"
#define CHANGED "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}"
#define NAME_MAX_LEN 256

#define ERA "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}"
#define ASKED "asked whether its server serves the stateless era"

static const char *dir, *lists_path, *program_path;
static const char *discover = ""; /* what the server does with server/discover */

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void set_tool(const char *name)
{
    if (dir == NULL)
        dir = test_dir();
    lists_path = test_format("%s/lists", dir);
    write_file(lists_path, test_format("{\"tools\":[{\"name\":\"%s\"}]}\n", name), 0600);
}

/* A server of a script, which can be changed. */
static const char *program(void)
{
    const char *worker = getenv("TEST_WORKER");
    if (program_path != NULL)
        return program_path;
    program_path = test_format("%s/server", dir);
    write_file(program_path,
               test_format("#!/bin/sh\ntest ! -e '%s/gone' || { echo it is gone >&2; exit 3; }\n"
                           "exec '%s' --lists '%s' --discover '%s'\n",
                           dir, worker != NULL ? worker : "./test_worker", lists_path, discover),
               0700);
    return program_path;
}

static const char *cwd(void)
{
    char *path = getcwd(NULL, 0);
    const char *copy;
    ck_assert_ptr_nonnull(path);
    copy = test_format("%s", path);
    free(path);
    return copy;
}

/* The directory of the tests is that of the programs. */
#define JOIN(...) SHARE(.command = {program()}, .cwd = cwd(), __VA_ARGS__)

static void initialize(const struct sharer *sharer)
{
    client_send(sharer->client, INITIALIZE);
    client_expect(sharer->client, "{'jsonrpc':'2.0','id':0,'result':" RESULT("2025-11-25") "}");
    client_send(sharer->client, INITIALIZED);
}

static void expect_tool(const struct sharer *sharer, const char *name)
{
    struct span result = client_ask(sharer->client, "'list'", NULL, "tools/list", NULL);
    struct span found = json_text(json_get(result, "tools.0.name"));
    ck_assert_msg(span_is(found, name), "%.*s, not %s", SHOWN(result), name);
}

/* --- the files --- */

/* The path of the only file; NULL: there is none. */
static const char *memory_file(void)
{
    DIR *entries = opendir(share_dir());
    struct dirent *entry;
    const char *found = NULL;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        const char *end = strstr(entry->d_name, ".memory");
        if (end == NULL || strlen(end) != 7)
            continue;
        ck_assert_ptr_null(found);
        found = test_format("%s/%s", share_dir(), entry->d_name);
    }
    if (entries != NULL)
        closedir(entries);
    return found;
}

/* The file of a daemon that runs has the word, among other bytes. */
static bool remembers(const char *word)
{
    const char *path = memory_file();
    struct text text = {.data = NULL};
    bool found;
    if (path == NULL || !read_file(&text, path))
        return false;
    found = memmem(text.data, text.len, word, strlen(word)) != NULL;
    text_free(&text);
    return found;
}

static void end_daemon(struct sharer *sharer)
{
    pid_t daemon = share_daemon();
    share_finish(sharer);
    kill(daemon, SIGTERM);
    share_wait_gone(daemon);
}

/* A first daemon, whose server was called, and has ended with it. Returns the path of the file. */
static const char *learn(const char *tool)
{
    struct sharer *sharer;
    struct stat status;
    set_tool(tool);
    sharer = JOIN(.idle_exit = "5");
    initialize(sharer);
    expect_tool(sharer, tool);
    WAIT_UNTIL(memory_file() != NULL, "nothing is remembered");
    end_daemon(sharer);
    ck_assert_int_eq(stat(memory_file(), &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    return memory_file();
}

/* How often a process was started, by the daemon that runs or the last ones. */
static void expect_not_started(void)
{
    static const char *const words[] = {"--list", "--json", NULL};
    const char *shown = share_run(words, 0);
    struct span shared = json_get((struct span){shown, strlen(shown)}, "shared.0");
    ck_assert_msg(span_is(json_text(json_get(shared, "state")), "not started"), "%s", shown);
    ck_assert_msg(span_is(json_get(shared, "processes"), "0"), "%s", shown);
}

/* The daemon starts its server for the first message. */
static void expect_eager(void)
{
    struct sharer *sharer = JOIN(.idle_exit = "5");
    initialize(sharer);
    expect_tool(sharer, "one");
    ck_assert_uint_eq(share_logged("what the server has answered is remembered: a message"), 0);
    client_pid(sharer->client, "1", NULL);
    end_daemon(sharer);
}

/* --- tests --- */

TEST(design_memory_on_disk_answers_without_a_process)
{
    struct sharer *first, *second;
    learn("one");
    first = JOIN(.idle_exit = "5");
    second = JOIN(.idle_exit = "5");
    initialize(first);
    initialize(second);
    expect_tool(first, "one");
    expect_tool(second, "one");
    expect_not_started();
    ck_assert_int_eq(client_pid(first->client, "1", NULL), client_pid(second->client, "1", NULL));
    ck_assert_uint_eq(share_logged(" WARN "), 0);
    share_finish(second);
    end_daemon(first);
}

/* The clients of the second daemon are told, and the third one knows it. */
TEST(design_memory_on_disk_is_renewed)
{
    struct sharer *sharer;
    learn("one");
    set_tool("two");
    sharer = JOIN(.idle_exit = "5");
    initialize(sharer);
    expect_tool(sharer, "one");
    client_request(sharer->client, "1", NULL, "echo", NULL);
    client_expect(sharer->client, CHANGED);
    client_result(sharer->client, "1");
    expect_tool(sharer, "two");
    WAIT_UNTIL(remembers("two"), "not remembered");
    end_daemon(sharer);
    sharer = JOIN(.idle_exit = "5");
    initialize(sharer);
    expect_tool(sharer, "two");
    expect_not_started();
    end_daemon(sharer);
}

TEST(design_memory_on_disk_is_not_for_the_eager)
{
    struct sharer *sharer;
    learn("one");
    sharer = JOIN(.arguments = {"--eager"});
    initialize(sharer);
    ck_assert_uint_eq(share_logged("a message that needs a process"), 0);
    end_daemon(sharer);
    sharer = JOIN(.env = {"OTHER=1"});
    initialize(sharer);
    ck_assert_uint_eq(share_logged("a message that needs a process"), 0);
    end_daemon(sharer);
}

/* row: its size, its time, its inode. */
TEST_ROWS(design_memory_on_disk_of_another_program, 3)
{
    const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    struct sharer *sharer;
    learn("one");
    if (row == 0) {
        int fd = open(program(), O_WRONLY | O_APPEND);
        ck_assert_int_eq(write(fd, "\n", 1), 1);
        close(fd);
    } else if (row == 1) {
        ck_assert_int_eq(utimensat(AT_FDCWD, program(), old, 0), 0);
    } else {
        const char *next = test_format("%s.next", program());
        ck_assert_int_eq(system(test_format("cp -p '%s' '%s' && touch -r '%s' '%s'", program(),
                                            next, program(), next)),
                         0);
        ck_assert_int_eq(rename(next, program()), 0);
    }
    sharer = JOIN(.idle_exit = "5");
    initialize(sharer);
    expect_tool(sharer, "one");
    ck_assert_uint_eq(share_logged("a message that needs a process"), 0);
    end_daemon(sharer);
}

/* row: cut, changed, a pipe, a link, open to others, too long, a directory. */
TEST_ROWS(design_memory_on_disk_of_a_bad_file, 7)
{
    static const char *const reasons[] = {"it is cut or was changed",
                                          "it is cut or was changed",
                                          "not permitted",
                                          "ymbolic link",
                                          "not permitted",
                                          "too large",
                                          "not permitted"};
    const char *path = learn("one");
    struct stat status;
    int fd;
    ck_assert_int_eq(stat(path, &status), 0);
    if (row == 0) {
        ck_assert_int_eq(truncate(path, status.st_size - 1), 0);
    } else if (row == 1) {
        fd = open(path, O_WRONLY);
        ck_assert_int_eq(pwrite(fd, "x", 1, status.st_size / 2), 1);
        close(fd);
    } else if (row == 4) {
        ck_assert_int_eq(chmod(path, 0640), 0);
    } else if (row == 5) {
        ck_assert_int_eq(truncate(path, (off_t)64 << 20), 0);
    } else {
        ck_assert_int_eq(rename(path, test_format("%s.old", path)), 0);
        ck_assert_int_eq(row == 2   ? mkfifo(path, 0600)
                         : row == 3 ? symlink(test_format("%s.old", path), path)
                                    : mkdir(path, 0700),
                         0);
    }
    expect_eager();
    ck_assert_uint_eq(share_logged(test_format(" WARN .*is not used: .*%s", reasons[row])), 1);
    if (row == 6)
        ck_assert_int_eq(rmdir(path), 0);
}

/* row: not a directory, one that others can open. */
TEST_ROWS(design_memory_on_disk_without_a_directory, 2)
{
    const char *cache, *own, *env;
    struct sharer *sharer;
    set_tool("one");
    cache = test_format("%s/cache", dir);
    own = test_format("%s/stdio_bus", cache);
    env = test_format("XDG_CACHE_HOME=%s", cache);
    ck_assert_int_eq(mkdir(cache, 0700), 0);
    if (row == 0)
        write_file(own, "", 0600);
    else
        ck_assert_int_eq(mkdir(own, 0755), 0);
    sharer = JOIN(.env = {env});
    initialize(sharer);
    expect_tool(sharer, "one");
    ck_assert_uint_eq(share_logged(" WARN .*nothing is remembered on disk: "), 1);
    end_daemon(sharer);
    ck_assert_int_eq(row == 0 ? unlink(own) : rmdir(own), 0);
}

/* row: while a daemon runs, or after it; by its name or without the version. */
TEST_ROWS(design_memory_on_disk_is_forgotten, 2)
{
    const char *const forget[] = {"--forget", "tools", NULL};
    struct sharer *sharer;
    set_tool("one");
    sharer = JOIN(.share = "--share=tools");
    initialize(sharer);
    expect_tool(sharer, "one");
    WAIT_UNTIL(memory_file() != NULL, "nothing is remembered");
    if (row == 1)
        end_daemon(sharer);
    expect_word(share_run(forget, 0),
                "tools@" PACKAGE_VERSION ": what it has answered is forgotten");
    WAIT_UNTIL(memory_file() == NULL, "it is remembered");
    if (row == 1) {
        share_run(forget, 69);
        return;
    }
    usleep(1200000); /* after a pause */
    ck_assert_ptr_null(memory_file());
    end_daemon(sharer);
    sharer = JOIN(.share = "--share=tools");
    initialize(sharer);
    ck_assert_uint_eq(share_logged("a message that needs a process"), 0);
    end_daemon(sharer);
}

/* As a client that speaks both eras begins. */
static void expect_refused_era(const struct sharer *sharer)
{
    client_send(sharer->client, "{'id':'e','method':'server/discover','params':{" ERA "}}");
    client_error(sharer->client, "'e'", -32601, "server/discover");
}

static struct sharer *join_refused(void)
{
    struct sharer *sharer = JOIN(.idle_exit = "5");
    expect_refused_era(sharer);
    initialize(sharer);
    expect_tool(sharer, "one");
    return sharer;
}

/* row: the server answers that it does not know it; it ends, perhaps for another reason. */
TEST_ROWS(design_memory_on_disk_of_a_server_without_the_stateless_era, 2)
{
    struct sharer *sharer;
    discover = row == 0 ? "error" : "exit";
    set_tool("one");
    sharer = join_refused();
    WAIT_UNTIL(memory_file() != NULL, "nothing is remembered");
    end_daemon(sharer);
    sharer = join_refused();
    if (row == 0)
        expect_not_started();
    ck_assert_uint_eq(share_logged(ASKED), (size_t)row + 1);
    end_daemon(sharer);
}

/* One that serves it: what its clients have listed is given to those of the next daemon, stale. */
TEST(design_memory_on_disk_of_the_stateless_era)
{
    static const char list[] = "{'id':'%s','method':'tools/list','params':{" ERA "}}";
    struct sharer *sharer;
    struct span result;
    set_tool("one");
    write_file(lists_path, "{\"ttlMs\":60000,\"tools\":[{\"name\":\"one\"}]}\n", 0600);
    sharer = JOIN(.idle_exit = "5");
    client_send(sharer->client, list, "a");
    client_result(sharer->client, "\"a\"");
    WAIT_UNTIL(memory_file() != NULL, "nothing is remembered");
    end_daemon(sharer);
    sharer = JOIN(.idle_exit = "5");
    client_send(sharer->client, list, "b");
    result = client_result(sharer->client, "\"b\"");
    ck_assert(span_is(json_text(json_get(result, "tools.0.name")), "one"));
    ck_assert(span_is(json_get(result, "ttlMs"), "0"));
    expect_not_started();
    write_file(lists_path, "{\"ttlMs\":60000,\"tools\":[{\"name\":\"two\"}]}\n", 0600);
    client_send(sharer->client, "{'id':'c','method':'echo','params':{" ERA "}}");
    client_result(sharer->client, "\"c\"");
    client_send(sharer->client, list, "d");
    result = client_result(sharer->client, "\"d\"");
    ck_assert(span_is(json_text(json_get(result, "tools.0.name")), "two"));
    WAIT_UNTIL(remembers("two"), "not remembered");
    end_daemon(sharer);
    sharer = JOIN(.idle_exit = "5");
    client_send(sharer->client, list, "e");
    result = client_result(sharer->client, "\"e\"");
    ck_assert(span_is(json_text(json_get(result, "tools.0.name")), "two"));
    expect_not_started();
    end_daemon(sharer);
}

/* A server of another version may serve it. row: one that answers initialize in another way; one
 * that was forgotten. */
TEST_ROWS(design_memory_on_disk_asks_for_the_stateless_era_again, 2)
{
    static const char *const forget[] = {"--forget", "tools", NULL};
    struct sharer *sharer;
    discover = "error";
    set_tool("one");
    sharer = JOIN(.share = "--share=tools");
    expect_refused_era(sharer);
    initialize(sharer);
    WAIT_UNTIL(memory_file() != NULL, "nothing is remembered");
    if (row == 0) {
        end_daemon(sharer);
        sharer = JOIN(.share = "--share=tools");
        client_send(sharer->client,
                    "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{" OF(
                        "2025-11-25") ",'result':{" OF("2025-11-25") ",'other':1}}}");
        client_result(sharer->client, "0");
        client_send(sharer->client, INITIALIZED);
        client_pid(sharer->client, "1", NULL);
    } else {
        share_run(forget, 0);
    }
    ck_assert_uint_eq(share_logged(ASKED), 1);
    expect_refused_era(sharer);
    ck_assert_uint_eq(share_logged(ASKED), 2);
    end_daemon(sharer);
}

/* The request gets the error, and the memory is thrown away. */
TEST(design_memory_on_disk_of_a_server_that_does_not_start)
{
    struct sharer *sharer;
    learn("one");
    write_file(test_format("%s/gone", dir), "", 0600);
    sharer = JOIN(.idle_exit = "5");
    initialize(sharer);
    expect_tool(sharer, "one");
    client_request(sharer->client, "1", NULL, "echo", NULL);
    client_error(sharer->client, "1", -32000, "it is gone");
    WAIT_UNTIL(memory_file() == NULL, "it is remembered");
}

/* --- kill -9 while a server wakes or falls asleep --- */

enum { KILL_SERVER, KILL_DAEMON, KILL_FRONT };

/* 0: there is none. */
static pid_t server_of(pid_t daemon)
{
    pid_t server;
    return proc_children(daemon, &server, 1) > 0 ? server : 0;
}

/* Reads what comes until both requests are answered. */
static void count_answers(struct client *client, int *asked, int *after)
{
    struct span id = json_get(client_line(client), "id");
    *asked += span_is(id, "\"asked\"");
    *after += span_is(id, "\"after\"");
}

/* Each request has one answer or error, and the client goes on. */
static void expect_answers(struct client *client)
{
    int asked = 0, after = 0;
    struct span line;
    client_request(client, "'after'", NULL, "echo", NULL);
    while (asked == 0 || after == 0)
        count_answers(client, &asked, &after);
    client_request(client, "'end'", NULL, "echo", NULL);
    do {
        line = client_line(client);
        ck_assert(!span_is(json_get(line, "id"), "\"asked\""));
        ck_assert(!span_is(json_get(line, "id"), "\"after\""));
    } while (json_get(line, "id").data == NULL);
    message_result(line, "\"end\"");
    ck_assert_int_eq(asked, 1);
    ck_assert_int_eq(after, 1);
}

static void kill_one(int which, const struct sharer *front)
{
    pid_t daemon = share_daemon(), server = server_of(daemon);
    if (which == KILL_SERVER && server > 0)
        kill(server, SIGKILL);
    else if (which == KILL_DAEMON)
        kill(daemon, SIGKILL);
    else if (which == KILL_FRONT)
        kill(front->pid, SIGKILL);
    if (which == KILL_DAEMON)
        share_wait_gone(daemon);
}

/* row: which; the server is being ended, or is started again. */
TEST_ROWS(design_memory_on_disk_outlives_kills, 6)
{
    static const int moments_ms[] = {0, 2, 10};
    static const char *const stop[] = {"--stop", "tools", NULL};
    struct sharer *stays;
    if (!proc_available())
        return;
    set_tool("one");
    stays = JOIN(.share = "--share=tools");
    initialize(stays);
    client_pid(stays->client, "1", NULL);
    WAIT_UNTIL(memory_file() != NULL, "nothing is remembered");
    for (size_t i = 0; i < COUNT(moments_ms); i++) {
        struct sharer *other = JOIN(.share = "--share=tools");
        initialize(other);
        share_run(stop, 0);
        WAIT_UNTIL(row < 3 || server_of(share_daemon()) == 0, "the server runs");
        client_request(stays->client, "'asked'", NULL, "echo", NULL);
        client_request(other->client, "'asked'", NULL, "echo", NULL);
        usleep((useconds_t)moments_ms[i] * 1000);
        kill_one((int)row % 3, other);
        expect_answers(stays->client);
        if (row % 3 != KILL_FRONT)
            expect_answers(other->client);
        client_abort(other->client);
    }
    share_finish(stays);
}
