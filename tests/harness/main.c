/* The main function of a test program that has none of its own. */
#include "build_config.h"

#include <string.h>

#include "suite.h"

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;

    return harness_main(slash != NULL ? slash + 1 : "tests");
}
