/* A message for the router: its bytes and its decoded routing fields (spec 2.2, 4.2.2). */
#ifndef STDIO_BUS_JSON_MESSAGE_H
#define STDIO_BUS_JSON_MESSAGE_H

#include <stdbool.h>

#include "base/limits.h"
#include "base/slice.h"
#include "framing/frame.h"
#include "json/scanner.h"

/* The check of a frame's body that is JSON. Its state is a struct scanner, whose fields after
 * BODY_WHOLE are those of the body until the next call of run. */
extern const struct body_check json_body_check;

enum id_type { ID_NONE, ID_STRING, ID_NUMBER };

/* An id as a JSON value. Two ids are equal if their types and texts are.
 *
 * A string's text is decoded; a surrogate alone is three bytes (json/string.h).
 *
 * Readers of JSON take an integer without fraction and exponent as it stands, most exactly, and any
 * other number as a double. So an integer is its own text (-0 is "0"), and the other spellings of
 * one double have one text: 1.0, 1e0, 10e-1 and 1.00000000000000000001 are "1"; 1.50 is "1.5"; 1e22
 * is an integer of 23 digits. An integer of more than STDIO_BUS_MAX_REQUEST_ID_LEN digits is
 * "<digits>e<exponent>". A number that no double can hold is MESSAGE_ID_RANGE. The text is at most
 * MESSAGE_ID_TEXT_MAX bytes. */
#define MESSAGE_ID_TEXT_MAX (STDIO_BUS_MAX_REQUEST_ID_LEN + 24)

struct message_id {
    enum id_type type;
    struct slice text;
};

struct message {
    struct slice bytes; /* as received, newline included */
    struct message_id id;
    struct slice session_id; /* data NULL: none */
    struct slice method;     /* raw text between the quotes; data NULL: none, or not a string */
    struct slice pool;       /* decoded; data NULL: none */
    bool has_result, has_error;
    const struct scan_fields *fields; /* the places of the values in `bytes`; the scanner's */
};

/* Most bytes of the message are gone. It has an id, result and error; of the other fields nothing
 * but whether there is a method. */
static inline bool message_is_cut(const struct message *message)
{
    return (message->fields->oddities & SCAN_CUT) != 0;
}

/* Room for fields that have to be decoded. */
struct message_scratch {
    char id[MESSAGE_ID_TEXT_MAX];
    char session_id[STDIO_BUS_MAX_SESSION_ID_LEN];
    char pool[STDIO_BUS_MAX_SESSION_ID_LEN];
};

enum message_problem {
    MESSAGE_OK,
    MESSAGE_ID_TYPE,        /* id is an object, array or boolean */
    MESSAGE_ID_LENGTH,      /* id over STDIO_BUS_MAX_REQUEST_ID_LEN bytes */
    MESSAGE_ID_RANGE,       /* id is a number beyond all doubles: a worker could answer Infinity */
    MESSAGE_SESSION_TYPE,   /* sessionId is not a string, null included */
    MESSAGE_SESSION_LENGTH, /* sessionId over STDIO_BUS_MAX_SESSION_ID_LEN bytes */
    MESSAGE_POOL_TYPE,      /* pool is not a string, null included */
    MESSAGE_POOL_LENGTH,    /* pool over STDIO_BUS_MAX_SESSION_ID_LEN bytes */
    MESSAGE_TOO_LONG        /* for the pool that it is for; never from message_from_scan */
};

/* Fills `message` from the scanned bytes. Its slices point into `bytes` or `scratch` and live as
 * long as these; message->fields is `fields`. A null id counts as absent. Lengths are those of the
 * decoded string and of the number as written.
 *
 * Returns MESSAGE_OK, or the first problem, in the order above, because of which the routing fields
 * cannot be extracted (spec 4.3.2). After a problem bytes, has_result and has_error are valid, and
 * id unless it is the problem (ID_NONE then); the other fields are as if absent. */
enum message_problem message_from_scan(struct message *message, struct slice bytes,
                                       const struct scan_fields *fields,
                                       struct message_scratch *scratch);

/* Reads a value of the scanned bytes as an id: ID_NONE if it is absent or null. The text points
 * into `bytes` or `scratch`. Returns MESSAGE_OK or a problem of the id (ID_NONE then). */
enum message_problem message_read_id(struct message_id *id, struct slice bytes,
                                     const struct scan_field *field,
                                     struct message_scratch *scratch);

/* Scans a text that is one object, white space around it included: its fields are in the scanner
 * then, for message_from_scan. False: it is something else. */
bool message_scan(struct scanner *scanner, struct slice text);

/* The problem in words ("id must be a string or a number"). Static. */
const char *message_problem_text(enum message_problem problem);

/* A response has result or error (spec 2.1). */
static inline bool message_is_response(const struct message *message)
{
    return message->has_result || message->has_error;
}

/* See struct message_id. */
static inline bool message_id_equal(struct message_id a, struct message_id b)
{
    return a.type == b.type && slice_equal(a.text, b.text);
}

/* Writes one JSON-RPC error reply and its newline into `to`:
 * {"jsonrpc":"2.0","id":ID,"error":{"code":CODE,"message":"TEXT"}} with the id as JSON (null for
 * ID_NONE) and the NUL-terminated TEXT escaped as needed: the line is always valid JSON. Returns
 * its length, or 0 if `size` is too small; MESSAGE_ERROR_MAX suffices for a TEXT of up to 300
 * bytes. */
#define MESSAGE_ERROR_MAX 4096
size_t message_write_error(char *to, size_t size, struct message_id id, int code, const char *text);

/* The same with the member "data", which is JSON; it may need as much more room. NULL: none. */
size_t message_write_error_data(char *to, size_t size, struct message_id id, int code,
                                const char *text, const char *data);

/* The TEXT of such a reply without an id, still escaped, where the bytes end with one: the reason
 * for which a daemon ends a connection. data NULL: they do not. */
struct slice message_refusal_text(struct slice bytes);

/* Writes `before`, the id as JSON and `after`. Returns the length, or 0 if `size` is too small. */
size_t message_write_around(char *to, size_t size, const char *before, struct message_id id,
                            const char *after);

/* JSON-RPC error codes of the daemon itself. */
enum {
    JSONRPC_PARSE_ERROR = -32700,
    JSONRPC_INVALID_REQUEST = -32600,
    JSONRPC_INVALID_PARAMS = -32602,
    JSONRPC_METHOD_NOT_FOUND = -32601,
    MCP_UNSUPPORTED_VERSION = -32022,
    JSONRPC_SERVER_ERROR = -32000,
    JSONRPC_TIMED_OUT = -32001
};

/* --- Messages that are too long to be kept. --- */

/* Drops most bytes of a message that is too long to be kept: `message` are the bytes of the last
 * call of scanner_run, which returned SCAN_MORE. Those that still matter move to the front, and
 * stand for all from now on; at most SCANNER_KEPT_MAX are left. Returns their number. */
#define SCANNER_KEPT_MAX 4096

#endif
