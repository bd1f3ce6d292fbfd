/* The fields of params, result and error that concern sessions, requests, progress and tasks, in a
 * message that the scanner has accepted. For pools with a mode that needs them.
 *
 * One pass in constant memory reads the keys of the objects that have such fields, and skips
 * everything else. As at the top level, escapes in keys are decoded and of duplicate keys the last
 * one counts; of two params the first one counts nothing. */
#ifndef STDIO_BUS_JSON_PARAM_FIELDS_H
#define STDIO_BUS_JSON_PARAM_FIELDS_H

#include "base/slice.h"
#include "json/scanner.h"

enum param_field {
    PARAM_SESSION,        /* params.sessionId */
    PARAM_META_TOKEN,     /* params._meta.progressToken */
    PARAM_WORK_TOKEN,     /* params.workDoneToken */
    PARAM_PARTIAL_TOKEN,  /* params.partialResultToken */
    PARAM_PROGRESS_TOKEN, /* params.progressToken */
    PARAM_TOKEN,          /* params.token */
    PARAM_REQUEST_ID,     /* params.requestId */
    PARAM_ID,             /* params.id */
    PARAM_NEW_TASK,       /* params.task */
    PARAM_TASK,           /* params.taskId */
    PARAM_STATUS,         /* params.status */
    PARAM_URI,            /* params.uri */
    PARAM_LEVEL,          /* params.level */
    PARAM_PROTOCOL,       /* params.protocolVersion */
    PARAM_NAME,           /* params.name */
    /* MCP, in params._meta, of keys that begin with "io.modelcontextprotocol/": */
    PARAM_VERSION,      /* protocolVersion */
    PARAM_LOG_LEVEL,    /* logLevel */
    PARAM_SUBSCRIPTION, /* subscriptionId */
    PARAM_CAPABILITIES, /* clientCapabilities */
    PARAM_RELATED_TASK, /* related-task, of which taskId */

    RESULT_SESSION,      /* result.sessionId */
    RESULT_STOP,         /* result.stopReason */
    RESULT_VERSION,      /* result.protocolVersion */
    RESULT_TASK,         /* result.task.taskId */
    RESULT_SUBSCRIPTION, /* result._meta["io.modelcontextprotocol/subscriptionId"] */
    ERROR_CODE           /* error.code */
};

#define PARAM_FIELDS_COUNT (ERROR_CODE + 1)

/* The places of their values, relative to the first byte of the message. */
struct param_fields {
    unsigned present; /* bit i is set: at[i] is valid */
    struct scan_field at[PARAM_FIELDS_COUNT];
};

static inline bool param_fields_has(const struct param_fields *found, enum param_field field)
{
    return (found->present >> field & 1) != 0;
}

/* Quick looks: they return false only if the message has no progress token, no PARAM_NEW_TASK,
 * PARAM_TASK or PARAM_RELATED_TASK; or no PARAM_VERSION. */
bool param_fields_may_have_token(struct slice message);
bool param_fields_may_have_version(struct slice message);

/* Finds the fields in `message`, an accepted message with or without its newline. `hint` is 0 or
 * an offset after a value at its top level: params after it are found without reading what is
 * before. */
void param_fields_find(struct param_fields *found, struct slice message, size_t hint);

/* The value of an object's member as written, of any name of at most PARAM_MEMBER_MAX bytes. The
 * object is an accepted message or a value in one, as written; other values have no members. */
#define PARAM_MEMBER_MAX 32
bool param_fields_member(struct slice object, const char *name, struct slice *value);

/* The decoded text of a string: in `message`, or in `to` where it has escapes. Returns false if the
 * field is absent, no string, or longer than `max` bytes. */
bool param_fields_string(const struct param_fields *found, enum param_field field,
                         struct slice message, char *to, size_t max, struct slice *text);

/* The value of a number that is an integer. False: the field is absent or something else. */
bool param_fields_integer(const struct param_fields *found, enum param_field field,
                          struct slice message, int64_t *value);

/* The value as written; a string with its quotes. */
struct slice param_fields_raw(struct slice message, const struct scan_field *field);

#endif
