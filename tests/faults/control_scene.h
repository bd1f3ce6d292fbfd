/* The scenes of the control socket. */
#ifndef TESTS_FAULTS_CONTROL_SCENE_H
#define TESTS_FAULTS_CONTROL_SCENE_H

#include "run.h"

/* The daemon's control socket is DIR/control. */
void play_control(struct run *run);

/* The program is a client of the control socket DIR/socket, which is played here. */
void play_ctl(struct run *run);

#endif
