/* The daemon's log as its test reads it; the functions are declared in daemon.h. */
#ifndef TESTS_HARNESS_LOG_H
#define TESTS_HARNESS_LOG_H

#include "daemon.h"

/* Reads the lines written since the last call. */
void log_refresh(struct daemon *daemon);

#endif
