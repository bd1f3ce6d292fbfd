#include "build_config.h"

#include "cli/succession.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/terminal.h"
#include "upgrade/check.h"
#include "upgrade/service.h"
#include "upgrade/upgrade.h"

void succession_begin(struct succession *succession, int *argc, char *argv[])
{
    *succession = (struct succession){.problem = "it cannot start with this configuration"};
    if (*argc < 2 || strcmp(argv[1], UPGRADE_CHECK_OPTION) != 0) {
        upgrade_image_inherit(&succession->image);
        return;
    }
    upgrade_image_read(&succession->image, STDIN_FILENO);
    succession->image.is_check = true;
    memmove(argv + 1, argv + 2, (size_t)(*argc - 1) * sizeof *argv);
    --*argc;
}

/* The daemon waits for the end of the check, which therefore comes at once. */
static void end_check(const struct succession *succession)
{
    if (succession->taken)
        upgrade_print_answer();
    else
        (void)terminal_lines(stdout, TERMINAL_TEXT, slice_of_text(succession->problem));
    (void)fflush(stdout);
    _exit(succession->taken ? EXIT_DONE : EXIT_OS_ERROR);
}

int succession_end(struct succession *succession, char *argv[])
{
    if (succession->image.is_check)
        end_check(succession);
    upgrade_image_give_back(&succession->image, argv, succession->problem);
    return succession->taken ? EXIT_DONE : EXIT_OS_ERROR;
}

/* A bus that has not taken the state is left alone: what it would free belongs to the daemon that
 * gets the state back, or that continues. */
struct stdio_bus *succession_resume(const struct bus_options *options,
                                    struct succession *succession)
{
    struct stdio_bus *bus = bus_create(options);

    if (bus == NULL)
        return NULL;
    succession->taken = upgrade_resume(services_state(bus, &upgrade_service), &succession->image,
                                       &succession->problem) == STDIO_BUS_OK;
    return succession->taken && !succession->image.is_check ? bus : NULL;
}
