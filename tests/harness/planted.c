#include "build_config.h"

#include "planted.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

/* Answers each line with the reply. */
static void serve(int fd, const char *reply)
{
    char byte;

    while (read(fd, &byte, 1) == 1) {
        if (byte == '\n' && write(fd, reply, strlen(reply)) < 0)
            break;
    }
    close(fd);
}

static void end_child(void *object)
{
    pid_t *child = object;

    kill(*child, SIGKILL);
    waitpid(*child, NULL, 0);
    free(child);
}

static int bind_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

void plant_dead_socket(const char *path)
{
    ck_assert_int_eq(close(bind_socket(path)), 0);
}

void plant_socket(const char *path, const char *reply)
{
    int listener = bind_socket(path), fd;
    pid_t *child = malloc(sizeof *child);

    ck_assert_ptr_nonnull(child);
    ck_assert_int_eq(listen(listener, 8), 0);
    *child = fork();
    ck_assert_int_ge(*child, 0);
    if (*child == 0) {
        signal(SIGPIPE, SIG_IGN);
        while ((fd = accept(listener, NULL, NULL)) >= 0)
            serve(fd, reply);
        _exit(0);
    }
    close(listener);
    harness_at_end(end_child, child);
}
