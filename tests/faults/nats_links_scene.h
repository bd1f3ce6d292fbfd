/* The scene of links over NATS. */
#ifndef TESTS_FAULTS_NATS_LINKS_SCENE_H
#define TESTS_FAULTS_NATS_LINKS_SCENE_H

#include "run.h"

/* A NATS server on run->listener passes on what the daemon publishes: its pool "far" is its own
 * pool "b", over a link to itself. */
void play_nats_links(struct run *run);

#endif
