/* What the framings that announce lengths have in common: the body. Of no use to anybody else. */
#ifndef STDIO_BUS_FORMAT_FRAMED_H
#define STDIO_BUS_FORMAT_FRAMED_H

#include "format/framing.h"
#include "format/message.h"

enum framed_part {
    PART_HEAD,  /* what stands before the body */
    PART_BODY,  /* state->left bytes long */
    PART_SKIP,  /* state->left bytes of a body that nobody wants */
    PART_SEARCH /* for the next head */
};

/* Ready for a frame; max_body stays as it is. */
void framed_reset(struct framing_state *state);

/* The frame is over: the next byte is the next one's first. */
void framed_over(struct framing_state *state);

/* The head, the first `consumed` bytes of the input, is whole, and state->left what it announces:
 * goes on to the body, unless that is too long. */
enum frame_status framed_head_over(struct framing_state *state, struct frame *frame,
                                   size_t consumed);

/* Tells what is wrong with a frame whose first `consumed` bytes are done with. state->left more
 * bytes will be skipped. Returns FRAME_REFUSED. */
enum frame_status framed_refuse(struct framing_state *state, struct frame *frame, size_t consumed,
                                int code, const char *problem);

/* `next` in PART_BODY and PART_SKIP. */
enum frame_status framed_body(struct framing_state *state, struct slice input,
                              struct frame *frame);
enum frame_status framed_skip(struct framing_state *state, struct slice input,
                              struct frame *frame);

#endif
