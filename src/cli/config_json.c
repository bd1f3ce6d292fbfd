#include "build_config.h"

#include "cli/config_json.h"

#include "json/row.h"

static void write_pool(struct json_text *text, const struct pool_config *pool)
{
    const struct pool_mode *mode = &pool->mode;

    row_begin(text, NULL, '{');
    row_string(text, "pool", pool->id);
    row_string(text, "protocol", pool_mode_protocol_name(mode->protocol));
    row_string(text, "sharing", pool_mode_clients_words[mode->clients]);
    row_number(text, "instances", (int64_t)pool->instances);
    row_end(text, '}');
}

void config_json_write(struct json_text *text, const struct config *config)
{
    size_t i;

    row_begin(text, NULL, '{');
    row_begin(text, "pools", '[');
    for (i = 0; i < config->pool_count; i++)
        write_pool(text, &config->pools[i]);
    row_end(text, ']');
    row_number(text, "total", (int64_t)config->pool_count);
    row_end(text, '}');
}
