/* The program after an upgrade in place (upgrade/upgrade.h), or in its check: where its state comes
 * from, and what follows if it cannot continue from there. */
#ifndef STDIO_BUS_CLI_SUCCESSION_H
#define STDIO_BUS_CLI_SUCCESSION_H

#include "supervisor/bus.h"
#include "upgrade/image.h"

struct succession {
    struct upgrade_image image;
    bool taken;          /* the bus continues from the image */
    const char *problem; /* why it does not */
};

/* Finds the state that another daemon offers. The option of a check is taken out of the
 * arguments. */
void succession_begin(struct succession *succession, int *argc, char *argv[]);

/* Whether there is one. */
static inline bool succession_is_on(const struct succession *succession)
{
    return WITH_UPGRADE && succession->image.fd >= 0;
}

/* A bus that continues from the state. NULL: there is none to run, after the reason was logged, or
 * in a check. */
struct stdio_bus *succession_resume(const struct bus_options *options,
                                    struct succession *succession);

/* At the end of the program: gives a state that was not taken back, or reports the result of a
 * check. Returns the exit status. */
int succession_end(struct succession *succession, char *argv[]);

#endif
