#include "build_config.h"

#include "topics/run_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/descriptor.h"

#define READ_BYTES ((size_t)65536)

/* What was read and is no whole frame yet. */
struct input {
    int fd;
    char *data;
    size_t start, len, capacity; /* data[start] to data[len - 1] */
    bool at_end;
};

static bool has_room(struct input *input)
{
    size_t needed;
    char *data;

    if (input->start > 0)
        memmove(input->data, input->data + input->start, input->len - input->start);
    input->len -= input->start;
    input->start = 0;
    needed = input->len < input->capacity ? input->capacity : input->len + READ_BYTES;
    data = array_grow(input->data, &input->capacity, needed, 1);
    if (data != NULL)
        input->data = data;
    return data != NULL;
}

/* Reads on. False with errno set. */
static bool fill(struct input *input)
{
    ssize_t n;

    if (!has_room(input))
        return false;
    do
        n = read(input->fd, input->data + input->len, input->capacity - input->len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return false;
    input->len += (size_t)n;
    input->at_end = n == 0;
    return true;
}

static bool warn(const struct run_reading *reading, const char *problem)
{
    log_warn(reading->log, "rmp", "%s: %s after %" PRIu64 " bytes; what follows is lost",
             reading->path, problem, reading->len);
    return false;
}

static bool read_frames(struct run_reading *reading, struct input *input)
{
    for (;;) {
        struct run_file_record record;
        enum run_file_found found =
            run_file_read(&record, reading->run,
                          slice_of(input->data + input->start, input->len - input->start),
                          reading->max_body);

        if (found == RUN_FILE_DAMAGED)
            return warn(reading, "damaged");
        if (found == RUN_FILE_CUT && input->at_end)
            return input->start == input->len || warn(reading, "cut");
        if (found == RUN_FILE_CUT && !fill(input))
            return warn(reading, strerror(errno));
        if (found == RUN_FILE_CUT)
            continue;
        if (!reading->take(reading->user_data, found, &record))
            return warn(reading, "out of memory");
        input->start += record.len;
        reading->len += record.len;
    }
}

/* Opens a regular file. -1 with errno set, EINVAL for anything else of this name. */
static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0) {
        if (S_ISREG(status.st_mode))
            return fd;
        errno = EINVAL;
    }
    descriptor_close(fd);
    return -1;
}

bool run_reader_read(struct run_reading *reading)
{
    struct input input = {.fd = open_file(reading->path)};
    bool good;

    if (input.fd < 0) {
        log_warn(reading->log, "rmp", "cannot open %s: %s", reading->path, strerror(errno));
        return false;
    }
    /* The first read also makes the memory that read_frames looks into. */
    good = fill(&input) ? read_frames(reading, &input) : warn(reading, strerror(errno));
    descriptor_close(input.fd);
    free(input.data);
    return good;
}
