#include "build_config.h"

#include "share/tidy.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "share/daemon.h"
#include "share/exchange.h"
#include "share/greeting.h"

#define WEEK_SEC (7L * 24 * 60 * 60)

/* The file of a daemon, and how long its name is without the ending. False: it is another file. */
static bool base_length(const char *file, const char *ending, size_t *len)
{
    size_t all = strlen(file), end = strlen(ending);

    *len = all > end ? all - end : 0;
    return *len > 0 && *len < DAEMON_BASE_MAX && strcmp(file + *len, ending) == 0;
}

/* A clock that was set back makes it young. */
static bool is_old(const char *file)
{
    struct stat status;

    return lstat(file, &status) == 0 && status.st_mtime < time(NULL) - WEEK_SEC;
}

/* A daemon may have run for more than a week. */
static bool has_daemon(const char *file)
{
    const char *line = GREETING_STATUS "\n";
    int fd = exchange_connect(file, &line, 1);

    if (fd < 0)
        return errno != ENOENT && errno != ECONNREFUSED;
    close(fd);
    return true;
}

static void look_at(const char *file)
{
    char socket[DAEMON_FILE_MAX];
    size_t len;

    if (!base_length(file, DAEMON_SOCKET, &len) && !base_length(file, DAEMON_LOG, &len))
        return;
    snprintf(socket, sizeof socket, "%.*s" DAEMON_SOCKET, (int)len, file);
    if (is_old(file) && !has_daemon(socket))
        (void)unlink(file);
}

void tidy_directory(void)
{
    DIR *directory = opendir(".");
    const struct dirent *entry;

    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL)
        look_at(entry->d_name);
    closedir(directory);
}
