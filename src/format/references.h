/* What a message says about sessions, requests and progress inside its params and its result: for
 * pools that need it alone, over a message that the scanner has accepted.
 *
 * It looks at the keys of the message, of params, of params._meta and of result, and goes over
 * everything else as fast as it can, in one pass and constant memory. As at the top level, escapes
 * in keys do not matter and of duplicate keys the last one counts, so that what stands in the first
 * of two params is nothing. */
#ifndef STDIO_BUS_FORMAT_REFERENCES_H
#define STDIO_BUS_FORMAT_REFERENCES_H

#include "base/slice.h"
#include "format/scanner.h"

enum reference {
    REFERENCE_SESSION,        /* params.sessionId */
    REFERENCE_RESULT_SESSION, /* result.sessionId */
    REFERENCE_META_TOKEN,     /* params._meta.progressToken */
    REFERENCE_WORK_TOKEN,     /* params.workDoneToken */
    REFERENCE_PARTIAL_TOKEN,  /* params.partialResultToken */
    REFERENCE_PROGRESS_TOKEN, /* params.progressToken */
    REFERENCE_TOKEN,          /* params.token */
    REFERENCE_REQUEST_ID,     /* params.requestId */
    REFERENCE_ID              /* params.id */
};

#define REFERENCES_COUNT (REFERENCE_ID + 1)

/* Where their values stand, relative to the first byte of the message. */
struct references {
    unsigned present; /* bit i is set: at[i] is something */
    struct scan_field at[REFERENCES_COUNT];
};

static inline bool references_has(const struct references *found, enum reference reference)
{
    return (found->present >> reference & 1) != 0;
}

/* False only when a message surely has no progress token: the quick look before the long one. */
bool references_may_have_token(struct slice message);

/* Finds them in `message`, which is an accepted message with or without its newline. `hint` is 0 or
 * an offset behind a value at its top level: params that stand behind it are found without a look
 * at what is before. */
void references_find(struct references *found, struct slice message, size_t hint);

/* The decoded text of a string, in `to` where it has escapes. False: there is none, or it is over
 * `max` bytes. */
bool references_string(const struct references *found, enum reference reference,
                       struct slice message, char *to, size_t max, struct slice *text);

/* The whole value in the message's bytes: of a string with its quotes. */
static inline struct slice references_raw(struct slice message, const struct scan_field *field)
{
    size_t quote = field->type == SCAN_STRING ? 1 : 0;

    return slice_of(message.data + field->offset - quote, field->len + 2 * quote);
}

#endif
