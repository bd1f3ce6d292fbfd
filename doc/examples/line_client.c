/* line_client: sends the lines of stdin to a Unix socket and shows both directions.
 *
 *     line_client SOCKET NAME < requests.ndjson
 *
 * Each line sent is printed as "NAME > line", each line received as "NAME < line". After the last
 * line it shuts down its sending side; the daemon answers what was asked and then hangs up. Made
 * for the demonstration: it sends everything before it reads the first answer. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "line_client: %s: the path is too long\n", path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        perror(path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

/* Copies lines, and shows each. */
static void relay(FILE *from, FILE *to, const char *name, char direction)
{
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, from) > 0) {
        printf("%s %c %s", name, direction, line);
        if (to != NULL)
            fputs(line, to);
    }
    free(line);
}

int main(int argc, char **argv)
{
    FILE *to_daemon, *from_daemon;
    int fd;

    if (argc != 3) {
        fprintf(stderr, "usage: line_client SOCKET NAME < requests.ndjson\n");
        return 64;
    }
    fd = connect_to(argv[1]);
    if (fd < 0)
        return 1;
    to_daemon = fdopen(dup(fd), "w");
    from_daemon = fdopen(fd, "r");
    if (to_daemon == NULL || from_daemon == NULL) {
        perror("line_client");
        return 1;
    }
    relay(stdin, to_daemon, argv[2], '>');
    if (fflush(to_daemon) != 0 || shutdown(fd, SHUT_WR) != 0) {
        perror(argv[1]);
        return 1;
    }
    relay(from_daemon, NULL, argv[2], '<');
    fclose(to_daemon);
    fclose(from_daemon);
    return 0;
}
