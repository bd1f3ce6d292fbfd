#include "build_config.h"

#include "cli/import.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/import_writer.h"
#include "config/command_line.h"
#include "json/string.h"

#define FIRST_ROOM 65536

/* --- the keys of a server --- */

static bool is_text(const struct json_value *value)
{
    return value != NULL && (value->type == JSON_NUMBER || value->type == JSON_STRING) &&
           memchr(value->text.data, '\0', value->text.len) == NULL;
}

/* A value of "args", which stays as it is if it holds what is not known here. */
static void add_arg(struct import_writer *writer, const struct json_value *value)
{
    if (!import_translate(writer, value->text, USE_VALUE))
        import_note_placeholder(writer, "args", value->text, ", which stays as it is: ");
    json_output_string(&writer->config, slice_of(writer->scratch.to, writer->scratch.len));
}

static void leave_out_arg(struct import_writer *writer)
{
    import_note(writer, "an argument is no text, and empty in the configuration\n");
    import_add(&writer->config, "\"\"");
}

/* The arguments from `arg` on. */
static void add_args(struct import_writer *writer, const struct json_value *arg)
{
    const char *before = ",\n            \"args\": [";

    for (; arg != NULL; arg = arg->next) {
        import_add(&writer->config, before);
        if (is_text(arg))
            add_arg(writer, arg);
        else
            leave_out_arg(writer);
        before = ", ";
    }
    if (before[1] == ' ')
        import_add(&writer->config, "]");
}

/* A value that is asked for, or not known here, is left out: the worker inherits the variable. */
static void add_env(struct import_writer *writer, const struct json_value *env)
{
    const struct json_value *value = env != NULL && env->type == JSON_OBJECT ? env->first : NULL;
    const char *before = ",\n            \"env\": {";

    for (; value != NULL; value = value->next) {
        if (!is_text(value) || !import_translate(writer, value->text, USE_VARIABLE)) {
            import_note(writer, "set ");
            json_output_string(&writer->notes, value->key);
            import_add(&writer->notes, " in \"env\" or in the environment of the daemon\n");
            continue;
        }
        import_add(&writer->config, before);
        json_output_string(&writer->config, value->key);
        import_add(&writer->config, ": ");
        json_output_string(&writer->config, slice_of(writer->scratch.to, writer->scratch.len));
        before = ", ";
    }
    if (before[1] == ' ')
        import_add(&writer->config, "}");
}

/* --- a server --- */

/* The parts of a server, wherever its client has them. NULL: there is none. */
struct parts {
    const struct json_value *command, *first_arg, *env, *cwd;
    bool in_one; /* the command and its arguments are one array, as opencode has them */
};

static const struct json_value *first_of(const struct json_value *array)
{
    return array != NULL && array->type == JSON_ARRAY ? array->first : NULL;
}

/* Zed has had the command and what belongs to it in an object of its own. */
static struct parts parts_of(const struct json_value *server)
{
    const struct json_value *command, *own = server;
    struct parts parts = {.command = NULL};

    if (server->type != JSON_OBJECT)
        return parts;
    command = document_member(server, "command");
    if (command != NULL && command->type == JSON_OBJECT) {
        own = command;
        command = document_member(own, "path");
    }
    parts.in_one = command != NULL && command->type == JSON_ARRAY;
    parts.command = parts.in_one ? command->first : command;
    parts.first_arg = first_of(document_member(own, "args"));
    if (parts.in_one)
        parts.first_arg = parts.command != NULL ? parts.command->next : NULL;
    parts.env = document_member(own, parts.in_one ? "environment" : "env");
    parts.cwd = document_member(own, "cwd");
    return parts;
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

/* Why the server is left out; NULL: it is not. */
static const char *left_out(const struct json_value *server, const struct json_value *command)
{
    static const char *const urls[] = {"url", "serverUrl", "httpUrl", "uri"};

    if (server->type != JSON_OBJECT)
        return "left out: it is no object\n";
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        if (document_member(server, urls[i]) != NULL)
            return "left out: it is reached by a URL, not started by a command\n";
    }
    if (is_disabled(server))
        return "left out: it is disabled\n";
    if (!is_text(command) || command->text.len == 0)
        return "left out: it has no command\n";
    if (is_stdio_bus(command->text))
        return "left alone: it is stdio_bus already\n";
    if (server->key.len == 0 || server->key.len > POOL_ID_MAX ||
        memchr(server->key.data, '\0', server->key.len) != NULL)
        return "left out: its name must have 1 to 256 bytes\n";
    return NULL;
}

