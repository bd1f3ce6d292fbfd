/* The daemon's log as its test reads it; the functions are declared in daemon.h. */
#ifndef TESTS_HARNESS_LOG_H
#define TESTS_HARNESS_LOG_H

#include "daemon.h"

/* Takes in what was written since the last time. */
void log_refresh(struct daemon *daemon);

#endif
