/* The configuration's text and the command line of a setup. Part of daemon.h. */
#ifndef TESTS_HARNESS_SETUP_H
#define TESTS_HARNESS_SETUP_H

#include "daemon.h"

/* The configuration's text, appended to `to`. */
void setup_config(const struct setup *setup, const struct daemon *daemon, struct text *to);

struct command { /* NULL-terminated words in storage */
    struct text storage;
    char *words[64];
};

/* The command line, wrapper included. */
void setup_command(const struct setup *setup, const struct daemon *daemon, struct command *command);
/* The command line of the client side, `stdio_bus --connect ADDRESS` and further words, up to a
 * NULL. */
void connect_command(const char *address, const char *const *words, struct command *command);
void command_free(struct command *command);

/* Executes the command with the setup's descriptors, limits and signals. Does not return. */
void setup_exec(const struct setup *setup, const struct daemon *daemon, int stdin_fd, int stdout_fd,
                int stderr_fd) __attribute__((noreturn));

#endif
