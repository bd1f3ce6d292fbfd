/* MCP: the messages that began the conversation of a client with its process. The next process of
 * that client gets them again (bus/replay.h). */
#ifndef STDIO_BUS_ROUTER_HANDSHAKE_H
#define STDIO_BUS_ROUTER_HANDSHAKE_H

#include "json/message.h"

enum handshake_part {
    HANDSHAKE_INITIALIZE,
    HANDSHAKE_SET_LEVEL,   /* the last logging/setLevel */
    HANDSHAKE_INITIALIZED, /* the notification */
    HANDSHAKE_PARTS
};

/* A longer message is not kept. */
#define HANDSHAKE_PART_MAX 65536

/* The lists of a server whose changes it may announce. */
enum handshake_list { HANDSHAKE_TOOLS, HANDSHAKE_PROMPTS, HANDSHAKE_RESOURCES, HANDSHAKE_LISTS };

/* What the answer to initialize says. */
struct handshake_answer {
    char version[64];                /* protocolVersion, cut to fit; "": none */
    bool announces[HANDSHAKE_LISTS]; /* capabilities: listChanged */
};

struct handshake_message {
    struct message_id id;
    struct slice bytes; /* in the client's framing; data NULL: it was not sent */
};

struct handshake {
    struct handshake_message parts[HANDSHAKE_PARTS];
    struct handshake_answer answer;
    bool answered; /* initialize, with a result */
    bool lost;     /* a part, or the answer, was too long: the messages cannot be sent again */
    bool replays;  /* to a new process, whose answer to the part `awaited` has not come yet */
    enum handshake_part awaited;
};

/* Keeps a copy of a client's message in *place, which is NULL at first; the caller frees it. An
 * initialize forgets what was kept before. STDIO_BUS_ERR when memory is out. */
int handshake_keep(struct handshake **place, enum handshake_part part,
                   const struct message *message);

/* The answer to initialize has come from the client's first process. NULL is fine. STDIO_BUS_ERR
 * when memory is out. */
int handshake_note_answer(struct handshake *handshake, const struct message *answer);

/* Reads an answer to initialize. STDIO_BUS_EINVAL: it is an error, or too long. STDIO_BUS_ERR when
 * memory is out. */
int handshake_read_answer(struct handshake_answer *to, const struct message *answer);

/* NULL is fine. */
void handshake_free(struct handshake *handshake);

#endif
