/* The scene of reloads of the configuration. */
#ifndef TESTS_FAULTS_RELOAD_SCENE_H
#define TESTS_FAULTS_RELOAD_SCENE_H

#include "run.h"

/* Changes a pool, adds and removes others and a listener, and lets a file be faulty. */
void play_reload(struct run *run);

#endif
