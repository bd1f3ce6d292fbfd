/* stdio_bus(1), --watch: a shared server is restarted when its files change. */
#include "build_config.h"

#include <sys/stat.h>

#include "harness.h"
#include "share.h"

#define INITIALIZE                                                                                 \
    "{'protocolVersion':'2025-11-25','result':{'protocolVersion':'2025-11-25',"                    \
    "'capabilities':{'tools':{'listChanged':true}}}}"
#define RESTARTS "--watch: files have changed"
#define SILENCE_MS 200 /* WATCH_SILENCE_MS */

/* In the directory of the test. */
static const char *place(const char *name)
{
    static const char *dir;
    if (dir == NULL)
        dir = test_dir();
    return test_format("%s/%s", dir, name);
}

static void make_dir(const char *name)
{
    ck_assert_int_eq(mkdir(place(name), 0700), 0);
}

static void write_words(const char *name, const char *words)
{
    FILE *file = fopen(place(name), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(words, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void shake_hands(struct sharer *sharer)
{
    client_request(sharer->client, "'i'", NULL, "initialize", INITIALIZE);
    client_result(sharer->client, "\"i\"");
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    client_ask(sharer->client, "1", NULL, "echo", NULL);
}

static struct sharer *share_watched(const char *name)
{
    struct sharer *sharer = SHARE(.arguments = {"--watch", place(name)});

    shake_hands(sharer);
    return sharer;
}

static void await_restarts(size_t count)
{
    WAIT_UNTIL(share_logged("restart, asked for") == count, "%zu restarts, not %zu",
               share_logged("restart, asked for"), count);
}

/* The client, which stays, is told that the tools may be others. */
static void expect_told(const struct sharer *sharer)
{
    client_expect(sharer->client, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
}

TEST(design_watch_restarts_when_a_file_changes)
{
    write_words("server.js", "one");
    struct sharer *sharer = share_watched("server.js");
    long pid = client_pid(sharer->client, "2", NULL);
    write_words("server.js", "two");
    expect_told(sharer);
    ck_assert_int_ne(client_pid(sharer->client, "3", NULL), pid);
    /* An editor writes another file, and renames it. */
    write_words("server.js~", "six");
    ck_assert_int_eq(rename(place("server.js~"), place("server.js")), 0);
    expect_told(sharer);
    await_restarts(2);
    /* It is removed, and written again. */
    ck_assert_int_eq(unlink(place("server.js")), 0);
    expect_told(sharer);
    write_words("server.js", "ten");
    expect_told(sharer);
    await_restarts(4);
    share_finish(sharer);
}

TEST(design_watch_restarts_when_a_directory_changes)
{
    make_dir("build");
    struct sharer *sharer = share_watched("build");
    make_dir("build/later");
    write_words("build/later/tool.js", "one");
    expect_told(sharer);
    make_dir("build/node_modules");
    write_words("build/node_modules/x.js", "one");
    make_dir("build/.git");
    write_words("build/.git/index", "one");
    client_expect_quiet(sharer->client);
    int64_t until = now_ms() + 1000;
    struct span line;
    ck_assert(!client_line_before(sharer->client, until, &line));
    await_restarts(1);
    share_finish(sharer);
}

/* A test that is kept from running makes a silence of its own: so many restarts are right. */
TEST(design_watch_waits_for_silence)
{
    struct sharer *sharer;
    int64_t start, last, now;
    size_t pauses = 0, restarts;

    write_words("server.js", "");
    sharer = share_watched("server.js");
    start = last = now_ms();
    do {
        write_words("server.js", test_format("%ld", (long)last));
        usleep(20000);
        restarts = share_logged(RESTARTS);
        now = now_ms();
        pauses += (size_t)(now - last) / (SILENCE_MS / 2);
        ck_assert_uint_le(restarts, pauses);
        last = now;
    } while (now < start + 1000);
    expect_told(sharer);
    if (pauses == 0)
        share_finish(sharer);
}

#define BROKEN "server exited with status 3 before answering: it is broken"

static void expect_served(struct sharer *const sharers[2], const char *id)
{
    for (int i = 0; i < 2; i++) {
        expect_told(sharers[i]);
        client_ask(sharers[i]->client, id, NULL, "echo", NULL);
    }
}

/* It is being written: a mistake costs no client its connection. */
TEST(design_watch_of_a_server_that_breaks)
{
    const char *const restart[] = {"--restart", "breaks", NULL};
    struct share_setup setup = {
        .share = "--share=breaks",
        .arguments = {"--watch", place("server.js")},
        .command = {"sh", "-c",
                    "test ! -s \"$FILE\" || { echo it is broken >&2; exit 3; }; "
                    "exec \"$TEST_WORKER\""},
        .env = {test_format("FILE=%s", place("broken"))},
    };
    struct sharer *const sharers[] = {share_with(&setup), share_with(&setup)};

    shake_hands(sharers[0]);
    shake_hands(sharers[1]);
    write_words("broken", "x");
    write_words("server.js", "x");
    WAIT_UNTIL(share_logged("before it has answered anything: it is broken") == 1, "not broken");
    for (int id = 2; id <= 3; id++) {
        client_request(sharers[0]->client, test_format("%d", id), NULL, "echo", NULL);
        client_error(sharers[0]->client, test_format("%d", id), -32000, BROKEN);
    }
    share_run(restart, 69);
    write_words("broken", "");
    share_run(restart, 0);
    expect_served(sharers, "4");
    write_words("broken", "x");
    share_run(restart, 69);
    write_words("broken", "");
    write_words("server.js", "y");
    expect_served(sharers, "5");
    share_finish(sharers[0]);
    share_finish(sharers[1]);
}

/* The file may come later. */
TEST(design_watch_of_nothing)
{
    struct sharer *sharer = share_watched("not-there");
    client_ask(sharer->client, "2", NULL, "echo", NULL);
    ck_assert_uint_eq(share_logged(RESTARTS), 0);
    share_finish(sharer);
}

TEST(design_watch_wakes_a_server_with_clients)
{
    struct sharer *sharer;

    write_words("server.js", "one");
    sharer = SHARE(.share = "--share=tools", .arguments = {"--watch", place("server.js")});
    client_request(sharer->client, "'i'", NULL, "initialize", INITIALIZE);
    client_result(sharer->client, "\"i\"");
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    client_ask(sharer->client, "1", NULL, "echo", NULL);
    share_run((const char *const[]){"--stop", "tools", NULL}, 0);
    write_words("server.js", "two");
    expect_told(sharer);
    share_finish(sharer);
}

static const char *const misuses[][6] = {
    {"--watch", "x", "--", "cat", NULL},
    {"--share", "--watch", "", "--", "cat", NULL},
};

TEST_ROWS(design_watch_misused, COUNT(misuses))
{
    share_run(misuses[row], 64);
}

TEST(design_watch_of_too_many_paths)
{
    const char *words[40] = {"--share"};
    size_t count = 1;
    for (int i = 0; i < 17; i++) {
        words[count++] = "--watch";
        words[count++] = "x";
    }
    words[count++] = "--";
    words[count++] = "cat";
    words[count] = NULL;
    share_run(words, 64);
}
