/* stdio_bus(1), --import: the configuration of an MCP client becomes one of the daemon. */
#include "build_config.h"

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
                            "'one': {'command': '@WORKER@', 'args': ['--name', 'the one']},\n"
                            "'two': {'command': '@WORKER@', 'args': ['--name', 'two'],},\n"
                            "'web': {'type': 'http', 'url': 'https://127.0.0.1:1/mcp'},\n},}\n"));
    struct text *config = test_text();
    const char *notes = daemon_run(&(struct setup){IMPORT(client)}, 0, config);
    expect_word(notes, "\"args\": [\"--connect\", \"~/bus.sock\", \"--pool\", \"web\"]");
    expect_word(notes, "\"args\": [\"--connect\", \"~/bus.sock\", \"--pool\", \"one\"]");
    expect_word(notes, "\"args\": [\"--share\", \"--\", \"");
    const char *path = write_text("bus.json", config->data);
    expect_word(RUN(0, .mode = SETUP_STDIO, .config_path = path,
                    .arguments = {"--check-config", "--strict"}),
                "the configuration is valid: 3 pools");
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
        expanded("model = \"m\" # of Codex\n[mcp_servers.one]\ncommand = \"@WORKER@\"\nargs = [\n  "
                 "\"--name\", # one\n"
                 "  \"the one\",\n]\nstartup_timeout_sec = 10\n[mcp_servers.one.env]\n"
                 "KEY = \"caf\\u00e9\"\n[mcp_servers.off]\ncommand = \"x\"\nenabled = false\n"
                 "[mcp_servers.web]\nurl = \"https://127.0.0.1:1/mcp\"\n"
                 "bearer_token_env_var = \"WEB_TOKEN\"\nhttp_headers = {X-A = \"1\"}\n"
                 "[projects.\"/x.y\"]\ntrust_level = \"trusted\"\n"));
    struct text *config = test_text();
    ck_assert_int_eq(setenv("WEB_TOKEN", "t", 1), 0);
    const char *notes = daemon_run(&(struct setup){IMPORT(client)}, 0, config);
    expect_word(config->data, "\"url\": \"https://127.0.0.1:1/mcp\"");
    expect_word(config->data, "\"headers\": {\"X-A\": \"1\", \"Authorization\": "
                              "\"Bearer ${WEB_TOKEN}\"}");
    expect_word(notes, "\"off\": left out: it is disabled");
    expect_word(notes, "    command = \"stdio_bus\"\n"
                       "    args = [\"--connect\", \"~/bus.sock\", \"--pool\", \"one\"]\n");
    expect_word(config->data, "\"env\": {\"KEY\": \"caf\xC3\xA9\"}");
    struct daemon *daemon = START(.config_path = write_text("bus.json", config->data));
    expect_member(client_ask(client_connect(daemon), "1", NULL, "echo", NULL), "worker",
                  "'the one'");
}

/* Runs the import with a directory in PATH that services do not have. */
static const char *import_with(const char *bin, const char *client, struct text *config)
{
    const char *path = getenv("PATH"), *notes;
    char *kept = path != NULL ? strdup(path) : NULL;
    ck_assert_int_eq(setenv("PATH", test_format("%s:/usr/bin:/bin", bin), 1), 0);
    notes = daemon_run(&(struct setup){IMPORT(client)}, 0, config);
    if (kept != NULL)
        setenv("PATH", kept, 1);
    free(kept);
    return notes;
}

static void make_program(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0755), 0);
}

/* As npx and node of nvm: neither is found without the PATH of the shell, and the first needs the
 * second. The client is that of macOS, in a directory with a blank. */
TEST(design_import_finds_what_services_do_not)
{
    const char *bin = test_dir(), *library = test_format("%s/Library", test_dir());
    struct text *config = test_text();
    const char *support = test_format("%s/Application Support", library), *client, *notes;
    FILE *file;
    ck_assert_int_eq(mkdir(library, 0700), 0);
    ck_assert_int_eq(mkdir(support, 0700), 0);
    client = test_format("%s/claude_desktop_config.json", support);
    make_program(test_format("%s/node-of-test", bin),
                 test_format("#!/bin/sh\nshift\nexec '%s' \"$@\"\n", expanded("@WORKER@")));
    make_program(test_format("%s/npx-of-test", bin), "#!/usr/bin/env node-of-test\n");
    file = fopen(client, "w");
    ck_assert_ptr_nonnull(file);
    fputs(expanded("{'mcpServers': {'one': {'command': 'npx-of-test', 'args': ['--name', 'one']}, "
                   "'two': {'command': 'sh', 'args': ['-c', 'x']}}}"),
          file);
    ck_assert_int_eq(fclose(file), 0);
    notes = import_with(bin, client, config);
    expect_word(notes, test_format("\"one\": its command is the path \"%s/npx-of-test\"", bin));
    expect_word(notes, test_format("\"one\": its PATH begins with \"%s\"", bin));
    expect_word(notes, test_format("[\"--share\", \"--\", \"%s/npx-of-test\", \"--name\"", bin));
    expect_word(notes, test_format("with PATH in its environment: %s:/", bin));
    expect_word(config->data, test_format("\"command\": \"%s/npx-of-test\"", bin));
    expect_word(config->data, test_format("\"env\": {\"PATH\": \"%s:${PATH}\"}", bin));
    expect_word(config->data, "\"command\": \"sh\"");
    ck_assert_ptr_null(strstr(notes, "\"two\": its"));
    struct daemon *daemon = START(.config_path = write_text("bus.json", config->data));
    struct client *asking = client_connect(daemon);
    client_send(asking, "{'pool':'one'}");
    expect_member(client_ask(asking, "1", NULL, "echo", NULL), "worker", "'one'");
}

/* A PATH that the client sets itself stays. */
TEST(design_import_keeps_the_path_of_a_server)
{
    const char *bin = test_dir();
    struct text *config = test_text();
    make_program(test_format("%s/npx-of-test", bin), "#!/usr/bin/env node-of-test\n");
    make_program(test_format("%s/node-of-test", bin), "#!/bin/sh\n");
    import_with(bin,
                write_text("mcp.json", expanded("{'mcpServers': {'a': {'command': 'npx-of-test', "
                                                "'env': {'PATH': '/opt/bin'}}}}")),
                config);
    expect_word(config->data, "\"env\": {\"PATH\": \"/opt/bin\"}");
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
