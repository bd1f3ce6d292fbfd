/* What a publisher or subscriber is told: Ok, or an error with what belongs to it. */
#ifndef STDIO_BUS_RMP_RESULT_H
#define STDIO_BUS_RMP_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum rmp_outcome {
    RMP_RESULT_OK,
    RMP_RESULT_CLOSED,
    RMP_RESULT_MESSAGE_EXPIRED,
    RMP_RESULT_INVALID_TTL,          /* ttl_ms */
    RMP_RESULT_BODY_LENGTH_MISMATCH, /* expected, actual */
    RMP_RESULT_BACKPRESSURE_TIMEOUT, /* text: the topic */
    RMP_RESULT_FORBIDDEN,            /* text: why */
    RMP_RESULT_BODY_TYPE_MISMATCH,   /* schema_id; text: the type that was found */
    RMP_RESULT_INVALID_EXPIRY,       /* created_at_ms, ttl_ms */
    RMP_RESULT_UNKNOWN_SCHEMA,       /* schema_id */
    RMP_RESULT_COUNT
};

/* The members that the outcome names; the others are not looked at. */
struct rmp_result {
    enum rmp_outcome outcome;
    uint16_t schema_id;
    uint64_t ttl_ms, created_at_ms;
    uint64_t expected, actual;
    struct slice text; /* borrowed */
    bool is_new;       /* RMP_RESULT_OK: the subscription was not there before */
};

#endif
