/* The tokens of listeners while the bus runs: their files are read again when they have changed. */
#ifndef STDIO_BUS_BUS_TOKEN_RELOAD_H
#define STDIO_BUS_BUS_TOKEN_RELOAD_H

#include "bus/clients.h"
#include "bus/listeners.h"

/* The token of the client's listener that is equal to the text, or to what the text between the
 * quotes of a valid JSON string says; NULL: there is none. The file is looked at first, once a
 * second at most. The result lives until the next call for the listener. */
const struct named_token *token_reload_find(const struct client *client, struct slice token);
const struct named_token *token_reload_find_escaped(const struct client *client, struct slice raw);

/* The client has shown the token, whose name is logged unless the client has shown the same one
 * before. When the token leaves the file, the client is disconnected: the next time another client
 * shows a token, or at a SIGUSR1. */
void token_reload_note(struct client *client, const struct named_token *token);

/* Looks at the file of a listener now; `is_other`: it has another one than before. */
void token_reload_file(struct bus_listener *listener, bool is_other);

/* Looks at the files of all listeners now. */
void token_reload_all(struct stdio_bus *bus);

#endif
