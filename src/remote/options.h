/* How a server with a URL is served to a program, and why that ends. */
#ifndef STDIO_BUS_REMOTE_OPTIONS_H
#define STDIO_BUS_REMOTE_OPTIONS_H

#include "base/log.h"
#include "config/token.h"
#include "framing/framing.h"
#include "remote/url.h"

struct remote_options {
    struct remote_url url;
    const struct token *token;     /* NULL: none */
    const struct framing *framing; /* of stdin and stdout; NULL: NDJSON */
    unsigned wait_sec;             /* for a server that is not there yet */
    struct log *log;
};

enum remote_outcome {
    REMOTE_DONE,          /* stdin has ended, or a signal came */
    REMOTE_MALFORMED,     /* stdin has something that is no message */
    REMOTE_OUTPUT_CLOSED, /* stdout is closed */
    REMOTE_SYSTEM_ERROR   /* the system refused something; logged */
};

#endif
