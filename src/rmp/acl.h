/* Who may publish what (RMP 11). */
#ifndef STDIO_BUS_RMP_ACL_H
#define STDIO_BUS_RMP_ACL_H

#include <stdint.h>

#include "base/slice.h"
#include "rmp/kind.h"

/* Why a publisher of this kind may not publish this schema on the topic: one sentence, static.
 * NULL: it may. Whether the topic is valid is not asked. */
const char *rmp_acl_forbids(enum rmp_kind kind, struct slice topic, uint16_t schema_id);

#endif
