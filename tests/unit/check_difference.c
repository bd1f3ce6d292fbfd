/* What changes between two configurations. */
#include "build_config.h"

#include "config/config.h"
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
    enum key_change change;
} rows[] = {
    {"", "", CHANGE_KEEPS},
    {",'args':[]", "", CHANGE_KEEPS},
    {",'busy_timeout_sec':1,'clients':'exclusive'", ",'busy_timeout_sec':2,'clients':'exclusive'",
     CHANGE_KEEPS},
    {",'request_timeout_sec':1", ",'request_timeout_sec':2", CHANGE_KEEPS},
    {",'protocol':'mcp','idle_stop_sec':1", ",'protocol':'mcp','idle_stop_sec':2,'lazy':true",
     CHANGE_KEEPS},
    {",'protocol':'mcp'", ",'protocol':'mcp','idle_stop_sec':2", CHANGE_SHARING},
    {",'args':['a']", ",'args':['a','b']", CHANGE_PROGRAM},
    {",'args':['a','b']", ",'args':['a']", CHANGE_PROGRAM},
    {",'args':['a','b']", ",'args':['a','c']", CHANGE_PROGRAM},
    {"", ",'env':{'A':'1'}", CHANGE_PROGRAM},
    {",'env':{'A':'1'}", ",'env':{'A':'2'}", CHANGE_PROGRAM},
    {"", ",'cwd':'/'", CHANGE_PROGRAM},
#ifdef HAVE_NO_NEW_PRIVS
    {"", ",'no_new_privs':true", CHANGE_PROGRAM},
#endif
    {"", ",'core':false", CHANGE_PROGRAM},
    {"", ",'stderr':'log'", CHANGE_PROGRAM},
    {"", ",'stderr':'inherit'", CHANGE_KEEPS},
    {"", ",'protocol':'mcp'", CHANGE_SHARING},
    {",'protocol':'acp'", ",'protocol':'lsp'", CHANGE_SHARING},
    {"", ",'clients':'sticky'", CHANGE_SHARING},
    {"", ",'ids':'rewrite'", CHANGE_SHARING},
    {"", ",'session':'params.sessionId'", CHANGE_SHARING},
    {"", ",'framing':'content-length'", CHANGE_SHARING},
    {"", ",'request_timeout_sec':2", CHANGE_SHARING},
    {",'protocol':'mcp'", ",'protocol':'mcp','on_bad_output':'terminate'", CHANGE_SHARING},
};

TEST_ROWS(difference_of_two_pools, COUNT(rows))
{
    struct config after = {.pools = NULL};

    free_config();
    read_pool(&config, rows[row].before);
    read_pool(&after, rows[row].after);
    ck_assert_int_eq(pool_config_difference(&config.pools[0], &after.pools[0]), rows[row].change);
    ck_assert_int_eq(pool_config_difference(&after.pools[0], &config.pools[0]), rows[row].change);
    config_free(&after);
    free_config();
}

static const char *const changed_keys[] = {
    "'history_events':9", "'history_run_bytes':4097", "'history_runs':9",   "'history_bytes':4097",
    "'history_sec':9",    "'history':'/a'",           "'history_sync':true"};

TEST_ROWS(difference_of_the_history, COUNT(changed_keys))
{
    struct config before, after;
    struct text *text = test_text();

    text_printf(text, "{'rmp':{%s}}", changed_keys[row]);
    text_quote(text, 0);
    ck_assert_int_eq(config_read_text(&after, text->data, text->len, "c", note_report, reports),
                     STDIO_BUS_OK);
    ck_assert_int_eq(config_read_text(&before, "{\"rmp\":{}}", 10, "c", note_report, reports),
                     STDIO_BUS_OK);
    ck_assert(rmp_keys_differ(&before.rmp, &after.rmp));
    ck_assert(!rmp_keys_differ(&after.rmp, &after.rmp));
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
            ck_assert(listen_address_same(all[i], all[j]) == (i == j));
    }
}

TEST(difference_of_the_access_to_a_socket)
{
    static const struct access one = {.mode = 0600}, mode = {.mode = 0660},
                               group = {.mode = 0600, .has_group = true, .group = 5},
                               other = {.mode = 0600, .has_group = true, .group = 6};

    ck_assert(!access_differs(&one, &one));
    ck_assert(!access_differs(&group, &group));
    ck_assert(access_differs(&one, &mode));
    ck_assert(access_differs(&one, &group));
    ck_assert(access_differs(&group, &other));
}
