#include "build_config.h"

#include "config/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/descriptor.h"
#include "json/document.h"

const struct source *sources_find(const struct sources *sources, struct slice path)
{
    const struct source *source = sources->first;

    while (source != NULL && !slice_is(path, source->path))
        source = source->next;
    return source;
}

static void append(struct sources *sources, struct source *source)
{
    if (sources->last != NULL)
        sources->last->next = source;
    else
        sources->first = source;
    sources->last = source;
}

bool sources_add(struct sources *sources, struct slice path, struct slice text)
{
    struct source *source;
    char *copy;

    ASSERT(path.data != NULL && text.data != NULL);
    if (sources_find(sources, path) != NULL)
        return true;
    source = malloc(sizeof *source + path.len + 1 + text.len);
    if (source == NULL)
        return false;
    memcpy(source->path, path.data, path.len);
    source->path[path.len] = '\0';
    copy = source->path + path.len + 1;
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    source->text = slice_of(copy, text.len);
    source->next = NULL;
    append(sources, source);
    return true;
}

static void load_source(struct archive *archive, void *sources, void *item)
{
    struct slice path = archive_slice(archive, slice_of(NULL, 0));
    struct slice text = archive_slice(archive, slice_of(NULL, 0));

    archive_expect(archive,
                   path.data != NULL && text.data != NULL &&
                       memchr(path.data, '\0', path.len) == NULL,
                   "a file of the configuration has no text");
    (void)item;
    if (archive_ok(archive))
        archive_made(archive, sources_add(sources, path, text));
}

void sources_archive(struct archive *archive, struct sources *sources)
{
    const struct source *source;
    size_t count = 0;

    for (source = sources->first; source != NULL; source = source->next)
        count++;
    archive_mark(archive, "sources");
    count = archive_count(archive, count);
    if (archive->saves) {
        for (source = sources->first; source != NULL; source = source->next) {
            (void)archive_slice(archive, slice_of_text(source->path));
            (void)archive_slice(archive, source->text);
        }
        return;
    }
    archive_load(archive, count, load_source, sources);
    sources->replace_files = true;
}

void sources_free(struct sources *sources)
{
    struct source *source, *next;

    for (source = sources->first; source != NULL; source = next) {
        next = source->next;
        free(source);
    }
    *sources = (struct sources){.first = NULL};
}

/* --- file --- */

#define FILE_MAX ((size_t)16 << 20) /* bytes */
#define FIRST_READ 16384

/* read(2) that waits, also on a non-blocking descriptor, and continues after signals. */
static ssize_t read_some(int fd, char *to, size_t size)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ssize_t n;

    for (;;) {
        n = read(fd, to, size);
        if (n >= 0)
            return n;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            (void)descriptor_poll(&poll_fd, 1, -1);
        else if (errno != EINTR)
            return -1;
    }
}

/* Doubles *text, which holds `*capacity` bytes. */
static bool grow(char **text, size_t *capacity)
{
    size_t larger = *capacity > 0 ? *capacity * 2 : FIRST_READ;
    char *moved = realloc(*text, larger);

    if (moved == NULL)
        return false;
    *text = moved;
    *capacity = larger;
    return true;
}

bool file_read_fd(char **text, size_t *len, int fd, struct diagnostics *diagnostics)
{
    size_t capacity = 0;
    ssize_t n;

    while (*len <= FILE_MAX) {
        if (*len == capacity && !grow(text, &capacity)) {
            diagnostics_file(diagnostics, "out of memory");
            return false;
        }
        n = read_some(fd, *text + *len, capacity - *len);
        if (n == 0)
            return true;
        if (n < 0) {
            diagnostics_file(diagnostics, "cannot read: %s", strerror(errno));
            return false;
        }
        *len += (size_t)n;
    }
    diagnostics_file(diagnostics, "larger than %zu MiB", FILE_MAX >> 20);
    return false;
}

static bool is_jsonc(const char *path)
{
    static const char ending[] = ".jsonc";
    size_t len = strlen(path);

    return len >= sizeof ending && strcmp(path + len - (sizeof ending - 1), ending) == 0;
}

static bool read_path(char **text, size_t *len, const char *path, struct diagnostics *diagnostics)
{
    bool read;
    int fd;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        diagnostics_file(diagnostics, "cannot open: %s", strerror(errno));
        return false;
    }
    read = file_read_fd(text, len, fd, diagnostics);
    close(fd);
    return read;
}

static bool copy_source(char **text, size_t *len, const struct source *source,
                        struct diagnostics *diagnostics)
{
    if (source == NULL) {
        diagnostics_file(diagnostics, "it was not read by the daemon of before");
        return false;
    }
    *text = malloc(source->text.len + 1);
    if (*text == NULL) {
        diagnostics_file(diagnostics, "out of memory");
        return false;
    }
    memcpy(*text, source->text.data, source->text.len);
    *len = source->text.len;
    return true;
}

bool file_read(char **text, size_t *len, const char *path, struct diagnostics *diagnostics)
{
    struct sources *sources = diagnostics->sources;
    struct slice name = slice_of_text(path);
    bool read = sources != NULL && sources_replace_files(sources)
                    ? copy_source(text, len, sources_find(sources, name), diagnostics)
                    : read_path(text, len, path, diagnostics);

    if (read && sources != NULL && !sources_add(sources, name, slice_of(*text, *len))) {
        diagnostics_file(diagnostics, "out of memory");
        return false;
    }
    if (read && is_jsonc(path))
        comments_blank(*text, *len);
    return read;
}
