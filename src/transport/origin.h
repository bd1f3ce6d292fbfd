/* The origin of a connection: the user or the address that opened it. */
#ifndef STDIO_BUS_TRANSPORT_ORIGIN_H
#define STDIO_BUS_TRANSPORT_ORIGIN_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/slice.h"
#include "transport/address.h"
#include "transport/connection_state.h"

#define ORIGIN_KEY_BYTES (1 + ADDRESS_BYTES)

/* Whether this system reports the credentials of the peer of a Unix socket. */
#if defined HAVE_STRUCT_UCRED_UID || defined HAVE_GETPEEREID
#define ORIGIN_HAS_CREDENTIALS 1
#else
#define ORIGIN_HAS_CREDENTIALS 0
#endif

struct origin {
    unsigned char key[ORIGIN_KEY_BYTES]; /* the same for all connections of one user or token, or of
                                          * one address or IPv6 network, whatever their ports */
    bool is_local;                       /* on this machine */
    bool has_credentials;                /* the peer of a Unix socket, when it connected: */
    uid_t uid;
    gid_t gid;
    pid_t pid;                   /* 0: unknown */
    char text[ADDRESS_TEXT_MAX]; /* for the log: "uid 1000, gid 1000, pid 4711", "127.0.0.1:5123" */
    char name[ADDRESS_TEXT_MAX]; /* the same for all of its connections: "uid 1000", "127.0.0.1" */
};

static inline struct slice origin_name(const struct origin *origin)
{
    return slice_of_text(origin->name);
}

/* The origin of stdin and stdout. */
void origin_of_stdio(struct origin *origin);

/* The origin of an accepted socket, whose peer has this address. */
void origin_of_socket(struct origin *origin, int fd, const struct sockaddr *address);

/* From now on the origin is the user of a token with a name, wherever that user's connections come
 * from; `set` distinguishes sets of tokens. Its text and what is known of the connection stay. */
void origin_of_token(struct origin *origin, const char *set, const char *name);

/* Writes the name that the system has for the process that opened the connection, cut to fit; "" if
 * it does not say: Linux alone does, with /proc. */
void origin_program(const struct origin *origin, char *to, size_t size);

/* Whether both are the same user, or the same address or IPv6 network (address_host_bytes). */
bool origin_equal(const struct origin *a, const struct origin *b);

/* Turns of reading: first the origins (users and addresses), then the connections of each. In a
 * round of the event loop an origin is read READING_SHARE bytes, and at most one read more, however
 * many connections it has. The others that are readable wait, and are not watched meanwhile. So
 * bytes of an origin wait for at most that share of every other one. Alone, an origin has no
 * bound. */

#define READING_SHARE ((size_t)65536)
#define READING_COST ((size_t)1024) /* what a read counts beside its bytes */

/* From now on the connection, which has no reservation of memory, is one of this origin. */
void connection_set_origin(struct connection *connection, struct transport_origin *origin);

/* This number of bytes of the connection, which has an origin, was read. */
static inline void reading_note(const struct connection *connection, size_t len)
{
    struct transport_origin *origin = connection->origin;

    if (origin->round != connection->transport->round) {
        origin->round = connection->transport->round;
        origin->read = 0;
    }
    origin->read += len + READING_COST;
}

/* The connection, whose origin is not alone, is readable. True: it has to wait for its turn. */
bool reading_waits(struct connection *connection);

/* It was read, and is readable still: it waits for its next turn. */
void reading_wait(struct connection *connection);

/* It waits no more. The caller watches it again, or closes it. */
void reading_leave(struct connection *connection);

/* The turns of a round, which ends with connection_flush_all. Begin takes them out of `transport`;
 * those that are left are for the next round. NULL: there is none any more. */
void reading_begin(struct transport *transport, struct list *turns);
struct connection *reading_next(struct transport *transport, struct list *turns);

#endif
