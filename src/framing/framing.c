#include "build_config.h"

#include "framing/framing.h"

const struct framing *framing_named(const char *name)
{
    static const struct framing *const framings[] = {&framing_ndjson, &framing_content_length,
                                                     &framing_length};
    size_t i;

    for (i = 0; i < sizeof framings / sizeof framings[0]; i++) {
        if (strcmp(name, framings[i]->name) == 0)
            return framings[i];
    }
    return NULL;
}
