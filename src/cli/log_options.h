/* The log that the command line and the environment ask for. */
#ifndef STDIO_BUS_CLI_LOG_OPTIONS_H
#define STDIO_BUS_CLI_LOG_OPTIONS_H

#include "cli/options.h"

/* The socket of the system log, where it usually is. */
#ifdef __APPLE__
#define SYSTEM_LOG_PATH "/var/run/syslog"
#else
#define SYSTEM_LOG_PATH "/dev/log"
#endif

/* Opens it. Returns EXIT_DONE, or another exit status after its reason was printed; then nothing is
 * open. */
int log_options_open(struct log *log, const struct options *options);

#endif
