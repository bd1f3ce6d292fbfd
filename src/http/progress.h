/* The time of a body that comes slowly. */
#ifndef STDIO_BUS_HTTP_PROGRESS_H
#define STDIO_BUS_HTTP_PROGRESS_H

#include "framing/frame.h"

#define PROGRESS_MIN UINT64_C(65536) /* bytes that begin the time of a body again, */
#define PROGRESS_PART 32             /* or, of a long one, this part of it */

/* `here` bytes of the body, which has `announced` bytes (0: not known), came so far. *timed: how
 * many there were when its time began. */
static inline void progress_note(struct framing_state *state, uint64_t *timed, uint64_t here,
                                 uint64_t announced)
{
    uint64_t least = (announced > 0 ? announced : here) / PROGRESS_PART;

    if (here < *timed + (least > PROGRESS_MIN ? least : PROGRESS_MIN))
        return;
    *timed = here;
    state->timed = false;
}

#endif
