#include "build_config.h"

#include "share/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "process/process.h"

#define FIRST_SIZE 16384
#define STAT_MAX 1024     /* of /proc/PID/stat, about 300 bytes */
#define STAT_PATH_MAX 320 /* a name in a directory has at most 255 bytes */

/* Fields of /proc/PID/stat after the name of the program (proc(5)). */
#define STAT_GROUP 3
#define STAT_PAGES 22

static int add_process(struct usage *usage, const struct usage_process *process)
{
    struct usage_process *grown = array_grow(usage->at, &usage->capacity, usage->count + 1,
                                             sizeof *grown);

    if (grown == NULL)
        return STDIO_BUS_ERR;
    usage->at = grown;
    usage->at[usage->count++] = *process;
    return STDIO_BUS_OK;
}

/* --- Linux: /proc/PID/stat --- */

/* A field after the name of the program, which may contain spaces and parentheses; 0: none. */
static long field_of_stat(const char *stat, int number)
{
    const char *at = strrchr(stat, ')');

    while (at != NULL && number-- > 0) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL ? strtol(at, NULL, 10) : 0;
}

/* A process that has ended meanwhile has no memory. */
static int read_process(struct usage *usage, const char *name, long page_kib)
{
    char path[STAT_PATH_MAX], stat[STAT_MAX];
    ssize_t len;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%s/stat", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return STDIO_BUS_OK;
    len = read(fd, stat, sizeof stat - 1);
    close(fd);
    if (len <= 0)
        return STDIO_BUS_OK;
    stat[len] = '\0';
    return add_process(usage, &(struct usage_process){
                                  .pid = strtol(name, NULL, 10),
                                  .group = field_of_stat(stat, STAT_GROUP),
                                  .kib = field_of_stat(stat, STAT_PAGES) * page_kib,
                              });
}

/* Finds no process where /proc is that of another system, or is not there. */
static int read_proc(struct usage *usage)
{
    long page_kib = sysconf(_SC_PAGESIZE) / 1024;
    int status = STDIO_BUS_OK, error;
    DIR *directory = opendir("/proc");
    const struct dirent *entry;

    if (directory == NULL)
        return errno == ENOENT ? STDIO_BUS_OK : STDIO_BUS_ERR;
    do {
        errno = 0;
        entry = readdir(directory);
        if (entry == NULL && errno != 0)
            status = STDIO_BUS_ERR;
        else if (entry != NULL && entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
            status = read_process(usage, entry->d_name, page_kib);
    } while (status == STDIO_BUS_OK && entry != NULL);
    error = errno;
    closedir(directory);
    errno = error;
    return status;
}

/* --- elsewhere: ps --- */

/* Three numbers to a line. */
static int parse(struct usage *usage, const char *text)
{
    struct usage_process process;
    char *end;

    for (;; text = end) {
        process.pid = strtol(text, &end, 10);
        if (end == text)
            return STDIO_BUS_OK;
        process.group = strtol(end, &end, 10);
        process.kib = strtol(end, &end, 10);
        if (add_process(usage, &process) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    }
}

/* The whole output, NUL-terminated, to be freed. NULL with errno set. */
static char *read_all(int fd)
{
    size_t size = FIRST_SIZE, len = 0;
    char *text = malloc(size), *larger;
    ssize_t got = 1;

    while (text != NULL && got != 0) {
        got = read(fd, text + len, size - len - 1);
        if (got < 0 && errno != EINTR)
            goto fail;
        if (got > 0)
            len += (size_t)got;
        if (len + 1 < size)
            continue;
        size *= 2;
        larger = realloc(text, size);
        if (larger == NULL)
            goto fail;
        text = larger;
    }
    if (text != NULL)
        text[len] = '\0';
    return text;

fail:
    free(text);
    return NULL;
}

/* A ps that does not know these options prints nothing on stdout. */
static int read_ps(struct usage *usage)
{
    char ps[] = "ps", all[] = "-A", option[] = "-o",
         pid[] = "pid=", group[] = "pgid=", memory[] = "rss=";
    char *argv[] = {ps, all, option, pid, option, group, option, memory, NULL};
    const struct program program = {.argv = argv};
    struct process process;
    int status = STDIO_BUS_ERR, error;
    char *text;

    if (process_spawn(&process, &program) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    close(process.fd_to);
    text = read_all(process.fd_from);
    if (text != NULL)
        status = parse(usage, text);
    error = errno;
    free(text);
    close(process.fd_from);
    while (waitpid(process.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (status == STDIO_BUS_OK && process_exec_result(process.fd_exec, &error) == STDIO_BUS_ERR)
        status = STDIO_BUS_ERR;
    close(process.fd_exec);
    errno = error;
    return status;
}

int usage_read(struct usage *usage)
{
    *usage = (struct usage){.at = NULL};
    if (read_proc(usage) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    return usage->count > 0 ? STDIO_BUS_OK : read_ps(usage);
}

void usage_free(struct usage *usage)
{
    free(usage->at);
    *usage = (struct usage){.at = NULL};
}

long usage_of_process(const struct usage *usage, long pid)
{
    size_t i;

    for (i = 0; i < usage->count; i++) {
        if (usage->at[i].pid == pid)
            return usage->at[i].kib;
    }
    return 0;
}

long usage_of_group(const struct usage *usage, long group, size_t *count)
{
    long kib = 0;
    size_t i;

    for (i = 0; i < usage->count; i++) {
        if (usage->at[i].group != group)
            continue;
        kib += usage->at[i].kib;
        ++*count;
    }
    return kib;
}
