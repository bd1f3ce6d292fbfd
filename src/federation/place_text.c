#include "build_config.h"

#include "federation/place_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"

uint64_t place_hash(struct slice id)
{
    static const struct siphash_key key = {0, 0};

    return siphash(&key, id.data, id.len);
}

char *place_subject(const struct nats_hub *hub, struct slice pool, uint64_t hash)
{
    const char *prefix = nats_config_prefix(&hub->config);
    size_t size = strlen(prefix) + pool.len + sizeof ".session.." + 16;
    char *subject = malloc(size);

    if (subject != NULL)
        snprintf(subject, size, "%s.session.%.*s.%016llx", prefix, (int)pool.len, pool.data,
                 (unsigned long long)hash);
    return subject;
}

struct slice place_text_write(char to[PLACE_TEXT_MAX], const struct nats_hub *hub, struct slice id)
{
    char address[NODES_ADDRESS_MAX];

    return slice_join(to, node_address_write(address, hub, 0), '\n', id);
}

bool place_text_read(struct node_address *address, struct slice *id, struct slice text)
{
    struct slice from;

    if (!slice_cut(&text, '\n', &from) || !node_address_read(address, from))
        return false;
    *id = text;
    return id->len <= STDIO_BUS_MAX_SESSION_ID_LEN;
}
