/* stdio_bus ctl: asks a running daemon, or tells it something, by its control socket. */
#ifndef STDIO_BUS_CLI_CTL_H
#define STDIO_BUS_CLI_CTL_H

#include "bus/service.h"
#include "cli/control_link.h"

/* The words after "ctl". `page_services`: those that a page needs, up to a NULL. Returns the exit
 * status after any reason was printed. */
int ctl_run(int argc, char *const argv[], const struct service *const *page_services);

#endif
