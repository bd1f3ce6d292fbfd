/* The daemon's settings: its configuration, and the options of the command line above it. Read at
 * the start and at each reload, by the same rules. */
#ifndef STDIO_BUS_CLI_SETTINGS_H
#define STDIO_BUS_CLI_SETTINGS_H

#include "cli/options.h"
#include "cli/passed.h"
#include "config/setup.h"
#include "json/text.h"

#define SETTINGS_PROBLEM_MAX 512

struct settings {
    const struct options *options;
    struct log *log;
    struct passed_sockets *passed;
    bool is_known;                      /* to the daemon before, with its warnings and tokens, */
    struct sources *sources;            /* and with these texts; NULL: they are in the files */
    bool has_stdin;                     /* stdin and stdout are a client; set at the start */
    size_t reports;                     /* of problems, and of what may be one, in the log */
    char problem[SETTINGS_PROBLEM_MAX]; /* the first one that was found; "": none */
};

/* Reads and checks all of them. Returns EXIT_DONE, or another exit status after the reason was
 * logged; then *setup is NULL. */
int settings_read(struct settings *settings, struct setup **setup);

/* Whether stdin and stdout are a client. */
bool settings_serve_stdin(const struct settings *settings, const struct config *config);

/* Reads them for a reload, as bus_options.read_again (bus/options.h) has it. */
struct setup *settings_read_again(void *user_data, const char **problem);

/* --- stdio_bus --check-config --json. --- */

/* Adds the pools of a configuration, as the list `pools` of the control socket has them, and their
 * number. If out of memory, text->failed. */
void config_json_write(struct json_text *text, const struct config *config);

#endif
