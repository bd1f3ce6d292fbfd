#include "build_config.h"

#include "share/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"

#define OWN_ALONE 0700
#define OTHERS 077
#define LOCK_WAIT_MS 20000 /* daemons of other commands may be starting too */
#define LOCK_NAP_MS 5
#define RUNTIME_MAX 40 /* bytes of logind's path */

__attribute__((format(printf, 2, 3))) static int refuse(char reason[DIRECTORY_REASON_MAX],
                                                        const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(reason, DIRECTORY_REASON_MAX, format, args);
    va_end(args);
    return STDIO_BUS_EINVAL;
}

/* --- the path --- */

const char *directory_home(void)
{
    const char *path = getenv("HOME");
    const struct passwd *user;

    if (path != NULL && *path == '/')
        return path;
    user = getpwuid(geteuid());
    return user != NULL && user->pw_dir != NULL && user->pw_dir[0] == '/' ? user->pw_dir : NULL;
}

/* As the standard has it, a relative path in such a variable is ignored. */
const char *directory_of_variable(const char *name)
{
    const char *path = getenv(name);

    return path != NULL && *path == '/' ? path : NULL;
}

/* Some hosts do not pass XDG_RUNTIME_DIR to their servers. Where logind has made the directory, it
 * is this one. An empty variable means that there is none. */
static const char *runtime_directory(char path[RUNTIME_MAX])
{
    struct stat status;

    if (getenv("XDG_RUNTIME_DIR") != NULL)
        return directory_of_variable("XDG_RUNTIME_DIR");
    snprintf(path, RUNTIME_MAX, "/run/user/%ld", (long)geteuid());
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid()
               ? path
               : NULL;
}

int directory_find(char path[DIRECTORY_MAX], char reason[DIRECTORY_REASON_MAX])
{
    char runtime[RUNTIME_MAX];
    const char *base = runtime_directory(runtime), *between = "/";

    if (base == NULL)
        base = directory_of_variable("XDG_CACHE_HOME");
    if (base == NULL) {
        base = directory_home();
        between = "/.cache/";
    }
    if (base == NULL)
        return refuse(reason, "there is no directory for the socket: neither XDG_RUNTIME_DIR nor "
                              "HOME is set, and this user has no home");
    if (snprintf(path, DIRECTORY_MAX, "%s%sstdio_bus", base, between) >= DIRECTORY_MAX)
        return refuse(reason, "the directory for the socket has a path longer than %d bytes",
                      DIRECTORY_MAX - 1);
    return STDIO_BUS_OK;
}

/* --- the directory --- */

/* The directories above it too, of which ~/.cache may be missing. */
static int make(const char *path, char reason[DIRECTORY_REASON_MAX])
{
    char above[DIRECTORY_MAX];
    char *slash;

    if (mkdir(path, OWN_ALONE) == 0 || errno == EEXIST)
        return STDIO_BUS_OK;
    snprintf(above, sizeof above, "%s", path);
    slash = strrchr(above, '/');
    if (errno == ENOENT && slash != NULL) {
        *slash = '\0';
        (void)mkdir(above, OWN_ALONE);
        if (mkdir(path, OWN_ALONE) == 0 || errno == EEXIST)
            return STDIO_BUS_OK;
    }
    return refuse(reason, "cannot make the directory %s: %s", path, strerror(errno));
}

/* The check is of what was opened, whatever happens to the path. */
static int check(int fd, const char *path, char reason[DIRECTORY_REASON_MAX])
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return refuse(reason, "cannot look at the directory %s: %s", path, strerror(errno));
    if (status.st_uid != geteuid())
        return refuse(reason, "the directory %s belongs to another user (uid %ld)", path,
                      (long)status.st_uid);
    if ((status.st_mode & OTHERS) != 0)
        return refuse(reason, "other users can open the directory %s: its mode should be 0700",
                      path);
    return STDIO_BUS_OK;
}

int directory_open(int *fd, const char *path, bool makes, char reason[DIRECTORY_REASON_MAX])
{
    if (makes && make(path, reason) != STDIO_BUS_OK)
        return STDIO_BUS_EINVAL;
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT && !makes)
        return STDIO_BUS_ENOTFOUND;
    if (*fd < 0)
        return refuse(reason, "cannot open the directory %s: %s", path, strerror(errno));
    if (check(*fd, path, reason) == STDIO_BUS_OK)
        return STDIO_BUS_OK;
    descriptor_close(*fd);
    return STDIO_BUS_EINVAL;
}

int directory_enter(const char *path, bool makes, char reason[DIRECTORY_REASON_MAX])
{
    int fd, status = directory_open(&fd, path, makes, reason);

    if (status != STDIO_BUS_OK)
        return status;
    if (fchdir(fd) < 0)
        status = refuse(reason, "cannot enter the directory %s: %s", path, strerror(errno));
    descriptor_close(fd);
    return status;
}

/* --- the lock --- */

static bool try_lock(int fd)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_SETLK, &all) == 0;
}

int directory_lock(char reason[DIRECTORY_REASON_MAX])
{
    int fd = open("lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), waited;

    if (fd < 0) {
        refuse(reason, "cannot make the file lock in its directory: %s", strerror(errno));
        return -1;
    }
    for (waited = 0; !try_lock(fd); waited += LOCK_NAP_MS) {
        if ((errno != EACCES && errno != EAGAIN && errno != EINTR) || waited >= LOCK_WAIT_MS) {
            refuse(reason, "cannot get the lock of its directory: %s", strerror(errno));
            descriptor_close(fd);
            return -1;
        }
        poll(NULL, 0, LOCK_NAP_MS);
    }
    return fd;
}

const char *share_name_problem(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";

    if (strlen(name) > SHARE_NAME_MAX)
        return "the name is longer than 64 bytes";
    if (*name == '\0' || *name == '.' || *name == '-' || name[strspn(name, allowed)] != '\0')
        return "a name has letters, digits, dots, dashes and underscores, and begins with none of "
               "the marks but the last";
    return NULL;
}
