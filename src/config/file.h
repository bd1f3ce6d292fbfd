/* The text of a file, of at most 16 MiB. */
#ifndef STDIO_BUS_CONFIG_FILE_H
#define STDIO_BUS_CONFIG_FILE_H

#include "config/diagnostics.h"

/* Reads an open descriptor to its end, and does not close it. *text and *len are NULL and 0 at
 * first; the caller frees *text in any case. Returns false after an error was reported. */
bool file_read_fd(char **text, size_t *len, int fd, struct diagnostics *diagnostics);

/* The same for the file of that name, or for its text in diagnostics->sources, where it is kept
 * otherwise. In one that ends in ".jsonc" comments and trailing commas are blank. */
bool file_read(char **text, size_t *len, const char *path, struct diagnostics *diagnostics);

#endif
