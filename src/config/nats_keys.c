#include "build_config.h"

#include "config/nats_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/authority.h"

#define SCHEME "nats://"
#define NAME_MAX_BYTES 64

/* --- places --- */

static bool is_port(struct slice text)
{
    uint16_t number;

    return text.len <= 5 && authority_read_port(text, &number) && number > 0;
}

static bool is_host(struct slice text, bool has_brackets)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (byte <= ' ' || byte >= 0x7f || strchr("/@[]?#", byte) != NULL ||
            (byte == ':' && !has_brackets))
            return false;
    }
    return text.len > 0 && text.len < NATS_HOST_MAX;
}

bool nats_place_read(struct nats_place *place, struct slice text)
{
    struct slice host, port;

    if (text.len >= sizeof SCHEME - 1 && memcmp(text.data, SCHEME, sizeof SCHEME - 1) == 0)
        text = slice_of(text.data + sizeof SCHEME - 1, text.len - (sizeof SCHEME - 1));
    if (!authority_split(text, &host, &port))
        return false;
    if (port.data == NULL)
        port = slice_of_text(NATS_PORT_DEFAULT);
    if (!is_host(host, host.data != text.data) || !is_port(port))
        return false;
    snprintf(place->host, sizeof place->host, "%.*s", (int)host.len, host.data);
    snprintf(place->port, sizeof place->port, "%.*s", (int)port.len, port.data);
    return true;
}

static bool is_place(struct slice text)
{
    struct nats_place place;

    return nats_place_read(&place, text);
}

/* --- the keys --- */

bool nats_name_is_right(struct slice text)
{
    bool is_start = true;

    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        if (byte <= ' ' || byte == 0x7f || byte == '*' || byte == '>' || (byte == '.' && is_start))
            return false;
        is_start = byte == '.';
    }
    return text.len > 0 && !is_start;
}

static bool is_name(struct slice text)
{
    return text.len <= NAME_MAX_BYTES && nats_name_is_right(text);
}

#define NAME_WANTED "must be 1 to 64 bytes, no space, *, >, no empty part between dots"

static void check_servers(struct diagnostics *diagnostics, const struct json_value *servers)
{
    if (servers->first == NULL)
        diagnostics_value(diagnostics, servers, "must name a server");
}

static void check_password(struct diagnostics *diagnostics, const struct json_value *value)
{
    if (value->parent != NULL && document_member(value->parent, "user") == NULL)
        diagnostics_value(diagnostics, value, "needs \"user\"");
}

static void check_token(struct diagnostics *diagnostics, const struct json_value *value)
{
    if (value->parent != NULL && document_member(value->parent, "password_file") != NULL)
        diagnostics_value(diagnostics, value, "\"password_file\" is there, too");
}

static const struct key nats_list[] = {
    KEY_ROW("servers", "Their addresses, HOST:PORT; all of one cluster.", .kind = KEY_TEXTS,
            .required = true, .min = 1, .check = check_servers, .is_right = is_place,
            .wanted = "must be HOST:PORT", KEY_AT(struct nats_config, servers)),
    KEY_ROW("node", "The name of this daemon, for the server. Default: stdio_bus.",
            .kind = KEY_TEXT, .is_right = is_name, .wanted = NAME_WANTED,
            .schema = KEY_FILLED_SCHEMA, KEY_AT(struct nats_config, node)),
    KEY_ROW("prefix", "What all subjects begin with. Default: stdio_bus.", .kind = KEY_TEXT,
            .is_right = is_name, .wanted = NAME_WANTED, .schema = KEY_FILLED_SCHEMA,
            KEY_AT(struct nats_config, prefix)),
    KEY_ROW("user", "The name of a user of NATS.", .kind = KEY_TEXT, .min = 1,
            KEY_AT(struct nats_config, user)),
    KEY_ROW("password_file", "The file with the password of that user.", .kind = KEY_TEXT, .min = 1,
            .check = check_password, KEY_AT(struct nats_config, password_file)),
    KEY_ROW("token_file", "The file with a token of NATS, in place of a user.", .kind = KEY_TEXT,
            .min = 1, .check = check_token, KEY_AT(struct nats_config, token_file)),
    KEY_ROW("topics", "Topics of the topic bus reach other nodes. Default: false.",
            .kind = KEY_BOOLEAN, KEY_AT(struct nats_config, topics)),
};

const struct key_table nats_keys = {KEY_TABLE(nats_list)};

bool nats_keys_read(struct nats_config *config, const struct json_value *nats)
{
    if (nats == NULL)
        return true;
    config->enabled = true;
    keys_apply(config, &nats_keys, nats);
    return keys_copy(config, &nats_keys, nats);
}

static bool servers_differ(char *const *before, char *const *after)
{
    size_t i = 0;

    if (before == NULL || after == NULL)
        return before != after;
    while (before[i] != NULL && after[i] != NULL && strcmp(before[i], after[i]) == 0)
        i++;
    return before[i] != after[i];
}

bool nats_keys_differ(const struct nats_config *before, const struct nats_config *after)
{
    return before->enabled != after->enabled || before->topics != after->topics ||
           servers_differ(before->servers, after->servers) ||
           key_texts_differ(before->node, after->node) ||
           key_texts_differ(before->prefix, after->prefix) ||
           key_texts_differ(before->user, after->user) ||
           key_texts_differ(before->password_file, after->password_file) ||
           key_texts_differ(before->token_file, after->token_file);
}

void nats_keys_free(struct nats_config *config)
{
    keys_free(config, &nats_keys);
    *config = (struct nats_config){.enabled = false};
}
