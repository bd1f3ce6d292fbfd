/* Frames that are made here: of the bridge and of the command line client. */
#ifndef STDIO_BUS_RMP_COMPOSE_H
#define STDIO_BUS_RMP_COMPOSE_H

#include "rmp/frame.h"

struct rmp_draft {
    struct rmp_header header;
    const char *type;     /* of the body */
    struct slice topic;   /* meta.topic; empty: none */
    struct slice payload; /* MsgPack: a map or bin */
    bool ack;             /* meta.ack */
    const char *ended;    /* meta.ended; NULL: none */
};

/* The whole frame, to be freed by the caller. NULL if out of memory. */
char *rmp_compose(const struct rmp_draft *draft, size_t *len);

#endif
