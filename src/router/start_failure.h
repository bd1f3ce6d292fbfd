/* What is known of a pool whose processes end before they have sent anything. Its owner fills it
 * (bus/early_exit.h). */
#ifndef STDIO_BUS_ROUTER_START_FAILURE_H
#define STDIO_BUS_ROUTER_START_FAILURE_H

#include <stdint.h>

#define START_FAILURE_ATTEMPTS 2 /* for a client whose message reaches no process */

struct start_failure {
    unsigned count;   /* such processes in a row; 0: the pool is well */
    unsigned total;   /* ever */
    int64_t at_ms;    /* the last one */
    const char *text; /* of the last one, for clients; NULL: there was none */
    const char *data; /* the same: the member "data" of the error, JSON; NULL: none */
};

#endif
