/* How the workers of a pool are shared among clients that know nothing of the bus: the keys of a
 * pool beside those of spec 9 (stdio_bus.conf(5), "Sharing"). */
#ifndef STDIO_BUS_CONFIG_SHARING_H
#define STDIO_BUS_CONFIG_SHARING_H

#include <stdbool.h>

#include "format/json.h"

enum sharing_clients {
    CLIENTS_SHARED,   /* any worker serves any client: the specification */
    CLIENTS_STICKY,   /* a client stays with the worker that got its first message */
    CLIENTS_EXCLUSIVE /* and has that worker to itself */
};

/* What a client and a worker of the pool speak; decides how a request is cancelled. */
enum sharing_protocol { PROTOCOL_UNKNOWN, PROTOCOL_MCP, PROTOCOL_ACP, PROTOCOL_LSP };

struct sharing {
    enum sharing_clients clients;
    enum sharing_protocol protocol;
    bool session_in_params;       /* the session id is params.sessionId */
    bool rewrite_ids;             /* each request gets an id of ours at its answerer */
    unsigned spare;               /* exclusive: workers kept started and idle */
    unsigned busy_timeout_sec;    /* exclusive: how long a client waits for a worker */
    unsigned request_timeout_sec; /* 0: none */
};

#define SHARING_SPARE_MAX 1024
#define SHARING_TIMEOUT_MAX 86400 /* seconds */

/* The words that the keys may have as their values; each list ends with NULL. */
extern const char *const sharing_clients_words[];
extern const char *const sharing_session_words[];
extern const char *const sharing_ids_words[];
extern const char *const sharing_protocol_words[];

/* The place of the string `value` in a list of words, or -1. */
int sharing_word(const struct json_value *value, const char *const *words);

/* What the keys of a pool say, after its rules were found kept: its protocol sets what the other
 * keys do not. */
void sharing_read(struct sharing *sharing, const struct json_value *pool);

/* True when the pool is just as the specification has it. */
bool sharing_is_plain(const struct sharing *sharing);

/* True when the progress tokens of its requests matter. */
static inline bool sharing_reads_tokens(const struct sharing *sharing)
{
    return sharing->clients != CLIENTS_EXCLUSIVE || sharing->rewrite_ids ||
           sharing->request_timeout_sec > 0;
}

#endif
