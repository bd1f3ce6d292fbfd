/* A test program: its suite, its temporary directory, and what is left over at its end. */
#ifndef TESTS_HARNESS_SUITE_H
#define TESTS_HARNESS_SUITE_H

#include <check.h>
#include <stdbool.h>

/* A case with a time limit that suits the deadlines. */
TCase *harness_case(Suite *suite, const char *name);

/* Runs the suite, each test in a process of its own, and frees it. Afterwards prints the daemon
 * logs of the tests that failed, ends their processes and removes their files (unless TEST_KEEP is
 * set). Returns main's exit status. */
int harness_run(Suite *suite);

/* Makes a fresh directory for a test; the path fits into a Unix socket address with 20 bytes to
 * spare. */
void harness_make_dir(char *path, size_t size);

/* Removes a directory with the plain files, sockets and fifos in it. */
void harness_remove_dir(const char *path);

/* Makes this process the parent of orphans below it, where the system can. */
void harness_adopt_orphans(void);

/* True when TEST_NO_RSS is set: memory is not to be measured. */
bool harness_skips_memory(void);

#endif
