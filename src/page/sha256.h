/* SHA-256 (FIPS 180-4), for the hashes in the page's policy. */
#ifndef STDIO_BUS_PAGE_SHA256_H
#define STDIO_BUS_PAGE_SHA256_H

#include "base/slice.h"

#define SHA256_BYTES 32

void sha256(unsigned char hash[SHA256_BYTES], struct slice bytes);

#endif
