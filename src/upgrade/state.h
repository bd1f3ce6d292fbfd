/* The state of a bus in an archive, for the program that takes its place (upgrade/upgrade.h). */
#ifndef STDIO_BUS_UPGRADE_STATE_H
#define STDIO_BUS_UPGRADE_STATE_H

#include "base/archive.h"
#include "bus/state.h"
#include "config/rmp_keys.h"

/* The form of the archive. Whatever changes in it, or in the meaning of a number in it (the states
 * of the scanner and of the framings are among them), gets another number here. */
#define UPGRADE_FORM "stdio_bus state 23"

#define UPGRADE_VERSION_MAX 64

/* Saves a bus that serves, or loads it into one that was created with the same options and has
 * started nothing. `version`: of the program that saves, with room for UPGRADE_VERSION_MAX. */
void upgrade_state(struct archive *archive, struct stdio_bus *bus, char *version);

/* What precedes the rest, after the texts of the configuration: where the daemon listens. The
 * sockets that the service manager has passed on are known from that, and what a reload has left to
 * the next start is not taken by the next program. */
struct upgrade_places {
    struct listen_config *listens; /* their addresses */
    size_t listen_count;
    char sockets[SERVICES_MAX][UNIX_PATH_SIZE]; /* that services bring; "": none */
};

void upgrade_state_places(struct archive *archive, struct upgrade_places *places);

#endif
