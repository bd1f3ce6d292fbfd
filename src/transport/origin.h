/* The origin of a connection: the user or the address that opened it. */
#ifndef STDIO_BUS_TRANSPORT_ORIGIN_H
#define STDIO_BUS_TRANSPORT_ORIGIN_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/slice.h"
#include "transport/address.h"

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
    return slice_of(origin->name, strlen(origin->name));
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

#endif
