/* The header fields that repeat parts of a message: MCP over HTTP in the stateless era (2026-07-28
 * and later). */
#ifndef STDIO_BUS_HTTP_MCP_HEADERS_H
#define STDIO_BUS_HTTP_MCP_HEADERS_H

#include <stdbool.h>

#include "base/slice.h"

#define MCP_HEADER_MISMATCH (-32020)

/* The first protocol version of the stateless era. */
#define MCP_STATELESS_VERSION "2026-07-28"

/* Values of fields, or of the message; data NULL: absent. */
struct mcp_headers {
    struct slice version; /* MCP-Protocol-Version; _meta's protocolVersion */
    struct slice method;  /* Mcp-Method */
    struct slice name;    /* Mcp-Name; params.name, uri or taskId, by the method */
};

/* Around the base64 of a value that a field cannot have as it is. */
#define MCP_ENCODED_BEFORE "=?base64?"
#define MCP_ENCODED_AFTER "?="

/* What Mcp-Name repeats. */
enum mcp_name { MCP_NAME_NONE, MCP_NAME_NAME, MCP_NAME_URI, MCP_NAME_TASK };
enum mcp_name mcp_name_of(struct slice method);

/* Whether the version, a date, is of the stateless era; of the other era, and one that is known. */
bool mcp_version_is_stateless(struct slice version);
bool mcp_version_is_handshake(struct slice version);

/* Compares the fields with the message, both without escapes: a request needs all of them, of a
 * notification those that are there count. Returns what does not fit, as a static text, or NULL. */
const char *mcp_headers_mismatch(const struct mcp_headers *fields,
                                 const struct mcp_headers *message, bool is_request);

#endif
