#include "build_config.h"

#include "config/command_line.h"

#include "config_fixture.h"

/* Makes the configuration; the reports are `expected`. */
static void expect_line(const struct command_line *line, const char *expected)
{
    free_config();
    expect(config_of_command(&config, line, note_report, reports), expected);
}

static char *words[] = {"/bin/cat", "-u", "", "\xff\"\n", NULL};

#define LINE(...) (&(struct command_line){.words = words, __VA_ARGS__})

TEST(command_line_is_a_pool)
{
    expect_line(LINE(.protocol = NULL), "");
    ck_assert_uint_eq(config.pool_count, 1);
    ck_assert_str_eq(config.pools[0].id, "cat");
    ck_assert_str_eq(config.pools[0].command, "/bin/cat");
    for (size_t i = 0; words[i] != NULL; i++)
        ck_assert_str_eq(config.pools[0].argv[i], words[i]);
    ck_assert_ptr_null(config.pools[0].argv[4]);
    ck_assert_ptr_nonnull(config.pools[0].envp);
    ck_assert(!config.has_protocol && !config.splits_arrays);
    free_config();
}

static const struct {
    const char *words[10], *id;
} names[] = {
    {{"npx", "-y", "@modelcontextprotocol/server-memory"}, "server-memory"},
    {{"npx", "-y", "@x/y@1.2.3"}, "y"},
    {{"/usr/bin/npx", "--package", "@x/y", "--", "z", "a"}, "z"},
    {{"npx", "--yes", "mcp-remote@latest", "https://host/mcp"}, "mcp-remote"},
    {{"npx", "-y", "github:owner/mcp-x#main"}, "mcp-x"},
    {{"npx"}, "npx"},
    {{"npx", "-y"}, "npx"},
    {{"npm", "exec", "--", "@x/y"}, "y"},
    {{"npm", "start"}, "npm"},
    {{"pnpm", "dlx", "@x/y"}, "y"},
    {{"bunx", "y"}, "y"},
    {{"bun", "run", "src/index.ts"}, "index.ts"},
    {{"bun", "x", "@x/y"}, "y"},
    {{"uvx", "mcp-server-time", "--local-timezone", "UTC"}, "mcp-server-time"},
    {{"uvx", "mcp-server-git[all]==1.0"}, "mcp-server-git"},
    {{"uvx", "--from", "git+https://host/o/mcp-x.git@v1", "x"}, "x"},
    {{"uvx", "git+https://host/o/mcp-x.git@v1"}, "mcp-x"},
    {{"uv", "run", "--directory", "/srv/weather", "weather.py"}, "weather"},
    {{"uv", "--directory", "/srv/weather", "run", "weather.py"}, "weather"},
    {{"pipx", "run", "mcp-server-time"}, "mcp-server-time"},
    {{"python3", "-m", "mcp_server_time"}, "mcp_server_time"},
    {{"python", "-u", "server.py"}, "server.py"},
    {{"node", "/path/to/files/dist/index.js", "/tmp"}, "files"},
    {{"node", "--import", "tsx", "src/memory.mjs"}, "memory"},
    {{"node", "index.js"}, "index.js"},
    {{"deno", "run", "-A", "jsr:@x/y"}, "y"},
    {{"docker", "run", "-i", "--rm", "-e", "A", "ghcr.io/github/github-mcp-server:1.2"},
     "github-mcp-server"},
    {{"docker", "start", "x"}, "docker"},
    {{"./node/mcp-x", "index.js"}, "mcp-x"},
    {{"dir/"}, "dir"},
    {{"/"}, "/"},
};

TEST_ROWS(command_line_names_the_server, COUNT(names))
{
    char id[POOL_ID_MAX + 1];

    pool_name(id, (char *const *)names[row].words);
    ck_assert_str_eq(id, names[row].id);
}

