/* Pipes, and descriptors that are shared with other processes. */
#ifndef STDIO_BUS_BASE_DESCRIPTOR_H
#define STDIO_BUS_BASE_DESCRIPTOR_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* If the parent has closed a descriptor of 0 to 2, the next file to be opened would get its number
 * and be used as stdin, stdout or stderr: opens something else there. Reading stdin is its end,
 * writing stdout fails, and what is written to stderr is lost. False with errno set. */
bool descriptor_fill_standard(void);

/* A pipe: ends[0] is read, ends[1] written. Both are close-on-exec; `flags` is 0 or O_NONBLOCK.
 * STDIO_BUS_ERR with errno set; then both ends are -1. */
int descriptor_open_pipe(int ends[2], int flags);

/* Closes a descriptor. errno stays as it was. */
void descriptor_close(int fd);

/* Closes both ends of a pipe, where they are not -1. errno stays as it was. */
void descriptor_close_pipe(int ends[2]);

/* Closes every descriptor from `first` on, now or when a program is executed. */
void descriptor_close_from(int first, bool on_exec);

/* Opens the terminal or the pipe for writing that `fd` refers to a second time, non-blocking and
 * close-on-exec, with the access O_RDONLY or O_WRONLY: the flags of fd itself are shared by every
 * process that inherited it. Returns -1 where that is impossible: another kind of file, no /dev/fd,
 * a pipe of another user's, or a system where /dev/fd only duplicates. */
int descriptor_open_own(int fd, int access);

/* A socket that is connected to the address: blocking, close-on-exec. -1 with errno set. */
int descriptor_connect(const struct sockaddr *address, socklen_t len);

/* poll(2), and select(2) for devices where poll refuses these, as that of macOS does: of a terminal
 * or /dev/null it says POLLNVAL. While select waits, the hang-up of another descriptor that is
 * asked for nothing is not seen. */
int descriptor_poll(struct pollfd *fds, size_t count, int timeout_ms);

/* Writes all bytes, and waits for a descriptor that takes none now. False with errno set. */
bool descriptor_write_all(int fd, const char *bytes, size_t len);

/* --- A forked process that reports over a pipe when it is ready. --- */

/* In the child: keeps the write end of the pipe until readiness_report, closed on exec, and closes
 * all descriptors but that one and 0 to 2. False with errno set. */
bool readiness_keep(int fd);

/* In the child: reports that it is ready. False: the parent is gone. */
bool readiness_report(void);

/* In the parent, which has closed its write end: waits for the report. False: the child has ended
 * without one. */
bool readiness_await(int fd);

#endif
