/* stdio_bus ctl top: the busiest clients and workers. */
#ifndef STDIO_BUS_CLI_CTL_TOP_H
#define STDIO_BUS_CLI_CTL_TOP_H

#include <stdbool.h>

#include "cli/control_link.h"

/* By what the rows are sorted, the largest first. */
enum ctl_top_order { TOP_BY_MESSAGES, TOP_BY_BYTES, TOP_BY_REQUESTS, TOP_BY_QUEUE };

/* Their names, and the first letter of each is its key. The last is NULL. */
extern const char *const ctl_top_orders[];

/* On a terminal: shows them every second until q is typed. Elsewhere: prints what a second was
 * like. Returns the exit status, with link->reason unless it is EXIT_DONE. */
int ctl_top_run(struct control_link *link, enum ctl_top_order order);

#endif
