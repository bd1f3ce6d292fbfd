#include "build_config.h"

#include "cli/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/terminal.h"
#include "cli/connect.h"
#include "config/sources.h"
#include "remote/remote.h"

static int run_remote(const struct options *options)
{
    static const int statuses[] = {
        [REMOTE_DONE] = EXIT_DONE,
        [REMOTE_MALFORMED] = EXIT_DATA_ERROR,
        [REMOTE_OUTPUT_CLOSED] = EXIT_STDOUT_CLOSED,
        [REMOTE_LOST] = EXIT_CONNECTION_LOST,
        [REMOTE_UNUSABLE] = EXIT_CONFIG_ERROR,
        [REMOTE_SYSTEM_ERROR] = EXIT_OS_ERROR,
    };
    struct remote_options remote = {
        .url = options->url,
        .framing = options->framing,
        .headers = options->headers,
        .tls_command = options->tls_command,
        .wait_sec = (unsigned)options->wait_sec,
    };
    char reason[TOKEN_REASON_MAX];
    struct token token;
    struct log log;
    int status;

    log_open(&log, STDERR_FILENO, options->has_log_level ? options->log_level : LOG_LEVEL_WARN);
    remote.log = &log;
    if (options->token_file != NULL &&
        token_read_file(&token, options->token_file, reason) != STDIO_BUS_OK) {
        log_error(&log, "", "cannot use the token file %s: %s", options->token_file, reason);
        log_close(&log);
        return EXIT_CONFIG_ERROR;
    }
    if (options->token_file != NULL)
        remote.token = &token;
    status = statuses[remote_run(&remote)];
    log_close(&log);
    return status;
}

static int run_copy(const struct options *options)
{
    char reason[512], line[OPENING_MAX];
    int status = EXIT_CONFIG_ERROR, fd = -1;
    size_t len;

    if (connect_write_opening(options, line, &len, reason, sizeof reason)) {
        status = EXIT_CANNOT_CONNECT;
        fd = connect_open(options, reason, sizeof reason);
    }
    if (fd >= 0) {
        status = connect_copy(fd, STDIN_FILENO, STDOUT_FILENO, slice_of(line, len), reason,
                              sizeof reason);
        close(fd);
    }
    if (status != EXIT_DONE)
        terminal_line(stderr, "stdio_bus: %s", reason);
    return status;
}

int client_run(const struct options *options)
{
    if (WITH_REMOTE && options->has_url)
        return run_remote(options);
    if (WITH_REMOTE && options->line.protocol != NULL)
        return rejoin_run(options);
    return run_copy(options);
}

static bool ends_in_toml(const char *path)
{
    static const char end[] = ".toml";
    size_t len = strlen(path);

    return len >= sizeof end - 1 && strcmp(path + len - (sizeof end - 1), end) == 0;
}

static int parse(struct client_file *file, size_t len, struct document_error *error)
{
    int code;

    if (file->is_toml) {
        code = toml_read(&file->toml, slice_of(file->text, len), error);
        file->root = file->toml.root;
        return code;
    }
    comments_blank(file->text, len);
    code = document_read(&file->document, slice_of(file->text, len), error);
    file->root = file->document.root;
    return code;
}

int client_file_read(struct client_file *file, const char *path, struct diagnostics *diagnostics,
                     struct document_error *error)
{
    size_t len = 0;
    int code;

    *file = (struct client_file){.is_toml = ends_in_toml(path)};
    if (!file_read(&file->text, &len, path, diagnostics))
        return STDIO_BUS_ERR;
    code = parse(file, len, error);
    if (code != STDIO_BUS_OK && code != STDIO_BUS_EINVAL)
        diagnostics_file(diagnostics, "out of memory");
    return code;
}

void client_file_free(struct client_file *file)
{
    if (file->is_toml)
        toml_free(&file->toml);
    else
        document_free(&file->document);
    free(file->text);
    *file = (struct client_file){.root = NULL};
}

bool client_server_is_text(const struct json_value *value)
{
    return value != NULL && (value->type == JSON_NUMBER || value->type == JSON_STRING) &&
           memchr(value->text.data, '\0', value->text.len) == NULL;
}

/* --- a server --- */

