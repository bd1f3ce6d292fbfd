#include "build_config.h"

#include "transport/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* TCP keepalive, in seconds, and the probes without a reply that end a connection. */
#define KEEPALIVE_IDLE 60
#define KEEPALIVE_INTERVAL 15
#define KEEPALIVE_PROBES 4
#define KEEPALIVE_IDLE_HALF_CLOSED 10

static void set_tcp(int fd, int option, int value)
{
    setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

static void set_keepalive_idle(int fd, int seconds)
{
#if defined TCP_KEEPIDLE
    set_tcp(fd, TCP_KEEPIDLE, seconds);
#elif defined TCP_KEEPALIVE /* macOS */
    set_tcp(fd, TCP_KEEPALIVE, seconds);
#else
    (void)fd;
    (void)seconds;
#endif
}

/* Not TCP_USER_TIMEOUT: it would also end the connection of a live client that does not read for a
 * while. */
void tcp_set(int fd)
{
    int on = 1;

    set_tcp(fd, TCP_NODELAY, 1);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    set_keepalive_idle(fd, KEEPALIVE_IDLE);
#if defined TCP_KEEPINTVL && defined TCP_KEEPCNT
    set_tcp(fd, TCP_KEEPINTVL, KEEPALIVE_INTERVAL);
    set_tcp(fd, TCP_KEEPCNT, KEEPALIVE_PROBES);
#endif
}

void tcp_set_half_closed(int fd)
{
    set_keepalive_idle(fd, KEEPALIVE_IDLE_HALF_CLOSED);
}
