#include "build_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/client.h"
#include "cli/import.h"
#include "config/command.h"
#include "config/environment.h"
#include "doctor/examinations.h"

#define WHAT_MAX 1024
#define SHELL false /* it has the variables of the user's shell, or asks the shell for them */
#define WINDOW true

/* The file of a client. Those of both systems are looked at: none is on the other one. */
static const struct known_file {
    const char *path;
    bool has_window;
} known_files[] = {
    {"~/.claude.json", SHELL},
    {".mcp.json", SHELL},
    {"~/Library/Application Support/Claude/claude_desktop_config.json", WINDOW},
    {"~/.config/Claude/claude_desktop_config.json", WINDOW},
    {"~/.cursor/mcp.json", WINDOW},
    {".cursor/mcp.json", WINDOW},
    {"~/.codeium/windsurf/mcp_config.json", WINDOW},
    {"~/Library/Application Support/Code/User/mcp.json", SHELL},
    {"~/Library/Application Support/Code/User/settings.json", SHELL},
    {"~/.config/Code/User/mcp.json", SHELL},
    {"~/.config/Code/User/settings.json", SHELL},
    {".vscode/mcp.json", SHELL},
    {"~/.config/zed/settings.json", SHELL},
    {"~/.codex/config.toml", SHELL},
    {"~/.config/opencode/opencode.json", SHELL},
    {"~/.config/opencode/opencode.jsonc", SHELL},
    {"~/.gemini/settings.json", SHELL},
};

struct reading {
    struct doctor *doctor;
    const struct known_file *file;
    const char *path;
    size_t servers, shared;
    bool has_secret;
    char what[WHAT_MAX]; /* the file and the server */
};

static struct slice text_of(const struct json_value *value)
{
    return client_server_is_text(value) ? value->text : slice_of("", 0);
}

/* --- secrets --- */

static bool holds(const char *text, const char *word)
{
    for (; *text != '\0'; text++) {
        if (strncasecmp(text, word, strlen(word)) == 0)
            return true;
    }
    return false;
}

/* Values that stand in the file, not in a variable that it names. */
static bool has_secret(const struct json_value *values, bool whatever)
{
    static const char *const words[] = {"key", "token", "secret", "passw", "credential"};
    const struct json_value *value;

    if (values == NULL || values->type != JSON_OBJECT)
        return false;
    for (value = values->first; value != NULL; value = value->next) {
        bool names_one = whatever;

        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            names_one = names_one || holds(value->key.data, words[i]);
        if (names_one && text_of(value).len > 0 && strchr(value->text.data, '{') == NULL)
            return true;
    }
    return false;
}

/* Whether other users can read the file: its mode, and those of the directories above it. */
static bool is_public(const char *path, mode_t mode)
{
    char above[COMMAND_FILE_MAX];
    struct stat status;
    bool open = (mode & S_IROTH) != 0;

    size_t len = 0;

    if (path[0] != '/' && getcwd(above, sizeof above - 1) == NULL)
        return open;
    if (path[0] != '/') {
        len = strlen(above);
        above[len++] = '/';
    }
    snprintf(above + len, sizeof above - len, "%s", path);
    for (char *slash = strrchr(above, '/'); open && slash != NULL && slash > above;
         slash = strrchr(above, '/')) {
        *slash = '\0';
        open = stat(above, &status) != 0 || (status.st_mode & S_IXOTH) != 0;
    }
    return open;
}

/* --- a server --- */

/* What was left as a manual had it, or names a variable that is not set. The text itself may be a
 * secret. */
static bool look_at_text(struct reading *reading, const struct json_value *value, const char *key)
{
    static const char *const templates[] = {"/path/to/", "YOUR_", "<your", "your-", "INSERT_"};
    char room[COMMAND_FILE_MAX];
    struct import_writer writer = {.scratch = {.to = room, .size = sizeof room}};
    struct slice text = text_of(value);

    for (size_t i = 0; i < sizeof templates / sizeof templates[0]; i++) {
        if (strstr(text.data, templates[i]) == NULL)
            continue;
        doctor_cure(reading->doctor, "write the value in its place");
        doctor_find(reading->doctor, DOCTOR_WARNING, "%s: %s still holds the placeholder %s...",
                    reading->what, key, templates[i]);
        return false;
    }
    if (import_translate(&writer, text, USE_VALUE) || import_remedy(text) != NULL)
        return true;
    doctor_cure(reading->doctor, "set it before the client is started, or write the value");
    doctor_find(reading->doctor, DOCTOR_WARNING, "%s: %s names a variable that is not set here",
                reading->what, key);
    return false;
}

static void look_at_texts(struct reading *reading, const struct client_server *server)
{
    const struct json_value *value = server->first_arg;
    char key[256];

    for (; value != NULL; value = value->next)
        (void)look_at_text(reading, value, "\"args\"");
    value = server->env != NULL && server->env->type == JSON_OBJECT ? server->env->first : NULL;
    for (; value != NULL; value = value->next) {
        snprintf(key, sizeof key, "%s of \"env\"", value->key.data);
        (void)look_at_text(reading, value, key);
    }
}

static const char *member_text(const struct json_value *object, const char *key)
{
    const struct json_value *value = document_member(object, key);

    return value != NULL && text_of(value).len > 0 ? value->text.data : NULL;
}

