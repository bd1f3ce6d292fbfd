/* How the far ends of a bus that is being fuzzed put their messages into a stream and find them in
 * one, apart from the daemon's own code for that; and frames that are wrong. A framing is NULL for
 * lines. */
#ifndef STDIO_BUS_FUZZ_BUS_FRAMES_H
#define STDIO_BUS_FUZZ_BUS_FRAMES_H

#include "format/framing.h"

#define FRAMES_HEAD_MAX 100

/* Writes what stands before a body of `len` bytes. Returns how long that is. */
size_t frames_head(const struct framing *framing, char to[FRAMES_HEAD_MAX], size_t len);

/* The place of the first message in `data`: *body bytes behind *head others. False when it is not
 * whole. What is no frame as the daemon has to write it ends the run. A line's newline is a part
 * of it. */
bool frames_find(const struct framing *framing, struct slice data, size_t *head, size_t *body);

/* Something wrong by choice, of which the daemon complains once and behind which it finds the next
 * frame: *head are the bytes to be written as they are, *body those that get a head of their own,
 * or there are none. */
void frames_wrong(const struct framing *framing, unsigned which, struct slice *head,
                  struct slice *body);

#endif
