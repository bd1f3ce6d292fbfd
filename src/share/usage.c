#include "build_config.h"

#include "share/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "process/process.h"

#define FIRST_SIZE 16384

static int add(struct usage *usage, const struct usage_process *process)
{
    struct usage_process *grown = array_grow(usage->at, &usage->capacity, usage->count + 1,
                                             sizeof *grown);

    if (grown == NULL)
        return STDIO_BUS_ERR;
    usage->at = grown;
    usage->at[usage->count++] = *process;
    return STDIO_BUS_OK;
}

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
        if (add(usage, &process) != STDIO_BUS_OK)
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
int usage_read(struct usage *usage)
{
    char ps[] = "ps", all[] = "-A", option[] = "-o",
         pid[] = "pid=", group[] = "pgid=", memory[] = "rss=";
    char *argv[] = {ps, all, option, pid, option, group, option, memory, NULL};
    const struct program program = {.argv = argv};
    struct process process;
    int status = STDIO_BUS_ERR, error;
    char *text;

    *usage = (struct usage){.at = NULL};
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
