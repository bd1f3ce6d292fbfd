/* The daemon of a shared server: clients, the files that it watches, what it remembers. */
#ifndef TESTS_FAULTS_SHARE_SCENE_H
#define TESTS_FAULTS_SHARE_SCENE_H

#include "run.h"

/* The client has finished, and the daemon answers what is left. */
void end_stdin(struct peer *peer);

/* A file in the directory of the run. */
void make_file(const struct run *run, const char *name, const char *text);

void prepare_watched(struct run *run);
void prepare_memory(struct run *run);

void play_share(struct run *run);
void play_remembered(struct run *run);
void play_refused(struct run *run);

#endif
