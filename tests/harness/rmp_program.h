/* stdio_bus_rmp as a process: what it prints on stdout and stderr are the lines of a client. */
#ifndef TESTS_HARNESS_RMP_PROGRAM_H
#define TESTS_HARNESS_RMP_PROGRAM_H

#include "client.h"
#include "daemon.h"

/* Starts a daemon with these pools and an RMP socket, and waits until it listens there. */
struct daemon *rmp_program_daemon(const char *pools);

/* A client of its RMP socket. */
struct client *rmp_program_connect(const struct daemon *daemon);

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

/* The next lines must contain these words, one each. */
#define RMP_PROGRAM_EXPECT(program, ...)                                                           \
    rmp_program_expect_lines((program), (const char *const[]){__VA_ARGS__, NULL})
void rmp_program_expect_lines(struct rmp_program *program, const char *const *words);

/* Its next line must contain the word (printf), and nothing may follow, with this status. */
void rmp_program_says(struct rmp_program program, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Ends it by a signal. */
void rmp_program_stop(struct rmp_program *program);

/* --- talks with pools --- */

#define RMP_WRITER(instances)                                                                      \
    "{'id':'writer','command':'@WORKER@','instances':" #instances ",'rmp':{'agent':'writer'}}"
#define RMP_RUNNER "{'id':'runner','command':'@WORKER@','instances':1,'rmp':{'runner':true}}"

#define RMP_TRACE "11223344-5566-7788-99aa-bbccddeeff00"
#define RMP_OTHER_TRACE "11223344-5566-7788-99aa-bbccddeeff01"

/* A time to live, in ms, that is over soon, but not before the frame is at the daemon. */
#define RMP_PROGRAM_SHORT "1500"

/* A subscriber, which has its subscription. */
struct rmp_program rmp_program_subscriber(const struct daemon *daemon, const char *topic);

/* Publishes this JSON, of this type, with this trace and time to live. */
void rmp_program_publish(const struct daemon *daemon, const char *topic, const char *type,
                         const char *trace, const char *ttl, const char *json);

/* Asks agent/writer for the method of the test worker; the answer goes to `reply`. */
void rmp_program_execute_until(const struct daemon *daemon, const char *trace, const char *ttl,
                               const char *method, const char *inputs);
void rmp_program_execute(const struct daemon *daemon, const char *method, const char *inputs);

/* Submits a run. */
void rmp_program_submit(const struct daemon *daemon, const char *trace, const char *members);

#endif
