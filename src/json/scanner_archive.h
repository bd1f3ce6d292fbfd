/* A scanner that has stopped at any byte of a message, in an archive. */
#ifndef STDIO_BUS_JSON_SCANNER_ARCHIVE_H
#define STDIO_BUS_JSON_SCANNER_ARCHIVE_H

#include "base/archive.h"
#include "json/scanner.h"

/* Saves the scanner, or loads it. Its states are those of this version of the archive. */
void scanner_archive(struct archive *archive, struct scanner *scanner);

#endif
