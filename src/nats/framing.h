/* The framing of what a NATS server sends: a control line, and what follows it. */
#ifndef STDIO_BUS_NATS_FRAMING_H
#define STDIO_BUS_NATS_FRAMING_H

#include "framing/frame.h"

/* Needs neither a check nor a reader. A frame is read with nats_frame_read. */
extern const struct framing framing_nats;

#endif
