/* Checks the messages and acts of workers, from the journal. */
#ifndef TESTS_CHAOS_CHECK_UP_H
#define TESTS_CHAOS_CHECK_UP_H

struct chaos;
struct entry;

/* Reads and checks all records in the journal. */
void check_up_drain(struct chaos *chaos);

/* The client has cancelled this request for good: messages about it are optional from now on. */
void check_given_up(struct chaos *chaos, const struct entry *request);

#endif
