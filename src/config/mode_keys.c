#include "build_config.h"

#include "config/mode_keys.h"

#include "config/pool_mode.h"

static bool has_protocol(const struct json_value *pool, enum pool_protocol wanted)
{
    const struct json_value *protocol = document_member(pool, "protocol");

    return protocol != NULL && protocol->type == JSON_STRING &&
           pool_mode_word(protocol, pool_mode_protocol_words) + 1 == (int)wanted;
}

void mode_keys_check_clients(struct diagnostics *diagnostics, const struct json_value *clients)
{
    if (has_protocol(clients->parent, PROTOCOL_LSP) &&
        pool_mode_word(clients, pool_mode_clients_words) != CLIENTS_EXCLUSIVE)
        diagnostics_value(diagnostics, clients,
                          "must be \"exclusive\" with \"protocol\": \"lsp\": a language server "
                          "keeps the documents of one editor");
}

void mode_keys_check_exit(struct diagnostics *diagnostics, const struct json_value *word)
{
    if (!has_protocol(word->parent, PROTOCOL_MCP) &&
        pool_mode_word(word, pool_mode_exit_words) + 1 == EXIT_REPLAYS)
        diagnostics_value(diagnostics, word,
                          "\"replay\" needs \"protocol\": \"mcp\": other conversations cannot be "
                          "begun again");
}
