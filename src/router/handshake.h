/* MCP: the messages that began the conversation with a process. The next process of its clients
 * gets them again (supervisor/replay.h). Where clients share the process, what they have in common
 * too (router/one_handshake.h). */
#ifndef STDIO_BUS_ROUTER_HANDSHAKE_H
#define STDIO_BUS_ROUTER_HANDSHAKE_H

#include "base/list.h"
#include "router/kept_message.h"
#include "router/peer.h"
#include "router/remembered.h"
#include "router/subscriptions.h"
#include "router/versions.h"

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

/* The levels of log messages: the most talkative one is the lowest. */
enum log_rank { RANK_NONE, RANK_DEBUG, RANK_EMERGENCY = RANK_DEBUG + 7 };

/* What the answer to initialize says. */
struct handshake_answer {
    char version[64];                /* protocolVersion, cut to fit; "": none */
    bool has[HANDSHAKE_LISTS];       /* capabilities, */
    bool announces[HANDSHAKE_LISTS]; /* and their listChanged */
};

/* What the handshakes that clients share have in common, at all workers. */
struct shared_handshakes {
    struct list errands; /* those with something that the daemon itself has to send
                          * (router/errand.h) */
    bool noted;          /* it may not be empty, or */
    bool forgot;         /* memory was lacking to remember an answer; the owner resets it */
    struct subscriptions subscriptions;
};

struct handshake {
    struct peer *worker;
    struct kept_message parts[HANDSHAKE_PARTS];
    struct handshake_answer answer;
    bool answered; /* initialize, with a result */
    bool lost;     /* a part, or the answer, was too long: the messages cannot be sent again */
    bool replays;  /* to a new process, whose answer to the part `awaited` has not come yet */
    bool watches;  /* where each client has a process: it may have subscribed to resources */
    enum handshake_part awaited;

    /* Where clients share it: */
    struct shared_handshakes *shared; /* the router's; NULL: they do not */
    struct list_node errand;          /* in its list: the process is to be sent something */
    struct list versions;             /* struct version */
    struct list waiting; /* clients held until another client's initialize is answered */
    struct list own;     /* extras of the daemon's requests in flight, but for initialize */
    struct list levels;  /* extras of clients' requests in flight that set the level */
    uint64_t confirmer;  /* the client whose notifications/initialized the process got; 0: none */
    uint64_t teller;     /* the client whose notifications/roots/list_changed the process got last;
                          * 0: none */
    bool lacks_roots;    /* the process has asked for roots last of a client that has none */
    enum log_rank rank;  /* of the last level that it was sent; RANK_NONE: unknown */
    char
        begun[VERSION_NAME_MAX]; /* the version of the initialize that is kept; length 0: unknown */
    size_t begun_len;
    struct remembering remembering;
    size_t ranks[RANK_EMERGENCY + 1]; /* how many clients have set each level */
    struct process_subscriptions subscriptions;
};

/* The worker's handshake, a new one if it has none. `shared` as above. NULL if out of memory. */
struct handshake *handshake_of(struct peer *worker, struct shared_handshakes *shared);

/* Keeps a copy of a client's message. An initialize forgets what was kept before. STDIO_BUS_ERR if
 * out of memory. */
int handshake_keep(struct handshake *handshake, enum handshake_part part,
                   const struct message *message);

/* Keeps the initialize that the next process gets, which asks for this version: at most
 * VERSION_NAME_MAX bytes. STDIO_BUS_ERR if out of memory. */
int handshake_begin(struct handshake *handshake, const struct message *initialize,
                    struct slice version);

/* The answer to initialize has come from the first process. Accepts NULL. STDIO_BUS_ERR if out of
 * memory. */
int handshake_note_answer(struct handshake *handshake, const struct message *answer);

/* Reads an answer to initialize. STDIO_BUS_EINVAL: it is an error, or too long. STDIO_BUS_ERR if
 * out of memory. */
int handshake_read_answer(struct handshake_answer *to, const struct message *answer);

/* Reads one that was kept. */
int handshake_read_line(struct handshake_answer *to, struct slice line);

/* The list of which the server says that it has it. */
enum handshake_list handshake_list_of(enum remembered_list list);

/* The lists whose changes it announces: bits, by enum handshake_list. */
static inline unsigned handshake_announced(const struct handshake_answer *answer)
{
    unsigned lists = 0;

    for (int i = 0; i < HANDSHAKE_LISTS; i++)
        lists |= answer->announces[i] ? 1u << i : 0;
    return lists;
}

/* The process may have to be sent something (one_handshake_errand). */
void handshake_note_errand(struct handshake *handshake);

/* Whether the process has to answer the daemon: initialize, for clients that wait, or what clients
 * have in common. Accepts NULL. */
bool handshake_is_busy(const struct handshake *handshake);

/* Whether it stays when the last client has left. */
bool handshake_outlives_clients(const struct handshake *handshake);

/* The name of a level, and back; RANK_NONE: it is none. */
const char *handshake_level(enum log_rank rank);
enum log_rank handshake_rank(struct slice level);

/* Frees the worker's handshake, if it has one. No client waits on it, none subscribes. */
void handshake_forget(struct peer *worker);

#endif
