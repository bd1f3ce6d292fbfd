#include "build_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "config/command.h"
#include "doctor/examinations.h"

#define PATH_ENTRY_MAX 1024
#define NEED 1664 /* open files of a daemon with `max_connections` clients and some workers */

/* --- PATH --- */

static void look_at_directory(struct doctor *doctor, const char *directory)
{
    struct stat status;

    if (directory[0] != '/') {
        doctor_cure(doctor, "take it out of PATH, or write the whole path");
        doctor_find(doctor, DOCTOR_WARNING,
                    "PATH has the directory \"%s\", which is another one in each place", directory);
    } else if (stat(directory, &status) == 0 && (status.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH) {
        doctor_cure(doctor, "chmod o-w '%s'", directory);
        doctor_find(doctor, DOCTOR_ERROR, "every user can put programs into %s of PATH", directory);
    }
}

void doctor_path(struct doctor *doctor)
{
    const char *at = doctor->path;
    char entry[PATH_ENTRY_MAX];
    size_t len;

    if (at == NULL || *at == '\0') {
        doctor_cure(doctor, "set PATH, to %s for instance", doctor->window_path);
        doctor_find(doctor, DOCTOR_WARNING, "PATH is not set here");
        doctor->path = doctor->window_path;
        return;
    }
    doctor_find(doctor, DOCTOR_OK, "here: %s", at);
    doctor_find(doctor, DOCTOR_OK, "of programs with windows: %s", doctor->window_path);
    for (;; at += len + 1) {
        len = strcspn(at, ":");
        snprintf(entry, sizeof entry, "%.*s", (int)len, at);
        look_at_directory(doctor, entry);
        if (at[len] == '\0')
            return;
    }
}

/* --- programs --- */

/* Where the client looks. The PATH that it sets itself is a value of its file. */
static const char *shown_path(const struct doctor *doctor, const char *path)
{
    return path == doctor->path || path == doctor->window_path ? path : "that of its \"env\"";
}

/* What follows the text, if the reason is another one than that the program is not there. */
static const char *colon(int error)
{
    return error == ENOENT ? "" : ": ";
}

static const char *reason(int error)
{
    return error == ENOENT ? "" : strerror(error);
}

/* A script such as npx needs its interpreter, too. */
static bool lacks_interpreter(struct doctor *doctor, const char *what, const char *file,
                              const struct command_place *place)
{
    char line[COMMAND_LINE_MAX];
    int error;
    const char *missing = command_missing_interpreter(file, place, line, &error);

    if (missing == NULL)
        return false;
    doctor_cure(doctor, "install %s, or set PATH in its \"env\": the directory of %s, and the rest",
                missing, missing);
    doctor_find(doctor, DOCTOR_ERROR, "%s: %s is a script for %s, which is not in its PATH: %s%s%s",
                what, file, missing, shown_path(doctor, place->path), colon(error), reason(error));
    return true;
}

static void report_missing(struct doctor *doctor, const char *what, const char *command,
                           const char *path, int error)
{
    bool has_slash = strchr(command, '/') != NULL;
    int word = (int)strcspn(command, " \t"); /* what follows may be arguments, and secrets */

    if (command[0] == '~')
        doctor_cure(doctor, "write the whole path: no shell replaces the ~");
    else if (command[word] != '\0')
        doctor_cure(doctor, "write the arguments into \"args\": no shell splits the command");
    else
        doctor_cure(doctor, "install it, or write the whole path, as \"command -v\" prints it");
    doctor_find(doctor, DOCTOR_ERROR, "%s: there is no program %.*s%s%s%s%s%s", what, word, command,
                command[word] != '\0' ? "..." : "",
                has_slash ? "" : " in its PATH: ", has_slash ? "" : shown_path(doctor, path),
                colon(error), reason(error));
}

void doctor_command(struct doctor *doctor, const char *what, const char *command, bool has_window,
                    const struct command_place *place)
{
    struct command_place here = {doctor->path, place->cwd}, used = *place;
    char file[COMMAND_FILE_MAX];
    int error;

    if (used.path == NULL)
        used.path = has_window ? doctor->window_path : doctor->path;
    error = command_find(command, &used, file);
    if (error == 0) {
        (void)lacks_interpreter(doctor, what, file, &used);
    } else if (command_find(command, &here, file) == 0) {
        doctor_cure(doctor, "write %s in its place, as stdio_bus --import does", file);
        doctor_find(doctor, DOCTOR_WARNING, "%s: %s is found here, but not in its PATH: %s%s%s",
                    what, command, shown_path(doctor, used.path), colon(error), reason(error));
    } else {
        report_missing(doctor, what, command, used.path, error);
    }
}

/* What servers are started with. None has to be there. */
static void look_for(struct doctor *doctor, const char *name, const char *of)
{
    const struct command_place window = {doctor->window_path, NULL}, here = {doctor->path, NULL};
    char file[COMMAND_FILE_MAX];
    int error = command_find(name, &window, file);

    if (error == 0) {
        if (!lacks_interpreter(doctor, name, file, &window))
            doctor_find(doctor, DOCTOR_OK, "%s: %s", name, file);
    } else if (command_find(name, &here, file) == 0) {
        doctor_cure(doctor, "write %s in their files, as stdio_bus --import does", file);
        doctor_find(doctor, DOCTOR_WARNING, "%s: programs with windows do not find %s%s%s", name,
                    file, colon(error), reason(error));
    } else {
        doctor_cure(doctor, "install %s if a server needs it", of);
        doctor_find(doctor, DOCTOR_NOTE, "%s: not installed%s%s", name, colon(error),
                    reason(error));
    }
}

void doctor_programs(struct doctor *doctor)
{
    static const struct {
        const char *name, *of;
    } programs[] = {{"npx", "npm"}, {"node", "Node.js"}, {"uvx", "uv"}, {"python3", "Python"}};

    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        look_for(doctor, programs[i].name, programs[i].of);
}

/* --- limits --- */

void doctor_descriptors(struct doctor *doctor)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max == RLIM_INFINITY ||
        limit.rlim_max >= NEED) {
        doctor_find(doctor, DOCTOR_OK, "a daemon may open %d files and more", NEED);
        return;
    }
    doctor_cure(doctor, "raise the hard limit: ulimit -Hn, LimitNOFILE= of systemd, "
                        "HardResourceLimits of launchd; or lower limits.max_connections");
    doctor_find(doctor, DOCTOR_WARNING,
                "a daemon may open %llu files at most, and needs up to %d with 1024 clients",
                (unsigned long long)limit.rlim_max, NEED);
}
