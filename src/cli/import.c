#include "build_config.h"

#include "cli/import.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/client_servers.h"
#include "cli/import_program.h"
#include "cli/import_writer.h"
#include "config/pool_mode.h"
#include "json/string.h"

#define FIRST_ROOM 65536
#define TEXT_OF(number) #number
#define DECIMAL(number) TEXT_OF(number) /* of a macro */

/* --- the keys of a server --- */

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
        if (client_server_is_text(arg))
            add_arg(writer, arg);
        else
            leave_out_arg(writer);
        before = ", ";
    }
    if (before[1] == ' ')
        import_add(&writer->config, "]");
}

/* In front of what the daemon's PATH has. Returns what stands before the next variable. */
static const char *add_path(struct import_writer *writer, const char *before, const char *directory)
{
    import_add(&writer->config, before);
    import_add(&writer->config, "\"PATH\": ");
    writer->scratch.len = 0;
    import_add(&writer->scratch, directory);
    import_add(&writer->scratch, ":${PATH}");
    json_output_string(&writer->config, slice_of(writer->scratch.to, writer->scratch.len));
    return ", ";
}

/* A value that is asked for, or not known here, is left out: the worker inherits the variable. */
static void add_env(struct import_writer *writer, const struct json_value *env,
                    const struct import_program *program)
{
    bool is_object = env != NULL && env->type == JSON_OBJECT;
    const struct json_value *value = is_object ? env->first : NULL;
    const char *before = ",\n            \"env\": {";

    if (program->directory[0] != '\0' && (!is_object || document_member(env, "PATH") == NULL))
        before = add_path(writer, before, program->directory);
    for (; value != NULL; value = value->next) {
        if (!client_server_is_text(value) || !import_translate(writer, value->text, USE_VARIABLE)) {
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

/* Why servers are left out; NULL: they are not. */
static const char *const left_out[] = {
    [SERVER_IS_STARTED] = NULL,
    [SERVER_IS_STDIO_BUS] = "left alone: it is stdio_bus already\n",
    [SERVER_IS_NO_OBJECT] = "left out: it is no object\n",
    [SERVER_HAS_URL] = "left out: it is reached by a URL, not started by a command\n",
    [SERVER_IS_DISABLED] = "left out: it is disabled\n",
    [SERVER_HAS_NO_COMMAND] = "left out: it has no command\n",
};

static bool has_good_name(const struct json_value *server)
{
    return server->key.len > 0 && server->key.len <= POOL_ID_MAX &&
           memchr(server->key.data, '\0', server->key.len) == NULL;
}

/* The words of a command in the client's own notation, which follow its arguments. */
static void add_words(struct import_writer *writer, const char *first,
                      const struct client_server *server)
{
    const char *head = "    \"command\": ", *between = ", \"args\": [";
    struct import_program bus;

    import_program_find(&bus, slice_of_text("stdio_bus"));
    if (writer->is_toml) {
        head = "    command = ";
        between = "\n    args = [";
    } else if (server->in_one) {
        head = "    \"command\": [";
        between = ", ";
    }
    import_add(&writer->notes, head);
    import_add_string(&writer->notes, bus.command);
    import_add(&writer->notes, between);
    import_add(&writer->notes, first);
}

/* What is written otherwise than in the client's file, since the daemon has no shell's PATH. */
static void note_program(struct import_writer *writer, const struct import_program *program)
{
    if (program->is_moved) {
        import_note(writer, "its command is the path ");
        import_add_string(&writer->notes, program->command);
        import_add(&writer->notes, ": services and windows do not find the name\n");
    }
    if (program->directory[0] != '\0') {
        import_note(writer, "its PATH begins with ");
        import_add_string(&writer->notes, program->directory);
        import_add(&writer->notes, ", where the interpreter of its script is\n");
    }
}

/* What to write into the client. */
static void add_advice(struct import_writer *writer, const struct client_server *server,
                       const struct import_program *program)
{
    const struct json_value *arg = server->first_arg;

    import_note(writer, "in place of its command and its arguments write\n");
    add_words(writer, "\"--connect\", \"~/bus.sock\", \"--pool\", ", server);
    import_add_string(&writer->notes, writer->pool);
    import_add(&writer->notes, "]\nor, without this configuration,\n");
    add_words(writer, "\"--share\", \"--\", ", server);
    if (program->is_moved)
        import_add_string(&writer->notes, program->command);
    else
        json_output_string(&writer->notes, server->command->text);
    for (; arg != NULL; arg = arg->next) {
        import_add(&writer->notes, ", ");
        json_output_string(&writer->notes, arg->text);
    }
    import_add(&writer->notes, "]\n");
    if (program->directory[0] == '\0')
        return;
    import_add(&writer->notes, "with PATH in its environment: ");
    import_add(&writer->notes, program->directory);
    import_add(&writer->notes, ":" COMMAND_SERVICE_PATH "\n");
}

/* The directory: that of the server, else of its project; one that is not known here is none. */
static void add_cwd(struct import_writer *writer, const struct json_value *cwd)
{
    struct slice text = slice_of(writer->project, strlen(writer->project));

    if (client_server_is_text(cwd) && cwd->text.len > 0)
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

static void add_keys(struct import_writer *writer, const struct client_server *server)
{
    struct import_program program;

    /* The command is in scratch. */
    import_program_find(&program, slice_of(writer->scratch.to, writer->scratch.len));
    import_add(&writer->config, writer->servers++ > 0 ? ",\n" : "");
    import_add(&writer->config, "        {\n            \"id\": ");
    import_add_string(&writer->config, writer->pool);
    import_add(&writer->config, ",\n            \"command\": ");
    import_add_string(&writer->config, program.command);
    add_args(writer, server->first_arg);
    add_env(writer, server->env, &program);
    add_cwd(writer, server->cwd);
    if (document_member(server->value, "envFile") != NULL)
        import_note(writer, "envFile is left out: write its variables into \"env\"\n");
    import_add(&writer->config,
               ",\n            \"protocol\": \"mcp\",\n            \"instances\": " DECIMAL(
                   POOL_MODE_INSTANCES) "\n        }");
    note_program(writer, &program);
    add_advice(writer, server, &program);
}

static void add_server(void *user_data, const struct client_server *server)
{
    struct import_writer *writer = user_data;
    const char *reason = left_out[server->kind];

    writer->name = server->value->key.data;
    writer->project = server->project;
    if (reason == NULL && !has_good_name(server->value))
        reason = "left out: its name must have 1 to 256 bytes\n";
    if (reason == NULL && writer->project[0] != '\0' && access(writer->project, X_OK) != 0)
        reason = "left out: the directory of its project is not there\n";
    if (reason == NULL && !name_pool(writer, server->value))
        reason = "left out: its name and its project's have more than 256 bytes\n";
    if (reason != NULL)
        import_note(writer, reason);
    else if (!import_translate(writer, server->command->text, USE_PATH))
        import_note_placeholder(writer, "command", server->command->text, ", and is left out: ");
    else
        add_keys(writer, server);
}

/* --- the file --- */

/* False: there is no object of servers. */
static bool write_all(struct import_writer *writer, const struct json_value *root)
{
    bool found;

    import_add(&writer->config, "{\n    \"pools\": [\n");
    found = client_servers_each(root, add_server, writer);
    import_add(&writer->config, "\n    ]\n}\n");
    if (writer->servers > 0)
        import_add(&writer->notes,
                   "Write the configuration to a file, and start the daemon with it at "
                   "each login:\n    stdio_bus --config FILE --unix ~/bus.sock\n");
    json_output_add(&writer->config, slice_of("", 1));
    json_output_add(&writer->notes, slice_of("", 1));
    return found;
}

/* False: out of memory. */
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
