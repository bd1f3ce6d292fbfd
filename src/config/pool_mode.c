#include "build_config.h"

#include "config/pool_mode.h"

#include <string.h>

#include "config/rmp_pool.h"

#define BUSY_TIMEOUT_SEC 10

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

/* The mode that a protocol implies. */
static const struct pool_mode presets[] = {
    [PROTOCOL_UNKNOWN] = {.clients = CLIENTS_SHARED},
    [PROTOCOL_MCP] = {.clients = CLIENTS_EXCLUSIVE, .on_exit = EXIT_REPLAYS, .spare = 1},
    [PROTOCOL_ACP] = {.clients = CLIENTS_STICKY,
                      .on_exit = EXIT_CLOSES,
                      .session_in_params = true,
                      .rewrite_ids = true},
    [PROTOCOL_LSP] = {.clients = CLIENTS_EXCLUSIVE, .on_exit = EXIT_CLOSES, .spare = 1},
};

int pool_mode_word(const struct json_value *value, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (slice_equal(value->text, slice_of(words[i], strlen(words[i]))))
            return i;
    }
    return -1;
}

/* The index of the key's word; `otherwise` if the key is missing. */
static int word_of(const struct json_value *pool, const char *key, const char *const *words,
                   int otherwise)
{
    const struct json_value *value = document_member(pool, key);

    return value != NULL ? pool_mode_word(value, words) : otherwise;
}

static unsigned number_of(const struct json_value *pool, const char *key, unsigned otherwise)
{
    const struct json_value *value = document_member(pool, key);
    int64_t number;

    return value != NULL && document_integer(value, &number) ? (unsigned)number : otherwise;
}

static int protocol_of(const struct json_value *pool)
{
    return word_of(pool, "protocol", pool_mode_protocol_words, -1) + 1;
}

/* Clients of MCP that share the only process of a pool stay with it, and it gets one handshake. */
static int read_clients(const struct json_value *pool, int protocol)
{
    int clients = word_of(pool, "clients", pool_mode_clients_words, (int)presets[protocol].clients);

    return clients == CLIENTS_SHARED && protocol == PROTOCOL_MCP &&
                   number_of(pool, "instances", 1) == 1
               ? CLIENTS_STICKY
               : clients;
}

unsigned pool_mode_instances(const struct json_value *pool)
{
    bool exclusive = read_clients(pool, protocol_of(pool)) == CLIENTS_EXCLUSIVE;

    return number_of(pool, "instances", exclusive ? POOL_MODE_INSTANCES : 1);
}

void pool_mode_read(struct pool_mode *mode, const struct json_value *pool)
{
    int protocol = protocol_of(pool);
    const struct pool_mode *preset = &presets[protocol];
    int clients = read_clients(pool, protocol);
    /* Programs of a protocol may leave a cancelled request unanswered, and their clients count from
     * 0 or 1: no id of one client may be in the way of another. */
    bool rewrite = preset->rewrite_ids ||
                   (protocol != PROTOCOL_UNKNOWN && clients != CLIENTS_EXCLUSIVE);

    /* Without "clients" the stateless era of MCP shares processes: it has no state for a client. */
    int stateless = protocol != PROTOCOL_MCP
                        ? CLIENTS_SHARED
                        : word_of(pool, "clients", pool_mode_clients_words, CLIENTS_STICKY);

    int on_exit = word_of(pool, "on_worker_exit", pool_mode_exit_words, (int)preset->on_exit - 1);

    *mode = (struct pool_mode){
        .clients = (enum pool_clients)clients,
        .protocol = (enum pool_protocol)protocol,
        .stateless = (enum pool_clients)stateless,
        .session_in_params = word_of(pool, "session", pool_mode_session_words,
                                     preset->session_in_params) != 0,
        .rewrite_ids = word_of(pool, "ids", pool_mode_ids_words, rewrite) != 0,
        .by_name = rmp_pool_present(pool),
        .spare = number_of(pool, "spare", preset->spare),
        .busy_timeout_sec = number_of(pool, "busy_timeout_sec", BUSY_TIMEOUT_SEC),
        .request_timeout_sec = number_of(pool, "request_timeout_sec", 0),
    };
    if (clients == CLIENTS_EXCLUSIVE || pool_mode_shares_handshake(mode))
        mode->on_exit = (enum pool_exit)(on_exit + 1);
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
