/* The head of an HTTP/1.1 request: request line and fields (RFC 9112, RFC 9110). What is ambiguous
 * is refused, lest a proxy in front reads it otherwise. A response has the same field lines. */
#ifndef STDIO_BUS_HTTP_HEAD_H
#define STDIO_BUS_HTTP_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* --- Words of HTTP: tokens, URIs and their parts (RFC 9110, 5.6; RFC 3986). --- */

/* Sets of ASCII characters. */
enum http_bytes {
    HTTP_TOKEN_BYTES,
    HTTP_PATH_BYTES, /* of a URI's path, its slashes and percent signs included */
    HTTP_QUERY_BYTES,
    HTTP_NAME_BYTES,   /* of a URI's host that is a name or an IPv4 address */
    HTTP_ADDRESS_BYTES /* of an IPv6 address between its brackets */
};

/* How many of the first bytes are in the set. */
size_t http_span_bytes(struct slice text, enum http_bytes set);

static inline bool http_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The value of a hexadecimal digit, or -1. */
int http_hex_value(char c);

/* Compares without the case of ASCII letters; `lower` is in lower case. */
bool http_word_is(struct slice text, const char *lower);

/* Decodes %XX into `to`. False: an escape is not valid, or the text is longer than `size`. */
bool http_percent_decode(char *to, size_t size, struct slice text, size_t *len);

/* The value of a parameter in a query, NAME=VALUE&...; as it came. data NULL: absent. */
struct slice http_query_value(struct slice query, const char *name);

/* Splits HOST[:PORT], the value of Host or what follows :// in an Origin. *host keeps the brackets
 * of an IPv6 address, and is empty where `text` is; *port has data NULL where there is none. False:
 * not in the grammar. */
bool http_authority_read(struct slice text, struct slice *host, struct slice *port);

/* --- fields, of requests and responses --- */

/* Takes the part before the first separator, and that, away from the front of *rest; all of it if
 * there is none. Returns the part without the blanks around. */
struct slice http_take_until(struct slice *rest, char separator);

/* Reads the field line that `rest` begins with. *value is without the blanks around. `loose`, as a
 * client reads a server: a line may end with a line feed alone, and its name and value have any
 * other byte. Returns the length of the line with its end; 0: malformed or folded, or the empty
 * line. */
size_t http_field_line_read(struct slice rest, bool loose, struct slice *name, struct slice *value);

/* Reads the value of Content-Length: 1 to 18 digits. False: not one. */
bool http_length_read(struct slice digits, uint64_t *length);

/* --- heads of requests --- */

#define HTTP_HEAD_MAX 16384 /* bytes, the empty line at its end included */
#define HTTP_FIELDS_MAX 100 /* lines */

enum http_method {
    HTTP_OTHER_METHOD, /* a token that is none of these */
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_PATCH
};

/* The fields that are looked for while a head is read. All others: http_head_next. */
enum http_field {
    HTTP_ACCEPT, /* lists (http/head.h): may come more than once */
    HTTP_ACCESS_CONTROL_REQUEST_HEADERS,
    HTTP_CONNECTION,
    HTTP_SEC_WEBSOCKET_EXTENSIONS,
    HTTP_SEC_WEBSOCKET_PROTOCOL,
    HTTP_UPGRADE,
    HTTP_ACCESS_CONTROL_REQUEST_METHOD, /* the others: a second one is refused */
    HTTP_ACCESS_CONTROL_REQUEST_PRIVATE_NETWORK,
    HTTP_AUTHORIZATION,
    HTTP_CONTENT_ENCODING,
    HTTP_CONTENT_LENGTH,
    HTTP_CONTENT_TYPE,
    HTTP_EXPECT,
    HTTP_HOST,
    HTTP_LAST_EVENT_ID,
    HTTP_MCP_METHOD,
    HTTP_MCP_NAME,
    HTTP_MCP_PROTOCOL_VERSION,
    HTTP_MCP_SESSION_ID,
    HTTP_ORIGIN,
    HTTP_SEC_FETCH_SITE,
    HTTP_SEC_WEBSOCKET_KEY,
    HTTP_SEC_WEBSOCKET_VERSION,
    HTTP_TRANSFER_ENCODING,
    HTTP_FIELD_COUNT
};

