/* What a shared server has answered (router/remembered.h, router/fresh.h), in a file for the
 * daemons that come later (share/cache.h). The name of the file is a hash of all that the server
 * would see of its client, and of the size, time and inode of its program and of each argument that
 * is a file. If the file or its directory cannot be used, the server is started as if there was
 * none. */
#ifndef STDIO_BUS_SHARE_MEMORY_H
#define STDIO_BUS_SHARE_MEMORY_H

#include <stdint.h>

#include "base/log.h"
#include "config/config.h"
#include "router/fresh.h"
#include "router/remembered.h"
#include "share/cache.h"

struct pool;
struct stdio_bus;

struct memory {
    const struct pool_config *config; /* these, borrowed, and the path are set by the owner */
    const char *identity, *base;      /* of the daemon */
    struct log *log;
    const char *path; /* of the directory; NULL: there is no file */
    int directory;    /* -1: the same */
    char name[CACHE_NAME_MAX];
    struct remembered read; /* until memory_attach */
    struct fresh fresh;     /* the same */
    struct pool *pool;      /* since then */
    uint64_t starts;        /* of processes, when the name was found */
    uint64_t edition;       /* that the file has */
    int64_t due_ms;         /* when the file is to be written; 0: not */
    int64_t written_ms;
};

/* Opens the directory, and reads the file. Returns whether there is something to remember. */
bool memory_open(struct memory *memory);

/* The bus remembers what was read. */
void memory_attach(struct memory *memory, struct stdio_bus *bus);

/* After each round: writes the file if what is remembered is another one, once it is settled.
 * Returns how long that takes yet, in milliseconds; -1: nothing is to be written. */
int memory_keep(struct memory *memory);

void memory_close(struct memory *memory);

/* --- the bytes of a file --- */

#define MEMORY_HEAD 32

/* Writes the head of the file of this name for the bytes of an archive. */
void memory_write_head(char head[MEMORY_HEAD], const char *name, struct slice bytes);

/* Remembers what the bytes of the file of this name say, of both eras. NULL, or what is wrong with
 * them, and then nothing is remembered. */
const char *memory_load(struct remembered *to, struct fresh *fresh, const char *name,
                        struct slice bytes);

/* The key of the file's name. */
void memory_key(char key[CACHE_KEY_LEN + 1], const char *identity,
                const struct pool_config *config);

#endif
