/* How the far ends of a bus that is being fuzzed put their messages into a stream and find them in
 * one, without the code of the daemon; and frames that are wrong. A framing is NULL for
 * lines. */
#ifndef STDIO_BUS_FUZZ_BUS_FRAMES_H
#define STDIO_BUS_FUZZ_BUS_FRAMES_H

#include "framing/framing.h"

#define FRAMES_HEAD_MAX 100

/* Writes the head of a body of `len` bytes. Returns its length. */
size_t frames_head(const struct framing *framing, char to[FRAMES_HEAD_MAX], size_t len);

/* The place of the first message in `data`: *body bytes after *head bytes. False when it is not
 * whole. A frame that the daemon must not write ends the run. A line's newline is a part of it. */
bool frames_find(const struct framing *framing, struct slice data, size_t *head, size_t *body);

/* A wrong frame by choice: the daemon reports it once and finds the next frame after it. *head is
 * written as it is, then *body with a head, if it has bytes. */
void frames_wrong(const struct framing *framing, unsigned which, struct slice *head,
                  struct slice *body);

#endif