/* The words of a command in the client's own notation, which follow its arguments. */
static void add_words(struct import_writer *writer, const char *first, const struct parts *parts)
{
    const char *head = "    \"command\": \"stdio_bus\", \"args\": [";

    if (writer->is_toml)
        head = "    command = \"stdio_bus\"\n    args = [";
    else if (parts->in_one)
        head = "    \"command\": [\"stdio_bus\", ";
    import_add(&writer->notes, head);
    import_add(&writer->notes, first);
}

/* What to write into the client. */
static void add_advice(struct import_writer *writer, const struct parts *parts)
{
    const struct json_value *arg = parts->first_arg;

    import_note(writer, "in place of its command and its arguments write\n");
    add_words(writer, "\"--connect\", \"~/bus.sock\", \"--pool\", ", parts);
    import_add_string(&writer->notes, writer->pool);
    import_add(&writer->notes, "]\nor, without this configuration,\n");
    add_words(writer, "\"--share\", \"--\", ", parts);
    json_output_string(&writer->notes, parts->command->text);
    for (; arg != NULL; arg = arg->next) {
        import_add(&writer->notes, ", ");
        json_output_string(&writer->notes, arg->text);
    }
    import_add(&writer->notes, "]\n");
}

/* The directory: that of the server, else of its project; one that is not known here is none. */
static void add_cwd(struct import_writer *writer, const struct json_value *cwd)
{
    struct slice text = slice_of(writer->project, strlen(writer->project));

    if (is_text(cwd) && cwd->text.len > 0)
        text = cwd->text;
    if (text.len == 0)
        return;
    if (!import_translate(writer, text, USE_PATH)) {
        import_note_placeholder(writer, "cwd", text, ", and is left out: ");
        return;
    }
    import_add(&writer->config, ",\n            \"cwd\": ");
    json_output_string(&writer->config, slice_of(writer->scratch.to, writer->scratch.len));
}

/* The id of the pool: the name of the server, and its project if it is of one. */
static bool name_pool(struct import_writer *writer, const struct json_value *server)
{
    int len = snprintf(writer->pool, sizeof writer->pool, "%s%s%s", server->key.data,
                       writer->project[0] != '\0' ? "@" : "", writer->project);

    return len > 0 && len <= POOL_ID_MAX;
}

static void add_keys(struct import_writer *writer, const struct json_value *server,
                     const struct parts *parts)
{
    /* The command is in scratch. */
    import_add(&writer->config, writer->servers++ > 0 ? ",\n" : "");
    import_add(&writer->config, "        {\n            \"id\": ");
    import_add_string(&writer->config, writer->pool);
    import_add(&writer->config, ",\n            \"command\": ");
    json_output_string(&writer->config, slice_of(writer->scratch.to, writer->scratch.len));
    add_args(writer, parts->first_arg);
    add_env(writer, parts->env);
    add_cwd(writer, parts->cwd);
    if (document_member(server, "envFile") != NULL)
        import_note(writer, "envFile is left out: write its variables into \"env\"\n");
    import_add(
        &writer->config,
        ",\n            \"protocol\": \"mcp\",\n            \"instances\": " COMMAND_LINE_INSTANCES
        "\n        }");
    add_advice(writer, parts);
}

static void add_server(struct import_writer *writer, const struct json_value *server)
{
    struct parts parts = parts_of(server);
    const char *reason = left_out(server, parts.command);

    writer->name = server->key.data;
    if (reason == NULL && writer->project[0] != '\0' && access(writer->project, X_OK) != 0)
        reason = "left out: the directory of its project is not there\n";
    if (reason == NULL && !name_pool(writer, server))
        reason = "left out: its name and its project's have more than 256 bytes\n";
    if (reason != NULL)
        import_note(writer, reason);
    else if (!import_translate(writer, parts.command->text, USE_PATH))
        import_note_placeholder(writer, "command", parts.command->text, ", and is left out: ");
    else
        add_keys(writer, server, &parts);
}

