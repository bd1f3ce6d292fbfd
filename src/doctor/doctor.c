#include "build_config.h"

#include "doctor/doctor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/terminal.h"
#include "config/command.h"
#include "doctor/examinations.h"

static const char usage[] =
    "usage: stdio_bus doctor [--json] [--path PATH]\n"
    "\n"
    "Looks at what goes wrong most around stdio_bus and the programs that start it:\n"
    "PATH, npx and the like, sockets, limits, other daemons, and the configurations\n"
    "of MCP clients. It changes nothing, and prints no value of a variable.\n"
    "  --json         print JSON\n"
    "  --path PATH    the PATH that programs with windows give to their servers;\n"
    "                 default: " COMMAND_SERVICE_PATH "\n"
    "\n"
    "exit status: 0 nothing wrong, 1 warnings, 2 errors, 64 usage, 71 system error\n";

/* In this order: the last one moves to another directory. */
static const struct {
    const char *name;
    void (*examine)(struct doctor *doctor);
} examinations[] = {
    {"path", doctor_path},       {"programs", doctor_programs}, {"descriptors", doctor_descriptors},
    {"clients", doctor_clients}, {"sockets", doctor_sockets},   {"daemons", doctor_daemons},
};

/* NULL, or the word that is not understood. */
static const char *read_words(struct doctor *doctor, int argc, char *const argv[])
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            doctor->json = true;
        else if (strcmp(argv[i], "--path") == 0 && i + 1 < argc)
            doctor->window_path = argv[++i];
        else
            return argv[i];
    }
    return NULL;
}

static int cannot_write(int error)
{
    terminal_line(stderr, "stdio_bus: doctor: cannot write to stdout: %s", strerror(error));
    return EXIT_OS_ERROR;
}

static int examine(struct doctor *doctor)
{
    doctor_begin(doctor);
    for (size_t i = 0; i < sizeof examinations / sizeof examinations[0]; i++) {
        doctor->examination = examinations[i].name;
        examinations[i].examine(doctor);
    }
    doctor_end(doctor);
    return doctor->cannot_print ? cannot_write(doctor->error) : (int)doctor->worst;
}

int doctor_run(int argc, char *const argv[])
{
    struct doctor doctor = {.window_path = COMMAND_SERVICE_PATH, .path = getenv("PATH")};
    const char *unknown = read_words(&doctor, argc, argv);
    bool asks = unknown != NULL && (strcmp(unknown, "--help") == 0 || strcmp(unknown, "-h") == 0);
    int status = EXIT_DONE;

    signal(SIGPIPE, SIG_IGN);
    if (asks && terminal_lines(stdout, TERMINAL_TEXT, slice_of_text(usage)) != 0)
        return cannot_write(errno);
    if (unknown != NULL && !asks) {
        terminal_line(stderr, "stdio_bus: doctor: %s: neither an option nor expected", unknown);
        return EXIT_USAGE_ERROR;
    }
    if (!asks)
        status = examine(&doctor);
    return fflush(stdout) == 0 ? status : cannot_write(errno);
}
