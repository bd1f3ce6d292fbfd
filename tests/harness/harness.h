/* The harness of the end-to-end tests. */
#ifndef TESTS_HARNESS_HARNESS_H
#define TESTS_HARNESS_HARNESS_H

#include <check.h>

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
