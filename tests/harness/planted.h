/* A socket of another program, where a daemon's may be. */
#ifndef TESTS_HARNESS_PLANTED_H
#define TESTS_HARNESS_PLANTED_H

/* Listens at the path until the test ends, and answers each line with the reply. */
void plant_socket(const char *path, const char *reply);

/* Leaves the socket of a listener that was killed. */
void plant_dead_socket(const char *path);

#endif
