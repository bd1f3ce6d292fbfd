#include "build_config.h"

#include "rmp/acl.h"

#include <string.h>

#include "rmp/schemas.h"
#include "rmp/topics.h"

#define DECISION_TOPIC "action.decision"

const char *rmp_acl_forbids(enum rmp_kind kind, struct slice topic, uint16_t schema_id)
{
    if (rmp_topic_is_system(topic))
        return "topics below rlp/sys/ are published by the bus alone";
    if (kind != RMP_KIND_AGENT)
        return NULL;
    if (schema_id == RMP_SCHEMA_ACTION_DECISION)
        return "action decisions are published by clients of kind ui or tui alone";
    if (slice_equal(topic, slice_of(DECISION_TOPIC, strlen(DECISION_TOPIC))))
        return "the topic action.decision is for clients of kind ui or tui alone";
    return NULL;
}