#define HTTP_LIST_FIELDS (HTTP_UPGRADE + 1) /* the first ones */

/* A part of the head, by its place: the bytes may move between two offers of the same head. */
struct http_span {
    uint16_t at, len; /* at 0: absent */
};

/* How the body of the message is delimited. */
enum http_body_kind { HTTP_BODY_NONE, HTTP_BODY_SIZED, HTTP_BODY_CHUNKED };

struct http_head {
    enum http_method method;
    enum http_body_kind body;
    uint64_t length;        /* of HTTP_BODY_SIZED */
    uint16_t method_len;    /* the method is the first bytes of the head */
    struct http_span path;  /* as it came, percent-encoded; "*" of an OPTIONS request */
    struct http_span query; /* without the question mark */
    struct http_span host;  /* of the target if that has one, else of the field. In the grammar of
                             * http_authority_read; len 0: an empty one, or (HTTP/1.0) none */
    uint16_t fields_start;  /* of the first field line */
    uint8_t minor;          /* HTTP/1.minor: 0 or 1; a higher one counts as 1 */
    bool expects_continue;  /* the client waits for 100 before it sends the body */
    uint32_t repeated;      /* bit n: field n, a list, came more than once */
    struct http_span fields[HTTP_FIELD_COUNT]; /* values without the blanks around; an empty value
                                                * has len 0 and at > 0 */
};

/* Reads a whole head: `bytes` end with its empty line, and are at most HTTP_HEAD_MAX. Returns 0, or
 * the status that refuses it, with *problem as static text:
 *   400  what RFC 9112 does not allow, and beside that: white space around a field's name, folded
 *        lines, a control byte in a value, a second field of a name that is no list, a Host that is
 *        missing (HTTP/1.1) or malformed, a target with bytes that a URI cannot have,
 *        Content-Length beside Transfer-Encoding, either malformed, or a coding of HTTP/1.0
 *   417  an expectation other than 100-continue
 *   431  more than HTTP_FIELDS_MAX fields
 *   501  CONNECT, or a transfer coding other than chunked
 *   505  another version than HTTP/1 */
int http_head_read(struct http_head *head, struct slice bytes, const char **problem);

/* --- the parts: slices of `bytes`, which are those of the head --- */

static inline struct slice http_span_of(struct http_span span, struct slice bytes)
{
    return slice_of(span.at > 0 ? bytes.data + span.at : NULL, span.len);
}

/* The value of a field, the first one of a list that is repeated; data NULL: absent. */
static inline struct slice http_head_value(const struct http_head *head, struct slice bytes,
                                           enum http_field field)
{
    return http_span_of(head->fields[field], bytes);
}

/* The field of this name; HTTP_FIELD_COUNT: none of them. */
enum http_field http_field_of(struct slice name);

/* Walks all field lines: *at is 0 at first. False: there is no more. */
bool http_head_next(const struct http_head *head, struct slice bytes, size_t *at,
                    struct slice *name, struct slice *value);

/* Fields of a head that are lists, over one line or several (RFC 9110, 5.6.1). `bytes` are those of
 * the head, which was read. */

/* Whether a list has this member (before any parameters; in any case of letters), on any of its
 * lines: "websocket" in Upgrade, "text/event-stream" in Accept. `word` is in lower case. */
bool http_head_lists(const struct http_head *head, struct slice bytes, enum http_field field,
                     const char *word);

/* Walks the members of a list over all its lines: *at is 0 at first. False: there is no more.
 * *member is without blanks, with its parameters. Empty members are left out. */
bool http_head_next_member(const struct http_head *head, struct slice bytes, enum http_field field,
                           size_t *at, struct slice *member);

/* The types of answers that Accept allows: it is absent, or lists the type or a range of it,
 * without q=0. */
#define HTTP_ACCEPTS_JSON 1U   /* application/json */
#define HTTP_ACCEPTS_EVENTS 2U /* text/event-stream */
#define HTTP_ACCEPTS_ALL 3U
unsigned http_head_accepts(const struct http_head *head, struct slice bytes);

/* Whether the client wants the connection to continue after the answer: the field Connection, and
 * the version. */
bool http_head_keeps_alive(const struct http_head *head, struct slice bytes);

#endif
