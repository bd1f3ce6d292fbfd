/* A reload: the configuration is read anew and takes the place of the one before, while clients
 * stay connected and requests are answered.
 *
 * What can fail comes first and changes nothing: the files are read and checked, memory is taken,
 * new pools and workers are made, new sockets are bound. Then everything changes at once. What
 * takes its time is left to bus/renewal.h: workers that end when they are free. */
#ifndef STDIO_BUS_BUS_RELOAD_H
#define STDIO_BUS_BUS_RELOAD_H

#include "bus/state.h"

/* A signal asks for a reload: at the end of this round, or of that from which the bus serves. */
void reload_note(struct stdio_bus *bus);

/* Reads the configuration and takes it. Returns NULL, or the reason why everything is as it was, in
 * words that live until the next call; it was logged. `by`: who asked for it, for the log. */
const char *reload_run(struct stdio_bus *bus, const char *by);

#endif
