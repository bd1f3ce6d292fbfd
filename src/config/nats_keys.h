/* The object "nats": servers of NATS by which other machines reach the pools. */
#ifndef STDIO_BUS_CONFIG_NATS_KEYS_H
#define STDIO_BUS_CONFIG_NATS_KEYS_H

#include "config/keys.h"

#define NATS_PREFIX_DEFAULT "stdio_bus"
#define NATS_PORT_DEFAULT "4222"
#define NATS_HOST_MAX 256

struct nats_config {
    bool enabled;   /* the object is there */
    bool topics;    /* those of the topic bus reach other nodes */
    char **servers; /* HOST:PORT or HOST, as written; at least one */
    char *node, *prefix, *user, *password_file, *token_file; /* NULL: not set */
};

/* What all subjects begin with. */
static inline const char *nats_config_prefix(const struct nats_config *config)
{
    return config->prefix != NULL ? config->prefix : NATS_PREFIX_DEFAULT;
}

/* The table of the object. */
extern const struct key_table nats_keys;

/* Reads the keys of a valid object, or of none (NULL). False: out of memory; nats_keys_free in any
 * case. */
bool nats_keys_read(struct nats_config *config, const struct json_value *nats);

bool nats_keys_differ(const struct nats_config *before, const struct nats_config *after);

/* A zeroed one is fine. */
void nats_keys_free(struct nats_config *config);

/* Whether a name may be a part of a subject, or several with dots between them. */
bool nats_name_is_right(struct slice name);

struct nats_place {
    char host[NATS_HOST_MAX], port[8];
};

/* Reads "HOST", "HOST:PORT", "[IPv6]:PORT", each after "nats://" or alone. */
bool nats_place_read(struct nats_place *place, struct slice text);

#endif
