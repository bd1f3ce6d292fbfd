/* A siege: honest clients beside hostile ones, with bounds on the time that the honest wait and on
 * the memory of the daemon. */
#ifndef TESTS_CHAOS_SIEGE_H
#define TESTS_CHAOS_SIEGE_H

#include <stdbool.h>
#include <stdint.h>

#include "chaos_client.h"

struct chaos;

/* The limits of the configuration of a besieged daemon. */
#define SIEGE_INPUT (4 << 20)
#define SIEGE_MEMORY (16 << 20)
#define SIEGE_TABLE 1024 /* sessions, pending requests */
#define SIEGE_TABLE_ORIGINS 4096
#define SIEGE_CONNECTIONS 128
#define SIEGE_SLOW_SEC 1      /* slow_client_timeout_sec */
#define SIEGE_ABANDONED_SEC 1 /* abandoned_id_sec */
#define SIEGE_HALF_CLOSE_SEC 1
#define SIEGE_FRAME_SEC 1
#define SIEGE_BACKPRESSURE_SEC 20
#define SIEGE_RESUME (4 << 20) /* max_resume_total: answers of HTTP that are kept */
#define SIEGE_IDLE_SEC 1       /* session_idle_sec */

/* Connections of an origin that did not read begin to be served ten a second, closed ones too. */
#define SIEGE_BACKLOG_SEC (SIEGE_CONNECTIONS / 10)

#define SIEGE_WAITS 10001

struct patience {                          /* of honest clients */
    unsigned long long waits[SIEGE_WAITS]; /* answers by their milliseconds, the last: and more */
    unsigned long long count;              /* of these */
    bool visits;                           /* visitors come and go */
    int64_t begun_ms, last_ms;             /* the siege; the last look at the clients */
    int64_t stalled_ms[CLIENTS_MAX];       /* of each slot, in this siege */
    int64_t most_stalled_ms;               /* of one client in one siege */
    long peak_kib;                         /* the daemon's memory in a siege */
};

/* Lets the hostile and the honest clients connect. */
void siege_begin(struct chaos *chaos);

/* The honest send no more requests. */
void siege_fade(struct chaos *chaos);

/* Checks the waiting of the honest, and closes the connections of the hostile. */
void siege_end(struct chaos *chaos);

/* Looks at the clients, and now and then at the daemon's memory. */
void siege_step(struct chaos *chaos);

/* The next visitor: a few requests, and it is gone. */
void siege_visitor(struct chaos *chaos, struct profile *profile);

/* Checks the time that an answered request has waited. */
void siege_answered(struct chaos *chaos, const struct client *client, const struct entry *request);

void siege_print(const struct chaos *chaos);

#endif
