#include "build_config.h"

#include "cli/all_listeners.h"

#include <stdlib.h>

struct listen_config *all_listeners(const struct options *options, const struct config *config,
                                    size_t *all)
{
    size_t count = 0;
    struct listen_config *listens = calloc(options->listen_count + config->listen_count + 1,
                                           sizeof *listens);

    if (listens == NULL)
        return NULL;
    for (size_t i = 0; i < options->listen_count; i++) {
        listens[count] = config->listen;
        listens[count].address = options->listens[i];
        if (options->token_file != NULL)
            listens[count].token_file = (char *)options->token_file;
        if (options->listens[i].kind == LISTEN_UNIX)
            listens[count].token_file = NULL;
        count++;
    }
    for (size_t i = 0; i < config->listen_count; i++)
        listens[count++] = config->listens[i];
    for (size_t i = 0; i < count && options->framing != NULL; i++)
        listens[i].framing = options->framing;
    if (config->has_metrics)
        listens[count++] = config->metrics;
    *all = count;
    return listens;
}
