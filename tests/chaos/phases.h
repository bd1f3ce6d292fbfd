/* The course of a run: calm, then again and again storm, settling, calm and quiet; then the end. */
#ifndef TESTS_CHAOS_PHASES_H
#define TESTS_CHAOS_PHASES_H

struct chaos;

void phases_run(struct chaos *chaos);

#endif
