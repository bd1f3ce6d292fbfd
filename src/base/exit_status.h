/* Exit statuses, those of sysexits.h where it has one. */
#ifndef STDIO_BUS_BASE_EXIT_STATUS_H
#define STDIO_BUS_BASE_EXIT_STATUS_H

enum {
    EXIT_DONE = 0,
    EXIT_USAGE_ERROR = 64,
    EXIT_DATA_ERROR = 65, /* stdio mode: the client sent malformed input */
    EXIT_NO_WORKER_LEFT = 69,
    EXIT_OS_ERROR = 71,
    EXIT_CONFIG_ERROR = 78
};

#endif
