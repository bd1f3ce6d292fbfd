/* What the workers got and said, from their journal. */
#ifndef TESTS_CHAOS_CHECK_UP_H
#define TESTS_CHAOS_CHECK_UP_H

struct chaos;

/* Reads all that is in the journal now, and checks it. */
void check_up_drain(struct chaos *chaos);

#endif
