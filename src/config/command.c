#include "build_config.h"

#include "config/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CANDIDATE_MAX 4096

static int check_file(const char *path, const char *cwd)
{
    char moved[CANDIDATE_MAX];
    struct stat status;

    if (cwd != NULL && path[0] != '/') {
        if (snprintf(moved, sizeof(moved), "%s/%s", cwd, path) >= (int)sizeof(moved))
            return ENAMETOOLONG;
        path = moved;
    }
    if (stat(path, &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    if (!S_ISREG(status.st_mode))
        return EACCES;
    return access(path, X_OK) == 0 ? 0 : errno;
}

/* execvp goes on after a file that it may not execute, and then says EACCES rather than ENOENT. */
static int check_in_path(const char *path, const char *name, const char *cwd)
{
    char candidate[CANDIDATE_MAX];
    int result = ENOENT;

    for (;;) {
        size_t len = strcspn(path, ":"); /* an empty one is the working directory */
        int n = len < sizeof(candidate) ? snprintf(candidate, sizeof(candidate), "%.*s%s%s",
                                                   (int)len, path, len > 0 ? "/" : "", name)
                                        : -1;
        if (n > 0 && (size_t)n < sizeof(candidate)) {
            int error = check_file(candidate, cwd);
            if (error == 0)
                return 0;
            if (error == EACCES || error == EISDIR)
                result = EACCES;
        }
        if (path[len] == '\0')
            return result;
        path += len + 1;
    }
}

int command_check(const char *command, const char *path, const char *cwd)
{
    char standard[256];

    if (strchr(command, '/') != NULL)
        return check_file(command, cwd);
    if (path == NULL) {
        size_t len = confstr(_CS_PATH, standard, sizeof(standard));
        if (len == 0 || len > sizeof(standard))
            return ENOENT;
        path = standard;
    }
    return check_in_path(path, command, cwd);
}