/* Placeholders, which the client fills in, were looked at. */
static void look_at_command(struct reading *reading, const struct client_server *server,
                            const struct json_value *command)
{
    const char *name = command->text.data;
    struct command_place place = {member_text(server->env, "PATH"), text_of(server->cwd).data};

    if (place.cwd[0] == '\0')
        place.cwd = server->project;
    if (place.cwd[0] == '\0')
        place.cwd = NULL;
    if (strpbrk(name, "${") != NULL)
        return;
    if (strchr(name, '/') != NULL && name[0] != '/' && name[0] != '~' && place.cwd == NULL) {
        doctor_cure(reading->doctor, "write the whole path, or the directory into \"cwd\"");
        doctor_find(reading->doctor, DOCTOR_WARNING,
                    "%s: the command %.*s is another one in each directory", reading->what,
                    (int)strcspn(name, " \t"), name); /* arguments may follow */
        return;
    }
    doctor_command(reading->doctor, reading->what, name, reading->file->has_window, &place);
}

/* The command that stdio_bus is to share. */
static const struct json_value *shared_command(const struct client_server *server)
{
    const struct json_value *arg = server->first_arg;

    while (arg != NULL && !slice_is(text_of(arg), "--"))
        arg = arg->next;
    return arg != NULL && text_of(arg->next).len > 0 ? arg->next : NULL;
}

static void look_at_started(struct reading *reading, const struct client_server *server)
{
    const struct json_value *shared = NULL;

    reading->servers++;
    if (server->kind == SERVER_IS_STDIO_BUS) {
        reading->shared++;
        shared = shared_command(server);
    }
    if (look_at_text(reading, server->command, "\"command\""))
        look_at_command(reading, server, server->command);
    if (shared != NULL)
        look_at_command(reading, server, shared);
    look_at_texts(reading, server);
}

static void look_at_server(void *user_data, const struct client_server *server)
{
    struct reading *reading = user_data;

    snprintf(reading->what, sizeof reading->what, "%s: \"%s\"%s%s", reading->path,
             server->value->key.data, server->project[0] != '\0' ? " of " : "", server->project);
    if (server->project[0] != '\0' && access(server->project, X_OK) != 0)
        return; /* nothing is started there any more */
    reading->has_secret = reading->has_secret || has_secret(server->env, false);
    if (server->kind == SERVER_HAS_URL)
        reading->has_secret = reading->has_secret ||
                              has_secret(document_member(server->value, "headers"), true);
    if (server->kind == SERVER_IS_STARTED || server->kind == SERVER_IS_STDIO_BUS)
        look_at_started(reading, server);
    if (server->kind != SERVER_IS_NO_OBJECT && server->kind != SERVER_HAS_NO_COMMAND)
        return;
    doctor_cure(reading->doctor, "write its \"command\" or \"url\", or take it out");
    doctor_find(reading->doctor, DOCTOR_WARNING, "%s has no command", reading->what);
}

/* --- a file --- */

static void report(void *user_data, bool is_error, const char *text)
{
    struct doctor *doctor = user_data;

    (void)is_error;
    doctor_cure(doctor, "let this user read it");
    doctor_find(doctor, DOCTOR_ERROR, "%s", text);
}

/* Without what was found in place of what was expected: that may be a secret. */
static void report_syntax(struct doctor *doctor, const char *path,
                          const struct document_error *error)
{
    const char *found = strstr(error->text, ", found ");
    int len = found != NULL ? (int)(found - error->text) : (int)strlen(error->text);

    doctor_cure(doctor, "mend the line: its client may ignore the whole file");
    doctor_find(doctor, DOCTOR_ERROR, "%s:%zu:%zu: %.*s", path, error->at.line, error->at.column,
                len, error->text);
}

static void look_at_servers(struct reading *reading, const struct json_value *root, mode_t mode)
{
    (void)client_servers_each(root, look_at_server, reading);
    if (reading->has_secret && is_public(reading->path, mode)) {
        doctor_cure(reading->doctor, "chmod 600 '%s'", reading->path);
        doctor_find(reading->doctor, DOCTOR_WARNING, "%s holds secrets, and every user can read it",
                    reading->path);
    }
    doctor_find(reading->doctor, DOCTOR_OK, "%s: %zu server%s with a command, %zu by stdio_bus",
                reading->path, reading->servers, reading->servers == 1 ? "" : "s", reading->shared);
}

static void look_at_file(struct doctor *doctor, const struct known_file *known, const char *path,
                         mode_t mode)
{
    struct diagnostics diagnostics = {.name = path, .report = report, .user_data = doctor};
    struct reading reading = {.doctor = doctor, .file = known, .path = path};
    struct document_error error;
    struct client_file file;
    int code = client_file_read(&file, path, &diagnostics, &error);

    if (code == STDIO_BUS_OK)
        look_at_servers(&reading, file.root, mode);
    else if (code == STDIO_BUS_EINVAL)
        report_syntax(doctor, path, &error);
    client_file_free(&file);
}

void doctor_clients(struct doctor *doctor)
{
    char path[COMMAND_FILE_MAX], problem[VARIABLE_PROBLEM_MAX];
    struct stat status;
    size_t found = 0;

    for (size_t i = 0; i < sizeof known_files / sizeof known_files[0]; i++) {
        int len = variable_expand_path(path, sizeof path, known_files[i].path, problem);

        if (len < 0 || (size_t)len >= sizeof path)
            continue;
        if (stat(path, &status) != 0) {
            doctor_cannot_look(doctor, path);
            continue;
        }
        found++;
        if (S_ISREG(status.st_mode)) {
            look_at_file(doctor, &known_files[i], path, status.st_mode);
        } else {
            doctor_cure(doctor, "take it away: its client expects a file there");
            doctor_find(doctor, DOCTOR_ERROR, "%s is no file", path);
        }
    }
    if (found == 0)
        doctor_find(doctor, DOCTOR_OK, "no configuration of a known client is there");
}
