/* The key "include", and files with comments. */
#include "build_config.h"

#include "cli/default_config.h"
#include "config_fixture.h"

static char dir[160];

static const char *at(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void remove_dir(void *object)
{
    (void)object;
    free_config();
    harness_remove_dir(dir);
}

static void make_dir(void)
{
    harness_make_dir(dir, sizeof dir);
    harness_at_end(remove_dir, dir);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(at(name), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

#define POOL_OF(id) "{\"id\": \"" id "\", \"command\": \"sh\", \"instances\": 1}"

/* Reads the file "c.json". `expected` has "@" for the directory. */
static void expect_file(const char *name, const char *expected)
{
    char text[4096];
    size_t len = 0;
    int code;

    for (; *expected != '\0'; expected++) {
        if (*expected == '@')
            len += (size_t)snprintf(text + len, sizeof text - len, "%s", dir);
        else
            text[len++] = *expected;
    }
    text[len] = '\0';
    free_config();
    code = config_read_file(&config, at(name), note_report, reports);
    expect(code, text);
}

static void expect_pools(const char *ids)
{
    char found[256] = "";

    for (size_t i = 0; i < config.pool_count; i++) {
        size_t len = strlen(found);
        snprintf(found + len, sizeof found - len, "%s%s", i > 0 ? " " : "", config.pools[i].id);
    }
    ck_assert_str_eq(found, ids);
}

/* In the order of their names, after the pools of the file that includes them. */
TEST(pools_of_matching_files_follow)
{
    make_dir();
    write_file("c.json", "{\"include\": \"i-*.json\", \"pools\": [" POOL_OF("a") "]}");
    write_file("i-2.json", "{\"pools\": [" POOL_OF("d") "]}");
    write_file("i-10.json", "{\"_comment\": 1, \"pools\": [" POOL_OF("b") "," POOL_OF("c") "]}");
    write_file(".i-1.json", "?");
    write_file("i-1.json~", "?");
    expect_file("c.json", "");
    expect_pools("a b c d");
}

TEST(pools_may_be_in_other_files_alone)
{
    char text[512];

    make_dir();
    snprintf(text, sizeof text, "{\"include\": [\"b.jsonc\", \"%s/*a.json\", \"none*\"]}", dir);
    write_file("c.json", text);
    write_file("a.json", "{\"pools\": [" POOL_OF("a") "]}");
    write_file("b.jsonc", "{\"pools\": [" POOL_OF("b") ",], // last\n /* x */}");
    expect_file("c.json", "");
    expect_pools("b a");
}

/* Reports name the file, and the place in it. */
static const struct {
    const char *main, *a, *reports;
} faults[] = {
    {"{\"include\": \"a.json\", \"pools\": []}", "{\"pools\": [\n" POOL_OF("") "]}",
     "E @/a.json:2:8: pools[0].id: must not be empty\n"},
    {"{\"include\": \"a.json\", \"pools\": [" POOL_OF("x") "]}",
     "{\"pools\": [\n" POOL_OF("x") "]}",
     "E @/a.json:2:8: pools[0].id: \"x\" is the id of pools[0] already, at @/c.json:1:40\n"},
    {"{\"include\": \"a.json\", \"pools\": [" POOL_OF("x") "]}", "{\"pools\": ?}",
     "E @/a.json:1:11: pools: expected a value, found '?'\n"},
    {"{\"include\": \"a.json\", \"pools\": [" POOL_OF("x") "]}",
     "{\"pools\": [" POOL_OF("y") "],\n\"limits\": {}}",
     "E @/a.json:2:11: limits: an included file has \"pools\" alone\n"},
    {"{\"include\": \"a.json\", \"pools\": [" POOL_OF("x") "]}", "[]",
     "E @/a.json:1:1: must be an object, not an array\n"},
    {"{\"include\": \"a.json\"}", "{\"pools\": {}}",
     "E @/a.json:1:11: pools: must be an array, not an object\n"},
    {"{\"include\": \"none.json\", \"pools\": [" POOL_OF("x") "]}", "",
     "E @/none.json: cannot open: No such file or directory\n"},
    {"{\"include\": \"none/*.json\", \"pools\": [" POOL_OF("x") "]}", "",
     "E @/c.json:1:13: include: cannot read the directory @/none/: No such file or directory\n"},
    {"{\"include\": [\"none*\"]}", "", "E @/c.json:1:13: include: no file has a pool\n"},
    {"{\"include\": 1, \"pools\": [" POOL_OF("x") "]}", "",
     "E @/c.json:1:13: include: must be a string or an array of strings, not a number\n"},
    {"{\"include\": [\"\", 2], \"pools\": [" POOL_OF("x") "]}", "",
     "E @/c.json:1:14: include[0]: must not be empty\n"
     "E @/c.json:1:18: include[1]: must be a string, not a number\n"},
    {"{\"include\": \"a.json\", \"pools\": {}}", "{\"pools\": [" POOL_OF("y") "]}",
     "E @/c.json:1:32: pools: must be an array, not an object\n"},
};

TEST_ROWS(reports_name_the_file, COUNT(faults))
{
    make_dir();
    write_file("c.json", faults[row].main);
    write_file("a.json", faults[row].a);
    expect_file("c.json", faults[row].reports);
}

/* Two pools of one file, and the key "agent", across files. */
TEST(agents_are_unique_across_files)
{
    make_dir();
    write_file("c.json", "{\"include\": \"a.json\", \"rmp\": {}, \"pools\": [{\"id\": \"x\","
                         "\"command\": \"sh\", \"instances\": 1, \"rmp\": {\"agent\": \"g\"}}]}");
    write_file("a.json", "{\"pools\": [{\"id\": \"y\","
                         "\"command\": \"sh\", \"instances\": 1,\n\"rmp\": {\"agent\": \"g\"}}]}");
    expect_file("c.json", "E @/a.json:2:18: pools[0].rmp.agent: pools[0] is that already, at "
                          "@/c.json:1:105\n");
}

TEST(relative_path_needs_a_file)
{
    expect_text("{\"include\": \"*.json\", \"pools\": [" POOL_OF("x") "]}",
                "E c.json:1:13: include: a relative path needs --config\n");
    free_config();
}

/* A file of any other name stays strict. */
TEST(comments_are_for_jsonc_alone)
{
    static const char text[] = "// pools\n{\"pools\": [" POOL_OF("a") ",]}";

    make_dir();
    write_file("c.jsonc", text);
    write_file("c.json", text);
    write_file(".jsonc", text);
    expect_file("c.jsonc", "");
    expect_pools("a");
    expect_file("c.json", "E @/c.json:1:1: expected a value, found '/' (JSON has no comments)\n");
    write_file("d.jsonc", "/* a */ {\"pools\":\n/* b */ 1 }");
    expect_file("d.jsonc", "E @/d.jsonc:2:9: pools: must be an array, not a number\n");
}

/* --- the default path --- */

static void put_user_config(const char *directory)
{
    char name[300];

    snprintf(name, sizeof name, "mkdir -p '%s/stdio_bus' && echo >'%s/stdio_bus/stdio_bus.json'",
             directory, directory);
    ck_assert_int_eq(system(name), 0);
}

static void remove_user_config(void *object)
{
    char command[300];

    snprintf(command, sizeof command, "rm -rf '%s'", (const char *)object);
    ck_assert_int_eq(system(command), 0);
}

TEST(system_configuration_comes_first)
{
    char found[DEFAULT_CONFIG_MAX], expected[DEFAULT_CONFIG_MAX];

    make_dir();
    write_file("system.json", "");
    harness_at_end(remove_user_config, (void *)(size_t)at("home"));
    put_user_config(at("home/.config"));
    put_user_config(at("home/xdg"));
    setenv("HOME", at("home"), 1);
    setenv("XDG_CONFIG_HOME", at("home/xdg"), 1);
    ck_assert(default_config_find(found, at("system.json")));
    ck_assert_str_eq(found, at("system.json"));
    ck_assert(default_config_find(found, at("none.json")));
    snprintf(expected, sizeof expected, "%s/home/xdg/stdio_bus/stdio_bus.json", dir);
    ck_assert_str_eq(found, expected);
    setenv("XDG_CONFIG_HOME", "relative", 1);
    ck_assert(default_config_find(found, at("none.json")));
    snprintf(expected, sizeof expected, "%s/home/.config/stdio_bus/stdio_bus.json", dir);
    ck_assert_str_eq(found, expected);
    setenv("HOME", "", 1);
    ck_assert(!default_config_find(found, at("none.json")));
    ck_assert_str_eq(found, "");
}
