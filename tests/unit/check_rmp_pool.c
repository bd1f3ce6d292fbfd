#include "build_config.h"

#include "config_fixture.h"

#define CAT "/bin/cat"

/* --- the key "rmp" of a pool --- */

static const struct {
    const char *members, *expected;
} rows[] = {
    {"\"rmp\": {\"agent\": \"writer\"}", ""},
    {"\"rmp\": {\"runner\": true}", ""},
    {"\"rmp\": {\"agent\": \"a b/\\u00e9\", \"runner\": true}", ""},
    {"\"rmp\": {\"agent\": \"w\", \"runner\": false, \"_comment\": 1}", ""},
    {"\"rmp\": {}", "E c.json:2:8: pools[0].rmp: must have \"agent\" or \"runner\"\n"},
    {"\"rmp\": true", "E c.json:2:8: pools[0].rmp: must be an object, not a boolean\n"},
    {"\"rmp\": {\"agent\": 1}",
     "E c.json:2:18: pools[0].rmp.agent: must be a string, not a number\n"},
    {"\"rmp\": {\"agent\": \"\"}",
     "E c.json:2:18: pools[0].rmp.agent: must be 1 to 256 bytes, no control characters\n"},
    {"\"rmp\": {\"agent\": \"a\\nb\"}",
     "E c.json:2:18: pools[0].rmp.agent: must be 1 to 256 bytes, no control characters\n"},
    {"\"rmp\": {\"runner\": 1}",
     "E c.json:2:19: pools[0].rmp.runner: must be true or false, not a number\n"},
    {"\"rmp\": {\"runner\": true, \"agnet\": \"w\"}",
     "W c.json:2:25: pools[0].rmp.agnet: unknown key\n"},
    {"\"rmp\": {\"runner\": true}, \"protocol\": \"mcp\"",
     "E c.json:2:38: pools[0].protocol: a pool with \"rmp\" has no such key\n"},
    {"\"rmp\": {\"runner\": true}, \"clients\": \"sticky\"",
     "E c.json:2:37: pools[0].clients: a pool with \"rmp\" has no such key\n"},
};

TEST_ROWS(key, COUNT(rows))
{
    expect_command(CAT, rows[row].members, rows[row].expected);
    free_config();
}

TEST(values)
{
    expect_command(CAT, "\"rmp\": {\"agent\": \"writer\"}", "");
    ck_assert_str_eq(config.pools[0].rmp.agent, "writer");
    ck_assert(!config.pools[0].rmp.runner);
    ck_assert(rmp_pool_serves(&config.pools[0].rmp));
    ck_assert(config.pools[0].mode.by_name);
    expect_command(CAT, "\"rmp\": {\"runner\": true}", "");
    ck_assert_ptr_null(config.pools[0].rmp.agent);
    ck_assert(config.pools[0].rmp.runner);
    expect_command(CAT, "\"rmp\": {\"runner\": true}", "");
    expect_command(CAT, "\"core\": true", "");
    ck_assert(!rmp_pool_serves(&config.pools[0].rmp));
    ck_assert(!config.pools[0].mode.by_name);
    free_config();
}

/* --- two pools --- */

#define TWO(first, second)                                                                         \
    ("{\"pools\": [{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1, \"rmp\": " first   \
     "},\n{\"id\": \"b\", \"command\": \"/bin/cat\", \"instances\": 1, \"rmp\": " second "}]}")

TEST(unique)
{
    expect_text(TWO("{\"agent\": \"x\"}", "{\"agent\": \"y\"}"), "");
    expect_text(TWO("{\"agent\": \"x\"}", "{\"agent\": \"x\"}"),
                "E c.json:2:69: pools[1].rmp.agent: pools[0] is that already, at 1:80\n");
    expect_text(TWO("{\"runner\": true}", "{\"runner\": true}"),
                "E c.json:2:70: pools[1].rmp.runner: pools[0] is that already, at 1:81\n");
    expect_text(TWO("{\"runner\": true}", "{\"runner\": false}"), "");
    free_config();
}
