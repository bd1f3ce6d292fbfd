/* What HTTP and TLS begin with, and the headers of HTTP. A web page can make a browser send these
 * to any port of its machine. */
#ifndef STDIO_BUS_FRAMING_FOREIGN_H
#define STDIO_BUS_FRAMING_FOREIGN_H

#include <stdbool.h>

#include "base/slice.h"

#define FOREIGN_HTTP_TEXT "HTTP in place of messages"
#define FOREIGN_TLS_TEXT "TLS in place of messages"

enum foreign {
    FOREIGN_NO,
    FOREIGN_MAYBE, /* more bytes decide */
    FOREIGN_HTTP,  /* a method and a space */
    FOREIGN_TLS    /* a record of the handshake */
};

/* The protocol of a stream that begins with these bytes. */
enum foreign foreign_start(struct slice bytes);

/* Whether a header of this name, in any case of letters, is HTTP's alone. */
bool foreign_header(struct slice name);

#endif
