/* Where sessions are, in a pool that other machines serve too. The owner of a pool hands this over;
 * a pool that is served here alone has none. */
#ifndef STDIO_BUS_ROUTER_PLACEMENT_H
#define STDIO_BUS_ROUTER_PLACEMENT_H

#include <stdbool.h>

#include "base/list.h"
#include "base/slice.h"
#include "json/message.h"

/* The notifications by which a daemon says to another one that the client of a session has left,
 * and that a session which it has is another client's here. They have a sessionId at their top
 * level. No client may send them. */
#define PLACEMENT_LEFT_METHOD "stdio_bus/session_left"
#define PLACEMENT_JOINED_METHOD "stdio_bus/session_joined"

static inline bool placement_says_left(const struct message *message)
{
    return message->id.type == ID_NONE && slice_is(message->method, PLACEMENT_LEFT_METHOD);
}

static inline bool placement_says_joined(const struct message *message)
{
    return message->id.type == ID_NONE && slice_is(message->method, PLACEMENT_JOINED_METHOD);
}

struct group;
struct peer;
struct session;

enum place_kind {
    PLACE_ANY,    /* it is new: at any worker */
    PLACE_WORKER, /* at this one */
    PLACE_LATER,  /* it is not known yet: the sender waits on this list, until it is released */
    PLACE_UNKNOWN /* the message is refused, for this reason */
};

struct place {
    enum place_kind kind;
    struct peer *worker;
    struct list *waiting;
    const char *reason;
};

struct placement {
    /* The place of a session of the pool that is not known here. Decides about a client's message:
     * it must change nothing of the client. False: out of memory. */
    bool (*find)(struct placement *placement, struct group *pool, struct slice id,
                 struct place *place);

    /* The session has begun here. It may get a claim. */
    void (*began)(struct placement *placement, struct session *session);

    /* A session without a claim ends. */
    void (*left)(struct placement *placement, const struct session *session);
};

/* What the owner knows of a session. It is told the end, and forgets the session. */
struct session_claim {
    void (*ended)(struct session_claim *claim);
};

#endif
