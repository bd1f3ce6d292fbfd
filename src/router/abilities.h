/* What an initialize says of its client.
 *
 * MCP: the capabilities of a client that a server's questions need. A server whose clients share
 * its handshake is offered all of them, whatever its first client has: the daemon refuses a
 * question that the client asked cannot answer (router/questions.h). */
#ifndef STDIO_BUS_ROUTER_ABILITIES_H
#define STDIO_BUS_ROUTER_ABILITIES_H

#include "json/message.h"

enum ability {
    ABILITY_KNOWN,    /* the client has sent initialize: what is not set it does not have */
    ABILITY_SAMPLING, /* sampling/createMessage */
    ABILITY_TOOLS,    /* the same, with tools */
    ABILITY_FORM,     /* elicitation/create, by a form */
    ABILITY_URL,      /* the same, by a URL */
    ABILITY_ROOTS,    /* roots/list */
    ABILITIES
};

static inline bool ability_is_set(unsigned abilities, enum ability ability)
{
    return (abilities >> ability & 1) != 0;
}

/* What the capabilities of an initialize announce: bit i is an enum ability. */
unsigned abilities_read(const struct message *initialize);

/* Writes the clientInfo.name of an initialize, cut to fit after a whole character; "" if it has
 * none, or one of over 1024 bytes. MCP, ACP and LSP have it in the same place. */
void client_program_read(char *to, size_t size, const struct message *initialize);

/* An initialize that offers all of them. */
struct offer {
    struct message message;
    struct scan_fields fields;
};

/* At most this number of bytes longer than the client's. */
#define OFFER_BYTES_MAX 128

/* Makes an initialize that offers all abilities of that of a client, every other byte of which
 * stays as it is. STDIO_BUS_ERR if out of memory, and then nothing is to be freed. */
int offer_make(struct offer *offer, const struct message *initialize);

void offer_free(struct offer *offer);

#endif
