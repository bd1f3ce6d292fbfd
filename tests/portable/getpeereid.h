/* What <unistd.h> declares on BSD and macOS; included before any other header, so uid_t and gid_t
 * are not known yet. */
#ifndef STDIO_BUS_TESTS_GETPEEREID_H
#define STDIO_BUS_TESTS_GETPEEREID_H

int getpeereid(int fd, unsigned *uid, unsigned *gid);

#endif
