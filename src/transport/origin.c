#include "build_config.h"

#include "transport/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/siphash.h"
#include "transport/memory.h"

/* The first byte of a key: the kinds of origins never compare equal. */
enum { KEY_STDIO = 1, KEY_UNKNOWN_USER, KEY_USER, KEY_ADDRESS, KEY_TOKEN };

void origin_of_stdio(struct origin *origin)
{
    *origin =
        (struct origin){.key = {KEY_STDIO}, .is_local = true, .text = "stdio", .name = "stdio"};
}

/* False: the system does not say. */
static bool read_credentials(struct origin *origin, int fd)
{
#if defined HAVE_STRUCT_UCRED_UID
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    origin->uid = peer.uid;
    origin->gid = peer.gid;
    origin->pid = peer.pid;
    return true;
#elif defined HAVE_GETPEEREID
    return getpeereid(fd, &origin->uid, &origin->gid) == 0;
#else
    (void)origin;
    (void)fd;
    return false;
#endif
}

static void write_user(struct origin *origin)
{
    int len = snprintf(origin->text, sizeof origin->text, "uid %ld, gid %ld", (long)origin->uid,
                       (long)origin->gid);

    snprintf(origin->name, sizeof origin->name, "uid %ld", (long)origin->uid);
    if (origin->pid > 0)
        snprintf(origin->text + len, sizeof origin->text - (size_t)len, ", pid %ld",
                 (long)origin->pid);
}

static void of_user(struct origin *origin, int fd)
{
    origin->is_local = true;
    origin->has_credentials = read_credentials(origin, fd);
    if (!origin->has_credentials) {
        origin->key[0] = KEY_UNKNOWN_USER;
        snprintf(origin->name, sizeof origin->name, "an unknown user");
        snprintf(origin->text, sizeof origin->text, "an unknown user (%s)", strerror(errno));
        return;
    }
    origin->key[0] = KEY_USER;
    memcpy(origin->key + 1, &origin->uid, sizeof origin->uid);
    write_user(origin);
}

/* A connection to one of the machine's own addresses comes from there too. */
static bool is_own_address(int fd, const struct sockaddr *peer)
{
    struct sockaddr_storage own;
    socklen_t len = sizeof own;
    unsigned char own_bytes[ADDRESS_BYTES], peer_bytes[ADDRESS_BYTES];

    if (getsockname(fd, (struct sockaddr *)&own, &len) < 0)
        return false;
    address_bytes(own_bytes, (const struct sockaddr *)&own);
    address_bytes(peer_bytes, peer);
    return memcmp(own_bytes, peer_bytes, sizeof own_bytes) == 0;
}

/* The text without its port, or the network. */
static void write_name_of_address(struct origin *origin, const struct sockaddr *address)
{
    const unsigned char *key = origin->key + 1;
    unsigned char whole[ADDRESS_BYTES];

    address_bytes(whole, address);
    if (memcmp(whole, key, sizeof whole) == 0)
        snprintf(origin->name, sizeof origin->name, "%.*s",
                 (int)(strrchr(origin->text, ':') - origin->text), origin->text);
    else
        snprintf(origin->name, sizeof origin->name, "[%x:%x:%x:%x::/64]", key[0] << 8 | key[1],
                 key[2] << 8 | key[3], key[4] << 8 | key[5], key[6] << 8 | key[7]);
}

void origin_of_socket(struct origin *origin, int fd, const struct sockaddr *address)
{
    *origin = (struct origin){.pid = 0};
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6) {
        of_user(origin, fd);
        return;
    }
    origin->key[0] = KEY_ADDRESS;
    address_host_bytes(origin->key + 1, address);
    address_text(origin->text, sizeof origin->text, address);
    write_name_of_address(origin, address);
    origin->is_local = address_is_loopback(address) || is_own_address(fd, address);
}

void origin_of_token(struct origin *origin, const char *set, const char *name)
{
    static const struct siphash_key no_key; /* the names are those of the configuration */
    const uint64_t hashes[] = {siphash(&no_key, set, strlen(set)),
                               siphash(&no_key, name, strlen(name))};

    memset(origin->key, 0, sizeof origin->key);
    origin->key[0] = KEY_TOKEN;
    memcpy(origin->key + 1, hashes, sizeof hashes);
    snprintf(origin->name, sizeof origin->name, "token %s", name);
}

void origin_program(const struct origin *origin, char *to, size_t size)
{
    char path[64];
    ssize_t len;
    int fd;

    to[0] = '\0';
    if (origin->pid <= 0)
        return;
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)origin->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    len = read(fd, to, size - 1);
    close(fd);
    to[len > 0 ? len : 0] = '\0';
    to[strcspn(to, "\n")] = '\0';
}

bool origin_equal(const struct origin *a, const struct origin *b)
{
    return memcmp(a->key, b->key, sizeof a->key) == 0;
}

static bool has_share(const struct transport *transport, const struct transport_origin *origin)
{
    return origin->round != transport->round || origin->read < READING_SHARE;
}

void connection_set_origin(struct connection *connection, struct transport_origin *origin)
{
    if (list_linked(&connection->read_turn)) {
        reading_leave(connection);
        connection_watch(connection, connection->interest);
    }
    memory_move(connection, origin);
}

bool reading_waits(struct connection *connection)
{
    const struct transport *transport = connection->transport;
    const struct transport_origin *origin = connection->origin;

    if (transport->in_turn == connection ||
        (list_empty(&origin->readers) && has_share(transport, origin)))
        return false;
    reading_wait(connection);
    connection_watch(connection, connection->interest);
    return true;
}

void reading_wait(struct connection *connection)
{
    struct transport_origin *origin = connection->origin;

    if (list_linked(&connection->read_turn))
        return;
    list_append(&origin->readers, &connection->read_turn);
    connection->transport->reader_count++;
    if (!list_linked(&origin->reading))
        list_append(&connection->transport->reading, &origin->reading);
}

void reading_leave(struct connection *connection)
{
    if (!list_linked(&connection->read_turn))
        return;
    list_remove(&connection->read_turn);
    connection->transport->reader_count--;
    if (list_empty(&connection->origin->readers))
        list_remove(&connection->origin->reading);
}

void reading_begin(struct transport *transport, struct list *turns)
{
    list_init(turns);
    list_move_all(turns, &transport->reading);
}

struct connection *reading_next(struct transport *transport, struct list *turns)
{
    struct list_node *node;

    while ((node = list_take_first(turns)) != NULL) {
        struct transport_origin *origin = list_entry(node, struct transport_origin, reading);
        struct connection *connection;

        if (!has_share(transport, origin)) {
            list_append(&transport->reading, node);
            continue;
        }
        list_append(turns, node);
        connection = list_entry(origin->readers.head.next, struct connection, read_turn);
        reading_leave(connection);
        return connection;
    }
    return NULL;
}
