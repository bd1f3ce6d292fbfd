#include "build_config.h"

#include "cli/import.h"

#include "base/error.h"
#include "config_fixture.h"
#include "json/document.h"

static struct import import;

static int read_text(const char *text)
{
    struct document document;
    struct document_error error;
    int code;

    ck_assert_int_eq(document_read(&document, slice_of(text, strlen(text)), &error), STDIO_BUS_OK);
    code = import_read(&import, document.root, false);
    document_free(&document);
    return code;
}

/* The import is a configuration without errors and warnings. */
static void expect_valid(void)
{
    free_config();
    expect(config_read_text(&config, import.config, strlen(import.config), "c.json", note_report,
                            reports),
           "");
    ck_assert_uint_eq(config.pool_count, import.servers);
}

#define SERVER "\"a\": {\"command\": \"/bin/cat\"}"

/* Where clients keep their servers. */
static const char *const places[] = {
    "{\"mcpServers\": {" SERVER "}}",
    "{\"inputs\": [], \"servers\": {" SERVER "}}",
    "{\"theme\": \"x\", \"context_servers\": {" SERVER "}}",
    "{\"mcp\": {\"servers\": {" SERVER "}}}",
    "{\"context_servers\": {\"a\": {\"command\": {\"path\": \"/bin/cat\", \"args\": []}}}}",
    "{\"servers\": [], \"mcpServers\": {" SERVER "}}",
    "{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"/bin/cat\"]}}}",
};

TEST_ROWS(import_finds_the_servers, COUNT(places))
{
    ck_assert_int_eq(read_text(places[row]), STDIO_BUS_OK);
    ck_assert_uint_eq(import.servers, 1);
    expect_valid();
    ck_assert_str_eq(config.pools[0].id, "a");
    ck_assert_str_eq(config.pools[0].command, "/bin/cat");
    ck_assert_int_eq(config.pools[0].mode.protocol, PROTOCOL_MCP);
    free_config();
    import_free(&import);
}

static const char *const nowhere[] = {
    "{}", "[]", "1", "{\"servers\": 1}", "{\"mcp\": {}}", "{\"mcp\": []}"};

TEST_ROWS(import_finds_no_servers, COUNT(nowhere))
{
    ck_assert_int_eq(read_text(nowhere[row]), STDIO_BUS_EINVAL);
    import_free(&import);
}

static const char *variable(const char *name)
{
    for (char **entry = config.pools[0].envp; *entry != NULL; entry++) {
        if (strncmp(*entry, name, strlen(name)) == 0 && (*entry)[strlen(name)] == '=')
            return *entry + strlen(name) + 1;
    }
    return NULL;
}

TEST(import_carries_all_keys)
{
    setenv("HOME", "/tmp", 1);
    setenv("CHECK_1", "$one", 1);
    unsetenv("CHECK_NONE");
    setenv("CHECK_BIN", "/bin", 1);
    ck_assert_int_eq(
        read_text(
            "{\"mcpServers\": {\"a \\\"b\\\"\": {\"command\": \"${CHECK_BIN}/cat\", \"args\": "
            "[\"-u\", 1, \"${env:CHECK_1}\", \"~/x\", \"$$\", \"${userHome}\", \"${x\"], "
            "\"env\": {\"A\": \"$1 $$ ${env:CHECK_1} ${CHECK_1}\", \"B\": 8080, \"D\": "
            "\"${input:key}\", \"E\": null, \"F\": \"${CHECK_NONE}\", \"C\": \"\"}, \"cwd\": "
            "\"~/\", \"envFile\": \".env\"}}}"),
        STDIO_BUS_OK);
    expect_valid();
    ck_assert_str_eq(config.pools[0].id, "a \"b\"");
    ck_assert_str_eq(config.pools[0].command, "/bin/cat");
    static const char *const args[] = {"-u", "1", "$one", "~/x", "$$", "/tmp", "${x"};
    for (size_t i = 0; i < COUNT(args); i++)
        ck_assert_str_eq(config.pools[0].argv[i + 1], args[i]);
    ck_assert_str_eq(config.pools[0].cwd, "/tmp/");
    ck_assert_str_eq(variable("A"), "$1 $$ $one $one");
    ck_assert_str_eq(variable("B"), "8080");
    ck_assert_str_eq(variable("C"), "");
    ck_assert_ptr_null(variable("D"));
    ck_assert_ptr_nonnull(strstr(import.notes, "\"a \\\"b\\\"\": set \"D\" in \"env\""));
    ck_assert_ptr_nonnull(strstr(import.notes, "set \"E\" in"));
    ck_assert_ptr_nonnull(strstr(import.notes, "set \"F\" in"));
    ck_assert_ptr_nonnull(strstr(import.notes, "args holds \"${x\", which stays"));
    ck_assert_ptr_nonnull(strstr(import.notes, "envFile is left out"));
    ck_assert_ptr_nonnull(strstr(import.notes, "\"--pool\", \"a \\\"b\\\"\"]"));
    ck_assert_ptr_nonnull(strstr(import.notes,
                                 "\"--share\", \"--\", \"${CHECK_BIN}/cat\", \"-u\", \"1\""));
    free_config();
    import_free(&import);
}

