/* stdio_bus_rmp as a process: what it prints on stdout and stderr are the lines of a client. */
#ifndef TESTS_HARNESS_RMP_PROGRAM_H
#define TESTS_HARNESS_RMP_PROGRAM_H

#include "client.h"
#include "daemon.h"

/* Starts a daemon with these pools and an RMP socket, and waits until it listens there. */
struct daemon *rmp_program_daemon(const char *pools);

struct rmp_program {
    pid_t pid;
    struct client *client;
};

/* Starts it with these words, up to a NULL, and --socket where the daemon has it; NULL: without.
 * `input`: its stdin; NULL: empty. */
struct rmp_program rmp_program_start(const struct daemon *daemon, const char *input,
                                     size_t input_len, const char *const *words);

#define RMP_PROGRAM(daemon, ...)                                                                   \
    rmp_program_start((daemon), NULL, 0, (const char *const[]){__VA_ARGS__, NULL})

/* The next line must contain the word (printf); ' is ". Returns the line. */
struct span rmp_program_expect(struct rmp_program *program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* It must print no more, and exit with this status. */
void rmp_program_end(struct rmp_program *program, int status);

/* Ends it by a signal. */
void rmp_program_stop(struct rmp_program *program);

#endif
