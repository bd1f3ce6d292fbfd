#include "build_config.h"

#include "cli/import.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/terminal.h"
#include "config/command_line.h"
#include "config/file.h"
#include "config/variable.h"
#include "json/comments.h"
#include "json/string.h"

#define FIRST_ROOM 65536
#define POOL_ID_MAX 256 /* bytes, as in a configuration */

/* What is written; once more with more room if one of them is full. */
struct writer {
    struct json_output config, notes, scratch;
    size_t servers;
    const char *name; /* of the server being read */
};

static void add(struct json_output *out, const char *text)
{
    json_output_add(out, slice_of(text, strlen(text)));
}

static void add_string(struct json_output *out, const char *text)
{
    json_output_string(out, slice_of(text, strlen(text)));
}

/* Begins a note about the server: the name, and the text. */
static void note(struct writer *writer, const char *text)
{
    add_string(&writer->notes, writer->name);
    add(&writer->notes, ": ");
    add(&writer->notes, text);
}

/* --- variables in values --- */

enum use {
    USE_VALUE,   /* a variable becomes its value */
    USE_PATH,    /* likewise, and ~/ at the beginning is the home directory */
    USE_VARIABLE /* a variable becomes ${NAME}, for the daemon to replace */
};

/* The name of the variable that `name`, of "${name}", stands for. Clients have ${NAME}, ${env:NAME}
 * and, VS Code, ${userHome}. */
static struct slice variable_of(struct slice name)
{
    if (name.len > 4 && memcmp(name.data, "env:", 4) == 0)
        return slice_of(name.data + 4, name.len - 4);
    if (slice_equal(name, slice_of("userHome", 8)))
        return slice_of("HOME", 4);
    return name;
}

/* Appends what "${NAME}" at the beginning of `text` stands for. Returns its length, or 0 if it
 * stands for nothing that is known here. */
static size_t translate_variable(struct json_output *out, struct slice text, enum use use)
{
    const char *end = memchr(text.data, '}', text.len), *value;
    struct slice name;

    if (end == NULL)
        return 0;
    name = variable_of(slice_of(text.data + 2, (size_t)(end - text.data) - 2));
    if (variable_find(name, &value) != VARIABLE_FOUND)
        return 0;
    if (use == USE_VARIABLE) {
        add(out, "${");
        json_output_add(out, name);
        add(out, "}");
    } else {
        add(out, value);
    }
    return (size_t)(end - text.data) + 1;
}

/* Translates the text into writer->scratch. Returns false if it names something that is not known
 * here; that stays as it is. */
static bool translate(struct writer *writer, struct slice text, enum use use)
{
    struct json_output *out = &writer->scratch;
    const char *home;
    bool known = true;

    out->len = 0;
    if (use == USE_PATH && text.len > 1 && memcmp(text.data, "~/", 2) == 0 &&
        variable_find(slice_of("HOME", 4), &home) == VARIABLE_FOUND) {
        add(out, home);
        text = slice_of(text.data + 1, text.len - 1);
    }
    while (text.len > 0) {
        bool names_one = text.len > 1 && memcmp(text.data, "${", 2) == 0;
        size_t len = names_one ? translate_variable(out, text, use) : 0;

        known = known && (!names_one || len > 0);
        if (len == 0) {
            json_output_add(out, slice_of(text.data, 1));
            if (text.data[0] == '$' && use == USE_VARIABLE) /* "$$" stands for a "$" */
                add(out, "$");
            len = 1;
        }
        text = slice_of(text.data + len, text.len - len);
    }
    return known;
}

/* --- the keys of a server --- */

static bool is_text(const struct json_value *value)
{
    return value != NULL && (value->type == JSON_NUMBER || value->type == JSON_STRING) &&
           memchr(value->text.data, '\0', value->text.len) == NULL;
}

/* A value of "command", "args" or "cwd". */
static void add_value(struct writer *writer, const char *key, const struct json_value *value)
{
    enum use use = strcmp(key, "args") == 0 ? USE_VALUE : USE_PATH;

    if (!translate(writer, value->text, use)) {
        note(writer, key);
        add(&writer->notes, " holds ");
        json_output_string(&writer->notes, value->text);
        add(&writer->notes, ", which stays as it is: write its value in its place\n");
    }
    json_output_string(&writer->config, slice_of(writer->scratch.to, writer->scratch.len));
}

static void leave_out_arg(struct writer *writer)
{
    note(writer, "an argument is no text, and empty in the configuration\n");
    add(&writer->config, "\"\"");
}

