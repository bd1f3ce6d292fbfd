/* A setup spelled out: the configuration's text and the command line. Part of daemon.h. */
#ifndef TESTS_HARNESS_SETUP_H
#define TESTS_HARNESS_SETUP_H

#include "daemon.h"

/* The configuration's text, appended to `to`. */
void setup_config(const struct setup *setup, const struct daemon *daemon, struct text *to);

struct command { /* words, NULL-terminated, that point into storage */
    struct text storage;
    char *words[64];
};

/* The command line, wrapper included. */
void setup_command(const struct setup *setup, const struct daemon *daemon,
                   struct command *command);
/* The same of a client's side, `stdio_bus --connect ADDRESS`. */
void connect_command(const char *address, struct command *command);
void command_free(struct command *command);

/* Becomes the command: descriptors, limits and signals are as the setup says. Does not return. */
void setup_exec(const struct setup *setup, const struct daemon *daemon, int stdin_fd,
                int stdout_fd, int stderr_fd) __attribute__((noreturn));

#endif
