/* The files of --watch: a look at all of them says whether one has changed since the last look. */
#ifndef STDIO_BUS_SHARE_WATCHED_FILES_H
#define STDIO_BUS_SHARE_WATCHED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/slice.h"

#define WATCHED_PATHS_MAX 16
#define WATCHED_FILES_MAX 20000 /* of all paths; more are not looked at */
#define WATCHED_PATH_BYTES 4096

/* Where a change of the files can be noticed. */
enum watched_place {
    WATCHED_NAME,      /* the directory in which a watched path may come, go or be replaced */
    WATCHED_FILE,      /* a watched path, which is a file */
    WATCHED_DIRECTORY, /* a watched path, or a directory below it */
    WATCHED_PART       /* a file in such a directory */
};

/* Called for each place before it is looked at: a change is either seen by the look, or comes after
 * the call. `name` is that in the directory, with WATCHED_NAME alone; it lives as long as the
 * paths. False: there is no such place. */
typedef bool watched_visit(void *user_data, enum watched_place place, const char *path,
                           struct slice name);

/* One look. */
struct watched_files {
    uint64_t hash; /* of what there is */
    unsigned count;
    struct timespec newest_time;
    char newest[WATCHED_PATH_BYTES]; /* the file that was changed last; "": there is none */
    char path[WATCHED_PATH_BYTES];   /* of what is looked at */
};

/* Looks at the files of these absolute paths: at a file, or those in a directory and below, without
 * names that are skipped. Symbolic links in a directory are not followed. What cannot be read
 * counts as not there. */
void watched_files_look(struct watched_files *files, char *const *paths, size_t count,
                        watched_visit *visit, void *user_data);

/* Whether an entry of a directory is skipped: it is hidden, made by others (node_modules), by the
 * server while it runs (__pycache__), or by an editor. */
bool watched_files_skip(struct slice name);

#endif
