/* Return codes (spec Appendix A). Functions return STDIO_BUS_OK or one of the negative codes;
 * predicates return bool. */
#ifndef STDIO_BUS_BASE_ERROR_H
#define STDIO_BUS_BASE_ERROR_H

enum stdio_bus_code {
    STDIO_BUS_OK = 0,         /* the operation succeeded */
    STDIO_BUS_ERR = -1,       /* generic error; errno is set where the function says so */
    STDIO_BUS_EAGAIN = -2,    /* non-blocking I/O would block */
    STDIO_BUS_EOF = -3,       /* the connection was closed by the peer */
    STDIO_BUS_EFULL = -4,     /* a buffer, queue or table limit would be exceeded */
    STDIO_BUS_ENOTFOUND = -5, /* no such thing */
    STDIO_BUS_EINVAL = -6     /* invalid argument */
};

/* --- Exit statuses, those of sysexits.h where it has one. --- */

enum {
    EXIT_DONE = 0,
    EXIT_USAGE_ERROR = 64,
    EXIT_DATA_ERROR = 65, /* stdio mode: the client sent malformed input */
    EXIT_NO_WORKER_LEFT = 69,
    EXIT_OS_ERROR = 71,
    EXIT_CONFIG_ERROR = 78
};

#endif
