/* The harness of the end-to-end tests, and what they need of the C library. */
#ifndef TESTS_HARNESS_HARNESS_H
#define TESTS_HARNESS_HARNESS_H

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "client.h"
#include "daemon.h"
#include "deadline.h"
#include "frames.h"
#include "http.h"
#include "json.h"
#include "load.h"
#include "proc.h"
#include "steps.h"
#include "suite.h"
#include "text.h"

#endif
