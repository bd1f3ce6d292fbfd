/* Socket addresses: resolving, binding, and their text. */
#ifndef STDIO_BUS_TRANSPORT_ADDRESS_H
#define STDIO_BUS_TRANSPORT_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct access;
struct addrinfo;

#define ADDRESS_TEXT_MAX 72
#define ADDRESS_REASON_MAX 256
#define ADDRESS_BYTES 16 /* of an IPv6 address */

/* An IPv6 address that stands for an IPv4 one (::ffff:127.0.0.1) is that in all of these. */

/* "127.0.0.1:5000", "[::1]:5000", "unix". Returns `to`. */
const char *address_text(char *to, size_t size, const struct sockaddr *address);

/* An IPv4 or IPv6 address without its port, as IPv6. Zeros for another kind. */
void address_bytes(unsigned char to[ADDRESS_BYTES], const struct sockaddr *address);

/* The same for all addresses of one host: of a global IPv6 address the network (/64), in which a
 * host takes any address it likes. */
void address_host_bytes(unsigned char to[ADDRESS_BYTES], const struct sockaddr *address);

bool address_is_loopback(const struct sockaddr *address);

/* The addresses of a host to listen on; "" is 127.0.0.1. To be freed with freeaddrinfo. NULL with
 * `reason` filled when there are none. */
struct addrinfo *address_resolve(const char *host, uint16_t port, char *reason, size_t reason_size);

/* A bound, non-blocking, close-on-exec TCP socket, or -1 with `reason` filled and errno set. */
int address_bind_tcp(const struct addrinfo *info, char *reason, size_t reason_size);

/* A bound Unix socket with the mode and group of `access`, in the same way. It never has more
 * rights than that. A stale one of this user at the path, on which no process listens, is removed
 * first. */
int address_bind_unix(const char *path, const struct access *access, char *reason,
                      size_t reason_size);

/* Gives a Unix socket another mode and group; in between it has no more rights than with either.
 * STDIO_BUS_ERR with errno set: then it may have less. */
int address_set_access(const char *path, const struct access *access);

#endif
