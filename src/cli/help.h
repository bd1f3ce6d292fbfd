/* The text of --help. */
#ifndef STDIO_BUS_CLI_HELP_H
#define STDIO_BUS_CLI_HELP_H

/* Its parts, up to a NULL. Static. */
const char *const *help_sections(void);

#endif
