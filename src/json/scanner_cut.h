/* Messages that are too long to be kept. */
#ifndef STDIO_BUS_JSON_SCANNER_CUT_H
#define STDIO_BUS_JSON_SCANNER_CUT_H

#include "json/scanner.h"

/* Drops most bytes of a message that is too long to be kept: `message` are the bytes of the last
 * call of scanner_run, which returned SCAN_MORE. Those that still matter move to the front, and
 * stand for all from now on; at most SCANNER_KEPT_MAX are left. Returns their number. */
#define SCANNER_KEPT_MAX 4096
size_t scanner_cut(struct scanner *scanner, char *message, size_t len);

#endif
