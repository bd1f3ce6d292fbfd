#include "build_config.h"

#include "proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool read_file(struct text *text, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;
    if (fd < 0)
        return false;
    do {
        n = read(fd, text_room(text, 4096), 4096);
        if (n > 0)
            text->len += (size_t)n;
    } while (n > 0);
    *text_room(text, 1) = '\0';
    close(fd);
    return true;
}

bool proc_available(void)
{
    return access("/proc/self/stat", R_OK) == 0;
}

/* The state and the parent from /proc/PID/stat; the command's name in it may hold anything. */
static bool read_stat(pid_t pid, char *state, pid_t *parent)
{
    char path[64];
    struct text stat = {0};
    long ppid = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    bool ok = read_file(&stat, path) && stat.len > 0;
    const char *rest = ok ? strrchr(stat.data, ')') : NULL;
    ok = rest != NULL && sscanf(rest + 1, " %c %ld", state, &ppid) == 2;
    *parent = (pid_t)ppid;
    text_free(&stat);
    return ok;
}

size_t proc_children(pid_t parent, pid_t *children, size_t max)
{
    size_t count = 0;
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), ppid;
        char state;
        if (pid <= 0 || !read_stat(pid, &state, &ppid) || ppid != parent)
            continue;
        if (count < max)
            children[count] = pid;
        count++;
    }
    if (dir != NULL)
        closedir(dir);
    return count;
}

char proc_state(pid_t pid)
{
    char state;
    pid_t parent;
    return read_stat(pid, &state, &parent) ? state : 0;
}

bool proc_alive(pid_t pid)
{
    char state = proc_state(pid);
    return state != 0 && state != 'Z' && state != 'X';
}

long proc_status(pid_t pid, const char *name)
{
    char path[64], key[64];
    struct text status = {0};
    long value = -1;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    snprintf(key, sizeof key, "%s:", name);
    if (read_file(&status, path) && status.len > 0) {
        const char *at = strstr(status.data, key);
        if (at != NULL)
            value = strtol(at + strlen(key), NULL, 10);
    }
    text_free(&status);
    return value;
}

long proc_cpu_ms(pid_t pid)
{
    char path[64];
    struct text stat = {0};
    long user = 0, kernel = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    bool ok = read_file(&stat, path) && stat.len > 0;
    const char *rest = ok ? strrchr(stat.data, ')') : NULL;
    ok = rest != NULL && sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
                                &user, &kernel) == 2;
    text_free(&stat);
    return ok ? (user + kernel) * 1000 / sysconf(_SC_CLK_TCK) : -1;
}

int proc_fd_count(pid_t pid)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return -1;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2;
}
