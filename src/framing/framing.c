#include "build_config.h"

#include "framing/framing.h"

const struct framing *framing_at(size_t index)
{
    static const struct framing *const framings[] = {&framing_ndjson, &framing_content_length,
                                                     &framing_length};

    return index < sizeof framings / sizeof framings[0] ? framings[index] : NULL;
}

const struct framing *framing_named(const char *name)
{
    const struct framing *framing;

    for (size_t i = 0; (framing = framing_at(i)) != NULL; i++) {
        if (strcmp(name, framing->name) == 0)
            break;
    }
    return framing;
}
