/* A message as the router sees it: its bytes and its routing fields, decoded (spec 2.2, 4.2.2). */
#ifndef STDIO_BUS_FORMAT_MESSAGE_H
#define STDIO_BUS_FORMAT_MESSAGE_H

#include <stdbool.h>

#include "base/limits.h"
#include "base/slice.h"
#include "format/scanner.h"

enum id_type { ID_NONE, ID_STRING, ID_NUMBER };

/* An id as a JSON value. Two ids are the same when type and text are.
 * A string's text has its escapes decoded; a lone surrogate is three bytes (format/json_string.h).
 * A number with an integer value has one text per value: its decimal digits (1, 1.0, 1e0 and 10e-1
 * are "1", -0 is "0"), or "<digits>e<exponent>" without a zero at the end of the digits when they
 * would be more than STDIO_BUS_MAX_REQUEST_ID_LEN. A number whose double is an integer below 2 to
 * the power of 53 is as that integer (1.00000000000000000001 is "1"). Any other number is its own
 * text, and so is one whose exponent has more than 18 digits. The text is at most
 * MESSAGE_ID_TEXT_MAX bytes. */
#define MESSAGE_ID_TEXT_MAX (STDIO_BUS_MAX_REQUEST_ID_LEN + 24)

struct message_id {
    enum id_type type;
    struct slice text;
};

struct message {
    struct slice bytes; /* as it came, newline included */
    struct message_id id;
    struct slice session_id; /* data NULL: none */
    struct slice method;     /* raw text between the quotes; data NULL: none, or not a string */
    struct slice pool;       /* decoded; data NULL: none */
    bool has_result, has_error;
};

/* Room for decoded fields that are not a plain part of the message. */
struct message_scratch {
    char id[MESSAGE_ID_TEXT_MAX];
    char session_id[STDIO_BUS_MAX_SESSION_ID_LEN];
    char pool[STDIO_BUS_MAX_SESSION_ID_LEN];
};

enum message_problem {
    MESSAGE_OK,
    MESSAGE_ID_TYPE,        /* id is an object, array or boolean */
    MESSAGE_ID_LENGTH,      /* id over STDIO_BUS_MAX_REQUEST_ID_LEN bytes */
    MESSAGE_SESSION_TYPE,   /* sessionId is not a string, null included */
    MESSAGE_SESSION_LENGTH, /* sessionId over STDIO_BUS_MAX_SESSION_ID_LEN bytes */
    MESSAGE_POOL_TYPE,      /* pool is not a string, null included */
    MESSAGE_POOL_LENGTH     /* pool over STDIO_BUS_MAX_SESSION_ID_LEN bytes */
};

/* Fills `message` from the scanned bytes. Its slices point into `bytes` or `scratch` and live as
 * long as these. A null id is as if there were none. Lengths count the decoded bytes of a string
 * and the raw ones of a number.
 *
 * Returns MESSAGE_OK, or the first problem (in the order above) that keeps the routing fields from
 * being extracted (spec 4.3.2). Then `bytes` is valid still, id unless it is the problem (it is
 * ID_NONE then), has_result and has_error; the other fields are as if absent. */
enum message_problem message_from_scan(struct message *message, struct slice bytes,
                                       const struct scan_fields *fields,
                                       struct message_scratch *scratch);

/* Reads a value of the scanned bytes as an id: ID_NONE where it is absent or null. The text points
 * into `bytes` or `scratch`. Returns as message_from_scan does. */
enum message_problem message_read_id(struct message_id *id, struct slice bytes,
                                     const struct scan_field *field,
                                     struct message_scratch *scratch);

/* The problem in words ("id must be a string or a number"). Static. */
const char *message_problem_text(enum message_problem problem);

/* Spec 2.1: a response is what has result or error. */
static inline bool message_is_response(const struct message *message)
{
    return message->has_result || message->has_error;
}

/* Compares as said at struct message_id. */
static inline bool message_id_equal(struct message_id a, struct message_id b)
{
    return a.type == b.type && slice_equal(a.text, b.text);
}

/* Writes one JSON-RPC error reply and its newline into `to`:
 * {"jsonrpc":"2.0","id":ID,"error":{"code":CODE,"message":"TEXT"}}
 * with the id as JSON (null for ID_NONE) and the NUL-terminated TEXT escaped as needed, so that the
 * line is valid JSON whatever they contain. Returns its length, or 0 when `size` is too small;
 * MESSAGE_ERROR_MAX always suffices for a TEXT of up to 300 bytes. */
#define MESSAGE_ERROR_MAX 4096
size_t message_write_error(char *to, size_t size, struct message_id id, int code, const char *text);

/* Writes `before`, the id as JSON and `behind` into `to`. Returns as message_write_error. */
size_t message_write_around(char *to, size_t size, const char *before, struct message_id id,
                            const char *behind);

/* JSON-RPC error codes that the daemon itself sends. */
enum {
    JSONRPC_PARSE_ERROR = -32700,
    JSONRPC_INVALID_REQUEST = -32600,
    JSONRPC_INVALID_PARAMS = -32602,
    JSONRPC_SERVER_ERROR = -32000,
    JSONRPC_TIMED_OUT = -32001
};

#endif
