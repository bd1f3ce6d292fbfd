/* What changes between two configurations. */
#include "build_config.h"

#include <check.h>

#include "config/difference.h"
#include "config_fixture.h"
#include "suite.h"

/* Reads a configuration with a pool that has these members; ' stands for ". */
static void read_pool(struct config *to, const char *members)
{
    struct text *text = test_text();

    text_printf(text, "{'pools':[{'id':'a','command':'/bin/cat','instances':2%s}]}", members);
    text_quote(text, 0);
    ck_assert_int_eq(config_read_text(to, text->data, text->len, "c", note_report, reports),
                     STDIO_BUS_OK);
}

static const struct {
    const char *before, *after;
    enum pool_change change;
} rows[] = {
    {"", "", POOL_SAME},
    {",'args':[]", "", POOL_SAME},
    {",'busy_timeout_sec':1,'clients':'exclusive'", ",'busy_timeout_sec':2,'clients':'exclusive'",
     POOL_SAME},
    {",'request_timeout_sec':1", ",'request_timeout_sec':2", POOL_SAME},
    {",'args':['a']", ",'args':['a','b']", POOL_PROGRAM},
    {",'args':['a','b']", ",'args':['a']", POOL_PROGRAM},
    {",'args':['a','b']", ",'args':['a','c']", POOL_PROGRAM},
    {"", ",'env':{'A':'1'}", POOL_PROGRAM},
    {",'env':{'A':'1'}", ",'env':{'A':'2'}", POOL_PROGRAM},
    {"", ",'cwd':'/'", POOL_PROGRAM},
    {"", ",'no_new_privs':true", POOL_PROGRAM},
    {"", ",'core':false", POOL_PROGRAM},
    {"", ",'stderr':'log'", POOL_PROGRAM},
    {"", ",'stderr':'inherit'", POOL_SAME},
    {"", ",'protocol':'mcp'", POOL_SHARING},
    {",'protocol':'acp'", ",'protocol':'lsp'", POOL_SHARING},
    {"", ",'clients':'sticky'", POOL_SHARING},
    {"", ",'ids':'rewrite'", POOL_SHARING},
    {"", ",'session':'params.sessionId'", POOL_SHARING},
    {"", ",'framing':'content-length'", POOL_SHARING},
    {"", ",'request_timeout_sec':2", POOL_SHARING},
    {",'protocol':'mcp'", ",'protocol':'mcp','on_bad_output':'terminate'", POOL_SHARING},
};

TEST_ROWS(difference_of_two_pools, COUNT(rows))
{
    struct config after = {.pools = NULL};

    free_config();
    read_pool(&config, rows[row].before);
    read_pool(&after, rows[row].after);
    ck_assert_int_eq(difference_of_pools(&config.pools[0], &after.pools[0]), rows[row].change);
    ck_assert_int_eq(difference_of_pools(&after.pools[0], &config.pools[0]), rows[row].change);
    config_free(&after);
    free_config();
}

static const char *const rmp_keys[] = {
    "'history_events':9", "'history_run_bytes':4097", "'history_runs':9",   "'history_bytes':4097",
    "'history_sec':9",    "'history':'/a'",           "'history_sync':true"};

TEST_ROWS(difference_of_the_history, COUNT(rmp_keys))
{
    struct config before, after;
    struct text *text = test_text();

    text_printf(text, "{'rmp':{%s}}", rmp_keys[row]);
    text_quote(text, 0);
    ck_assert_int_eq(config_read_text(&after, text->data, text->len, "c", note_report, reports),
                     STDIO_BUS_OK);
    ck_assert_int_eq(config_read_text(&before, "{\"rmp\":{}}", 10, "c", note_report, reports),
                     STDIO_BUS_OK);
    ck_assert(difference_of_rmp(&before.rmp, &after.rmp));
    ck_assert(!difference_of_rmp(&after.rmp, &after.rmp));
    config_free(&before);
    config_free(&after);
}

TEST(difference_of_places)
{
    static const struct listen_address one = {.kind = LISTEN_UNIX, .is_unix = true, .path = "/a"},
                                       path = {.kind = LISTEN_UNIX, .is_unix = true, .path = "/b"},
                                       kind = {.kind = LISTEN_HTTP, .is_unix = true, .path = "/a"},
                                       tcp = {.kind = LISTEN_TCP, .host = "a", .port = 1},
                                       port = {.kind = LISTEN_TCP, .host = "a", .port = 2},
                                       host = {.kind = LISTEN_TCP, .host = "b", .port = 1},
                                       name = {.kind = LISTEN_FD, .fd_name = "n"};
    static const struct listen_address *const all[] = {&one,  &path, &kind, &tcp,
                                                       &port, &host, &name};

    for (size_t i = 0; i < COUNT(all); i++) {
        for (size_t j = 0; j < COUNT(all); j++)
            ck_assert(difference_same_place(all[i], all[j]) == (i == j));
    }
}

TEST(difference_of_the_access_to_a_socket)
{
    static const struct access one = {.mode = 0600}, mode = {.mode = 0660},
                               group = {.mode = 0600, .has_group = true, .group = 5},
                               other = {.mode = 0600, .has_group = true, .group = 6};

    ck_assert(!difference_of_access(&one, &one));
    ck_assert(!difference_of_access(&group, &group));
    ck_assert(difference_of_access(&one, &mode));
    ck_assert(difference_of_access(&one, &group));
    ck_assert(difference_of_access(&group, &other));
}

int main(void)
{
    return harness_main("difference");
}
