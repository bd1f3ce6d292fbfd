/* Files that daemons of long ago have left in the directory of the shared servers. */
#ifndef STDIO_BUS_SHARE_TIDY_H
#define STDIO_BUS_SHARE_TIDY_H

/* Removes the sockets and logs of the working directory that are older than a week and have no
 * daemon. The caller has the lock of the directory: no other client starts a daemon meanwhile. What
 * cannot be removed stays. */
void tidy_directory(void);

#endif
