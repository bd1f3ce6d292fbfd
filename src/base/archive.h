/* An archive: the state of a daemon as bytes, for the daemon that takes its place in the same
 * process (upgrade/upgrade.h). The same calls write it and read it, so that both are in step: a
 * function that is given a value saves it, or loads it.
 *
 * Numbers take eight bytes, texts their length and their bytes; a mark between the parts shows at
 * once where two builds differ. What is loaded is checked: after the first problem nothing is
 * loaded any more, and each value is as it was, so that a caller need not look before its end. The
 * bytes hold for one machine. */
#ifndef STDIO_BUS_BASE_ARCHIVE_H
#define STDIO_BUS_BASE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
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

/* Whether it loads, without a problem so far. */
static inline bool archive_loads(const struct archive *archive)
{
    return !archive->saves && archive_ok(archive);
}

/* A problem, unless `holds`, which is looked at where the archive is loaded. */
static inline void archive_expect(struct archive *archive, bool holds, const char *problem)
{
    if (!holds && !archive->saves)
        archive_fail(archive, problem);
}

/* Notes that the process is out of memory. */
void archive_lacks_memory(struct archive *archive);

/* Whether what needs memory was made; if not, that is a problem. */
static inline bool archive_made(struct archive *archive, bool made)
{
    if (!made)
        archive_lacks_memory(archive);
    return made;
}

