/* A reader of JSON (RFC 8259) in the plainest way: recursive, a byte at a time, over the whole
 * text. The fast readers are compared with it. */
#ifndef STDIO_BUS_FUZZ_REFERENCE_JSON_H
#define STDIO_BUS_FUZZ_REFERENCE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "json/scanner.h"

struct reference_result {
    enum scan_status status;
    size_t position; /* as struct scanner's */
    enum scan_error error;
    struct scan_fields fields;
};

/* The result that scanner.h promises for the first line of `text`. */
void reference_line(struct reference_result *result, const char *text, size_t len);

/* True when `text` is one JSON value of any kind in valid UTF-8, over as many lines as it likes and
 * nested at most `max_depth` levels. */
bool reference_document(const char *text, size_t len, unsigned max_depth);

/* Decodes the escapes of a valid string's inside: a pair of surrogates becomes one character, one
 * alone three bytes. Returns the length; `to` has room for `len` bytes, which always suffices. */
size_t reference_decode(char *to, const char *raw, size_t len);

#endif
