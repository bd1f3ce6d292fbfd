/* Facilities of this machine without which some tests are left out. */
#ifndef TESTS_HARNESS_NETWORK_H
#define TESTS_HARNESS_NETWORK_H

#include <stdbool.h>

/* IPv6, at least over loopback. */
bool have_ipv6(void);

/* A resolver that knows "localhost"; a bare system without /etc/hosts has none. */
bool have_localhost(void);

#endif