/* What the daemon writes itself is left out, and so is a variable that is not set. */
TEST(import_of_a_url)
{
    const char *const *argv;

    setenv("CHECK_1", "one", 1);
    unsetenv("CHECK_NONE");
    ck_assert_int_eq(
        read_text(
            "{\"servers\": {\"a\": {\"type\": \"http\", \"url\": \"https://${CHECK_1}/mcp?a=b\", "
            "\"headers\": {\"Authorization\": \"Bearer ${CHECK_1}\", \"Accept\": \"x\", "
            "\"X-None\": \"${CHECK_NONE}\", \"X-Dollar\": \"$1\"}}, "
            "\"b\": {\"type\": \"sse\", \"serverUrl\": \"http://b:1\", \"headers\": 1, "
            "\"env_http_headers\": {\"X\": \"CHECK_1\"}, \"bearer_token_env_var\": "
            "\"CHECK_NONE\"}}}"),
        STDIO_BUS_OK);
    expect_valid();
    ck_assert_uint_eq(config.pool_count, 2);
    ck_assert_str_eq(config.pools[0].url, "https://one/mcp?a=b");
    argv = (const char *const *)config.pools[0].argv;
    ck_assert_str_eq(argv[2], "https://one/mcp?a=b");
    ck_assert_str_eq(argv[3], "--header-env");
    ck_assert_int_eq(strncmp(argv[4], "Authorization=", 14), 0);
    ck_assert_int_eq(strncmp(argv[6], "X-Dollar=", 9), 0);
    ck_assert_ptr_null(argv[7]);
    ck_assert_str_eq(config.pools[1].url, "http://b:1");
    ck_assert_int_eq(strncmp(config.pools[1].argv[4], "X=", 2), 0);
    ck_assert_ptr_nonnull(strstr(import.notes, "\"a\": write the field \"X-None\" into"));
    ck_assert_ptr_nonnull(strstr(import.notes, "in place of its URL and its headers write"));
    ck_assert_ptr_nonnull(strstr(import.notes, "\"b\": write the field \"Authorization\" into"));
    ck_assert_ptr_null(strstr(import.notes, "Accept"));
    free_config();
    import_free(&import);
}

static const struct {
    const char *server, *note;
} others[] = {
    {"\"a\": {\"url\": \"ws://x\"}", "\"a\": left out: its URL: "},
    {"\"a\": {\"type\": \"sse\", \"serverUrl\": 1}", "\"a\": left out: its URL: "},
    {"\"a\": {\"url\": \"${CHECK_NONE}\"}", "\"a\": left out: its URL: "},
    {"\"a\": {\"url\": \"http://x\", \"disabled\": true}", "left out: it is disabled"},
    {"\"a\": {\"source\": \"extension\", \"settings\": {}}", "\"a\": left out: it has no command"},
    {"\"a\": {\"command\": \"\"}", "it has no command"},
    {"\"a\": {\"command\": []}", "it has no command"},
    {"\"a\": {\"command\": \"stdio_bus\"}", "\"a\": left alone: it is stdio_bus already"},
    {"\"a\": {\"command\": [\"/opt/stdio_bus\", \"--share\"]}", "it is stdio_bus already"},
    {"\"a\": {\"command\": \"${workspaceFolder}/x\"}",
     "\"a\": command holds \"${workspaceFolder}/x\", and is left out: the editor writes the "
     "folder"},
    {"\"a\": {\"command\": \"x\\u0000\"}", "it has no command"},
    {"\"a\": {\"command\": \"x\", \"disabled\": true}", "left out: it is disabled"},
    {"\"a\": {\"command\": \"x\", \"enabled\": false}", "left out: it is disabled"},
    {"\"\": {\"command\": \"x\"}", "its name must have 1 to 256 bytes"},
    {"\"a\": 1", "it is no object"},
};

