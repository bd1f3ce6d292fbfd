/* MCP, stateless era: results that their server lets clients keep (ttlMs), given to all clients of
 * the pool until they are stale; while no process runs, lists and server/discover after that too,
 * with a ttlMs of 0. All clients of a pool have what the server's environment gives it: cacheScope
 * makes no difference among them. */
#ifndef STDIO_BUS_ROUTER_FRESH_H
#define STDIO_BUS_ROUTER_FRESH_H

#include "base/archive.h"
#include "router/decision.h"
#include "router/kept_message.h"

#define FRESH_COUNT_MAX 256
#define FRESH_BYTES_MAX ((size_t)8 << 20)    /* of all answers; the oldest make way */
#define FRESH_ANSWER_MAX ((size_t)1 << 20)   /* bytes; a longer one is not kept */
#define FRESH_REQUEST_MAX ((size_t)64 << 10) /* the same */
#define FRESH_TTL_MAX_MS 86400000            /* a day; a longer time counts as that */

struct fresh {
    struct list answers; /* struct fresh_answer (fresh.c), the oldest first */
    size_t count, bytes;
    uint64_t edition; /* another one after each change of what is given after its time, too */
};

void fresh_init(struct fresh *fresh);
void fresh_clear(struct fresh *fresh);

/* Decides about a client's request, if the answer is known. False: the server is to be asked; if
 * its answer may be kept, decision->named is the key. */
bool fresh_takes(struct decision *decision);

/* The server's answer to the request with this key. */
void fresh_answered(struct decision *decision, struct slice key);

/* A notification of the server: what it says has changed is forgotten. */
void fresh_note(const struct decision *decision);

/* Saves the answers, or loads them where there is none; one for which memory is lacking is not
 * loaded. NULL: none is saved, and what there is of them is not loaded. */
void fresh_archive(struct fresh *fresh, struct archive *archive);

/* The same of what is given after its time too: loaded, it is stale. */
void fresh_archive_stale(struct fresh *fresh, struct archive *archive);

/* Moves all answers of `from` to another one, which has none. */
void fresh_move(struct fresh *to, struct fresh *from);

#endif
