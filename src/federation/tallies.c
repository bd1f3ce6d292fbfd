#include "build_config.h"

#include "federation/tallies.h"

#include <stdio.h>
#include <string.h>

#include "config/nats_keys.h"

#define OTHERS "(others)"

static const char *shown_name(const char *name)
{
    return name[0] != '\0' ? name : NATS_PREFIX_DEFAULT;
}

const struct nats_tally *tallies_find(const struct nats_hub *hub, const char *name)
{
    for (size_t i = 0; i < hub->tally_count; i++) {
        if (strcmp(hub->tallies[i].name, shown_name(name)) == 0)
            return &hub->tallies[i];
    }
    return NULL;
}

struct nats_tally *tallies_get(struct nats_hub *hub, const char *name)
{
    const struct nats_tally *known = tallies_find(hub, name);
    struct nats_tally *tally;

    if (known != NULL)
        return &hub->tallies[known - hub->tallies];
    if (hub->tally_count >= TALLIES_MAX)
        name = OTHERS;
    tally = &hub->tallies[hub->tally_count <= TALLIES_MAX ? hub->tally_count : TALLIES_MAX];
    if (hub->tally_count <= TALLIES_MAX)
        hub->tally_count++;
    snprintf(tally->name, sizeof tally->name, "%s", shown_name(name));
    return tally;
}