/* Servers that no process stands behind are left out; the others stay. */
TEST_ROWS(import_leaves_out, COUNT(others))
{
    char text[512];

    snprintf(text, sizeof text, "{\"servers\": {%s, \"b\": {\"command\": \"/bin/cat\"}}}",
             others[row].server);
    ck_assert_int_eq(read_text(text), STDIO_BUS_OK);
    ck_assert_uint_eq(import.servers, 1);
    expect_valid();
    ck_assert_str_eq(config.pools[0].id, "b");
    ck_assert_ptr_nonnull(strstr(import.notes, others[row].note));
    free_config();
    import_free(&import);
}

/* opencode: the command and its arguments in one array. */
TEST(import_of_a_command_in_one_array)
{
    setenv("HOME", "/tmp", 1);
    ck_assert_int_eq(read_text("{\"mcp\": {\"a\": {\"command\": [\"/bin/cat\", \"-u\"], "
                               "\"environment\": {\"A\": \"{env:HOME}\"}}}}"),
                     STDIO_BUS_OK);
    expect_valid();
    ck_assert_str_eq(config.pools[0].argv[1], "-u");
    ck_assert_str_eq(variable("A"), "/tmp");
    ck_assert_ptr_nonnull(strstr(import.notes, "\"command\": [\"stdio_bus\", \"--connect\", "));
    free_config();
    import_free(&import);
}

/* Claude Code: servers of projects are started in the project's directory, if it is there. */
TEST(import_of_projects)
{
    ck_assert_int_eq(read_text("{\"mcpServers\": {" SERVER
                               "}, \"projects\": {\"/tmp\": {\"mcpServers\": {" SERVER
                               "}}, \"/bin\": {\"mcpServers\": {" SERVER
                               "}}, \"/no/such\": {\"mcpServers\": {" SERVER "}}, \"/x\": {}}}"),
                     STDIO_BUS_OK);
    expect_valid();
    ck_assert_uint_eq(import.servers, 3);
    ck_assert_str_eq(config.pools[0].id, "a");
    ck_assert_str_eq(config.pools[1].id, "a@/tmp");
    ck_assert_str_eq(config.pools[1].cwd, "/tmp");
    ck_assert_str_eq(config.pools[2].id, "a@/bin");
    ck_assert_ptr_nonnull(strstr(import.notes, "the directory of its project is not there"));
    free_config();
    import_free(&import);
}

/* Placeholders that the configuration cannot have are named, and it is valid without them. */
TEST(import_of_placeholders)
{
    unsetenv("CHECK_NONE");
    ck_assert_int_eq(
        read_text("{\"servers\": {\"a\": {\"command\": \"/bin/cat\", \"args\": [\"${input:key}\", "
                  "\"${CHECK_NONE:-x}\"], \"env\": {\"A\": \"${CHECK_NONE:-$1}\"}, "
                  "\"cwd\": \"${workspaceFolder}\"}}}"),
        STDIO_BUS_OK);
    expect_valid();
    ck_assert_ptr_null(config.pools[0].cwd);
    ck_assert_str_eq(config.pools[0].argv[2], "x");
    ck_assert_str_eq(variable("A"), "$1");
    ck_assert_ptr_nonnull(strstr(import.notes, "which stays as it is: the editor asks for it"));
    ck_assert_ptr_nonnull(strstr(import.notes,
                                 "cwd holds \"${workspaceFolder}\", and is left out"));
    free_config();
    import_free(&import);
}

/* More than the first room. */
TEST(import_of_a_long_file)
{
    size_t size = 400000, len;
    char *text = malloc(size);

    ck_assert_ptr_nonnull(text);
    len = (size_t)snprintf(text, size,
                           "{\"servers\": {\"a\": {\"command\": \"/bin/cat\", "
                           "\"args\": [\"");
    memset(text + len, 'x', 300000);
    snprintf(text + len + 300000, size - len - 300000, "\"]}}}");
    ck_assert_int_eq(read_text(text), STDIO_BUS_OK);
    expect_valid();
    ck_assert_uint_eq(strlen(config.pools[0].argv[1]), 300000);
    free_config();
    import_free(&import);
    free(text);
}
