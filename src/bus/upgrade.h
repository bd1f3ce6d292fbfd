/* Upgrade in place: another build of the program takes the place of this one in the same process.
 * The process id, the workers, the listeners and the clients stay, and nothing that is under way is
 * lost.
 *
 * The program is executed by the name that this one was started by, with the same arguments:
 *
 *  1. a child, with --upgrade-check and the state as it is now. It builds a bus of that state and
 *     reports the form and the version of its own. Meanwhile this one goes on serving.
 *  2. the process itself, with the state of that moment, between two rounds of the event loop.
 *
 * Whatever fails leaves this program running: an error of the child, of exec. Should the program
 * fail after all with the second state, it executes this one again, which goes on from there. */
#ifndef STDIO_BUS_BUS_UPGRADE_H
#define STDIO_BUS_BUS_UPGRADE_H

#include "bus/state.h"
#include "bus/upgrade_image.h"
#include "bus/upgrade_state.h"

/* At the end of a round: goes on with the upgrade that was asked for (bus/upgrade_request.h).
 * Returns unless it executes the program. */
void upgrade_run(struct stdio_bus *bus);

/* Ends an upgrade that has not come to that. */
void upgrade_stop(struct stdio_bus *bus);

/* Loads the image: the texts of the configuration, from which the settings are read; the places
 * where the daemon listens, into the settings; all of it, into a bus that was created with these.
 * STDIO_BUS_ERR with the problem, which lives as long as the program. */
int upgrade_load_sources(const struct upgrade_image *image, struct sources *sources,
                         const char **problem);
int upgrade_load_places(const struct upgrade_image *image, struct upgrade_places *places,
                        const char **problem);
int upgrade_load(struct stdio_bus *bus, const struct upgrade_image *image,
                 listener_fn *const accepted[], const char **problem);

/* The bus goes on: reports that to the log, and to those who have asked for the upgrade. */
void upgrade_finished(struct stdio_bus *bus, const struct upgrade_image *image);

/* In a check: what the child prints of a state that it can go on from. */
void upgrade_print_answer(void);

#endif
