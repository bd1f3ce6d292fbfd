/* What all HTTP clients of a bus share: their sessions, and notes for the end of the round. */
#ifndef STDIO_BUS_WEB_HUB_H
#define STDIO_BUS_WEB_HUB_H

#include "base/hash_table.h"
#include "base/siphash.h"
#include "bus/state.h"
#include "http/event_log.h"

#define HTTP_DATE_MAX 40

/* Sessions now, and ever. */
struct http_metrics {
    uint64_t sessions, begun;
};

struct http_hub {
    struct stdio_bus *bus;
    struct list sessions; /* struct http_session, the oldest first */
    struct list resting;  /* of these, that no connection serves, the longest idle first */
    bool wanted;          /* a client waits for a process that an idle session may give up */
    struct timer yields;  /* when the next one may (web/sessions.h) */
    struct hash_table by_id;
    struct siphash_key key;
    size_t session_count;
    struct event_memory events; /* of all sessions */
    struct list due;            /* struct http_due: something is to be done at the round's end */
    char date[HTTP_DATE_MAX];   /* a whole field, for this second: */
    size_t date_len;
    int64_t date_until_ms;
    struct http_metrics metrics; /* as they were measured last */
};

/* A note that its owner is to be looked at; lives inside the owner. */
struct http_due {
    struct list_node node; /* hub->due */
    void (*act)(struct http_due *due);
};

/* NULL if out of memory. */
struct http_hub *http_hub_create(struct stdio_bus *bus);

/* Notes the owner, unless it was noted. */
void http_hub_note(struct http_hub *hub, struct http_due *due);

/* Acts on the notes. */
void http_hub_run(struct http_hub *hub);

/* The field Date, whole. */
struct slice http_hub_date(struct http_hub *hub);

/* Frees the hub, which has no sessions any more. */
void http_hub_free(struct http_hub *hub);

#endif
