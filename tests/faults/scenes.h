/* The scenes that the faulty daemon plays. */
#ifndef TESTS_FAULTS_SCENES_H
#define TESTS_FAULTS_SCENES_H

#include "run.h"

#define SCENES 69

extern const struct scene scenes[SCENES];

#endif
