#include "build_config.h"

#include "config/setup.h"

#include <stdlib.h>

struct setup *setup_create(void)
{
    struct setup *setup = calloc(1, sizeof *setup);

    return setup_hold(setup);
}

struct setup *setup_hold(struct setup *setup)
{
    if (setup != NULL)
        setup->references++;
    return setup;
}

void setup_release(struct setup *setup)
{
    if (setup == NULL || --setup->references > 0)
        return;
    free(setup->listens);
    config_free(&setup->config);
    sources_free(&setup->sources);
    free(setup);
}
