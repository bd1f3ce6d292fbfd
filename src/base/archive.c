#include "build_config.h"

#include "base/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define FIRST_CAPACITY 16384
#define NUMBER_BYTES 8
#define NO_MEMORY "out of memory"
#define CUT "the state is cut"

void archive_begin_saving(struct archive *archive)
{
    *archive = (struct archive){.saves = true, .stand_in = -1};
}

void archive_begin_loading(struct archive *archive, struct slice bytes, int stand_in)
{
    *archive = (struct archive){.input = bytes.data, .len = bytes.len, .stand_in = stand_in};
}

void archive_free(struct archive *archive)
{
    free(archive->data);
    free(archive->fds);
    *archive = (struct archive){.stand_in = -1};
}

void archive_fail(struct archive *archive, const char *problem)
{
    if (archive->problem == NULL)
        archive->problem = problem;
}

void archive_lacks_memory(struct archive *archive)
{
    archive_fail(archive, NO_MEMORY);
}

/* --- bytes --- */

void archive_add(struct archive *archive, const char *bytes, size_t len)
{
    size_t larger = archive->capacity > 0 ? archive->capacity : FIRST_CAPACITY;
    char *moved;

    if (!archive_ok(archive) || len == 0)
        return;
    while (larger - archive->len < len)
        larger *= 2;
    if (larger > archive->capacity) {
        moved = realloc(archive->data, larger);
        if (moved == NULL) {
            archive_lacks_memory(archive);
            return;
        }
        archive->data = moved;
        archive->capacity = larger;
    }
    memcpy(archive->data + archive->len, bytes, len);
    archive->len += len;
}

const char *archive_take(struct archive *archive, size_t len)
{
    if (archive_ok(archive) && len > archive->len - archive->at)
        archive_fail(archive, CUT);
    if (!archive_ok(archive))
        return NULL;
    archive->at += len;
    return archive->input + archive->at - len;
}

void archive_bytes(struct archive *archive, void *bytes, size_t len)
{
    const char *from;

    if (archive->saves)
        archive_add(archive, bytes, len);
    else if ((from = archive_take(archive, len)) != NULL && len > 0)
        memcpy(bytes, from, len);
}

void archive_mark(struct archive *archive, const char *name)
{
    char mark[NUMBER_BYTES] = {0}, found[NUMBER_BYTES] = {0};
    size_t len = strlen(name);

    if (archive_ok(archive))
        archive->part = name;
    memcpy(mark, name, len < sizeof mark ? len : sizeof mark);
    memcpy(found, mark, sizeof mark);
    archive_bytes(archive, found, sizeof found);
    archive_expect(archive, memcmp(mark, found, sizeof mark) == 0, "the state is of another form");
}

/* --- numbers --- */

uint64_t archive_number(struct archive *archive, uint64_t value, uint64_t last)
{
    uint64_t found = value;

    archive_bytes(archive, &found, sizeof found);
    archive_expect(archive, found <= last, "the state has a number out of its range");
    return archive_ok(archive) ? found : value;
}

static uint64_t read_value(const void *value, size_t size)
{
    uint8_t byte;
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (size) {
    case sizeof byte:
        memcpy(&byte, value, sizeof byte);
        return byte;
    case sizeof two:
        memcpy(&two, value, sizeof two);
        return two;
    case sizeof four:
        memcpy(&four, value, sizeof four);
        return four;
    default:
        memcpy(&eight, value, sizeof eight);
        return eight;
    }
}

static void write_value(void *value, size_t size, uint64_t number)
{
    uint8_t byte = (uint8_t)number;
    uint16_t two = (uint16_t)number;
    uint32_t four = (uint32_t)number;

    switch (size) {
    case sizeof byte:
        memcpy(value, &byte, sizeof byte);
        break;
    case sizeof two:
        memcpy(value, &two, sizeof two);
        break;
    case sizeof four:
        memcpy(value, &four, sizeof four);
        break;
    default:
        memcpy(value, &number, sizeof number);
    }
}

void archive_choice(struct archive *archive, void *value, size_t size, uint64_t last)
{
    uint64_t number = archive_number(archive, read_value(value, size), last);

    if (!archive->saves && archive_ok(archive))
        write_value(value, size, number);
}

void archive_integer(struct archive *archive, void *value, size_t size)
{
    archive_choice(archive, value, size,
                   size < sizeof(uint64_t) ? (UINT64_C(1) << size * 8) - 1 : UINT64_MAX);
}

size_t archive_count(struct archive *archive, size_t count)
{
    size_t most = archive->saves ? SIZE_MAX : (archive->len - archive->at) / NUMBER_BYTES;
    uint64_t found = archive_number(archive, count, most);

    return archive_ok(archive) ? (size_t)found : 0;
}

/* --- texts --- */

