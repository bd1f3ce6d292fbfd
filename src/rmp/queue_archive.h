/* The queues of a broker in an archive, and the publishers that wait. A copy that waits for many
 * subscriptions is in the archive once, named by the number of its publication. */
#ifndef STDIO_BUS_RMP_QUEUE_ARCHIVE_H
#define STDIO_BUS_RMP_QUEUE_ARCHIVE_H

#include "rmp/broker_archive.h"

/* After topics and subscriptions. */
void rmp_archive_queues(struct rmp_archive *state);

#endif
