/* The text inside strings: the fast way over the bytes that mean nothing to the scanner. */
#ifndef STDIO_BUS_JSON_SCANNER_TEXT_H
#define STDIO_BUS_JSON_SCANNER_TEXT_H

#include "json/byte_runs.h"

/* Skips the text of a string from p on: bytes that are plain, after the first escape the usual
 * escapes too, and valid UTF-8 where the processor judges it fast. Returns the end of w, or a byte
 * that the caller has to judge. *escaped is set at a skipped escape. `exact` asks for that: without
 * it, escapes may be skipped and not be noted. */
position scanner_text(struct window *w, position p, bool exact, bool *escaped);

#endif
