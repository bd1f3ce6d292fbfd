/* The part that the framings with announced lengths share: the body. */
#ifndef STDIO_BUS_FRAMING_SIZED_FRAME_H
#define STDIO_BUS_FRAMING_SIZED_FRAME_H

#include "framing/frame.h"

enum sized_frame_part {
    PART_HEAD,   /* what precedes the body */
    PART_BODY,   /* state->left bytes long */
    PART_SKIP,   /* state->left bytes of a refused body */
    PART_SEARCH, /* for the next head */
    PART_GROWING /* a body of unknown length, which is rewritten */
};

/* Ready for a frame; what the owner of the state set stays. */
void sized_frame_reset(struct framing_state *state);

/* The frame is over: the next byte is the first of the next frame. */
void sized_frame_end(struct framing_state *state);

/* The head, the first `consumed` bytes of the input, is whole and announces state->left bytes.
 * FRAME_SKIP, or FRAME_REFUSED if the body would be too long. */
enum frame_status sized_frame_start_body(struct framing_state *state, struct frame *frame,
                                         size_t consumed);

/* Refuses the frame, of which `consumed` bytes are done with. state->left more bytes will be
 * skipped. Returns FRAME_REFUSED. */
enum frame_status sized_frame_refuse(struct framing_state *state, struct frame *frame,
                                     size_t consumed, enum frame_fault fault, const char *problem);

/* `next` in PART_BODY. *trailing: it was refused because of what follows a whole body. */
enum frame_status sized_frame_body(struct framing_state *state, struct slice input,
                                   struct frame *frame, bool *trailing);

/* `cut` of struct framing. */
size_t sized_frame_cut(struct framing_state *state, char *input, size_t len);

/* `next` in PART_SKIP. */
enum frame_status sized_frame_skip(struct framing_state *state, struct slice input,
                                   struct frame *frame);

#endif
