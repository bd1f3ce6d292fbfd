/* A reload: the configuration is read anew and takes the place of the one before, while clients
 * stay connected and requests are answered.
 *
 * What can fail comes first and changes nothing: the files are read and checked, memory is taken,
 * new pools and workers are made, new sockets are bound. Then everything changes at once. What
 * takes its time is left to reload/renewals.h: workers that end when they are free. */
#ifndef STDIO_BUS_RELOAD_RELOAD_H
#define STDIO_BUS_RELOAD_RELOAD_H

#include "reload/renewals.h"

struct reload {
    struct stdio_bus *bus;
    bool noted; /* the configuration is to be read again */
    struct renewals renewals;
};

/* NULL when memory is out. */
struct reload *reload_create(struct stdio_bus *bus);

/* A signal asks for a reload: at the end of this round, or of the first in which the bus serves. */
void reload_note(struct reload *reload);

/* Once in a round: reloads if a signal has asked for it; goes on with what that has left to do. */
void reload_go_on(struct reload *reload);

/* Reads the configuration and takes it. Returns NULL, or the reason why everything is as it was, in
 * words that live until the next call; it was logged. `by`: who asked for it, for the log. */
const char *reload_run(struct reload *reload, const char *by);

/* Why the bus cannot be saved: a reload is not over. NULL: it is. */
const char *reload_unsaved(const struct reload *reload);

#endif
