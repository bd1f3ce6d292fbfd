#include "build_config.h"

#include "network.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

bool have_ipv6(void)
{
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool have = fd >= 0 && bind(fd, (struct sockaddr *)&loopback, sizeof loopback) == 0;

    if (fd >= 0)
        close(fd);
    return have;
}

bool have_localhost(void)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    if (getaddrinfo("localhost", "1", &hints, &found) != 0)
        return false;
    freeaddrinfo(found);
    return true;
}
