/* Words of HTTP: tokens, URIs and their parts (RFC 9110, 5.6; RFC 3986). */
#ifndef STDIO_BUS_HTTP_WORDS_H
#define STDIO_BUS_HTTP_WORDS_H

#include <stdbool.h>

#include "base/slice.h"

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

/* Without the spaces and tabs around. */
struct slice http_trim(struct slice text);

/* Compares without the case of ASCII letters; `lower` is in lower case. */
bool http_word_is(struct slice text, const char *lower);

/* Whether each percent sign precedes two hexadecimal digits, which are not those of NUL. */
bool http_escapes_valid(struct slice text);

/* Decodes %XX into `to`. False: an escape is not valid, or the text is longer than `size`. */
bool http_percent_decode(char *to, size_t size, struct slice text, size_t *len);

/* The value of a parameter in a query, NAME=VALUE&...; as it came. data NULL: absent. */
struct slice http_query_value(struct slice query, const char *name);

/* Splits HOST[:PORT], the value of Host or what follows :// in an Origin. *host keeps the brackets
 * of an IPv6 address, and is empty where `text` is; *port has data NULL where there is none. False:
 * not in the grammar. */
bool http_authority_read(struct slice text, struct slice *host, struct slice *port);

#endif
