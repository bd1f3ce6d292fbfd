/* The text of --help. */
#ifndef STDIO_BUS_CLI_HELP_H
#define STDIO_BUS_CLI_HELP_H

/* Static. */
const char *help_text(void);

#endif
