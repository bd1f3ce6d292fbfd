/* stdio_bus ctl top: the busiest clients and workers. */
#ifndef STDIO_BUS_CLI_CTL_TOP_H
#define STDIO_BUS_CLI_CTL_TOP_H

#include "cli/control_link.h"
#include "json/text.h"

/* Measures for a second and adds what it saw, in lines of at most `width` columns. False with
 * link->reason. */
bool ctl_top_frame(struct control_link *link, struct json_text *to, size_t width);

#endif
