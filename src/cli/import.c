#include "build_config.h"

#include "cli/import.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/terminal.h"
#include "cli/client.h"
#include "config/environment.h"
#include "config/headers.h"
#include "config/pool_mode.h"
#include "config/url.h"
#include "json/string.h"

static void import_add(struct json_output *out, const char *text)
{
    json_output_add(out, slice_of_text(text));
}

/* Adds the text as a string of JSON. */
static void import_add_string(struct json_output *out, const char *text)
{
    json_output_string(out, slice_of_text(text));
}

/* Begins a note about the server: the name, and the text. */
static void import_note(struct import_writer *writer, const char *text)
{
    import_add_string(&writer->notes, writer->name);
    import_add(&writer->notes, ": ");
    import_add(&writer->notes, text);
}

/* --- variables in values --- */

/* The name of the variable that `name`, of "${name}", stands for. Clients have ${NAME},
 * ${NAME:-DEFAULT}, ${env:NAME} and, VS Code, ${userHome}. `otherwise` gets the default; its data
 * is NULL without one. */
static struct slice variable_of(struct slice name, struct slice *otherwise)
{
    const char *colon = memchr(name.data, ':', name.len);

    *otherwise = slice_of(NULL, 0);
    if (name.len > 4 && memcmp(name.data, "env:", 4) == 0)
        return slice_of(name.data + 4, name.len - 4);
    if (slice_is(name, "userHome"))
        return slice_of_text("HOME");
    if (colon == NULL || colon + 1 == name.data + name.len || colon[1] != '-')
        return name;
    *otherwise = slice_of(colon + 2, name.len - (size_t)(colon + 2 - name.data));
    return slice_of(name.data, (size_t)(colon - name.data));
}

/* A text that is no variable: where the daemon replaces variables, "$$" stands for a "$". */
static void add_plain(struct json_output *out, struct slice text, enum import_use use)
{
    for (size_t i = 0; i < text.len; i++) {
        json_output_add(out, slice_of(text.data + i, 1));
        if (text.data[i] == '$' && use == USE_VARIABLE)
            import_add(out, "$");
    }
}

/* The length of "${" or, of opencode, "{env:" at the beginning of `text`, after which a name
 * follows; 0: there is none. */
static size_t opening_len(struct slice text)
{
    if (text.len > 1 && memcmp(text.data, "${", 2) == 0)
        return 2;
    return text.len > 5 && memcmp(text.data, "{env:", 5) == 0 ? 5 : 0;
}

/* Appends what "${NAME}" at the beginning of `text`, whose name begins at `at`, stands for. Returns
 * its length, or 0 if it stands for nothing that is known here. */
static size_t translate_variable(struct json_output *out, struct slice text, size_t at,
                                 enum import_use use)
{
    const char *end = memchr(text.data, '}', text.len), *value;
    struct slice name, otherwise;
    bool is_found;

    if (end == NULL)
        return 0;
    name = variable_of(slice_of(text.data + at, (size_t)(end - text.data) - at), &otherwise);
    is_found = variable_find(name, &value) == VARIABLE_FOUND;
    if (!is_found && otherwise.data == NULL)
        return 0;
    if (!is_found) {
        add_plain(out, otherwise, use);
    } else if (use == USE_VARIABLE) {
        import_add(out, "${");
        json_output_add(out, name);
        import_add(out, "}");
    } else {
        import_add(out, value);
    }
    return (size_t)(end - text.data) + 1;
}

/* Translates the text into writer->scratch. Returns false if it names something that is not known
 * here; that stays as it is. */
bool import_translate(struct import_writer *writer, struct slice text, enum import_use use)
{
    struct json_output *out = &writer->scratch;
    const char *home;
    bool known = true;

    out->len = 0;
    if (use == USE_PATH && text.len > 1 && memcmp(text.data, "~/", 2) == 0 &&
        variable_find(slice_of_text("HOME"), &home) == VARIABLE_FOUND) {
        import_add(out, home);
        text = slice_of(text.data + 1, text.len - 1);
    }
    while (text.len > 0) {
        size_t at = opening_len(text);
        size_t len = at > 0 ? translate_variable(out, text, at, use) : 0;

        known = known && (at == 0 || len > 0);
        if (len == 0) {
            add_plain(out, slice_of(text.data, 1), use);
            len = 1;
        }
        text = slice_of(text.data + len, text.len - len);
    }
    return known;
}

