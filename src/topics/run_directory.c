#include "build_config.h"

#include "topics/run_directory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/unix_path.h"

#define OWN_ALONE 0700
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

const char *run_directory_path(char to[RUN_PATH_MAX], const char *directory, struct rmp_id run,
                               const char *suffix)
{
    char uuid[RMP_UUID_LEN + 1];

    snprintf(to, RUN_PATH_MAX, "%s/%s%s", directory, rmp_uuid_write(uuid, run), suffix);
    return to;
}

/* --- making it --- */

bool run_directory_make(const char *directory, char problem[RUN_DIRECTORY_PROBLEM_MAX])
{
    char path[RUN_DIRECTORY_MAX];
    const char *why = NULL;
    struct stat status;

    snprintf(path, sizeof path, "%s", directory);
    if (!directories_make_above(path) || (mkdir(directory, OWN_ALONE) < 0 && errno != EEXIST) ||
        stat(directory, &status) < 0)
        why = strerror(errno);
    else if (!S_ISDIR(status.st_mode))
        why = "it is no directory";
    else if (status.st_uid != geteuid())
        why = "it belongs to another user";
    else if ((status.st_mode & OTHERS_WRITE) != 0)
        why = "others may write to it; its mode should be 0700";
    if (why != NULL)
        snprintf(problem, RUN_DIRECTORY_PROBLEM_MAX, "%s", why);
    return why == NULL;
}

/* --- what it has --- */

struct listing {
    const char *directory;
    struct log *log;
    struct run_entry *entries;
    size_t count, capacity;
};

/* Whether this is a name of run_directory_path. */
static bool is_name(const char *name, const char *suffix, struct rmp_id *run)
{
    char uuid[RMP_UUID_LEN + 1];

    return strlen(name) == RMP_UUID_LEN + strlen(suffix) &&
           strcmp(name + RMP_UUID_LEN, suffix) == 0 &&
           rmp_uuid_read(slice_of(name, RMP_UUID_LEN), run) &&
           memcmp(rmp_uuid_write(uuid, *run), name, RMP_UUID_LEN) == 0;
}

static bool has_room(struct listing *listing)
{
    struct run_entry *entries = array_grow(listing->entries, &listing->capacity, listing->count + 1,
                                           sizeof *entries);

    if (entries != NULL)
        listing->entries = entries;
    return entries != NULL;
}

static bool add_entry(struct listing *listing, struct rmp_id run)
{
    char path[RUN_PATH_MAX];
    struct stat status;

    if (lstat(run_directory_path(path, listing->directory, run, RUN_SUFFIX), &status) < 0) {
        log_warn(listing->log, "rmp", "%s is skipped: %s", path, strerror(errno));
        return true;
    }
    if (!S_ISREG(status.st_mode)) {
        log_warn(listing->log, "rmp", "%s is skipped: it is no file", path);
        return true;
    }
    if (!has_room(listing))
        return false;
    listing->entries[listing->count++] = (struct run_entry){run, (int64_t)status.st_mtime};
    return true;
}

static bool take_name(struct listing *listing, const char *name)
{
    char path[RUN_PATH_MAX];
    struct rmp_id run;

    if (is_name(name, RUN_SUFFIX, &run))
        return add_entry(listing, run);
    if (is_name(name, RUN_SUFFIX_NEW, &run) &&
        unlink(run_directory_path(path, listing->directory, run, RUN_SUFFIX_NEW)) < 0)
        log_warn(listing->log, "rmp", "cannot remove %s: %s", path, strerror(errno));
    return true;
}

static bool read_names(struct listing *listing)
{
    DIR *directory = opendir(listing->directory);
    const struct dirent *entry;
    bool good = true;

    if (directory == NULL)
        return false;
    do {
        errno = 0;
        entry = readdir(directory);
        if (entry != NULL)
            good = take_name(listing, entry->d_name);
        else
            good = errno == 0;
    } while (good && entry != NULL);
    closedir(directory);
    return good;
}

static int compare(const void *a, const void *b)
{
    const struct run_entry *one = a, *other = b;

    return (one->changed > other->changed) - (one->changed < other->changed);
}

bool run_directory_list(const char *directory, struct log *log, struct run_entry **entries,
                        size_t *count)
{
    struct listing listing = {.directory = directory, .log = log};
    bool good = read_names(&listing);

    if (!good)
        log_warn(log, "rmp", "cannot read the directory %s: %s", directory, strerror(errno));
    if (listing.count > 0)
        qsort(listing.entries, listing.count, sizeof *listing.entries, compare);
    *entries = listing.entries;
    *count = listing.count;
    return good;
}
