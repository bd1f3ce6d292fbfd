#include "build_config.h"

#include "names.h"

#include <errno.h>
#include <netdb.h>

const struct fault_name fault_names[FAULT_NAMES] = {
#define NAME(name, ...) {#name, {__VA_ARGS__}},
#include "names.def"
#undef NAME
};
