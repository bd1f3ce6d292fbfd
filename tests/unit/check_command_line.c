#include "build_config.h"

#include "config/command_line.h"

#include <stdlib.h>
#include <unistd.h>

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

/* The keys of a pool, and what follows for those that are left out. */
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
    {{.one_client = true}, {PROTOCOL_UNKNOWN, CLIENTS_EXCLUSIVE, 16, 0}},
    {{.one_client = true, .instances = "2"}, {PROTOCOL_UNKNOWN, CLIENTS_SHARED, 2, 0}},
    {{.one_client = true, .clients = "shared"}, {PROTOCOL_UNKNOWN, CLIENTS_SHARED, 1, 0}},
    {{.one_client = true, .protocol = "mcp"}, {PROTOCOL_MCP, CLIENTS_EXCLUSIVE, 16, 0}},
    {{.one_client = true, .protocol = "acp"}, {PROTOCOL_ACP, CLIENTS_STICKY, 1, 0}},
};

TEST_ROWS(command_line_keys, COUNT(modes))
{
    struct command_line line = modes[row].line;

    line.words = words;
    expect_line(&line, "");
    ck_assert_int_eq(config.pools[0].mode.protocol, modes[row].is.protocol);
    ck_assert_int_eq(config.pools[0].mode.clients, modes[row].is.clients);
    ck_assert_uint_eq(config.pools[0].instances, modes[row].is.instances);
    ck_assert_uint_eq(config.pools[0].mode.spare, modes[row].is.spare);
    free_config();
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

int main(void)
{
    return harness_main("command_line");
}