/* The same for a status: any but STDIO_BUS_OK is a problem. */
static inline bool archive_done(struct archive *archive, int status)
{
    return archive_made(archive, status == STDIO_BUS_OK);
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

/* Whether something is there that follows in the archive; false after a problem. */
static inline bool archive_present(struct archive *archive, bool is_there)
{
    archive_flag(archive, &is_there);
    return is_there && archive_ok(archive);
}

/* A number that is there already: saved, and the loaded one returned. `last`: the largest there
 * is. */
uint64_t archive_number(struct archive *archive, uint64_t value, uint64_t last);

/* How many elements follow, each of at least one number. */
size_t archive_count(struct archive *archive, size_t count);

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

/* --- the plain fields of a struct --- */

enum archive_kind {
    ARCHIVE_AS_BYTES, /* any bytes will do: integers, arrays of them, structs without padding */
    ARCHIVE_AS_CHOICE,
    ARCHIVE_AS_TEXT,
    ARCHIVE_AS_SLICE
};

struct archive_field {
    enum archive_kind kind;
    uint32_t offset, size;
    uint32_t last; /* of a choice */
};

#define ARCHIVE_FIELD(kind, type, member, last)                                                    \
    {                                                                                              \
        (kind), offsetof(type, member), sizeof(((type *)NULL)->member), (last)                     \
    }
#define ARCHIVE_CHOICE(type, member, last) ARCHIVE_FIELD(ARCHIVE_AS_CHOICE, type, member, last)

/* Up to 14 members of one kind. */
#define ARCHIVE_FLAGS(type, ...) ARCHIVE_EACH(ARCHIVE_A_FLAG, type, __VA_ARGS__)
#define ARCHIVE_INTEGERS(type, ...) ARCHIVE_EACH(ARCHIVE_AN_INTEGER, type, __VA_ARGS__)
#define ARCHIVE_TEXTS(type, ...) ARCHIVE_EACH(ARCHIVE_A_TEXT, type, __VA_ARGS__)
#define ARCHIVE_SLICES(type, ...) ARCHIVE_EACH(ARCHIVE_A_SLICE, type, __VA_ARGS__)

#define ARCHIVE_A_FLAG(type, member) ARCHIVE_FIELD(ARCHIVE_AS_CHOICE, type, member, 1)
#define ARCHIVE_AN_INTEGER(type, member) ARCHIVE_FIELD(ARCHIVE_AS_BYTES, type, member, 0)
#define ARCHIVE_A_TEXT(type, member) ARCHIVE_FIELD(ARCHIVE_AS_TEXT, type, member, 0)
#define ARCHIVE_A_SLICE(type, member) ARCHIVE_FIELD(ARCHIVE_AS_SLICE, type, member, 0)

/* clang-format off */
#define ARCHIVE_EACH(make, type, ...)                                                              \
    ARCHIVE_PICK(__VA_ARGS__, ARCHIVE_E14, ARCHIVE_E13, ARCHIVE_E12, ARCHIVE_E11, ARCHIVE_E10,     \
                 ARCHIVE_E9, ARCHIVE_E8, ARCHIVE_E7, ARCHIVE_E6, ARCHIVE_E5, ARCHIVE_E4,           \
                 ARCHIVE_E3, ARCHIVE_E2, ARCHIVE_E1, 0)(make, type, __VA_ARGS__)
#define ARCHIVE_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, picked, ...) picked
#define ARCHIVE_E1(make, type, a) make(type, a)
#define ARCHIVE_E2(make, type, a, ...) make(type, a), ARCHIVE_E1(make, type, __VA_ARGS__)
#define ARCHIVE_E3(make, type, a, ...) make(type, a), ARCHIVE_E2(make, type, __VA_ARGS__)
#define ARCHIVE_E4(make, type, a, ...) make(type, a), ARCHIVE_E3(make, type, __VA_ARGS__)
#define ARCHIVE_E5(make, type, a, ...) make(type, a), ARCHIVE_E4(make, type, __VA_ARGS__)
#define ARCHIVE_E6(make, type, a, ...) make(type, a), ARCHIVE_E5(make, type, __VA_ARGS__)
#define ARCHIVE_E7(make, type, a, ...) make(type, a), ARCHIVE_E6(make, type, __VA_ARGS__)
#define ARCHIVE_E8(make, type, a, ...) make(type, a), ARCHIVE_E7(make, type, __VA_ARGS__)
#define ARCHIVE_E9(make, type, a, ...) make(type, a), ARCHIVE_E8(make, type, __VA_ARGS__)
#define ARCHIVE_E10(make, type, a, ...) make(type, a), ARCHIVE_E9(make, type, __VA_ARGS__)
#define ARCHIVE_E11(make, type, a, ...) make(type, a), ARCHIVE_E10(make, type, __VA_ARGS__)
#define ARCHIVE_E12(make, type, a, ...) make(type, a), ARCHIVE_E11(make, type, __VA_ARGS__)
#define ARCHIVE_E13(make, type, a, ...) make(type, a), ARCHIVE_E12(make, type, __VA_ARGS__)
#define ARCHIVE_E14(make, type, a, ...) make(type, a), ARCHIVE_E13(make, type, __VA_ARGS__)
/* clang-format on */

void archive_fields(struct archive *archive, void *object, const struct archive_field *fields,
                    size_t count);
#define ARCHIVE_FIELDS(archive, object, fields)                                                    \
    archive_fields(archive, object, fields, sizeof(fields) / sizeof((fields)[0]))

/* --- lists --- */

/* Saves an item, or creates and loads one, where it is NULL. */
typedef void archive_item_fn(struct archive *archive, void *owner, void *item);

/* A list of any length: fn appends the items that it loads. */
void archive_list(struct archive *archive, const struct list *list, size_t offset,
                  archive_item_fn *fn, void *owner);
#define ARCHIVE_LIST(archive, list, type, member, fn, owner)                                       \
    archive_list(archive, list, offsetof(type, member), fn, owner)

/* A list that has the same items where it is loaded; another number is this problem. */
void archive_items(struct archive *archive, const struct list *list, size_t offset,
                   archive_item_fn *fn, void *owner, const char *problem);
#define ARCHIVE_ITEMS(archive, list, type, member, fn, owner, problem)                             \
    archive_items(archive, list, offsetof(type, member), fn, owner, problem)

/* Where it loads: calls fn for so many items. */
void archive_load(struct archive *archive, size_t count, archive_item_fn *fn, void *owner);

/* A function that a table names for upgrades in place: without these it costs nothing. */
#define ARCHIVE_OP(function) (WITH_UPGRADE ? (function) : NULL)

/* --- descriptors --- */

/* A descriptor, or -1. */
void archive_fd(struct archive *archive, int *fd);

/* Marks all descriptors that were saved or loaded, and further ones, as close-on-exec, or not.
 * STDIO_BUS_ERR with errno set, if that fails for one. */
void archive_note_fd(struct archive *archive, int fd);
int archive_set_cloexec(const struct archive *archive, bool on);

#endif
