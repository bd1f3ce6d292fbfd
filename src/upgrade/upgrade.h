/* Upgrade in place: another build of the program takes the place of this one in the same process.
 * The process id, the workers, the listeners and the clients stay, and nothing that is under way is
 * lost.
 *
 * The program is executed by the name that this one was started by, with the same arguments:
 *
 *  1. a child, with --upgrade-check and the state as it is now. It builds a bus of that state and
 *     reports the form and the version of its own. Meanwhile this one keeps serving.
 *  2. the process itself, with the state of that moment, between two rounds of the event loop.
 *
 * Whatever fails leaves this program running: an error of the child, of exec. Should the program
 * fail after all with the second state, it executes this one again, which continues from there. */
#ifndef STDIO_BUS_UPGRADE_UPGRADE_H
#define STDIO_BUS_UPGRADE_UPGRADE_H

#include "bus/state.h"
#include "upgrade/image.h"
#include "upgrade/state.h"

struct upgrade;

/* NULL if out of memory. */
struct upgrade *upgrade_create(struct stdio_bus *bus);

/* Ends an upgrade that has not come to an execution. */
void upgrade_stop(struct upgrade *upgrade);

void upgrade_destroy(struct upgrade *upgrade);

/* Asks for an upgrade. NULL, or why there can be none, which was logged. */
const char *upgrade_request(struct upgrade *upgrade);

/* At the end of a round: continues with the upgrade that was asked for. Returns unless it executes
 * the program. */
void upgrade_go_on(struct upgrade *upgrade);

/* Loads parts of an image: the texts of the configuration, from which the settings are read; the
 * places where the daemon listens, into the settings. STDIO_BUS_ERR with the problem, which lives
 * as long as the program. */
int upgrade_load_sources(const struct upgrade_image *image, struct sources *sources,
                         const char **problem);
int upgrade_load_places(const struct upgrade_image *image, struct upgrade_places *places,
                        const char **problem);

/* In place of bus_start: the bus continues from the image, frees it, and then reports that to the
 * log and to those who have asked for the upgrade. In a check, it is only looked whether it could.
 * STDIO_BUS_ERR with the problem; then nothing that the image names was touched, nor must
 * bus_destroy do so. */
int upgrade_resume(struct upgrade *upgrade, struct upgrade_image *image, const char **problem);

/* In a check: what the child prints of a state that it can continue from. */
void upgrade_print_answer(void);

#endif
