/* The course of a run: calm; rounds of storm, settling, calm and quiet; then the end. */
#ifndef TESTS_CHAOS_PHASES_H
#define TESTS_CHAOS_PHASES_H

#include "chaos.h"

const char *phase_name(enum phase phase);

/* One round: waits at most `timeout_ms` for an event, then handles all of them. */
void chaos_step(struct chaos *chaos, int timeout_ms);

/* The whole run. */
void phases_run(struct chaos *chaos);

#endif
