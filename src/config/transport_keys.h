/* The object "transport" of configurations for the reference implementation: another name for the
 * framing of the clients and for the mode of the command line. */
#ifndef STDIO_BUS_CONFIG_TRANSPORT_KEYS_H
#define STDIO_BUS_CONFIG_TRANSPORT_KEYS_H

#include "config/diagnostics.h"
#include "framing/framing.h"

/* Reports all that is not understood: it may change the framing, and then no message would be read
 * as it was written. */
void transport_keys_check(struct diagnostics *diagnostics, const struct json_value *transport);

/* Reads a valid object. Sets *framing if it has one; *socket_mode is static: "unix", "tcp" or, for
 * stdio and without the key, NULL. */
void transport_keys_read(const struct json_value *transport, const struct framing **framing,
                         const char **socket_mode);

#endif
