#include "build_config.h"

#include "config/pool_mode.h"

#include <stddef.h>

const char *const pool_mode_clients_words[] = {"shared", "sticky", "exclusive", NULL};
const char *const pool_mode_session_words[] = {"sessionId", "params.sessionId", NULL};
const char *const pool_mode_ids_words[] = {"preserve", "rewrite", NULL};
const char *const pool_mode_protocol_words[] = {"mcp", "acp", "lsp", NULL};
const char *const pool_mode_exit_words[] = {"replay", "close", NULL};

const char *pool_mode_protocol_name(enum pool_protocol protocol)
{
    return protocol != PROTOCOL_UNKNOWN ? pool_mode_protocol_words[protocol - PROTOCOL_UNKNOWN - 1]
                                        : NULL;
}

struct pool_mode pool_mode_of_stateless(const struct pool_mode *mode)
{
    struct pool_mode stateless = *mode;

    stateless.clients = mode->stateless;
    stateless.on_exit = EXIT_REPLACES; /* nothing is lost with the process */
    /* Clients of that era count listen requests from 0: unless the configuration insists on their
     * ids, those that share a process get numbers. */
    if (mode->clients == CLIENTS_EXCLUSIVE && mode->stateless != CLIENTS_EXCLUSIVE)
        stateless.rewrite_ids = true;
    return stateless;
}

bool pool_mode_is_plain(const struct pool_mode *mode)
{
    return mode->clients == CLIENTS_SHARED && mode->protocol == PROTOCOL_UNKNOWN &&
           !mode->session_in_params && !mode->rewrite_ids && mode->request_timeout_sec == 0;
}
