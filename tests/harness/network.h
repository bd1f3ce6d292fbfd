/* What this machine has: without it a test says nothing. */
#ifndef TESTS_HARNESS_NETWORK_H
#define TESTS_HARNESS_NETWORK_H

#include <stdbool.h>

/* IPv6, if only with itself. */
bool have_ipv6(void);

/* Somebody who knows the name "localhost", which a bare system without /etc/hosts may not. */
bool have_localhost(void);

#endif