struct slice archive_slice(struct archive *archive, struct slice text)
{
    bool is_there = text.data != NULL;
    size_t len;

    archive_flag(archive, &is_there);
    if (!is_there || !archive_ok(archive))
        return slice_of(NULL, 0);
    len = (size_t)archive_number(archive, text.len, SIZE_MAX);
    if (archive->saves) {
        archive_add(archive, text.data, len);
        return text;
    }
    text.data = archive_take(archive, len);
    return slice_of(text.data, text.data != NULL ? len : 0);
}

void archive_text(struct archive *archive, char *text, size_t size)
{
    struct slice found = archive_slice(archive, slice_of_text(text));

    archive_expect(archive, found.len < size, "a text of the state is too long");
    if (archive->saves || !archive_ok(archive))
        return;
    if (found.len > 0)
        memcpy(text, found.data, found.len);
    text[found.len] = '\0';
}

/* --- fields --- */

static void archive_field(struct archive *archive, char *value, const struct archive_field *field)
{
    struct slice *slice = (struct slice *)(void *)value;

    switch (field->kind) {
    case ARCHIVE_AS_BYTES:
        archive_bytes(archive, value, field->size);
        break;
    case ARCHIVE_AS_CHOICE:
        archive_choice(archive, value, field->size, field->last);
        break;
    case ARCHIVE_AS_TEXT:
        archive_text(archive, value, field->size);
        break;
    case ARCHIVE_AS_SLICE:
        *slice = archive_slice(archive, *slice);
        break;
    }
}

void archive_fields(struct archive *archive, void *object, const struct archive_field *fields,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        archive_field(archive, (char *)object + fields[i].offset, &fields[i]);
}

/* --- lists --- */

void archive_load(struct archive *archive, size_t count, archive_item_fn *fn, void *owner)
{
    for (; count > 0 && archive_loads(archive); count--)
        fn(archive, owner, NULL);
}

static void visit_items(struct archive *archive, const struct list *list, size_t offset,
                        archive_item_fn *fn, void *owner)
{
    struct list_node *node = list->head.next;

    while (node != &list->head && archive_ok(archive))
        fn(archive, owner, (char *)list_pass(&node) - offset);
}

void archive_list(struct archive *archive, const struct list *list, size_t offset,
                  archive_item_fn *fn, void *owner)
{
    size_t count = archive_count(archive, list_count(list));

    if (archive->saves)
        visit_items(archive, list, offset, fn, owner);
    else
        archive_load(archive, count, fn, owner);
}

void archive_items(struct archive *archive, const struct list *list, size_t offset,
                   archive_item_fn *fn, void *owner, const char *problem)
{
    size_t count = list_count(list);

    archive_expect(archive, archive_count(archive, count) == count, problem);
    visit_items(archive, list, offset, fn, owner);
}

/* --- descriptors --- */

void archive_note_fd(struct archive *archive, int fd)
{
    size_t larger = archive->fd_capacity * 2 + 64;
    int *moved;

    if (archive->fd_count == archive->fd_capacity) {
        moved = realloc(archive->fds, larger * sizeof *moved);
        if (moved == NULL) {
            archive_lacks_memory(archive);
            return;
        }
        archive->fds = moved;
        archive->fd_capacity = larger;
    }
    archive->fds[archive->fd_count++] = fd;
}

/* In a look, another descriptor of the same kind stands for it. */
static void load_fd(struct archive *archive, int *fd, uint64_t number)
{
    int found = (int)number;

    if (archive->stand_in >= 0)
        found = fcntl(archive->stand_in, F_DUPFD_CLOEXEC, archive->stand_in);
    if (found < 0 || fcntl(found, F_GETFD) < 0)
        archive_fail(archive, "a descriptor of the state is not open");
    else
        *fd = found;
}

void archive_fd(struct archive *archive, int *fd)
{
    uint64_t number = archive_number(archive, *fd >= 0 ? (uint64_t)*fd + 1 : 0,
                                     (uint64_t)INT32_MAX);

    if (archive_ok(archive) && number > 0 && !archive->saves)
        load_fd(archive, fd, number - 1);
    else if (!archive->saves)
        *fd = -1;
    if (archive_ok(archive) && *fd >= 0 && archive->stand_in < 0)
        archive_note_fd(archive, *fd);
}

int archive_set_cloexec(const struct archive *archive, bool on)
{
    int status = STDIO_BUS_OK, error = 0;

    for (size_t i = 0; i < archive->fd_count; i++) {
        if (archive->fds[i] <= STDERR_FILENO ||
            fcntl(archive->fds[i], F_SETFD, on ? FD_CLOEXEC : 0) == 0)
            continue;
        status = STDIO_BUS_ERR;
        error = errno;
    }
    errno = error;
    return status;
}
