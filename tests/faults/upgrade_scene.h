/* The scene of upgrades in place. */
#ifndef TESTS_FAULTS_UPGRADE_SCENE_H
#define TESTS_FAULTS_UPGRADE_SCENE_H

#include "run.h"

/* The daemon is upgraded to itself, with clients, requests and handshakes. */
void play_upgrade(struct run *run);

/* Upgrades the daemon, or it says why not; it continues in any case. */
void upgrade_once(struct run *run);

#endif
