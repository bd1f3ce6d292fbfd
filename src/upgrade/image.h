/* The memory file of an upgrade in place: how a program hands the state of its bus to the program
 * that takes its place in the same process. The environment variable STDIO_BUS_UPGRADE names two
 * descriptors, the file and the program that wrote it. */
#ifndef STDIO_BUS_UPGRADE_IMAGE_H
#define STDIO_BUS_UPGRADE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/archive.h"

#define UPGRADE_PROBLEM_MAX 256

struct upgrade_image {
    int fd;      /* the file; -1: there is none, and the daemon starts as usual */
    int program; /* that wrote it; -1: unknown */
    char *bytes;
    size_t len;
    int error;                         /* of reading the bytes; 0: none */
    bool is_check;                     /* the daemon that wrote it continues: nothing is touched */
    char problem[UPGRADE_PROBLEM_MAX]; /* of the program that gave the state back; "": none */
};

/* An unlinked file in memory with these bytes, or a temporary one; close-on-exec. -1 with errno
 * set. */
int upgrade_image_write(const char *bytes, size_t len);

/* Reads the file that the environment names, if it does, or that is at a descriptor. The variables
 * are gone then. */
void upgrade_image_inherit(struct upgrade_image *image);
void upgrade_image_read(struct upgrade_image *image, int fd);

/* Names the file and this program in the environment, for the next program; both stay open when it
 * is executed. STDIO_BUS_ERR with errno set. */
int upgrade_image_offer(int fd, int program);

/* The opposite. */
void upgrade_image_withdraw(int fd, int program);

/* Executes the program that wrote the file, which continues from it, with a problem for its log.
 * Returns if that cannot be done, or was done before. */
void upgrade_image_give_back(const struct upgrade_image *image, char *const *argv,
                             const char *problem);

/* Closes the file. */
void upgrade_image_free(struct upgrade_image *image);

#endif
