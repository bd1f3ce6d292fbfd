/* The type of the content in a frame with headers. */
#ifndef STDIO_BUS_FRAMING_CONTENT_LENGTH_H
#define STDIO_BUS_FRAMING_CONTENT_LENGTH_H

#include <stdbool.h>

#include "base/slice.h"

/* Whether the value of a Content-Type header is application/vscode-jsonrpc or application/json,
 * with no charset or utf-8 or utf8, and any other parameters, in any order. */
bool content_type_accepted(struct slice value);

#endif
