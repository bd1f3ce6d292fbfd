#include "build_config.h"

#include <sys/stat.h>

#include "base/error.h"
#include "config/config.h"
#include "config/rmp_keys.h"
#include "suite.h"

static struct config config;
static char reports[1024];

static void report(void *user_data, bool is_error, const char *text)
{
    size_t len = strlen(reports);

    (void)user_data;
    snprintf(reports + len, sizeof reports - len, "%c %s\n", is_error ? 'E' : 'W', text);
}

static int read_text(const char *text)
{
    reports[0] = '\0';
    return config_read_text(&config, text, strlen(text), "c", report, NULL);
}

TEST(the_defaults)
{
    ck_assert_int_eq(read_text("{\"rmp\": {}}"), STDIO_BUS_OK);
    ck_assert_str_eq(reports, "");
    ck_assert(config.rmp.enabled);
    ck_assert_uint_eq(config.pool_count, 0);
    ck_assert_ptr_null(config.rmp.socket_path);
    ck_assert_ptr_null(config.rmp.sockets_dir);
    ck_assert_uint_eq(config.rmp.max_body, 8388608);
    ck_assert_uint_eq(config.rmp.max_ttl_ms, 3600000);
    ck_assert_uint_eq(config.rmp.metrics_interval_ms, 1000);
    ck_assert(config.rmp.validate);
    ck_assert_uint_eq(config.rmp.ui.uid_count, 0);
    ck_assert_uint_eq(config.rmp.history_events, 1000);
    ck_assert_uint_eq(config.rmp.history_run_bytes, 1048576);
    ck_assert_uint_eq(config.rmp.history_runs, 4096);
    ck_assert_uint_eq(config.rmp.history_bytes, 16777216);
    ck_assert_uint_eq(config.rmp.history_sec, 86400);
    ck_assert_ptr_null(config.rmp.history);
    ck_assert(!config.rmp.history_sync);
    config_free(&config);
    config_of_nothing(&config);
    ck_assert(!config.rmp.enabled);
    ck_assert_uint_eq(config.rmp.max_body, 8388608);
    config_free(&config);
}

TEST(all_keys)
{
    ck_assert_int_eq(read_text("{\"rmp\": {\"socket_path\": \"/a/s\", \"sockets_dir\": \"\",\n"
                               "\"max_body\": 1000, \"max_ttl_ms\": 31536000000,\n"
                               "\"metrics_interval_ms\": 0, \"validate\": false,\n"
                               "\"history_events\": 0, \"history_run_bytes\": 4096,\n"
                               "\"history_runs\": 1, \"history_bytes\": 1073741824,\n"
                               "\"history_sec\": 31536000, \"history\": \"/a/b\",\n"
                               "\"history_sync\": true,\n"
                               "\"schemas\": [{\"id\": 4660, \"type\": \"intent.my.thing.v1\"}]\n"
                               "}}"),
                     STDIO_BUS_OK);
    ck_assert_str_eq(reports, "");
    ck_assert_str_eq(config.rmp.socket_path, "/a/s");
    ck_assert_ptr_null(config.rmp.sockets_dir);
    ck_assert_uint_eq(config.rmp.max_body, 1000);
    ck_assert_uint_eq(config.rmp.max_ttl_ms, 31536000000);
    ck_assert_uint_eq(config.rmp.metrics_interval_ms, 0);
    ck_assert(!config.rmp.validate);
    ck_assert_uint_eq(config.rmp.history_events, 0);
    ck_assert_uint_eq(config.rmp.history_run_bytes, 4096);
    ck_assert_uint_eq(config.rmp.history_runs, 1);
    ck_assert_uint_eq(config.rmp.history_bytes, 1073741824);
    ck_assert_uint_eq(config.rmp.history_sec, 31536000);
    ck_assert_str_eq(config.rmp.history, "/a/b");
    ck_assert(config.rmp.history_sync);
    rmp_keys_drop_history(&config.rmp);
    ck_assert_ptr_null(config.rmp.history);
    ck_assert_str_eq(rmp_schemas_find(&config.rmp.schemas, 4660)->type, "intent.my.thing.v1");
    config_free(&config);
}

