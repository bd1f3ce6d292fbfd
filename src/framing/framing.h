/* The framings by name. */
#ifndef STDIO_BUS_FRAMING_FRAMING_H
#define STDIO_BUS_FRAMING_FRAMING_H

#include "framing/frame.h"

/* The names, as in a sentence. */
#define FRAMING_NAMES "ndjson, content-length or length"

/* The framings that have a name, in this order; NULL after the last one. */
const struct framing *framing_at(size_t index);

/* The framing of this name, or NULL. */
const struct framing *framing_named(const char *name);

#endif
