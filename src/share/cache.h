/* The directory of what shared servers have answered, for daemons that are started later: a file
 * for each server (share/memory.h). All of it may be lost at any time.
 *
 * It is stdio_bus in $XDG_CACHE_HOME, else in ~/Library/Caches on macOS and in ~/.cache elsewhere;
 * sockets may be in it too (share/directory.h). */
#ifndef STDIO_BUS_SHARE_CACHE_H
#define STDIO_BUS_SHARE_CACHE_H

#include <stddef.h>

#include "base/slice.h"
#include "share/directory.h"

#define CACHE_BYTES_MAX ((size_t)64 << 20) /* of all files; the oldest make way */
#define CACHE_FILE_MAX ((size_t)32 << 20)  /* bytes; a longer file is not read */
#define CACHE_KEY_LEN 32                   /* digits */
#define CACHE_NAME_MAX 192                 /* of a file: of which daemon, the key, ".memory" */

/* Writes the path. STDIO_BUS_EINVAL with a line in `reason`: there is none, and it is "". */
int cache_find(char path[DIRECTORY_MAX], char reason[DIRECTORY_REASON_MAX]);

/* Writes the name of the file for a daemon (struct daemon) and a key of CACHE_KEY_LEN digits. */
void cache_name(char name[CACHE_NAME_MAX], const char *base, const char *key);

/* Reads a file of the directory, a regular one of this user alone, which is the newest then. The
 * bytes are to be freed, also if there are none. NULL with errno set. */
char *cache_read(int directory, const char *name, size_t *len);

/* Puts a file with these bytes in place of the one of this name, and removes the oldest files if
 * there are too many bytes. STDIO_BUS_ERR with errno set: there is none of this name any more. */
int cache_write(int directory, const char *name, struct slice head, struct slice bytes);

/* Removes the file, if there is one. */
void cache_remove(int directory, const char *name);

/* Removes all files of this daemon. Returns how many there were; -1 with errno set: one is left. */
int cache_forget(int directory, const char *base);

#endif
