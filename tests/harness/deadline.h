/* Deadlines: generous, and stretched by the environment variable TEST_TIMEOUT_FACTOR. */
#ifndef TESTS_HARNESS_DEADLINE_H
#define TESTS_HARNESS_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

/* Monotonic milliseconds. */
int64_t now_ms(void);

/* TEST_TIMEOUT_FACTOR, at least 1. */
double timeout_factor(void);

/* The time in `seconds`, stretched, from now. */
int64_t deadline_in(double seconds);

/* Thirty seconds, stretched: the limit for an event that a correct daemon surely brings about. */
int64_t deadline_usual(void);

/* Milliseconds left, 0 after the deadline; fit for poll. */
int deadline_left_ms(int64_t deadline);

bool deadline_over(int64_t deadline);

/* Waits until `fd` has one of `events` (POLLIN, POLLOUT) or an error. Returns false at the
 * deadline. */
bool wait_fd(int fd, short events, int64_t deadline);

/* Sleeps two milliseconds: between two looks at a state that cannot be polled. */
void nap(void);

/* Waits until the condition is true; fails the test with a message (printf) at the deadline. The
 * user includes check.h. */
#define WAIT_UNTIL(condition, ...)                                                                 \
    for (int64_t wait_deadline = deadline_usual(); !(condition); nap())                            \
    ck_assert_msg(!deadline_over(wait_deadline), __VA_ARGS__)

#endif