static const struct json_value *first_of(const struct json_value *array)
{
    return array != NULL && array->type == JSON_ARRAY ? array->first : NULL;
}

/* Gemini has "httpUrl", Windsurf "serverUrl", goose "uri". */
static const struct json_value *url_of(const struct json_value *server)
{
    static const char *const keys[] = {"url", "serverUrl", "httpUrl", "uri"};
    const struct json_value *url = NULL;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && url == NULL; i++)
        url = document_member(server, keys[i]);
    return url;
}

/* Zed has had the command and what belongs to it in an object of its own. */
static void find_parts(struct client_server *server)
{
    const struct json_value *own = server->value, *command = document_member(own, "command");

    if (command != NULL && command->type == JSON_OBJECT) {
        own = command;
        command = document_member(own, "path");
    }
    server->in_one = command != NULL && command->type == JSON_ARRAY;
    server->command = server->in_one ? command->first : command;
    server->first_arg = first_of(document_member(own, "args"));
    if (server->in_one)
        server->first_arg = server->command != NULL ? server->command->next : NULL;
    server->env = document_member(own, server->in_one ? "environment" : "env");
    server->cwd = document_member(own, "cwd");
    server->url = url_of(server->value);
}

static bool is_stdio_bus(struct slice command)
{
    static const char name[] = "stdio_bus";
    size_t len = sizeof name - 1;

    return command.len >= len && memcmp(command.data + command.len - len, name, len) == 0 &&
           (command.len == len || command.data[command.len - len - 1] == '/');
}

static bool is_disabled(const struct json_value *server)
{
    const struct json_value *disabled = document_member(server, "disabled");
    const struct json_value *enabled = document_member(server, "enabled");

    return (disabled != NULL && disabled->boolean) ||
           (enabled != NULL && enabled->type == JSON_BOOLEAN && !enabled->boolean);
}

static enum client_server_kind kind_of(const struct client_server *server)
{
    if (server->value->type != JSON_OBJECT)
        return SERVER_IS_NO_OBJECT;
    if (is_disabled(server->value))
        return SERVER_IS_DISABLED;
    if (server->url != NULL)
        return SERVER_HAS_URL;
    if (!client_server_is_text(server->command) || server->command->text.len == 0)
        return SERVER_HAS_NO_COMMAND;
    return is_stdio_bus(server->command->text) ? SERVER_IS_STDIO_BUS : SERVER_IS_STARTED;
}

/* --- the file --- */

/* NULL: there are none. VS Code's settings have "mcp.servers", opencode's have servers in "mcp". */
static const struct json_value *servers_of(const struct json_value *root)
{
    static const char *const keys[] = {"mcpServers", "servers", "context_servers", "mcp_servers"};
    const struct json_value *servers = NULL, *mcp;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && servers == NULL; i++)
        servers = document_member_of(root, keys[i], JSON_OBJECT);
    if (servers != NULL)
        return servers;
    mcp = document_member_of(root, "mcp", JSON_OBJECT);
    servers = document_member_of(mcp, "servers", JSON_OBJECT);
    if (servers != NULL && document_member(servers, "command") == NULL)
        return servers;
    return mcp != NULL && mcp->count > 0 ? mcp : NULL;
}

static void visit_all(const struct json_value *servers, const char *project,
                      client_server_fn *visit, void *user_data)
{
    const struct json_value *value = servers != NULL ? servers->first : NULL;

    for (; value != NULL; value = value->next) {
        struct client_server server = {.value = value, .project = project};

        if (value->type == JSON_OBJECT)
            find_parts(&server);
        server.kind = kind_of(&server);
        visit(user_data, &server);
    }
}

bool client_servers_each(const struct json_value *root, client_server_fn *visit, void *user_data)
{
    const struct json_value *servers = servers_of(root);
    const struct json_value *projects = document_member_of(root, "projects", JSON_OBJECT), *project;
    bool found = servers != NULL;

    visit_all(servers, "", visit, user_data);
    for (project = projects != NULL ? projects->first : NULL; project != NULL;
         project = project->next) {
        servers = document_member_of(project, "mcpServers", JSON_OBJECT);
        found = found || servers != NULL;
        visit_all(servers, project->key.data, visit, user_data);
    }
    return found;
}
