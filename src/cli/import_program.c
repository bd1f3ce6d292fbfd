#include "build_config.h"

#include "cli/import_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void find_interpreter(struct import_program *program, const char *file,
                             const struct command_place *service, const struct command_place *here)
{
    char line[COMMAND_LINE_MAX];
    int error;
    const char *missing = command_missing_interpreter(file, service, line, &error);
    char *slash;

    if (missing == NULL || missing[0] == '/' ||
        command_find(missing, here, program->directory) != 0)
        program->directory[0] = '\0';
    slash = strrchr(program->directory, '/');
    if (slash != NULL)
        *slash = '\0';
}

void import_program_find(struct import_program *program, struct slice command)
{
    const struct command_place service = {COMMAND_SERVICE_PATH, NULL};
    struct command_place here = {getenv("PATH"), NULL};
    char file[COMMAND_FILE_MAX];

    *program = (struct import_program){.is_moved = false};
    snprintf(program->command, sizeof program->command, "%.*s", (int)command.len, command.data);
    if (here.path == NULL)
        here.path = COMMAND_SERVICE_PATH;
    if (command_find(program->command, &service, file) != 0) {
        if (command_find(program->command, &here, file) != 0 || file[0] != '/')
            return;
        program->is_moved = true;
        memcpy(program->command, file, sizeof file);
    }
    find_interpreter(program, file, &service, &here);
}
