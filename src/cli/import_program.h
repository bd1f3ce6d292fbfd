/* The program of a server that is imported, as one finds it that no shell starts. */
#ifndef STDIO_BUS_CLI_IMPORT_PROGRAM_H
#define STDIO_BUS_CLI_IMPORT_PROGRAM_H

#include <stdbool.h>

#include "base/slice.h"
#include "config/command.h"

struct import_program {
    char command[COMMAND_FILE_MAX];   /* as it is to be written */
    bool is_moved;                    /* that is the path of what was a name */
    char directory[COMMAND_FILE_MAX]; /* of the interpreter that its script needs and that the
                                       * PATH of services lacks; "": none */
};

/* A name that is in PATH, but not in COMMAND_SERVICE_PATH, becomes its path: services and programs
 * with windows do not have the PATH of a shell. Any other command stays as it is. */
void import_program_find(struct import_program *program, struct slice command);

#endif
