/* Every function of the C library that the daemon asks something of which may fail, and how. */
#ifndef TESTS_FAULTS_NAMES_H
#define TESTS_FAULTS_NAMES_H

#include <stddef.h>

#include "board.h"

#define ERRORS_MAX 12

/* The order of fault_names[]. */
enum fault_name_index {
#define NAME(name, ...) FAULT_##name,
#include "names.def"
#undef NAME
    FAULT_NAMES
};

struct fault_name {
    const char *name;
    int errors[ERRORS_MAX]; /* each failed with in turn, up to a 0 */
};

extern const struct fault_name fault_names[FAULT_NAMES];

#endif
