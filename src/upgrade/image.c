#include "build_config.h"

#include "upgrade/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef HAVE_MEMFD_CREATE
#include <sys/mman.h>
#endif

#include "base/descriptor.h"
#include "base/error.h"
#include "base/terminal.h"

#define VARIABLE "STDIO_BUS_UPGRADE"
#define PROBLEM_VARIABLE "STDIO_BUS_UPGRADE_PROBLEM"

/* --- the file --- */

static int open_file(void)
{
    char path[4096];
    const char *directory = getenv("TMPDIR");
    int fd = -1;

#ifdef HAVE_MEMFD_CREATE
    fd = memfd_create("stdio_bus", MFD_CLOEXEC);
    if (fd >= 0)
        return fd;
#endif
    (void)snprintf(path, sizeof path, "%s/stdio_bus.XXXXXX",
                   directory != NULL ? directory : "/tmp");
    fd = mkstemp(path);
    if (fd < 0)
        return -1;
    unlink(path);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

int upgrade_image_write(const char *bytes, size_t len)
{
    int fd = open_file();
    ssize_t written;

    while (fd >= 0 && len > 0) {
        written = write(fd, bytes, len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            descriptor_close(fd);
            return -1;
        }
        bytes += written;
        len -= (size_t)written;
    }
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

/* The file is regular: a read is short at its end alone. */
static bool read_all(struct upgrade_image *image)
{
    struct stat status;
    ssize_t got = 1;

    if (fstat(image->fd, &status) < 0 || status.st_size < 0)
        return false;
    image->bytes = malloc((size_t)status.st_size + 1);
    while (image->bytes != NULL && got > 0 && image->len < (size_t)status.st_size) {
        got = pread(image->fd, image->bytes + image->len, (size_t)status.st_size - image->len,
                    (off_t)image->len);
        if (got > 0)
            image->len += (size_t)got;
    }
    return image->bytes != NULL && image->len == (size_t)status.st_size;
}

void upgrade_image_read(struct upgrade_image *image, int fd)
{
    *image = (struct upgrade_image){.fd = fd, .program = -1};
    errno = 0;
    if (read_all(image))
        return;
    image->len = 0; /* no state is that short */
    image->error = errno;
}

/* --- the environment --- */

/* False: it is none of the two. */
static bool keep_open(int fd)
{
    return fd > STDERR_FILENO && (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 || errno != EBADF);
}

void upgrade_image_inherit(struct upgrade_image *image)
{
    const char *text = getenv(VARIABLE), *problem = getenv(PROBLEM_VARIABLE);
    char *rest;
    int fd, program;

    *image = (struct upgrade_image){.fd = -1, .program = -1};
    if (text == NULL)
        return;
    fd = (int)strtol(text, &rest, 10);
    program = (int)strtol(rest, NULL, 10);
    unsetenv(VARIABLE); /* workers must not get it, whatever it says */
    if (!keep_open(fd))
        return;
    upgrade_image_read(image, fd);
    if (keep_open(program))
        image->program = program;
    if (problem != NULL)
        (void)snprintf(image->problem, sizeof image->problem, "%s", problem);
    unsetenv(PROBLEM_VARIABLE);
}

int upgrade_image_offer(int fd, int program)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%d %d", fd, program);
    if (setenv(VARIABLE, text, 1) < 0 || fcntl(fd, F_SETFD, 0) < 0)
        return STDIO_BUS_ERR;
    if (program >= 0)
        (void)fcntl(program, F_SETFD, 0);
    return STDIO_BUS_OK;
}

void upgrade_image_withdraw(int fd, int program)
{
    unsetenv(VARIABLE);
    descriptor_close(fd);
    if (program >= 0)
        descriptor_close(program);
}

void upgrade_image_give_back(const struct upgrade_image *image, char *const *argv,
                             const char *problem)
{
    char path[32];

    if (image->problem[0] != '\0') {
        terminal_line(stderr, "stdio_bus: neither the next program nor this one can go on: %s",
                      problem);
        return;
    }
    errno = ENOENT;
    if (image->program >= 0 && setenv(PROBLEM_VARIABLE, problem, 1) == 0 &&
        upgrade_image_offer(image->fd, image->program) == STDIO_BUS_OK) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", image->program);
        execv(path, argv);
    }
    terminal_line(stderr, "stdio_bus: %s; and the program before cannot go on: %s", problem,
                  strerror(errno));
}

void upgrade_image_free(struct upgrade_image *image)
{
    free(image->bytes);
    image->bytes = NULL;
    if (image->fd > STDERR_FILENO)
        close(image->fd);
    if (image->program >= 0)
        close(image->program);
    image->fd = image->program = -1;
}
