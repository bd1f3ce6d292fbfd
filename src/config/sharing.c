#include "build_config.h"

#include "config/sharing.h"

#include <string.h>

#define BUSY_TIMEOUT_SEC 10

const char *const sharing_clients_words[] = {"shared", "sticky", "exclusive", NULL};
const char *const sharing_session_words[] = {"sessionId", "params.sessionId", NULL};
const char *const sharing_ids_words[] = {"preserve", "rewrite", NULL};
const char *const sharing_protocol_words[] = {"mcp", "acp", "lsp", NULL};

/* What a protocol stands for. */
static const struct sharing presets[] = {
    [PROTOCOL_UNKNOWN] = {.clients = CLIENTS_SHARED},
    [PROTOCOL_MCP] = {.clients = CLIENTS_EXCLUSIVE, .spare = 1},
    [PROTOCOL_ACP] = {.clients = CLIENTS_STICKY, .session_in_params = true, .rewrite_ids = true},
    [PROTOCOL_LSP] = {.clients = CLIENTS_EXCLUSIVE, .spare = 1},
};

int sharing_word(const struct json_value *value, const char *const *words)
{
    int i;

    for (i = 0; words[i] != NULL; i++) {
        if (slice_equal(value->text, slice_of(words[i], strlen(words[i]))))
            return i;
    }
    return -1;
}

/* The place of the word, or `otherwise` where the key is missing. */
static int word_of(const struct json_value *pool, const char *key, const char *const *words,
                   int otherwise)
{
    const struct json_value *value = json_member(pool, key);

    return value != NULL ? sharing_word(value, words) : otherwise;
}

static unsigned number_of(const struct json_value *pool, const char *key, unsigned otherwise)
{
    const struct json_value *value = json_member(pool, key);
    int64_t number;

    return value != NULL && json_integer(value, &number) ? (unsigned)number : otherwise;
}

void sharing_read(struct sharing *sharing, const struct json_value *pool)
{
    enum sharing_protocol protocol =
        (enum sharing_protocol)(word_of(pool, "protocol", sharing_protocol_words, -1) + 1);
    const struct sharing *preset = &presets[protocol];

    sharing->protocol = protocol;
    sharing->clients = (enum sharing_clients)word_of(pool, "clients", sharing_clients_words,
                                                     (int)preset->clients);
    sharing->session_in_params =
        word_of(pool, "session", sharing_session_words, preset->session_in_params) != 0;
    sharing->rewrite_ids = word_of(pool, "ids", sharing_ids_words, preset->rewrite_ids) != 0;
    sharing->spare = number_of(pool, "spare", preset->spare);
    sharing->busy_timeout_sec = number_of(pool, "busy_timeout_sec", BUSY_TIMEOUT_SEC);
    sharing->request_timeout_sec = number_of(pool, "request_timeout_sec", 0);
}

bool sharing_is_plain(const struct sharing *sharing)
{
    return sharing->clients == CLIENTS_SHARED && sharing->protocol == PROTOCOL_UNKNOWN &&
           !sharing->session_in_params && !sharing->rewrite_ids &&
           sharing->request_timeout_sec == 0;
}
