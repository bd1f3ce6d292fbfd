#include "build_config.h"

#include "config/advice.h"

#include <string.h>

#include "config/pool_mode.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- servers of MCP --- */

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Whether "mcp" is a word of the name, as in mcp-server-git and @playwright/mcp. */
static bool has_mcp(const char *name)
{
    const char *at;

    for (at = strstr(name, "mcp"); at != NULL; at = strstr(at + 1, "mcp")) {
        if ((at == name || !is_letter_or_digit(at[-1])) && !is_letter_or_digit(at[3]))
            return true;
    }
    return strstr(name, "modelcontextprotocol") != NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* A program that runs the one which its arguments name; python3.11 is python. */
static bool runs_another(const char *program)
{
    static const char *const names[] = {"bun",  "bunx",   "deno", "docker", "node", "npx",   "pipx",
                                        "pnpm", "podman", "uv",   "uvx",    "yarn", "python"};

    for (size_t i = 0; i < COUNT(names); i++) {
        size_t len = strlen(names[i]);

        if (strncmp(program, names[i], len) == 0 &&
            program[len + strspn(program + len, "0123456789.")] == '\0')
            return true;
    }
    return false;
}

/* Whether the name of the program, or of the one that it is to run, says MCP. */
static bool resembles_mcp(const struct json_value *pool)
{
    const struct json_value *args = document_member(pool, "args"), *arg;
    const char *program = base_name(document_member(pool, "command")->text.data);

    if (has_mcp(program))
        return true;
    if (args == NULL || !runs_another(program))
        return false;
    for (arg = args->first; arg != NULL; arg = arg->next) {
        if (arg->text.data[0] != '-' && has_mcp(arg->text.data))
            return true;
    }
    return false;
}

void advice_check_servers(struct diagnostics *diagnostics, const struct json_value *servers)
{
    diagnostics_warn(diagnostics, servers,
                     "the configuration of an MCP client; stdio_bus --import FILE prints the one "
                     "for its servers");
}

/* --- keys that contradict each other --- */

static void advise_unused(struct diagnostics *diagnostics, const struct json_value *pool,
                          const struct pool_mode *mode)
{
    static const char *const keys[] = {"spare", "busy_timeout_sec", "on_worker_exit"};
    size_t count = pool_mode_shares_handshake(mode) ? 1 : COUNT(keys);
    const struct json_value *spare = document_member(pool, "spare");

    for (size_t i = 0; i < count && mode->clients != CLIENTS_EXCLUSIVE; i++) {
        const struct json_value *member = document_member(pool, keys[i]);

        if (member != NULL && (member->type == JSON_STRING || document_number(pool, keys[i]) > 0))
            diagnostics_warn(diagnostics, member,
                             "has no effect: \"clients\" is not \"exclusive\"");
    }
    if (mode->clients == CLIENTS_EXCLUSIVE && spare != NULL &&
        mode->spare > pool_mode_instances(pool))
        diagnostics_warn(diagnostics, spare, "is more than \"instances\", the largest number");
}

static void advise_shared(struct diagnostics *diagnostics, const struct json_value *pool,
                          const struct pool_mode *mode)
{
    bool stateful = mode->protocol == PROTOCOL_MCP || mode->protocol == PROTOCOL_ACP;

    if (stateful && mode->clients == CLIENTS_SHARED && pool_mode_instances(pool) > 1)
        diagnostics_warn(diagnostics, document_member(pool, "clients"),
                         "the messages of a client reach all workers in turn, its \"initialize\" "
                         "only one: use \"sticky\" or \"exclusive\", or \"instances\": 1");
}

void advice_check(struct diagnostics *diagnostics, const struct json_value *root)
{
    const struct json_value *pools = document_member(root, "pools");
    const struct json_value *pool = pools != NULL ? pools->first : NULL;
    struct pool_mode mode;

    for (; pool != NULL; pool = pool->next) {
        pool_mode_read(&mode, pool);
        if (document_member(pool, "protocol") == NULL && document_member(pool, "clients") == NULL &&
            resembles_mcp(pool))
            diagnostics_warn(diagnostics, document_member(pool, "command"),
                             "an MCP server, it seems, but messages get lost without \"protocol\": "
                             "\"mcp\"; if it is none, set \"clients\": \"shared\"");
        advise_unused(diagnostics, pool, &mode);
        advise_shared(diagnostics, pool, &mode);
    }
}