static void add_args(struct writer *writer, const struct json_value *args)
{
    const struct json_value *arg = args != NULL && args->type == JSON_ARRAY ? args->first : NULL;
    const char *before = ",\n            \"args\": [";

    for (; arg != NULL; arg = arg->next) {
        add(&writer->config, before);
        if (is_text(arg))
            add_value(writer, "args", arg);
        else
            leave_out_arg(writer);
        before = ", ";
    }
    if (before[1] == ' ')
        add(&writer->config, "]");
}

/* A value that is asked for, or not known here, is left out: the worker inherits the variable. */
static void add_env(struct writer *writer, const struct json_value *env)
{
    const struct json_value *value = env != NULL && env->type == JSON_OBJECT ? env->first : NULL;
    const char *before = ",\n            \"env\": {";

    for (; value != NULL; value = value->next) {
        if (!is_text(value) || !translate(writer, value->text, USE_VARIABLE)) {
            note(writer, "set ");
            json_output_string(&writer->notes, value->key);
            add(&writer->notes, " in \"env\" or in the environment of the daemon\n");
            continue;
        }
        add(&writer->config, before);
        json_output_string(&writer->config, value->key);
        add(&writer->config, ": ");
        json_output_string(&writer->config, slice_of(writer->scratch.to, writer->scratch.len));
        before = ", ";
    }
    if (before[1] == ' ')
        add(&writer->config, "}");
}

/* --- a server --- */

/* Why the server is left out; NULL: it is not. */
static const char *left_out(const struct json_value *server, const struct json_value *command)
{
    static const char *const urls[] = {"url", "serverUrl", "httpUrl", "uri"};
    const struct json_value *disabled, *enabled;

    if (server->type != JSON_OBJECT)
        return "left out: it is no object\n";
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        if (document_member(server, urls[i]) != NULL)
            return "left out: it is reached by a URL, not started by a command\n";
    }
    disabled = document_member(server, "disabled");
    enabled = document_member(server, "enabled");
    if ((disabled != NULL && disabled->boolean) ||
        (enabled != NULL && enabled->type == JSON_BOOLEAN && !enabled->boolean))
        return "left out: it is disabled\n";
    if (!is_text(command) || command->text.len == 0)
        return "left out: it has no command\n";
    if (server->key.len == 0 || server->key.len > POOL_ID_MAX ||
        memchr(server->key.data, '\0', server->key.len) != NULL)
        return "left out: its name must have 1 to 256 bytes\n";
    return NULL;
}

/* What to write into the client. */
static void add_advice(struct writer *writer, const struct json_value *command,
                       const struct json_value *args)
{
    const struct json_value *arg = args != NULL && args->type == JSON_ARRAY ? args->first : NULL;

    note(writer, "in place of its command and its arguments write\n    \"command\": \"stdio_bus\", "
                 "\"args\": [\"--connect\", \"~/bus.sock\", \"--pool\", ");
    add_string(&writer->notes, writer->name);
    add(&writer->notes, "]\nor, without this configuration,\n    \"command\": \"stdio_bus\", "
                        "\"args\": [\"--share\", \"--\", ");
    json_output_string(&writer->notes, command->text);
    for (; arg != NULL; arg = arg->next) {
        add(&writer->notes, ", ");
        json_output_string(&writer->notes, arg->text);
    }
    add(&writer->notes, "]\n");
}

/* Zed has had the command and what belongs to it in an object of its own. */
static void add_server(struct writer *writer, const struct json_value *server)
{
    const struct json_value *own = server, *command = document_member(server, "command"), *cwd;
    const char *reason;

    writer->name = server->key.data;
    if (command != NULL && command->type == JSON_OBJECT) {
        own = command;
        command = document_member(own, "path");
    }
    reason = left_out(server, command);
    if (reason != NULL) {
        note(writer, reason);
        return;
    }
    add(&writer->config, writer->servers++ > 0 ? ",\n" : "");
    add(&writer->config, "        {\n            \"id\": ");
    json_output_string(&writer->config, server->key);
    add(&writer->config, ",\n            \"command\": ");
    add_value(writer, "command", command);
    add_args(writer, document_member(own, "args"));
    add_env(writer, document_member(own, "env"));
    cwd = document_member(own, "cwd");
    if (is_text(cwd) && cwd->text.len > 0) {
        add(&writer->config, ",\n            \"cwd\": ");
        add_value(writer, "cwd", cwd);
    }
    if (document_member(own, "envFile") != NULL)
        note(writer, "envFile is left out: write its variables into \"env\"\n");
    add(&writer->config,
        ",\n            \"protocol\": \"mcp\",\n            \"instances\": " COMMAND_LINE_INSTANCES
        "\n        }");
    add_advice(writer, command, document_member(own, "args"));
}

