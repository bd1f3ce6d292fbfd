/* stdio_bus(1), --import: the configuration of an MCP client becomes one of the daemon. */
#include "build_config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "setup.h"

/* A file of a client, and what it becomes: @WORKER@ and @DIR@ as in a setup. */
static const char *write_text(const char *name, const char *text)
{
    const char *path = test_format("%s/%s", test_dir(), name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static const char *expanded(const char *text)
{
    struct text *to = test_text();
    daemon_expand(NULL, to, text);
    return to->data;
}

#define IMPORT(path)                                                                               \
    .mode = SETUP_STDIO, .default_mode = true, .no_config = true, .arguments = {"--import", path}

/* The import of a client's file serves the client that names the server. */
TEST(design_import_is_a_configuration)
{
    const char *client =
        write_text("mcp.json",
                   expanded("{ // of an editor\n'servers': {\n"
                            "'web': {'type': 'http', 'url': 'https://example.org/mcp'},\n"
                            "'one': {'command': '@WORKER@', 'args': ['--name', 'the one']},\n"
                            "'two': {'command': '@WORKER@', 'args': ['--name', 'two'],},\n},}\n"));
    struct text *config = test_text();
    const char *notes = daemon_run(&(struct setup){IMPORT(client)}, 0, config);
    expect_word(notes, "\"web\": left out: it is reached by a URL");
    expect_word(notes, "\"args\": [\"--connect\", \"~/bus.sock\", \"--pool\", \"one\"]");
    expect_word(notes, "\"args\": [\"--share\", \"--\", \"");
    const char *path = write_text("bus.json", config->data);
    expect_word(RUN(0, .mode = SETUP_STDIO, .config_path = path,
                    .arguments = {"--check-config", "--strict"}),
                "the configuration is valid: 2 pools");
    struct daemon *daemon = START(.config_path = path);
    struct client *two = client_connect(daemon), *first = client_connect(daemon);
    client_send(two, "{'pool':'two'}");
    expect_member(client_ask(two, "1", NULL, "echo", NULL), "worker", "'two'");
    expect_member(client_ask(first, "1", NULL, "echo", NULL), "worker", "'the one'");
}

/* Codex has TOML, with tables of other things beside its servers. */
TEST(design_import_of_toml)
{
    const char *client = write_text(
        "config.toml",
        expanded("model = \"m\" # of Codex\n[mcp_servers.web]\nurl = \"https://example.org/mcp\"\n"
                 "[mcp_servers.one]\ncommand = \"@WORKER@\"\nargs = [\n  \"--name\", # one\n"
                 "  \"the one\",\n]\nstartup_timeout_sec = 10\n[mcp_servers.one.env]\n"
                 "KEY = \"caf\\u00e9\"\n[mcp_servers.off]\ncommand = \"x\"\nenabled = false\n"
                 "[projects.\"/x.y\"]\ntrust_level = \"trusted\"\n"));
    struct text *config = test_text();
    const char *notes = daemon_run(&(struct setup){IMPORT(client)}, 0, config);
    expect_word(notes, "\"web\": left out: it is reached by a URL");
    expect_word(notes, "\"off\": left out: it is disabled");
    expect_word(notes, "    command = \"stdio_bus\"\n"
                       "    args = [\"--connect\", \"~/bus.sock\", \"--pool\", \"one\"]\n");
    expect_word(config->data, "\"env\": {\"KEY\": \"caf\xC3\xA9\"}");
    struct daemon *daemon = START(.config_path = write_text("bus.json", config->data));
    expect_member(client_ask(client_connect(daemon), "1", NULL, "echo", NULL), "worker",
                  "'the one'");
}

TEST(design_import_of_broken_toml)
{
    const char *broken = write_text("c.toml", "[mcp_servers.a]\ncommand = cat\n");
    const char *other = write_text("d.toml", "[profiles.a]\n");
    expect_word(RUN(78, IMPORT(broken)), "c.toml:2:11: expected a value: text stands in quotes");
    expect_word(RUN(78, IMPORT(other)), "d.toml: there is no table [mcp_servers.NAME] in it");
}

static const struct {
    const char *text, *problem;
} refused[] = {
    {"{'servers': {'a': {'url': 'x'}}}", "there is no server to share"},
    {"{'mcpServers': {}}", "there is no server to share"},
    {"{'pools': []}", "there is no object \"mcpServers\", \"servers\", \"mcp\" or"},
    {"{'servers': {\n'a' 1}}", ":2:5: "},
};

TEST_ROWS(design_import_without_a_server, COUNT(refused))
{
    const char *path = write_text("mcp.json", expanded(refused[row].text));
    expect_word(RUN(78, IMPORT(path)), refused[row].problem);
}

TEST(design_import_of_no_file)
{
    expect_word(RUN(78, IMPORT("/no/such/file")), "/no/such/file: cannot open: No such file");
    expect_word(RUN(64, .mode = SETUP_UNIX, .no_config = true, .arguments = {"--import", "x"}),
                "--import stands alone");
}

int main(void)
{
    return harness_main("design_import");
}
