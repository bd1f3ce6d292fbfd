/* stdio_bus ctl --mcp: an MCP server on stdin and stdout, of both eras, for the shared servers of
 * this user (share/tools.h). */
#ifndef STDIO_BUS_CLI_CTL_MCP_H
#define STDIO_BUS_CLI_CTL_MCP_H

/* Serves until the end of stdin. Returns the exit status. */
int ctl_mcp_run(void);

#endif