/* The keys of a pool, and what follows for those that are left out, in a file too. */
static const struct {
    struct command_line line;
    struct {
        enum pool_protocol protocol;
        enum pool_clients clients;
        unsigned instances, spare;
    } is;
} modes[] = {
    {{.instances = NULL}, {PROTOCOL_UNKNOWN, CLIENTS_SHARED, 1, 0}},
    {{.instances = "12"}, {PROTOCOL_UNKNOWN, CLIENTS_SHARED, 12, 0}},
    {{.clients = "sticky"}, {PROTOCOL_UNKNOWN, CLIENTS_STICKY, 1, 0}},
    {{.clients = "exclusive"}, {PROTOCOL_UNKNOWN, CLIENTS_EXCLUSIVE, 16, 0}},
    {{.protocol = "mcp"}, {PROTOCOL_MCP, CLIENTS_EXCLUSIVE, 16, 1}},
    {{.protocol = "lsp"}, {PROTOCOL_LSP, CLIENTS_EXCLUSIVE, 16, 1}},
    {{.protocol = "acp"}, {PROTOCOL_ACP, CLIENTS_STICKY, 1, 0}},
    {{.protocol = "mcp", .clients = "sticky"}, {PROTOCOL_MCP, CLIENTS_STICKY, 1, 1}},
    {{.protocol = "mcp", .instances = "3"}, {PROTOCOL_MCP, CLIENTS_EXCLUSIVE, 3, 1}},
    {{.protocol = "mcp", .clients = "shared"}, {PROTOCOL_MCP, CLIENTS_STICKY, 1, 1}},
    {{.one_client = true}, {PROTOCOL_UNKNOWN, CLIENTS_EXCLUSIVE, 16, 0}},
    {{.one_client = true, .instances = "2"}, {PROTOCOL_UNKNOWN, CLIENTS_SHARED, 2, 0}},
    {{.one_client = true, .clients = "shared"}, {PROTOCOL_UNKNOWN, CLIENTS_SHARED, 1, 0}},
    {{.one_client = true, .protocol = "mcp"}, {PROTOCOL_MCP, CLIENTS_EXCLUSIVE, 16, 0}},
    {{.one_client = true, .protocol = "acp"}, {PROTOCOL_ACP, CLIENTS_STICKY, 1, 0}},
};

/* The line as the keys of a pool in a file. */
static void file_of(char text[512], const struct command_line *line)
{
    const char *const keys[][2] = {{"protocol", line->protocol}, {"clients", line->clients}};
    int len = snprintf(text, 512, "{\"pools\": [{\"id\": \"a\", \"command\": \"/bin/cat\"");

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (keys[i][1] != NULL)
            len += snprintf(text + len, 512 - (size_t)len, ", \"%s\": \"%s\"", keys[i][0],
                            keys[i][1]);
    }
    if (line->instances != NULL)
        len += snprintf(text + len, 512 - (size_t)len, ", \"instances\": %s", line->instances);
    snprintf(text + len, 512 - (size_t)len, "}]}");
}

static void expect_mode(size_t row)
{
    ck_assert_int_eq(config.pools[0].mode.protocol, modes[row].is.protocol);
    ck_assert_int_eq(config.pools[0].mode.clients, modes[row].is.clients);
    ck_assert_uint_eq(config.pools[0].instances, modes[row].is.instances);
    ck_assert_uint_eq(config.pools[0].mode.spare, modes[row].is.spare);
    free_config();
}

TEST_ROWS(command_line_keys, COUNT(modes))
{
    struct command_line line = modes[row].line;
    char text[512];

    line.words = words;
    expect_line(&line, "");
    expect_mode(row);
    if (line.one_client) /* a file does not know that */
        return;
    file_of(text, &line);
    expect_text(text, "");
    expect_mode(row);
}

static const struct {
    char *command;
    const char *id;
} ids[] = {
    {"cat", "cat"},
    {"/bin/cat", "cat"},
    {"/usr/../bin/cat", "cat"},
    {"./cat", "cat"},
};

TEST_ROWS(command_line_id_is_the_base_name, COUNT(ids))
{
    char *line[] = {ids[row].command, NULL};

    setenv("PATH", "/bin", 1);
    ck_assert_int_eq(chdir("/bin"), 0);
    expect_line(&(struct command_line){.words = line}, "");
    ck_assert_str_eq(config.pools[0].id, ids[row].id);
    ck_assert_str_eq(config.pools[0].command, ids[row].command);
    free_config();
}

/* The rules are those of a file. */
TEST(command_line_problems_name_the_key)
{
    char *missing[] = {"no-such-program", NULL}, *directory[] = {"/", NULL};
    char *server[] = {"/tmp/mcp-cat", NULL}, path[] = "/tmp/mcp-cat";

    setenv("PATH", "/bin:/none", 1);
    expect_line(&(struct command_line){.words = missing},
                not_in_path("command line: command", "no-such-program", ENOENT, "/bin:/none"));
    expect_line(&(struct command_line){.words = directory},
                "E command line: command: cannot run \"/\": Is a directory\n");
    expect_line(LINE(.protocol = "lsp", .clients = "shared"),
                "E command line: clients: must be \"exclusive\" with \"protocol\": \"lsp\": a "
                "language server keeps the documents of one editor\n");
    expect_line(LINE(.instances = "4", .protocol = "mcp", .clients = "shared"),
                "W command line: clients: the messages of a client reach all workers in turn, its "
                "\"initialize\" only one: use \"sticky\" or \"exclusive\", or \"instances\": 1\n");
    unlink(path);
    ck_assert_int_eq(symlink("/bin/cat", path), 0);
    expect_line(&(struct command_line){.words = server},
                "W command line: command: an MCP server, it seems, but messages get lost without "
                "\"protocol\": \"mcp\"; if it is none, set \"clients\": \"shared\"\n");
    unlink(path);
    free_config();
}
