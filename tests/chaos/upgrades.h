/* Upgrades in place, at random times. */
#ifndef TESTS_CHAOS_UPGRADES_H
#define TESTS_CHAOS_UPGRADES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dice.h"

struct upgrades {
    unsigned apart_ms; /* between two, at most; 0: there are none */
    int64_t next_ms;
    unsigned long long count;
};

/* Asks the daemon for an upgrade, if it is time. True if it did. */
bool upgrades_step(struct upgrades *upgrades, struct dice *dice, pid_t daemon);

#endif
