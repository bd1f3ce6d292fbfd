/* MCP: what the server of a pool has answered to initialize and about its lists. Where clients
 * share a handshake, those that come while no process runs get it again (router/from_memory.h). */
#ifndef STDIO_BUS_ROUTER_REMEMBERED_H
#define STDIO_BUS_ROUTER_REMEMBERED_H

#include "router/versions.h"

enum remembered_list {
    REMEMBERED_TOOLS,
    REMEMBERED_PROMPTS,
    REMEMBERED_RESOURCES,
    REMEMBERED_TEMPLATES,
    REMEMBERED_LISTS
};

#define REMEMBERED_ALL ((1u << REMEMBERED_LISTS) - 1)
#define REMEMBERED_PAGES_MAX 256     /* of a list */
#define REMEMBERED_BYTES_MAX 4194304 /* of a list, and of the answers to initialize */
#define REMEMBERED_CURSOR_MAX 1024   /* bytes of a cursor */
#define REMEMBERED_REQUEST_MAX 65536 /* bytes of a request for a page */

/* The pages of one list, the first one first. */
struct remembered_pages {
    struct list pages; /* struct page (remembered.c) */
    size_t count, bytes;
    bool whole; /* the last one names no other */
};

struct remembered {
    struct list versions; /* struct version, all answered */
    struct remembered_pages lists[REMEMBERED_LISTS];
    bool failed;      /* memory was lacking: something is not remembered. The owner resets it */
    uint64_t edition; /* another one after each change */
    bool refuses_stateless; /* the server has answered that it does not know the stateless era */
    bool unfit; /* the server asks its client something that depends on the client: nothing of it is
                 * given to another one, ever */
};

void remembered_init(struct remembered *remembered);

/* Forgets all answers. */
void remembered_clear(struct remembered *remembered);

/* Forgets all, and remembers nothing any more. */
void remembered_refuse(struct remembered *remembered);

/* What the server has answered to a server/discover of the daemon's own. */
void remembered_set_era(struct remembered *remembered, bool refuses_stateless);

/* Whether nothing could be given to a client. */
static inline bool remembered_is_empty(const struct remembered *remembered)
{
    return list_empty(&remembered->versions);
}

/* Moves all of `from` to another one, which has nothing. */
void remembered_move(struct remembered *to, struct remembered *from);

/* --- initialize --- */

/* The answer to this protocol version; NULL: none is remembered. */
const struct version *remembered_version(const struct remembered *remembered, struct slice name);

/* Keeps a copy of a result, in place of an older one, unless it is too long. The name has
 * VERSION_NAME_MAX bytes at most. Returns whether there was another one. */
bool remembered_set_version(struct remembered *remembered, struct slice name,
                            const struct message *answer);

/* --- lists --- */

/* "tools/list" and so on; and the notification that says it has changed. */
const char *remembered_method(enum remembered_list list);

/* REMEMBERED_LISTS: it is no such method. */
enum remembered_list remembered_list_of(struct slice method);

/* The bits of the lists that a notification is about; 0: it is none of them. */
unsigned remembered_changed_by(struct slice method);

/* The answer to a client's request for a page of a list that is whole. NULL: none, or the request
 * has other params than a cursor and a progress token. */
const struct kept_message *remembered_page(struct remembered *remembered,
                                           const struct message *request);

/* The first page of a list, if `page` is NULL, or the page after it. NULL: there is none. */
const struct kept_message *remembered_next_page(const struct remembered *remembered,
                                                enum remembered_list list,
                                                const struct kept_message *page);

/* The lists that are asked for again. */
struct remembering {
    unsigned wanted; /* bits: lists that are to be asked for */
    unsigned told;   /* bits: the server itself has told its clients of the change */
    bool asks;       /* in the request of this number, for the page after the last one of: */
    uint32_t number;
    enum remembered_list list;
    struct remembered_pages fresh;
    unsigned changed; /* bits: lists that clients are to be told of */
};

void remembering_init(struct remembering *remembering);
void remembering_clear(struct remembering *remembering);

/* The next page to ask for, NULL: none. *cursor has data NULL for the first page; it lives until
 * the answer. */
const char *remembering_next(struct remembering *remembering, struct slice *cursor);

/* The answer to that; NULL: it was lost. True if the list is complete and differs from the one that
 * was remembered: it takes its place, and `changed` has its bit if clients are to be told. A list
 * that cannot be remembered is forgotten. */
bool remembering_answer(struct remembering *remembering, struct remembered *remembered,
                        const struct message *answer);

/* --- the archive --- */

/* Saves it, or loads it where nothing is remembered. What is loaded may be of any origin: each
 * answer is a whole line with a result. */
void remembered_archive(struct remembered *remembered, struct archive *archive);

#endif
