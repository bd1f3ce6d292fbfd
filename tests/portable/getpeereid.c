/* A stand-in for the getpeereid of BSD and macOS, so that its branch in src/transport/origin.c is
 * compiled and tested on Linux too. It is no part of the daemon. */
#include "build_config.h"

#include "getpeereid.h"

#include <sys/socket.h>

int getpeereid(int fd, unsigned *uid, unsigned *gid)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -1;
    *uid = peer.uid;
    *gid = peer.gid;
    return 0;
}
