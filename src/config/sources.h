/* The texts of a configuration, file by file: kept as they were read, so that the next program of
 * an upgrade in place reads the same configuration, whatever has become of the files. */
#ifndef STDIO_BUS_CONFIG_SOURCES_H
#define STDIO_BUS_CONFIG_SOURCES_H

#include <stdbool.h>

#include "base/archive.h"
#include "config/diagnostics.h"

struct source {
    struct source *next;
    struct slice text;
    char path[]; /* and the text after it */
};

/* Zeroed ones are empty. */
struct sources {
    struct source *first, *last; /* in the order in which they were read; each path once */
    bool replace_files;          /* they are read in place of the files */
};

/* Whether files are looked at no more, nor what they name: the daemon before has done so. NULL is
 * fine. */
static inline bool sources_replace_files(const struct sources *sources)
{
    return sources != NULL && sources->replace_files;
}

/* NULL: the file was not read. */
const struct source *sources_find(const struct sources *sources, struct slice path);

/* Keeps a copy of the text. False: out of memory. */
bool sources_add(struct sources *sources, struct slice path, struct slice text);

/* Saves them, or loads them: then they replace the files. */
void sources_archive(struct archive *archive, struct sources *sources);

void sources_free(struct sources *sources);

/* --- file --- */

/* The text of a file, of at most 16 MiB. */

/* Reads an open descriptor to its end, and does not close it. *text and *len are NULL and 0 at
 * first; the caller frees *text in any case. Returns false after an error was reported. */
bool file_read_fd(char **text, size_t *len, int fd, struct diagnostics *diagnostics);

/* The same for the file of that name, or for its text in diagnostics->sources, where it is kept
 * otherwise. In one that ends in ".jsonc" comments and trailing commas are blank. */
bool file_read(char **text, size_t *len, const char *path, struct diagnostics *diagnostics);

#endif
