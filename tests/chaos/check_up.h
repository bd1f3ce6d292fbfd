/* What the workers got and said, from their journal. */
#ifndef TESTS_CHAOS_CHECK_UP_H
#define TESTS_CHAOS_CHECK_UP_H

struct chaos;
struct entry;

/* Reads all that is in the journal now, and checks it. */
void check_up_drain(struct chaos *chaos);

/* The client has given up this request, for good: what is said of it may arrive, or not. */
void check_given_up(struct chaos *chaos, const struct entry *request);

#endif