const char *import_remedy(struct slice text)
{
    static const struct {
        const char *word, *remedy;
    } placeholders[] = {
        {"${workspace", "the editor writes the folder there that is open: write its path"},
        {"${file", "the editor writes the path of the file there that is open: write its path"},
        {"${input:", "the editor asks for it: write the value"},
        {"${command:", "the editor runs a command for it: write the value"},
        {"${config:", "it is a setting of the editor: write the value"},
        {"{file:", "it is the content of a file: write the value"},
    };

    for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; i++) {
        if (strstr(text.data, placeholders[i].word) != NULL)
            return placeholders[i].remedy;
    }
    return NULL;
}

/* Notes that the text, which ends with a NUL, names something that is not known here; what becomes
 * of it; and what to do about it.
 * Notes what is not known here, and what becomes of it. */
static void import_note_placeholder(struct import_writer *writer, const char *key,
                                    struct slice text, const char *effect)
{
    const char *remedy = import_remedy(text);

    import_note(writer, key);
    import_add(&writer->notes, " holds ");
    json_output_string(&writer->notes, text);
    import_add(&writer->notes, effect);
    import_add(&writer->notes,
               remedy != NULL ? remedy : "write the value, or set the variable and import again");
    import_add(&writer->notes, "\n");
}

static void find_interpreter(struct import_program *program, const char *file,
                             const struct command_place *service, const struct command_place *here)
{
    char line[COMMAND_LINE_MAX];
    int error;
    const char *missing = command_missing_interpreter(file, service, line, &error);
    char *slash;

    if (missing == NULL || missing[0] == '/' ||
        command_find(missing, here, program->directory) != 0)
        program->directory[0] = '\0';
    slash = strrchr(program->directory, '/');
    if (slash != NULL)
        *slash = '\0';
}

/* A name that is in PATH, but not in COMMAND_SERVICE_PATH, becomes its path: services and programs
 * with windows do not have the PATH of a shell. Any other command stays as it is. */
static void import_program_find(struct import_program *program, struct slice command)
{
    const struct command_place service = {COMMAND_SERVICE_PATH, NULL};
    struct command_place here = {getenv("PATH"), NULL};
    char file[COMMAND_FILE_MAX];

    *program = (struct import_program){.is_moved = false};
    snprintf(program->command, sizeof program->command, "%.*s", (int)command.len, command.data);
    if (here.path == NULL)
        here.path = COMMAND_SERVICE_PATH;
    if (command_find(program->command, &service, file) != 0) {
        if (command_find(program->command, &here, file) != 0 || file[0] != '/')
            return;
        program->is_moved = true;
        memcpy(program->command, file, sizeof file);
    }
    find_interpreter(program, file, &service, &here);
}

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
    [SERVER_HAS_URL] = WITH_REMOTE ? NULL
                                   : "left out: it is reached by a URL, not started by a command\n",
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
    struct slice text = slice_of_text(writer->project);

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

/* With the key of a command or a URL. */
static void begin_pool(struct import_writer *writer, const char *key, const char *value)
{
    import_add(&writer->config, writer->servers++ > 0 ? ",\n" : "");
    import_add(&writer->config, "        {\n            \"id\": ");
    import_add_string(&writer->config, writer->pool);
    import_add(&writer->config, ",\n            ");
    import_add_string(&writer->config, key);
    import_add(&writer->config, ": ");
    import_add_string(&writer->config, value);
}

static void end_pool(struct import_writer *writer)
{
    import_add(&writer->config,
               ",\n            \"protocol\": \"mcp\",\n            \"instances\": " DECIMAL(
                   POOL_MODE_INSTANCES) "\n        }");
}

/* What scratch has is the value. */
static void add_field(struct import_writer *writer, struct slice name)
{
    import_add(&writer->config, writer->fields++ > 0 ? ", " : ",\n            \"headers\": {");
    json_output_string(&writer->config, name);
    import_add(&writer->config, ": ");
    json_output_string(&writer->config, slice_of(writer->scratch.to, writer->scratch.len));
}

static void note_field(struct import_writer *writer, struct slice name)
{
    import_note(writer, "write the field ");
    json_output_string(&writer->notes, name);
    import_add(&writer->notes, " into \"headers\"\n");
}

/* Fields that the daemon writes itself are no loss. */
static void add_headers(struct import_writer *writer, const struct json_value *headers)
{
    const struct json_value *field = NULL;

    if (headers != NULL && headers->type == JSON_OBJECT)
        field = headers->first;
    for (; field != NULL; field = field->next) {
        struct remote_headers checked = {.count = 0};

        if (headers_add_pair(&checked, field->key, "") != NULL)
            continue;
        if (client_server_is_text(field) && import_translate(writer, field->text, USE_VARIABLE))
            add_field(writer, field->key);
        else
            note_field(writer, field->key);
    }
}

