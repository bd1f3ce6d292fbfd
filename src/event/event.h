/* What a descriptor can be watched for, and be ready for: a set of these bits. */
#ifndef STDIO_BUS_EVENT_EVENT_H
#define STDIO_BUS_EVENT_EVENT_H

/* Hang-up and errors arrive as each event that was asked for, so the owner finds them by reading or
 * writing. A descriptor without interest gets no event: a peer that hung up waits until the owner
 * wants to read or write again. A wakeup may be spurious. */
#define STDIO_BUS_EVENT_READ 1u
#define STDIO_BUS_EVENT_WRITE 2u
/* The peer's end alone: both directions of a socket are closed, or it broke. For an owner that has
 * read the end of input already (READ would be ready for ever). Best effort: a backend that cannot
 * see it (kqueue) never delivers it; an always-ready descriptor has no peer. */
#define STDIO_BUS_EVENT_HANGUP 4u

#endif
