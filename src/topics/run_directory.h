/* The directory of the files of runs (topics/run_files.h): the UUID of a run and a suffix are the
 * name of its file, so no name comes from a text of others. */
#ifndef STDIO_BUS_TOPICS_RUN_DIRECTORY_H
#define STDIO_BUS_TOPICS_RUN_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "config/rmp_keys.h"
#include "rmp/frame.h"

#define RUN_DIRECTORY_MAX RMP_HISTORY_PATH_MAX
#define RUN_DIRECTORY_PROBLEM_MAX 128
#define RUN_PATH_MAX (RUN_DIRECTORY_MAX + RMP_UUID_LEN + 8)

#define RUN_SUFFIX ".rmp"
#define RUN_SUFFIX_NEW ".new" /* while a file is written as a whole */

/* Writes the path of a run's file. Returns `to`. */
const char *run_directory_path(char to[RUN_PATH_MAX], const char *directory, struct rmp_id run,
                               const char *suffix);

/* Makes the directory and those above it that are missing, for this user alone. False, with
 * *problem: it cannot be had, belongs to another user, or others may write to it. */
bool run_directory_make(const char *directory, char problem[RUN_DIRECTORY_PROBLEM_MAX]);

struct run_entry {
    struct rmp_id run;
    int64_t changed; /* seconds of the calendar */
};

/* The files of runs, that which was changed first first; to be freed. Files that were left half
 * written are removed, other files are ignored. False, after a WARN: the directory cannot be read;
 * what was found is in *entries all the same. */
bool run_directory_list(const char *directory, struct log *log, struct run_entry **entries,
                        size_t *count);

#endif
