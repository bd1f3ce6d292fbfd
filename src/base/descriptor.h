/* Descriptors that are shared with other processes. */
#ifndef STDIO_BUS_BASE_DESCRIPTOR_H
#define STDIO_BUS_BASE_DESCRIPTOR_H

/* Opens the terminal, or the pipe to be written to, that `fd` is once more, non-blocking and
 * close-on-exec, with the access O_RDONLY or O_WRONLY: the flags of fd itself belong to everyone
 * who inherited it. Returns -1 where that is not possible: another kind of file, no /dev/fd, a pipe
 * of another user's, or a system where /dev/fd only duplicates. */
int descriptor_open_own(int fd, int access);

#endif
