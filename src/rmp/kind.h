/* The kinds of publishers (RMP 11). */
#ifndef STDIO_BUS_RMP_KIND_H
#define STDIO_BUS_RMP_KIND_H

#include <stdbool.h>

#include "base/slice.h"

enum rmp_kind { RMP_KIND_AGENT, RMP_KIND_UI, RMP_KIND_TUI };

/* Reads a kind, in any case of letters: "Agent", "ui". False: it is none. */
bool rmp_kind_read(struct slice name, enum rmp_kind *kind);

#endif
