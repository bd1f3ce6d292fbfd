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

#define CANDIDATE_MAX 4096
#define FIRST_LINE_MAX 256 /* as much of it as Linux reads */
#define STANDARD_MAX 256   /* the system's default of PATH */

/* Where the workers run. */
struct place {
    char **envp;
    const char *cwd; /* NULL: the daemon's */
};

/* --- the file --- */

/* 0 or an errno; `path` is written to `at` as the daemon sees it. */
static int check_file(const char *path, const struct place *place, char at[CANDIDATE_MAX])
{
    bool moved = place->cwd != NULL && path[0] != '/';
    struct stat status;

    if (snprintf(at, CANDIDATE_MAX, "%s%s%s", moved ? place->cwd : "", moved ? "/" : "", path) >=
        CANDIDATE_MAX)
        return ENAMETOOLONG;
    if (stat(at, &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    if (!S_ISREG(status.st_mode))
        return EACCES;
    return access(at, X_OK) == 0 ? 0 : errno;
}

/* execvp goes on after a file that it may not execute, and at the end reports EACCES, not ENOENT.
 * */
static int check_in_path(const char *path, const char *name, const struct place *place,
                         char at[CANDIDATE_MAX])
{
    char candidate[CANDIDATE_MAX];
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

/* The directories in which execvp looks. */
static const char *search_path(const struct place *place, char standard[STANDARD_MAX])
{
    const char *path = environment_get(place->envp, "PATH");
    size_t len;

    if (path != NULL)
        return path;
    len = confstr(_CS_PATH, standard, STANDARD_MAX);
    return len > 0 && len <= STANDARD_MAX ? standard : "/bin:/usr/bin";
}

/* 0 with the file in `at`, or the errno of the reason why there is none. */
static int find(const char *command, const struct place *place, char at[CANDIDATE_MAX])
{
    char standard[STANDARD_MAX];

    if (strchr(command, '/') != NULL)
        return check_file(command, place, at);
    return check_in_path(search_path(place, standard), command, place, at);
}

/* --- the interpreter of a script --- */

/* Reads the first line of a script after its "#!". False: it is no script, or the line cannot be
 * read; exec decides then. */
static bool read_first_line(const char *path, char line[FIRST_LINE_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, line, FIRST_LINE_MAX - 1);
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

/* The program in the first line of the script that is missing, also if env(1) is to find it; NULL:
 * none is. It points into `line`. */
static const char *missing_interpreter(const char *script, const struct place *place,
                                       char line[FIRST_LINE_MAX])
{
    char at[CANDIDATE_MAX], *rest = line;
    const char *program, *name;

    if (!read_first_line(script, line))
        return NULL;
    program = take_word(&rest);
    if (program[0] == '\0')
        return NULL;
    if (check_file(program, place, at) != 0)
        return program;
    name = strrchr(program, '/');
    if (name == NULL || strcmp(name, "/env") != 0)
        return NULL;
    program = take_word(&rest);
    if (strcmp(program, "-S") == 0)
        program = take_word(&rest);
    if (program[0] == '\0' || program[0] == '-' || strchr(program, '=') != NULL)
        return NULL;
    return find(program, place, at) != 0 ? program : NULL;
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
                           const struct place *place, int error)
{
    const char *text = command->text.data, *path, *more = advice(text);
    char standard[STANDARD_MAX], shown[256], shown_path[512];

    log_escape(shown, sizeof shown, command->text);
    if (strchr(text, '/') != NULL) {
        diagnostics_value(diagnostics, command, "cannot run \"%s\": %s%s", shown, strerror(error),
                          more);
        return;
    }
    path = search_path(place, standard);
    log_escape(shown_path, sizeof shown_path, slice_of(path, strlen(path)));
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
                           const struct place *place)
{
    const char *missing;
    char at[CANDIDATE_MAX], line[FIRST_LINE_MAX], shown[512], shown_name[128];
    int error = find(command->text.data, place, at);

    if (error != 0) {
        report_missing(diagnostics, command, place, error);
        return;
    }
    missing = missing_interpreter(at, place, line);
    if (missing != NULL)
        diagnostics_warn(diagnostics, command,
                         "\"%s\" is a script for \"%s\", which is not there: install it, or set "
                         "PATH in \"env\"",
                         log_escape(shown, sizeof shown, command->text),
                         log_escape(shown_name, sizeof shown_name,
                                    slice_of(missing, strlen(missing))));
}

void command_check(struct diagnostics *diagnostics, const struct json_value *pool)
{
    const struct json_value *command = document_member(pool, "command");
    const struct json_value *cwd = document_member(pool, "cwd");
    struct place place = {environment_build(pool), cwd != NULL ? cwd->text.data : NULL};

    if (place.envp == NULL)
        diagnostics_value(diagnostics, command, "out of memory");
    else
        check_in_place(diagnostics, command, &place);
    free(place.envp);
}
