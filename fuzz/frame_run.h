/* A stream read by a framing that rewrites its input: once whole, once in pieces. What it comes to
 * must be the same. */
#ifndef STDIO_BUS_FUZZ_FRAME_RUN_H
#define STDIO_BUS_FUZZ_FRAME_RUN_H

#include "framing/frame.h"
#include "json/message.h"

#include "common.h"

struct frame_run {
    /* Set before frame_run_read. */
    const struct framing *framing;
    void *reader;
    size_t max_body, max_long;
    /* Each adds what it is told by frame_run_add. `cut`: most of the frame is gone. */
    void (*whole)(struct frame_run *run, struct slice frame, bool cut);
    void (*noted)(struct frame_run *run);
    void (*bad)(struct frame_run *run, const struct frame *frame, bool malformed);

    /* What the stream came to. */
    struct framing_state state;
    struct scanner scanner;
    bool ended; /* malformed */
    char *events;
    size_t events_len;

    char *input; /* ends where its memory ends */
    size_t len, read, idle;
};

/* Adds text to the events, as by printf, or bytes. */
void frame_run_add(struct frame_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void frame_run_add_bytes(struct frame_run *run, struct slice bytes);

/* Adds a JSON body: its bytes or, of one that was cut, what its owner may look at. */
void frame_run_add_body(struct frame_run *run, struct slice body, bool cut);

/* Reads the stream; cutter NULL: in one piece. */
void frame_run_read(struct frame_run *run, struct slice stream, struct cutter *cutter);

/* Fails unless both came to the same, and frees them. */
void frame_run_compare(struct frame_run *whole, struct frame_run *cut);

#endif
