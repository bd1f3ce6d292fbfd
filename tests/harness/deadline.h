/* Deadlines: generous, and stretched by the environment variable TEST_TIMEOUT_FACTOR. */
#ifndef TESTS_HARNESS_DEADLINE_H
#define TESTS_HARNESS_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

/* Monotonic milliseconds. */
int64_t now_ms(void);

/* TEST_TIMEOUT_FACTOR, at least 1. */
double timeout_factor(void);

/* The moment `seconds`, stretched, from now. */
int64_t deadline_in(double seconds);

/* Thirty seconds, stretched: what an event may take that surely comes. */
int64_t deadline_usual(void);

/* Milliseconds left, 0 when it is over; fit for poll. */
int deadline_left_ms(int64_t deadline);

bool deadline_over(int64_t deadline);

/* Waits until `fd` has one of `events` (POLLIN, POLLOUT) or an error. Returns false at the
 * deadline. */
bool wait_fd(int fd, short events, int64_t deadline);

/* Two milliseconds: between two looks at something that cannot be polled. */
void nap(void);

#endif
