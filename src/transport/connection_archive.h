/* A connection in an archive: its descriptors, what was read and not taken, what waits to be
 * written. */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_ARCHIVE_H
#define STDIO_BUS_TRANSPORT_CONNECTION_ARCHIVE_H

#include "base/archive.h"
#include "transport/connection.h"

/* Saves the connection, or loads it into one that is closed: it is open then as it was, with these
 * options but for the descriptors, which are in the archive. What the check and the reader of the
 * framing know is their owner's to carry, and so is the reservation of memory (below). */
void connection_archive(struct archive *archive, struct connection *connection,
                        struct transport *transport, const struct connection_options *options);

void traffic_archive(struct archive *archive, struct traffic *traffic);

/* After all connections were loaded, in this order, each for all of them: reserves the memory that
 * the connection had; lets it wait for what it waited for. */
void connection_reserve_again(struct connection *connection);
void connection_wait_again(struct connection *connection);

#endif
