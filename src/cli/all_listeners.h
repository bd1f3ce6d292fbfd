/* The listeners of the command line and of the configuration, together. */
#ifndef STDIO_BUS_CLI_ALL_LISTENERS_H
#define STDIO_BUS_CLI_ALL_LISTENERS_H

#include "cli/options.h"
#include "config/config.h"

/* The listeners of the command line, with the keys that the configuration has for them, those of
 * the configuration, and that of its metrics. They borrow what they name. To be freed; NULL when
 * memory is out. */
struct listen_config *all_listeners(const struct options *options, const struct config *config,
                                    size_t *all);

#endif
