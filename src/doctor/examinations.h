/* What is examined, and where it is examined. Each function prints what it finds. */
#ifndef STDIO_BUS_DOCTOR_EXAMINATIONS_H
#define STDIO_BUS_DOCTOR_EXAMINATIONS_H

#include "doctor/findings.h"

/* place.c: this process */
void doctor_path(struct doctor *doctor);        /* the directories of PATH */
void doctor_programs(struct doctor *doctor);    /* npx and the like */
void doctor_descriptors(struct doctor *doctor); /* the limit of open files */

/* client_files.c: the configurations of MCP clients */
void doctor_clients(struct doctor *doctor);

/* sockets.c: their directory, and the daemons. The working directory is that directory from
 * doctor_daemons on. */
void doctor_sockets(struct doctor *doctor);
void doctor_daemons(struct doctor *doctor);

/* Reports where the command is found: in the PATH of programs with windows, if `has_window`, or in
 * that of this process. `what` begins the text; `place` has the PATH that the client sets itself,
 * or NULL, and the directory. */
struct command_place;
void doctor_command(struct doctor *doctor, const char *what, const char *command, bool has_window,
                    const struct command_place *place);

#endif
