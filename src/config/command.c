#include "build_config.h"

#include "config/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "config/environment.h"

#define STANDARD_MAX 256 /* the system's default of PATH */

/* --- the file --- */

/* 0 or an errno; `path` is written to `at` as the daemon sees it. */
static int check_file(const char *path, const struct command_place *place,
                      char at[COMMAND_FILE_MAX])
{
    bool moved = place->cwd != NULL && path[0] != '/';
    struct stat status;

    if (snprintf(at, COMMAND_FILE_MAX, "%s%s%s", moved ? place->cwd : "", moved ? "/" : "", path) >=
        COMMAND_FILE_MAX)
        return ENAMETOOLONG;
    if (stat(at, &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    if (!S_ISREG(status.st_mode))
        return EACCES;
    return access(at, X_OK) == 0 ? 0 : errno;
}

/* The search at the start of a process (process/process.c) continues after a file that may not be
 * executed, and at the end reports EACCES, not ENOENT. */
static int check_in_path(const char *path, const char *name, const struct command_place *place,
                         char at[COMMAND_FILE_MAX])
{
    char candidate[COMMAND_FILE_MAX];
    int result = ENOENT;

    for (;;) {
        size_t len = strcspn(path, ":"); /* empty: the working directory */
        int n = snprintf(candidate, sizeof candidate, "%.*s%s%s", (int)len, path,
                         len > 0 ? "/" : "", name);

        if (n > 0 && (size_t)n < sizeof candidate) {
            int error = check_file(candidate, place, at);

            if (error == 0)
                return 0;
            if (error == EACCES || error == EISDIR)
                result = EACCES;
            else if (result == ENOENT && error != ENOTDIR)
                result = error;
        }
        if (path[len] == '\0')
            return result;
        path += len + 1;
    }
}

/* The directories in which that search looks. */
static const char *search_path(char *const *envp, char standard[STANDARD_MAX])
{
    const char *path = environment_get(envp, "PATH");
    size_t len;

    if (path != NULL)
        return path;
    len = confstr(_CS_PATH, standard, STANDARD_MAX);
    return len > 0 && len <= STANDARD_MAX ? standard : "/bin:/usr/bin";
}

int command_find(const char *command, const struct command_place *place, char at[COMMAND_FILE_MAX])
{
    if (strchr(command, '/') != NULL)
        return check_file(command, place, at);
    return check_in_path(place->path, command, place, at);
}

/* --- the interpreter of a script --- */

/* Reads the first line of a script after its "#!". False: it is no script, or the line cannot be
 * read; exec decides then. */
static bool read_first_line(const char *path, char line[COMMAND_LINE_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, line, COMMAND_LINE_MAX - 1);
    close(fd);
    if (n < 2 || line[0] != '#' || line[1] != '!')
        return false;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    memmove(line, line + 2, strlen(line + 2) + 1);
    return true;
}

/* Cuts the first word off the line; "" at its end. */
static char *take_word(char **line)
{
    char *word = *line + strspn(*line, " \t");
    size_t len = strcspn(word, " \t");

    *line = word + len + (word[len] != '\0');
    word[len] = '\0';
    return word;
}

const char *command_missing_interpreter(const char *script, const struct command_place *place,
                                        char line[COMMAND_LINE_MAX], int *error)
{
    char at[COMMAND_FILE_MAX], *rest = line;
    const char *program, *name;

    if (!read_first_line(script, line))
        return NULL;
    program = take_word(&rest);
    if (program[0] == '\0')
        return NULL;
    *error = check_file(program, place, at);
    if (*error != 0)
        return program;
    name = strrchr(program, '/');
    if (name == NULL || strcmp(name, "/env") != 0)
        return NULL;
    program = take_word(&rest);
    if (strcmp(program, "-S") == 0)
        program = take_word(&rest);
    if (program[0] == '\0' || program[0] == '-' || strchr(program, '=') != NULL)
        return NULL;
    *error = command_find(program, place, at);
    return *error != 0 ? program : NULL;
}

/* --- the check --- */

/* What a shell would have done with the command. */
static const char *advice(const char *command)
{
    if (command[0] == '~')
        return "; no shell replaces the ~: write the whole path";
    if (strpbrk(command, " \t") != NULL)
        return "; no shell splits it: write the arguments into \"args\"";
    return "";
}

/* Programs with windows start others with a shorter PATH than that of a shell. */
static void report_missing(struct diagnostics *diagnostics, const struct json_value *command,
                           const struct command_place *place, int error)
{
    const char *text = command->text.data, *more = advice(text);
    char shown[256], shown_path[512];

    log_escape(shown, sizeof shown, command->text);
    if (strchr(text, '/') != NULL) {
        diagnostics_value(diagnostics, command, "cannot run \"%s\": %s%s", shown, strerror(error),
                          more);
        return;
    }
    log_escape(shown_path, sizeof shown_path, slice_of_text(place->path));
    if (more[0] != '\0')
        diagnostics_value(diagnostics, command, "cannot run \"%s\", looked up in PATH: %s%s", shown,
                          strerror(error), more);
    else
        diagnostics_value(diagnostics, command,
                          "cannot run \"%s\", looked up in PATH: %s; if \"command -v %s\" in a "
                          "terminal prints a path, write that; PATH is \"%s\"",
                          shown, strerror(error), shown, shown_path);
}

static void check_in_place(struct diagnostics *diagnostics, const struct json_value *command,
                           const struct command_place *place)
{
    const char *missing;
    char at[COMMAND_FILE_MAX], line[COMMAND_LINE_MAX], shown[512], shown_name[128];
    int error = command_find(command->text.data, place, at);

    if (error != 0) {
        report_missing(diagnostics, command, place, error);
        return;
    }
    missing = command_missing_interpreter(at, place, line, &error);
    if (missing != NULL)
        diagnostics_warn(diagnostics, command,
                         "\"%s\" is a script for \"%s\", which is not there: install it, or set "
                         "PATH in \"env\"",
                         log_escape(shown, sizeof shown, command->text),
                         log_escape(shown_name, sizeof shown_name, slice_of_text(missing)));
}

void command_check(struct diagnostics *diagnostics, const struct json_value *pool)
{
    const struct json_value *command = document_member(pool, "command");
    const struct json_value *cwd = document_member(pool, "cwd");
    char **envp = environment_build(pool), standard[STANDARD_MAX];

    if (envp == NULL)
        diagnostics_value(diagnostics, command, "out of memory");
    else
        check_in_place(diagnostics, command,
                       &(struct command_place){search_path(envp, standard),
                                               cwd != NULL ? cwd->text.data : NULL});
    free(envp);
}
