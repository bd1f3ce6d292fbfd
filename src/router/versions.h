/* MCP: the protocol versions that clients of one process have asked for in initialize, each with
 * the server's answer. */
#ifndef STDIO_BUS_ROUTER_VERSIONS_H
#define STDIO_BUS_ROUTER_VERSIONS_H

#include "base/list.h"
#include "router/kept_message.h"

/* At most this number is kept for a process: another one takes the place of the oldest one that was
 * refused or, without any, of the oldest but that with which the handshake began. */
#define VERSIONS_MAX 8

#define VERSION_NAME_MAX 64
#define VERSION_ANSWER_MAX 1048576 /* bytes of an answer to initialize */

enum version_state {
    VERSION_WANTED, /* the server is to be asked */
    VERSION_ASKED,
    VERSION_ANSWERED, /* with a result */
    VERSION_REFUSED   /* with an error; answer.line.data NULL: the answer cannot be kept */
};

struct version {
    struct list_node node;
    enum version_state state;
    char name[VERSION_NAME_MAX];
    size_t name_len;
    struct kept_message request; /* of its first client; as long as it is wanted */
    struct kept_message answer;
};

/* NULL: no client has asked for it. */
struct version *versions_find(const struct list *versions, struct slice name);

/* The version that is wanted or asked for, or NULL: there is one at most. */
struct version *versions_open(const struct list *versions);

/* A version of this name of VERSION_NAME_MAX bytes at most, of which there is none. NULL if out of
 * memory. */
struct version *versions_new(struct list *versions, struct slice name);

/* A version that is wanted, in place of one of this name. NULL if out of memory. */
struct version *versions_add(struct list *versions, struct slice name,
                             const struct message *initialize);

/* Forgets the versions without a result, or all. */
void versions_forget(struct list *versions, bool all);

/* The server has answered. NULL: what came is no whole message. STDIO_BUS_ERR if out of memory, and
 * then nothing has changed. */
int versions_settle(struct version *version, const struct message *answer);

/* Saves them, or loads them where there are none. */
void versions_archive(struct list *versions, struct archive *archive);

#endif
