/* The Content-Type of a frame (ADR-010). */
#ifndef STDIO_BUS_FORMAT_CONTENT_TYPE_H
#define STDIO_BUS_FORMAT_CONTENT_TYPE_H

#include "base/slice.h"

/* Bytes that a header's name, or another token of a header, may consist of. */
bool is_token_byte(unsigned char c);

/* `text` without blanks at either end. */
struct slice trim_blanks(struct slice text);

/* Whether the texts are the same but for the case of ASCII letters. */
bool same_but_case(struct slice text, const char *lower);

/* Whether the value of a Content-Type header is application/vscode-jsonrpc or application/json,
 * with no charset or utf-8 or utf8, and whatever other parameters, in any order. */
bool content_type_accepted(struct slice value);

#endif
