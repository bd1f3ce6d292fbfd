/* echo_worker: a minimal worker in C.
 *
 * Reads one JSON object per line from stdin and answers each request with its own process id and
 * the request itself. Diagnostics go to stderr, never to stdout. Ends at the end of its input or
 * on SIGTERM. To find the id and the sessionId it uses the daemon's own scanner. */
#include "build_config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "json/scanner.h"

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

/* `,"name":` and the value as spelled in the line; the range of a string omits its quotes. */
static void print_field(const char *name, const char *line, const struct scan_field *field)
{
    const char *quote = field->type == SCAN_STRING ? "\"" : "";

    printf(",\"%s\":%s", name, quote);
    fwrite(line + field->offset, 1, field->len, stdout);
    fputs(quote, stdout);
}

static void answer(const char *line, size_t len, const struct scan_fields *fields)
{
    fputs("{\"jsonrpc\":\"2.0\"", stdout);
    print_field("id", line, &fields->id);
    if (fields->session_id.type == SCAN_STRING)
        print_field("sessionId", line, &fields->session_id);
    printf(",\"result\":{\"pid\":%ld,\"echo\":", (long)getpid());
    fwrite(line, 1, len - 1, stdout); /* a JSON object already: all but its newline */
    fputs("}}\n", stdout);
    fflush(stdout);
}

/* A request has an id and a method; notifications and responses get no answer. */
static bool is_request(const struct scan_fields *fields)
{
    return (fields->id.type == SCAN_STRING || fields->id.type == SCAN_NUMBER) &&
           fields->method.type == SCAN_STRING;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_sigterm};
    struct scanner scanner;
    sigset_t sigterm;
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    sigemptyset(&sigterm);
    sigaddset(&sigterm, SIGTERM);
    sigprocmask(SIG_BLOCK, &sigterm, NULL);
    sigaction(SIGTERM, &action, NULL);
    fprintf(stderr, "echo_worker[%ld]: ready\n", (long)getpid());

    while ((len = read_line(&line, &size, &sigterm)) > 0) {
        scanner_reset(&scanner);
        if (scanner_run(&scanner, line, (size_t)len) != SCAN_MESSAGE)
            fprintf(stderr, "echo_worker[%ld]: not a message, left alone\n", (long)getpid());
        else if (is_request(&scanner.fields))
            answer(line, (size_t)len, &scanner.fields);
    }
    free(line);
    return 0;
}
