/* Reads the file of a run (rmp/run_file.h). */
#ifndef STDIO_BUS_TOPICS_RUN_READER_H
#define STDIO_BUS_TOPICS_RUN_READER_H

#include "base/log.h"
#include "rmp/run_file.h"

/* What a file has; `record` lives until the call returns. False ends the reading. */
typedef bool run_record_fn(void *user_data, enum run_file_found found,
                           const struct run_file_record *record);

struct run_reading {
    const char *path;
    struct rmp_id run;
    uint32_t max_body; /* bytes of a frame's body */
    struct log *log;
    run_record_fn *take;
    void *user_data;

    uint64_t len; /* bytes of the good frames that the file begins with */
};

/* Calls take for each frame from the beginning of the file, up to its end, or to the first one that
 * is cut or damaged, or cannot be read; then it returns false, after a WARN, and what follows in
 * the file is lost. */
bool run_reader_read(struct run_reading *reading);

#endif
