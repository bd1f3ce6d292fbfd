#include "build_config.h"

#include "config/sources.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

const struct source *sources_find(const struct sources *sources, struct slice path)
{
    const struct source *source = sources->first;

    while (source != NULL && !slice_equal(slice_of(source->path, strlen(source->path)), path))
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
            (void)archive_slice(archive, slice_of(source->path, strlen(source->path)));
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
