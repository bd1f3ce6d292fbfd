/* The page of what is not in this process: a bus of its own, with nothing but the page, on
 * loopback. */
#ifndef STDIO_BUS_PAGE_VIEWER_H
#define STDIO_BUS_PAGE_VIEWER_H

#include "bus/service.h"
#include "page/figures.h"

/* Prints the URL, and serves it until a signal ends the process. Whoever has the URL may look: its
 * path is random, and set in *source. `services`: those of HTTP and of the page, up to a NULL.
 * Returns the exit status, after the reason was printed. */
int viewer_run(struct figures_source *source, const struct service *const *services);

#endif
