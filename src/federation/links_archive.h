/* Links in the archive of an upgrade in place. The other ends hear nothing for a moment; with the
 * next connection to NATS both say how far they are, and go on. */
#ifndef STDIO_BUS_FEDERATION_LINKS_ARCHIVE_H
#define STDIO_BUS_FEDERATION_LINKS_ARCHIVE_H

#include "base/archive.h"
#include "federation/hub.h"

/* All links, and the id of this node; after the workers and clients at their sockets, and before
 * nats_links_start. */
void nats_links_archive(struct archive *archive, struct nats_hub *hub);

#endif
