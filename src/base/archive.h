/* An archive: the state of a daemon as bytes, for the daemon that takes its place in the same
 * process (upgrade/upgrade.h). The same calls write it and read it, so that both are in step: a
 * function that is given a value saves it, or loads it.
 *
 * Numbers take eight bytes, texts their length and their bytes; a mark between the parts shows at
 * once where two builds differ. What is loaded is checked: after the first problem nothing is
 * loaded any more, and each value is as it was. The bytes hold for one machine. */
#ifndef STDIO_BUS_BASE_ARCHIVE_H
#define STDIO_BUS_BASE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

struct archive {
    bool saves;          /* otherwise it loads */
    const char *problem; /* NULL: none so far; static text */
    const char *part;    /* the name of the current part, or in which the problem is */
    char *data;          /* where it saves */
    const char *input;   /* where it loads */
    size_t len, capacity;
    size_t at; /* where it loads: the next byte */
    int *fds;  /* the descriptors that it names */
    size_t fd_count, fd_capacity;
    int stand_in; /* loaded in place of each descriptor, duplicated: for a look at the archive by a
                   * process that does not have them; -1: none */
};

/* An empty archive to save into; one to load from, over bytes that live as long as it. */
void archive_begin_saving(struct archive *archive);
void archive_begin_loading(struct archive *archive, struct slice bytes, int stand_in);

/* Frees what the archive has. Descriptors stay open. */
void archive_free(struct archive *archive);

static inline bool archive_ok(const struct archive *archive)
{
    return archive->problem == NULL;
}

/* Notes a problem, the first one. */
void archive_fail(struct archive *archive, const char *problem);

/* A problem, unless `holds`, which is looked at where the archive is loaded. */
static inline void archive_expect(struct archive *archive, bool holds, const char *problem)
{
    if (!holds && !archive->saves)
        archive_fail(archive, problem);
}

/* Begins a part of this name, of at most eight letters. */
void archive_mark(struct archive *archive, const char *name);

/* An integer of any type but bool. */
void archive_integer(struct archive *archive, void *value, size_t size);
#define ARCHIVE_INTEGER(archive, lvalue) archive_integer(archive, &(lvalue), sizeof(lvalue))

/* A choice: an integer, a bool or an enum from 0 to `last`. */
void archive_choice(struct archive *archive, void *value, size_t size, uint64_t last);
#define ARCHIVE_ENUM(archive, lvalue, last)                                                        \
    archive_choice(archive, &(lvalue), sizeof(lvalue), (uint64_t)(last))

static inline void archive_flag(struct archive *archive, bool *value)
{
    archive_choice(archive, value, sizeof *value, 1);
}

/* A number that is there already: saved, and the loaded one returned. `last`: the largest there
 * is. */
uint64_t archive_number(struct archive *archive, uint64_t value, uint64_t last);

/* How many elements follow, each of at least one number. */
size_t archive_count(struct archive *archive, size_t count);

/* The next element of a list, or NULL where it is loaded. `node` is the first one at first. */
#define ARCHIVE_NEXT(archive, node, type, member)                                                  \
    ((archive)->saves ? list_entry(list_pass(&(node)), type, member) : NULL)

/* A text; its data may be NULL. A loaded one lives as long as the archive's bytes. */
struct slice archive_slice(struct archive *archive, struct slice text);

/* A text with its NUL in `size` bytes. */
void archive_text(struct archive *archive, char *text, size_t size);

/* Bytes of this length. */
void archive_bytes(struct archive *archive, void *bytes, size_t len);

/* Where it loads: the next `len` bytes; NULL with a problem if there are fewer. */
const char *archive_take(struct archive *archive, size_t len);

/* Where it saves: adds bytes. */
void archive_add(struct archive *archive, const char *bytes, size_t len);

/* A descriptor, or -1. */
void archive_fd(struct archive *archive, int *fd);

/* Marks all descriptors that were saved or loaded, and further ones, as close-on-exec, or not.
 * STDIO_BUS_ERR with errno set, if that fails for one. */
void archive_note_fd(struct archive *archive, int fd);
int archive_set_cloexec(const struct archive *archive, bool on);

#endif
