/* The scene of pools over NATS. */
#ifndef TESTS_FAULTS_NATS_SCENE_H
#define TESTS_FAULTS_NATS_SCENE_H

#include "run.h"

/* A NATS server on run->listener asks pool b. */
void play_nats(struct run *run);

/* The topic bus is there, too, at DIR/bus/rmp.sock; nothing is exported. */
void play_nats_topics(struct run *run);

#endif
