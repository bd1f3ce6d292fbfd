/* A configuration that is in use: what was read, and the listeners that it and the command line ask
 * for. A reload makes another one; each lives as long as something refers to it. */
#ifndef STDIO_BUS_CONFIG_SETUP_H
#define STDIO_BUS_CONFIG_SETUP_H

#include "config/config.h"

struct setup {
    unsigned references;
    struct config config;
    struct sources sources;        /* its texts; empty where it is not of files */
    struct listen_config *listens; /* what they name belongs to the configuration */
    size_t listen_count;
};

/* An empty one with one reference. NULL if out of memory. */
struct setup *setup_create(void);

/* One reference more, and one less: with the last one everything is freed. Accepts NULL. */
struct setup *setup_hold(struct setup *setup);
void setup_release(struct setup *setup);

#endif