/* clang-format off */
static const struct {
    const char *rmp, *report;
} problems[] = {
    {"[]", "E c:1:9: rmp: must be an object, not an array\n"},
    {"{\"socket_path\":1}", "E c:1:24: rmp.socket_path: must be a string, not a number\n"},
    {"{\"socket_path\":\"$NO_SUCH_NAME/a\"}",
     "E c:1:24: rmp.socket_path: NO_SUCH_NAME is not set in the environment\n"},
    {"{\"max_body\":0}", "E c:1:21: rmp.max_body: must be an integer >= 1\n"},
    {"{\"max_ttl_ms\":0}", "E c:1:23: rmp.max_ttl_ms: must be an integer >= 1\n"},
    {"{\"metrics_interval_ms\":-1}",
     "E c:1:32: rmp.metrics_interval_ms: must be an integer >= 0\n"},
    {"{\"history_events\":65537}",
     "E c:1:27: rmp.history_events: must be an integer <= 65536\n"},
    {"{\"history_bytes\":4095}", "E c:1:26: rmp.history_bytes: must be an integer >= 4096\n"},
    {"{\"history\":\"$NO_SUCH_NAME\"}",
     "E c:1:20: rmp.history: NO_SUCH_NAME is not set in the environment\n"},
    {"{\"validate\":1}", "E c:1:21: rmp.validate: must be true or false, not a number\n"},
    {"{\"schemas\":{}}", "E c:1:20: rmp.schemas: must be an array of objects, not an object\n"},
    {"{\"schemas\":[{\"id\":0,\"type\":\"intent.a.v1\"}]}",
     "E c:1:27: rmp.schemas[0].id: must be an integer >= 1\n"},
    {"{\"schemas\":[{\"id\":7000,\"type\":\"intent.v1\"}]}",
     "E c:1:39: rmp.schemas[0].type: must be family.kind.vN with a family of RMP, as in "
     "\"intent.my.thing.v1\"\n"},
    {"{\"schemas\":[{\"id\":7000,\"type\":\"my.thing.v1\"}]}",
     "E c:1:39: rmp.schemas[0].type: must be family.kind.vN with a family of RMP, as in "
     "\"intent.my.thing.v1\"\n"},
    {"{\"schemas\":[{\"id\":3003,\"type\":\"intent.a.v1\"}]}",
     "E c:1:27: rmp.schemas[0].id: is the id of another schema\n"},
    {"{\"schemas\":[{\"id\":7000,\"type\":\"error.a.v1\"},{\"id\":7000,\"type\":\"error.b.v1\"}]}",
     "E c:1:59: rmp.schemas[1].id: is the id of another schema\n"},
};
/* clang-format on */

TEST_ROWS(a_problem_is_reported, COUNT(problems))
{
    char text[256];

    snprintf(text, sizeof text, "{\"rmp\":%s%s}", " ", problems[row].rmp);
    ck_assert_int_eq(read_text(text), STDIO_BUS_EINVAL);
    ck_assert_str_eq(reports, problems[row].report);
}

/* --- the socket --- */

static char path[RMP_SOCKET_MAX], reason[RMP_SOCKET_REASON_MAX], home[64];

static void make_home(void)
{
    snprintf(home, sizeof home, "/tmp/check_rmp_keys.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(home));
    setenv("HOME", home, 1);
}

static void expect_mode(const char *directory)
{
    char name[128];
    struct stat status;

    snprintf(name, sizeof name, "%s%s", home, directory);
    ck_assert_int_eq(stat(name, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0700);
    ck_assert_int_eq(rmdir(name), 0);
}

TEST(the_path_that_is_set_first_counts)
{
    char own[] = "~/x/s", directory[] = "$HOME/a/b";
    struct rmp_place place = {"relative", own, directory};
    char expected[RMP_SOCKET_MAX];

    make_home();
    ck_assert_int_eq(rmp_socket_find(path, &place, reason), STDIO_BUS_OK);
    ck_assert_str_eq(path, "relative");
    place.given = NULL;
    ck_assert_int_eq(rmp_socket_find(path, &place, reason), STDIO_BUS_OK);
    snprintf(expected, sizeof expected, "%s/x/s", home);
    ck_assert_str_eq(path, expected);
    place.socket_path = NULL;
    ck_assert_int_eq(rmp_socket_make(path, &place, reason), STDIO_BUS_OK);
    snprintf(expected, sizeof expected, "%s/a/b/rmp.sock", home);
    ck_assert_str_eq(path, expected);
    expect_mode("/a/b");
    expect_mode("/a");
    place.sockets_dir = NULL;
    ck_assert_int_eq(rmp_socket_make(path, &place, reason), STDIO_BUS_OK);
    snprintf(expected, sizeof expected, "%s/.runloop/sock/rmp.sock", home);
    ck_assert_str_eq(path, expected);
    expect_mode("/.runloop/sock");
    expect_mode("/.runloop");
    ck_assert_int_eq(rmdir(home), 0);
}

TEST(a_set_path_that_cannot_be_used_is_an_error)
{
    char own[] = "/dev/null/x/s", unset[] = "$NO_SUCH_NAME/x";
    struct rmp_place place = {.socket_path = own};
    char longest[RMP_SOCKET_MAX + 1];

    ck_assert_int_eq(rmp_socket_make(path, &place, reason), STDIO_BUS_EINVAL);
    ck_assert_ptr_nonnull(strstr(reason, "/dev/null/x/s"));
    place.socket_path = unset;
    ck_assert_int_eq(rmp_socket_make(path, &place, reason), STDIO_BUS_EINVAL);
    ck_assert_ptr_nonnull(strstr(reason, "NO_SUCH_NAME"));
    memset(longest, 'a', sizeof longest);
    longest[RMP_SOCKET_MAX] = '\0';
    place = (struct rmp_place){.given = longest};
    ck_assert_int_eq(rmp_socket_find(path, &place, reason), STDIO_BUS_EINVAL);
    longest[RMP_SOCKET_MAX - 1] = '\0';
    ck_assert_int_eq(rmp_socket_find(path, &place, reason), STDIO_BUS_OK);
    longest[RMP_SOCKET_MAX - strlen(RMP_SOCKET_NAME)] = '\0';
    place = (struct rmp_place){.sockets_dir = longest};
    ck_assert_int_eq(rmp_socket_find(path, &place, reason), STDIO_BUS_EINVAL);
}
