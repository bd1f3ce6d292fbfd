/* The scenes of the topic bus. */
#ifndef TESTS_FAULTS_RMP_SCENE_H
#define TESTS_FAULTS_RMP_SCENE_H

#include "run.h"

/* The daemon's RMP socket is DIR/bus/rmp.sock. */
void play_rmp(struct run *run);

/* It has the agent "writer" and a runner, too. */
void play_bridge(struct run *run);

/* The same, with the files of a daemon before. */
void prepare_history(struct run *run);
void play_history(struct run *run);

/* The same; the daemon is upgraded among messages. */
void play_upgraded_bus(struct run *run);

#endif