/* --- the file --- */

static const struct json_value *member_object(const struct json_value *object, const char *key)
{
    const struct json_value *member = NULL;

    if (object != NULL && object->type == JSON_OBJECT)
        member = document_member(object, key);
    return member != NULL && member->type == JSON_OBJECT ? member : NULL;
}

/* NULL: there are none. */
static const struct json_value *servers_of(const struct json_value *root)
{
    static const char *const keys[] = {"mcpServers", "servers", "context_servers"};
    const struct json_value *servers = NULL;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && servers == NULL; i++)
        servers = member_object(root, keys[i]);
    return servers != NULL ? servers : member_object(member_object(root, "mcp"), "servers");
}

static void write_all(struct writer *writer, const struct json_value *servers)
{
    const struct json_value *server;

    add(&writer->config, "{\n    \"pools\": [\n");
    for (server = servers->first; server != NULL; server = server->next)
        add_server(writer, server);
    add(&writer->config, "\n    ]\n}\n");
    if (writer->servers > 0)
        add(&writer->notes, "Write the configuration to a file, and start the daemon with it at "
                            "each login:\n    stdio_bus --config FILE --unix ~/bus.sock\n");
    json_output_add(&writer->config, slice_of("", 1));
    json_output_add(&writer->notes, slice_of("", 1));
}

/* False: memory is out. */
static bool make_room(struct import *import, struct writer *writer, char **scratch, size_t size)
{
    char *config = realloc(import->config, size), *notes = realloc(import->notes, size);
    char *more = realloc(*scratch, size);

    import->config = config != NULL ? config : import->config;
    import->notes = notes != NULL ? notes : import->notes;
    *scratch = more != NULL ? more : *scratch;
    *writer = (struct writer){.config = {.to = config, .size = size},
                              .notes = {.to = notes, .size = size},
                              .scratch = {.to = more, .size = size}};
    return config != NULL && notes != NULL && more != NULL;
}

int import_read(struct import *import, const struct json_value *root)
{
    const struct json_value *servers = servers_of(root);
    struct writer writer = {.servers = 0};
    char *scratch = NULL;
    size_t size = FIRST_ROOM;
    bool has_room;

    *import = (struct import){.config = NULL};
    if (servers == NULL)
        return STDIO_BUS_EINVAL;
    do {
        has_room = make_room(import, &writer, &scratch, size);
        if (has_room)
            write_all(&writer, servers);
        size *= 2;
    } while (has_room && (writer.config.full || writer.notes.full || writer.scratch.full));
    free(scratch);
    import->servers = writer.servers;
    return has_room ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

void import_free(struct import *import)
{
    free(import->config);
    free(import->notes);
    *import = (struct import){.config = NULL};
}

/* --- the command line --- */

static void report(void *user_data, bool is_error, const char *text)
{
    (void)user_data;
    (void)is_error;
    terminal_line(stderr, "stdio_bus: %s", text);
}

static int read_document(struct import *import, struct slice text, struct diagnostics *diagnostics)
{
    struct document document;
    struct document_error error;
    int code = document_read(&document, text, &error);

    if (code == STDIO_BUS_EINVAL) {
        diagnostics_syntax(diagnostics, &error);
        return code;
    }
    if (code == STDIO_BUS_OK)
        code = import_read(import, document.root);
    if (code == STDIO_BUS_EINVAL)
        diagnostics_file(diagnostics, "there is no object \"mcpServers\", \"servers\" or "
                                      "\"context_servers\" in it");
    else if (code != STDIO_BUS_OK)
        diagnostics_file(diagnostics, "out of memory");
    else if (import->servers == 0)
        diagnostics_file(diagnostics, "there is no server to share");
    document_free(&document);
    return diagnostics->errors == 0 ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}

int import_file(struct import *import, const char *path)
{
    struct diagnostics diagnostics = {.name = path, .report = report};
    char *text = NULL;
    size_t len = 0;
    int code = STDIO_BUS_EINVAL;

    *import = (struct import){.config = NULL};
    if (file_read(&text, &len, path, &diagnostics)) {
        comments_blank(text, len);
        code = read_document(import, slice_of(text, len), &diagnostics);
    }
    free(text);
    return code;
}
