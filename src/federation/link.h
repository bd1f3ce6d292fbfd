/* One end of a link: a socket of this daemon at one side, messages to another node at the other. */
#ifndef STDIO_BUS_FEDERATION_LINK_H
#define STDIO_BUS_FEDERATION_LINK_H

#include "event/event_loop.h"
#include "federation/nodes.h"
#include "process/process.h"

struct nats_link;

/* A pool of other nodes, or of one of them; its workers are dialled. */
struct nats_remote {
    struct list_node link; /* hub->links.remotes */
    struct dialer dialer;
    struct nats_hub *hub;
    char *id, *subject;                          /* of the pool; of requests that open a link */
    void (*ended)(const struct nats_link *link); /* for one with `overflow`, before its end */
    struct nats_link *dialed;                    /* by the dialer's last call */
    int64_t none_ms;                             /* when no node took a client of a full pool */
    char node[NATS_NODE_ID_LEN + 1];   /* to which alone they go; "": any that serves the pool */
    char reason[NATS_LINK_REASON_MAX]; /* why the last link has ended */
};

enum link_state {
    LINK_IDLE,    /* asking: nothing was sent; no node knows it */
    LINK_OPENING, /* asking: no node has accepted it yet */
    LINK_LINKED,
    LINK_CUT /* the other end is gone; the socket gets the bytes that are pending */
};

struct nats_link {
    struct list_node in_all, in_node;
    struct nats_hub *hub;
    struct nats_node *node;     /* LINK_LINKED */
    struct nats_remote *remote; /* asking; NULL: serving */
    struct link_stream stream;
    uint64_t number, peer_number; /* here; at the node */
    uint64_t mark;                /* LINK_LINKED: link_mark of both ends */
    uint64_t acked_before;        /* at the tick before */
    int64_t since_ms;             /* LINK_OPENING */
    enum link_state state;
    unsigned overflow; /* the number of the worker that serves once it is linked; 0: none */
    unsigned declined;
    int fd;            /* -1: it is closed */
    unsigned read_len; /* of the next read, in bytes */
    unsigned interest; /* of the event loop */
    bool starved;      /* there was no memory for what its socket has to read */
    bool is_shut;      /* the socket was told the end of the other direction */
    struct stdio_bus_event_deferred deferred;
};

/* A link of this number without a socket. NULL if out of memory. */
struct nats_link *link_new(struct nats_hub *hub, uint64_t number);

/* The link has the socket, or an error is in errno. */
int link_attach(struct nats_link *link, int fd);

/* A new link with one end of a pair of sockets; *fd is the other one, the caller's. NULL with
 * errno. */
struct nats_link *link_create(struct nats_hub *hub, int *fd);

/* Ends the link at once, here alone. */
void link_drop(struct nats_link *link);

/* The other end is gone, or will not come. */
void link_cut(struct nats_link *link, const char *reason);

/* The same, and the other end is told. */
void link_break(struct nats_link *link, const char *reason);

/* The node has accepted the link, or has opened it. */
void link_join(struct nats_link *link, struct nats_node *node, uint64_t peer_number);

/* Asks the nodes that serve the pool. */
void link_open(struct nats_link *link);

/* A message for the link, which has an end there. */
void link_came(struct nats_link *link, const struct link_message *message);

/* Sends what can be sent now. */
void link_flush(struct nats_link *link);

/* There is another connection to NATS: what is not acknowledged is sent again. */
void link_resume(struct nats_link *link);

/* A second has passed. */
void link_tick(struct nats_link *link);

#endif
