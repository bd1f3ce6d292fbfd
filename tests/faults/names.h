/* The functions of the C library that the daemon calls and that can fail, with their errors. */
#ifndef TESTS_FAULTS_NAMES_H
#define TESTS_FAULTS_NAMES_H

#include "board.h"

enum fault_name_index {
#define NAME(name, ...) FAULT_##name,
#include "names.def"
#undef NAME
    FAULT_NAMES
};

#endif
