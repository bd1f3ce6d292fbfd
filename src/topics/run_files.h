/* The files of runs, one for each run that is kept (rmp/run_file.h), in the directory rmp.history.
 * Nothing of a run is in memory here: what is written is what the history has (rmp/history.h), in
 * which each run notes how much of it its file has. No descriptor stays open. */
#ifndef STDIO_BUS_TOPICS_RUN_FILES_H
#define STDIO_BUS_TOPICS_RUN_FILES_H

#include "rmp/history.h"
#include "topics/run_directory.h"

struct run_files {
    struct log *log;
    char directory[RUN_DIRECTORY_MAX]; /* "": there is none */
    bool sync;                         /* fsync before a write counts as done */
    bool is_ready;                     /* the directory was looked at */
};

/* Makes the directory, for this user alone, unless it was looked at before. False, after a WARN: it
 * cannot be had, belongs to another user, or others may write to it. */
bool run_files_prepare(struct run_files *files);

/* Appends the run's events that its file does not have; or writes the file as a whole, RunAccepted
 * with the payload `accepted` first (unless that is empty), if it is not there or has much that was
 * forgotten. The fields of the run tell the result. False, after a WARN: what its file lacks is
 * still to be written. */
bool run_files_write(struct run_files *files, struct rmp_run *run, struct slice accepted);

/* Removes the file of the run, if there is one. */
void run_files_remove(struct run_files *files, struct rmp_id run);

#endif
