/* stdio_bus ctl page: the page of a daemon that has but a control socket. */
#ifndef STDIO_BUS_CLI_CTL_PAGE_H
#define STDIO_BUS_CLI_CTL_PAGE_H

#include "bus/service.h"
#include "cli/control_link.h"

#define EXIT_REFUSED 1 /* with link->reason */

/* Serves the page until a signal ends the process: its figures are asked for by the link, which is
 * opened again, at `path`, after the daemon was restarted. Returns the exit status, after the
 * reason was printed unless it is EXIT_REFUSED. `services`: see page/viewer.h. */
int ctl_page_run(struct control_link *link, const char *path,
                 const struct service *const *services);

#endif
