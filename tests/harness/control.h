/* The control socket of a daemon, and stdio_bus ctl as a process (of the kind of rmp_program.h). */
#ifndef TESTS_HARNESS_CONTROL_H
#define TESTS_HARNESS_CONTROL_H

#include "client.h"
#include "daemon.h"
#include "rmp_program.h"

/* Starts a daemon with --control, and waits until it listens there. */
struct daemon *control_daemon(struct setup setup);

#define CONTROL_DAEMON(...) control_daemon((struct setup){__VA_ARGS__})

const char *control_path(const struct daemon *daemon);
struct client *control_connect(const struct daemon *daemon);

/* Asks; `params` is raw JSON with ' for ", or NULL. The result lives until the next line of this
 * client. */
struct span control_ask(struct client *control, const char *method, const char *params);

/* Asks again and again until the value at the path of the result is this raw JSON. */
void control_wait(struct client *control, const char *method, const char *path, const char *raw);

/* The metric of this name and labels, as it stands in the text; -1: there is none. */
double control_metric(struct client *control, const char *name);

/* stdio_bus with these words, up to a NULL, in which @CONTROL@ stands for the control socket. */
struct rmp_program control_program(const struct daemon *daemon, const char *const *words);

#define CONTROL_PROGRAM(daemon, ...)                                                               \
    control_program((daemon), (const char *const[]){__VA_ARGS__, NULL})

#endif