/* A field with the value of a variable; one that is not set here would be an error. */
static void add_variable(struct import_writer *writer, struct slice name, const char *before,
                         const struct json_value *variable)
{
    const char *value;

    if (variable == NULL || variable->type != JSON_STRING)
        return;
    if (variable_find(variable->text, &value) != VARIABLE_FOUND) {
        note_field(writer, name);
        return;
    }
    writer->scratch.len = 0;
    import_add(&writer->scratch, before);
    import_add(&writer->scratch, "${");
    json_output_add(&writer->scratch, variable->text);
    import_add(&writer->scratch, "}");
    add_field(writer, name);
}

/* Codex has three keys of its own for them. */
static void add_all_headers(struct import_writer *writer, const struct json_value *server)
{
    const struct json_value *variables = document_member(server, "env_http_headers"), *each = NULL;

    writer->fields = 0;
    add_headers(writer, document_member(server, "headers"));
    add_headers(writer, document_member(server, "http_headers"));
    if (variables != NULL && variables->type == JSON_OBJECT)
        each = variables->first;
    for (; each != NULL; each = each->next)
        add_variable(writer, each->key, "", each);
    add_variable(writer, slice_of_text("Authorization"), "Bearer ",
                 document_member(server, "bearer_token_env_var"));
    import_add(&writer->config, writer->fields > 0 ? "}" : "");
}

static void add_url(struct import_writer *writer, const struct client_server *server)
{
    char text[URL_PATH_MAX + URL_HOST_MAX + 32] = "";
    struct remote_url url;
    const char *problem;

    if (client_server_is_text(server->url) &&
        import_translate(writer, server->url->text, USE_VALUE))
        snprintf(text, sizeof text, "%.*s", (int)writer->scratch.len, writer->scratch.to);
    problem = url_read(&url, text);
    if (problem != NULL) {
        import_note(writer, "left out: its URL: ");
        import_add(&writer->notes, problem);
        import_add(&writer->notes, "\n");
        return;
    }
    begin_pool(writer, "url", text);
    add_all_headers(writer, server->value);
    end_pool(writer);
    import_note(writer, "in place of its URL and its headers write\n");
    add_words(writer, "\"--connect\", \"~/bus.sock\", \"--pool\", ", server);
    import_add_string(&writer->notes, writer->pool);
    import_add(&writer->notes, "]\n");
}

static void add_keys(struct import_writer *writer, const struct client_server *server)
{
    struct import_program program;

    /* The command is in scratch. */
    import_program_find(&program, slice_of(writer->scratch.to, writer->scratch.len));
    begin_pool(writer, "command", program.command);
    add_args(writer, server->first_arg);
    add_env(writer, server->env, &program);
    add_cwd(writer, server->cwd);
    if (document_member(server->value, "envFile") != NULL)
        import_note(writer, "envFile is left out: write its variables into \"env\"\n");
    end_pool(writer);
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
    else if (server->kind == SERVER_HAS_URL)
        add_url(writer, server);
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

static void report(void *user_data, bool is_error, const char *text)
{
    (void)user_data;
    (void)is_error;
    terminal_line(stderr, "stdio_bus: %s", text);
}

static int read_servers(struct import *import, const struct json_value *root, bool is_toml,
                        struct diagnostics *diagnostics)
{
    int code = import_read(import, root, is_toml);

    if (code == STDIO_BUS_EINVAL)
        diagnostics_file(diagnostics, is_toml ? "there is no table [mcp_servers.NAME] in it"
                                              : "there is no object \"mcpServers\", \"servers\", "
                                                "\"mcp\" or \"context_servers\" in it");
    else if (code != STDIO_BUS_OK)
        diagnostics_file(diagnostics, "out of memory");
    else if (import->servers == 0)
        diagnostics_file(diagnostics, "there is no server to share");
    return diagnostics->errors == 0 ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}

int import_file(struct import *import, const char *path)
{
    struct diagnostics diagnostics = {.name = path, .report = report};
    struct document_error error;
    struct client_file file;
    int code = client_file_read(&file, path, &diagnostics, &error);

    *import = (struct import){.config = NULL};
    if (code == STDIO_BUS_OK)
        code = read_servers(import, file.root, file.is_toml, &diagnostics);
    else if (code == STDIO_BUS_EINVAL)
        diagnostics_syntax(&diagnostics, &error);
    client_file_free(&file);
    return code == STDIO_BUS_OK ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}
