/* The scenes of an HTTP listener. */
#ifndef TESTS_FAULTS_HTTP_SCENE_H
#define TESTS_FAULTS_HTTP_SCENE_H

#include "run.h"

/* The daemon has an HTTP listener at DIR/http, whose token is "faults", with the pools a (MCP) and
 * b. */
void play_http(struct run *run);

/* The same; few events are kept for a session. */
void play_streams(struct run *run);

/* The same without a token; pool a is shared, and the daemon is upgraded among requests. */
void play_upgraded(struct run *run);

#endif
