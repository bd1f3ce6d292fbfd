#include "build_config.h"

#include "share/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"

#define SUFFIX ".memory"
#define PART SUFFIX ".part." /* and a process ID: a file that is being written */
#define PART_SEC 60          /* an older one is that of a process that was killed */
#define BLOCK 4096           /* a shorter file takes as much */

#ifdef __APPLE__
#define BELOW_HOME "/Library/Caches/"
#else
#define BELOW_HOME "/.cache/"
#endif

int cache_find(char path[DIRECTORY_MAX], char reason[DIRECTORY_REASON_MAX])
{
    const char *base = directory_of_variable("XDG_CACHE_HOME"), *between = "/";

    if (base == NULL) {
        base = directory_home();
        between = BELOW_HOME;
    }
    if (base != NULL &&
        snprintf(path, DIRECTORY_MAX, "%s%sstdio_bus", base, between) < DIRECTORY_MAX)
        return STDIO_BUS_OK;
    path[0] = '\0';
    snprintf(reason, DIRECTORY_REASON_MAX, "%s",
             base == NULL ? "neither XDG_CACHE_HOME nor HOME is set, and this user has no home"
                          : "the path of its directory is too long");
    return STDIO_BUS_EINVAL;
}

void cache_name(char name[CACHE_NAME_MAX], const char *base, const char *key)
{
    snprintf(name, CACHE_NAME_MAX, "%s-%s" SUFFIX, base, key);
}

/* --- reading --- */

static bool is_own(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_uid == geteuid() &&
           (status->st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

/* NULL with errno set. */
static char *read_whole(int fd, size_t size, size_t *len)
{
    char *bytes = malloc(size + 1);
    ssize_t got = 1;

    *len = 0;
    while (bytes != NULL && got != 0 && *len < size) {
        got = read(fd, bytes + *len, size - *len);
        if (got < 0 && errno != EINTR) {
            free(bytes);
            return NULL;
        }
        *len += got > 0 ? (size_t)got : 0;
    }
    return bytes;
}

char *cache_read(int directory, const char *name, size_t *len)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    char *bytes = NULL;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &status) == 0) {
        if (!is_own(&status))
            errno = EPERM;
        else if (status.st_size > (off_t)CACHE_FILE_MAX)
            errno = EFBIG;
        else
            bytes = read_whole(fd, (size_t)status.st_size, len);
    }
    if (bytes != NULL)
        (void)futimens(fd, NULL);
    descriptor_close(fd);
    return bytes;
}

/* --- all files --- */

/* What a look at the directory is for, and what it has found. */
struct look {
    int directory;
    const char *base; /* of the files to be removed; NULL: none of them */
    size_t bytes;     /* of the files that are left */
    int removed, error;
    char oldest[CACHE_NAME_MAX]; /* "": there is none */
    time_t oldest_time;
};

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);

    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

/* A name of cache_name. */
static bool is_file(const char *name)
{
    return strlen(name) < CACHE_NAME_MAX && ends_with(name, SUFFIX);
}

static bool is_of(const char *name, const char *base)
{
    size_t len = strlen(base);

    return strncmp(name, base, len) == 0 && name[len] == '-' &&
           strlen(name + len) == 1 + CACHE_KEY_LEN + strlen(SUFFIX);
}

static void look_at(struct look *look, const char *name)
{
    bool is_part = strstr(name, PART) != NULL;
    struct stat status;

    if ((!is_part && !is_file(name)) ||
        fstatat(look->directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(status.st_mode))
        return;
    if (is_part) {
        if (status.st_mtime < time(NULL) - PART_SEC)
            cache_remove(look->directory, name);
        return;
    }
    if (look->base != NULL && is_of(name, look->base)) {
        if (unlinkat(look->directory, name, 0) == 0)
            look->removed++;
        else if (errno != ENOENT)
            look->error = errno;
        return;
    }
    look->bytes += status.st_size < BLOCK ? BLOCK : (size_t)status.st_size;
    if (look->oldest[0] != '\0' && look->oldest_time <= status.st_mtime)
        return;
    memcpy(look->oldest, name, strlen(name) + 1); /* is_file has its length */
    look->oldest_time = status.st_mtime;
}

/* STDIO_BUS_ERR with errno set. */
static int look_at_all(struct look *look)
{
    int fd = openat(look->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (entries == NULL) {
        if (fd >= 0)
            descriptor_close(fd);
        return STDIO_BUS_ERR;
    }
    while ((entry = readdir(entries)) != NULL)
        look_at(look, entry->d_name);
    closedir(entries);
    return STDIO_BUS_OK;
}

/* What cannot be looked at or removed stays. */
static void make_way(int directory)
{
    struct look look = {.directory = directory};

    while (look_at_all(&look) == STDIO_BUS_OK && look.bytes > CACHE_BYTES_MAX &&
           unlinkat(directory, look.oldest, 0) == 0)
        look = (struct look){.directory = directory};
}

int cache_forget(int directory, const char *base)
{
    struct look look = {.directory = directory, .base = base};

    if (look_at_all(&look) != STDIO_BUS_OK)
        return -1;
    errno = look.error;
    return look.error != 0 ? -1 : look.removed;
}

void cache_remove(int directory, const char *name)
{
    (void)unlinkat(directory, name, 0);
}

/* --- writing --- */

/* False with errno set. */
static bool write_part(int directory, const char *part, struct slice head, struct slice bytes)
{
    int fd = openat(directory, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool written;

    if (fd < 0)
        return false;
    written = descriptor_write_all(fd, head.data, head.len) &&
              descriptor_write_all(fd, bytes.data, bytes.len);
    if (written)
        return close(fd) == 0; /* a quota may be reported as late as now */
    descriptor_close(fd);
    return false;
}

int cache_write(int directory, const char *name, struct slice head, struct slice bytes)
{
    size_t len = strlen(name) - strlen(SUFFIX);
    char part[CACHE_NAME_MAX + 32];
    int error;

    snprintf(part, sizeof part, "%.*s" PART "%ld", (int)len, name, (long)getpid());
    cache_remove(directory, part);
    if (write_part(directory, part, head, bytes) &&
        renameat(directory, part, directory, name) == 0) {
        make_way(directory);
        return STDIO_BUS_OK;
    }
    error = errno;
    cache_remove(directory, part);
    cache_remove(directory, name);
    errno = error;
    return STDIO_BUS_ERR;
}
