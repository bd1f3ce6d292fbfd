/* The test worker as the program of a tunnel: started under the name openssl, or with --tunnel. */
#include "build_config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test_worker.h"

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* A megabyte as fast as can be, and then without an end. */
static void flood(void)
{
    for (unsigned i = 0; write_all(STDERR_FILENO, "noise\n", 6); i++) {
        if (i > 170000)
            poll(NULL, 0, 1);
    }
}

static void say(const char *text)
{
    (void)write_all(STDERR_FILENO, text, strlen(text));
}

/* Copies what there is to copy. False: the end. */
static bool copy(int from, int to)
{
    static char bytes[65536];
    ssize_t n = read(from, bytes, sizeof bytes);
    return n > 0 && write_all(to, bytes, (size_t)n);
}

static int relay(int fd)
{
    struct pollfd ready[2] = {{STDIN_FILENO, POLLIN, 0}, {fd, POLLIN, 0}};
    for (;;) {
        if (poll(ready, 2, -1) < 0)
            return 1;
        if (ready[0].revents != 0 && !copy(STDIN_FILENO, fd))
            return 0;
        if (ready[1].revents != 0 && !copy(fd, STDOUT_FILENO))
            return 0;
    }
}

static int connect_to(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char text[64];
    address.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    snprintf(text, sizeof text, "connect:errno=%d\n", errno);
    say(text);
    exit(1);
}

/* The word after this one; NULL: it is not there. */
static const char *word_after(int argc, char *argv[], const char *word)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], word) == 0)
            return i + 1 < argc ? argv[i + 1] : "";
    }
    return NULL;
}

int worker_tunnel(int argc, char *argv[])
{
    const char *mode = getenv("TUNNEL_MODE"), *words = getenv("TUNNEL_SAYS");
    const char *port = word_after(argc, argv, "--tunnel");
    const char *to = word_after(argc, argv, "-connect");
    bool is_openssl = port == NULL;
    mode = mode != NULL ? mode : "";
    if (word_after(argc, argv, "-help") != NULL)
        return strcmp(mode, "old") == 0;
    for (int i = 1; i < argc && strcmp(mode, "words") == 0; i++) {
        say(argv[i]);
        say(i + 1 < argc ? " " : "\n");
    }
    if (words != NULL)
        say(words);
    if (words != NULL || strcmp(mode, "words") == 0)
        return 1;
    if (strcmp(mode, "silent") == 0) {
        const char *mark = getenv("TUNNEL_MARK");
        FILE *file = mark != NULL ? fopen(mark, "w") : NULL;
        signal(SIGTERM, SIG_IGN);
        if (file != NULL)
            fclose(file);
        for (;;)
            pause();
    }
    if (is_openssl)
        port = strrchr(to, ':') + 1;
    int fd = connect_to(port);
    if (is_openssl)
        say("CONNECTION ESTABLISHED\nVerification: OK\n");
    if (strcmp(mode, "flood") == 0)
        flood();
    if (strcmp(mode, "garbage") == 0)
        (void)write_all(STDOUT_FILENO, "\x16\x03\x01\x02 garbage\r\n\r\n", 16);
    return relay(fd);
}
