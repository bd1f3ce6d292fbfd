/* stdio_bus --list: what this user shares. */
#ifndef STDIO_BUS_SHARE_LIST_H
#define STDIO_BUS_SHARE_LIST_H

/* Prints a line for each daemon, and what differs between those of the same command. Returns the
 * exit status. */
int list_run(void);

#endif
