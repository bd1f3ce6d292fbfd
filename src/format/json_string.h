/* The inside of a JSON string: escapes to UTF-8 and back. */
#ifndef STDIO_BUS_FORMAT_JSON_STRING_H
#define STDIO_BUS_FORMAT_JSON_STRING_H

#include "base/slice.h"

/* Decodes the escapes of `raw`, which is what stands between the quotes of a string that a scanner
 * has accepted, into `to`. Escaped surrogate pairs become one character of four bytes; a surrogate
 * that is alone becomes the three bytes that UTF-8 would have for it, so that different strings
 * stay different. Returns the decoded length, or size + 1 when it is over `size`. */
size_t json_string_decode(char *to, size_t size, struct slice raw);

/* The way back: writes `text` as it may stand between quotes on a line of JSON. Surrogates are
 * written as \uD800 to \uDFFF, bytes that are not UTF-8 as \uFFFD. Returns the length, at most
 * 6 * text.len, or size + 1 when it is over `size`. */
size_t json_string_encode(char *to, size_t size, struct slice text);

#endif
