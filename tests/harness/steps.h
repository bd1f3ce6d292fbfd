/* The steps of a test: each message sent, each message awaited, each connect. Before each of them
 * the daemon is upgraded in place, or reloads its configuration, if the environment says so:
 *
 * UPGRADE=each, or UPGRADE=N for every Nth step; RELOAD=each or RELOAD=N likewise. Each is waited
 * for, so that the next step finds the next program or configuration. STEPS_MAX (100) bounds their
 * number in a test; after it only steps whose number is a power of two have one. */
#ifndef TESTS_HARNESS_STEPS_H
#define TESTS_HARNESS_STEPS_H

#include "daemon.h"

/* A step of the test that runs. Does nothing without a daemon that serves and has a log of its own,
 * nor under a wrapper, which would not be in front of the next program. Fails the test when the
 * daemon refuses, except while it starts, shuts down or waits for what a reload has left, or has no
 * file to reload. */
void harness_step(void);

/* The steps of this test leave the daemon alone from now on; the reason is printed. */
void steps_without(const char *reason);

/* The same for upgrades only, or reloads only. */
void steps_without_upgrades(const char *reason);
void steps_without_reloads(const char *reason);

/* The daemon of the test, from its start on; NULL: it ends now. */
void steps_daemon(struct daemon *daemon);

/* The test has ended: prints how many upgrades and reloads it had, or why none. */
void steps_end(const char *test);

#endif
