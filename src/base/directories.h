/* Directories that a path needs. */
#ifndef STDIO_BUS_BASE_DIRECTORIES_H
#define STDIO_BUS_BASE_DIRECTORIES_H

#include <stdbool.h>

/* Makes the directories above the last component of the path that are missing, with the mode 0700.
 * The path is as before when it returns. False with errno set. */
bool directories_make_above(char *path);

#endif