/* --- the file --- */

static const struct json_value *member_object(const struct json_value *object, const char *key)
{
    const struct json_value *member = NULL;

    if (object != NULL && object->type == JSON_OBJECT)
        member = document_member(object, key);
    return member != NULL && member->type == JSON_OBJECT ? member : NULL;
}

/* NULL: there are none. VS Code's settings have "mcp.servers", opencode's have servers in "mcp". */
static const struct json_value *servers_of(const struct json_value *root)
{
    static const char *const keys[] = {"mcpServers", "servers", "context_servers", "mcp_servers"};
    const struct json_value *servers = NULL, *mcp;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && servers == NULL; i++)
        servers = member_object(root, keys[i]);
    if (servers != NULL)
        return servers;
    mcp = member_object(root, "mcp");
    servers = member_object(mcp, "servers");
    if (servers != NULL && document_member(servers, "command") == NULL)
        return servers;
    return mcp != NULL && mcp->count > 0 ? mcp : NULL;
}

/* The servers of each project, which Claude Code starts in the project's directory. Returns whether
 * there is a project with an object of them. */
static bool add_projects(struct import_writer *writer, const struct json_value *root)
{
    const struct json_value *projects = member_object(root, "projects"), *project, *servers;
    bool found = false;

    for (project = projects != NULL ? projects->first : NULL; project != NULL;
         project = project->next) {
        servers = member_object(project, "mcpServers");
        found = found || servers != NULL;
        writer->project = project->key.data;
        for (servers = servers != NULL ? servers->first : NULL; servers != NULL;
             servers = servers->next)
            add_server(writer, servers);
    }
    writer->project = "";
    return found;
}

/* False: there is no object of servers. */
static bool write_all(struct import_writer *writer, const struct json_value *root)
{
    const struct json_value *servers = servers_of(root), *server;
    bool found;

    writer->project = "";
    import_add(&writer->config, "{\n    \"pools\": [\n");
    for (server = servers != NULL ? servers->first : NULL; server != NULL; server = server->next)
        add_server(writer, server);
    found = add_projects(writer, root) || servers != NULL;
    import_add(&writer->config, "\n    ]\n}\n");
    if (writer->servers > 0)
        import_add(&writer->notes,
                   "Write the configuration to a file, and start the daemon with it at "
                   "each login:\n    stdio_bus --config FILE --unix ~/bus.sock\n");
    json_output_add(&writer->config, slice_of("", 1));
    json_output_add(&writer->notes, slice_of("", 1));
    return found;
}

/* False: memory is out. */
static bool make_room(struct import *import, struct import_writer *writer, char **scratch,
                      size_t size)
{
    char *config = realloc(import->config, size), *notes = realloc(import->notes, size);
    char *more = realloc(*scratch, size);

    import->config = config != NULL ? config : import->config;
    import->notes = notes != NULL ? notes : import->notes;
    *scratch = more != NULL ? more : *scratch;
    *writer = (struct import_writer){.config = {.to = config, .size = size},
                                     .notes = {.to = notes, .size = size},
                                     .scratch = {.to = more, .size = size}};
    return config != NULL && notes != NULL && more != NULL;
}

int import_read(struct import *import, const struct json_value *root, bool is_toml)
{
    struct import_writer writer = {.servers = 0};
    char *scratch = NULL;
    size_t size = FIRST_ROOM;
    bool has_room, found = false;

    *import = (struct import){.config = NULL};
    do {
        has_room = make_room(import, &writer, &scratch, size);
        writer.is_toml = is_toml;
        if (has_room)
            found = write_all(&writer, root);
        size *= 2;
    } while (has_room && (writer.config.full || writer.notes.full || writer.scratch.full));
    free(scratch);
    import->servers = writer.servers;
    if (!has_room)
        return STDIO_BUS_ERR;
    return found ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}

void import_free(struct import *import)
{
    free(import->config);
    free(import->notes);
    *import = (struct import){.config = NULL};
}
