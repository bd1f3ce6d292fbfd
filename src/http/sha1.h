/* SHA-1 (FIPS 180-4), of short texts: for the handshake of WebSocket, where it protects nothing. */
#ifndef STDIO_BUS_HTTP_SHA1_H
#define STDIO_BUS_HTTP_SHA1_H

#include "base/slice.h"

#define SHA1_LEN 20

void sha1_digest(unsigned char to[SHA1_LEN], struct slice bytes);

#endif
