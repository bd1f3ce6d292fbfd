#include "build_config.h"

#include "topics/run_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "rmp/run_file.h"

#define FILE_MODE 0600
#define EVENTS_MORE 16               /* that a file may have beside twice those that are kept */
#define BYTES_MORE ((uint64_t)65536) /* the same, beside four times the bytes */

/* A file that is being written. */
struct writing {
    struct run_files *files;
    struct rmp_run *run;
    const char *path;
    int fd;
    uint64_t len; /* bytes that were written */
};

bool run_files_prepare(struct run_files *files)
{
    char problem[RUN_DIRECTORY_PROBLEM_MAX];

    if (files->is_ready)
        return true;
    files->is_ready = run_directory_make(files->directory, problem);
    if (!files->is_ready)
        log_warn(files->log, "rmp", "the history is not written to %s: %s", files->directory,
                 problem);
    return files->is_ready;
}

static bool warn(const struct writing *writing, const char *what)
{
    log_warn(writing->files->log, "rmp", "cannot %s %s: %s", what, writing->path, strerror(errno));
    return false;
}

/* --- frames --- */

static bool write_bytes(struct writing *writing, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(writing->fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        bytes += n;
        len -= (size_t)n;
        writing->len += (uint64_t)n;
    }
    return true;
}

/* Frees the frame. */
static bool write_frame(struct writing *writing, char *frame, size_t len)
{
    bool written = frame != NULL && write_bytes(writing, frame, len);

    free(frame);
    return written || warn(writing, "write to");
}

/* The last `count` events of the run. */
static bool write_events(struct writing *writing, size_t count)
{
    const struct list *events = &writing->run->events;
    const struct list_node *node = &events->head;
    size_t len;

    for (size_t i = 0; i < count; i++)
        node = node->prev;
    for (; node != &events->head; node = node->next) {
        char *frame = run_file_event(writing->run->id,
                                     list_entry(node, struct rmp_kept_event, link), &len);

        if (!write_frame(writing, frame, len))
            return false;
    }
    return true;
}

/* Closes the file, whose content counts as written then, or does not. */
static bool finish(struct writing *writing, bool written)
{
    if (written && writing->files->sync && fsync(writing->fd) < 0)
        written = warn(writing, "synchronize");
    if (close(writing->fd) < 0 && errno != EINTR && written)
        written = warn(writing, "close");
    return written;
}

/* --- a file that is there --- */

/* Opens the file at its end. False: the file has changed, and is to be written as a whole. */
static bool open_end(struct writing *writing)
{
    struct stat status;

    writing->fd = open(writing->path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (writing->fd < 0)
        return false;
    if (fstat(writing->fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (uint64_t)status.st_size == writing->run->file_len && lseek(writing->fd, 0, SEEK_END) >= 0)
        return true;
    descriptor_close(writing->fd);
    return false;
}

static bool append(struct writing *writing)
{
    struct rmp_run *run = writing->run;

    if (!finish(writing, write_events(writing, run->unsaved))) {
        run->file_len = 0; /* its content is unknown: it is written as a whole next time */
        return false;
    }
    run->file_len += writing->len;
    run->file_count += run->unsaved;
    run->unsaved = 0;
    return true;
}

/* --- the whole file --- */

static bool write_accepted(struct writing *writing, struct slice accepted)
{
    size_t len;
    char *frame;

    if (accepted.len == 0)
        return true;
    frame = run_file_accepted(writing->run->id, writing->run->owner->user, accepted,
                              writing->run->last_ms, &len);
    return write_frame(writing, frame, len);
}

/* Writes the name of a new file to the disk. */
static bool sync_directory(const struct run_files *files)
{
    int fd = open(files->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = fd >= 0 && fsync(fd) == 0;

    if (!done)
        log_warn(files->log, "rmp", "cannot synchronize %s: %s", files->directory, strerror(errno));
    if (fd >= 0)
        descriptor_close(fd);
    return done;
}

/* What takes the place of the file is written beside it. */
static bool write_whole(struct writing *writing, struct slice accepted)
{
    struct run_files *files = writing->files;
    struct rmp_run *run = writing->run;
    char path[RUN_PATH_MAX];
    const char *to = writing->path;
    bool written;

    writing->path = run_directory_path(path, files->directory, run->id, RUN_SUFFIX_NEW);
    writing->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (writing->fd < 0)
        return warn(writing, "create");
    written = finish(writing,
                     write_accepted(writing, accepted) && write_events(writing, run->count));
    if (written && rename(path, to) < 0)
        written = warn(writing, "rename");
    if (!written) {
        (void)unlink(path); /* a part of it is of no use */
        return false;
    }
    run->file_len = writing->len;
    run->file_count = run->count;
    run->unsaved = 0;
    return !files->sync || sync_directory(files);
}

/* Whether the file has much that was forgotten. */
static bool is_long(const struct rmp_run *run)
{
    return run->file_count + run->unsaved > 2 * run->count + EVENTS_MORE ||
           run->file_len > 4 * (uint64_t)run->bytes + BYTES_MORE;
}

bool run_files_write(struct run_files *files, struct rmp_run *run, struct slice accepted)
{
    char path[RUN_PATH_MAX];
    struct writing writing = {.files = files, .run = run, .fd = -1};

    if (!run_files_prepare(files))
        return false;
    writing.path = run_directory_path(path, files->directory, run->id, RUN_SUFFIX);
    if (run->file_len > 0 && !is_long(run) && open_end(&writing))
        return append(&writing);
    return write_whole(&writing, accepted);
}

void run_files_remove(struct run_files *files, struct rmp_id run)
{
    char path[RUN_PATH_MAX];

    if (files->directory[0] == '\0' ||
        unlink(run_directory_path(path, files->directory, run, RUN_SUFFIX)) == 0 || errno == ENOENT)
        return;
    log_warn(files->log, "rmp", "cannot remove %s: %s", path, strerror(errno));
}
