#include "build_config.h"

#include "config/config.h"

#include "config_fixture.h"

#define SEEMS                                                                                      \
    "W c.json:3:1: pools[0].command: an MCP server, it seems, but messages get lost without "      \
    "\"protocol\": \"mcp\"; if it is none, set \"clients\": \"shared\"\n"

/* A program of this name, which is there. */
static void expect_program(const char *name, const char *members, const char *expected)
{
    char dir[] = "/tmp/check_advice.XXXXXX", path[128], text[1024];

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_int_eq(symlink("/bin/cat", path), 0);
    snprintf(text, sizeof text,
             "{\"pools\": [{\"id\": \"a\", \"instances\": 4,\n%s\n\"command\": \"%s\"}]}", members,
             path);
    expect_text(text, expected);
    free_config();
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}

/* Programs that are MCP servers by their names, and programs that are not. */
static const struct {
    const char *program, *members;
    bool seems;
} programs[] = {
    {"npx", "\"args\": [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/srv\"],", true},
    {"npx", "\"args\": [\"-y\", \"@playwright/mcp@latest\"],", true},
    {"uvx", "\"args\": [\"mcp-server-git\"],", true},
    {"python3.11", "\"args\": [\"-m\", \"mcp_server_fetch\"],", true},
    {"docker", "\"args\": [\"run\", \"-i\", \"--rm\", \"mcp/time\"],", true},
    {"github-mcp-server", "", true},
    {"mcp", "", true},
    {"npx", "\"args\": [\"-y\", \"some-server\"],", false},
    {"npx", "\"args\": [\"--mcp\"],", false},
    {"npx", "", false},
    {"npxmcp", "", false},
    {"tcmcpd", "", false},
    {"my-server", "\"args\": [\"/srv/mcp/data\"],", false},
    {"uvx", "\"args\": [\"mcp-server-git\"], \"protocol\": \"mcp\",", false},
    {"uvx", "\"args\": [\"mcp-server-git\"], \"protocol\": \"acp\",", false},
    {"uvx", "\"args\": [\"mcp-server-git\"], \"clients\": \"shared\",", false},
};

TEST_ROWS(server_without_its_protocol, COUNT(programs))
{
    expect_program(programs[row].program, programs[row].members, programs[row].seems ? SEEMS : "");
}

#define IN_TURN                                                                                    \
    "the messages of a client reach all workers in turn, its \"initialize\" only one: use "        \
    "\"sticky\" or \"exclusive\", or \"instances\": 1\n"
#define NOT_REPEATED "has no effect: the next process does not get the handshake of the clients\n"
#define NOT_EXCLUSIVE "has no effect: \"clients\" is not \"exclusive\"\n"

static const struct {
    const char *members, *expected;
} modes[] = {
    {"\"protocol\": \"mcp\",", ""},
    {"\"protocol\": \"mcp\", \"clients\":\"sticky\",", ""},
    {"\"protocol\": \"mcp\",\n\"clients\": \"shared\",",
     "W c.json:3:1: pools[0].clients: " IN_TURN},
    {"\"protocol\": \"acp\",\n\"clients\": \"shared\",",
     "W c.json:3:1: pools[0].clients: " IN_TURN},
    {"\"clients\": \"shared\",", ""},
    {"\"spare\": 4, \"busy_timeout_sec\": 9, \"protocol\": \"mcp\",", ""},
    {"\"spare\": 4, \"clients\": \"exclusive\",", ""},
    {"\"spare\": 5, \"clients\": \"exclusive\",",
     "W c.json:2:1: pools[0].spare: is more than \"instances\", the largest number\n"},
    {"\"spare\": 1,", "W c.json:2:1: pools[0].spare: " NOT_EXCLUSIVE},
    {"\"spare\": 0, \"protocol\": \"acp\",", ""},
    {"\"spare\": 1, \"protocol\": \"acp\",", "W c.json:2:1: pools[0].spare: " NOT_EXCLUSIVE},
    {"\"busy_timeout_sec\": 3, \"clients\": \"sticky\",",
     "W c.json:2:1: pools[0].busy_timeout_sec: " NOT_EXCLUSIVE},
    {"\"on_worker_exit\": \"close\", \"protocol\": \"acp\",",
     "W c.json:2:1: pools[0].on_worker_exit: " NOT_EXCLUSIVE},
    {"\"lazy\": true, \"idle_stop_sec\": 9, \"protocol\": \"mcp\",", ""},
    {"\"lazy\": true, \"protocol\": \"mcp\", \"on_worker_exit\": \"close\",",
     "W c.json:2:1: pools[0].lazy: " NOT_REPEATED},
    {"\"idle_stop_sec\": 9, \"protocol\": \"mcp\", \"clients\": \"sticky\", \"ids\": \"preserve\",",
     "W c.json:2:1: pools[0].idle_stop_sec: " NOT_REPEATED},
    {"\"lazy\": true,", "W c.json:2:1: pools[0].lazy: " NOT_REPEATED},
    {"\"spare\": 1, \"protocol\": \"mcp\", \"lazy\": true,",
     "W c.json:2:1: pools[0].spare: has no effect: the pool is \"lazy\"\n"},
    {"\"spare\": 0, \"protocol\": \"mcp\", \"lazy\": true,", ""},
};

TEST_ROWS(keys_that_contradict_each_other, COUNT(modes))
{
    expect_program("server", modes[row].members, modes[row].expected);
}

TEST(one_shared_process_is_right)
{
    expect_text("{\"pools\": [{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1,"
                "\"protocol\": \"mcp\", \"clients\": \"shared\"}]}",
                "");
    free_config();
}

#define POOL_OF(id, protocol)                                                                      \
    "{\"id\": \"" id "\", \"command\": \"/bin/cat\", \"instances\": 1,\n\"protocol\": \"" protocol \
    "\"}"

/* Their clients name a pool when they connect. */
TEST(pools_of_one_protocol_are_right)
{
    expect_text("{\"pools\": [" POOL_OF("a", "mcp") ", " POOL_OF("b", "mcp") "]}", "");
    free_config();
}

/* What was written for an MCP client is no configuration of the daemon. */
TEST(configuration_of_an_mcp_client)
{
    expect_text("{\"mcpServers\": {\"files\": {\"command\": \"npx\"}}}",
                "E c.json:1:1: pools: is required\n"
                "W c.json:1:2: mcpServers: the configuration of an MCP client; stdio_bus "
                "--import FILE prints the one for its servers\n");
}

/* No advice for what is wrong anyway. */
TEST(errors_come_alone)
{
    expect_text("{\"pools\": [" POOL_OF("a", "mcp") ", " POOL_OF("a", "mcp") "]}",
                "E c.json:2:28: pools[1].id: \"a\" is the id of pools[0] already, at 1:19\n");
}
