/* The scenes of --connect: the program is a client, whose server is played here. */
#ifndef TESTS_FAULTS_CONNECT_SCENE_H
#define TESTS_FAULTS_CONNECT_SCENE_H

#include "run.h"

/* The server sends bytes on run->listener. */
void play_connect(struct run *run);

/* Before a scene with https://. */
void plant_openssl(struct run *run);

/* A server of MCP over HTTP on run->listener. */
void play_url(struct run *run);

/* One of HTTP+SSE alone. */
void play_older_url(struct run *run);

#endif
