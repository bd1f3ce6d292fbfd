/* echo_worker: a minimal worker in C.
 *
 *     cc -o echo_worker echo_worker.c
 *
 * Reads one JSON object per line from stdin and answers each request with its own process id and
 * the request itself. Diagnostics go to stderr, never to stdout. Ends at the end of its input or
 * on SIGTERM. */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "json_member.h"

static void on_sigterm(int signo)
{
    (void)signo;
    _exit(0);
}

/* SIGTERM arrives only while the worker waits for input, so that no answer is cut. */
static ssize_t read_line(char **line, size_t *size, const sigset_t *sigterm)
{
    ssize_t len;

    sigprocmask(SIG_UNBLOCK, sigterm, NULL);
    len = getline(line, size, stdin);
    sigprocmask(SIG_BLOCK, sigterm, NULL);
    return len;
}

/* `,"name":` and the value as spelled in the line. */
static void print_field(const char *name, const char *value)
{
    printf(",\"%s\":", name);
    fwrite(value, 1, json_length(value), stdout);
}

static void answer(const char *line)
{
    const char *session_id = json_member(line, "sessionId");

    fputs("{\"jsonrpc\":\"2.0\"", stdout);
    print_field("id", json_member(line, "id"));
    if (json_is_string(session_id))
        print_field("sessionId", session_id);
    printf(",\"result\":{\"pid\":%ld", (long)getpid());
    print_field("echo", json_skip_space(line));
    fputs("}}\n", stdout);
    fflush(stdout);
}

/* A request has an id and a method; notifications and responses get no answer. */
static bool is_request(const char *line)
{
    return json_is_id(json_member(line, "id")) && json_is_string(json_member(line, "method"));
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_sigterm};
    sigset_t sigterm;
    char *line = NULL;
    size_t size = 0;

    sigemptyset(&sigterm);
    sigaddset(&sigterm, SIGTERM);
    sigprocmask(SIG_BLOCK, &sigterm, NULL);
    sigaction(SIGTERM, &action, NULL);
    fprintf(stderr, "echo_worker[%ld]: ready\n", (long)getpid());

    while (read_line(&line, &size, &sigterm) > 0) {
        if (is_request(line))
            answer(line);
    }
    free(line);
    return 0;
}
