/* --list, and a browser for a page that the faulty program serves at the URL which it prints. */
#ifndef TESTS_FAULTS_LIST_SCENE_H
#define TESTS_FAULTS_LIST_SCENE_H

#include "run.h"

/* Zeroed: the URL was not printed yet. */
struct viewer_look {
    struct text printed, answer;
    int fd;
    bool is_sent, is_over;
    int64_t deadline;
};

/* One step: reads the URL, asks for the page, reads it; then ends the program. Does not wait. What
 * a browser is told in place of the page counts as a line of the log. */
void viewer_look(struct viewer_look *look, struct run *run);

void viewer_look_free(struct viewer_look *look);

/* Adds to the log what the program has printed so far, or until its end: findings have reasons. */
void take_stdout(struct run *run);

void play_list(struct run *run);
void play_agent(struct run *run); /* ctl --mcp */
void play_list_page(struct run *run);

#endif
