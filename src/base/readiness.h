/* A forked process that reports over a pipe when it is ready. */
#ifndef STDIO_BUS_BASE_READINESS_H
#define STDIO_BUS_BASE_READINESS_H

#include <stdbool.h>

/* In the child: keeps the write end of the pipe until readiness_report, closed on exec, and closes
 * all descriptors but that one and 0 to 2. False with errno set. */
bool readiness_keep(int fd);

/* In the child: reports that it is ready. False: the parent is gone. */
bool readiness_report(void);

/* In the parent, which has closed its write end: waits for the report. False: the child has ended
 * without one. */
bool readiness_await(int fd);

#endif
