#include "build_config.h"

#include "share/watched_files.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_time.h"
#include "base/siphash.h"

#define DEPTH_MAX 32

struct look {
    struct watched_files *files;
    watched_visit *visit;
    void *user_data;
};

/* --- files --- */

static bool is_newer(struct timespec time, struct timespec than)
{
    return time.tv_sec != than.tv_sec ? time.tv_sec > than.tv_sec : time.tv_nsec > than.tv_nsec;
}

static void add_file(struct watched_files *files, const struct stat *status)
{
    const struct siphash_key plain = {0, 0},
                             of_path = {0, siphash(&plain, files->path, strlen(files->path))};
    struct timespec time = file_time(status);
    const long long facts[] = {(long long)time.tv_sec, time.tv_nsec, (long long)status->st_size,
                               (long long)status->st_ino, (long long)status->st_dev};

    files->hash += siphash(&of_path, facts, sizeof facts); /* the order does not count */
    files->count++;
    if (files->newest[0] != '\0' && !is_newer(time, files->newest_time))
        return;
    files->newest_time = time;
    memcpy(files->newest, files->path, strlen(files->path) + 1);
}

/* --- directories --- */

bool watched_files_skip(struct slice name)
{
    static const char *const names[] = {"node_modules", "__pycache__", "venv"};

    if (name.len == 0 || name.data[0] == '.' || name.data[0] == '#' ||
        name.data[name.len - 1] == '~')
        return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (slice_is(name, names[i]))
            return true;
    }
    return false;
}

/* Lengthens the path. False: it would be too long, or there is no such file. */
static bool enter(struct watched_files *files, size_t len, const char *name, struct stat *status)
{
    size_t left = sizeof files->path - len;
    int written = snprintf(files->path + len, left, "/%s", name);

    return written > 0 && (size_t)written < left && lstat(files->path, status) == 0;
}

static void add_directory(struct look *look, unsigned depth);

/* A file may change between `status` and its visit. */
static void add_entry(struct look *look, struct stat *status, unsigned depth)
{
    struct watched_files *files = look->files;

    if (S_ISDIR(status->st_mode)) {
        if (depth < DEPTH_MAX)
            add_directory(look, depth + 1);
        return;
    }
    if (S_ISREG(status->st_mode) &&
        (!look->visit(look->user_data, WATCHED_PART, files->path, slice_of(NULL, 0)) ||
         lstat(files->path, status) != 0))
        return;
    if (S_ISREG(status->st_mode) || S_ISLNK(status->st_mode))
        add_file(files, status);
}

static void add_directory(struct look *look, unsigned depth)
{
    struct watched_files *files = look->files;
    size_t len = strlen(files->path);
    const struct dirent *entry;
    struct stat status;
    DIR *directory;

    (void)look->visit(look->user_data, WATCHED_DIRECTORY, files->path, slice_of(NULL, 0));
    directory = opendir(files->path);
    if (directory == NULL)
        return;
    while (files->count < WATCHED_FILES_MAX && (entry = readdir(directory)) != NULL) {
        if (!watched_files_skip(slice_of_text(entry->d_name)) &&
            enter(files, len, entry->d_name, &status))
            add_entry(look, &status, depth);
        files->path[len] = '\0';
    }
    closedir(directory);
}

/* --- paths --- */

/* The directory of the path, or the nearest one above it that is there. */
static void visit_name(struct look *look, const char *path)
{
    char *parent = look->files->path;
    size_t len = strlen(path);
    bool found = false;

    while (!found && len > 1) {
        size_t end;

        while (len > 1 && path[len - 1] == '/')
            len--;
        end = len;
        while (len > 0 && path[len - 1] != '/')
            len--;
        snprintf(parent, sizeof look->files->path, "%.*s", len > 1 ? (int)len - 1 : 1, path);
        found = look->visit(look->user_data, WATCHED_NAME, parent, slice_of(path + len, end - len));
    }
}

static void add_path(struct look *look, const char *path)
{
    struct watched_files *files = look->files;
    struct stat status;

    snprintf(files->path, sizeof files->path, "%s", path);
    if (stat(files->path, &status) != 0)
        return;
    if (S_ISDIR(status.st_mode)) {
        add_directory(look, 0);
        return;
    }
    if (look->visit(look->user_data, WATCHED_FILE, files->path, slice_of(NULL, 0)) &&
        stat(files->path, &status) == 0)
        add_file(files, &status);
}

void watched_files_look(struct watched_files *files, char *const *paths, size_t count,
                        watched_visit *visit, void *user_data)
{
    struct look look = {files, visit, user_data};

    files->hash = 0;
    files->count = 0;
    files->newest[0] = '\0';
    for (size_t i = 0; i < count; i++)
        visit_name(&look, paths[i]);
    for (size_t i = 0; i < count; i++)
        add_path(&look, paths[i]);
}
